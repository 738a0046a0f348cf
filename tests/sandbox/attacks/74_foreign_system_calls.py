# CLASS: kernel   SEVERITY: must
# EXPECT: the system call filter cannot be bypassed by x32 or 32-bit system calls.
import ctypes
import mmap
import os
import platform

X32, SOCKET, SOCKET_32, UNSHARE_32 = 0x40000000, 41, 359, 310
libc = ctypes.CDLL(None, use_errno=True)


def by_interrupt(number, *arguments):
    """A system call by int 0x80, as 32-bit programs make it."""
    push = b"\x53"
    loads = b"".join(op + value.to_bytes(4, "little") for op, value in zip((b"\xbb", b"\xb9", b"\xba"), arguments))
    code = push + b"\xb8" + number.to_bytes(4, "little") + loads + b"\xcd\x80" + b"\x5b\xc3"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)()


def in_child(what, call):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if call() >= 0 else 1)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0:
        print("PWNED", what)


if platform.machine() == "x86_64":
    in_child("socket() by x32", lambda: libc.syscall(X32 | SOCKET, 2, 1, 0))
    in_child("unshare() by int 0x80", lambda: by_interrupt(UNSHARE_32, 0x10000000, 0, 0))
