"""The episodes of JSON Lines files and run folders, by number. Only their rows stay in memory."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from gem._internal.folders import plain
from gem._internal.inbound import loads
from gem._internal.text import shorten
from gem.errors import BadValue, CallerError
from gem.evaluation.cost import Price, price_of
from gem.evaluation.records import read_settings
from gem.evaluation.tasks import EvalEnv
from gem.rl.run.folder import RunFolder, complete_checkpoints
from gem.viewer.episodes import Json, body_of, parse, row_of
from gem.viewer.formulas import FormulaRenderer

_FILES = ("trajectories.jsonl", "failures.jsonl")  # of runs and evaluations; of other folders, all JSON Lines files
_CURVE = ("success", "reward", "turns_when_won")
_TITLE, _HEADING = 100, 12  # characters of a title, at most; of a paragraph that is one, at least
_SHARED = 40  # characters of a beginning that the tasks of an environment share, to leave it out of their titles


class _Location(NamedTuple):
    """Where an episode is: number of the file, offset and length in bytes."""

    file: int
    offset: int
    length: int


class Recordings:
    """The episodes of files and folders, in the order of the files. Thread-safe.

    Args:
        paths: JSON Lines files of trajectories, or folders of training runs or evaluations.

    Attributes:
        files: the JSON Lines files.
        rows: one row per episode; see gem.viewer.episodes. ``file`` and ``line`` say where the episode is. Titles leave
            out what all tasks of an environment begin with. ``env`` of an evaluation is the name in its report.
        curve: points of the learning curves, with the name of the run; see _curve().

    Raises:
        BadValue: a path does not exist or has no trajectories, or a line is not a trajectory.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)
        self.files = list(dict.fromkeys(file for path in paths for file in _files(path)))
        self.rows: list[Json] = []
        self._tasks: list[str] = []  # beginnings of the tasks, by episode
        self._locations: list[_Location] = []
        self._read, self._lines = [0] * len(self.files), [0] * len(self.files)  # bytes and lines read, by file
        self._prices = [_price(file.parent) for file in self.files]
        self._names = [_names(file) for file in self.files]
        self._lock, self._formulas = Lock(), FormulaRenderer()
        self.update()
        if not self.rows:
            raise BadValue(f"no complete episode in {', '.join(map(str, self.files))}")

    @property
    def curve(self) -> list[Json]:
        return [point for path in self.paths for point in _curve(path)]

    def update(self) -> None:
        """Read the lines that were appended. A last line without its newline is left for the next call."""
        with self._lock:
            for number in range(len(self.files)):
                self._update_file(number)
            by_env: dict[Any, set[str]] = {}
            for row, task in zip(self.rows, self._tasks, strict=True):
                by_env.setdefault(row["env"], set()).add(task)
            titles = {env: _titles(tasks) for env, tasks in by_env.items()}
            for row, task in zip(self.rows, self._tasks, strict=True):
                row["title"] = titles[row["env"]][task]

    def body(self, number: int) -> Json:
        """Read an episode; the first one has the number 0. Raises BadValue if its file was changed."""
        return self._formulas.add_to(body_of(parse(self.line(number))))

    def line(self, number: int) -> bytes:
        location = self._locations[number]
        with self.files[location.file].open("rb") as file:
            file.seek(location.offset)
            return file.read(location.length)

    def tokenizer(self) -> Path | None:
        """Return the tokenizer of the newest checkpoint of the first run that has one."""
        for path in self.paths:
            for checkpoint in reversed(complete_checkpoints(RunFolder(path).checkpoints)):
                if plain(plain(checkpoint) / "tokenizer.json").is_file():
                    return checkpoint / "tokenizer.json"
        return None

    def _update_file(self, number: int) -> None:
        path = self.files[number]
        with path.open("rb") as file:
            file.seek(self._read[number])
            for line in file:
                if not line.endswith(b"\n"):
                    if _is_json(line):  # the last line of a file that another program wrote
                        line += b"\n"
                    else:  # a write in progress, or one that was interrupted
                        break
                self._lines[number] += 1
                if line.strip():
                    try:
                        row = row_of(parse(line), line, self._prices[number])
                    except BadValue as e:
                        raise BadValue(f"{path}, line {self._lines[number]}: {e}") from e
                    self._locations.append(_Location(number, self._read[number], len(line)))
                    env = _name(row, self._names[number])
                    self.rows.append({**row, "env": env, "file": number, "line": self._lines[number]})
                    self._tasks.append(row["title"])
                self._read[number] += len(line)


