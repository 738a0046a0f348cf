"""The files of a training run: configuration, metrics, trajectories, checkpoints, curve."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gem.errors import BadValue, InfraError
from gem.rl.config import TrainConfig
from gem.trajectory import Trajectory


class RunFolder:
    """``runs/<name>/`` with config.json, metrics.jsonl, trajectories.jsonl, checkpoints/ and curve.png."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file, self.curve = path / "config.json", path / "curve.png"
        self.metrics, self.trajectories = path / "metrics.jsonl", path / "trajectories.jsonl"
        self.checkpoints = path / "checkpoints"

    @classmethod
    def create(cls, config: TrainConfig) -> RunFolder:
        """A new folder for a run. Raises BadValue when it exists (by a given name) or cannot be written."""
        run = cls(cls.free_path(config))
        path = run.path
        try:
            path.mkdir(parents=True)
            run.config_file.write_text(json.dumps(asdict(config), indent=1) + "\n")
            run.metrics.touch()
            run.trajectories.touch()
        except OSError as e:
            raise BadValue(f"cannot write the run to {path}: {e.strerror}") from e
        return run

    @staticmethod
    def free_path(config: TrainConfig) -> Path:
        """Where a new run goes. Raises BadValue when the name that the configuration gives is taken."""
        path = Path(config.out) / (config.name or _free_name(config))
        if path.exists():
            raise BadValue(f"{path} exists; go on with --resume {path}, or give another --name")
        return path

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> tuple[RunFolder, TrainConfig]:
        """The folder of an earlier run and its configuration. Raises BadValue when it is none."""
        run = cls(Path(path))
        try:
            config = TrainConfig(**json.loads(run.config_file.read_text()))
        except OSError as e:
            raise BadValue(f"{path} is no training run: cannot read {run.config_file.name} ({e.strerror})") from e
        except (ValueError, TypeError) as e:
            raise BadValue(f"{run.config_file} is damaged: {e}") from e
        return run, config

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        _append(self.metrics, [json.dumps(row)])

    def append_trajectories(self, trajectories: Iterable[Trajectory]) -> None:
        _append(self.trajectories, [json.dumps(t.to_json()) for t in trajectories])

    def read_metrics(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.metrics.read_text().splitlines()]

    def sizes(self) -> dict[str, int]:
        """Bytes of the files that grow, for cut_to()."""
        return {file.name: file.stat().st_size for file in (self.metrics, self.trajectories)}

    def cut_to(self, sizes: Mapping[str, int]) -> None:
        """Drop what was written after sizes() was taken: a resumed run writes it again."""
        for file in (self.metrics, self.trajectories):
            if file.stat().st_size < sizes[file.name]:
                raise BadValue(f"{file} is shorter than its checkpoint says; it was changed since")
            os.truncate(file, sizes[file.name])


def _append(file: Path, lines: list[str]) -> None:
    """Add whole lines or, when the disk does not take them, nothing."""
    before = file.stat().st_size
    try:
        with file.open("ab", buffering=0) as out:
            data = "".join(line + "\n" for line in lines).encode()
            while data:
                data = data[out.write(data) :]
    except OSError as e:
        os.truncate(file, before)
        raise InfraError(f"cannot write {file}: {e.strerror}; what was complete is kept") from e


def _free_name(config: TrainConfig) -> str:
    base = f"{config.env.replace(':', '-')}-seed{config.seed}"
    names = [base, *(f"{base}-{n}" for n in range(2, 10_000))]
    return next(name for name in names if not (Path(config.out) / name).exists())
