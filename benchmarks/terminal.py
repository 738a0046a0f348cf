"""Measure machines and terminal tasks: starting, commands, verification, and many machines alive at the same time.

  python benchmarks/terminal.py
  python benchmarks/terminal.py --machines 100 --rounds 10
  python benchmarks/terminal.py --image localhost/debian:bookworm     also under podman, in the same run

A command is timed in a machine and in a bash of this machine without isolation, one after the other in each round; the
difference is what isolation costs. With --image, the same tasks are also played under podman, alternately. The load of
the machine is printed, because other work makes every time longer.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gem
from gem.envs.computers.task import TerminalTask, start_task
from gem.envs.computers.terminal.env import FAMILIES
from gem.envs.computers.verify import verify
from gem.sandbox import Limits, Machine, get_sandbox, make_sandbox
from gem.sandbox.machine import HOME, MachineFiles
from sandbox import available_bytes, descendants, pss_bytes, row, yes

RESET_AIM_MS, COMMAND_AIM_MS, MEMORY_AIM = 15.0, 5.0, 4 << 30
LIMITS = Limits(wall_s=60, disk_bytes=64 << 20)
IN_IMAGES = ("Files", "Text", "Logs")  # families whose programs each image of Debian has
COMMANDS = {"`true`": "true", "`ls -l /usr/bin`": "ls -l /usr/bin", "sort 10,000 lines": "seq 10000 | sort"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40, help="samples per line; seeds per family")
    parser.add_argument("--machines", type=int, default=500, help="machines alive at the same time")
    parser.add_argument("--image", help="image of podman for the comparison, with bash and awk")
    parser.add_argument("--containers", type=int, default=10, help="containers alive at the same time")
    args = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    load = f"load before {os.getloadavg()[0]:.1f}"
    print(f"# Terminal tasks (Python {sys.version.split()[0]}, {os.cpu_count()} cores, {load}, {args.rounds} rounds)\n")
    started().close()  # the fork servers
    if args.image:
        beside_podman(args.image, max(1, args.rounds // 4), args.containers)
    met = [episodes(args.rounds), commands(args.rounds), alive(args.machines)]
    print("\nAll aims are met." if all(met) else "\nSome aims are missed.")
    return int(not all(met))


def started() -> Machine:
    machine = get_sandbox().machine(limits=LIMITS)
    expect(machine.exec("echo up").stdout, "up\n")
    return machine


def episodes(rounds: int) -> bool:
    """Time the parts of an episode in each family. Returns whether the aim for the start is met."""
    print("Milliseconds per part of an episode: median (least to most). The first command starts the machine.\n")
    row("", "reset", "reset and first command", "reference solution", "verification", "aim for the start", "met")
    print("|" + "---|" * 7)
    met: list[bool] = []
    for family in FAMILIES:
        parts: list[list[float]] = [[], [], [], []]
        with gem.make(f"terminal:{family}") as env:
            for seed in range(rounds):
                begin = time.perf_counter()
                env.reset(seed=seed)
                parts[0].append(time.perf_counter() - begin)
                env.step("<bash>true</bash>")
                parts[1].append(time.perf_counter() - begin)
                task = env.unwrapped.task()
                with start_task(task, fresh) as machine:
                    parts[2].append(timed(solve, machine, task))
                    parts[3].append(timed(confirm, machine, task))
        median = 1e3 * statistics.median(parts[1])
        met.append(median <= RESET_AIM_MS)
        row(f"`terminal:{family}`", *map(spread, parts), f"{RESET_AIM_MS:g}", yes(met[-1]))
    print(f"\nCPU milliseconds of all processes for a machine, from its start to its end: {start_cpu_ms():.1f}.")
    return all(met)


def beside_podman(image: str, rounds: int, containers: int) -> None:
    """Play the same tasks at level ns and under podman, one after the other."""
    with make_sandbox("podman", image=image, limits=LIMITS) as podman, Bash() as bash:

        def container(files: MachineFiles) -> Machine:
            return podman.machine(files=files, folder=HOME)

        found: dict[str, dict[str, list[float]]] = {}
        for seed in range(rounds):
            for family in IN_IMAGES:
                for name, start in (("ns", fresh), ("podman", container)):
                    for part, seconds in played(family, seed, start, bash).items():
                        found.setdefault(part, {}).setdefault(name, []).append(seconds)
        tasks = ", ".join(f"`terminal:{family}`" for family in IN_IMAGES)
        print(f"Beside podman ({image}), on the same tasks of {tasks}. Milliseconds: median (least to most).\n")
        row("", "ns", "podman")
        print("|" + "---|" * 3)
        for part, times in found.items():
            row(part, *(spread(times[name]) for name in ("ns", "podman")))
        memory = []
        for start in (fresh, container):
            start([]).close()
            before = pss_bytes()
            machines = [start([]) for _ in range(containers)]
            for machine in machines:
                machine.exec("true")
            used = pss_bytes() - before + sum(container_bytes(getattr(machine, "name", "")) for machine in machines)
            memory.append(f"{used / containers / 2**20:.1f}")
            for machine in machines:
                machine.close()
        row(f"proportional set size per machine in MiB, of {containers}", *memory)
        print()


def played(family: str, seed: int, start: Callable[[MachineFiles], Machine], bash: Bash) -> dict[str, float]:
    """Return the seconds of the parts of an episode that solves its task."""
    with gem.make(f"terminal:{family}") as env:
        env.reset(seed=seed)
        task, begin = env.unwrapped.task(), time.perf_counter()
        with start_task(task, start) as machine:
            machine.exec("true")
            found = {"reset and first command": time.perf_counter() - begin}
            for name, command in COMMANDS.items():
                alone = timed(bash.exec, command)
                found[f"{name}, over its own cost"] = timed(machine.exec, command) - alone
            found["reference solution"] = timed(solve, machine, task)
            begin = time.perf_counter()
            expect(verify(task, machine, start), "")
            return found | {"verification": time.perf_counter() - begin}


def container_bytes(name: str) -> int:
    """Return the proportional set size of a container: its monitors, which are no children of ours, and their children.

    Args:
        name: of the container; "" for none.
    """
    parents = {}
    monitors, total = set(), 0
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[place] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if name and (place / "comm").read_text() == "conmon\n" and name in (place / "cmdline").read_text():
                monitors.add(int(place.name))
    for place, parent in parents.items():
        if parent in monitors or int(place.name) in monitors:
            with contextlib.suppress(OSError):
                found = re.search(r"^Pss:\s+(\d+)", (place / "smaps_rollup").read_text(), re.MULTILINE)
                total += int(found[1]) << 10 if found else 0
    return total


def start_cpu_ms(count: int = 100) -> float:
    """Return the CPU milliseconds of all processes for a machine, from start to close. Load hardly changes them."""
    for _ in range(5):
        started().close()
    before = cpu_s()
    for _ in range(count):
        started().close()
    time.sleep(1)  # until the fork server has collected the last machine
    return 1e3 * (cpu_s() - before) / count


def cpu_s() -> float:
    """Return the CPU seconds of this process and its descendants, including those that have ended."""
    ticks = 0
    for pid in (os.getpid(), *descendants()):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def commands(rounds: int) -> bool:
    """Compare commands in a machine and in a bash without isolation. Returns whether the aim is met."""
    print("\nMilliseconds per command: median (least to most).\n")
    row("", "bash", "machine", "median difference", "aim", "met")
    print("|" + "---|" * 6)
    met = []
    with started() as machine, Bash() as bash:
        for name, command in COMMANDS.items():
            times: list[list[float]] = [[], []]
            for _ in range(rounds):
                times[0].append(timed(bash.exec, command))
                times[1].append(timed(machine.exec, command))
            over = 1e3 * statistics.median(b - a for a, b in zip(*times, strict=True))
            met.append(over <= COMMAND_AIM_MS)
            row(name, *map(spread, times), f"{over:.1f}", f"{COMMAND_AIM_MS:g}", yes(met[-1]))
    return all(met)


def alive(count: int) -> bool:
    """Keep machines alive at the same time. Returns whether the aim for their memory is met."""
    print(f"\n{count} machines alive at the same time, each with its shell.\n")
    before, free, begin = pss_bytes(), available_bytes(), time.perf_counter()
    machines = [started() for _ in range(count)]
    seconds = time.perf_counter() - begin
    used, decrease = pss_bytes() - before, free - available_bytes()
    for number, machine in enumerate(machines):
        machine.exec(f"x={number}; echo $x > kept")
    for number, machine in enumerate(machines):
        expect(machine.exec("cat kept; echo $x").stdout, f"{number}\n{number}\n")
    closing = timed(list, map(Machine.close, machines))
    aim = MEMORY_AIM * count // 500
    met = max(used, decrease) <= aim
    row("", "measured", "aim", "met")
    print("|---|---|---|---|")
    row(
        "memory, MiB: proportional set size", f"{used / 2**20:.0f}", f"{MEMORY_AIM * count / 500 / 2**20:.0f}", yes(met)
    )
    row("decrease of the machine's available memory, MiB", f"{decrease / 2**20:.0f}", "", "")
    row("starts per second, from one thread, first command done", f"{count / seconds:.0f}", "", "")
    row("seconds to close all", f"{closing:.2f}", "", "")
    return met


class Bash:
    """A bash of this machine without isolation that reads commands as the shell of a machine does."""

    def __enter__(self) -> Bash:
        loop = 'while IFS= read -r -d "" c; do eval "$c" </dev/null; printf "\\0"; done'
        self.process = subprocess.Popen(
            ["bash", "--norc", "-c", loop], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        return self

    def exec(self, command: str) -> bytes:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(command.encode() + b"\0")
        self.process.stdin.flush()
        output = b""
        while not output.endswith(b"\0"):
            output += os.read(self.process.stdout.fileno(), 1 << 16)
        return output[:-1]

    def __exit__(self, *exception: object) -> None:
        self.process.communicate()


def fresh(files: MachineFiles) -> Machine:
    return get_sandbox().machine(files=files, limits=LIMITS)


def solve(machine: Machine, task: TerminalTask) -> None:
    for command in task.solution:
        machine.exec(command)


def confirm(machine: Machine, task: TerminalTask) -> None:
    expect(verify(task, machine, fresh), "")


def timed(work: Callable[..., object], *arguments: object) -> float:
    """Return the seconds that a call takes."""
    begin = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begin


def spread(seconds: list[float]) -> str:
    return f"{1e3 * statistics.median(seconds):.1f} ({1e3 * min(seconds):.1f} to {1e3 * max(seconds):.1f})"


def expect(found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"expected {expected!r:.300}, got {found!r:.300}")


if __name__ == "__main__":
    sys.exit(main())
