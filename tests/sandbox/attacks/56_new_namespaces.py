# CLASS: kernel   SEVERITY: must
# EXPECT: namespaces, mounts and the root cannot be changed by clone, clone3, setns, chroot or newer system calls.
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
NEWUSER, NEWNET, SIGCHLD = 0x10000000, 0x40000000, 17
CLONE, PIVOT_ROOT, CHROOT, MOUNT, SETNS, FSOPEN, OPEN_TREE, MOVE_MOUNT, CLONE3 = (
    56,
    155,
    161,
    165,
    308,
    430,
    428,
    429,
    435,
)


def attempt(what, value):
    if value == 0 and what.startswith("clone"):
        os._exit(0)
    if value >= 0:
        print("PWNED", what)


attempt("clone(NEWUSER)", libc.syscall(CLONE, NEWUSER | SIGCHLD, 0, 0, 0, 0))
attempt("clone(NEWNET)", libc.syscall(CLONE, NEWNET | SIGCHLD, 0, 0, 0, 0))
arguments = (ctypes.c_uint64 * 11)(NEWUSER, 0, 0, 0, SIGCHLD)
attempt("clone3(NEWUSER)", libc.syscall(CLONE3, ctypes.byref(arguments), 88))
attempt("chroot", libc.syscall(CHROOT, b"."))
attempt("pivot_root", libc.syscall(PIVOT_ROOT, b".", b"."))
attempt("mount", libc.syscall(MOUNT, b"tmpfs", b"/tmp", b"tmpfs", 0, None))
attempt("fsopen", libc.syscall(FSOPEN, b"tmpfs", 0))
attempt("open_tree", libc.syscall(OPEN_TREE, -100, b"/", 1))
for kind in ("user", "mnt", "net", "pid"):
    for pid in (1, os.getppid()):
        try:
            fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
        except OSError:
            continue
        if os.readlink(f"/proc/self/fd/{fd}") != os.readlink(f"/proc/self/ns/{kind}"):
            attempt(f"setns({kind})", libc.syscall(SETNS, fd, 0))
