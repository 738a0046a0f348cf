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
             never in a machine. ``info["verifier"]`` says what is wrong. Only the files in /home/user count.

The shell keeps its working directory, variables and background processes. The machine has no network and starts with
the first command. Its ``flock`` has no effect; record locks (``fcntl``) work.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from gem._internal.imports import resolve
from gem.core import Env, Info, Step, StopReason, require_text
from gem.envs.computers import keys as typing_keys
from gem.envs.computers.commands import FINISH, MAX_TIMEOUT_S, read_command, shown_result
from gem.envs.computers.task import MAX_LEVEL, Template, TerminalTask, start_task
from gem.envs.computers.verify import verify
from gem.errors import BadValue, EpisodeOver, SandboxError, did_you_mean
from gem.parsing import first_tagged
from gem.sandbox import Limits, Machine, get_sandbox
from gem.sandbox.machine import HOME, SHELL_PATH, MachineFiles
from gem.sandbox.screen import TerminalScreen

FAMILIES = {
    name: f"gem.envs.computers.terminal.{name.lower()}"
    for name in ("Files", "Text", "Data", "Git", "Logs", "Processes", "Build", "Archive", "Mixed")
}
_RANDOM = ("ls", "pwd", "ls -R | head -n 20", "cat * 2>/dev/null | wc -c", "find . -type f | sort | head -n 5")


@dataclass(frozen=True)
class State:
    """An episode: the number from which its task is generated, the turns so far, and how many commands failed."""

    number: int
    turn: int = 0
    failures: int = 0
    over: bool = False


