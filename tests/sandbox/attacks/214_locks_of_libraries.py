# CLASS: locks   SEVERITY: must   TIMEOUT: 5
# EXPECT: no flock() on a file or folder that other programs have too, shared or exclusive, nor a lock of an open file.
import fcntl
import os
import struct
import sys
import sysconfig

F_OFD_SETLK = 37
taken = set()
places = [sys.executable, os.path.realpath(sys.executable), os.__file__, os.path.dirname(os.__file__)]
places += [sysconfig.get_paths()["purelib"], "/etc/passwd", "/etc", "/usr/lib", "/bin/sh", "/dev/null", "/dev/urandom", "/"]
for place in places:
    try:
        fd = os.open(place, os.O_RDONLY)
    except OSError:
        continue
    for kind in (fcntl.LOCK_SH, fcntl.LOCK_EX):
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            taken.add(place)
        except OSError:
            pass
    try:
        fcntl.fcntl(fd, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
        taken.add(place)
    except OSError:
        pass
print("PWNED locks" if taken else "no locks", sorted(taken)[:6])
