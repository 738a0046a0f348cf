"""Inject random faults into every backend and check that no slot, episode or resource is lost.

  python benchmarks/soak_vector.py --seconds 600
  python benchmarks/soak_vector.py --seconds 30 --backends thread process

In one of a hundred steps an environment raises, hangs, or kills its process with SIGKILL, as far as the backend has to
survive it. The faults are determined by --seed, their timing is not. Checks for each backend:

- slots: every slot is stepped until the end.
- failures: each environment writes a line to a file before a fault. The failed episodes are those in the file and, if a
  worker was killed, those of its other slots. ``stats()`` counts the same number.
- leaks: at the end, with no slot pending, the numbers of threads, processes and file descriptors and the memory are the
  same as after the first quarter. After close() they are the same as before the vector was opened.

Prints a line per violation; the exit code is 1 if there is any. Linux only, because it reads /proc.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import importlib.util
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import gem
from gem.vector import VectorEnv

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "vector"))
import fixture_envs

SLOTS, RATE = 16, 0.01
STEP = 0.001  # seconds that a step sleeps, to limit the size of the fault log
TIMEOUT, HANG = 1.0, 1.6  # seconds; abandoned threads end by themselves soon after the time limit
STUCK = 60.0  # seconds without a result until slots count as lost
CLOSING = 10.0  # seconds for all resources to be released after close()
BACKENDS = ("sync", "thread", "async", "process", "ray")
MORE_MIB = {"ray": 256.0}  # allowed growth of memory, 32 MiB for the others; Ray keeps a log and an object store
MORE_PROCESSES = {"ray": 4}  # Ray starts workers in advance


@dataclass(frozen=True)
class Reading:
    """Resources in use by this process and its descendants."""

    threads: int
    processes: int
    fds: int
    mib: float

    @classmethod
    def take(cls) -> Reading:
        gc.collect()
        below = descendants(os.getpid())
        mib = sum(resident_mib(pid) for pid in [os.getpid(), *below])
        return cls(threading.active_count(), len(below), len(os.listdir("/proc/self/fd")), mib)

    def over(self, earlier: Reading, backend: str) -> list[str]:
        """Return a text per resource that has grown since an earlier reading."""
        allowed = {"processes": MORE_PROCESSES.get(backend, 0), "mib": MORE_MIB.get(backend, 32.0)}
        return [
            f"{name} grew from {before:.0f} to {getattr(self, name):.0f}"
            for name, before in vars(earlier).items()
            if getattr(self, name) > before + allowed.get(name, 0)
        ]


@dataclass
class Soak:
    """A run of one backend with faults.

    Args:
        seconds: wall-clock time of the run.
        log: file to which the environments write their faults.
    """

    backend: str
    seconds: float
    seed: int
    log: Path
    ends: list[int] = field(default_factory=lambda: [0] * SLOTS)
    steps: list[int] = field(default_factory=lambda: [0] * SLOTS)
    failed: set[tuple[int, int]] = field(default_factory=set)  # (slot, episode)
    violations: list[str] = field(default_factory=list)

    def run(self, progress: Any) -> None:
        with self.open() as vec_env:  # resources that libraries keep after first use are not leaks
            vec_env.reset(seed=self.seed)
        before = Reading.take()
        with self.open() as vec_env:
            vec_env.reset(seed=self.seed)
            start = time.monotonic()
            self.play(vec_env, start + self.seconds / 4, progress)
            early = self.quiet_reading(vec_env)
            middle = list(self.steps)
            self.play(vec_env, start + self.seconds, progress)
            last = self.quiet_reading(vec_env)
            self.violations += last.over(early, self.backend)
            if idle := [slot for slot in range(SLOTS) if self.steps[slot] == middle[slot]]:
                self.violations.append(f"slots {idle} were lost")
            self.account(vec_env)
        self.check_closed(before)

    def open(self) -> VectorEnv:
        options: dict[str, Any] = {}
        if self.backend != "sync":
            options = {"timeout": TIMEOUT, "num_workers": 2 if self.backend in ("process", "ray") else SLOTS // 2}
        return gem.make_vec(
            [f"fixture:Faulty-{'process' if self.in_worker(slot) else 'thread'}-v0" for slot in range(SLOTS)],
            vec_kwargs=[self.fault_options(slot) for slot in range(SLOTS)],
            backend=self.backend,
            on_failure="restart",
            rate=RATE,
            seconds=STEP,
            log=str(self.log),
            **options,
        )

    def in_worker(self, slot: int) -> bool:
        """Return whether a slot runs in a worker that can be killed; with async, half of them do."""
        return self.backend in ("process", "ray") or (self.backend == "async" and slot >= SLOTS // 2)

    def fault_options(self, slot: int) -> dict[str, Any]:
        kinds = ["raise", "infra", "exit"] * 3
        if self.backend != "sync":
            kinds.append("hang")
        if self.in_worker(slot):
            kinds.append("die")
        return {"kinds": kinds, "hang": 3600.0 if self.in_worker(slot) else HANG}

    def play(self, vec_env: VectorEnv, until: float, progress: Any) -> None:
        """Step and send to random slots until a time of the monotonic clock, then receive all pending slots."""
        chance = random.Random(self.seed)
        while time.monotonic() < until:
            idle = [slot for slot in range(SLOTS) if slot not in vec_env.pending]
            some = chance.sample(idle, chance.randint(0, len(idle)))
            if some and chance.random() < 0.2:
                self.record(some, vec_env.step(dict.fromkeys(some, "a")))
            else:
                vec_env.send(dict.fromkeys(some, "a"))
            if vec_env.pending:
                self.receive(vec_env, chance.randint(1, len(vec_env.pending)))
            progress(len(self.failed), sum(self.steps))
        if vec_env.pending:
            self.receive(vec_env, len(vec_env.pending))

    def receive(self, vec_env: VectorEnv, min_envs: int) -> None:
        ids, step = vec_env.recv(min_envs=min_envs, timeout=STUCK)
        if len(ids) < min_envs:
            raise RuntimeError(f"slots {vec_env.pending} did not come back within {STUCK:g} s")
        self.record(ids, step)

    def record(self, ids: list[int], step: Any) -> None:
        for slot, reward, over in zip(ids, step.rewards_B, step.terminated_B | step.truncated_B, strict=True):
            self.steps[slot] += 1
            if over:
                if np.isnan(reward):
                    self.failed.add((slot, self.ends[slot]))
                self.ends[slot] += 1

    def quiet_reading(self, vec_env: VectorEnv) -> Reading:
        """Take a reading after a step without failures, when all threads exist and hung calls have ended."""
        failed = -1
        while failed != len(self.failed):
            failed = len(self.failed)
            self.record(list(range(SLOTS)), vec_env.step(["a"] * SLOTS))
        time.sleep(HANG - TIMEOUT + 0.4)
        return Reading.take()

    def account(self, vec_env: VectorEnv) -> None:
        injected = self.injected()
        if missing := injected - self.failed:
            self.violations.append(f"{len(missing)} faults failed no episode: {sorted(missing)[:5]} (slot, episode)")
        others = self.failed - injected
        if alone := [(slot, episode) for slot, episode in others if not self.in_worker(slot)]:
            self.violations.append(f"{len(alone)} episodes failed without a fault: {sorted(alone)[:5]}")
        if len(others) > self.kills() * (SLOTS // 2 - 1):
            self.violations.append(f"{len(others)} episodes of neighbours failed, over {self.kills()} deaths")
        counted = sum(stats.failed for stats in vec_env.stats().values())
        if counted != len(self.failed):
            self.violations.append(f"stats() counted {counted} failures, but {len(self.failed)} were received")

    def faults(self) -> list[list[str]]:
        """Return [seed, episode, turn, kind] of each fault."""
        return [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def injected(self) -> set[tuple[int, int]]:
        return {(int(seed) - self.seed, int(episode)) for seed, episode, *_ in self.faults()}

    def kills(self) -> int:
        return sum(kind == "die" for *_, kind in self.faults())

    def check_closed(self, before: Reading) -> None:
        """Check that all resources except memory are released soon after close(). Allocators keep some memory."""
        deadline = time.monotonic() + CLOSING
        while left := [text for text in Reading.take().over(before, self.backend) if not text.startswith("mib")]:
            if time.monotonic() > deadline:
                self.violations += [f"after close() {text}" for text in left]
                return
            time.sleep(0.05)

    def summary(self) -> str:
        return (
            f"{self.backend}: {sum(self.steps):,} steps, {sum(self.ends):,} episodes, {len(self.faults())} faults "
            f"({self.kills()} kills), {len(self.failed)} failed episodes, {len(self.violations)} violations"
        )


def descendants(pid: int) -> list[int]:
    """Return the descendants of a process that are alive or zombies."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            parent = path.read_text().rpartition(")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(path.parent.name))
    below, new = [], [pid]
    while new:
        new = [child for parent in new for child in children.get(parent, [])]
        below += new
    return below


