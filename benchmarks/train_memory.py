"""Resident memory of a training run over many small updates, which must not grow.

Each setting trains in a process of its own, with a tiny batch so that 200 updates are quick.

    python benchmarks/train_memory.py > benchmarks/results/train_memory.md
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

READ_AT = (20, 100, 200)
MAX_GROWTH = 1.05  # of the last reading, as a multiple of the first
TINY: dict[str, Any] = {
    "steps": READ_AT[-1],
    "batch": 8,
    "minibatch": 8,
    "epochs": 1,
    "imitation_steps": 20,
    "eval_episodes": 4,
    "eval_every": 50,
    "checkpoint_every": 50,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "turn": {},
    "gae, a mixture, curriculum": {
        "env": ["game:GuessTheNumber-v0-easy", "math:Arithmetic"],
        "curriculum": "levels",
        "advantage": "gae",
        "critic_options": {"shared": True},
        "max_new_tokens": 12,
    },
}


def resident_mib() -> float:
    """Return the resident memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def train(setting: str) -> None:
    """Train, and print the readings as JSON."""
    from gem.rl.config import TrainConfig
    from gem.rl.run.trainer import Trainer

    found = []

    def on_update(metrics: dict[str, Any]) -> None:
        if metrics["update"] in READ_AT:
            found.append(resident_mib())

    with (
        tempfile.TemporaryDirectory() as out,
        Trainer.start(TrainConfig(out=out, name="run", **TINY | SETTINGS[setting])) as trainer,
    ):
        trainer.run(on_update)
    print(json.dumps(found))


def main() -> int:
    print(f"<!-- Written by `python benchmarks/{os.path.basename(__file__)}` -->\n")
    print("# Memory of a training run\n")
    print(f"Resident MiB after {', '.join(map(str, READ_AT))} updates of 8 episodes, with the embedded model.\n")
    print("| setting | " + " | ".join(f"update {n}" for n in READ_AT) + " | last / first |")
    print("|---" * (len(READ_AT) + 2) + "|")
    flat = True
    for setting in SETTINGS:
        done = subprocess.run([sys.executable, __file__, setting], capture_output=True, text=True, check=True)
        read = json.loads(done.stdout)
        growth = read[-1] / read[0]
        flat = flat and growth <= MAX_GROWTH
        print(f"| {setting} | " + " | ".join(f"{mib:,.1f}" for mib in read) + f" | {growth:.3f} |", flush=True)
    return 0 if flat else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        train(sys.argv[1])
    else:
        sys.exit(main())
