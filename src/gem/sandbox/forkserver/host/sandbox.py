"""The local sandbox, which runs programs in forks of preloaded interpreters at one of three isolation levels.

A sandbox has one fork server for each set of preloaded libraries and network setting. Dead servers are replaced.
"""

from __future__ import annotations

import functools
import os
import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gem._internal.imports import is_installed
from gem.errors import SandboxError
from gem.sandbox.admission import admission
from gem.sandbox.base import Sandbox, Session
from gem.sandbox.forkserver.host import probe
from gem.sandbox.forkserver.host.batch import run_tests
from gem.sandbox.forkserver.host.execution import Launch, Launcher, NewRun, ServerDied, execute
from gem.sandbox.forkserver.host.launch import Zygote
from gem.sandbox.forkserver.host.machine import ZygoteMachine
from gem.sandbox.forkserver.host.session import ZygoteSession
from gem.sandbox.forkserver.syscalls import words
from gem.sandbox.inputs import Job, as_bytes
from gem.sandbox.machine import HOME, Machine, MachineFiles
from gem.sandbox.results import Case, Limits, Report, Result

# The cost of a fork grows with the number of loaded modules and, above all, shared libraries. Therefore the smallest
# server preloads only the modules that most programs import.
COMMON = words(
    """array bisect collections contextlib copy dataclasses datetime enum functools heapq io itertools json linecache
    math numbers operator queue random re statistics string struct threading time traceback typing"""
)
RARER = words(
    """ast base64 cmath csv ctypes decimal fractions hashlib inspect pathlib pickle shutil subprocess
    tempfile textwrap uuid"""
)
# Modules to preload for programs that import the module named by the key. The last matching key is used.
PRELOADS = {"": COMMON, "numpy": [*COMMON, *RARER, "numpy"], "sympy": [*COMMON, *RARER, "numpy", "sympy"]}
_NEEDS_NUMPY = ("scipy", "pandas", *RARER)
_IMPORTS = re.compile(rb"^[ \t]*(?:import|from)[ \t]+([^\n]*)", re.MULTILINE)
_WORD = re.compile(rb"[a-z_]+")
_SEARCHED = 1 << 16  # bytes of a program that are searched for imports


