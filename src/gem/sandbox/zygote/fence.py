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
from collections.abc import Callable
from typing import Any

from gem.sandbox.zygote import landlock, linux, seccomp
from gem.sandbox.zygote.syscalls import NUMBERS

_RULE_BENEATH = 1
# Rights to change files, by the version of Landlock that brought them: all but to execute and to read.
_CHANGES = {1: 0x1FF2, 2: 0x3FF2, 3: 0x7FF2}
_SCOPES, _SCOPES_SINCE = 3, 6  # abstract sockets and signals

# Converts in C: a page less to copy for each test.
_restrict_self = ctypes.CDLL(None, use_errno=True).syscall
_restrict_self.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_long)
_restrict_self.restype = ctypes.c_long


class Fence:
    """Prepared in the driver, as far as that goes; a test closes it behind itself.

    Args:
        folder: the one that a test may write to.
        level: of the sandbox. There is no fence at "basic".

    holds: whether there is one, so that what a test started is all in its process group.
    surrounds: whether a test can write nowhere but to its folder, and to devices.
    """

    def __init__(self, folder: str, level: str) -> None:
        self.holds = level != "basic"
        version = landlock.version() if self.holds else 0
        self.surrounds = version > 0
        guard = level == "lsm" and version < _SCOPES_SINCE
        filter_ = seccomp.GroupFilter(guard_signals=guard)
        self.steps: list[tuple[Callable[..., int], tuple[Any, ...]]] = []  # calls of C functions, ready to be made
        self.guarding = filter_ if guard else None  # by process id, which is not known yet
        if version:
            arguments = (NUMBERS["landlock_restrict_self"], _ruleset(folder, version), 0)
            self.steps.append((_restrict_self, arguments))
        else:
            linux.set_dumpable(False)
        if self.holds and not guard:
            self.steps.append(filter_.prepared())

    def close_behind(self) -> None:
        """Confine this process and whatever it starts. Raises OSError."""
        for call, arguments in self.steps:
            if call(*arguments) < 0:
                linux.checked(-1, "a test's fence")
        if self.guarding is not None:
            self.guarding.install()


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
