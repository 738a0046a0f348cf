# CLASS: signals   SEVERITY: must
# EXPECT: the parent, session, process group and init cannot be killed by any system call.
import ctypes
import os
import signal

libc = ctypes.CDLL(None, use_errno=True)
TKILL, TGKILL, SIGQUEUE, PIDFD_OPEN, PIDFD_SEND = 200, 234, 129, 434, 424  # of x86-64
above = {os.getppid(), os.getsid(0), 1}
print("start", flush=True)
for pid in above - {os.getpid(), 0}:
    for victim in (pid, -pid):
        try:
            os.kill(victim, signal.SIGKILL)
        except OSError:
            pass
    libc.syscall(TKILL, pid, 9)
    libc.syscall(TGKILL, pid, pid, 9)
    libc.syscall(SIGQUEUE, pid, 9, ctypes.create_string_buffer(128))
    fd = libc.syscall(PIDFD_OPEN, pid, 0)
    if fd >= 0:
        libc.syscall(PIDFD_SEND, fd, 9, None, 0)
