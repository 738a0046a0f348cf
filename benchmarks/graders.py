"""Benchmark math grading: MathGrader with two workers against math-verify called inline.

  python benchmarks/graders.py            median of 5 runs, a few minutes
  python benchmarks/graders.py --quick    one run with fewer answers

Both graders alternate on the same pairs, which are new in each run so that they are not cached. MathGrader is called
from two threads, one per worker; math-verify from the main thread, the only one in which its timeout works. Then 19
hostile answers are mixed into a stream of 1,000 correct ones. The exit code is 1 if a target is missed.
Agreement with labels is measured by graders_labels.py.

Counts use the worst run. The time added by a killed answer uses the fastest run, because other load on the machine only
adds time. Rates, which are compared with rates of the same run, use the median.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

import math_verify

from gem.errors import GraderError
from gem.graders.math import MathGrader, grade_math
from gem.graders.math.grader import exceeded_cap
from gem.graders.pool import GraderPool

WORKERS = 2
CALLERS = 8  # threads that grade a stream; more than there are workers
LIMIT_S = 2.0  # time limit of a hostile answer, seconds
MODULES = ["gem.graders.math.warm"]
HOSTILE = [  # 15 over the caps, and 4 expensive ones that the caps do not catch
    r"9^{9^{9^9}}",
    "99999999!",
    "(x+y)^{3000}",
    "{" * 1_000_000,
    "9" * 1_000_000,
    r"10^{10^8}",
    "(10^8)!",
    "9**9**9",
    r"\binom{10^9}{5*10^8}",
    r"\frac{" * 60 + "1" + "}{2}" * 60,
    "((((" * 100,
    "the answer is " * 10_000,
    "3!!!!!!",
    "x^{10^{10}}",
    r"\sqrt{" * 5_000,
    r"\int_0^1 \sin(x^3+e^x) \ln(x) dx",
    r"\int_0^1 \cos(x^5+e^x) \ln(x+1) dx",
    r"\sum_{k=1}^{800} \frac{1}{k^{k}}",
    r"\int_0^{\pi} \frac{\sin^5(x)\cos^7(x)}{1+e^{x}} dx",
]
GOLD_OF_HOSTILE = r"\sqrt{2}+1"


class Pair(NamedTuple):
    answer: str
    gold: str
    equal: bool


Verdict = Callable[[str, str], bool]
Draw = Callable[[random.Random], Pair]


def integer(chance: random.Random) -> Pair:
    n, equal = chance.randint(10, 10**6), chance.random() < 0.5
    shown = n if equal else n + chance.randint(1, 9)
    return Pair(chance.choice([f"{shown}", rf"\boxed{{{shown}}}", f"{shown:,}", f"{shown}.0"]), str(n), equal)


def fraction(chance: random.Random) -> Pair:
    top, bottom, factor = chance.randint(1, 99), chance.choice([7, 9, 11, 13]), chance.randint(1, 9)
    equal = chance.random() < 0.5
    return Pair(rf"\dfrac{{{top * factor}}}{{{bottom * factor}}}", rf"\frac{{{top + (not equal)}}}{{{bottom}}}", equal)


def interval(chance: random.Random) -> Pair:
    low, equal = chance.randint(-99, 99), chance.random() < 0.5
    high = low + chance.randint(1, 99)
    return Pair(rf"[{low}, {high})", rf"\left[{low}, {high}\right{')' if equal else ']'}", equal)


def points(chance: random.Random) -> Pair:
    x, y, equal = chance.randint(-99, 99), chance.randint(-99, 99), chance.random() < 0.5
    return Pair(f"({x},{y})", rf"\left({x}, {y + (not equal)}\right)", equal)


def radical(chance: random.Random) -> Pair:
    k, n, equal = chance.randint(2, 40), chance.choice([2, 3, 5, 6, 7, 10]), chance.random() < 0.5
    return Pair(rf"\sqrt{{{k * k * n + (not equal)}}}", rf"{k}\sqrt{{{n}}}", equal)


def polynomial(chance: random.Random) -> Pair:
    a, b, equal = chance.randint(1, 99), chance.randint(1, 99), chance.random() < 0.5
    return Pair(f"(x+{a})(x+{b})", f"x^2+{a + b}x+{a * b + (not equal)}", equal)


def trigonometric(chance: random.Random) -> Pair:
    a, b, equal = chance.randint(2, 99), chance.randint(2, 99), chance.random() < 0.5
    answer = rf"{a}\sin^2({b}x)+{a}\cos^2({b}x)+\tan x"
    return Pair(answer, rf"{a + (not equal)}+\frac{{\sin x}}{{\cos x}}", equal)


def rational(chance: random.Random) -> Pair:
    a, b, equal = chance.randint(1, 99), chance.randint(1, 99), chance.random() < 0.5
    gold = rf"\frac{{2x+{a + b + (not equal)}}}{{(x+{a})(x+{b})}}"
    return Pair(rf"\frac{{1}}{{x+{a}}}+\frac{{1}}{{x+{b}}}", gold, equal)


def expanded(chance: random.Random) -> Pair:
    a, equal = chance.randint(2, 99), chance.random() < 0.5
    middle = f"10x^3\\cdot {a**2}+10x^2\\cdot {a**3 + (not equal)}"
    return Pair(f"(x+{a})^5", f"x^5+5x^4\\cdot {a}+{middle}+5x\\cdot {a**4}+{a**5}", equal)


# typical: mostly numbers, and one formula in five, as in the MATH dataset.
KINDS: dict[str, tuple[Draw, ...]] = {
    "simple": (integer,),
    "typical": (integer, integer, integer, fraction, fraction, fraction, interval, points, radical, polynomial),
    "hard": (radical, polynomial, trigonometric, rational, expanded),
}
PAIRS = {"simple": 2_000, "typical": 400, "hard": 120}  # per run


@dataclass
class Measured:
    """Measurements of one grader.

    Args:
        rates: answers per second, one per run.
        seconds: time of each answer.
        right: number of verdicts that match the construction of the pair.
    """

    rates: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    right: int = 0

    def add(self, pairs: Sequence[Pair], verdict_of: Verdict, callers: int) -> None:
        timed: list[tuple[float, bool]] = []

        def grade_all(part: Sequence[Pair]) -> None:
            for answer, gold, equal in part:
                start = time.perf_counter()
                verdict = verdict_of(answer, gold)
                timed.append((time.perf_counter() - start, verdict is equal))

        start = time.perf_counter()
        if callers == 1:
            grade_all(pairs)
        else:
            with ThreadPoolExecutor(callers) as threads:
                list(threads.map(grade_all, [pairs[caller::callers] for caller in range(callers)]))
        self.rates.append(len(pairs) / (time.perf_counter() - start))
        self.seconds += [seconds for seconds, _ in timed]
        self.right += sum(right for _, right in timed)

    @property
    def p99_ms(self) -> float:
        return 1e3 * statistics.quantiles(self.seconds, n=100)[98]

    def cells(self) -> list[str]:
        rates = [f"{f(self.rates):,.0f}" for f in (median, min, max)]
        return [*rates, f"{self.p99_ms:,.3g}", f"{100 * self.right / len(self.seconds):.1f} %"]


def inline(answer: str, gold: str) -> bool:
    return bool(math_verify.verify(math_verify.parse(f"${gold}$"), math_verify.parse(f"${answer}$")))


def drawn(kind: str, count: int, *seed: int) -> list[Pair]:
    chance = random.Random(f"{kind} {seed}")
    return [KINDS[kind][i % len(KINDS[kind])](chance) for i in range(count)]


def compared(grader: MathGrader, repeats: int, share: float) -> bool:
    """Print the table of rates; return whether MathGrader was always right and faster for every kind of answer."""
    print("| answers | grader | answers/s | min | max | p99, ms | right |")
    print("| " + " | ".join(["---"] * 7) + " |")
    met = True
    for kind in KINDS:
        measured = {"MathGrader": Measured(), "math-verify inline": Measured()}
        for run in range(repeats):
            pairs = drawn(kind, int(PAIRS[kind] * share), run)
            measured["MathGrader"].add(pairs, lambda answer, gold: grader.grade(answer, gold).correct, WORKERS)
            measured["math-verify inline"].add(pairs, inline, 1)
        for name, result in measured.items():
            print("| " + " | ".join([kind, name, *result.cells()]) + " |", flush=True)
        ours, theirs = measured.values()
        met = met and ours.right == len(ours.seconds)
        met = met and median(ours.rates) > median(theirs.rates)
    return met


@dataclass
class Streamed:
    """Result of grading a stream.

    Args:
        seconds: total wall time.
        right: correct answers graded correct.
        killed: answers stopped at the time limit.
        costs: seconds of each hostile answer, by its text.
    """

    seconds: float = 0.0
    right: int = 0
    killed: int = 0
    costs: dict[str, float] = field(default_factory=dict)


def streamed(grader: MathGrader, pairs: Sequence[Pair]) -> Streamed:
    """Grade all pairs from several threads that take the next pair when they are done."""
    result, waiting, lock = Streamed(), iter(pairs), threading.Lock()

    def caller() -> None:
        while True:
            with lock:
                pair = next(waiting, None)
            if pair is None:
                return
            start = time.perf_counter()
            try:
                correct, killed = grader.grade(pair.answer, pair.gold).correct, False
            except GraderError:
                correct, killed = False, True
            with lock:
                result.right += pair.equal and correct
                result.killed += killed
                if not pair.equal:
                    result.costs[pair.answer] = time.perf_counter() - start

    start = time.perf_counter()
    with ThreadPoolExecutor(CALLERS) as threads:
        for future in [threads.submit(caller) for _ in range(CALLERS)]:
            future.result()
    result.seconds = time.perf_counter() - start
    return result


class Target(NamedTuple):
    """A row of the second table.

    Args:
        values: one per run.
        limit: the target value.
        at_least: whether the limit is a lower bound; otherwise it is an upper bound.
        statistic: reduces the values to the number compared with the limit.
    """

    what: str
    values: list[float]
    unit: str
    limit: float
    at_least: bool
    statistic: Callable[[Sequence[float]], float]

    @property
    def met(self) -> bool:
        value = self.statistic(self.values)
        return value >= self.limit if self.at_least else value <= self.limit

    def cells(self) -> list[str]:
        numbers = [f"{f(self.values):,.4g}" for f in (median, min, max)]
        sign, by = "≥" if self.at_least else "≤", self.statistic.__name__
        return [self.what, *numbers, self.unit, f"{sign} {self.limit:,g}", by, "yes" if self.met else "NO"]


def with_hostile_answers(repeats: int) -> list[Target]:
    right, capped, killed, added, kept = ([] for _ in range(5))
    with GraderPool(WORKERS, timeout=LIMIT_S, modules=MODULES) as pool:
        grader = MathGrader(pool)
        grader.grade(r"\sqrt{8}", r"2\sqrt{2}")
        for run in range(repeats):
            correct = [pair for pair in drawn("typical", 2_600, 1_000, run) if pair.equal][:1_000]
            # The last fifth has no hostile answers: a single thread waiting for one would distort the total time.
            stream = [*correct[:800], *(Pair(answer, GOLD_OF_HOSTILE, False) for answer in HOSTILE)]
            random.Random(run).shuffle(stream)
            clean, dirty, again = (streamed(grader, s) for s in (correct, [*stream, *correct[800:]], correct))
            expensive = [answer for answer in HOSTILE if exceeded_cap(answer) is None]
            right.append(float(min(clean.right, dirty.right)))
            capped.append(1e3 * max(cost for answer, cost in dirty.costs.items() if answer not in expensive))
            killed.append(float(dirty.killed))
            added.append((dirty.seconds - (clean.seconds + again.seconds) / 2) / len(expensive))
            kept.append(100 * rate_while_workers_are_stuck(grader, expensive[:WORKERS], run))
    return [
        Target("correct answers graded correct, of 1,000 mixed with hostile ones", right, "", 1_000, True, min),
        Target("slowest of the 15 hostile answers over the caps", capped, "ms", 10, False, max),
        Target(f"of the other 4, stopped at their limit of {LIMIT_S:g} s", killed, "", 4, True, min),
        Target("time that each of those adds to the stream", added, "s", LIMIT_S / WORKERS, False, min),
        Target("rate of simple answers while all workers are stuck", kept, "% of the usual rate", 50, True, median),
    ]


def rate_while_workers_are_stuck(grader: MathGrader, expensive: Sequence[str], run: int) -> float:
    """Measure answers that need no worker while every worker is busy, as a fraction of the usual rate."""
    usual, stuck = Measured(), Measured()

    def verdict_of(answer: str, gold: str) -> bool:
        return grader.grade(answer, gold).correct

    usual.add(drawn("simple", 4_000, 2_000, run), verdict_of, 1)
    count = int(usual.rates[0] * LIMIT_S / 8)  # finished before the time limit even at a sixth of the usual rate
    with ThreadPoolExecutor(WORKERS) as threads:
        futures = [threads.submit(grader.grade, answer, GOLD_OF_HOSTILE) for answer in expensive]
        time.sleep(LIMIT_S / 10)
        stuck.add(drawn("simple", count, 2_001, run), verdict_of, 1)
        assert not any(future.done() for future in futures), "the expensive answers finished first"
    usual.add(drawn("simple", 4_000, 2_002, run), verdict_of, 1)
    return stuck.rates[0] / statistics.fmean(usual.rates)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    repeats, share = (1, 0.25) if parser.parse_args().quick else (5, 1.0)
    logging.disable(logging.ERROR)  # math-verify logs every answer that it cannot parse
    print(f"<!-- Written by `python benchmarks/{' '.join([Path(__file__).name, *sys.argv[1:]])}` -->\n")
    print(f"# Graders ({os.cpu_count()} cores, Python {platform.python_version()}, {repeats} runs)\n")
    grade_math(r"\sqrt{8}", r"2\sqrt{2}")  # load the libraries before the measurements
    inline("1", "1")
    with GraderPool(WORKERS, timeout=60.0, modules=MODULES) as pool:
        grader = MathGrader(pool)
        for future in [pool.submit("gem.graders.math.parser:parse", "x") for _ in range(WORKERS)]:
            future.result()
        met = compared(grader, repeats, share)
    print("\n| what | median | min | max | unit | target | statistic | met |")
    print("| " + " | ".join(["---"] * 8) + " |")
    for target in with_hostile_answers(repeats):
        print("| " + " | ".join(target.cells()) + " |")
        met = met and target.met
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
