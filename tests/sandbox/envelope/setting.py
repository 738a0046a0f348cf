"""A setting in which the corpus is run: the level, the user, cgroups, and honest neighbours.

As text it is the level, or the name of another backend, with suffixes: ``ns``, ``lsm-root-cgroup``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields

LEVELS = ("ns", "lsm", "basic")


@dataclass(frozen=True)
class Setting:
    """One setting.

    Args:
        level: level of the zygote, or the name of another backend.
        root: run as root of a container instead of as an unprivileged user.
        cgroup: leave the sandbox a cgroup that it can write to. Otherwise cgroups are hidden and GEM_SANDBOX_CGROUP=0.
        neighbours: run an honest session and an honest graded program beside the program.
    """

    level: str
    root: bool = False
    cgroup: bool = False
    neighbours: bool = False

    @classmethod
    def parse(cls, text: str) -> Setting:
        """Raises ValueError for an unknown suffix."""
        level, *suffixes = text.split("-")
        known = [field.name for field in fields(cls)][1:]
        if unknown := set(suffixes) - set(known):
            raise ValueError(f"unknown suffix {min(unknown)!r} in {text!r}  (available: {', '.join(known)})")
        return cls(level, **dict.fromkeys(suffixes, True))

    def __str__(self) -> str:
        return "-".join([self.level, *(field.name for field in fields(self)[1:] if getattr(self, field.name))])


GATE = (Setting("ns", root=True, cgroup=True), Setting("lsm"))  # the strongest setting and the weakest


def matrix() -> list[Setting]:
    """The settings of `make attack-all`, without neighbours: those of `make attack` first.

    Level basic isolates little, so only its strongest and its weakest setting are in it.
    """
    isolated = [Setting(*chosen) for chosen in itertools.product(LEVELS[:2], (True, False), (True, False))]
    rest = [setting for setting in isolated if setting not in GATE]
    return [*GATE, *rest, Setting("basic", root=True, cgroup=True), Setting("basic")]
