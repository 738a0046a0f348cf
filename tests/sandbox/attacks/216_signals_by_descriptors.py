# CLASS: signals   SEVERITY: must   TIMEOUT: 6   AFTER: 1
# EXPECT: the kernel delivers no signal to others on behalf of the program: owners of descriptors, groups, urgent data.
import array
import contextlib
import fcntl
import os
import signal
import socket
import struct

F_SETSIG, F_SETOWN_EX, FIOSETOWN, SIOCSPGRP, FIOASYNC = 10, 15, 0x8901, 0x8902, 0x5452
for number in (signal.SIGIO, signal.SIGURG, signal.SIGTERM, signal.SIGSTOP):
    with contextlib.suppress(OSError):
        signal.signal(number, signal.SIG_IGN)
me = os.getpid()
others = {os.getppid(), 1, 2, 3, *range(max(4, me - 400), me)} - {0, me}
groups = {os.getpgid(0)}
with contextlib.suppress(OSError):
    groups.add(os.getpgid(os.getppid()))
for pid in sorted(others) + [-g for g in groups] + [-pid for pid in others]:
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):
        mine, theirs = socket.socketpair()
        read, write = os.pipe()
        for fd in (mine.fileno(), read):
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, F_SETSIG, number)
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, fcntl.F_SETOWN, pid)
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, F_SETOWN_EX, struct.pack("ii", 2 if pid < 0 else 1, abs(pid)))
            for request in (FIOSETOWN, SIOCSPGRP):
                with contextlib.suppress(OSError):
                    fcntl.ioctl(fd, request, array.array("i", [pid]))
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
            with contextlib.suppress(OSError):
                fcntl.ioctl(fd, FIOASYNC, array.array("i", [1]))
        with contextlib.suppress(OSError):
            theirs.send(b"x")
        with contextlib.suppress(OSError):
            theirs.send(b"x", socket.MSG_OOB)
        os.write(write, b"x")
        mine.close(), theirs.close(), os.close(read), os.close(write)
print("sent")
