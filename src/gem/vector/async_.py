"""Run each slot in its own execution mode: in the caller's thread, on an event loop, on a thread or in a process.

Environments with coroutines (``astep``, ``areset``) are awaited on one event loop. Slot.step and Slot.reset
are plain functions. AsyncEngine therefore awaits the results of an environment first, and then runs the slot group,
which receives these results from AwaitedEnv.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import Any, TypeVar

from gem._internal.event_loop import BackgroundLoop
from gem.core import has_coroutines, waits
from gem.errors import BadValue, EnvFailed
from gem.vector.engine import Engine, wait_readable
from gem.vector.slots import (
    Factory,
    MalformedResult,
    Slot,
    SlotCall,
    SlotOutcome,
    SlotSettings,
    as_step,
    build_slots,
    start_at,
)
from gem.vector.sync import InlineEngine
from gem.vector.thread import ThreadEngine, ThreadPool, ThreadTask

EXECUTION_MODES = ("inline", "thread", "process")  # values of EnvSpec.runs
EXECUTOR_THREADS = 64  # size of the event loop's executor, which runs blocking calls (asyncio.to_thread)

Result = TypeVar("Result")


class CompositeEngine(Engine):
    """Combines several engines. Each engine runs its own slots."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._engines = engines
        self._engine_of = {slot: engine for engine in engines for slot in engine.metadata}
        self.metadata = {slot: metadata for engine in engines for slot, metadata in engine.metadata.items()}
        self._outcomes: list[SlotOutcome] = []

    def submit(self, calls: Sequence[SlotCall]) -> None:
        by_engine: dict[Engine, list[SlotCall]] = {}
        for call in calls:
            by_engine.setdefault(self._engine_of[call.slot], []).append(call)
        for engine, own in by_engine.items():
            engine.submit(own)

    def collect(self) -> list[SlotOutcome]:
        for engine in self._engines:
            self._outcomes += engine.collect()  # kept in an attribute: the next engine may raise
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def envs(self) -> dict[int, Any]:
        return {slot: env for engine in self._engines for slot, env in engine.envs().items()}

    def wait(self, timeout: float | None) -> None:
        wait_readable(self.filenos(), self.poll_timeout() if timeout is None else min(timeout, self.poll_timeout()))

    def filenos(self) -> list[int]:
        return [fileno for engine in self._engines for fileno in engine.filenos()]

    def poll_timeout(self) -> float:
        return min(engine.poll_timeout() for engine in self._engines)

    def close(self) -> None:
        with ExitStack() as closing:  # close all engines even if one of them raises
            for engine in self._engines:
                closing.callback(engine.close)


class AsyncEngine(ThreadEngine):
    """Await environments that have coroutines on an event loop, and run all other calls as ThreadEngine does.

    If the environment raises, the rest of the call runs on a thread, because rebuilding the environment may block.
    """

    def __init__(
        self, slots: Mapping[int, Slot], *, timeout: float | None, num_workers: int | None, loop: _EnvLoop
    ) -> None:
        super().__init__(slots, timeout=timeout, num_workers=num_workers, stop=loop.close)
        self._loop = loop

    def envs(self) -> dict[int, Any]:
        return {slot: env.awaited_env if isinstance(env, AwaitedEnv) else env for slot, env in super().envs().items()}

    def _start(self, tasks: Sequence[ThreadTask]) -> None:
        awaited = [task for task in tasks if _is_awaited(task)]
        if awaited:
            self._loop.spawn(partial(_run_awaited, self._pool, task) for task in awaited)
        if len(awaited) < len(tasks):
            super()._start([task for task in tasks if not _is_awaited(task)])

    def _replace(self, task: ThreadTask, why: str) -> None:
        env = task.slot.env
        super()._replace(task, why)
        if isinstance(env, AwaitedEnv):
            env.cancel()


