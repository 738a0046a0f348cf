r"""Terminal tasks: solve a task on a machine with a shell.

Action       a command between <bash> and </bash>; the first one of a reply counts. The body is bash source, or YAML
             with ``cmd`` and optionally ``timeout_secs``. <finish> ends the episode. With ``keys=True``, also keys for
             a terminal between <keys> and </keys>; if both are there, the first counts.
Observation  the instruction on reset; then what the command printed, between <bash_output> and </bash_output>, cut in
             the middle if it is long, and its exit status. After keys, the screen and the place of the cursor.
Reward       at the end, 1.0 if the files are as the task asks, else 0.0.
Ends         terminated on <finish>, or when the machine runs out of memory; truncated after ``max_turns`` replies. At
             the turn limit the files count as well. Failing commands do not end the episode.
Verifier     all processes of the agent are killed first, except a service that the task names. Then the files are
             compared in the host, and programs run on a copy of them in a fresh machine; what they should print is
             never in a machine. ``info["explanation"]`` says what is wrong. Only the files in /home/user count.

The shell keeps its working directory, variables and background processes. The machine has no network and starts with
the first command. Its ``flock`` has no effect; record locks (``fcntl``) work.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import ClassVar

from gem._internal.counts import check_count
from gem._internal.imports import resolve
from gem.core import Info
from gem.envs.computers import keys as typing_keys
from gem.envs.computers.shell_env import Oracle, ShellEnv, State
from gem.envs.computers.task import MAX_LEVEL, Template, TerminalTask
from gem.errors import BadValue, did_you_mean
from gem.sandbox import Limits
from gem.sandbox.screen import TerminalScreen

FAMILIES = {
    name: f"gem.envs.computers.terminal.{name.lower()}"
    for name in ("Files", "Text", "Data", "Git", "Logs", "Processes", "Build", "Archive", "Mixed")
}


class TerminalEnv(ShellEnv):
    """See the module docstring for the rules.

    Args:
        family: "Files", "Text", "Data", "Git", "Logs", "Processes", "Build", "Archive" or "Mixed".
        level: difficulty, 1 to 3: the number and size of files.
        max_turns: replies allowed.
        timeout: wall-clock seconds per command, unless a reply asks for another time of at most 120 s.
        max_failures: failing commands after which the episode ends as lost; the published environment has five. None
            means that they do not end it.
        limits: limits of the machine. ``output_bytes`` bounds what an observation shows.
        keys: accept keys for interactive programs, which needs the extra [terminal], and describe them in the rules.
        columns, rows: size of the screen in characters.

    Raises:
        BadValue: unknown family, or a value out of range.
        SandboxError: this machine cannot isolate a shell, or lacks a program; the message says what is missing.
        MissingDependency: keys are accepted and pyte is not installed.
    """

    kind: ClassVar[str] = "terminal"  # first part of the id
    families: ClassVar[Mapping[str, str]] = FAMILIES

    def __init__(
        self,
        family: str,
        *,
        level: int = 2,
        max_turns: int = 20,
        timeout: float = 30.0,
        max_failures: int | None = None,
        limits: Limits | None = None,
        keys: bool = False,
        columns: int = 80,
        rows: int = 24,
    ) -> None:
        if family not in self.families:
            known = ", ".join(self.families)
            raise BadValue(f"no family {family!r}{did_you_mean(family, self.families)}  (available: {known})")
        check_count("level", level, 1, MAX_LEVEL)
        self.family, self.level = family, level
        self.templates: tuple[Template, ...] = resolve(f"{self.families[family]}:TEMPLATES")
        super().__init__(
            f"{self.kind}:{family}",
            self.programs(),
            max_turns=max_turns,
            timeout=timeout,
            max_failures=max_failures,
            limits=limits,
            screen=TerminalScreen(columns, rows) if keys else None,
        )

    def reset(self, seed: int | None = None) -> tuple[str, Info]:
        self._begin(seed)
        self.state = State(self.rng.getrandbits(48))
        return self.rules(), {"template": self.template().__name__}

    def rules(self) -> str:
        return (
            f"{self.task().instruction}\n\n"
            "You work in a shell on a Linux machine, in the folder /home/user, without a network. Write a command "
            f"between <bash> and </bash>; I answer with its output. Only the files in /home/user count. You have "
            f"{self.max_turns} turns and "
            f"{self.timeout:g} seconds per command. When the task is done, write <finish>."
            + (f"\n{typing_keys.RULES}" if self.screen else "")
        )

    def template(self) -> Template:
        return self.templates[self.state.number % len(self.templates)]

    def task(self) -> TerminalTask:
        """Return the task of this episode, which its number determines."""
        return self.template()(random.Random(self.state.number), self.level)

    def programs(self) -> tuple[str, ...]:
        """Return the programs that the tasks of the family need."""
        found: tuple[str, ...] = resolve(f"{self.families[self.family]}:PROGRAMS")
        return found


def reference_agent(env: TerminalEnv) -> Oracle | typing_keys.KeysOracle:
    """Return the policy that plays the reference solution: with commands, or with keys if the environment has them."""
    return Oracle(env) if env.screen is None else typing_keys.KeysOracle(env)
