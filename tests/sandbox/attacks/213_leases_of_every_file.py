# CLASS: locks   SEVERITY: must   TIMEOUT: 5
# EXPECT: no lease on a file or folder outside, however it was opened: by its path, again through /proc, or by mapping.
import fcntl
import os
import sys
import sysconfig

F_SETLEASE, F_NOTIFY = 1024, 1026
places = [sys.executable, os.path.realpath(sys.executable), os.__file__, "/bin/sh", "/etc/passwd", "/etc/hostname"]
places += [os.path.dirname(os.__file__), sysconfig.get_paths()["purelib"], "/usr/lib", "/tmp"]
with open("/proc/self/maps") as maps:
    places += sorted({line.split()[-1] for line in maps if "/" in line})
taken = []
for place in places:
    for flags in (os.O_RDONLY, os.O_RDONLY | os.O_NONBLOCK, os.O_RDONLY | os.O_DIRECTORY):
        try:
            fd = os.open(place, flags)
            again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        except OSError:
            continue
        for one in (fd, again):
            for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
                for command in (F_SETLEASE, 17 + 1024):  # the second: F_SETDELEG of new kernels
                    try:
                        fcntl.fcntl(one, command, kind)
                        taken.append(place)
                    except (OSError, ValueError):
                        pass
print("PWNED leases" if taken else "no leases", sorted(set(taken))[:4])
