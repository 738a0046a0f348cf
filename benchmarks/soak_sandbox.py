"""Run thousands of mixed programs in one sandbox, some of them hostile, and occasionally kill a fork server.

  python benchmarks/soak_sandbox.py                    20,000 runs at level ns: minutes
  python benchmarks/soak_sandbox.py --seconds 30       for 30 seconds, as in CI
  python benchmarks/soak_sandbox.py --machines 64 --seconds 600
  python benchmarks/soak_sandbox.py --machines 4 --seconds 600 --image localhost/debian:bookworm     under podman

The result of every run is checked. The sandbox may fail only if a fork server was killed during the run, and only with
SandboxError. Afterwards no process, descriptor, temporary file, mount or SysV IPC object may be left over, and memory
must not have grown. Prints a report; exits with 1 if a check fails.

With --machines, processes of their own keep that many machines alive, run commands in them, and kill processes of the
machines and the fork servers; each of these owners is killed now and then as well. Every result is checked, and
afterwards no process, mount, temporary file, cgroup or container may be left over.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import fcntl
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from gem.errors import SandboxError
from gem.sandbox import Machine, Sandbox, make_sandbox
from gem.sandbox.containers.engine import LABEL, find_engine
from sandbox import descendants
from soak_jobs import HARMLESS, LIMITS, MACHINE_JOBS, MACHINE_LIMITS, hostile, too_long

HOSTILE_SHARE, KILL_SHARE = 0.05, 0.01
MEMORY_GROWTH = 64 << 20  # bytes allowed for caches and the allocator
DYING_S = 0.5  # after a kill, during which a new run may still fail
MAX_SHOWN = 20  # violations printed
OWNERS = 4  # processes that share the machines
PROCESS_KILL_SHARE = 0.02  # of the commands in machines, before which a process is killed from outside
LEFT_S = 120.0  # for processes of killed owners to disappear
PR_SET_CHILD_SUBREAPER = 36


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


# Machines


def own(args: argparse.Namespace) -> int:
    """Keep machines alive until SIGTERM, and print what was done as JSON."""
    rng, stop = random.Random(args.own), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    options = {"image": args.image} if args.image else {"level": "ns"}
    machines: dict[int, tuple[Machine, float]] = {}  # with the time of the start
    done: collections.Counter[str] = collections.Counter()
    violations, killed_at = [], float("-inf")
    with make_sandbox("podman" if args.image else "zygote", limits=MACHINE_LIMITS, **options) as sandbox:
        machines.update((place, (sandbox.machine(), time.monotonic())) for place in range(args.machines))
        while not stop.is_set():
            place, job = rng.randrange(args.machines), rng.choices(list(MACHINE_JOBS), list(MACHINE_JOBS.values()))[0]
            if machines and not args.image and rng.random() < PROCESS_KILL_SHARE:
                done["processes killed"] += _killed(rng.choice(descendants() or [0]))
                killed_at = time.monotonic()
            born = machines[place][1] if place in machines else time.monotonic()
            try:
                machine = machines[place][0] if place in machines else sandbox.machine()
                machines[place] = machine, born
                done[job.__name__] += 1
                violation = job(machine, rng)
            except (SandboxError, OSError) as e:
                violation = f"{type(e).__name__}: {e}"
            if (violation or rng.random() < 0.01) and place in machines:
                machines.pop(place)[0].close()
            if violation and (killed_at > born - DYING_S or job.__name__ == "bomb"):
                done["failures after a kill"] += 1
            elif violation:
                violations.append(f"{job.__name__}: {violation}")
        alive = len(machines)
        for machine, _ in machines.values():
            machine.close()
    print(json.dumps({"done": done, "violations": violations, "alive": alive}))
    return 0


def _killed(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        if pid:
            os.kill(pid, signal.SIGKILL)
            return 1
    return 0


def soak_machines(args: argparse.Namespace) -> int:
    """Run owners of machines, kill some of them, and check what is left over."""
    # What an owner leaves becomes a child of this process.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    before = {*mounts(containers=bool(args.image)), *abandoned_groups()}
    done: collections.Counter[str] = collections.Counter()
    violations: list[str] = []
    rng, numbers, pids, alive = random.Random(args.seed), itertools.count(args.seed), set[int](), 0
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        owners = [_owner(args, next(numbers), folder) for _ in range(OWNERS)]
        while time.monotonic() < start + args.seconds:
            time.sleep(min(args.kill_s, max(0.0, start + args.seconds - time.monotonic())))
            if time.monotonic() < start + args.seconds:
                place = rng.randrange(OWNERS)
                if owners[place].poll() is not None:
                    violations.append(f"an owner ended with status {owners[place].returncode}")
                owners[place].kill()
                pids.add(owners[place].pid)
                owners[place].communicate()
                done["owners killed"] += 1
                owners[place] = _owner(args, next(numbers), folder)
        for owner in owners:
            pids.add(owner.pid)
            owner.terminate()
        for owner in owners:
            text = owner.communicate()[0]
            try:
                report = json.loads(text)
            except ValueError:
                if owner.returncode == -signal.SIGTERM:  # it had not started yet
                    continue
                violations.append(f"an owner ended with status {owner.returncode} and printed {text[-300:]!r}")
                continue
            done.update(report["done"])
            violations += report["violations"]
            alive += report["alive"]
        seconds = time.monotonic() - start
        groups_left = _groups_after(before)
        if args.image:
            _remove_orphans(args.image, folder)
        if left := _children_after(LEFT_S):
            violations.append(f"processes left: {left}")
        if left := os.listdir(folder):
            violations.append(f"files left: {left}")
    if args.image:
        violations += _containers_left(pids)
    left = (*mounts(containers=bool(args.image)), *groups_left)
    violations += [f"left: {what}" for what in left if what not in before]
    where = f"in containers of {args.image}" if args.image else "at level ns"
    print(f"{args.machines} machines {where}, {alive} of them alive at the end, {seconds:.0f} s")
    print("of the owners that were not killed: " + ", ".join(f"{name} {count}" for name, count in done.most_common()))
    for violation in violations[:MAX_SHOWN]:
        print(f"VIOLATION {violation}")
    print(f"{len(violations)} violations" if violations else "nothing is left over, no wrong results")
    return int(bool(violations))


def _owner(args: argparse.Namespace, number: int, folder: str) -> subprocess.Popen[str]:
    call = [sys.executable, __file__, "--own", str(number), "--machines", str(-(-args.machines // OWNERS))]
    call += ["--image", args.image] if args.image else []
    return subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": folder})


def _groups_after(before: set[str]) -> list[str]:
    """Start fork servers, which remove what killed ones have left, and return the cgroups that remain."""
    for _ in range(5):  # other processes may kill fork servers as well
        with make_sandbox("zygote", level="ns") as sandbox:
            sandbox.machine().close()
        if not (left := [group for group in abandoned_groups() if group not in before]):
            break
    return left


def _children_after(seconds: float) -> list[str]:
    """Wait for all children to end, and return the command lines of those that do not."""
    deadline = time.monotonic() + seconds
    while left := children():
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            return [Path(f"/proc/{pid}/stat").read_text() for pid in children()]
        time.sleep(0.05)
    return []


def _remove_orphans(image: str, folder: str) -> None:
    """Start a container in another process, which removes what killed owners have left."""
    program = f"from gem.sandbox.containers.engine import find_engine; find_engine('podman').flags({image!r})"
    subprocess.run([sys.executable, "-c", program], env=os.environ | {"TMPDIR": folder}, check=True)


def _containers_left(owners: set[int]) -> list[str]:
    engine = find_engine("podman")
    names = engine.ask("ps", "--all", "--filter", f"label={LABEL}", "--format", "{{.Names}}").decode().split()
    return [f"container left: {name}" for name in names if int(name.split("-")[2]) in owners]


def mounts(*, containers: bool) -> list[str]:
    """The mount points of this process, without those of containers unless asked: others may run some."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if containers or "/containers/" not in point]


def abandoned_groups() -> list[str]:
    """The cgroups of servers that no longer exist."""
    found = []
    for folder in Path("/sys/fs/cgroup").rglob("gem-*"):
        if re.fullmatch(r"gem-[0-9a-f]{16}", folder.name):
            with contextlib.suppress(OSError):  # removed by now, or locked by its server
                lock = os.open(folder, os.O_RDONLY)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    found.append(str(folder))
                finally:
                    os.close(lock)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, help="default: 20,000, or unlimited with --seconds")
    parser.add_argument("--seconds", type=float, help="no run starts after this time")
    parser.add_argument("--level", default="ns", choices=("ns", "lsm"))  # basic does not guarantee a cleanup
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--machines", type=int, help="soak this many machines instead")
    parser.add_argument("--image", help="of podman, in which the machines are, instead of level ns")
    parser.add_argument("--kill-s", type=float, default=5.0, help="seconds between kills of owners of machines")
    parser.add_argument("--own", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.own is not None:
        return own(args)
    if args.machines:
        args.seconds = args.seconds or 600.0
        return soak_machines(args)
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