class TerminalEnv(Env):
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
    folder: ClassVar[str] = HOME  # in which commands start
    families: ClassVar[Mapping[str, str]] = FAMILIES
    state_fields: tuple[str, ...] = ("hash", "place")  # of a machine
    screen: TerminalScreen | None = None  # with the option keys
    state: State

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
        if not 1 <= level <= MAX_LEVEL:
            raise BadValue(f"level must be from 1 to {MAX_LEVEL}, got {level}")
        self.family, self.level = family, level
        self.templates: tuple[Template, ...] = resolve(f"{self.families[family]}:TEMPLATES")
        self.screen = TerminalScreen(columns, rows) if keys else None
        programs = resolve(f"{self.families[family]}:PROGRAMS")
        self._prepare(f"{self.kind}:{family}", programs, max_turns, timeout, max_failures, limits)

    def _prepare(
        self,
        what: str,
        programs: Iterable[str] | None,
        max_turns: int,
        timeout: float,
        max_failures: int | None,
        limits: Limits | None,
    ) -> None:
        """Set the limits, and check that machines can be started and have the programs that tasks need.

        Args:
            programs: None if the machines are not those of the local sandbox.
        """
        if max_turns < 1:
            raise BadValue(f"max_turns must be at least 1, got {max_turns}")
        if not 0 < timeout <= MAX_TIMEOUT_S:
            raise BadValue(f"timeout must be above 0 and at most {MAX_TIMEOUT_S:g}, got {timeout}")
        self.max_turns, self.timeout, self.max_failures = max_turns, timeout, max_failures
        self.limits = limits or Limits(wall_s=timeout, cpu_s=timeout, output_bytes=8_000)
        self._live: Machine | None = None
        self._saved: Mapping[str, Any] | None = None
        if programs is not None:
            get_sandbox().require_machines()
            require_programs(what, programs)

    def reset(self, seed: int | None = None) -> tuple[str, Info]:
        self._begin(seed)
        self.state = State(self.rng.getrandbits(48))
        return self.rules(), {"template": self.template().__name__}

    def _begin(self, seed: int | None) -> None:
        """Start the random streams of an episode, without a machine."""
        super().reset(seed)
        self.close()
        self._saved = None

    def step(self, action: str) -> Step:
        require_text(action)
        if getattr(self, "state", None) is None or self.state.over:
            raise EpisodeOver(f"{self!r} has no running episode; call reset()")
        self.state = replace(self.state, turn=self.state.turn + 1)
        last = self.state.turn >= self.max_turns
        found, typed = first_tagged(action, "bash"), typing_keys.read_keys(action) if self.screen else None
        if typed and (found is None or typed.start < action.find("<bash>")):
            return self._typed(typed, last=last)
        if found is None:
            if FINISH.search(action):
                return self._finished("", {}, truncated=False)
            other = ", <keys>keys</keys>" if self.screen else ""
            text = f"No command found; write <bash>command</bash>{other}, or <finish> when the task is done."
            info: Info = {"invalid": "no_action"}
            return self._finished(text, info, truncated=True) if last else Step(text, info=info)
        command, seconds = read_command(found[0])
        result = self.machine().exec(command, wall_s=seconds or self.timeout)
        text, info = shown_result(result, seconds or self.timeout), {"exit_status": result.exit_code}
        if not result.ok:
            self.state = replace(self.state, failures=self.state.failures + 1)
        if self.machine().ended:
            return self._lost(text, {**info, "verifier": f"the machine has ended: {self.machine().ended}"})
        if self.max_failures is not None and self.state.failures >= self.max_failures:
            return self._lost(text, {**info, "verifier": f"{self.state.failures} commands failed"})
        return self._finished(text, info, truncated=True) if last else Step(text, info=info)

    def _typed(self, typed: typing_keys.Keys, *, last: bool) -> Step:
        """Type keys and show the screen."""
        assert self.screen is not None
        size = {"rows": self.screen.rows, "columns": self.screen.columns}
        wait_s = min(typed.wait_s, self.timeout)
        output, is_open, problem = self.machine().type_keys(typed.data, wait_s=wait_s, wall_s=self.timeout, **size)
        self.screen.feed(output)
        text = typing_keys.shown(self.screen, is_open=is_open, problem=problem)
        if not is_open:
            self.screen.clear()
        if ended := self.machine().ended:
            return self._lost(text, {"verifier": f"the machine has ended: {ended}"})
        return self._finished(text, {}, truncated=True) if last else Step(text)

    def _lost(self, text: str, info: Info) -> Step:
        self.state = replace(self.state, over=True)
        self.close()
        return Step(text, 0.0, terminated=True, info={**info, "stop_reason": StopReason.LOST})

    def _finished(self, text: str, info: Info, *, truncated: bool) -> Step:
        """Verify the files and end the episode."""
        fault = self._verdict()
        self.state = replace(self.state, over=True)
        self.close()
        text = f"{text}\nThe task is {'not ' if fault else ''}solved.".lstrip()
        if not fault:
            return Step(text, 1.0, terminated=True, info={**info, "stop_reason": StopReason.SOLVED})
        reason = StopReason.MAX_TURNS if truncated else StopReason.LOST
        info = {**info, "verifier": fault, "stop_reason": reason}
        return Step(text, 0.0, terminated=not truncated, truncated=truncated, info=info)

    def _verdict(self) -> str:
        """Return why the task is not solved, or ""."""
        return verify(self.task(), self.machine(), self._start)

    def _start(self, files: MachineFiles, limits: Limits | None = None) -> Machine:
        return get_sandbox().machine(files=files, folder=self.folder, limits=limits or self.limits)

    def _restored(self, saved: Mapping[str, Any]) -> Machine:
        return get_sandbox().machine(limits=self.limits, state=saved)

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

    def write_harbor(self, place: Path, name: str) -> None:
        """Write the task of this episode as a Harbor folder. Raises BadValue if it cannot be; see harbor_export."""
        from gem.envs.computers.harbor_export import write_harbor

        programs = resolve(f"{self.families[self.family]}:PROGRAMS")
        seconds = self.max_turns * self.timeout
        write_harbor(self.task(), place, name=name, programs=programs, seconds=seconds)

    def sample_random_action(self) -> str:
        return f"<bash>{self.action_rng.choice(_RANDOM)}</bash>"

    # ---- the machine

    def machine(self) -> Machine:
        """Return the machine of this episode; it starts with the first call. Tools may use it.

        Raises:
            EpisodeOver: without a running episode.
            SandboxError: if it cannot be started.
        """
        if getattr(self, "state", None) is None or self.state.over:
            raise EpisodeOver(f"{self!r} has no running episode; call reset()")
        if self._live is None:
            if self._saved is None:
                self._live = start_task(self.task(), self._start)
            else:
                self._live = self._restored(self._saved)
        return self._live

    def get_state(self) -> dict[str, Any]:
        """Return the episode, with its machine. Raises BadValue if background processes are running."""
        return {**super().get_state(), "machine": self._machine_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        fields = dict(state) if isinstance(state, Mapping) else {}
        saved = fields.pop("machine", None)
        if saved is not None and (
            not isinstance(saved, Mapping) or {*self.state_fields, "folder", "exports"} - set(saved)
        ):
            raise BadValue("invalid state for TerminalEnv: 'machine' is not a state of a machine")
        super().set_state(fields)
        self.close()
        self._saved = saved

    def close(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.close()
        if self.screen is not None:
            self.screen.clear()

    def _machine_state(self) -> Mapping[str, Any] | None:
        return self._saved if self._live is None else self._live.get_state()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_live": None, "_saved": self._machine_state()}


class Oracle:
    """Plays the reference solution."""

    def __init__(self, env: TerminalEnv) -> None:
        self.env = env

    def act(self, observation: Any) -> str:
        turn, solution = self.env.state.turn, self.env.task().solution
        return f"<bash>{solution[turn]}</bash>" if turn < len(solution) else "<finish>"


def reference_agent(env: TerminalEnv) -> Oracle | typing_keys.KeysOracle:
    """Return the policy that plays the reference solution: with commands, or with keys if the environment has them."""
    return Oracle(env) if env.screen is None else typing_keys.KeysOracle(env)


def require_programs(env_id: str, programs: Iterable[str]) -> None:
    """Raise SandboxError, with one line, if a machine would lack programs that the tasks of an id need."""
    if missing := [name for name in programs if shutil.which(name, path=SHELL_PATH) is None]:
        raise SandboxError(
            f"{env_id} needs {', '.join(missing)}, which is not in {SHELL_PATH}; install it with the package "
            "manager of the system"
        )