class ZygoteSandbox(Sandbox):
    """Runs programs on this machine, in forks of preloaded interpreters.

    Args:
        limits: default limits of each run. None means Limits().
        level: isolation level, "ns", "lsm" or "basic". "auto" means GEM_SANDBOX_LEVEL if it is set and not empty, else
            the highest level available.
        require: lowest acceptable level. None means the level that is named, or "lsm" if none is named: a program that
            is not isolated runs only if ``level``, ``require`` or GEM_SANDBOX_LEVEL says "basic".

    Raises:
        BadValue: if the level does not exist.
        SandboxError: if no acceptable level holds on this machine, or if that cannot be decided at the moment.
    """

    def __init__(self, *, limits: Limits | None = None, level: str = "auto", require: str | None = None) -> None:
        self.limits = limits or Limits()
        self.level = probe.choose(level, require)
        self._pool = ServerPool(self.level)
        weakref.finalize(self, self._pool.close)

    def _run(self, job: Job) -> Result:
        launch = self._launcher(preload_for(job.program))
        with admission().slot():
            try:
                return execute(launch, job)
            except ServerDied as e:
                if e.started:
                    raise
                return execute(launch, job)

    def _run_tests(
        self, job: Job, cases: Sequence[Case], stop: Callable[[int, Result], bool] | None
    ) -> list[Result | None]:
        return run_tests(self._launcher(preload_for(job.program)), job, cases, stop, level=self.level)

    def session(self, *, limits: Limits | None = None) -> Session:
        # The imports of later cells are unknown, so this uses the server that preloads all libraries.
        return ZygoteSession(self._launcher("sympy"), limits or self.limits)

    def machine(
        self,
        *,
        files: MachineFiles = (),
        folder: str | None = None,
        limits: Limits | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> Machine:
        """Start a machine; see Sandbox.machine(). Only at level ns."""
        self.require_machines()
        limits = limits or self.limits
        return ZygoteMachine(self._launcher(""), limits, files=files, folder=folder or HOME, state=state)

    def require_machines(self) -> None:
        probe.require_machines(self.level)

    def report(self) -> Report:
        return probe.report(self.level)

    def close(self) -> None:
        self.closed = True
        self._pool.close()

    def _launcher(self, preload: str) -> Launcher:
        """Return ServerPool.launch() for the server with some preloaded modules, a key of PRELOADS."""
        return functools.partial(self._pool.launch, preload)


def preload_for(program: str | bytes) -> str:
    """Return the key of PRELOADS that fits the imports of a program. A wrong guess only affects speed.

    >>> preload_for(b"import math, numpy as np"), preload_for(b"print('import numpy')")
    ('numpy', '')
    >>> preload_for(b"from sympy import Symbol")
    'sympy'
    """
    source = as_bytes(program[:_SEARCHED])
    words = {word.decode() for line in _IMPORTS.findall(source) for word in _WORD.findall(line)}
    if words.intersection(_NEEDS_NUMPY):
        words.add("numpy")
    return next((preload for preload in reversed(PRELOADS) if preload in words), "")


class ServerPool:
    """Starts the fork servers of a sandbox. Thread-safe. A forked process starts new servers when it needs them."""

    def __init__(self, level: str) -> None:
        self.level = level
        self._lock, self._closed = threading.Lock(), False
        self._zygotes: dict[tuple[str, bool], Zygote] = {}
        _all.add(self)

    def launch(self, preload: str, run: NewRun) -> Launch:
        """Start a run on the server that preloads some modules, a key of PRELOADS; see Zygote.launch()."""
        try:
            return self._server(preload, run.limits.network).launch(run)
        except ServerDied:  # the program did not start; use the new server that replaces the dead one
            return self._server(preload, run.limits.network).launch(run)

    def zygotes(self) -> list[Zygote]:
        """Return the servers that have been started, including dead servers not yet replaced."""
        with self._lock:
            return list(self._zygotes.values())

    def close(self) -> None:
        with self._lock:
            self._closed = True
            zygotes, self._zygotes = self._zygotes, {}
        for zygote in zygotes.values():
            zygote.close()

    def abandon(self) -> None:
        """Release the parent's servers without stopping them. Called in a forked process."""
        zygotes, self._zygotes = self._zygotes, {}
        self._lock = threading.Lock()
        for zygote in zygotes.values():
            zygote.abandon()

    def _server(self, preload: str, network: bool) -> Zygote:
        """Return a running server; the smallest one if the modules to preload are not installed."""
        key = (preload if _is_available(preload) else "", network)
        with self._lock:
            if self._closed:
                raise SandboxError("this sandbox is closed")
            if key not in self._zygotes or not self._zygotes[key].alive:
                self._start_servers(network)
            return self._zygotes[key]

    def _start_servers(self, network: bool) -> None:
        """Start all missing or dead servers together and wait for them, so that none starts while a program runs."""
        started = {}
        try:
            for preload in filter(_is_available, PRELOADS):
                zygote = self._zygotes.get((preload, network))
                if zygote is None or not zygote.alive:
                    started[preload, network] = Zygote(self.level, modules=PRELOADS[preload], network=network)
                    if zygote is not None:
                        zygote.close()
            for zygote in started.values():
                zygote.wait_until_ready()
        except BaseException:
            for zygote in started.values():
                zygote.close()
            raise
        self._zygotes.update(started)


@functools.cache
def _is_available(preload: str) -> bool:
    return not preload or is_installed(preload)


_all: weakref.WeakSet[ServerPool] = weakref.WeakSet()


def _abandon_all() -> None:
    for pool in list(_all):
        pool.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
