"""Random failures on every backend, for as long as asked: nothing may be lost, left behind or unaccounted for.

  python benchmarks/soak_vector.py --seconds 600
  python benchmarks/soak_vector.py --seconds 30 --backends thread process

In one step of a hundred an environment raises, hangs, or kills its process with signal 9, whichever the backend has to
survive. What goes wrong follows from --seed; when, the machine decides. For each backend:

- slots: every slot goes on to the end.
- failures: an environment writes a line to a file before each fault. The episodes that failed are those of the file;
  where a worker was killed, also those of its other slots. ``stats()`` counts the same.
- leaks: threads, processes, file descriptors and memory, with nothing under way, are what they were after the first
  quarter; and, when the vector is closed, what they were when another had been opened and closed before.

Exit code 1 and a line for each breach. Linux alone: it reads /proc.
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
STEP = 0.001  # seconds that a step sleeps, so that hours of it do not fill the disk
TIMEOUT, HANG = 1.0, 1.6  # seconds; threads that hang are abandoned, and end by themselves soon after
STUCK = 60.0  # seconds without any answer until slots count as lost
CLOSING = 10.0  # seconds for everything to be gone after close()
BACKENDS = ("sync", "thread", "async", "process", "ray")
MORE_MIB = {"ray": 256.0}  # memory that may come on top, 32 MiB for the others: Ray keeps a log and an object store
MORE_PROCESSES = {"ray": 4}  # Ray starts workers ahead


@dataclass(frozen=True)
class Reading:
    """What is in use, by this process and those that it started."""

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
        """What has grown since."""
        allowed = {"processes": MORE_PROCESSES.get(backend, 0), "mib": MORE_MIB.get(backend, 32.0)}
        return [
            f"{name} grew from {before:.0f} to {getattr(self, name):.0f}"
            for name, before in vars(earlier).items()
            if getattr(self, name) > before + allowed.get(name, 0)
        ]


@dataclass
class Soak:
    """One backend under failures.

    Args:
        seconds: of wall clock for all of it.
        log: where the environments write down what is about to happen.
    """

    backend: str
    seconds: float
    seed: int
    log: Path
    ends: list[int] = field(default_factory=lambda: [0] * SLOTS)
    steps: list[int] = field(default_factory=lambda: [0] * SLOTS)
    failed: set[tuple[int, int]] = field(default_factory=set)  # (slot, episode)
    breaches: list[str] = field(default_factory=list)

    def run(self, progress: Any) -> None:
        with self.open() as vec_env:  # what libraries keep once they are in use is no leak
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
            self.breaches += last.over(early, self.backend)
            if idle := [slot for slot in range(SLOTS) if self.steps[slot] == middle[slot]]:
                self.breaches.append(f"slots {idle} were lost")
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
        """Whether a slot lives in a process that can be killed: under async, half of them."""
        return self.backend in ("process", "ray") or (self.backend == "async" and slot >= SLOTS // 2)

    def fault_options(self, slot: int) -> dict[str, Any]:
        kinds = ["raise", "infra", "exit"] * 3
        if self.backend != "sync":
            kinds.append("hang")
        if self.in_worker(slot):
            kinds.append("die")
        return {"kinds": kinds, "hang": 3600.0 if self.in_worker(slot) else HANG}

    def play(self, vec_env: VectorEnv, until: float, progress: Any) -> None:
        """Step and send to random slots until a time of the monotonic clock; then wait for all."""
        chance = random.Random(self.seed)
        while time.monotonic() < until:
            idle = [slot for slot in range(SLOTS) if slot not in vec_env.pending]
            some = chance.sample(idle, chance.randint(0, len(idle)))
            if some and chance.random() < 0.2:
                self.keep(some, vec_env.step(dict.fromkeys(some, "a")))
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
        self.keep(ids, step)

    def keep(self, ids: list[int], step: Any) -> None:
        for slot, reward, over in zip(ids, step.rewards_B, step.terminated_B | step.truncated_B, strict=True):
            self.steps[slot] += 1
            if over:
                if np.isnan(reward):
                    self.failed.add((slot, self.ends[slot]))
                self.ends[slot] += 1

    def quiet_reading(self, vec_env: VectorEnv) -> Reading:
        """When a step of all slots went well, so that every thread of a pool is there, and what hung has ended."""
        failed = -1
        while failed != len(self.failed):
            failed = len(self.failed)
            self.keep(list(range(SLOTS)), vec_env.step(["a"] * SLOTS))
        time.sleep(HANG - TIMEOUT + 0.4)
        return Reading.take()

    def account(self, vec_env: VectorEnv) -> None:
        injected = self.injected()
        if missing := injected - self.failed:
            self.breaches.append(f"{len(missing)} faults made no episode fail: {sorted(missing)[:5]} (slot, episode)")
        others = self.failed - injected
        if alone := [(slot, episode) for slot, episode in others if not self.in_worker(slot)]:
            self.breaches.append(f"{len(alone)} episodes failed without a fault: {sorted(alone)[:5]}")
        if len(others) > self.kills() * (SLOTS // 2 - 1):
            self.breaches.append(f"{len(others)} episodes of neighbours failed, over {self.kills()} deaths")
        counted = sum(stats.failed for stats in vec_env.stats().values())
        if counted != len(self.failed):
            self.breaches.append(f"stats() counted {counted} failures, and {len(self.failed)} were received")

    def faults(self) -> list[list[str]]:
        """[seed, episode, turn, kind] of each."""
        return [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def injected(self) -> set[tuple[int, int]]:
        return {(int(seed) - self.seed, int(episode)) for seed, episode, *_ in self.faults()}

    def kills(self) -> int:
        return sum(kind == "die" for *_, kind in self.faults())

    def check_closed(self, before: Reading) -> None:
        """Whether all is gone soon after close(), memory apart: allocators keep some."""
        give_up = time.monotonic() + CLOSING
        while left := [text for text in Reading.take().over(before, self.backend) if not text.startswith("mib")]:
            if time.monotonic() > give_up:
                self.breaches += [f"after close() {text}" for text in left]
                return
            time.sleep(0.05)

    def summary(self) -> str:
        return (
            f"{self.backend}: {sum(self.steps):,} steps, {sum(self.ends):,} episodes, {len(self.faults())} faults "
            f"({self.kills()} kills), {len(self.failed)} failed episodes, {len(self.breaches)} breaches"
        )


def descendants(pid: int) -> list[int]:
    """The processes below one that are alive or not yet waited for."""
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
    """A bar that fills with time; yields what tells it of failures and steps."""
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
    parser.add_argument("--seconds", type=float, default=600.0, help="for all backends together")
    parser.add_argument(
        "--backends", nargs="+", choices=BACKENDS, default=[b for b in BACKENDS if b != "ray" or has_ray]
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for spec in fixture_envs.SPECS:
        gem.register(spec)
    if "ray" in args.backends:  # one connection for all of it: Ray leaves files open each time it is connected
        importlib.import_module("ray").init(log_to_driver=False, include_dashboard=False)
    breaches = 0
    for backend in args.backends:
        seconds = args.seconds / len(args.backends)
        with tempfile.TemporaryDirectory() as folder, shown(backend, seconds) as progress:
            soak = Soak(backend, seconds, args.seed, Path(folder) / "faults")
            with contextlib.redirect_stdout(sys.stderr):  # where Ray tells of every actor that dies
                soak.run(progress)
            print(soak.summary(), flush=True)
        for breach in soak.breaches:
            print(f"  BREACH {breach}", flush=True)
        breaches += len(soak.breaches)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
