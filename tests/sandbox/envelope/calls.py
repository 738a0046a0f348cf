"""Start of the programs with SHARED: calls: make system calls by number, and report those that reach the kernel."""

import ctypes
import errno
import os
import platform

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    """Returns 0 or more, or -errno."""
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in arguments])
    return -ctypes.get_errno() if result == -1 else result


def called(what, number, *arguments, x32=True):
    """Try it, in a child that may be killed for it, also by the number of the x32 interface."""
    for tried in (number, number | 0x40000000)[: 1 + x32]:
        pid = os.fork()
        if not pid:
            result = call(tried, *arguments)
            if result not in (-errno.EPERM, -errno.ENOSYS, -errno.EACCES):
                done = f"result {result}" if result >= 0 else errno.errorcode.get(-result, result)
                print("PWNED", what, "reached the kernel:", done, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)


if platform.machine() != "x86_64":
    raise SystemExit("the numbers are those of x86_64")
