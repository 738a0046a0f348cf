"""Measure the reference scores: the oracle and a random player everywhere, a small public model on twelve environments.

  python benchmarks/scores.py                       what has no row yet, or was measured with another version
  python benchmarks/scores.py 'rg:*' --again        measure these again
  python benchmarks/scores.py --model FOLDER        also SmolLM2-135M-Instruct, as scripts/fetch-smollm2 writes it
  python benchmarks/scores.py --add rows.jsonl      add rows that others made with `gem eval export --leaderboard`

Each evaluation is a line of results/scores.jsonl, as `gem eval export --leaderboard` writes it. `make docs` makes
docs/reference/scores.md and the scores that `gem info` prints from them. Environments that need a download, a service
or a path are left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import gem
from gem.datasets import MissingData
from gem.errors import GemError
from gem.evaluation.exchange.leaderboard import leaderboard_row
from gem.registry import ENV_REGISTRY, EnvSpec

ROWS = Path(__file__).parent / "results" / "scores.jsonl"
TASKS = 100
# Oracles that take over ten seconds for an episode, and tasks in a database server, are played on fewer seeds.
FEWER_TASKS = {"game:Game2048-v0-extreme-hard": 20, "mcpmark:Postgres": 10, "rg:arc_agi": 50, "rg:knight_swap": 50}
MODEL = "SmolLM2-135M-Instruct"
MODEL_FLAGS = ("--limit", "50", "--max-tokens", "64", "--temperature", "0", "--device", "cpu", "--threads", "1")
MODEL_ENVS = (  # one of each family
    "board:TicTacToe-v0",
    "cards:KuhnPoker-v0",
    "code:Warmup-v0",
    "game:GuessTheNumber-v0-easy",
    "logic:Rules",
    "math:Arithmetic",
    "qa:Facts",
    "rg:leg_counting",
    "talk:SealedAuction-v0",
    "terminal:Files",
    "tool:Lookup",
    "webshop:Mini",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="*")
    parser.add_argument("--again", action="store_true", help="measure also what has a row")
    parser.add_argument("--model", type=Path, help=f"folder of {MODEL}")
    parser.add_argument("--add", type=Path, help="file of rows to add; nothing is measured")
    args = parser.parse_args()
    if args.add is not None:
        keep(map(json.loads, args.add.read_text().splitlines()))
        return 0
    known = set() if args.again else {key(row) for row in rows() if is_current(row)}
    runs = [run for run in planned(args.pattern, args.model) if (run[0], (run[1].id,)) not in known]
    failed = 0
    for player, spec in runs:
        row = measured(player, spec, args.model)
        if row["failed_share"]:
            failed += 1
            print(f"{spec.id}, {player}: not measured", file=sys.stderr)
            continue
        keep([row])
        print(f"{spec.id}, {player}: {row['envs'][0]['solved']['value']:.3f}", flush=True)
    return int(failed > 0)


def planned(pattern: str, model: Path | None) -> Iterator[tuple[str, EnvSpec]]:
    """Yield (player, environment) for the environments that can be made here."""
    for spec in gem.list_envs(pattern):
        if spec.path is not None:
            continue
        try:
            gem.make(spec.id).close()
        except (MissingData, GemError) as e:
            print(f"{spec.id} is left out: {e}"[:200], file=sys.stderr)
            continue
        if spec.oracle is not None:
            yield "oracle", spec
        yield "random", spec
        if model is not None and spec.id in MODEL_ENVS:
            yield MODEL, spec


def measured(player: str, spec: EnvSpec, model: Path | None) -> dict[str, Any]:
    """Evaluate a player and return its row."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "run")
        if player == MODEL:
            command = [sys.executable, "-m", "gem", "eval", "--env", spec.id, "--out", out, "--model", str(model)]
            subprocess.run([*command, *MODEL_FLAGS], stdout=subprocess.DEVNULL, check=True)
        else:
            gem.evaluate(player, spec.id, limit=FEWER_TASKS.get(spec.id, TASKS), concurrency=8, out=out)
        return leaderboard_row(out) | {"model": player}


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def keep(new: Iterable[dict[str, Any]]) -> None:
    """Add rows to the file, in place of those of the same model and environments."""
    kept = {key(row): row for row in [*rows(), *new]}
    ROWS.write_text("".join(json.dumps(kept[name]) + "\n" for name in sorted(kept)))


def key(row: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    return row["model"], tuple(env["name"] for env in row["envs"])


def is_current(row: dict[str, Any]) -> bool:
    """Return whether the environments of a row have the versions that were measured."""
    return all(
        env["id"] in ENV_REGISTRY and env["versions"]["version"] == ENV_REGISTRY[env["id"]].version
        for env in row["envs"]
    )


if __name__ == "__main__":
    sys.exit(main())
