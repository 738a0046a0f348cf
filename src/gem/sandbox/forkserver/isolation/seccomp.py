"""Seccomp filters for isolated programs, in classic BPF, for x86_64 and aarch64.

A filter is a list of allowed system calls. Calls that only affect the process itself, its children and the files it may
open are allowed, some of them only with certain arguments. Calls that are known and not allowed fail with EPERM; all
others fail with ENOSYS, as on a kernel that does not have them. A few calls that are common in ordinary programs have
no effect and return 0. A filter is assembled once and installed for each run.

The comments say what a program could do without a rule, and name programs in tests/sandbox/attacks that try it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Mapping, Sequence

from gem.sandbox.forkserver import linux
from gem.sandbox.forkserver.syscalls import MACHINE, numbers, words

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant
Body = tuple[Instruction, ...]  # instructions that decide about one system call; every path ends with a return

_LOAD, _JUMP, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x54, 0x06
_INSTRUCTION = struct.Struct("HBBI")
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2

_ERRNO = 0x00050000
ALLOW: Body = ((_RETURN, 0, 0, 0x7FFF0000),)
KILL: Body = ((_RETURN, 0, 0, 0x80000000),)
PRETEND: Body = ((_RETURN, 0, 0, _ERRNO),)
REFUSE: Body = ((_RETURN, 0, 0, _ERRNO | errno.EPERM),)
UNKNOWN: Body = ((_RETURN, 0, 0, _ERRNO | errno.ENOSYS),)

ALLOWED = words(
    """
    open openat openat2 creat close close_range read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2
    lseek stat fstat lstat newfstatat statx access faccessat faccessat2 statfs fstatfs getdents getdents64 getcwd chdir
    fchdir rename renameat renameat2 mkdir mkdirat rmdir link linkat unlink unlinkat symlink symlinkat readlink
    readlinkat truncate ftruncate fallocate readahead fadvise64 fsync fdatasync sync_file_range copy_file_range sendfile
    splice tee vmsplice dup dup2 dup3 pipe pipe2 umask getxattr lgetxattr fgetxattr getxattrat listxattr llistxattr
    flistxattr listxattrat

    poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2
    signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg
    shutdown getsockname getpeername setsockopt getsockopt

    mmap mprotect munmap mremap brk msync mincore mlock mlock2 mlockall munlock munlockall pkey_mprotect pkey_alloc
    pkey_free map_shadow_stack mseal membarrier get_mempolicy set_mempolicy mbind

    fork vfork execve execveat exit exit_group wait4 waitid pidfd_open pidfd_send_signal kill tkill tgkill
    rt_sigqueueinfo rt_tgsigqueueinfo rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait
    rt_sigsuspend sigaltstack restart_syscall pause alarm getitimer setitimer futex futex_waitv futex_wake futex_wait
    futex_requeue set_robust_list get_robust_list set_tid_address rseq arch_prctl gettid getpid getppid getpgrp getpgid
    setpgid getsid setsid

    getuid geteuid getresuid setuid setreuid setresuid setfsuid getgid getegid getresgid setgid setregid setresgid
    setfsgid getgroups setgroups capget capset landlock_create_ruleset landlock_add_rule landlock_restrict_self

    sched_yield sched_getparam sched_getscheduler sched_getaffinity sched_getattr sched_get_priority_max
    sched_get_priority_min sched_rr_get_interval getpriority ioprio_get getrlimit setrlimit getrusage times sysinfo
    uname getcpu getrandom time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep
    """
)
# Landlock does not restrict these: a program of the host's user could make its files unreadable, mark them or change
# their times. See Filter; 34_change_files_in_place.
FAKED_ATTRIBUTES = words(
    """chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat
    setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat"""
)
# Those of them that need no owner, but only permission to write, and name a file by its path.
FAKED_BY_PATH = words("utime utimes futimesat setxattr lsetxattr setxattrat removexattr lremovexattr removexattrat")
# Anyone who can read a file can lock it against others with flock(), for example a library that the host is about to
# lock (111_flock_libraries). sync() makes the disk write for the whole machine (282_waits_for_the_disk).
FAKED = ["flock", "sync", "syncfs"]
# Without a pid namespace, the processes of a run are counted and killed by their process group. The server also adopts
# those that leave it and kills them: a daemon stays only if both fail (12_spinning_orphans, 22_daemon_acts_later).
# kill(0), which signals the group, is refused; the command timeout, for example, would end the whole run with it.
FAKED_GROUPS = ["setsid", "setpgid"]
# Refused even in an empty network namespace: some families of sockets, such as those of hypervisors, reach beyond it
# (224_socket_families), and a Unix socket with a name reaches services through the file system (42_local_services).
NETWORK = ["bind", "listen", "connect", "accept", "accept4"]
# Refused with EPERM. Not among them are memfd_create, clone3 and timer_create, which libraries replace if they fail
# with ENOSYS: files in a memfd are in no process's memory (78_memory_out_of_sight), a filter cannot see the flags of
# clone3 (225_namespaces_by_clone), and by a timer that sends SIGCONT a process that was stopped between the cells of a
# session would continue itself (301_wakes_itself_between_cells).
REFUSED = [
    # Processes of the same user, such as the host, could be read, changed and traced, and their descriptors taken
    # (27_ptrace_parent, 32_hunt_descriptors, 94_debug_the_family), and their memory moved (222_memory_of_others).
    *words("ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise process_mrelease"),
    *words("migrate_pages move_pages"),
    # Large interfaces that ordinary programs do not need, each with a history of holes (57_kernel_surface). io_uring
    # would also make system calls that no filter sees.
    *words("bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register"),
    # What these use is counted for the whole machine or the user: slots for asynchronous I/O (118_aio_slots), keys,
    # also of the host (15_keyctl), and watched files, whose events are memory as well (218_inotify_of_the_user,
    # 221_watchers_of_the_system, 234_event_queues).
    *words("io_setup io_submit io_getevents io_pgetevents io_cancel io_destroy add_key request_key keyctl"),
    *words("fanotify_init fanotify_mark inotify_init inotify_init1 inotify_add_watch inotify_rm_watch"),
    # Shared memory, semaphores and queues outlive a run, are in no process's memory (238_segments_without_a_process),
    # and without a namespace those of others can be changed (14_sysv_ipc, 115_foreign_ipc_objects, 116_message_queues).
    *words("shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl"),
    *words("mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr"),
    # In a new user namespace a program has all capabilities and reaches code of the kernel that is for root: mounts,
    # file systems, networks (55_mount_unshare, 56_new_namespaces).
    *words("unshare setns mount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig fsmount"),
    *words("fspick mount_setattr quotactl quotactl_fd"),
    # Files by number instead of by path, past Landlock and mounts; device files.
    *words("name_to_handle_at open_by_handle_at mknod mknodat"),
    # The machine itself: its kernel, clock, name, swap, ports and log (223_rare_calls). The kernel checks a capability
    # for most of them; this is the second lock.
    *words("kexec_load kexec_file_load init_module finit_module delete_module iopl ioperm modify_ldt swapon swapoff"),
    *words("reboot sethostname setdomainname settimeofday clock_settime adjtimex clock_adjtime acct vhangup syslog"),
    *words("lookup_dcookie uselib"),
]

# fcntl: duplicating descriptors; flags; F_GETLK, F_SETLK, F_SETLKW; F_GETOWN, F_GETSIG, F_GETOWN_EX; F_GETPIPE_SZ. Not
# F_SETOWN and F_SETSIG, by which the kernel sends any signal to any process of the user (114_signals_by_descriptors);
# F_SETLEASE, F_NOTIFY and F_OFD_SETLK, which work on files that the program can only read: a lease makes the host wait
# 45 s for a library (110_lease_libraries); and F_SETPIPE_SZ, whose memory is counted by user (120_pipe_pages).
_FCNTL = (*range(8), 9, 11, 16, 1030, 1032)
# ioctl: TCGETS, TCGETS2, TIOCGPGRP, TIOCGWINSZ; FIONREAD, FIONBIO, FIOCLEX, FIONCLEX; FICLONE, which cp uses. Not what
# types into the host's terminal or changes it (44_type_into_the_terminal), nor any other command of a driver.
_IOCTL = (0x5401, 0x802C542A, 0x540F, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x40049409)
# ioctl on terminals of a machine's own: TCSETS, TCSETSW, TCSETSF and the same with "2", TCSBRK, TCXONC, TCFLSH;
# TIOCSCTTY, TIOCSPGRP, TIOCOUTQ, TIOCSWINSZ, TIOCNOTTY, TIOCGSID, TIOCGPTN, TIOCSPTLCK, TIOCGPTPEER. Not TIOCSTI, which
# types into a terminal that another process reads, and TIOCSETD, which loads drivers.
_TERMINAL = (*range(0x5402, 0x5405), 0x5409, 0x540A, 0x540B, 0x540E, 0x5410, 0x5411, 0x5414, 0x5422, 0x5429)
_TERMINAL += (0x402C542B, 0x402C542C, 0x402C542D, 0x80045430, 0x40045431, 0x5441)
# prctl: PDEATHSIG, DUMPABLE, NAME, SECCOMP, TIMERSLACK, CHILD_SUBREAPER, NO_NEW_PRIVS and THP_DISABLE, set and get;
# PR_CAPBSET_READ, PR_GET_TID_ADDRESS, speculation control, tagged addresses and pointer authentication of aarch64,
# PR_SET_VMA, PR_GET_AUXV. Not PR_SET_PTRACER, PR_SET_MM and others that change who may look at a process or what it
# shows of itself.
_PRCTL = (1, 2, 3, 4, 15, 16, 21, 22, 23, 29, 30, 36, 37, 38, 39, 40, 41, 42, *range(50, 57), 0x53564D41, 0x41555856)
# madvise: not HWPOISON and SOFT_OFFLINE, which take memory from the machine; MERGEABLE, by which a program learns what
# is in the memory of others; and COLD and PAGEOUT, which evict shared libraries that others run.
_MADVISE = (*range(5), *range(8, 12), *range(14, 20), 22, 23, 24, 25, 102, 103)
_DONTNEED = 4  # fadvise64: evicts a file from memory, also one of the host
# clone: CLONE_PARENT would make the child of a command a child of the fork server. When the run is killed, the server
# waits for its process 1, and that for the server to reap this child: for ever, and with it all other runs.
_NEW_NAMESPACES, _SIBLING = 0x7E020000, 0x8000
_PERSONALITIES = (0, 0xFFFFFFFF)  # the default, and the request to return it; others weaken the protection of memory
_UNIX, _INET, _INET6, _STREAM, _DATAGRAM, _SEQPACKET, _TYPE = 1, 2, 10, 1, 2, 5, 0xF
_PRIO_PROCESS, _IOPRIO_PROCESS = 0, 1
_TRUNCATE, _ACCESS_MODE = 0o1000, 0o3
_SIGKILL, _EVERYONE = 9, 0xFFFFFFFF
_SELF = 0x5E1F5E1F  # placeholder for the process id until the filter is installed
_SELF_GROUP = 0x5E1F5E20


class Filter:
    """An assembled filter.

    Args:
        network: allow IPv4 and IPv6 sockets. Otherwise only pairs of connected Unix sockets are allowed.
        own_pids: the run has its own pid namespace. Otherwise signals to all processes, and to the process group by
            kill(0), are forbidden.
        fake_groups: make setsid() and setpgid() return 0 without effect.
        guard_signals: forbid signals except to the program itself and its process group.
        fake_attributes: make the system calls in FAKED_ATTRIBUTES return 0 without effect, because the program runs as
            the owner of the host's files, and Landlock does not restrict these calls.
        fake_by_path: make only those in FAKED_BY_PATH return 0, and utimensat() of a path: the program has a user of
            its own, which may write to some files of the host. By descriptor, it changes only what it may open.
        guard_truncation: forbid truncating files by name or when opening them for reading, for Landlock versions that
            do not restrict truncation.
        terminals: allow opening terminals and changing their settings.
        machine: architecture.
    """

    def __init__(
        self,
        *,
        network: bool = False,
        own_pids: bool = False,
        fake_groups: bool = True,
        guard_signals: bool = False,
        fake_attributes: bool = False,
        fake_by_path: bool = False,
        guard_truncation: bool = False,
        terminals: bool = False,
        machine: str = MACHINE,
    ) -> None:
        rules = dict.fromkeys(ALLOWED, ALLOW) | dict.fromkeys(REFUSED, REFUSE) | dict.fromkeys(FAKED, PRETEND)
        rules |= dict.fromkeys(FAKED_ATTRIBUTES, PRETEND if fake_attributes else ALLOW) | _checked_arguments()
        if fake_by_path and not fake_attributes:
            rules |= dict.fromkeys(FAKED_BY_PATH, PRETEND) | {"utimensat": _without_path()}
        # kill(-1) reaches every process of the user, also those of other runs: 23_kill_all, 169_kill_the_neighbours.
        rules["kill"] = _killing_oneself() if own_pids else _when(0, [0, _EVERYONE], REFUSE, ALLOW)
        if network:
            rules |= dict.fromkeys(NETWORK, ALLOW)
            rules["socket"] = _when(0, [_INET, _INET6], _when(1, [_STREAM, _DATAGRAM], mask=_TYPE))
        else:
            rules |= dict.fromkeys([*NETWORK, "socket"], REFUSE)
        if terminals:
            rules["ioctl"] = _when(1, (*_IOCTL, *_TERMINAL))
        if fake_groups:
            rules |= dict.fromkeys(FAKED_GROUPS, PRETEND)
        if guard_signals:
            rules |= _guarded_signals()
        if guard_truncation:
            rules |= _guarded_truncation()
        self._assemble(rules, UNKNOWN, machine, guard_signals)

    def _assemble(self, rules: Mapping[str, Body], default: Body, machine: str, has_pid: bool) -> None:
        self._code = _program(rules, default, machine)
        self._has_pid = has_pid
        self._bytes = _assembled(self._code)

    @property
    def assembled(self) -> bytes:
        """The BPF program as bytes. Only valid if guard_signals is False."""
        return self._bytes

    def install(self) -> None:
        """Install the filter permanently for this process and its children. Raises OSError on failure."""
        data = self.assembled_for(os.getpid()) if self._has_pid else self._bytes
        program = _SockFprog(len(data) // _INSTRUCTION.size, data)
        linux.checked(_prctl(_PR_SET_SECCOMP, _MODE_FILTER, program), "seccomp")

    def assembled_for(self, pid: int) -> bytes:
        """Return the BPF program for a program with this process id, which is also the id of its process group."""
        own = {_SELF: pid, _SELF_GROUP: -pid & 0xFFFFFFFF}
        return _assembled((code, yes, no, own.get(k, k)) for code, yes, no, k in self._code)


class GroupFilter(Filter):
    """An additional filter that keeps one test and its children in their process group.

    A process that left it would stay beside the next test (297_traces_for_the_next_test), or join the group of the
    runner, which the monitor trusts.

    Args:
        guard_signals: forbid signals except to the process itself and its process group.
    """

    def __init__(self, *, guard_signals: bool) -> None:
        rules = dict.fromkeys(FAKED_GROUPS, PRETEND)
        self._assemble(rules | (_guarded_signals() if guard_signals else {}), ALLOW, MACHINE, guard_signals)


class _SockFprog(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


_prctl = ctypes.CDLL(None, use_errno=True).prctl
_prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.POINTER(_SockFprog))


def _assembled(code: Iterable[Instruction]) -> bytes:
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in code)


def _program(rules: Mapping[str, Body], default: Body, machine: str) -> Body:
    """Build a filter that applies ``default`` to the system calls without a rule.

    System calls of another architecture kill the process: its numbers stand for other calls (226_old_interface). x32
    system calls fail with ENOSYS: they are the same calls by higher numbers (74_foreign_system_calls).
    """
    by_number = {number: rules[name] for name, number in numbers(machine).items() if name in rules}
    ranges: list[tuple[int, Body]] = []  # the first number of each range of calls with the same rule
    for number in range(max(by_number, default=0) + 2):
        body = by_number.get(number, default)
        if not ranges or ranges[-1][1] != body:
            ranges.append((number, body))
    start: Body = (
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _ARCHITECTURE[machine]),
        *KILL,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        *UNKNOWN,
    )
    return start + _search(ranges)


def _search(ranges: Sequence[tuple[int, Body]]) -> Body:
    """Build a binary search for the system call number. A conditional jump is too short to skip half of the tree."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    above = _search(ranges[middle:])
    return ((_AT_LEAST, 1, 0, ranges[middle][0]), (_JUMP, 0, 0, len(above)), *above, *_search(ranges[:middle]))


