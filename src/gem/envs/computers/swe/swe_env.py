"""Repair of small repositories: the rules of terminal tasks, with an issue as instruction.

Action       a command between <bash> and </bash>; the first one of a reply counts. <finish> ends the episode.
Observation  the issue on reset; then the output of the command and its exit status.
Reward       at the end, 1.0 if all hidden and all visible tests pass, else 0.0.
Ends         terminated on <finish>; truncated after ``max_turns`` replies, where the files count as well.
Verifier     the package is copied into a fresh machine. Hidden tests call it there and print what it returns; the
             host compares. What they should print is never in a machine. The visible tests run as they were at first.

Actions, limits and verification are those of terminal tasks.
"""

from __future__ import annotations

from typing import ClassVar

from gem.envs.computers.shell_env import Oracle
from gem.envs.computers.terminal.env import TerminalEnv
from gem.sandbox import Limits

__all__ = ["MiniEnv", "Oracle"]


class MiniEnv(TerminalEnv):
    """See the module docstring for the rules.

    Args:
        level: 1 for a fault made by a program, with a script that shows it; 2 for a fault written by hand, with a
            description of its symptom; 3 for two of these.
        max_turns: replies allowed.
        timeout, max_failures, limits: as in TerminalEnv.

    Raises:
        BadValue: a value out of range.
        SandboxError: this machine cannot isolate a shell, or lacks python3.
    """

    kind: ClassVar = "swe"
    families: ClassVar = {"Mini": "gem.envs.computers.swe.mini"}

    def __init__(
        self,
        *,
        level: int = 2,
        max_turns: int = 30,
        timeout: float = 30.0,
        max_failures: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(
            "Mini", level=level, max_turns=max_turns, timeout=timeout, max_failures=max_failures, limits=limits
        )
