# CLASS: locks   SEVERITY: must   TIMEOUT: 6
# EXPECT: no lease on a file of the libraries, which would block the host's next open() of it for 45 seconds.
import fcntl
import os
import sys
import time

folders = {sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)}
paths = [f"{folder}/{name}" for folder in folders for name in ("pyvenv.cfg", "os.py", "LICENSE.txt", "json/__init__.py")]
held = []
for path in paths:
    for kind in (fcntl.F_WRLCK, fcntl.F_RDLCK):
        try:
            fd = os.open(path, os.O_RDONLY)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)
            held.append(fd)
            print("PWNED a lease on", path)
        except OSError as error:
            print(path, error)
            if not isinstance(error, FileNotFoundError):
                os.close(fd)
time.sleep(2)
