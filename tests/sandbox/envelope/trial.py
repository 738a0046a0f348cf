"""Run one program of the corpus in the sandbox, and report what it changed or read on the host around it.

Usage inside an envelope: python -m envelope.trial PROGRAM LEVEL

Prints one line of JSON: ``misses``, a list of violations; or ``unavailable``, why the level is not available here.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from envelope import host
from envelope.programs import Program, load
from gem.errors import SandboxError
from gem.graders.code import CodeGrader
from gem.graders.code_tests import read_tests
from gem.sandbox import Limits, Result, Sandbox, make_sandbox

WALL_S = 3.0  # limit of a program without TIMEOUT
BENIGN_WALL_S = 20.0  # of a harmless program; longer, because several share the machine
GRACE_S = 2.0  # allowed delay of a call beyond its limit
SETTLE_S = 0.7  # wait for effects of leftover processes
QUIET = 5  # equal snapshots in a row, 0.1 s apart
REAP_S = 0.2  # for the parent of orphans to reap them
HOST_GROWTH = 300 << 20  # bytes
TEXT_KEPT = 8_000_000  # characters of output, at most
FOLLOW_UP = 'import os\nprint(6 * 7, os.environ.get("EVIL"), os.path.exists("left.txt"))'


def main() -> None:
    report = os.dup(1)
    terminal = host.take_terminal()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    program, level = load(Path(sys.argv[1])), sys.argv[2]
    answer: dict[str, Any]
    try:
        answer = Trial(program, level, host.Host(*terminal)).run()
    except Unavailable as e:
        answer = {"unavailable": str(e)}
    os.write(report, json.dumps(answer).encode() + b"\n")
    os._exit(0)


class Unavailable(Exception):
    """The level is not available on this machine."""


class Trial:
    """One program against one host."""

    def __init__(self, program: Program, level: str, target: host.Host) -> None:
        self.program, self.level, self.target = program, level, target
        self.misses: list[str] = []
        self.changed: set[str] = set()  # reported once, not again after close()
        self.output = ""

    def run(self) -> dict[str, Any]:
        before_sandbox, processes_before = self.target.snapshot(), host.processes()
        with open_sandbox(self.level) as sandbox:
            warm_up(sandbox)
            before, running, peak = self.target.snapshot(), host.processes(), host.peak_bytes()
            self.attack(sandbox)
            time.sleep(float(self.program.fields.get("AFTER", SETTLE_S)))
            self.compare(before, self.target.snapshot(), "")
            self.look_for_processes(running, "")
            self.expect(host.peak_bytes() - peak < HOST_GROWTH, "the host grew by 300 MiB or more")
            self.check_output()
            self.follow_up(sandbox)
        time.sleep(REAP_S)
        self.compare(before_sandbox, self.target.snapshot(), " after close()")
        self.look_for_processes(processes_before, " after close()")
        return {"misses": self.misses, "output": self.output[-400:]}

    def expect(self, held: bool, miss: str) -> None:
        if not held and miss not in self.misses:
            self.misses.append(miss)

    def attack(self, sandbox: Sandbox) -> None:
        """Run the program, and grade it if it has GRADE. A harmless program must also print what it should."""
        wall_s = self.program.wall_s(BENIGN_WALL_S if self.program.benign else WALL_S)
        limits = Limits(wall_s=wall_s)
        result = self.timed(sandbox.run, self.program.source, stdin=self.program.stdin, limits=limits)
        if self.program.benign and result is not None:
            good = result.ok and self.program.expected in result.stdout
            self.expect(good, f"a harmless program failed: {described(result)}")
        if "GRADE" in self.program.fields:
            self.grade(sandbox, result, limits)

    def timed(self, call: Any, *arguments: Any, limits: Limits, runs: int = 1, **options: Any) -> Any:
        """Call the sandbox, which must neither raise nor be late. Returns its result, or None if it raised."""
        start, value = time.monotonic(), None
        try:
            value = call(*arguments, limits=limits, **options)
        except Exception as e:
            self.expect(False, f"{call.__name__}() raised {type(e).__name__}: {str(e)[:200]}")
        late = time.monotonic() - start - runs * limits.wall_s
        self.expect(late < GRACE_S, f"{call.__name__}() was {late:.1f} s late")
        for result in value if isinstance(value, list) else [value]:
            if isinstance(result, Result):
                self.output += result.stdout + result.stderr + (result.value or "")
        return value

    def grade(self, sandbox: Sandbox, result: Result | None, limits: Limits) -> None:
        """Require that the program fails its test: run as a script, and graded as a script and as a function."""
        wanted, function = self.program.fields["GRADE"], self.program.fields.get("FUNC")
        self.expect(result is None or not (result.ok and result.stdout.strip() == wanted), "run() was graded correct")
        tests = {"inputs": [self.program.stdin, "2\n"], "outputs": [wanted, wanted]}
        suites = [read_tests(tests)]
        if function:
            value = json.loads(wanted) if wanted.isdigit() else wanted
            suites.append(read_tests({"inputs": [[1], [2]], "outputs": [value, value], "fn_name": function}))
        for suite in suites:
            grader = CodeGrader(limits=limits, reward="fraction")

            def graded(program: str, *, limits: Limits, grader: CodeGrader = grader, suite: Any = suite) -> Any:
                return grader.grade(program, suite, sandbox)

            verdict = self.timed(graded, self.program.source, limits=limits, runs=2)
            self.expect(verdict is None or verdict.reward == 0, f"graded as passed: {verdict}")

    def compare(self, before: dict[str, Any], after: dict[str, Any], when: str) -> None:
        for what, old in before.items():
            new = after[what]
            if old != new and what not in self.changed:
                self.changed.add(what)
                change = changed_files(old, new) if what == "files" else f"{str(old)[-120:]} -> {str(new)[-120:]}"
                self.expect(False, f"{what} changed{when}: {change}")

    def look_for_processes(self, before: dict[int, str], when: str) -> None:
        """Report and kill processes that did not exist before."""
        left = {pid: what for pid, what in host.processes().items() if pid not in before}
        self.expect(not left, f"{len(left)} processes left{when}: {' '.join(sorted(set(left.values()))[:4])}")
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def check_output(self) -> None:
        leaked = sorted(set(host.CANARY.findall(self.output)))
        self.expect(not leaked, f"leaked {' '.join(leaked)}")
        claims = sorted({line[:200] for line in self.output.splitlines() if line.startswith("PWNED")})
        self.expect(not claims, "; ".join(claims[:4]))
        self.expect(len(self.output) <= TEXT_KEPT, f"{len(self.output)} characters of output were kept")
        required = self.program.fields.get("REQUIRE", "")
        self.expect(required in self.output, f"{required!r} is not in the output")

    def follow_up(self, sandbox: Sandbox) -> None:
        """Require that a harmless run afterwards works and finds no traces of the program."""
        result = self.timed(sandbox.run, FOLLOW_UP, limits=Limits(wall_s=BENIGN_WALL_S))
        good = result is not None and result.ok and result.stdout.strip() == "42 None False"
        self.expect(good, f"the next run failed: {described(result)}")


def described(result: Result | None) -> str:
    return "it raised" if result is None else f"{result.status} {result.stdout[-80:]!r} {result.stderr[-300:]!r}"


def changed_files(old: dict[str, object], new: dict[str, object]) -> str:
    paths = [path for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path)]
    signs = ["+" if path not in old else "-" if path not in new else "~" for path in paths]
    return f"{len(paths)}: {' '.join(sign + path for sign, path in zip(signs[:4], paths, strict=False))}"


def open_sandbox(level: str) -> Sandbox:
    try:
        if level in ("ns", "lsm", "basic"):
            return make_sandbox("zygote", level=level)
        return make_sandbox(level)  # another backend, by its name
    except SandboxError as e:
        raise Unavailable(str(e)) from e


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
