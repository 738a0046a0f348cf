"""Measure the cost of sandboxed execution compared to spawning an interpreter, and of many live sessions.

  python benchmarks/sandbox.py                 level ns, on two cores
  python benchmarks/sandbox.py --level lsm --rounds 3 --sessions 100

Each line compares a baseline with the sandbox. A round measures both, one after the other; the ratio is baseline time
over sandbox time, and the line shows the median, minimum and maximum ratio of all rounds.

The baseline is ``python -c``; for programs with tests it is the scheme of the published system: five threads that spawn
an interpreter for each test. All outputs are checked.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from gem.sandbox import Case, Limits, Result, Sandbox, Session, make_sandbox

CORES = 2
SPAWNING_THREADS = 5  # of the published system
TRIED_FIRST = 20  # sessions started to estimate the memory per session
MEMORY_AIM = 5 << 20  # bytes per session
CELL = "import time, numpy, sympy; x = sympy.Symbol('x'); print(numpy.arange(3).sum())"
PROGRAM = """
import sys
from collections import Counter

def main():
    numbers = list(map(int, sys.stdin.read().split()))
    print(sum(sorted(numbers)[: len(numbers) // 2]), Counter(numbers).most_common(1)[0][1])

main()
"""


@dataclass
class Comparison:
    """A baseline and the sandbox doing the same work.

    Args:
        baseline, contained: run once; they raise if the output is wrong. Each round calls them ``repeats`` times.
        aim: the target ratio at level ns; None for no target.
    """

    name: str
    baseline: Callable[[], object]
    contained: Callable[[], object]
    repeats: int
    aim: float | None = None
    seconds: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def measure(self) -> None:
        for way, spent in zip((self.baseline, self.contained), self.seconds, strict=True):
            start = time.perf_counter()
            for _ in range(self.repeats):
                way()
            spent.append((time.perf_counter() - start) / self.repeats)

    def ratios(self) -> list[float]:
        return [slow / fast for slow, fast in zip(*self.seconds, strict=True)]

    def line(self) -> list[str]:
        ratios, times = self.ratios(), [f"{1e3 * statistics.median(spent):.2f}" for spent in self.seconds]
        median = statistics.median(ratios)
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        aim = ["-", "-"] if self.aim is None else [f"{self.aim:g}", "yes" if median >= self.aim else "**no**"]
        return [self.name, *times, f"{median:.2f}", spread, *aim]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", default="ns", choices=("ns", "lsm", "basic"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sessions", type=int, default=1000, help="number of live sessions; 0 skips this part")
    args = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    print(
        f"# The sandbox at level {args.level} (Python {sys.version.split()[0]}, {CORES} cores, {args.rounds} rounds)\n"
    )
    with make_sandbox("zygote", level=args.level, limits=Limits(wall_s=60)) as sandbox, sandbox.session() as session:
        comparisons = all_comparisons(sandbox, session)
        for comparison in comparisons:
            comparison.contained()  # start what is created on first use
        for _ in range(args.rounds):
            for comparison in comparisons:
                comparison.measure()
    row("", "baseline, ms", "sandbox, ms", "times faster", "min to max", "aim", "met")
    print("|" + "---|" * 7)
    for comparison in comparisons:
        row(*comparison.line())
    missed = [c.name for c in comparisons if c.aim is not None and statistics.median(c.ratios()) < c.aim]
    if args.sessions:
        missed += live_sessions(args.level, args.sessions)
    print("\nAims missed: " + ", ".join(missed) if missed else "\nAll aims are met.")
    return int(bool(missed))


def all_comparisons(sandbox: Sandbox, session: Session) -> list[Comparison]:
    def once(code: str, out: str, repeats: int, name: str, aim: float) -> Comparison:
        return Comparison(name, lambda: same(spawn(code), out), lambda: answers(sandbox.run(code), out), repeats, aim)

    return [
        once("print(1)", "1\n", 20, "`print(1)`", 2),
        once("import numpy; print(numpy.arange(3).sum())", "3\n", 6, "`import numpy`", 12),
        once("import sympy; print(sympy.Symbol('x'))", "x\n", 3, "`import sympy`", 35),
        Comparison(
            "a cell of a session",
            lambda: same(spawn("print(1)"), "1\n"),
            lambda: answers(session.run("print(1)"), "1\n"),
            20,
            40,
        ),
        program_with_tests(sandbox, 12, repeats=2, aim=3.5),
        program_with_tests(sandbox, 100, repeats=1, aim=4.5),
    ]


def program_with_tests(sandbox: Sandbox, tests: int, repeats: int, aim: float) -> Comparison:
    inputs = [" ".join(str((test * 7919 + k * k) % 1000) for k in range(200)) for test in range(tests)]
    outputs = [spawn(PROGRAM, text) for text in inputs[:3]]
    cases = [Case(stdin=text) for text in inputs]

    def published() -> None:
        with ThreadPoolExecutor(SPAWNING_THREADS) as pool:
            same(list(pool.map(lambda text: spawn(PROGRAM, text), inputs))[:3], outputs)

    def contained() -> None:
        results = sandbox.run_tests(PROGRAM, cases)
        same([result.stdout for result in results if result is not None and result.ok][:3], outputs)
        same(sum(result is not None and result.ok for result in results), tests)

    return Comparison(f"a program with {tests} tests", published, contained, repeats, aim)


def spawn(code: str, stdin: str = "") -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout


def answers(result: Result, out: str) -> None:
    if not result.ok or result.stdout != out:
        raise AssertionError(f"expected {out!r}, got {result!r:.600}")


def same(found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"expected {expected!r:.300}, got {found!r:.300}")


def live_sessions(level: str, count: int) -> list[str]:
    """Measure sessions that are live at the same time, each with numpy and sympy imported. Returns the missed aims."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    with make_sandbox("zygote", level=level, limits=Limits(wall_s=60)) as sandbox:
        with sandbox.session() as first:
            answers(first.run(CELL), "3\n")
            before, available = pss_bytes(), available_bytes()
            start = time.perf_counter()
            sessions = [started(sandbox) for _ in range(min(count, TRIED_FIRST))]
            count = affordable(count, available)
            sessions += [started(sandbox) for _ in range(count - len(sessions))]
            seconds = time.perf_counter() - start
            per_session = (pss_bytes() - before) / count, (available - available_bytes()) / count
        for session in sessions:
            answers(session.run("print(x)"), "x\n")  # all are live and kept their variables
            session.close()
    met = max(per_session) <= MEMORY_AIM
    print(f"\n# {count:,} live sessions, each with numpy and sympy imported\n")
    row("", "measured", "aim", "met")
    print("|---|---|---|---|")
    row(
        "memory per session, MiB: proportional set size",
        f"{per_session[0] / 2**20:.2f}",
        f"{MEMORY_AIM >> 20}",
        yes(met),
    )
    row("decrease of the machine's available memory", f"{per_session[1] / 2**20:.2f}", "", "")
    row("starts per second, from one thread, first cell done", f"{count / seconds:.0f}", "-", "-")
    return [] if met else ["memory per session"]


def affordable(count: int, available: int) -> int:
    """Limit the number of sessions so that they fit in half of the free memory, judging by the first ones."""
    each = max(1, (available - available_bytes()) // min(count, TRIED_FIRST))
    if count * each > available // 2:
        print(f"\nOnly {available // 2 // each:,} sessions fit in half of the free memory.")
    return min(count, max(TRIED_FIRST, available // 2 // each))


def started(sandbox: Sandbox) -> Session:
    session = sandbox.session()
    answers(session.run(CELL), "3\n")
    return session


def pss_bytes() -> int:
    """Proportional set size of the descendants of this process, which counts shared pages once."""
    total = 0
    for pid in descendants():
        try:
            found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
        except OSError:
            continue  # it has ended
        total += int(found[1]) << 10 if found else 0
    return total


def descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def available_bytes() -> int:
    found = re.search(r"^MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) << 10 if found else 0


def yes(met: bool) -> str:
    return "yes" if met else "**no**"


def row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
