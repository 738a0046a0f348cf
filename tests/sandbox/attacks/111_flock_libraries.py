# CLASS: locks   SEVERITY: must   TIMEOUT: 6
# EXPECT: a lock on a file of the libraries keeps no other program from locking it.
import fcntl
import os
import sys
import time

import numpy

paths = [f"{sys.prefix}/pyvenv.cfg", os.__file__, numpy.__file__]
held = []
for path in paths:
    try:
        held.append(open(path))
        fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("locked", path)
    except OSError as error:
        print(path, error)
time.sleep(1.5)
