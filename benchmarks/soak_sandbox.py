"""Run thousands of mixed programs in one sandbox, some of them hostile, and occasionally kill a fork server.

  python benchmarks/soak_sandbox.py                    20,000 runs at level ns: minutes
  python benchmarks/soak_sandbox.py --seconds 30       for 30 seconds, as in CI

The result of every run is checked. The sandbox may fail only if a fork server was killed during the run, and only with
SandboxError. Afterwards no process, descriptor, temporary file, mount or SysV IPC object may be left over, and memory
must not have grown. Prints a report; exits with 1 if a check fails.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from gem.errors import SandboxError
from gem.sandbox import Sandbox, make_sandbox
from soak_jobs import HARMLESS, LIMITS, hostile, too_long

HOSTILE_SHARE, KILL_SHARE = 0.05, 0.01
MEMORY_GROWTH = 64 << 20  # bytes allowed for caches and the allocator
DYING_S = 0.5  # after a kill, during which a new run may still fail
MAX_SHOWN = 20  # violations printed


@dataclass
class Tally:
    """Counts so far. killed_at: time.monotonic() at which a fork server was last killed."""

    done: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: int = 0
    kills: int = 0
    killed_at: float = float("-inf")
    violations: list[str] = field(default_factory=list)


class Soak:
    def __init__(self, sandbox: Sandbox, seed: int, tick: Callable[[], object]) -> None:
        self.sandbox, self.seed, self.tick = sandbox, seed, tick
        self.tally, self.lock = Tally(), threading.Lock()

    def work(self, indices: Iterator[int], deadline: float) -> None:
        """The work of one thread: execute runs until none are left or the deadline has passed."""
        while time.monotonic() < deadline:
            with self.lock:
                index = next(indices, None)
            if index is None:
                return
            self.one(index)
            self.tick()

    def one(self, index: int) -> None:
        rng = random.Random(f"{self.seed}/{index}")
        job = hostile if rng.random() < HOSTILE_SHARE else rng.choices(list(HARMLESS), list(HARMLESS.values()))[0]
        start = time.monotonic()
        killer = threading.Timer(rng.random() * 0.03, self.kill, [rng]) if rng.random() < KILL_SHARE else None
        if killer:
            killer.start()
        try:
            violation = job(self.sandbox, rng)
        except SandboxError as e:
            if killer:
                killer.join()
            with self.lock:  # also held while a kill is recorded
                self.tally.failures += 1
                excused = self.tally.killed_at > start - DYING_S
            violation = "" if excused else f"SandboxError without a killed fork server: {e}"
        except Exception as e:
            violation = f"{type(e).__name__} instead of a SandboxError: {e}"
        if killer:
            killer.join()
        with self.lock:
            self.tally.done[job.__name__] += 1
            if violation:
                self.tally.violations.append(f"run {index} ({job.__name__}): {violation}")

    def kill(self, rng: random.Random) -> None:
        with self.lock:
            if servers := children():
                os.kill(rng.choice(servers), signal.SIGKILL)
            self.tally.kills += 1
            self.tally.killed_at = time.monotonic()


def children() -> list[int]:
    """The child processes of this process (the fork servers), including those started by threads."""
    found: list[int] = []
    for thread in Path("/proc/self/task").iterdir():
        found += map(int, (thread / "children").read_text().split())
    return found


# Leak detection


def inventory() -> dict[str, object]:
    """What must be the same before and after the runs."""
    return {
        "processes": len(children()),
        "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "temporary files": len(os.listdir(tempfile.gettempdir())),
        "files in /dev/shm": len(os.listdir("/dev/shm")),
        "mounts": Path("/proc/self/mountinfo").read_text().count("\n"),
        "SysV IPC": sum(Path(f"/proc/sysvipc/{kind}").read_text().count("\n") for kind in ("shm", "sem", "msg")),
    }


def resident_bytes() -> int:
    """Memory of this process and its fork servers."""
    total = 0
    for pid in [os.getpid(), *children()]:
        found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
        total += int(found[1]) << 10 if found else 0
    return total


def differences(before: dict[str, object], after: dict[str, object], when: str) -> list[str]:
    return [
        f"{what} {when}: {before[what]} before, {after[what]} after" for what in before if before[what] != after[what]
    ]


def warm(sandbox: Sandbox, rounds: int) -> None:
    """Execute every kind of run, to create what is created on first use."""
    for number, job in itertools.product(range(rounds), (*HARMLESS, hostile)):
        if job not in (too_long, hostile) or number == 0:
            job(sandbox, random.Random(number))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, help="default: 20,000, or unlimited with --seconds")
    parser.add_argument("--seconds", type=float, help="no run starts after this time")
    parser.add_argument("--level", default="ns", choices=("ns", "lsm"))  # basic does not guarantee a cleanup
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    runs = args.runs or (20_000 if args.seconds is None else None)
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress(*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn(), transient=True) as bar,
    ):
        tempfile.tempdir = folder  # do not count temporary files of other processes
        task = bar.add_task(f"level {args.level}", total=runs)
        empty = inventory()
        with make_sandbox("zygote", level=args.level, limits=LIMITS) as sandbox:
            warm(sandbox, rounds=3)
            before, memory = inventory(), resident_bytes()
            soak = Soak(sandbox, args.seed, lambda: bar.advance(task))
            start = time.monotonic()
            deadline = start + (args.seconds or float("inf"))
            indices = iter(range(runs)) if runs else itertools.count()
            run_threads(args.threads, soak, indices, deadline)
            seconds = time.monotonic() - start
            warm(sandbox, rounds=1)  # restart servers that were killed last
            violations = soak.tally.violations + differences(before, inventory(), "after the runs")
            growth = resident_bytes() - memory
            if growth > MEMORY_GROWTH:
                violations.append(f"memory grew by {growth >> 20} MiB")
        violations += differences(empty, inventory(), "after close()")
    report(args.level, soak.tally, seconds, growth, violations)
    return int(bool(violations))


def run_threads(count: int, soak: Soak, indices: Iterator[int], deadline: float) -> None:
    threads = [threading.Thread(target=soak.work, args=(indices, deadline)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def report(level: str, tally: Tally, seconds: float, growth: int, violations: list[str]) -> None:
    total = sum(tally.done.values())
    print(f"{total:,} runs at level {level} in {seconds:.0f} s ({total / seconds:.0f} per second)")
    print(f"memory: {growth / 2**20:+.1f} MiB")
    print(f"fork servers killed: {tally.kills}; runs that ended with a SandboxError: {tally.failures}")
    print(", ".join(f"{name} {count}" for name, count in tally.done.most_common()))
    for violation in violations[:MAX_SHOWN]:
        print(f"VIOLATION {violation}")
    print(f"{len(violations)} violations" if violations else "no leaks, no wrong results, no unexpected exceptions")


if __name__ == "__main__":
    sys.exit(main())
