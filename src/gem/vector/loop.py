"""Slots whose environments wait in coroutines: one event loop, on one thread, for all of them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from gem.core import has_coroutines
from gem.errors import EnvFailed
from gem.vector.pool import Job, Pool
from gem.vector.slots import Factory, SlotGroup
from gem.vector.thread import ThreadEngine

WAITING = 64  # threads at most for what coroutines have no coroutine for; asyncio's own 6 on two cores only wait
ENDING = 1.0  # seconds that cancelled coroutines have to end, and then their thread

Result = TypeVar("Result")


class AsyncEngine(ThreadEngine):
    """Awaits the coroutines of the environments that have some, and runs all else as ThreadEngine does.

    A group's step and reset are plain calls. So a call is awaited first, with the reset that follows the last step of
    an episode, and then the group is played, with the answers at hand. Where that would take long, on a thread: when
    the environment failed and is built anew.
    """

    def __init__(
        self, groups: Mapping[int, SlotGroup], *, timeout: float | None, num_workers: int | None, loop: Loop
    ) -> None:
        super().__init__(groups, timeout=timeout, num_workers=num_workers, stop=loop.close)
        self._loop = loop

    def _start(self, jobs: Sequence[Job]) -> None:
        awaited = [job for job in jobs if _is_awaited(job)]
        if awaited:
            self._loop.start(partial(_play, self._pool, job) for job in awaited)
        if len(awaited) < len(jobs):
            super()._start([job for job in jobs if not _is_awaited(job)])

    def _abandon(self, job: Job, why: str) -> None:
        env = job.group.envs[job.call.slot]
        super()._abandon(job, why)
        if isinstance(env, Awaited):
            env.cancel()


class Awaited:
    """An environment with coroutines, behind the plain step and reset that a SlotGroup calls.

    They give the answers that were fetched, in order; without any they wait for the loop, which takes another thread
    than the loop's.
    """

    def __init__(self, env: Any, loop: Loop) -> None:
        self._env, self._loop = env, loop
        self._answers: deque[tuple[Any, BaseException | None]] = deque()
        self._task: asyncio.Task[Any] | None = None  # the one that is waiting for the environment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self, seed: int | None = None, **kwargs: Any) -> Any:
        return self._answer(lambda: self._env.areset(seed=seed, **kwargs))

    def step(self, action: Any) -> Any:
        return self._answer(lambda: self._env.astep(action))

    async def fetch(self, job: Job) -> bool:
        """Await what the job's group will ask for, on the loop. Returns whether nothing of it raised."""
        self._answers.clear()
        slot, what, argument = job.call
        if what == "reset":
            seed, kwargs = argument
            return await self._fetch(lambda: self._env.areset(seed=seed, **kwargs))
        sound = await self._fetch(lambda: self._env.astep(argument))
        if sound and job.group.goes_on(slot, self._answers[0][0]):
            return await self._fetch(lambda: self._env.areset(seed=None))
        return sound

    def cancel(self) -> None:
        """Cancel what is being awaited, from any thread."""
        if self._task is not None:
            self._loop.call(self._task.cancel)

    async def _fetch(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> bool:
        self._answers.append(await self._settle(start))
        return self._answers[-1][1] is None

    async def _settle(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[Any, BaseException | None]:
        self._task = asyncio.current_task()
        try:
            return await start(), None
        except (Exception, SystemExit, asyncio.CancelledError) as e:
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


class Loop:
    """An event loop in a daemon thread, which starts when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._closing = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()  # the loop itself would not keep them

    def call(self, function: Callable[[], object]) -> None:
        """Call a function soon, in the loop's thread. Raises EnvFailed after close()."""
        with self._lock:
            if self._closed:
                raise EnvFailed("the event loop of the environments was closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.set_default_executor(ThreadPoolExecutor(WAITING, "gem-loop-wait"))
                self._thread = threading.Thread(target=self._live, args=(self._loop,), name="gem-loop", daemon=True)
                self._thread.start()
            self._loop.call_soon_threadsafe(function)

    def start(self, functions: Iterable[Callable[[], Coroutine[Any, Any, Any]]]) -> None:
        """Start coroutines, and wait for none. Raises EnvFailed after close()."""
        self.call(lambda: [self._spawn(function) for function in functions])

    def run(self, function: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Run a coroutine, and wait for what it returns. Not in the loop's thread. Raises EnvFailed after close()."""
        done: Future[Result] = Future()
        self.call(lambda: self._spawn(function).add_done_callback(partial(_hand_over, done)))
        return done.result()

    def close(self) -> None:
        """Cancel everything, and end the thread; within seconds, whatever the coroutines do."""
        with self._lock:
            self._closed = True
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                return
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(2 * ENDING)

    def _spawn(self, function: Callable[[], Coroutine[Any, Any, Result]]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(function())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _live(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_until_complete(self._until_closed())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    async def _until_closed(self) -> None:
        await self._closing.wait()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=ENDING)


def on_loop(build: Factory, loop: Loop) -> Any:
    """Build an environment; one that has coroutines is awaited from then on."""
    env = build()
    return Awaited(env, loop) if has_coroutines(env) else env


async def _play(pool: Pool, job: Job) -> None:
    if not pool.begin(job):
        return
    if not (await job.group.envs[job.call.slot].fetch(job) and pool.finish(job, job.run())):
        pool.put([job])


def _is_awaited(job: Job) -> bool:
    slot, what, _ = job.call
    env = job.group.envs[slot]
    return isinstance(env, Awaited) and job.why is None and what in ("step", "reset") and job.group.will_call(slot)


def _hand_over(done: Future[Result], task: asyncio.Task[Result]) -> None:
    if task.cancelled():
        done.set_exception(RuntimeError("the environment's coroutine was cancelled"))
    elif (error := task.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())
