# CLASS: resources   SEVERITY: must   TIMEOUT: 5
# EXPECT: the program does not take most of the inotify instances of the user, of whom the kernel allows 128 by default.
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
try:
    with open("/proc/sys/fs/inotify/max_user_instances") as file:
        allowed = int(file.read())
except OSError:
    allowed = 128
held = []
for _ in range(allowed):
    fd = libc.inotify_init1(os.O_NONBLOCK)
    if fd < 0:
        break
    held.append(fd)
print("PWNED took" if 2 * len(held) > allowed else "took", len(held), "of", allowed, "inotify instances")
