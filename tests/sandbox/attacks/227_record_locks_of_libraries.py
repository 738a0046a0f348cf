# CLASS: locks   SEVERITY: should   TIMEOUT: 5
# EXPECT: no record lock of a process (F_SETLK) on a library of the host, on whole files or on one byte far beyond the end.
import fcntl
import os
import sys
import time

taken = set()
held = []
for place in (sys.executable, os.path.realpath(sys.executable), os.__file__, fcntl.__file__, "/etc/passwd", "/bin/sh"):
    try:
        file = open(place, "rb")
        held.append(file)
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 1 << 40)
        taken.add(place)
    except OSError as error:
        print(place, error)
print("locks", sorted(taken))
time.sleep(1)
