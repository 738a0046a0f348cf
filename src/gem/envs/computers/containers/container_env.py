r"""Tasks in folders, played in a container each. Formats: gem.envs.computers.containers.harbor and terminal_bench.

Action       a command between <bash> and </bash>; the first one of a reply counts. The body is bash source, or YAML
             with ``cmd`` and optionally ``timeout_secs``. <finish> ends the episode.
Observation  the instruction on reset; then the output of the command and its exit status.
Reward       at the end, that of the verifier; 0.0 if the verifier fails because of the container's state.
Ends         terminated on <finish>, or when the container ends; truncated after ``max_turns`` replies, or when the
             time of the task is used up. Then the state of the container counts as well.
"""

from __future__ import annotations

import logging
import os
import shlex
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from gem.core import Info, Step
from gem.datasets.load import GEM_DATA
from gem.envs.computers.commands import shown_result
from gem.envs.computers.containers.images import image_map_of, map_dockerfile, map_image
from gem.envs.computers.containers.verifier import Verdict, VerifierFolders
from gem.envs.computers.shell_env import CommandEnv
from gem.errors import BadValue, CallerError, SandboxError
from gem.sandbox import Limits
from gem.sandbox.containers.engine import ContainerEngine, find_engine
from gem.sandbox.containers.machine import ContainerMachine

LIMITS = Limits(wall_s=180, memory_bytes=4 << 30, processes=2048, disk_bytes=1 << 30, output_bytes=16_000)
TaskT = TypeVar("TaskT")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class State:
    """An episode: the number of its task, the turns so far, and the seconds that commands took."""

    number: int
    turn: int = 0
    used_s: float = 0.0
    over: bool = False