def _titles(tasks: Collection[str]) -> dict[str, str]:
    """Return the title of each task of an environment: its first words after those that all tasks begin with."""
    first, last = min(tasks), max(tasks)  # which have in common what all have
    count = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    shared = first[:count]
    start = max(map(shared.rfind, " \n")) + 1  # a word that only begins alike is shown
    return {task: _title(task) if start < _SHARED else "…" + _title(task[start:]) for task in tasks}


def _title(task: str) -> str:
    """Return a task's first paragraph in one line, shortened. A few words, as of a heading, are not enough."""
    paragraph = task.partition("\n\n")[0]
    return shorten(" ".join((paragraph if len(paragraph) >= _HEADING else task).split()), _TITLE)


def _price(folder: Path) -> Price | None:
    """Return the price that an evaluation was run with, None for any other folder."""
    try:
        return price_of(read_settings(folder))
    except CallerError:
        return None


def _names(file: Path) -> list[tuple[str, int, str]]:
    """Return the id, the number after the last sample, and the name of each environment of an evaluation's file."""
    if file.name not in _FILES:
        return []
    found, ends = [], 0
    try:
        settings = read_settings(file.parent)
        for env in settings["envs"]:
            ends += int(env["tasks"]) * int(settings["rollouts"])
            label = EvalEnv(id=env["id"], name=env["name"], wrappers=env["wrappers"], kwargs=env["kwargs"]).label
            found.append((str(env["id"]), ends, str(label)))
    except (CallerError, KeyError, TypeError, ValueError, AttributeError):
        return []
    return found


def _name(row: Json, envs: Sequence[tuple[str, int, str]]) -> str | None:
    """Return the name of a row's environment in its evaluation, by the number of its sample; its id elsewhere."""
    number = int(row["episode"]) if str(row["episode"]).isdecimal() else math.inf
    found = next(((id, name) for id, ends, name in envs if number < ends), None)
    env: str | None = row["env"]
    return found[1] if found and found[0] == env else env


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise BadValue(f"{path} does not exist")
    if not path.is_dir():
        return [path]
    known = [plain(path / name) for name in _FILES if (path / name).exists()]
    files = known or sorted(plain(file) for file in path.glob("*.jsonl") if file != RunFolder(path).metrics)
    if not files:
        raise BadValue(f"{path} has no JSON Lines file of trajectories (*.jsonl)")
    return files


def _curve(path: Path) -> list[Json]:
    """Return the points of a run's learning curve: {"run", "episodes", "train": {…}, "eval": {…} or None}."""
    run = RunFolder(path)
    if not run.metrics.is_file():
        return []
    points = []
    for number, row in enumerate(run.read_metrics(), start=1):
        try:
            points.append(_point(str(path), row))
        except (KeyError, TypeError, AttributeError) as e:
            raise BadValue(f"{run.metrics}, line {number}: not metrics of a run: {type(e).__name__}: {e}") from e
    return points


def _point(run: str, metrics: dict[str, Any]) -> Json:
    evaluated = metrics["eval"]["greedy"] if "eval" in metrics else None
    return {
        "run": run,
        "episodes": metrics["episodes"],
        "train": {name: metrics.get(name) for name in _CURVE},
        "eval": None if evaluated is None else {name: evaluated.get(name) for name in _CURVE},
    }


def _is_json(line: bytes) -> bool:
    try:
        loads(line, "it")
    except ValueError:
        return False
    return True
