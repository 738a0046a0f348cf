"""Measure the CPU time of `import gem` and `gem list` against a bare interpreter.

python benchmarks/import_and_list.py
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys

RUNS = 11
COMMANDS = {
    "bare interpreter": [sys.executable, "-c", "pass"],
    "import gem": [sys.executable, "-c", "import gem"],
    "import gem; gem.make": [sys.executable, "-c", "import gem; gem.make('game:GuessTheNumber-v0')"],
    "gem list": [sys.executable, "-m", "gem", "list"],
}
LIMITS = {"import gem": 0.1, "gem list": 0.5}  # CPU seconds more than the bare interpreter


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> int:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(RUNS):  # interleaved, so that other work on the machine affects all commands
        for name, command in COMMANDS.items():
            times[name].append(cpu_seconds(command))
    base = statistics.median(times["bare interpreter"])
    print(f"CPU seconds, {RUNS} runs each, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    print(f"{'':24}{'min':>8}{'median':>8}{'max':>8}{'ratio':>8}")
    slow = []
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(f"{name:24}{min(seconds):8.3f}{median:8.3f}{max(seconds):8.3f}{median / base:8.1f}")
        if median - base > LIMITS.get(name, float("inf")):
            slow.append(name)
    print("over the limit: " + ", ".join(slow) if slow else "all within the limits")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