def resident_mib(pid: int) -> float:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return 0.0


@contextlib.contextmanager
def shown(name: str, seconds: float) -> Iterator[Any]:
    """Show a progress bar over time. Yields a function to report (failed episodes, steps)."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=seconds)
        start = time.monotonic()
        yield lambda failed, steps: progress.update(
            task, completed=time.monotonic() - start, description=f"{name}: {failed} failed, {steps:,} steps"
        )


def main() -> int:
    has_ray = importlib.util.find_spec("ray") is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="duration in seconds, for all backends together")
    parser.add_argument(
        "--backends", nargs="+", choices=BACKENDS, default=[b for b in BACKENDS if b != "ray" or has_ray]
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for spec in fixture_envs.SPECS:
        gem.register(spec)
    if "ray" in args.backends:  # one connection for all backends, because Ray leaves files open with each connection
        importlib.import_module("ray").init(log_to_driver=False, include_dashboard=False)
    violations = 0
    for backend in args.backends:
        seconds = args.seconds / len(args.backends)
        with tempfile.TemporaryDirectory() as folder, shown(backend, seconds) as progress:
            soak = Soak(backend, seconds, args.seed, Path(folder) / "faults")
            with contextlib.redirect_stdout(sys.stderr):  # Ray prints about every actor that dies
                soak.run(progress)
            print(soak.summary(), flush=True)
        for violation in soak.violations:
            print(f"  VIOLATION {violation}", flush=True)
        violations += len(soak.violations)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