def _when(index: int, values: Iterable[int], yes: Body = ALLOW, no: Body = REFUSE, *, mask: int | None = None) -> Body:
    """Build a rule that continues with ``yes`` if an argument has one of these values, otherwise with ``no``.

    Args:
        index: number of the argument, from 0. Only its lower 32 bits are compared, because the kernel ignores the
            others for all arguments that are checked here.
        mask: bits of the argument to compare; None for all.
    """
    masked = () if mask is None else ((_AND, 0, 0, mask),)
    jumps = list(values)
    tests = [(_EQUAL, len(jumps) - 1 - n + len(no), 0, value) for n, value in enumerate(jumps)]
    return ((_LOAD, 0, 0, _ARGUMENTS + 8 * index), *masked, *tests, *no, *yes)


def _checked_arguments() -> dict[str, Body]:
    """Build the rules for system calls that are allowed only with certain arguments."""
    # Limits, priorities and processors of other processes of the user, who could not restore all of them
    # (66_limits_of_others, 117_priority_of_the_user, 211_priority_of_the_user).
    oneself = _when(0, [0])
    return {
        "clone": _when(0, [0], mask=_NEW_NAMESPACES | _SIBLING),
        "fadvise64": _when(3, [_DONTNEED], PRETEND, ALLOW),
        "fcntl": _when(1, _FCNTL),
        "ioctl": _when(1, _IOCTL),
        "ioprio_set": _when(0, [_IOPRIO_PROCESS], _when(1, [0])),
        "madvise": _when(2, _MADVISE),
        "personality": _when(0, _PERSONALITIES),
        "prctl": _when(0, _PRCTL),
        "prlimit64": oneself,
        "sched_setaffinity": oneself,
        "sched_setattr": oneself,
        "sched_setparam": oneself,
        "sched_setscheduler": oneself,
        "setpriority": _when(0, [_PRIO_PROCESS], _when(1, [0])),
        # A datagram socket of a pair can send to the sockets of services (42_local_services). The kernel takes SOCK_RAW
        # for SOCK_DGRAM.
        "socketpair": _when(0, [_UNIX], _when(1, [_STREAM, _SEQPACKET], mask=_TYPE)),
    }


