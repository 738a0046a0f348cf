"""Grade pairs of math answers with fresh seeds, and print the pairs that a grader does not grade as labeled.

  python tests/graders/math/fuzz_math.py --seconds 60              random seed
  python tests/graders/math/fuzz_math.py --seed 7 --kinds surds    the pairs of one kind

Labels follow from how the pairs are made (`math_formats`, `math_shapes`, `make_math_cases`). Each is graded by
MathGrader and, unless --alone is given, by math-verify. Add a pair that MathGrader gets wrong to math_pairs.txt, under
[found_by_fuzzing]. The exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import logging
import random
import sys
import time
from collections.abc import Iterator

import math_verify
from make_math_cases import CLASSES
from math_formats import drawn_pair
from math_shapes import KINDS

from gem.graders.math import MathGrader
from gem.graders.pool import GraderPool


def labeled(seed: int, kinds: list[str]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield kinds, answers, golds and labels without end; the kinds take turns."""
    for turn in itertools.count():
        for name in kinds:
            rng = random.Random(f"{name} {seed} {turn}")
            if name in KINDS:
                equal = rng.random() < 0.5
                yield name, *drawn_pair(name, rng, equal), equal
            else:
                yield from ((name, *pair) for pair in CLASSES[name](rng))


def verified(answer: str, gold: str) -> bool:
    """Return the verdict of math-verify."""
    return bool(math_verify.verify(math_verify.parse(f"${gold}$"), math_verify.parse(f"${answer}$")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--kinds", nargs="*", default=[*KINDS, *CLASSES])
    parser.add_argument("--alone", action="store_true", help="without math-verify")
    flags = parser.parse_args()
    logging.disable(logging.ERROR)  # math-verify logs every answer that it cannot parse
    counts: collections.Counter[tuple[str, bool]] = collections.Counter()
    graded, end = 0, time.monotonic() + flags.seconds
    with GraderPool(1, timeout=60.0, modules=["gem.graders.math.warm"]) as pool:
        grader = MathGrader(pool)
        for name, answer, gold, equal in labeled(flags.seed, flags.kinds):
            if time.monotonic() > end:
                break
            verdicts = {"MathGrader": grader.grade(answer, gold).correct}
            if not flags.alone:
                verdicts["math-verify"] = verified(answer, gold)
            wrong = [grader_name for grader_name, verdict in verdicts.items() if verdict is not equal]
            counts.update((each, equal) for each in wrong)
            graded += 1
            if "MathGrader" in wrong:
                print(f"{'=' if equal else '!'} {answer} || {gold}    # {name}", flush=True)
    print(f"# seed {flags.seed}: {graded} pairs")
    for each in ("MathGrader", *([] if flags.alone else ["math-verify"])):
        print(f"# {each}: {counts[each, False]} false accepts, {counts[each, True]} false rejects")
    return int(counts["MathGrader", False] + counts["MathGrader", True] > 0)


if __name__ == "__main__":
    sys.exit(main())
