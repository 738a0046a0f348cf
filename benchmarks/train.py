"""Train the embedded model with several seeds and print a table of the results.

  python benchmarks/train.py --seeds 0 1 2
  python benchmarks/train.py --seeds 0 --env game:GuessTheNumber-v0-hard --steps 1000
  python benchmarks/train.py --model weights/SmolLM2-135M-Instruct --batch 32 --minutes 60

Each seed is a new `gem train` run; scores are over the episodes of the evaluation. Of a pretrained model, the table has
the mean nats per token of English text before and after training, of the first 50 long paragraphs of docs/. Run it on
an otherwise idle machine.
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
    model = flags[flags.index("--model") + 1] if "--model" in flags else None
    columns = [*COLUMNS, *(["nats of English before", "after"] if model else [])]
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    with tempfile.TemporaryDirectory() as out:
        for seed in args.seeds:
            command = [sys.executable, "-m", "gem", "train", "--out", out, "--name", f"seed{seed}", "--seed", str(seed)]
            subprocess.run([*command, *flags], check=True, stdout=subprocess.DEVNULL)
            print(row(seed, Path(out) / f"seed{seed}", model), flush=True)
    print(f"\nCommand: `gem train --seed SEED {' '.join(flags)}`".rstrip(" `") + "`")
    return 0


def row(seed: int, run: Path, model: str | None) -> str:
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
    if model is not None:
        cells += [f"{nats(folder):.2f}" for folder in (model, str(run))]
    return "| " + " | ".join(map(str, cells)) + " |"


def nats(folder: str) -> float:
    """Return the mean nats per token of English paragraphs under a model, or the newest checkpoint of a run."""
    import torch

    from gem.rl import load_policy

    policy, total, count = load_policy(folder, temperature=1.0), 0.0, 0
    for text in paragraphs(50):
        ids_BT = torch.tensor([policy.tokenizer.encode(text)], device=policy.model.device)
        with torch.no_grad():
            total -= float(policy.score(ids_BT, torch.ones_like(ids_BT)).logp_BT.sum())
        count += ids_BT.shape[1] - 1
    return total / count


def paragraphs(number: int) -> list[str]:
    """Return the first paragraphs of docs/ of 300 to 1,500 characters that are prose."""
    texts = (file.read_text() for file in sorted(Path(__file__).parents[1].glob("docs/**/*.md")))
    found = (" ".join(part.split()) for text in texts for part in text.split("\n\n"))
    return [part for part in found if 300 <= len(part) <= 1500 and part[:1].isalpha()][:number]


if __name__ == "__main__":
    sys.exit(main())
