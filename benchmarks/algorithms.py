"""Train game:GuessTheNumber-v0-easy with every advantage and several seeds, within a limit of CPU seconds per run.

  python benchmarks/algorithms.py                      # all missing runs, one after another
  python benchmarks/algorithms.py --only branch gae --seeds 0
  python benchmarks/algorithms.py --only none          # only write the table again

Every finished run is a line of results/algorithms.jsonl, and the table results/algorithms.md is written after each; a
run whose flags and seed have a line is not repeated, so an interrupted benchmark continues where it stopped. A run
stops when two evaluations in a row win 95 % of the episodes greedily, after its last update, or at the limit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CPU_SECONDS = 320.0  # limit of a run, with imports, warm-up and evaluations
RESERVED = 10.0  # CPU seconds for the evaluation at the end
AIM = 0.9
RESULTS = Path(__file__).parent / "results"
COMMON: dict[str, Any] = {
    "batch": 128,
    "minibatch": 32,
    "until": "greedy=.95",
    "eval_every": 10,
    "eval_episodes": 100,
}
# Whole-episode advantages are noisier: a batch of groups has few secrets, and further epochs fit that noise.
GROUPS: dict[str, Any] = {"batch": 256, "minibatch": 64, "group_size": 4, "epochs": 1, "learning_rate": 2e-3}
SETTINGS: dict[str, dict[str, Any]] = {
    "returns": {  # without a baseline, each win makes its turns more likely, whatever they were, and entropy vanishes
        "batch": 256,
        "minibatch": 64,
        "epochs": 1,
        "learning_rate": 2e-3,
        "batch_scale": "std",
        "kl": 0.05,
    },
    "rebn": {},
    "turn": {},
    "grpo": GROUPS,
    "rloo": {**GROUPS, "batch_scale": "std"},
    "gigpo": GROUPS,
    "gae": {"batch_scale": "std", "critic_warmup": 5},
    "branch": {  # with the default KL weight, its entropy vanishes before all numbers are found
        "batch": 32,
        "branch_width": 2,
        "branch_turns": 2,
        "branch_train": True,
        "batch_scale": "std",
        "kl": 0.03,
    },
}
# Why an advantage misses the aim, from its metrics; shown only if a seed of it does.
NOTES: dict[str, str] = {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", default=list(SETTINGS), help="advantages to run; none for no run")
    parser.add_argument("--run", nargs=2, metavar=("ADVANTAGE", "SEED"), help="run one here and print its line")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of algorithms.jsonl and algorithms.md")
    args = parser.parse_args()
    if args.run:
        print(json.dumps(train(args.run[0], int(args.run[1]))))
        return 0
    for seed in args.seeds:
        for advantage in args.only:
            if advantage in SETTINGS and not any(
                (row["advantage"], row["flags"], row["seed"]) == (advantage, flags(SETTINGS[advantage]), seed)
                for row in read(args.results)
            ):
                command = [sys.executable, __file__, "--run", advantage, str(seed)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                with (args.results / "algorithms.jsonl").open("a") as file:
                    file.write(done.stdout.splitlines()[-1] + "\n")
                write_table(args.results)
    write_table(args.results)
    return 0


def train(advantage: str, seed: int) -> dict[str, Any]:
    """Train in this process. It must be a new one, because all its CPU seconds count."""
    from gem.rl.config import TrainConfig
    from gem.rl.trainer import Trainer

    with tempfile.TemporaryDirectory() as out:
        config = TrainConfig(advantage=advantage, seed=seed, out=out, **(COMMON | SETTINGS[advantage]))
        with Trainer.start(config) as trainer:
            tokens = 0

            def count(metrics: dict[str, Any]) -> None:
                nonlocal tokens
                tokens += metrics["sampled_tokens"]
                print(
                    f"{advantage} seed {seed}: update {metrics['update']}, {time.process_time():.0f} s, success "
                    f"{metrics['success']:.2f}, greedy {metrics.get('eval', {}).get('greedy', {}).get('success')}",
                    file=sys.stderr,
                )

            trainer.run(on_update=count, should_stop=lambda: time.process_time() > CPU_SECONDS - RESERVED)
            rows = trainer.folder.read_metrics()
            scores = rows[-1].get("eval") if trainer.done else None
            scores = scores or trainer.evaluate(both=True)
            reached = [row["time"]["cpu_seconds"] for row in rows if _success(row.get("eval"), "greedy") >= AIM]
            return {
                "advantage": advantage,
                "flags": flags(SETTINGS[advantage]),
                "seed": seed,
                "updates": trainer.update,
                "episodes": trainer.episodes,
                "sampled_tokens": tokens,
                "cpu_seconds": round(time.process_time(), 1),
                "seconds_to_aim": reached[0] if reached else None,
                "untrained": _success(trainer.untrained, "greedy"),
                "greedy": _success(scores, "greedy"),
                "sampled": _success(scores, "sampled"),
            }


def flags(settings: dict[str, Any]) -> str:
    """Return settings as flags of `gem train`."""
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in settings.items()).replace(" True", "")


def _success(scores: dict[str, Any] | None, mode: str) -> float:
    return float(((scores or {}).get(mode) or {}).get("success") or 0.0)


def read(results: Path) -> list[dict[str, Any]]:
    """Return the finished runs."""
    path = results / "algorithms.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_table(results: Path) -> None:
    """Write results/algorithms.md from the finished runs with the present flags."""
    rows = [row for row in read(results) if flags(SETTINGS[row["advantage"]]) == row["flags"]]
    rows.sort(key=lambda row: (list(SETTINGS).index(row["advantage"]), row["seed"]))
    planned = 3 * len(SETTINGS)
    columns = ["advantage", "flags", "seed", "updates", "sampled tokens", "CPU s", "CPU s to ≥ .9 greedy"]
    columns += ["greedy", "sampled", "≥ .9 greedy"]
    lines = [
        "<!-- Written by `python benchmarks/algorithms.py` -->",
        "",
        "# All advantages on game:GuessTheNumber-v0-easy",
        "",
        f"One torch thread, embedded model; at most {CPU_SECONDS:g} CPU seconds per run, with imports, warm-up and",
        f"evaluations. Flags of all runs, where none is named: `{flags(COMMON)}`. A run ends when two",
        "evaluations in a row win 95 %. Greedy and sampled are success rates over 100 seeds at the end; there are",
        "ten different episodes. Other work ran on the machine, which makes CPU seconds longer.",
        f"{len(rows)} of {planned} runs are finished.",
        "",
        "| " + " | ".join(columns) + " |",
        "|" + "---|" * len(columns),
    ]
    for row in rows:
        to_aim = "" if row["seconds_to_aim"] is None else f"{row['seconds_to_aim']:.0f}"
        cells = [
            row["advantage"],
            row["flags"] and f"`{row['flags']}`",
            row["seed"],
            row["updates"],
            f"{row['sampled_tokens']:,}",
        ]
        cells += [f"{row['cpu_seconds']:.0f}", to_aim, f"{row['greedy']:.3f}", f"{row['sampled']:.3f}"]
        lines.append("| " + " | ".join(map(str, [*cells, "yes" if row["greedy"] >= AIM else "no"])) + " |")
    missed = dict.fromkeys(row["advantage"] for row in rows if row["greedy"] < AIM)
    if missed:
        lines += ["", *(f"- {name}: {NOTES.get(name, 'not examined yet.')}" for name in missed)]
    (results / "algorithms.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
