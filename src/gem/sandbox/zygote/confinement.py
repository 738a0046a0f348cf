"""Confine a test within a sandbox, so that it cannot affect other tests or their driver, which run as the same user.

Landlock: a test can change only files in its own folder, and cannot signal, trace or read processes that it did not
start. Seccomp: a test cannot leave its process group, so killing the group ends all its processes. Before Linux 6.12,
Landlock does not restrict signals; at level "lsm", seccomp then allows a test to signal only itself and its group.
Without Landlock, a test can interfere with other tests of the same program, but it cannot read the memory of the
driver, because the driver is not dumpable.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

from gem.sandbox.zygote import landlock, linux, seccomp
from gem.sandbox.zygote.syscalls import NUMBERS

CCall = tuple[Callable[..., int], tuple[Any, ...]]
_RULE_BENEATH = 1
# Rights to change files (all except execute and read), by the Landlock version that introduced them.
_CHANGES = {1: 0x1FF2, 2: 0x3FF2, 3: 0x7FF2}
_SCOPES, _SCOPES_SINCE = 3, 6  # abstract sockets and signals

# With argtypes, ctypes converts arguments in C, which saves copying a page per test.
_restrict_self = ctypes.CDLL(None, use_errno=True).syscall
_restrict_self.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_long)
_restrict_self.restype = ctypes.c_long


class Confinement:
    """Confinement to a folder. It is prepared before the fork as far as possible; the forked test applies it.

    Args:
        calls: C functions to call, with their arguments.
        guard: a filter that contains the process id and is therefore assembled after the fork; None for no such filter.
    """

    def __init__(self, calls: Sequence[CCall], guard: seccomp.GroupFilter | None = None) -> None:
        self.calls, self.guard = calls, guard

    def apply(self) -> None:
        """Confine this process and its children. Raises OSError if the kernel refuses."""
        for call, arguments in self.calls:
            if call(*arguments) < 0:
                linux.checked(-1, "confinement of a test")
        if self.guard is not None:
            self.guard.install()


class Confinements:
    """Creates the confinements of one sandbox.

    Args:
        level: isolation level of the sandbox. At level "basic", tests are not confined.

    ``enabled``: whether tests are confined, so that all processes of a test are in its process group.
    ``restricts_writes``: whether a test can only change files in its folder and in /dev.
    """

    def __init__(self, level: str) -> None:
        self.enabled = level != "basic"
        self.version = landlock.version() if self.enabled else 0
        self.restricts_writes = self.version > 0
        if not self.restricts_writes:
            linux.set_dumpable(False)
        guard = level == "lsm" and self.version < _SCOPES_SINCE
        filter_ = seccomp.GroupFilter(guard_signals=guard)
        self.guard = filter_ if guard else None
        self.common = [filter_.prepared()] if self.enabled and not guard else []

    def for_folder(self, folder: str) -> Confinement:
        """Create the confinement of a test whose working directory is ``folder``."""
        rules: list[CCall] = []
        if self.restricts_writes:
            ruleset = _ruleset(folder, self.version)
            rules.append((_restrict_self, (NUMBERS["landlock_restrict_self"], ruleset, 0)))
        return Confinement(rules + self.common, self.guard)


def no_confinement() -> Confinement:
    """Create a confinement without effect that calls the same C functions. Used by warm_up()."""
    return Confinement([(_restrict_self, (NUMBERS["getpid"], 0, 0)), seccomp.noop_call()])


def _ruleset(folder: str, version: int) -> int:
    """Return the descriptor of a Landlock ruleset that allows changes only below ``folder`` and /dev."""
    changes = _CHANGES[min(version, max(_CHANGES))]
    attributes = struct.pack("QQQ", changes, 0, _SCOPES)[: 24 if version >= _SCOPES_SINCE else 8]
    ruleset = linux.syscall("landlock_create_ruleset", attributes, len(attributes), 0)
    for path in (folder, "/dev"):
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        linux.syscall("landlock_add_rule", ruleset, _RULE_BENEATH, struct.pack("=Qi", changes, parent), 0)
        os.close(parent)
    return ruleset
