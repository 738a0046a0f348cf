"""Linux system calls that Python does not wrap, called through ctypes: namespaces, mounts, capabilities and others.

A function raises OSError if its system call fails. The module can be imported, but not used, on other systems.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct

from gem.sandbox.forkserver.syscalls import NUMBERS

NEW_MOUNTS, NEW_UTS, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_USER, NEW_PIDS, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000

READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC, REMOUNT = 1, 2, 4, 8, 32
BIND, RECURSIVE, PRIVATE = 1 << 12, 1 << 14, 1 << 18
DETACH = 2

CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_KILL = 0, 1, 2, 5
CAP_SETGID, CAP_SETUID, CAP_SYS_PTRACE = 6, 7, 19
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_CAPBSET_DROP = 1, 4, 8, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 36, 38, 47, 2
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
bare_fork = ctypes.PyDLL(None, use_errno=True).fork  # keeps the GIL, like os.fork(); returns -1 on failure


def checked(result: int, what: str) -> int:
    """Return the result of a C function. Raises OSError, with the call as its filename, if it is negative."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), what)
    return result


def syscall(name: str, *arguments: object) -> int:
    """Make a system call by name. Integers are passed as C long. Raises KeyError if this machine has no such call."""
    longs = (ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)
    return checked(_libc.syscall(ctypes.c_long(NUMBERS[name]), *longs), name)


def unshare(flags: int) -> None:
    """Move this process into new namespaces. NEW_PIDS applies only to processes forked later."""
    checked(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    checked(_libc.setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    arguments = [text.encode() or None for text in (source, target, kind)]
    checked(_libc.mount(*arguments, ctypes.c_ulong(flags), data.encode() or None), f"mount on {target}")


def set_read_only(target: str, *, device: bool = False) -> None:
    """Make a mount and all mounts below it read-only, and disable device files and set-user-id programs.

    Before Linux 5.12, the mounts below it are not changed. A ``device`` still takes data, but keeps its times and mode.
    """
    flags = READ_ONLY | NO_SUID | (0 if device else NO_DEVICES)
    attributes = struct.pack("QQQQ", flags, 0, 0, 0)
    at_cwd, at_recursive = -100, 0x8000
    try:
        syscall("mount_setattr", at_cwd, target.encode(), at_recursive, attributes, len(attributes))
    except OSError:  # before Linux 5.12
        mount("", target, flags=BIND | REMOUNT | flags)


def change_root(folder: str) -> None:
    """Make a mounted folder the root of this mount namespace and detach the old root."""
    os.chdir(folder)
    syscall("pivot_root", b".", b".")
    unmount(".")
    os.chdir("/")


def unmount(target: str) -> None:
    """Detach a mount. Files that are in use remain accessible until they are closed."""
    checked(_libc.umount2(target.encode(), DETACH), f"umount {target}")


def set_hostname(name: str) -> None:
    checked(_libc.sethostname(name.encode(), len(name)), "sethostname")


def close_from(first: int) -> None:
    """Close all descriptors greater than or equal to ``first``."""
    try:
        syscall("close_range", first, 0x7FFFFFFF, 0)
    except (OSError, KeyError):  # before Linux 5.9, or on another system
        os.closerange(first, 1 + max(map(int, os.listdir("/dev/fd"))))


def fork() -> int:
    """Fork like os.fork(), but skip the steps that Python performs in the child because of other threads.

    Only for processes with a single thread. The skipped steps free the states of other threads, reinitialize locks and
    call the functions registered with os.register_at_fork(), one of which reseeds the random module. These steps take a
    fifth of the time of forking a small program, because each page that they write to is copied.
    """
    return checked(bare_fork(), "fork")


def only_thread() -> bool:
    """Whether this process has exactly one thread."""
    return len(os.listdir("/proc/self/task")) == 1


def prctl(option: int, *arguments: int) -> None:
    checked(_libc.prctl(option, *(*arguments, 0, 0, 0, 0)[:4]), f"prctl({option})")


def die_with_parent(signum: int = signal.SIGKILL) -> None:
    """Have the kernel send a signal to this process when its parent dies.

    A later change of user or capabilities clears this setting.
    """
    prctl(_PR_SET_PDEATHSIG, signum)


def adopt_orphans() -> None:
    """Become a child subreaper: orphaned descendants become children of this process."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_dumpable(dumpable: bool = True) -> None:
    """Set the dumpable flag. A change of user clears it.

    If a process is not dumpable, unprivileged processes cannot trace it, nor read its memory or use its descriptors
    through /proc: a test would forge the report of its runner (99_reach_the_runner).
    """
    prctl(_PR_SET_DUMPABLE, int(dumpable))


def allow_out_of_memory_kills() -> None:
    """Undo a setting that keeps the kernel from killing this process and its children when memory runs out.

    Otherwise a program that exceeds its limit would be spared (03_mem_bomb), and others would be killed instead.
    """
    with open("/proc/self/oom_score_adj") as file:
        adjusted = int(file.read())
    if adjusted < 0:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("0")


def set_no_new_privileges() -> None:
    """Prevent this process and its children from gaining privileges by executing a program."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def has_capability(number: int) -> bool:
    """Whether the capability with this number is in the effective set of this process."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> number & 1)


def keep_capabilities() -> None:
    """Keep the permitted capabilities at the next change of user."""
    prctl(_PR_SET_KEEPCAPS, 1)


def drop_capabilities(keep: int | None = None) -> None:
    """Drop all capabilities permanently, except one.

    Args:
        keep: number of a capability to keep, also for programs started later; None drops all.
    """
    # Also from the bounding set: a set-user-id program gets its capabilities from there.
    for number in range(64):
        if number != keep and _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
            break  # past the last capability, or not permitted
    mask = 0 if keep is None else 1 << keep
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    sets = struct.pack("IIIIII", mask, mask, mask, 0, 0, 0)  # effective, permitted, inheritable; low and high halves
    checked(_libc.capset(header, sets), "capset")
    if keep is not None:
        prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, keep)
