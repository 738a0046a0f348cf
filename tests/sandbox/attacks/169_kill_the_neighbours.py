# CLASS: neighbours   SEVERITY: must
# EXPECT: no signal, by any call, reaches another run: neither to all processes, nor to a group, nor by guessing.
import ctypes
import os
import platform
import signal
import time

libc = ctypes.CDLL(None, use_errno=True)
names = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "pidfd_open", "pidfd_send_signal")
number = dict(zip(names, {"x86_64": (62, 200, 234, 129, 434, 424), "aarch64": (129, 130, 131, 138, 434, 424)}[platform.machine()]))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
own = {os.getpid(), os.getpgrp()}
info = ctypes.create_string_buffer(b"\0" * 8 + b"\xff\xff\xff\xff" + b"\0" * 120)
if os.fork() == 0:
    for deadly in (signal.SIGTERM, signal.SIGSTOP):
        libc.syscall(number["kill"], -1, deadly)
for pid in [os.getppid(), *range(2, 400)]:
    if pid not in own and pid > 1:
        for deadly in (signal.SIGSTOP, signal.SIGKILL):
            libc.syscall(number["kill"], pid, deadly)
            libc.syscall(number["kill"], -pid, deadly)
            libc.syscall(number["tkill"], pid, deadly)
            libc.syscall(number["tgkill"], pid, pid, deadly)
            libc.syscall(number["rt_sigqueueinfo"], pid, deadly, info)
            fd = libc.syscall(number["pidfd_open"], pid, 0)
            if fd >= 0:
                libc.syscall(number["pidfd_send_signal"], fd, deadly, None, 0)
                os.close(fd)
time.sleep(0.5)
