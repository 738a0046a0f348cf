# CLASS: aio   SEVERITY: must
# EXPECT: the slots for asynchronous I/O, of which the machine has 65,536 for all users, stay free.
import ctypes
import os
import platform
import time

libc = ctypes.CDLL(None, use_errno=True)
IO_SETUP = {"x86_64": 206, "aarch64": 0}[platform.machine()]
taken = 0
for _ in range(8):
    if os.fork() == 0:
        for size in (4096, 256, 16):
            context = ctypes.c_ulong(0)
            while libc.syscall(IO_SETUP, size, ctypes.byref(context)) == 0 and taken < 100:
                taken += 1
                context = ctypes.c_ulong(0)
        print("PWNED" if taken else "none", taken, os.strerror(ctypes.get_errno()), flush=True)
        time.sleep(0.5)
        os._exit(0)
for _ in range(8):
    os.wait()
