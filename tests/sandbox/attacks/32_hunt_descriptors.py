# CLASS: isolation   SEVERITY: must
# EXPECT: no descriptor of the host is open in the program, and none can be opened through /proc or pidfd_getfd.
import ctypes
import os
import stat

libc = ctypes.CDLL(None, use_errno=True)
PIDFD_OPEN, PIDFD_GETFD = 434, 438
for fd in range(3, 1024):
    try:
        kind = os.fstat(fd).st_mode
    except OSError:
        continue
    try:
        where = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        where = "?"
    print(fd, oct(kind), where)
    if stat.S_ISREG(kind) and "memfd" not in where:
        print(os.pread(fd, 4000, 0))
    if stat.S_ISDIR(kind):
        print("PWNED a folder of the host is open:", where)
for pid in {os.getppid(), 1, *range(2, 200)} - {os.getpid(), 0}:
    process = libc.syscall(PIDFD_OPEN, pid, 0)
    if process < 0:
        continue
    for fd in range(40):
        if libc.syscall(PIDFD_GETFD, process, fd, 0) >= 0:
            print("PWNED took descriptor", fd, "of process", pid)
            break
