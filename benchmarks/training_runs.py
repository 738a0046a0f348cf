"""Training runs of a benchmark, each in a new process. Their results are lines of a file; none is repeated."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gem.rl.run.trainer import Trainer

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class TrainingRuns:
    """The runs of a benchmark: each of its settings with each seed.

    Args:
        script: the benchmark, which is started again for every run.
        key: what a setting is the name of, such as "advantage".
        settings: fields of TrainConfig by name.
        train: trains a setting with a seed in a new process, and returns the result without name, flags and seed.
        page: returns the page of the results, from the finished runs with the present flags.
    """

    script: str
    key: str
    settings: Mapping[str, Mapping[str, Any]]
    train: Callable[[str, int], dict[str, Any]]
    page: Callable[[list[dict[str, Any]]], Sequence[str]]

    def main(self, doc: str | None, seeds: Iterable[int] = (0, 1, 2)) -> int:
        """Do what the command line of the benchmark says."""
        parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--seeds", type=int, nargs="+", default=list(seeds))
        parser.add_argument("--only", nargs="+", default=list(self.settings), help="settings to run; none for no run")
        parser.add_argument(
            "--run", nargs=2, metavar=(self.key.upper(), "SEED"), help="run one here and print its line"
        )
        parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
        args = parser.parse_args()
        if args.run:
            name, seed = args.run[0], int(args.run[1])
            print(
                json.dumps(
                    {self.key: name, "flags": flags(self.settings[name]), "seed": seed, **self.train(name, seed)}
                )
            )
            return 0
        lines = args.results / f"{Path(self.script).stem}.jsonl"
        for seed in args.seeds:
            for name in args.only:
                if name in self.settings and not any(
                    (r[self.key], r["seed"]) == (name, seed) for r in self.read(lines)
                ):
                    command = [sys.executable, self.script, "--run", name, str(seed)]
                    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                    with lines.open("a") as file:
                        file.write(done.stdout.splitlines()[-1] + "\n")
                    self.write_page(lines)
        self.write_page(lines)
        return 0

    def read(self, lines: Path) -> list[dict[str, Any]]:
        """Return the finished runs with the present flags, in the order of the settings."""
        rows = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
        names = list(self.settings)
        rows = [r for r in rows if r[self.key] in names and flags(self.settings[r[self.key]]) == r["flags"]]
        return sorted(rows, key=lambda r: (names.index(r[self.key]), r["seed"]))

    def write_page(self, lines: Path) -> None:
        head = f"<!-- Written by `python benchmarks/{Path(self.script).name}` -->"
        lines.with_suffix(".md").write_text("\n".join([head, "", *self.page(self.read(lines))]) + "\n")


def train_within(
    seconds: float, name: str, result: Callable[[Trainer], dict[str, Any]], **settings: Any
) -> dict[str, Any]:
    """Train in this process until the run is done, or the process has used that many CPU seconds.

    Args:
        name: of the run, for the line on standard error after each update.
        result: returns the result of the finished run; ``trainer.folder.read_metrics()`` has its metrics.
        settings: fields of TrainConfig.

    Returns:
        The result, with the numbers of updates and episodes and, last, the CPU seconds of the process.
    """
    from gem.rl.config import TrainConfig
    from gem.rl.run.trainer import Trainer

    def show(metrics: dict[str, Any]) -> None:
        greedy = metrics.get("eval", {}).get("greedy", {}).get("success")
        line = f"{name}: update {metrics['update']}, {time.process_time():.0f} s, success {metrics['success']:.2f}"
        print(f"{line}, greedy {greedy}", file=sys.stderr)

    with tempfile.TemporaryDirectory() as out, Trainer.start(TrainConfig(out=out, **settings)) as trainer:
        trainer.run(on_update=show, should_stop=lambda: time.process_time() > seconds)
        found = {"updates": trainer.update, "episodes": trainer.episodes, **result(trainer)}
        return {**found, "cpu_seconds": round(time.process_time(), 1)}


def success(scores: Mapping[str, Any] | None, mode: str) -> float:
    """Return the success rate of an evaluation in a mode, 0 if it was not played."""
    return float(((scores or {}).get(mode) or {}).get("success") or 0.0)


def flags(settings: Mapping[str, Any]) -> str:
    """Return settings as flags of `gem train`."""
    return " ".join(_flag(name, value) for name, value in settings.items())


def _flag(name: str, value: Any) -> str:
    flag = f"--{name.replace('_', '-')}"
    if value is True:
        return flag
    if isinstance(value, dict):
        pairs = (f"{key}={json.dumps(v) if isinstance(v, dict) else v}" for key, v in value.items())
        return " ".join([flag, *(f"'{pair}'" if " " in pair or '"' in pair else pair for pair in pairs)])
    return f"{flag} {' '.join(value) if isinstance(value, list) else value}"


def table(heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]
