"""Train the embedded model with several seeds and print a table of the results.

  python benchmarks/train.py --seeds 0 1 2
  python benchmarks/train.py --seeds 0 --env game:GuessTheNumber-v0-hard --steps 1000

Each seed is a new `gem train` run; scores are over the episodes of the evaluation. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

COLUMNS = ["seed", "success after warm-up", "success, greedy", "turns", "success, sampled", "turns", "updates"]
COLUMNS += ["episodes", "wall s", "CPU s", "peak MiB"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args, flags = parser.parse_known_args()
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    with tempfile.TemporaryDirectory() as out:
        for seed in args.seeds:
            command = [sys.executable, "-m", "gem", "train", "--out", out, "--name", f"seed{seed}", "--seed", str(seed)]
            subprocess.run([*command, *flags], check=True, stdout=subprocess.DEVNULL)
            print(row(seed, Path(out) / f"seed{seed}"), flush=True)
    print(f"\nCommand: `gem train --seed SEED {' '.join(flags)}`".rstrip(" `") + "`")
    return 0


def row(seed: int, run: Path) -> str:
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    greedy, sampled, time = last["eval"]["greedy"], last["eval"]["sampled"], last["time"]
    cells = [
        seed,
        f"{last['untrained']['sampled']['success']:.3f}",
        f"{greedy['success']:.3f}",
        f"{greedy['turns_when_won']:.2f}",
        f"{sampled['success']:.3f}",
        f"{sampled['turns_when_won']:.2f}",
        last["update"],
        last["episodes"],
        f"{time['seconds']:.0f}",
        f"{time['cpu_seconds']:.0f}",
        f"{time['peak_memory_mib']:.0f}",
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


if __name__ == "__main__":
    sys.exit(main())
