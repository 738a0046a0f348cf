"""Seccomp filters for isolated programs, in classic BPF. A filter is assembled once and installed for each run.

Most forbidden system calls fail with EPERM. Some forbidden system calls are common in ordinary programs; these have no
effect and return 0 (see FAKED_GROUPS and FAKED_ATTRIBUTES).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterable
from typing import Any

from gem.sandbox.zygote import linux
from gem.sandbox.zygote.syscalls import MACHINE, NUMBERS, words

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_REFUSE, _UNKNOWN, _PRETEND = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS, _ERRNO
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
_NUMBER, _ARCH = 0, 4  # offsets in struct seccomp_data
_PR_GET_SECCOMP, _PR_SET_SECCOMP, _MODE_FILTER = 21, 22, 2
_INSTRUCTION = struct.Struct("HBBI")

# System calls that are rarely needed and often exploited, or that have effects outside the run.
REFUSED = words(
    """ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise process_mrelease
    bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register add_key request_key keyctl
    unshare setns mount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick
    mount_setattr name_to_handle_at open_by_handle_at mknod mknodat quotactl quotactl_fd fanotify_init inotify_init
    inotify_init1 kexec_load kexec_file_load init_module finit_module delete_module iopl ioperm modify_ldt swapon
    swapoff reboot sethostname setdomainname settimeofday clock_settime adjtimex clock_adjtime acct vhangup syslog
    lookup_dcookie uselib migrate_pages move_pages shmget semget msgget mq_open"""
)
# Libraries have fallbacks for these system calls. Data in a memfd is not part of any process's resident memory.
UNKNOWN = ["clone3", "memfd_create", "memfd_secret"]
NETWORK = ["bind", "listen", "connect", "accept", "accept4"]
# Without a pid namespace, the processes of a run are identified by their process group.
FAKED_GROUPS = ["setsid", "setpgid"]
# Landlock does not restrict these system calls, and the program may run as the owner of the host's files.
FAKED_ATTRIBUTES = words(
    """chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat
    setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr"""
)

_NEW_NAMESPACES = 0x7E020000
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_FILE_FLAGS = (0x40086602, 0x401C5820)  # FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR
_SOCKET_OWNER = (0x8901, 0x8902)  # FIOSETOWN, SIOCSPGRP
_SET_OWNER, _SET_OWNER_EX = 8, 15
_UNIX, _INET, _INET6, _DATAGRAM = 1, 2, 10, 2
_TRUNCATE, _ACCESS_MODE = 0o1000, 0o3
_SIGNALS = ("kill", "tgkill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_SELF = 0x5E1F5E1F  # placeholder for the process id until the filter is installed
_SELF_GROUP = 0x5E1F5E20


class Filter:
    """An assembled filter.

    Args:
        network: allow IPv4 and IPv6 sockets.
        own_pids: the run has its own pid namespace, in which the program is process 1.
        fake_groups: make setsid() and setpgid() return 0 without effect.
        guard_signals: forbid signals except to the program itself and its process group.
        fake_attributes: make the system calls in FAKED_ATTRIBUTES return 0 without effect.
        guard_truncation: forbid truncating files by name or when opening them for reading, for Landlock versions that
            do not restrict truncation.
    """

    def __init__(
        self,
        *,
        network: bool = False,
        own_pids: bool = False,
        fake_groups: bool = True,
        guard_signals: bool = False,
        fake_attributes: bool = False,
        guard_truncation: bool = False,
    ) -> None:
        code = _prologue()
        code += _answer(UNKNOWN, _UNKNOWN) + _clone() + _ioctl(guard_signals) + _sockets(network) + _own_limits_only()
        if own_pids:
            code += _killing_oneself()
        if fake_groups:
            code += _answer(FAKED_GROUPS, _PRETEND)
        if guard_signals:
            code += _guarded_signals()
        if fake_attributes:
            code += _answer(FAKED_ATTRIBUTES, _PRETEND)
        if guard_truncation:
            code += _guarded_truncation()
        code += [*_answer(REFUSED, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
        self._guarded = guard_signals
        self._code = code
        self._bytes = _assembled(code)

    @property
    def assembled(self) -> bytes:
        """The BPF program as bytes. Only valid if guard_signals is False."""
        return self._bytes

    def install(self) -> None:
        """Install the filter permanently for this process and its children. Raises OSError on failure."""
        data = self._bytes
        if self._guarded:
            pid = os.getpid()
            own = {_SELF: pid, _SELF_GROUP: -pid & 0xFFFFFFFF}
            data = _assembled((c, t, f, own.get(k, k)) for c, t, f, k in self._code)
        _install(_sock_fprog(data))


class GroupFilter(Filter):
    """An additional filter that keeps one test and its children in their process group.

    Args:
        guard_signals: forbid signals except to the process itself and its process group.
    """

    def __init__(self, *, guard_signals: bool) -> None:
        self._guarded = guard_signals
        self._code = _prologue() + _answer(FAKED_GROUPS, _PRETEND) + (_guarded_signals() if guard_signals else [])
        self._code.append((_RETURN, 0, 0, _ALLOW))
        self._bytes = _assembled(self._code)

    def prepared(self) -> tuple[Callable[..., int], tuple[Any, ...]]:
        """Return the C function that installs the filter, and its arguments. Only valid if guard_signals is False.

        The C function returns a negative number on failure.
        """
        return _prctl, (_PR_SET_SECCOMP, _MODE_FILTER, _sock_fprog(self._bytes))


class _SockFprog(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


_prctl = ctypes.CDLL(None, use_errno=True).prctl
_prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.POINTER(_SockFprog))


def noop_call() -> tuple[Callable[..., int], tuple[Any, ...]]:
    """Return the same C function as GroupFilter.prepared(), with arguments that have no effect."""
    return _prctl, (_PR_GET_SECCOMP, 0, _sock_fprog(b""))


def _sock_fprog(data: bytes) -> _SockFprog:
    return _SockFprog(len(data) // _INSTRUCTION.size, data)


def _install(program: _SockFprog) -> None:
    linux.checked(_prctl(_PR_SET_SECCOMP, _MODE_FILTER, program), "seccomp")


def _assembled(code: Iterable[Instruction]) -> bytes:
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in code)


def _prologue() -> list[Instruction]:
    """Build the start of a filter, which checks the architecture and loads the system call number.

    System calls of another architecture kill the process; x32 system calls fail with ENOSYS. Every rule expects the
    system call number to be loaded, and reloads the number if it has loaded something else.
    """
    return [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _ARCHITECTURE[MACHINE]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _UNKNOWN),
    ]


def _answer(names: Iterable[str], answer: int) -> list[Instruction]:
    """Build rules that return ``answer`` for each of these system calls, regardless of the arguments."""
    return [i for name in names for i in _rule(name, [(_RETURN, 0, 0, answer)])]


def _rule(name: str, body: list[Instruction]) -> list[Instruction]:
    """Build a rule that executes ``body`` only for the system call ``name``. Empty if this machine has no such call."""
    if name not in NUMBERS:
        return []
    return [(_EQUAL, 0, len(body), NUMBERS[name]), *body]


def _argument(index: int) -> Instruction:
    """Build an instruction that loads the lower 32 bits of a system call argument.

    The kernel ignores the upper 32 bits of the arguments that are filtered here.
    """
    return (_LOAD, 0, 0, 16 + 8 * index)


_RELOAD: Instruction = (_LOAD, 0, 0, _NUMBER)


def _unless(name: str, index: int, allowed: Iterable[int], answer: int = _REFUSE) -> list[Instruction]:
    """Build a rule that rejects a system call unless the argument has one of the allowed values."""
    values = list(allowed)
    tests = [(_EQUAL, len(values) - n, 0, value) for n, value in enumerate(values)]
    return _rule(name, [_argument(index), *tests, (_RETURN, 0, 0, answer), _RELOAD])


def _where(name: str, index: int, refused: Iterable[int], answer: int = _REFUSE) -> list[Instruction]:
    """Build a rule that rejects a system call if the argument has one of the refused values."""
    values = list(refused)
    tests = [(_EQUAL, len(values) - 1 - n, int(n == len(values) - 1), value) for n, value in enumerate(values)]
    return _rule(name, [_argument(index), *tests, (_RETURN, 0, 0, answer), _RELOAD])


def _clone() -> list[Instruction]:
    test = [_argument(0), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), (_RETURN, 0, 0, _REFUSE), _RELOAD]
    return _rule("clone", test)


def _ioctl(guard_signals: bool) -> list[Instruction]:
    return _where("ioctl", 1, _TERMINAL_INPUT + _FILE_FLAGS + (_SOCKET_OWNER if guard_signals else ()))


def _sockets(network: bool) -> list[Instruction]:
    """Build rules for sockets.

    Unix socket pairs are allowed, except datagram sockets, which can send to other addresses. IPv4 and IPv6 sockets are
    allowed only if ``network`` is True.
    """
    datagrams = [_argument(1), (_AND, 0, 0, 0xF), (_EQUAL, 0, 1, _DATAGRAM), (_RETURN, 0, 0, _REFUSE), _RELOAD]
    pairs = _unless("socketpair", 0, [_UNIX]) + _rule("socketpair", datagrams)
    if network:
        return pairs + _unless("socket", 0, [_INET, _INET6])
    return pairs + _answer(["socket", *NETWORK], _REFUSE)


def _own_limits_only() -> list[Instruction]:
    """Build rules that allow a process to change only its own limits and priorities."""
    names = ("prlimit64", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr")
    code = [i for name in names for i in _unless(name, 0, [0])]
    return code + _unless("setpriority", 1, [0]) + _unless("ioprio_set", 1, [0])


def _killing_oneself() -> list[Instruction]:
    """Build a rule that kills process 1 if it sends itself SIGKILL, which the kernel would ignore."""
    nine = [_argument(1), (_EQUAL, 0, 1, 9), (_RETURN, 0, 0, _KILL)]
    return _rule("kill", [_argument(0), (_EQUAL, 0, len(nine), 1), *nine, _RELOAD])


def _guarded_signals() -> list[Instruction]:
    code = [i for name in _SIGNALS for i in _unless(name, 0, [0, _SELF, _SELF_GROUP])]
    own = [_argument(2), (_EQUAL, 2, 0, _SELF), (_EQUAL, 1, 0, _SELF_GROUP), (_RETURN, 0, 0, _REFUSE)]
    owner = _rule("fcntl", [_argument(1), (_EQUAL, 0, len(own), _SET_OWNER), *own, _RELOAD])
    return code + owner + _where("fcntl", 1, [_SET_OWNER_EX]) + _answer(["pidfd_send_signal"], _REFUSE)


def _guarded_truncation() -> list[Instruction]:
    code = _answer(["truncate"], _REFUSE) + _answer(["openat2"], _UNKNOWN)
    for name, index in (("open", 1), ("openat", 2)):
        reading = [(_AND, 0, 0, _ACCESS_MODE), (_EQUAL, 0, 1, 0), (_RETURN, 0, 0, _REFUSE)]
        code += _rule(name, [_argument(index), (_ANY_BIT, 0, len(reading), _TRUNCATE), *reading, _RELOAD])
    return code
