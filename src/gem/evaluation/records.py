"""The folder of an evaluation: its settings, one line per finished sample, and the failures.

  eval.json            settings, task ids and versions
  trajectories.jsonl   one trajectory per finished sample: ``episode`` is its number, ``group_id`` its task
  failures.jsonl       failed attempts, which a later attempt may have repaired
  report.json, report.md

Each record is one write() to a file opened for appending, so a process killed at any moment leaves at most one torn
line at the end, which is cut when the folder is opened again. One process writes, and follows no links.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gem._internal.folders import LOCK, FolderLock, is_own, open_to_append, plain, remember, write_text
from gem._internal.inbound import read_json
from gem._internal.text import shorten
from gem.errors import BadValue, InfraError
from gem.trajectory import Trajectory, read_jsonl

SETTINGS, TRAJECTORIES, FAILURES = "eval.json", "trajectories.jsonl", "failures.jsonl"
_MAY_DIFFER = ("notes", "price", "rescored")  # settings of a resumed run


class EvalFolder:
    """The folder of one evaluation. A new folder is made at the first record.

    Args:
        path: the folder.
        settings: JSON data, written to eval.json.
        resume: continue the evaluation in the folder; otherwise the folder must be new or empty.

    Raises:
        BadValue: the folder cannot be written, holds something else, or holds an evaluation with other settings or one
            that another process is running.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any], *, resume: bool = False) -> None:
        self.path = Path(path)
        self._settings = json.loads(json.dumps(settings))
        self._files: dict[str, int] = {}
        self._lock: FolderLock | None = None
        if resume:
            before = read_settings(self.path)
            _check_same(self.path, before, self._settings)
            self._lock = FolderLock(self.path)
            try:
                self._open()
                if before.get("price") != self._settings.get("price"):
                    self._set_price(before)
                for name in (TRAJECTORIES, FAILURES):
                    cut_torn_line(self.path / name)
            except BaseException:
                self.__exit__()
                raise
        else:
            check_free(self.path)

    def __enter__(self) -> EvalFolder:
        return self

    def __exit__(self, *exception: object) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files = {}
        if self._lock is not None:
            self._lock.close()

    def append(self, trajectory: Trajectory) -> None:
        """Write a record. Raises InfraError if it cannot be written; the complete lines are kept."""
        name = TRAJECTORIES if trajectory.failure is None else FAILURES
        line = (json.dumps(trajectory.to_json()) + "\n").encode()
        file = self.path / name
        try:
            if not self._files:
                self._create()
            before = os.fstat(self._files[name]).st_size
            if os.write(self._files[name], line) < len(line):  # the disk is full
                os.truncate(file, before)
                raise OSError(0, "only part of the record was written")
        except OSError as e:
            raise _unwritable(file, e) from e

    def write(self, name: str, text: str) -> None:
        """Write a file next to the records, if there are records. Raises InfraError if it cannot be written."""
        if name == SETTINGS or (self.path / SETTINGS).exists():
            try:
                write_text(self.path / name, text)
            except OSError as e:
                raise _unwritable(self.path / name, e) from e

    def finished(self) -> Iterator[Trajectory]:
        """Yield the recorded trajectories, without the failures."""
        return read_records(self.path)

    def failures(self) -> Iterator[Trajectory]:
        """Yield the recorded failed attempts, also of samples that a later attempt has finished."""
        return read_records(self.path, FAILURES)

    def _set_price(self, before: Mapping[str, Any]) -> None:
        """Record the price of a resumed run, which exports, rescore() and `gem view` read as well."""
        notes = self._settings.get("notes") or before.get("notes", {})
        was_own = is_own(self.path / SETTINGS)
        settings = {**before, "price": self._settings.get("price"), "notes": notes}
        self.write(SETTINGS, json.dumps(settings, indent=1) + "\n")
        if was_own:
            remember(self.path / SETTINGS)

    def _create(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        if self._lock is None:
            self._lock = FolderLock(self.path)
            check_free(self.path)  # another process may have written an evaluation since this one began
        if not (self.path / SETTINGS).exists():
            self.write(SETTINGS, json.dumps(self._settings, indent=1) + "\n")
            remember(self.path / SETTINGS)
        self._open()

    def _open(self) -> None:
        """Open the files of records for appending."""
        for name in (TRAJECTORIES, FAILURES):
            self._files[name] = open_to_append(self.path / name)


def _unwritable(file: Path, error: OSError) -> InfraError:
    return InfraError(f"cannot write {file}: {error.strerror}; free some space and resume the evaluation")


def read_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the settings of an evaluation. Raises BadValue if the folder holds none."""
    file = plain(Path(path) / SETTINGS)
    try:
        settings = read_json(file)
        if not isinstance(settings, dict):
            raise ValueError("it holds no settings")
        return settings
    except OSError as e:
        raise BadValue(f"{path} is not an evaluation: cannot read {SETTINGS} ({e.strerror})") from e
    except ValueError as e:
        raise BadValue(f"{file} is damaged: {e}") from e


def read_records(path: str | os.PathLike[str], name: str = TRAJECTORIES) -> Iterator[Trajectory]:
    """Yield the finished trajectories of an evaluation, or its FAILURES."""
    file = plain(Path(path) / name)
    return read_jsonl(file) if file.exists() else iter(())


def cut_torn_line(file: Path) -> None:
    """Cut what follows the last newline of a file."""
    if not file.exists():
        return
    with file.open("r+b") as opened:
        end = opened.seek(0, os.SEEK_END)
        block = 1 << 16
        while end:
            start = max(0, end - block)
            opened.seek(start)
            found = opened.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        opened.truncate(end)


def check_free(path: Path) -> None:
    """Raise BadValue unless a new evaluation can be written to the folder."""
    if (path / SETTINGS).exists():
        raise BadValue(f"{path} holds an evaluation; continue it with --resume {path}, or choose another folder")
    if path.exists() and (not path.is_dir() or any(file.name != LOCK for file in path.iterdir())):
        raise BadValue(f"{path} exists and is not an empty folder; choose another one")
    parent = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise BadValue(f"cannot write the evaluation to {path}: {parent} is not a writable folder")


def _check_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise BadValue naming the first settings that differ. Only those of _MAY_DIFFER may differ."""
    changes = [
        f"{name} was {shorten(json.dumps(old), 60)}, now {shorten(json.dumps(new), 60)}"
        for name, old, new in _differences("", before, now)
        if name.partition(".")[0] not in _MAY_DIFFER
    ]
    if changes:
        is_code = all(".versions." in change.partition(" was ")[0] for change in changes)
        way_out = f"Grade it again with `gem eval rescore {path}`" if is_code else "Start a new evaluation for them"
        raise BadValue(f"{path} was run with other settings: {'; '.join(changes[:3])}. {way_out}")


def _differences(name: str, before: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in [*before, *(key for key in now if key not in before)]:
            yield from _differences(f"{name}.{key}".lstrip("."), before.get(key), now.get(key))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from _differences(f"{name}[{i}]", old, new)
    elif before != now:
        yield name, before, now
