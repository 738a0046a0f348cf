# CLASS: ptrace   SEVERITY: must
# EXPECT: no process outside can be traced, read, written or compared (kcmp), by any system call.
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
SEIZE, READ, WRITE, KCMP, MADVISE = 0x4206, 310, 311, 312, 440


class Span(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


buffer = ctypes.create_string_buffer(64)
local = Span(ctypes.addressof(buffer), 64)
maps = open("/proc/self/maps").read().split("-", 1)[0]
remote = Span(int(maps, 16), 64)  # a fork server and its children have the same addresses
own = os.getpid()
for pid in sorted({os.getppid(), *range(1, 300)} - {own, 0}):
    for what, call in (
        ("seize", lambda: libc.ptrace(SEIZE, pid, 0, 0)),
        ("read", lambda: libc.syscall(READ, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)),
        ("write", lambda: libc.syscall(WRITE, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)),
        ("compare", lambda: libc.syscall(KCMP, pid, own, 0, 0, 0)),
    ):
        if call() >= 0:
            print("PWNED", what, pid)
