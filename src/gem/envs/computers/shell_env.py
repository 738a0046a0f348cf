"""The base classes of environments in which the agent works in a shell: actions, turns, the machine, saved states.

CommandEnv is for any machine, ShellEnv for tasks whose files the verifier compares. A subclass of ShellEnv says which
task an episode has, in task(), and what the agent is told, in rules(). Its episode is over when the agent finishes, and
verified by _verdict(), which compares files as the task asks.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from gem._internal.counts import check_count
from gem.core import Env, Info, Step, StopReason, require_text
from gem.envs.computers import keys as typing_keys
from gem.envs.computers.commands import FINISH, MAX_TIMEOUT_S, read_command, shown_result
from gem.envs.computers.task import TerminalTask, start_task
from gem.envs.computers.verify import verify
from gem.errors import BadValue, EpisodeOver, SandboxError
from gem.parsing import first_tagged
from gem.sandbox import Limits, Machine, get_sandbox
from gem.sandbox.machine import HOME, SHELL_PATH, MachineFiles
from gem.sandbox.screen import TerminalScreen


@dataclass(frozen=True)
class State:
    """An episode: the number from which its task is generated, the turns so far, and how many commands failed."""

    number: int
    turn: int = 0
    failures: int = 0
    over: bool = False


MachineT = TypeVar("MachineT", bound=Machine)


class CommandEnv(Env, ABC, Generic[MachineT]):
    """Base class of environments in which the agent writes commands, which run in a machine of the episode.

    Args:
        max_turns: replies allowed.
    """

    state_fields: tuple[str, ...]  # of a saved machine, beside its folder and variables
    random_commands: ClassVar[tuple[str, ...]]
    screen: TerminalScreen | None = None  # that keys are typed at; None if keys are not read
    state: Any  # with the fields ``turn`` and ``over``
    _live: MachineT | None = None
    _saved: Mapping[str, Any] | None = None  # the state from which the machine starts

    def __init__(self, max_turns: int) -> None:
        check_count("max_turns", max_turns)
        self.max_turns = max_turns

    def _begin(self, seed: int | None) -> None:
        """Start the random streams of an episode, without a machine."""
        super().reset(seed)
        self.close()
        self._saved = None

    def step(self, action: str) -> Step:
        require_text(action)
        self._require_episode()
        self.state = replace(self.state, turn=self.state.turn + 1)
        last = self.state.turn >= self.max_turns
        found, typed = first_tagged(action, "bash"), typing_keys.read_keys(action) if self.screen else None
        if typed and (found is None or typed.start < action.find("<bash>")):
            return self._type(typed, last=last)
        if found is not None:
            return self._run(*read_command(found[0]), last=last)
        if FINISH.search(action):
            return self._finished("", {}, truncated=False)
        other = ", <keys>keys</keys>" if self.screen else ""
        text = f"No command found; write <bash>command</bash>{other}, or <finish> when the task is done."
        return self._shown(text, {"invalid": "no_action"}, last=last)

    @abstractmethod
    def _run(self, command: str, seconds: float | None, *, last: bool) -> Step:
        """Run a command, for at most ``seconds`` if it asks for a time."""

    @abstractmethod
    def _finished(self, text: str, info: Info, *, truncated: bool) -> Step:
        """Verify what the agent has done, and end the episode."""

    @abstractmethod
    def _start_machine(self, saved: Mapping[str, Any] | None) -> MachineT:
        """Start the machine of the episode, from a state if there is one."""

    def _type(self, typed: typing_keys.Keys, *, last: bool) -> Step:
        """Type keys and show the screen, in environments that have one."""
        raise NotImplementedError

    def _shown(self, text: str, info: Info, *, last: bool) -> Step:
        """Show what an action did, and end the episode with the last turn."""
        return self._finished(text, info, truncated=True) if last else Step(text, info=info)

    def _end(self, text: str, info: Info, reward: float, fault: str, *, truncated: bool) -> Step:
        """End the episode. ``fault`` says why the task is not solved; "" if it is."""
        self.state = replace(self.state, over=True)
        self.close()
        if not fault:
            info = {**info, "explanation": "The verifier found no fault.", "stop_reason": StopReason.SOLVED}
            return Step(text, reward, terminated=True, info=info)
        reason = StopReason.MAX_TURNS if truncated else StopReason.LOST
        info = {**info, "verifier": fault, "explanation": fault, "stop_reason": reason}
        return Step(text, reward, terminated=not truncated, truncated=truncated, info=info)

    def sample_random_action(self) -> str:
        return f"<bash>{self.action_rng.choice(self.random_commands)}</bash>"

    def machine(self) -> MachineT:
        """Return the machine of this episode; it starts with the first call. Tools may use it.

        Raises:
            EpisodeOver: without a running episode.
            SandboxError: if it cannot be started.
        """
        self._require_episode()
        if self._live is None:
            self._live = self._start_machine(self._saved)
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
            raise BadValue(f"invalid state for {type(self).__name__}: 'machine' is not a state of a machine")
        super().set_state(fields)
        self.close()
        self._saved = saved

    def close(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.close()
        if self.screen is not None:
            self.screen.clear()

    def _require_episode(self) -> None:
        if getattr(self, "state", None) is None or self.state.over:
            raise EpisodeOver(f"{self!r} has no running episode; call reset()")

    def _machine_state(self) -> Mapping[str, Any] | None:
        return self._saved if self._live is None else self._live.get_state()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_live": None, "_saved": self._machine_state()}


class ShellEnv(CommandEnv[Machine]):
    """Base class of environments in which the agent works in a shell. See the module docstring for what they share.

    Args:
        what: what needs the programs, for messages.
        programs: that tasks need; None if the machines are not those of the local sandbox.
        max_turns, timeout, max_failures, limits: as in TerminalEnv.
        screen: the screen that keys are typed at; None if keys are not read.

    Raises:
        BadValue: a value out of range.
        SandboxError: this machine cannot isolate a shell, or lacks a program; the message says what is missing.
    """

    folder: ClassVar[str] = HOME  # in which commands start
    state_fields: tuple[str, ...] = ("hash", "place")
    random_commands = (
        *("ls", "pwd", "ls -R | head -n 20", "cat * 2>/dev/null | wc -c"),
        "find . -type f | sort | head -n 5",
    )
    state: State

    def __init__(
        self,
        what: str,
        programs: Iterable[str] | None,
        *,
        max_turns: int,
        timeout: float,
        max_failures: int | None,
        limits: Limits | None,
        screen: TerminalScreen | None = None,
    ) -> None:
        super().__init__(max_turns)
        if not 0 < timeout <= MAX_TIMEOUT_S:
            raise BadValue(f"timeout must be above 0 and at most {MAX_TIMEOUT_S:g}, got {timeout}")
        self.timeout, self.max_failures = timeout, max_failures
        self.limits = limits or Limits(wall_s=timeout, cpu_s=timeout, output_bytes=8_000)
        self.screen = screen
        if programs is not None:
            get_sandbox().require_machines()
            require_programs(what, programs)

    def _run(self, command: str, seconds: float | None, *, last: bool) -> Step:
        result = self.machine().exec(command, wall_s=seconds or self.timeout)
        text, info = shown_result(result, seconds or self.timeout), {"exit_status": result.exit_code}
        if not result.ok:
            self.state = replace(self.state, failures=self.state.failures + 1)
        if ended := self.machine().ended:
            return self._end(text, info, 0.0, f"the machine has ended: {ended}", truncated=False)
        if self.max_failures is not None and self.state.failures >= self.max_failures:
            return self._end(text, info, 0.0, f"{self.state.failures} commands failed", truncated=False)
        return self._shown(text, info, last=last)

    def _type(self, typed: typing_keys.Keys, *, last: bool) -> Step:
        assert self.screen is not None
        size = {"rows": self.screen.rows, "columns": self.screen.columns}
        wait_s = min(typed.wait_s, self.timeout)
        output, is_open, problem = self.machine().type_keys(typed.data, wait_s=wait_s, wall_s=self.timeout, **size)
        self.screen.feed(output)
        text = typing_keys.shown(self.screen, is_open=is_open, problem=problem)
        if not is_open:
            self.screen.clear()
        if ended := self.machine().ended:
            return self._end(text, {}, 0.0, f"the machine has ended: {ended}", truncated=False)
        return self._shown(text, {}, last=last)

    def _finished(self, text: str, info: Info, *, truncated: bool) -> Step:
        fault = self._verdict()
        text = f"{text}\nThe task is {'not ' if fault else ''}solved.".lstrip()
        return self._end(text, info, 0.0 if fault else 1.0, fault, truncated=truncated)

    def _verdict(self) -> str:
        """Return why the task is not solved, or ""."""
        return verify(self.task(), self.machine(), self._start)

    def _start(self, files: MachineFiles, limits: Limits | None = None) -> Machine:
        return get_sandbox().machine(files=files, folder=self.folder, limits=limits or self.limits)

    def _restored(self, saved: Mapping[str, Any]) -> Machine:
        return get_sandbox().machine(limits=self.limits, state=saved)

    @abstractmethod
    def rules(self) -> str:
        """Return the first observation of this episode."""

    @abstractmethod
    def task(self) -> TerminalTask:
        """Return the task of this episode, which its number determines."""

    def _start_machine(self, saved: Mapping[str, Any] | None) -> Machine:
        return start_task(self.task(), self._start) if saved is None else self._restored(saved)


class Oracle:
    """Plays the reference solution."""

    def __init__(self, env: ShellEnv) -> None:
        self.env = env

    def act(self, observation: Any) -> str:
        turn, solution = self.env.state.turn, self.env.task().solution
        return f"<bash>{solution[turn]}</bash>" if turn < len(solution) else "<finish>"


def require_programs(env_id: str, programs: Iterable[str]) -> None:
    """Raise SandboxError, with one line, if a machine would lack programs that the tasks of an id need."""
    if missing := [name for name in programs if shutil.which(name, path=SHELL_PATH) is None]:
        raise SandboxError(
            f"{env_id} needs {', '.join(missing)}, which is not in {SHELL_PATH}; install it with the package "
            "manager of the system"
        )
