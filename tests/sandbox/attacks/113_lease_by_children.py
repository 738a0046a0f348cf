# CLASS: locks   SEVERITY: must   TIMEOUT: 6
# EXPECT: no lease by another way: system calls made directly, mandatory locks, notifications of folders.
import ctypes
import fcntl
import os
import platform
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
FCNTL, FLOCK = {"x86_64": (72, 73), "aarch64": (25, 32)}[platform.machine()]
path = f"{sys.prefix}/pyvenv.cfg"
path = path if os.path.exists(path) else os.__file__
for _ in range(4):
    if os.fork() == 0:
        fd = os.open(path, os.O_RDONLY)
        for command, argument in ((1024, 1), (1024, 0), (1024 + (7 << 32), 1), (1026, 0x8000003F)):
            if libc.syscall(FCNTL, fd, ctypes.c_ulong(command), ctypes.c_ulong(argument)) == 0 and command % 2**32 == 1024:
                os.write(1, b"PWNED a lease\n")
        for kind in (32 | 64, 32 | 128, 2 | 4):  # LOCK_MAND, LOCK_EX
            libc.syscall(FLOCK, fd, kind)
        time.sleep(1.5)
        os._exit(0)
for _ in range(4):
    os.wait()
