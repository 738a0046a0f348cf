"""Score MathGrader and math-verify on labeled pairs of a gold answer and an answer, by kind of answer.

  python benchmarks/graders_labels.py [--set 2]

The ten sets of 500 pairs, in graders_labels.jsonl, were written and labeled by people who had not read the grader,
before it graded them. math-verify is not told the question, because it has no parameter for it.
"""

from __future__ import annotations

import argparse
import collections
import json
import logging
import sys
from pathlib import Path

import math_verify

from gem.errors import GraderError
from gem.graders.math import MathGrader

LABELS = Path(__file__).with_suffix(".jsonl")


def graded(row: dict[str, str]) -> bool | None:
    """Return the verdict of MathGrader; None if it has none."""
    try:
        return MathGrader().grade(row["answer"], row["gold"], question=row["question"]).correct
    except GraderError:
        return None


def verified(row: dict[str, str]) -> bool:
    return bool(math_verify.verify(math_verify.parse(f"${row['gold']}$"), math_verify.parse(f"${row['answer']}$")))


def main() -> int:
    logging.disable(logging.ERROR)  # math-verify logs every answer that it cannot parse
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", type=int, choices=range(1, 11), help="only this set; all by default")
    only = parser.parse_args().set
    rows = [row for row in map(json.loads, LABELS.read_text("utf-8").splitlines()) if only in (None, row["set"])]
    wrong: dict[str, collections.Counter[tuple[str, bool]]] = {}
    for name, verdict_of in {"MathGrader": graded, "math-verify": verified}.items():
        wrong[name] = collections.Counter()
        for row in rows:
            if verdict_of(row) is not bool(row["label"]):
                wrong[name][row["kind"], bool(row["label"])] += 1
    print("| grader | pairs | agreement | false accepts | false rejects |\n| --- | --- | --- | --- | --- |")
    for name, counts in wrong.items():
        accepts, rejects = (sum(n for (_, equal), n in counts.items() if equal is label) for label in (False, True))
        agreement = 100 * (1 - (accepts + rejects) / len(rows))
        print(f"| {name} | {len(rows)} | {agreement:.1f} % | {accepts} | {rejects} |")
    print("\nFalse accepts and false rejects by kind of answer, for the kinds that have one:\n")
    print("| kind | pairs | " + " | ".join(f"{name}, accepts | {name}, rejects" for name in wrong) + " |")
    print("| " + " | ".join(["---"] * (2 + 2 * len(wrong))) + " |")
    sizes = collections.Counter(row["kind"] for row in rows)
    for kind in sorted(sizes):
        cells = [counts[kind, label] for counts in wrong.values() for label in (False, True)]
        if any(cells):
            print(f"| {kind} | {sizes[kind]} | " + " | ".join(map(str, cells)) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
