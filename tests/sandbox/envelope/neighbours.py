"""What runs in the host beside a program of the corpus: honest neighbours, and observers of the host itself."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from gem.graders.code import CodeGrader
from gem.graders.code.tests import read_tests
from gem.sandbox import Limits, Sandbox

CELL = """
import threading

count = globals().get("count", 0) + 1
thread = threading.Thread(target=print, args=(count,))
thread.start()
thread.join()
open("notes.txt", "w").write("CANARY_SESSION_1")
None
"""
CELL_S = 8.0  # limit of a cell
CPU_S = 0.5  # limit of a test of the graded program, which takes about a tenth of it
GRADED = """
import threading

secret = "CANARY_GRADED_1"


def solve(n):
    open("notes.txt", "w").write(secret)
    parts = []
    halves = [range(0, n, 2), range(1, n, 2)]
    threads = [threading.Thread(target=lambda r=r: parts.append(sum(i * i % 7 for i in r))) for r in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(parts)
"""
ARGUMENTS = (300_000, 300_007)
PAUSE_S = 0.3  # between two answers
TICK_S = 0.005
F_GETPIPE_SZ, PIPE_BYTES = 1032, 1 << 16  # size of a new pipe
SIGNALS = 5_000  # pending signals of a user; at least 10,000 are allowed on most machines


class Observer(threading.Thread):
    """Calls a function every ``pause_s`` seconds until stop().

    An exception of the function ends it and is kept as ``error``, because a thread's exceptions are otherwise lost.
    """

    def __init__(self, step: Callable[[], object], pause_s: float = 0.0) -> None:
        super().__init__(daemon=True)
        self.step, self.pause_s = step, pause_s
        self.error = ""
        self._stopped = threading.Event()

    def run(self) -> None:
        try:
            while True:
                self.step()
                if self._stopped.wait(self.pause_s):
                    return
        except Exception as e:
            self.error = f"{type(e).__name__}: {str(e)[:200]}"

    def stop(self, timeout_s: float) -> None:
        self._stopped.set()
        self.join(timeout_s)
        if self.is_alive():
            self.error = f"no answer {timeout_s:g} s after the program ended"


class Heartbeat:
    """Measures how long threads of this process are kept from running.

    ``gap_s``: longest time between two ticks. ``cpu_gap_s``: most CPU seconds that this process used between two ticks;
    unlike the time, it does not grow because other processes use the processors.
    """

    def __init__(self) -> None:
        self.gap_s = self.cpu_gap_s = 0.0
        self._last = time.monotonic(), time.process_time()
        self.thread = Observer(self._tick, TICK_S)

    def _tick(self) -> None:
        now, cpu = time.monotonic(), time.process_time()
        self.gap_s, self.cpu_gap_s = max(self.gap_s, now - self._last[0]), max(self.cpu_gap_s, cpu - self._last[1])
        self._last = now, cpu


class SharedWatch:
    """Uses what programs of a user share: files of the interpreter's libraries, pending signals, pages of pipes.

    ``found``: what another process took. A file is closed at once, so that an attempt to lease it does not fail only
    because of this watch.
    """

    def __init__(self) -> None:
        self.file = Path(sys.prefix) / "pyvenv.cfg"  # the only one that belongs to this envelope; see enter.sh
        self.found: set[str] = set()
        self.thread = Observer(self._look, 0.02)

    def _look(self) -> None:
        if os.getuid():  # root of all envelopes is the same user
            self._try_quotas()
        try:
            fd = os.open(self.file, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:  # this is not a virtual environment
            return
        except BlockingIOError:
            self.found.add(f"{self.file.name} is leased")
            return
        try:
            self._try_locks(fd, self.file.name)
        finally:
            os.close(fd)

    def _try_quotas(self) -> None:
        pipe = os.pipe()
        if fcntl.fcntl(pipe[0], F_GETPIPE_SZ) < PIPE_BYTES:
            self.found.add("a new pipe is small, as the pages for pipes of the user are taken")
        for fd in pipe:
            os.close(fd)
        pending = int(re.search(r"SigQ:\s*(\d+)/", Path("/proc/self/status").read_text())[1])  # type: ignore[index]
        if pending > SIGNALS:
            self.found.add("the pending signals of the user are taken")

    def _try_locks(self, fd: int, name: str) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            if e.errno == errno.EWOULDBLOCK:
                self.found.add(f"{name} is locked")
        wanted = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        with contextlib.suppress(OSError):
            if struct.unpack("hhqqi4x", fcntl.fcntl(fd, fcntl.F_GETLK, wanted))[0] != fcntl.F_UNLCK:
                self.found.add(f"{name} has a record lock")


class Neighbours:
    """An honest session and an honest graded program, repeated beside a program of the corpus.

    ``misses``: wrong answers. ``latencies``: "cell" and "grade" → seconds of each answer.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.session = sandbox.session(limits=Limits(wall_s=CELL_S))
        self.misses: list[str] = []
        self.latencies: dict[str, list[float]] = {"cell": [], "grade": []}
        self.cells = 0
        outputs = [sum(i * i % 7 for i in range(n)) for n in ARGUMENTS]
        self.suite = read_tests({"inputs": [[n] for n in ARGUMENTS], "outputs": outputs, "fn_name": "solve"})
        self.grader = CodeGrader(limits=Limits(wall_s=CPU_S, cpu_s=CPU_S), reward="fraction")
        for _ in range(2):  # alone; the first answers also start what is started on first use
            self.cell()
            self.grade()
        self.threads = {"session": Observer(self.cell, PAUSE_S), "graded program": Observer(self.grade, PAUSE_S)}

    def cell(self) -> None:
        start, self.cells = time.monotonic(), self.cells + 1
        result = self.session.run(CELL)
        self.latencies["cell"].append(time.monotonic() - start)
        if result.stdout != f"{self.cells}\n":
            self.misses.append(
                f"cell {self.cells} ended with {result.status}: {(result.stdout + result.stderr)[-200:]!r}"
            )
            self.cells = 0 if result.state_lost else self.cells

    def grade(self) -> None:
        start = time.monotonic()
        verdict = self.grader.grade(GRADED, self.suite, self.sandbox)
        self.latencies["grade"].append(time.monotonic() - start)
        if verdict.reward != 1:
            self.misses.append(f"a right program was graded {verdict.reward:g}: {verdict.reason}")

    def start(self) -> None:
        for thread in self.threads.values():
            thread.start()

    def stop(self) -> None:
        for name, thread in self.threads.items():
            thread.stop(60)
            if thread.error:
                self.misses.append(f"the {name} raised {thread.error}")
        self.session.close()

    def slowdowns(self) -> dict[str, float]:
        """Slowest answer beside the program as a multiple of the answer alone."""
        return {what: round(max(spent[2:]) / spent[1], 1) for what, spent in self.latencies.items() if len(spent) > 2}
