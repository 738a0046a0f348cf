"""What keeps a test from its siblings and from the driver, which run as the same user in the same sandbox.

A test changes files in its own folder alone, and cannot signal, trace or read processes that it did not start
(Landlock). It cannot leave its process group, so that one kill ends all of it (seccomp). Without namespaces a kernel
from before Linux 6.12, whose Landlock knows no signals, lets it signal itself and its group only. Where the kernel has
no Landlock at all, a program may disturb its own other tests; but not read the driver, which is not dumpable then.
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
# Rights to change files, by the version of Landlock that brought them: all but to execute and to read.
_CHANGES = {1: 0x1FF2, 2: 0x3FF2, 3: 0x7FF2}
_SCOPES, _SCOPES_SINCE = 3, 6  # abstract sockets and signals

# Converts in C: a page less to copy for each test.
_restrict_self = ctypes.CDLL(None, use_errno=True).syscall
_restrict_self.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_long)
_restrict_self.restype = ctypes.c_long


class Confinement:
    """One for_folder a folder, which a test closes behind itself; all that can be done before is.

    steps: calls of C functions, ready to be made.
    guard: a filter that is installed by process id, which is not known before.
    """

    def __init__(self, steps: Sequence[CCall], guard: seccomp.GroupFilter | None = None) -> None:
        self.steps, self.guard = steps, guard

    def apply(self) -> None:
        """Confine this process and whatever it starts. Raises OSError."""
        for call, arguments in self.steps:
            if call(*arguments) < 0:
                linux.checked(-1, "a test's confinement")
        if self.guard is not None:
            self.guard.install()


class Confinements:
    """Makes those of one sandbox.

    level: of the sandbox. There are none at "basic".

    enabled: whether there are any, so that what a test started is all in its process group.
    restricts_writes: whether a test can write nowhere but to its folder, and to devices.
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
        """folder: the one that a test may write to."""
        rules: list[CCall] = []
        if self.restricts_writes:
            ruleset = _ruleset(folder, self.version)
            rules.append((_restrict_self, (NUMBERS["landlock_restrict_self"], ruleset, 0)))
        return Confinement(rules + self.common, self.guard)


def no_confinement() -> Confinement:
    """Where a confinement would be, for a rehearsal: it calls the same functions, to no effect."""
    return Confinement([(_restrict_self, (NUMBERS["getpid"], 0, 0)), seccomp.noop_call()])


def _ruleset(folder: str, version: int) -> int:
    """A descriptor of rules to write below a folder, and to devices, and nowhere else."""
    changes = _CHANGES[min(version, max(_CHANGES))]
    attributes = struct.pack("QQQ", changes, 0, _SCOPES)[: 24 if version >= _SCOPES_SINCE else 8]
    ruleset = linux.syscall("landlock_create_ruleset", attributes, len(attributes), 0)
    for path in (folder, "/dev"):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        linux.syscall("landlock_add_rule", ruleset, _RULE_BENEATH, struct.pack("=Qi", changes, place), 0)
        os.close(place)
    return ruleset
