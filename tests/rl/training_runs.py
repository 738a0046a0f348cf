"""Training runs of tests: their metrics without durations, stops, and resumed copies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from gem.rl.config import TrainConfig
from gem.rl.run.trainer import Trainer


def timeless(path: Path) -> list[dict[str, object]]:
    """Return the metrics of a run without durations."""
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k != "time"} for row in rows]


def run_of(config: TrainConfig) -> Path:
    with Trainer.start(config) as trainer:
        trainer.run()
    return trainer.folder.path


def stop_after(updates: int) -> Callable[[], bool]:
    """Return a should_stop that requests a stop after that many updates."""
    asked = iter([*[False] * updates, True])
    return lambda: next(asked)


def resumed_copy(run: Path) -> Path:
    """Copy a run without its newest checkpoint, as a kill during the last update leaves it, and resume the copy."""
    copy = run.with_name(f"{run.name}-resumed")
    shutil.copytree(run, copy)
    shutil.rmtree(max((copy / "checkpoints").iterdir()))
    with Trainer.resume(str(copy), trust=True) as trainer:
        assert not trainer.done
        trainer.run()
    return copy
