"""Measure how much hostile programs slow down honest ones in the same sandbox.

  python benchmarks/neighbours.py --level lsm --rounds 7 > benchmarks/results/neighbours.md

For each hostile program of the corpus: its copies run without pause, while a trivial program, a cell of a session and a
graded program with twelve tests run one after the other. A value is the time beside the hostile program divided by the
time alone, measured just before. A wrong or missing answer ends the measurement with an error. The aim is a median of
at most AIM: on two processors, a program that shares them with several busy ones at equal weights is slowed down that
much, and its tests can no longer run in parallel.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gem.graders.code import CodeGrader
from gem.graders.code.tests import read_tests
from gem.sandbox import Limits, Sandbox, make_sandbox
from table import Line, report

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "sandbox" / "attacks"
HOSTILE = {  # name in the corpus → copies
    "160_sixty_spinners": 4,
    "161_thread_hog": 4,
    "162_fork_churn": 2,
    "163_process_hog": 4,
    "165_wakeups": 2,
    "166_file_churn": 2,
    "168_memory_traffic": 2,
}
AIM = 8.0
HOSTILE_S = 2.0  # wall-clock limit of a hostile program, after which it is started again
HEAD_START_S = 0.5
TESTS, NUMBERS = 12, 200_000
GRADED = "def solve(n):\n    return sum(i * i % 7 for i in range(n))\n"


class Honest:
    """The honest programs. Each method runs one and raises if the answer is wrong."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.session = sandbox, sandbox.session()
        numbers = range(NUMBERS, NUMBERS + TESTS)
        outputs = [sum(i * i % 7 for i in range(n)) for n in numbers]
        self.suite = read_tests({"inputs": [[n] for n in numbers], "outputs": outputs, "fn_name": "solve"})
        self.grader = CodeGrader(limits=Limits(wall_s=2, cpu_s=2))

    def trivial(self) -> None:
        result = self.sandbox.run("print(1)")
        require(result.stdout == "1\n", result)

    def cell(self) -> None:
        result = self.session.run("print(1)")
        require(result.stdout == "1\n", result)

    def graded(self) -> None:
        grade = self.grader.grade(GRADED, self.suite, self.sandbox)
        require(grade.reward == 1, grade)

    def calls(self) -> dict[str, Callable[[], None]]:
        return {"`print(1)`": self.trivial, "a cell": self.cell, f"a program with {TESTS} tests": self.graded}


def require(right: bool, found: object) -> None:
    if not right:
        raise SystemExit(f"a wrong answer: {found}")


@contextmanager
def beside(sandbox: Sandbox, source: str, copies: int) -> Iterator[None]:
    """Context manager beside which copies of a program run without pause."""
    stopped = threading.Event()

    def repeat() -> None:
        while not stopped.is_set():
            sandbox.run(source, limits=Limits(wall_s=HOSTILE_S))

    threads = [threading.Thread(target=repeat) for _ in range(copies)]
    for thread in threads:
        thread.start()
    time.sleep(HEAD_START_S)
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def seconds(call: Callable[[], None], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", default="ns", choices=("ns", "lsm", "basic"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=5, help="calls per round; a round counts their mean")
    args = parser.parse_args()
    lines = []
    with make_sandbox("zygote", level=args.level) as sandbox:
        honest = Honest(sandbox)
        for call in honest.calls().values():
            call()  # start what is created on first use
        for name, copies in HOSTILE.items():
            source = (CORPUS / f"{name}.py").read_text()
            values: dict[str, list[float]] = {what: [] for what in honest.calls()}
            for _ in range(args.rounds):
                alone = {what: seconds(call, args.repeats) for what, call in honest.calls().items()}
                print(f"{name}: {alone}", file=sys.stderr)
                with beside(sandbox, source, copies):
                    for what, call in honest.calls().items():
                        values[what].append(seconds(call, args.repeats) / alone[what])
            lines += [Line(f"{what} beside {copies} x {name}", found, "x", AIM, True) for what, found in values.items()]
        honest.session.close()
    return report(f"Honest neighbours at level {args.level}", f"{args.rounds} rounds of {args.repeats} calls", lines)


if __name__ == "__main__":
    sys.exit(main())
