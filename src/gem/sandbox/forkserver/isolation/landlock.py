"""Restrict file access with Landlock, for the level without namespaces."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Callable, Iterable

from gem.sandbox.forkserver import linux
from gem.sandbox.forkserver.syscalls import NUMBERS, words

_RULE_BENEATH = 1
_VERSION = 1  # flag with which the system call returns the ABI version
_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _DEVICE_CONTROL = 1 << 14, 1 << 15  # ioctl() on devices, which may change them for all
_REFER, REFER_SINCE = 1 << 13, 2  # moving files between folders; version 1 always forbids it
_ON_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _DEVICE_CONTROL
# Character and block devices, and sockets. A second lock: the filter refuses mknod(), and with a network it allows only
# bind() to make a socket, of a pair, to which nobody can connect.
_MAKE_DEVICES_AND_SOCKETS = 1 << 6 | 1 << 9 | 1 << 11
_TCP = 3  # bind and connect: 41_net_metadata, 42_local_services
# Abstract sockets of services (42_local_services), and signals to processes that are not of the run: the host, if they
# share its user, and other runs (24_kill_those_above, 26_kill_by_guessing, 169_kill_the_neighbours).
_SCOPES, SCOPES_SINCE = 3, 6
READ_RIGHTS = _EXECUTE | _READ | _READ_DIR
# /proc shows command lines, variables and memory of the host (31_proc_snoop, 96_learn_about_others), and /proc/self/net
# its network (98_list_sockets).
_OWN_PROC = words("cmdline comm cgroup environ fd fdinfo io limits maps mem oom_score smaps stat statm status")
# With argtypes, ctypes converts arguments in C. A test does this after a fork, when each page written to is copied.
_restrict_self = ctypes.CDLL(None, use_errno=True).syscall
_restrict_self.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_long)
_restrict_self.restype = ctypes.c_long


def version() -> int:
    """Return the Landlock ABI version of the kernel, or 0 if Landlock is not available."""
    try:
        return linux.syscall("landlock_create_ruleset", None, 0, _VERSION)
    except (OSError, KeyError):
        return 0


def _all_rights(abi: int) -> int:
    """Return the bit mask of all file rights. ABI version 1 has 13 rights; versions 2, 3 and 5 add one right each."""
    return (1 << 13 + (abi >= 2) + (abi >= 3) + (abi >= 5)) - 1


def hide(folder: str) -> None:
    """Make all files below a folder unreadable for this process and its children (35_read_expected_files).

    Landlock rules can only allow access. Therefore this allows every sibling of the folder and of each of its parents.

    Raises:
        OSError: if the kernel refuses.
    """
    folder = os.path.realpath(folder)
    rights = _EXECUTE | _READ | (_REFER if version() >= REFER_SINCE else 0)
    ruleset = linux.syscall("landlock_create_ruleset", struct.pack("Q", rights), 8, 0)
    try:
        while folder != "/":
            above = os.path.dirname(folder)
            for name in os.listdir(above):
                path = os.path.join(above, name)
                if path != folder and not os.path.islink(path):
                    with contextlib.suppress(OSError):  # the file was removed, or Landlock does not support its type
                        _allow(ruleset, path, rights)
            folder = above
        linux.set_no_new_privileges()  # the kernel demands it
        linux.syscall("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)


def signal_scope() -> Callable[[], int]:
    """Return a function that enters a domain whose processes can signal and trace only each other.

    Raises:
        OSError: if the kernel refuses, for example because its version is older than SCOPES_SINCE.
    """
    attributes = struct.pack("QQQ", 0, 0, _SCOPES)
    ruleset = linux.syscall("landlock_create_ruleset", attributes, len(attributes), 0)
    number = NUMBERS["landlock_restrict_self"]
    return lambda: linux.checked(_restrict_self(number, ruleset, 0), "landlock_restrict_self")


def _allow(ruleset: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _ON_FILES
        linux.syscall("landlock_add_rule", ruleset, _RULE_BENEATH, struct.pack("=Qi", rights, fd), 0)
    finally:
        os.close(fd)


class LandlockRules:
    """Landlock rules for programs.

    Args:
        readable: files and folders that programs may read; folders recursively. Missing paths are ignored.
        writable: files, mostly devices, that programs may read and write. Missing paths are ignored.
        network: whether TCP is allowed.

    Raises:
        OSError: if the kernel has no Landlock, or refuses it.
    """

    def __init__(self, readable: Iterable[str], writable: Iterable[str], *, network: bool) -> None:
        self.abi = linux.syscall("landlock_create_ruleset", None, 0, _VERSION)
        self._all = _all_rights(self.abi)
        self._network = network
        self._rules = [(path, READ_RIGHTS) for path in readable if os.path.exists(path)]
        self._rules += [(path, _READ | _WRITE) for path in writable if os.path.exists(path)]

    def restrict(self, folder: str) -> None:
        """Restrict this process and its children to these rules, and allow writing below ``folder``.

        This process can still read its own /proc entries; its children cannot read theirs.

        Raises:
            OSError: if the kernel refuses.
        """
        attributes = struct.pack("QQQ", self._all, 0 if self._network else _TCP, _SCOPES)
        size = 24 if self.abi >= SCOPES_SINCE else 16 if self.abi >= 4 else 8
        ruleset = linux.syscall("landlock_create_ruleset", attributes[:size], size, 0)
        own = [(f"/proc/self/{name}", READ_RIGHTS) for name in _OWN_PROC]
        # Whatever is not named here is refused: 29_read_ssh_key, 30_walk_everything, 33_symlink_escape.
        for path, rights in (*self._rules, *own, (folder, self._all & ~_MAKE_DEVICES_AND_SOCKETS)):
            _allow(ruleset, path, rights & self._all)
        linux.syscall("landlock_restrict_self", ruleset, 0)
        os.close(ruleset)