def _killing_oneself() -> Body:
    """Build a rule that kills process 1 if it sends itself SIGKILL, which the kernel would ignore."""
    return _when(0, [1], _when(1, [_SIGKILL], KILL, ALLOW), ALLOW)


def _guarded_signals() -> dict[str, Body]:
    """Build rules that allow signals only to the program and its process group (24_kill_those_above).

    The target of pidfd_send_signal() is a descriptor, which a filter cannot judge.
    """
    signals = ("tgkill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
    rules = dict.fromkeys(signals, _when(0, [0, _SELF, _SELF_GROUP]))
    return rules | {"kill": _when(0, [_SELF, _SELF_GROUP]), "pidfd_send_signal": REFUSE}


def _without_path() -> Body:
    """Build a rule that allows utimensat() for a descriptor, whose path is NULL, in both halves of the argument."""
    return ((_LOAD, 0, 0, _ARGUMENTS + 8 + 4), (_EQUAL, len(PRETEND), 0, 0), *PRETEND, *_when(1, [0], ALLOW, PRETEND))


def _guarded_truncation() -> dict[str, Body]:
    """Build rules against emptying files (34_change_files_in_place). The flags of openat2() are in memory."""
    rules = {"truncate": REFUSE, "openat2": UNKNOWN}
    for name, index in (("open", 1), ("openat", 2)):
        reading = _when(index, [0], REFUSE, ALLOW, mask=_ACCESS_MODE)
        rules[name] = _when(index, [0], ALLOW, reading, mask=_TRUNCATE)
    return rules
