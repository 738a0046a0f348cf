"""Thousands of mixed runs through one sandbox, some hostile, some with the fork server killed under them.

  python benchmarks/soak_sandbox.py                    20,000 runs at level ns: minutes
  python benchmarks/soak_sandbox.py --seconds 30       as many as there is time for, as in CI

What each run has to answer is known, and every answer is compared. The machinery may fail only where a fork server was
killed meanwhile, and then by SandboxError. Afterwards there must be no process, descriptor, temporary file, mount or
SysV IPC that was not there before, and no more memory. Prints a report; exits with 1 where anything of that is broken.
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
MEMORY_GROWTH = 64 << 20  # bytes that caches and the allocator may keep
DYING_S = 0.5  # in which a killed fork server may still take a run with it that began after the kill
SHOWN = 20  # breaches printed


@dataclass
class Tally:
    """What happened so far. killed_at: when a fork server was last killed, by the monotonic clock."""

    done: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: int = 0
    kills: int = 0
    killed_at: float = float("-inf")
    breaches: list[str] = field(default_factory=list)


class Soak:
    def __init__(self, sandbox: Sandbox, seed: int, tick: Callable[[], object]) -> None:
        self.sandbox, self.seed, self.tick = sandbox, seed, tick
        self.tally, self.lock = Tally(), threading.Lock()

    def work(self, indices: Iterator[int], deadline: float) -> None:
        """One thread: take runs until there are no more, or no more time."""
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
            breach = job(self.sandbox, rng)
        except SandboxError as e:
            if killer:
                killer.join()
            with self.lock:  # a kill holds it, too, until it is noted
                self.tally.failures += 1
                excused = self.tally.killed_at > start - DYING_S
            breach = "" if excused else f"nobody killed a fork server, and yet: {e}"
        except Exception as e:
            breach = f"{type(e).__name__} instead of a SandboxError: {e}"
        if killer:
            killer.join()
        with self.lock:
            self.tally.done[job.__name__] += 1
            if breach:
                self.tally.breaches.append(f"run {index} ({job.__name__}): {breach}")

    def kill(self, rng: random.Random) -> None:
        with self.lock:
            if servers := children():
                os.kill(rng.choice(servers), signal.SIGKILL)
            self.tally.kills += 1
            self.tally.killed_at = time.monotonic()


def children() -> list[int]:
    """The processes that this one started, which are the fork servers. Those that threads started count, too."""
    found: list[int] = []
    for thread in Path("/proc/self/task").iterdir():
        found += map(int, (thread / "children").read_text().split())
    return found


# What may leak.


def inventory() -> dict[str, object]:
    """What has to be the same again."""
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
    """Of this process and its fork servers."""
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
    """Every kind of run, so that what is made on first use is there."""
    for number, job in itertools.product(range(rounds), (*HARMLESS, hostile)):
        if job not in (too_long, hostile) or number == 0:
            job(sandbox, random.Random(number))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, help="20,000, or without end where --seconds is given")
    parser.add_argument("--seconds", type=float, help="no run starts after that")
    parser.add_argument("--level", default="ns", choices=("ns", "lsm"))  # basic does not promise that nothing is left
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    runs = args.runs or (20_000 if args.seconds is None else None)
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress(*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn(), transient=True) as bar,
    ):
        tempfile.tempdir = folder  # nobody else's temporary files count
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
            warm(sandbox, rounds=1)  # servers that were killed last are back
            breaches = soak.tally.breaches + differences(before, inventory(), "after the runs")
            growth = resident_bytes() - memory
            if growth > MEMORY_GROWTH:
                breaches.append(f"memory grew by {growth >> 20} MiB")
        breaches += differences(empty, inventory(), "after close()")
    report(args.level, soak.tally, seconds, growth, breaches)
    return int(bool(breaches))


def run_threads(count: int, soak: Soak, indices: Iterator[int], deadline: float) -> None:
    threads = [threading.Thread(target=soak.work, args=(indices, deadline)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def report(level: str, tally: Tally, seconds: float, growth: int, breaches: list[str]) -> None:
    total = sum(tally.done.values())
    print(f"{total:,} runs at level {level} in {seconds:.0f} s ({total / seconds:.0f} per second)")
    print(f"memory: {growth / 2**20:+.1f} MiB")
    print(f"fork servers killed: {tally.kills}; runs that ended with a SandboxError: {tally.failures}")
    print(", ".join(f"{name} {count}" for name, count in tally.done.most_common()))
    for breach in breaches[:SHOWN]:
        print(f"BREACH {breach}")
    print(f"{len(breaches)} breaches" if breaches else "no leak, no wrong answer, no untyped failure")


if __name__ == "__main__":
    sys.exit(main())
