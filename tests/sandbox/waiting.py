"""Waiting for an event in tests, and for the programs of a sandbox to be idle."""

import contextlib
import os
import time


def until(holds):
    deadline = time.monotonic() + 60  # a bound against hanging, not a measurement
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def cpu_ticks(pids):
    """CPU time of processes in clock ticks; processes that have ended count as 0."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
            total += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
    return total


def processes_of(sandbox):
    """Ids of all descendants of the sandbox's fork servers, without those that have ended."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(name))
    waiting, found = [zygote.pid for zygote in sandbox._pool.zygotes()], []
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def idle(sandbox, seconds=0.3):
    """Whether the programs of the sandbox use no CPU time for so many seconds."""
    pids = processes_of(sandbox)
    before = cpu_ticks(pids)
    time.sleep(seconds)
    return cpu_ticks(pids) == before