class AwaitedEnv:
    """Wraps an environment with coroutines, so that Slot can call step() and reset() as plain functions.

    fetch() awaits results of the environment in advance, and step() and reset() return these results in order. When no
    fetched result is left, step() and reset() run the coroutine on the event loop and block until it has finished, so
    they must then be called in another thread than that of the loop.
    """

    def __init__(self, env: Any, loop: _EnvLoop) -> None:
        self.awaited_env, self._loop = env, loop
        self._answers: deque[tuple[Any, BaseException | None]] = deque()
        self._task: asyncio.Task[Any] | None = None  # the asyncio task that is awaiting the environment

    def __getattr__(self, name: str) -> Any:
        return getattr(self.awaited_env, name)

    def reset(self, seed: int | None = None, **kwargs: Any) -> Any:
        return self._answer(lambda: self.awaited_env.areset(seed=seed, **kwargs))

    def step(self, action: Any) -> Any:
        return self._answer(lambda: self.awaited_env.astep(action))

    async def fetch(self, task: ThreadTask) -> bool:
        """Await all results that the task's call needs: of the step or reset, and of the autoreset after a last step.

        Returns:
            False if the environment raised an exception or was cancelled, else True.
        """
        self._answers.clear()
        slot, method, argument = task.call
        if method == "reset":
            seed, kwargs, *position = argument
            if position:  # the slot, which resets again to get the result, must not go back to the position
                start_at(self, position[0])
                task.call = SlotCall(slot, method, (seed, kwargs))
            return await self._fetch(lambda: self.awaited_env.areset(seed=seed, **kwargs))
        if not await self._fetch(lambda: self.awaited_env.astep(argument)):
            return False
        try:
            step = as_step(self._answers[0][0])
        except MalformedResult as e:
            self._answers[0] = None, e
            return False
        if task.slot.remember_last_step(step):
            return await self._fetch(lambda: self.awaited_env.areset(seed=None))
        return True

    def cancel(self) -> None:
        """Cancel the coroutine in progress, if there is one. May be called from any thread."""
        if self._task is not None:
            self._loop.call_soon(self._task.cancel)

    async def _fetch(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> bool:
        self._answers.append(await self._settle(start))
        return self._answers[-1][1] is None

    async def _settle(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[Any, BaseException | None]:
        self._task = asyncio.current_task()
        try:
            return await start(), None
        except (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError) as e:
            return None, e
        finally:
            self._task = None

    def _answer(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        value, error = self._answers.popleft() if self._answers else self._loop.run(lambda: self._settle(start))
        if isinstance(error, asyncio.CancelledError):
            raise RuntimeError("the environment's coroutine was cancelled") from error
        if error is not None:
            raise error
        return value


class _EnvLoop:
    """The event loop that runs the coroutines of a vector's environments. It is started on first use.

    After close(), all other methods raise EnvFailed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._background: BackgroundLoop[None] | None = None
        self._closed = False

    def spawn(self, functions: Iterable[Callable[[], Coroutine[Any, Any, object]]]) -> None:
        self._call(lambda background: background.spawn(functions))

    def call_soon(self, function: Callable[[], object]) -> None:
        self._call(lambda background: background.call_soon(function))

    def run(self, function: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Run a coroutine on the event loop and return its result. Must not be called in the loop's own thread."""
        try:
            return self._call(lambda background: background.submit(function())).result()
        except concurrent.futures.CancelledError as e:
            raise RuntimeError("the environment's coroutine was cancelled") from e

    def close(self) -> None:
        with self._lock:
            self._closed = True
        if self._background is not None:
            self._background.close()

    def _call(self, use: Callable[[BackgroundLoop[None]], Result]) -> Result:
        with self._lock:
            if self._closed:
                raise EnvFailed("the event loop of the environments was closed")
            if self._background is None:
                self._background = BackgroundLoop(nullcontext, executor_threads=EXECUTOR_THREADS)
            return use(self._background)


async def _run_awaited(pool: ThreadPool, task: ThreadTask) -> None:
    """Run a task on the event loop.

    If the environment raised, a thread of the pool finishes the call. If the task was abandoned, a thread of the pool
    closes the environment.
    """
    if not pool.begin(task):
        return
    if not (await task.slot.env.fetch(task) and pool.finish(task, task.run())):
        pool.put([task])


def _is_awaited(task: ThreadTask) -> bool:
    is_awaited = isinstance(task.slot.env, AwaitedEnv)
    return is_awaited and task.why is None and task.call.method in ("step", "reset") and task.slot.is_healthy


def async_engine(
    factories: Mapping[int, Factory],
    settings: SlotSettings,
    *,
    num_workers: int | None = None,
    runs: Sequence[str] | None = None,
) -> Engine:
    """Return an engine that runs each slot in its own execution mode.

    Args:
        settings: for the timeout, see ThreadEngine, and ProcessEngine for slots in processes. A coroutine that exceeds
            the limit is cancelled. If a timeout is set, slots with execution mode "inline" run on threads instead.
        num_workers: maximum number of threads and maximum number of processes. None uses the defaults of ThreadEngine
            and ProcessEngine.
        runs: execution mode of each slot: "inline" (in the thread that calls step() or recv()), "thread" or "process".
            None means "thread" for all slots.

    Environments with coroutines (see gem.core.has_coroutines) share one event loop, whatever their execution mode is,
    unless it is "process". If every slot runs inline, the engine is that of the backend "sync".
    """
    modes = ["thread"] * len(factories) if runs is None else list(runs)
    _check_execution_modes(modes, len(factories))
    if settings.timeout is not None:
        modes = ["thread" if own == "inline" else own for own in modes]
    local = {slot: build for slot, build in factories.items() if modes[slot] != "process"}
    remote = {slot: build for slot, build in factories.items() if modes[slot] == "process"}
    engines: list[Engine] = []
    try:
        if local:
            loop = _EnvLoop()
            awaited = {slot: partial(_build_awaited, build, loop) for slot, build in local.items()}
            slots = build_slots(awaited, settings)
            waiting = {n: slot for n, slot in slots.items() if modes[n] == "thread" or _waits(slot.env)}
            inline = {n: slot for n, slot in slots.items() if n not in waiting}
            engines += [InlineEngine(inline)] if inline else []
            if waiting:
                engines.append(AsyncEngine(waiting, timeout=settings.timeout, num_workers=num_workers, loop=loop))
        if remote:
            from gem.vector.process import ProcessEngine  # imported only if a slot runs in a process

            engines.append(ProcessEngine(remote, settings, num_workers=num_workers))
    except BaseException:
        CompositeEngine(engines).close()
        raise
    return engines[0] if len(engines) == 1 else CompositeEngine(engines)


def _build_awaited(build: Factory, loop: _EnvLoop) -> Any:
    """Build an environment. An environment with coroutines is returned in an AwaitedEnv."""
    env = build()
    return AwaitedEnv(env, loop) if has_coroutines(env) else env


def _waits(env: Any) -> bool:
    return isinstance(env, AwaitedEnv) or waits(env)


def _check_execution_modes(modes: list[str], count: int) -> None:
    if len(modes) != count:
        raise BadValue(f"runs needs one execution mode per slot, {count} in all, got {len(modes)}")
    for mode in modes:
        if mode not in EXECUTION_MODES:
            raise BadValue(f"runs must hold {', '.join(EXECUTION_MODES)}, got {mode!r}")
