"""The local sandbox: programs in forks of warm interpreters, contained at one of three levels."""

from __future__ import annotations

import contextlib
import logging
import os
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from gem.errors import BadValue, SandboxError, did_you_mean
from gem.sandbox import probe
from gem.sandbox.base import Case, Files, Limits, Report, Result, Sandbox, Session, Status
from gem.sandbox.scripted import arguments_of, as_bytes
from gem.sandbox.streams import Capture
from gem.sandbox.zygote.host import Exit, Launch, Launcher, ServerDied, Zygote, status_of
from gem.sandbox.zygote.listener import Listener
from gem.sandbox.zygote.session import ZygoteSession
from gem.sandbox.zygote.tests_host import run_tests
from gem.sandbox.zygote.tiers import Tiers
from gem.sandbox.zygote.wire import in_memory

DEATH_S = 30.0  # for a killed run to be gone, on a machine that is busy
_logger = logging.getLogger(__name__)
_warned = False


class ZygoteSandbox(Sandbox):
    """Runs programs in forks of warm interpreters on this machine.

    Args:
        limits: the defaults of every run.
        level: "ns", "lsm" or "basic"; "auto" is GEM_SANDBOX_LEVEL where it is set, else the highest that holds.
        require: a level below which nothing is run.

    Raises BadValue for a level that there is not, SandboxError where the level does not hold.
    """

    def __init__(self, *, limits: Limits | None = None, level: str = "auto", require: str | None = None) -> None:
        self.limits = limits or Limits()
        level = os.environ.get("GEM_SANDBOX_LEVEL", "auto") if level == "auto" else level
        for name in {level, require or "auto"} - {"auto"}:
            if name not in probe.LEVELS:
                known = ("auto", *probe.LEVELS)
                raise BadValue(f"no level {name!r}{did_you_mean(name, known)}  (there are: {', '.join(known)})")
        self.level = _best() if level == "auto" else _that_holds(level)
        if require is not None and probe.LEVELS.index(self.level) > probe.LEVELS.index(require):
            raise SandboxError(f"level {require!r} is required, and this is {self.level!r}: {probe.why_not(require)}")
        self._tiers = Tiers(self.level)
        weakref.finalize(self, self._tiers.close)

    def run(
        self,
        program: str | bytes,
        *,
        stdin: str | bytes = "",
        limits: Limits | None = None,
        files: Files | None = None,
    ) -> Result:
        source = as_bytes(program)
        return self._run("program", {"source": source}, source, stdin, limits, files)

    def exec(
        self,
        command: str | Sequence[str],
        *,
        stdin: str | bytes = "",
        limits: Limits | None = None,
        files: Files | None = None,
    ) -> Result:
        return self._run("exec", {"command": arguments_of(command)}, b"", stdin, limits, files)

    def run_tests(
        self,
        program: str | bytes,
        cases: Sequence[Case],
        *,
        function: str | None = None,
        limits: Limits | None = None,
        stop: Callable[[int, Result], bool] | None = None,
    ) -> list[Result | None]:
        source = as_bytes(program)
        return run_tests(
            self._tiers.launcher(source),
            source,
            cases,
            level=self.level,
            function=function,
            limits=limits or self.limits,
            stop=stop,
        )

    def session(self, *, limits: Limits | None = None) -> Session:
        everything = b"import sympy"  # nobody knows what its cells will import, and what is at hand is shared
        return ZygoteSession(self._tiers.launcher(everything), limits or self.limits)

    def report(self) -> Report:
        return probe.report(self.level)

    def close(self) -> None:
        self._tiers.close()

    def _run(
        self,
        entry: str,
        options: dict[str, Any],
        source: bytes,
        stdin: str | bytes,
        limits: Limits | None,
        files: Files | None,
    ) -> Result:
        launcher, limits = self._tiers.launcher(source), limits or self.limits
        try:
            return _attend(launcher, entry, options, as_bytes(stdin), limits, files)
        except ServerDied as e:
            if e.began:
                raise
            return _attend(launcher, entry, options, as_bytes(stdin), limits, files)


def run_once(level: str, source: bytes, limits: Limits) -> Result:
    """Run a program at a level of which it is not known whether it holds. Raises SandboxError where it cannot run."""
    server = Zygote(level)
    try:
        return _attend(server.launch, "program", {"source": source}, b"", limits, None)
    finally:
        server.close()


def _attend(
    launch: Launcher, entry: str, options: dict[str, Any], stdin: bytes, limits: Limits, files: Files | None
) -> Result:
    """Start a run, read what it writes, and end it at its limits."""
    with contextlib.closing(Listener()) as listener:
        (out, to_out), (err, to_err) = (listener.pipe(limits.output_bytes) for _ in range(2))
        given = [in_memory(stdin), to_out, to_err]
        try:
            run = launch(entry, options, given, limits, files)
        finally:
            for fd in given:
                os.close(fd)
        with contextlib.closing(run):
            run.await_beginning()
            start = time.monotonic()
            ended = _ended(run, listener, start + limits.wall_s)
        listener.drain(out, err)
        wall_s = time.monotonic() - start
        return _result(ended, limits, wall_s, listener.captures[out], listener.captures[err])


def _ended(run: Launch, listener: Listener, deadline: float) -> Exit:
    """How a run ended, by itself or at a limit of the host's. deadline: by time.monotonic()."""
    listener.watch(run.fileno())
    while not run.over():
        if listener.floods:
            run.kill(Status.OUTPUT_LIMIT)
            break
        if time.monotonic() >= deadline:
            run.kill(Status.TIMEOUT)
            break
        listener.wait(deadline)
    ended = run.wait(DEATH_S)
    if ended is None:
        run.server.close(0)
        raise SandboxError(f"a killed run was not gone after {DEATH_S:g} s")
    return ended


def _result(ended: Exit, limits: Limits, wall_s: float, out: Capture, err: Capture) -> Result:
    stdout, stderr = out.text(), err.text()
    return Result(
        status=status_of(ended, limits, stderr),
        exit_code=ended.exit_code,
        signal=ended.signal,
        stdout=stdout,
        stderr=stderr,
        truncated=out.truncated or err.truncated,
        wall_s=wall_s,
        cpu_s=ended.cpu_s,
        max_rss_bytes=ended.max_rss_bytes,
    )


def _best() -> str:
    """The highest level that holds. Warns, once, where that is the lowest."""
    global _warned
    level = probe.best_level()
    if level == "basic" and not _warned:
        _warned = True
        _logger.warning("programs can read and change what you can: only level 'basic' holds here (gem sandbox report)")
    return level


def _that_holds(level: str) -> str:
    """Raises SandboxError where it does not."""
    reason = probe.why_not(level)
    if reason:
        raise SandboxError(reason)
    return level
