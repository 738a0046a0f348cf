# CLASS: locks   SEVERITY: should   TIMEOUT: 6
# EXPECT: record locks, of a process or of an open file, keep no other program from locking a file of the libraries.
import fcntl
import os
import struct
import sys
import time

lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
held = []
for path in (f"{sys.prefix}/pyvenv.cfg", os.__file__):
    for command in (fcntl.F_SETLK, 37):  # 37: F_OFD_SETLK
        try:
            held.append(open(path))
            fcntl.fcntl(held[-1], command, lock)
            print("locked", path)
        except OSError as error:
            print(path, error)
time.sleep(1.5)
