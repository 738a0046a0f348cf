"""The local sandbox, which runs programs in forks of preloaded interpreters at one of three isolation levels."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from gem.errors import BadValue, SandboxError, did_you_mean
from gem.sandbox.base import Case, Files, Limits, Report, Result, Sandbox, Session
from gem.sandbox.command_sandbox import as_bytes, command_arguments
from gem.sandbox.zygote import probe
from gem.sandbox.zygote.batch import run_tests
from gem.sandbox.zygote.execution import execute
from gem.sandbox.zygote.host import ServerDied
from gem.sandbox.zygote.server_pool import ServerPool
from gem.sandbox.zygote.session import ZygoteSession

_logger = logging.getLogger(__name__)
_warned = False


class ZygoteSandbox(Sandbox):
    """Runs programs on this machine, in forks of preloaded interpreters.

    Args:
        limits: default limits of each run. None means Limits().
        level: isolation level, "ns", "lsm" or "basic". "auto" means GEM_SANDBOX_LEVEL if set, else the highest level
            available.
        require: lowest acceptable level. None accepts any level.

    Raises:
        BadValue: if the level does not exist.
        SandboxError: if the level is not available on this machine or is lower than ``require``.
    """

    def __init__(self, *, limits: Limits | None = None, level: str = "auto", require: str | None = None) -> None:
        self.limits = limits or Limits()
        level = os.environ.get("GEM_SANDBOX_LEVEL", "auto") if level == "auto" else level
        for name in {level, require or "auto"} - {"auto"}:
            if name not in probe.LEVELS:
                known = ("auto", *probe.LEVELS)
                raise BadValue(f"no level {name!r}{did_you_mean(name, known)}  (available: {', '.join(known)})")
        self.level = _best_level() if level == "auto" else _checked_level(level)
        if require is not None and probe.LEVELS.index(self.level) > probe.LEVELS.index(require):
            raise SandboxError(f"level {require!r} is required, got {self.level!r}: {probe.why_not(require)}")
        self._pool = ServerPool(self.level)
        weakref.finalize(self, self._pool.close)

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
        return self._run("exec", {"command": command_arguments(command)}, b"", stdin, limits, files)

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
            self._pool.launcher(source),
            source,
            cases,
            level=self.level,
            function=function,
            limits=limits or self.limits,
            stop=stop,
        )

    def session(self, *, limits: Limits | None = None) -> Session:
        # The imports of later cells are unknown, so this uses the server that preloads all libraries.
        return ZygoteSession(self._pool.launcher(b"import sympy"), limits or self.limits)

    def report(self) -> Report:
        return probe.report(self.level)

    def close(self) -> None:
        self._pool.close()

    def _run(
        self,
        entry: str,
        options: dict[str, Any],
        source: bytes,
        stdin: str | bytes,
        limits: Limits | None,
        files: Files | None,
    ) -> Result:
        launcher, limits = self._pool.launcher(source), limits or self.limits
        try:
            return execute(launcher, entry, options, as_bytes(stdin), limits, files)
        except ServerDied as e:
            if e.started:
                raise
            return execute(launcher, entry, options, as_bytes(stdin), limits, files)


def _best_level() -> str:
    """Return the highest available level. If that is "basic", log a warning, once per process."""
    global _warned
    level = probe.best_level()
    if level == "basic" and not _warned:
        _warned = True
        _logger.warning(
            "programs have your file and network access: only sandbox level 'basic' is available (gem sandbox report)"
        )
    return level


def _checked_level(level: str) -> str:
    reason = probe.why_not(level)
    if reason:
        raise SandboxError(reason)
    return level
