"""Run one program of the corpus in the sandbox, and report what it changed or read on the host around it.

Usage inside an envelope: python -m envelope.trial PROGRAM SETTING

Prints one line of JSON: ``misses``, the violated invariants; or ``unavailable``, why the setting is not available here.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from envelope import host
from envelope.invariants import Invariant
from envelope.neighbours import Heartbeat, Neighbours, SharedWatch
from envelope.programs import Program, load
from envelope.setting import LEVELS, Setting
from gem.errors import SandboxError
from gem.graders.code.grader import WALL_FACTOR, CodeGrader
from gem.graders.code.tests import read_tests
from gem.sandbox import Case, Limits, Result, Sandbox, Status, make_sandbox

WALL_S = 3.0  # limit of a program without TIMEOUT
GRADED_S = 1.0  # time limit of a test if the program is graded; a test that waits takes 14 times as long
ATTEMPTS = 2  # a test that exceeds its wall-clock limit but not its CPU limit runs twice
BENIGN_WALL_S = 20.0  # of a harmless program; longer, because several share the machine
GRACE_S = 5.0  # allowed delay of each run beyond its limit; on a machine with other work, times slowness()
SETTLE_S = 0.7  # wait for effects of leftover processes
QUIET = 5  # equal snapshots in a row, 0.1 s apart
CELL_PAUSE_S = 1.0  # between two cells
FOLLOW_UP_S = 60.0  # limit of a harmless run afterwards, which is not measured
GONE_S = 20.0  # for killed processes to end on a busy machine
REAP_S = 0.2  # for the parent of orphans to reap them
HOST_GROWTH = 300 << 20  # bytes
HOST_GAP_S = 10.0  # longest time between two ticks of a thread of the host, on a machine with other work
HOST_CPU_GAP_S = 1.0  # most CPU seconds of the host between two ticks
HOST_CPU_S = 0.3  # CPU seconds of the host for each call of the sandbox, and 1 s for all
OBSERVERS_CPU = 0.1  # share of a core that the threads of the host use that watch it
TEXT_KEPT = 8_000_000  # characters of output, at most
FOLLOW_UP = 'import os\nprint(6 * 7, os.environ.get("EVIL"), os.path.exists("left.txt"))'


def main() -> None:
    report = os.dup(1)
    terminal = host.take_terminal()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    program, setting = load(Path(sys.argv[1])), Setting.parse(sys.argv[2])
    answer: dict[str, Any]
    try:
        answer = Trial(program, setting, host.Host(*terminal)).run()
    except Unavailable as e:
        answer = {"unavailable": str(e)}
    os.write(report, json.dumps(answer).encode() + b"\n")
    os._exit(0)


class Unavailable(Exception):
    """The setting is not available on this machine."""


class Trial:
    """One program against one host."""

    def __init__(self, program: Program, setting: Setting, target: host.Host) -> None:
        self.program, self.setting, self.target = program, setting, target
        self.misses: list[str] = []
        self.changed: set[str] = set()  # reported once, not again after close()
        self.output = ""
        self.calls = 0
        self.host_cpu_s = 0.0

    def run(self) -> dict[str, Any]:
        before_sandbox, processes_before, groups = self.target.snapshot(), host.processes(), host.cgroups()
        with open_sandbox(self.setting) as sandbox:
            warm_up(sandbox)
            if self.setting.cgroup and self.setting.level in LEVELS and not host.cgroups():
                raise Unavailable("the sandbox made no cgroup")
            before, running, peak = self.target.snapshot(), host.processes(), host.peak_bytes()
            neighbours = self.observe(sandbox)
            time.sleep(float(self.program.fields.get("AFTER", SETTLE_S)))
            self.compare(before, self.target.snapshot(), "")
            self.look_for_processes(running, "")
            self.expect(host.peak_bytes() - peak < HOST_GROWTH, Invariant.HOST_MEMORY, "grew by 300 MiB or more")
            self.check_output()
            self.follow_up(sandbox)
        time.sleep(REAP_S)
        self.compare(before_sandbox, self.target.snapshot(), " after close()")
        self.look_for_processes(processes_before, " after close()")
        self.expect(host.cgroups() == groups, Invariant.HOST_UNCHANGED, f"cgroups remain: {host.cgroups()[:3]}")
        found = {"misses": self.misses, "output": self.output[-400:], "host_cpu_s": self.host_cpu_s}
        return {**found, "slowdowns": neighbours and neighbours.slowdowns()}

    def expect(self, held: bool, invariant: Invariant, detail: str) -> None:
        if not held and invariant.miss(detail) not in self.misses:
            self.misses.append(invariant.miss(detail))

    def observe(self, sandbox: Sandbox) -> Neighbours | None:
        """Attack, and watch the host and the neighbours meanwhile."""
        neighbours = Neighbours(sandbox) if self.setting.neighbours else None
        heartbeat, shared = Heartbeat(), SharedWatch()
        start, cpu_s = time.monotonic(), time.process_time()
        for thread in (heartbeat.thread, shared.thread):
            thread.start()
        if neighbours is not None:
            neighbours.start()
        self.attack(sandbox)
        self.host_cpu_s = cpu_s = time.process_time() - cpu_s
        if neighbours is not None:
            neighbours.stop()
            self.expect(not neighbours.misses, Invariant.NEIGHBOURS, "; ".join(neighbours.misses[:3]))
        else:
            wall_s = time.monotonic() - start
            most = 1 + HOST_CPU_S * self.calls + OBSERVERS_CPU * wall_s
            spent = f"{cpu_s:.1f} s for {self.calls} calls in {wall_s:.0f} s"
            self.expect(cpu_s < most, Invariant.HOST_CPU, spent)
        for thread in (heartbeat.thread, shared.thread):
            thread.stop(30)
            self.expect(not thread.error, Invariant.HOST_RESPONSIVE, f"a thread of the host: {thread.error}")
        alive = heartbeat.cpu_gap_s < HOST_CPU_GAP_S and heartbeat.gap_s < HOST_GAP_S
        gap = f"{heartbeat.gap_s:.1f} s; the host used up to {heartbeat.cpu_gap_s:.1f} s of CPU meanwhile"
        self.expect(alive, Invariant.HOST_RESPONSIVE, f"another thread did not run for {gap}")
        self.expect(not shared.found, Invariant.SHARED_FREE, ", ".join(sorted(shared.found)))
        return neighbours

    def attack(self, sandbox: Sandbox) -> None:
        """Run the program, and grade it if it has GRADE. A harmless program must also print what it should."""
        limits, source, copies = self.limits(), self.program.source, self.program.copies
        with ThreadPoolExecutor(copies) as pool:
            runs = [
                pool.submit(self.timed, sandbox.run, source, stdin=self.program.stdin, limits=limits, runs=copies)
                for _ in range(copies)
            ]
        result = runs[0].result()
        if self.program.benign and result is not None:
            good = result.ok and self.program.expected in result.stdout
            self.expect(good, Invariant.HARMLESS, described(result))
        # On a busy machine it may reach the wall-clock limit first.
        exceeded = result is not None and result.status is Status.TIMEOUT and result.wall_s < limits.wall_s
        if "CPU" in self.program.fields and exceeded:
            reported = result.cpu_s > limits.cpu_seconds / 2
            self.expect(
                reported, Invariant.CPU_REPORTED, f"{result.cpu_s:.2f} s, the limit is {limits.cpu_seconds:g} s"
            )
        if "TESTS" in self.program.fields:
            cases = [Case(stdin=f"{index}\n") for index in range(int(self.program.fields["TESTS"]))]
            self.timed(sandbox.run_tests, self.program.source, cases, limits=limits, runs=len(cases), attempts=ATTEMPTS)
        if "CELLS" in self.program.fields:
            self.run_cells(sandbox, limits)
        if "GRADE" in self.program.fields:
            self.grade(sandbox, result, limits)

    def limits(self) -> Limits:
        wall_s = self.program.wall_s(BENIGN_WALL_S if self.program.benign else WALL_S)
        cpu_s = self.program.fields.get("CPU")
        return Limits(wall_s=wall_s, cpu_s=None if cpu_s is None else float(cpu_s))

    def timed(
        self, call: Any, *arguments: Any, limits: Limits, runs: int = 1, attempts: int = 1, **options: Any
    ) -> Any:
        """Call the sandbox, which must neither raise nor be late. Returns its result, or None if it raised."""
        self.calls += runs
        start, value = time.monotonic(), None
        try:
            value = call(*arguments, limits=limits, **options)
        except Exception as e:
            self.expect(False, Invariant.NO_EXCEPTION, f"{call.__name__}(): {type(e).__name__}: {str(e)[:200]}")
        late = time.monotonic() - start - runs * attempts * limits.wall_s
        grace = runs * attempts * GRACE_S
        in_time = late < grace or late < grace * slowness()
        self.expect(in_time, Invariant.IN_TIME, f"{call.__name__}() was {late:.1f} s late")
        for result in value if isinstance(value, list) else [value]:
            if isinstance(result, Result):
                self.output += result.stdout + result.stderr + (result.value or "")
        return value

    def run_cells(self, sandbox: Sandbox, limits: Limits) -> None:
        """Run the program as a cell of a session, wait, and run a harmless cell. "{cell}" in it is its number."""
        with sandbox.session(limits=limits) as session:
            session.run("None", wall_s=60)  # the server of sessions may still be starting

            def cell(source: str, *, limits: Limits) -> Result:
                return session.run(source, wall_s=limits.wall_s)

            for number in range(int(self.program.fields["CELLS"])):
                self.timed(cell, f"CELL = {number}\n{self.program.source}", limits=limits)
                time.sleep(CELL_PAUSE_S)

    def grade(self, sandbox: Sandbox, result: Result | None, limits: Limits) -> None:
        """Require that the program fails its test: run as a script, and graded as a script and as a function."""
        wanted, function = self.program.fields["GRADE"], self.program.fields.get("FUNC")
        right = result is not None and result.ok and result.stdout.strip() == wanted
        self.expect(not right, Invariant.NOT_FORGED, "run() was graded correct")
        tests = {"inputs": [self.program.stdin, "2\n"], "outputs": [wanted, wanted]}
        suites = [read_tests(tests)]
        if function:
            value = json.loads(wanted) if wanted.isdigit() else wanted
            suites.append(read_tests({"inputs": [[1], [2]], "outputs": [value, value], "fn_name": function}))
        for suite in suites:
            limits = replace(limits, wall_s=min(limits.wall_s, GRADED_S))
            grader = CodeGrader(limits=limits, reward="fraction")

            elapsed = replace(limits, wall_s=ATTEMPTS * (WALL_FACTOR * (limits.cpu_s or limits.wall_s) + 1))

            def graded(program: str, *, limits: Limits, grader: CodeGrader = grader, suite: Any = suite) -> Any:
                return grader.grade(program, suite, sandbox)

            verdict = self.timed(graded, self.program.source, limits=elapsed, runs=2)
            self.expect(verdict is None or verdict.reward == 0, Invariant.NOT_FORGED, f"graded as passed: {verdict}")

    def compare(self, before: dict[str, Any], after: dict[str, Any], when: str) -> None:
        for what, old in before.items():
            new = after[what]
            if old != new and what not in self.changed:
                self.changed.add(what)
                change = changed_files(old, new) if what == "files" else f"{str(old)[-120:]} -> {str(new)[-120:]}"
                self.expect(False, Invariant.HOST_UNCHANGED, f"{what} changed{when}: {change}")

    def look_for_processes(self, before: dict[int, str], when: str) -> None:
        """Report and kill processes that did not exist before. Killed ones get GONE_S seconds to end."""
        until, left = time.monotonic() + GONE_S, None
        while left is None or (left and time.monotonic() < until):
            time.sleep(0.1 if left else 0)
            left = {pid: what for pid, what in host.processes().items() if pid not in before}
        names = " ".join(sorted(set(left.values()))[:4])
        self.expect(not left, Invariant.NOTHING_LEFT, f"{len(left)} processes{when}: {names}")
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def check_output(self) -> None:
        leaked = sorted(set(host.CANARY.findall(self.output)))
        self.expect(not leaked, Invariant.NO_LEAK, " ".join(leaked))
        claims = sorted({line[:200] for line in self.output.splitlines() if line.startswith("PWNED")})
        self.expect(not claims, Invariant.NO_CLAIM, "; ".join(claims[:4]))
        kept = len(self.output)
        self.expect(kept <= TEXT_KEPT * self.calls, Invariant.OUTPUT, f"{kept} characters were kept")
        required = self.program.fields.get("REQUIRE", "")
        self.expect(required in self.output, Invariant.OUTPUT, f"{required!r} is not in it")

    def follow_up(self, sandbox: Sandbox) -> None:
        """Require that a harmless run afterwards works and finds no traces of the program."""
        result = self.timed(sandbox.run, FOLLOW_UP, limits=Limits(wall_s=FOLLOW_UP_S))
        good = result is not None and result.ok and result.stdout.strip() == "42 None False"
        self.expect(good, Invariant.NEXT_RUN, described(result))


def slowness() -> float:
    """Return the seconds that this process takes for a CPU second now: 1 on an idle machine."""
    start, end = time.monotonic(), time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
    return (time.monotonic() - start) / 0.1


def described(result: Result | None) -> str:
    return "it raised" if result is None else f"{result.status} {result.stdout[-80:]!r} {result.stderr[-300:]!r}"


def changed_files(old: dict[str, object], new: dict[str, object]) -> str:
    paths = [path for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path)]
    signs = ["+" if path not in old else "-" if path not in new else "~" for path in paths]
    return f"{len(paths)}: {' '.join(sign + path for sign, path in zip(signs[:4], paths, strict=False))}"


def open_sandbox(setting: Setting) -> Sandbox:
    try:
        if setting.level not in LEVELS:
            return make_sandbox(setting.level)  # another backend, by its name
        sandbox = make_sandbox("zygote", level=setting.level)
    except SandboxError as e:
        raise Unavailable(str(e)) from e
    return sandbox


def warm_up(sandbox: Sandbox) -> None:
    """Run once and wait until processes and files are stable, so that servers started lazily are not reported."""
    result = sandbox.run("print('warm')")
    if result.stdout != "warm\n":
        raise Unavailable(f"the first run failed: {result}")
    seen: list[object] = []
    while len(seen) < QUIET or any(look != seen[-1] for look in seen[-QUIET:]):
        seen.append((sorted(host.processes()), sorted(host.files())))
        time.sleep(0.1)


if __name__ == "__main__":
    main()
