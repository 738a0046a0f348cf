"""Exit with 1 unless a trained policy beats the untrained one by a margin, both sampled and greedy.

python scripts/assert_learned.py runs/demo --by 0.15
"""

import argparse
import json
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--by", type=float, default=0.15, help="minimum difference of success rates")
    args = parser.parse_args()
    last = json.loads((args.run / "metrics.jsonl").read_text().splitlines()[-1])
    learned = True
    for mode in ("sampled", "greedy"):
        before, after = last["untrained"][mode]["success"], last["eval"][mode]["success"]
        enough = after - before >= args.by
        learned &= enough
        print(f"{mode}: success {before:.3f} -> {after:.3f}, {'at least' if enough else 'NOT'} {args.by} better")
    return 0 if learned else 1


if __name__ == "__main__":
    sys.exit(main())
