# CLASS: signals   SEVERITY: must   AFTER: 1
# EXPECT: a descriptor that sends a signal when it becomes ready cannot send one outside the run.
import fcntl
import os
import signal
import struct
import subprocess

F_SETSIG, F_SETOWN_EX = 10, 15
for pid in [os.getppid(), *range(1, 200)]:
    if pid in (0, os.getpid(), os.getpgrp()):
        continue
    for owner in (pid, -pid):
        read, write = os.pipe()
        try:
            fcntl.fcntl(read, fcntl.F_SETOWN, owner)
            fcntl.fcntl(read, F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
            os.write(write, b"x")
        except OSError:
            pass
        try:
            fcntl.fcntl(read, F_SETOWN_EX, struct.pack("ii", 1, pid))
            os.write(write, b"x")
        except OSError:
            pass
        os.close(read)
        os.close(write)
print("sent")