class ContainerEnv(CommandEnv[ContainerMachine], Generic[TaskT]):
    """See the module docstring for the rules.

    Args:
        path: a task folder, or a folder with some at any depth, of which each episode takes one; relative to
            the current folder or to $GEM_DATA. After a "#", the name of a task, or a pattern of names.
        max_turns: replies allowed.
        timeout: wall-clock seconds per command, unless a reply asks for another time of at most 120 s.
        image_map: local names of images, by name or pattern; see gem.envs.computers.containers.images. None means the
            variable GEM_IMAGE_MAP.
        network: whether containers of tasks that ask for a network get one.
        engine: "podman", "docker", or "auto" for the one that is installed.
        limits: limits of the containers; memory and processors as the task says, if it does.
        shuffle: False: reset(seed=s) takes task number s.

    Raises:
        BadValue: no such folder, or no task in it that can be played; the message names the field.
        SandboxError: no engine is installed.
    """

    kind: ClassVar[str]  # first part of the id
    marker: ClassVar[str]  # file of a task folder
    state_fields = ("image",)
    random_commands = ("ls", "pwd", "ls -la / | head -n 20", "id", "env | cut -d= -f1 | sort | head -n 5")
    state: State
    _folders: VerifierFolders | None = None  # of a verifier that runs in the agent's container

    def __init__(
        self,
        path: str,
        *,
        max_turns: int = 100,
        timeout: float = 180.0,
        image_map: Mapping[str, str] | None = None,
        network: bool = False,
        engine: str = "auto",
        limits: Limits | None = None,
        shuffle: bool = True,
    ) -> None:
        super().__init__(max_turns)
        if not timeout > 0:
            raise BadValue(f"timeout must be above 0, got {timeout}")
        self.timeout, self.network, self.shuffle = timeout, network, shuffle
        self.limits = limits or LIMITS
        self.image_map = image_map_of(image_map)
        self.tasks = self._read_all(path)
        self._engine_name = engine
        find_engine(engine)

    # ---- of each format

    @abstractmethod
    def read(self, folder: Path) -> TaskT:
        """Read a task folder. Raises CallerError or OSError if it cannot be played here."""

    @abstractmethod
    def instruction(self, task: TaskT) -> str: ...

    @abstractmethod
    def seconds(self, task: TaskT) -> float | None:
        """Return the time of all commands of an episode together, in seconds; None for no limit."""

    @abstractmethod
    def start(self, task: TaskT, saved: Mapping[str, Any] | None) -> ContainerMachine:
        """Start the container of the agent."""

    @abstractmethod
    def verify(self, task: TaskT, machine: ContainerMachine) -> Verdict:
        """Run the verifier. Raises SandboxError if the engine fails."""

    @abstractmethod
    def control(self, task: TaskT) -> None:
        """Run a verifier that works unless the engine fails. Raises SandboxError if it does not."""

    @abstractmethod
    def solution(self, task: TaskT, machine: ContainerMachine) -> list[str]:
        """Put the reference solution into the container, and return the commands that run it."""

    # ---- the episode

    def reset(self, seed: int | None = None) -> tuple[str, Info]:
        self._begin(seed)
        number = self.rng.randrange(len(self.tasks))
        self.state = State(number if self.shuffle or seed is None else seed % len(self.tasks))
        folder, task = self.tasks[self.state.number]
        return self.rules(task), {"task": folder.name}

    def task(self) -> TaskT:
        """Return the task of this episode."""
        return self.tasks[self.state.number][1]

    def _run(self, command: str, seconds: float | None, *, last: bool) -> Step:
        limit = self.seconds(self.task())
        left_s = float("inf") if limit is None else max(0.1, limit - self.state.used_s)
        wall_s = min(seconds or self.timeout, left_s)
        result = self.machine().exec(command, wall_s=wall_s)
        self.state = replace(self.state, used_s=self.state.used_s + result.wall_s)
        text, info = shown_result(result, wall_s), {"exit_status": result.exit_code}
        if ended := self.machine().ended:
            self.control(self.task())
            return self._rewarded(text, info, Verdict(0.0, reason=f"the container has ended: {ended}"), truncated=False)
        if limit is not None and self.state.used_s >= limit:
            return self._finished(f"{text}\nThe time is over.", info, truncated=True)
        return self._shown(text, info, last=last)

    def _finished(self, text: str, info: Info, *, truncated: bool) -> Step:
        return self._rewarded(text, info, self.verify(self.task(), self.machine()), truncated=truncated)

    def _rewarded(self, text: str, info: Info, verdict: Verdict, *, truncated: bool) -> Step:
        text = f"{text}\nThe reward is {verdict.reward:g}.".lstrip()
        if verdict.rewards:
            info = {**info, "rewards": dict(verdict.rewards)}
        return self._end(text, info, verdict.reward, verdict.reason, truncated=truncated)

    def rules(self, task: TaskT) -> str:
        return (
            f"{self.instruction(task).strip()}\n\n"
            "You work in a shell of a Linux container. Write a command between <bash> and </bash>; I answer with its "
            f"output. You have {self.max_turns} turns and {self.timeout:g} seconds per command. When the task is done, "
            "write <finish>."
        )

    # ---- the container

    def engine(self) -> ContainerEngine:
        return find_engine(self._engine_name)

    def _start_machine(self, saved: Mapping[str, Any] | None) -> ContainerMachine:
        return self.start(self.task(), saved)

    def image(self, folder: Path, *, image: str | None, name: str, timeout_s: float) -> str:
        """Return the local name of an image of a task, which is built if there is none.

        Args:
            folder: the build context, with a Dockerfile.
            image: name of a finished image, used instead.

        Raises:
            SandboxError: an image is missing or the build fails.
        """
        if image is not None:
            local, note = map_image(image, self.image_map)
            bases, notes, text = [local], [note] if note else [], ""
        else:
            text, bases_, notes_ = map_dockerfile((folder / "Dockerfile").read_text(encoding="utf-8"), self.image_map)
            bases, notes = list(bases_), list(notes_)
        for note in notes:
            _log.info("%s: %s", name, note)
        for base in bases:
            if not self.engine().has(base):
                raise SandboxError(
                    f"{name} needs the image {base}, which {self.engine().name} does not have; pull it, or name "
                    "another one in image_map= or GEM_IMAGE_MAP"
                )
        if image is not None:
            return bases[0]
        return self.engine().build(folder, text, name=name, timeout_s=timeout_s, bases=bases)

    def close(self) -> None:
        super().close()
        folders, self._folders = self._folders, None
        if folders is not None:
            folders.remove()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_folders": None}

    # ---- folders

    def _read_all(self, path: str) -> list[tuple[Path, TaskT]]:
        where, _, pattern = path.partition("#")
        try:
            top = Path(where).expanduser()
        except RuntimeError as e:  # no such user
            raise BadValue(f"{self.kind}:{path}: {e}") from e
        if not top.exists() and (root := os.environ.get(GEM_DATA)):
            top = Path(root, where)
        folders = sorted(file.parent for file in top.rglob(self.marker)) if top.is_dir() else []
        if pattern:
            folders = [folder for folder in folders if fnmatchcase(folder.name, pattern)]
        if not folders:
            raise BadValue(f"{self.kind}:{path}: no folder with {self.marker}" + (f" named {pattern}" * bool(pattern)))
        found, trouble = [], ""
        for folder in folders:
            try:
                found.append((folder, self.read(folder)))
            except (CallerError, OSError) as e:
                if len(folders) == 1:
                    raise
                trouble = str(e)
                _log.warning("%s is skipped: %s", folder, e)
        if not found:
            raise BadValue(f"{self.kind}:{path}: none of {len(folders)} tasks can be played; the last: {trouble}")
        return found


class Oracle:
    """Plays the reference solution of a task folder."""

    def __init__(self, env: ContainerEnv[Any]) -> None:
        self.env = env
        self._commands: list[str] = []

    def act(self, observation: Any) -> str:
        if self.env.state.turn == 0:
            self._commands = self.env.solution(self.env.task(), self.env.machine())
        turn = self.env.state.turn
        return f"<bash>{self._commands[turn]}</bash>" if turn < len(self._commands) else "<finish>"


def with_variables(command: str, variables: Mapping[str, str]) -> str:
    """Return a command with environment variables before it."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), command])
