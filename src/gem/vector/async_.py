"""Each slot where it costs least: in this thread, on an event loop, on a thread of its own, or in a process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from gem.core import waits
from gem.errors import BadValue
from gem.vector.base import Autoreset, VectorEnv
from gem.vector.engine import Engine, InlineEngine
from gem.vector.loop import AsyncEngine, Awaited, Loop, on_loop
from gem.vector.mailbox import await_readable
from gem.vector.slots import Call, Factory, OnFailure, Outcome, SlotGroup
from gem.vector.sync import check_slots

PLACES = ("inline", "thread", "process")  # as EnvSpec.runs


class AsyncVectorEnv(VectorEnv):
    """Slots that each run where their spec says, behind one interface.

    Args:
        env_fns: one callable per slot that builds its environment.
        autoreset: see Autoreset.
        timeout: seconds for one call of one environment; see ThreadVectorEnv and, for slots in processes,
            ProcessVectorEnv. A coroutine that takes longer is cancelled.
        on_failure: see SlotGroup.
        num_workers: threads at most, and processes at most; None chooses.
        runs: one per slot: "inline" (in the thread that receives), "thread" or "process". None is "thread" for all.

    Environments with coroutines of their own (see gem.core.has_coroutines) are awaited on one event loop, thousands of
    them at no thread each, unless they run in processes. With a timeout no slot runs inline: it could not be stopped.
    Without one, and with every slot inline, this is the plain loop of SyncVectorEnv.
    """

    def __init__(
        self,
        env_fns: Sequence[Factory],
        autoreset: str | Autoreset = Autoreset.SAME_STEP,
        *,
        timeout: float | None = None,
        on_failure: OnFailure = "raise",
        num_workers: int | None = None,
        runs: Sequence[str] | None = None,
    ) -> None:
        mode = Autoreset.of(autoreset)
        check_slots(env_fns, on_failure, timeout)
        places = ["thread"] * len(env_fns) if runs is None else list(runs)
        _check_places(places, len(env_fns))
        if timeout is not None:
            places = ["thread" if place == "inline" else place for place in places]
        engine = _assemble(
            env_fns,
            places,
            same_step=mode is Autoreset.SAME_STEP,
            on_failure=on_failure,
            timeout=timeout,
            num_workers=num_workers,
        )
        super().__init__(engine, mode)


class CompositeEngine(Engine):
    """Several engines, each with its own slots."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._engines = engines
        self._engine_of = {slot: engine for engine in engines for slot in engine.facts}
        self.facts = {slot: facts for engine in engines for slot, facts in engine.facts.items()}
        self._outcomes: list[Outcome] = []

    def submit(self, calls: Sequence[Call]) -> None:
        by_engine: dict[Engine, list[Call]] = {}
        for call in calls:
            by_engine.setdefault(self._engine_of[call.slot], []).append(call)
        for engine, own in by_engine.items():
            engine.submit(own)

    def collect(self) -> list[Outcome]:
        for engine in self._engines:
            self._outcomes += engine.collect()  # kept here, should the next engine raise
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def wait(self, timeout: float | None) -> None:
        await_readable(self.filenos(), self.patience() if timeout is None else min(timeout, self.patience()))

    def filenos(self) -> list[int]:
        return [fileno for engine in self._engines for fileno in engine.filenos()]

    def patience(self) -> float:
        return min(engine.patience() for engine in self._engines)

    def close(self) -> None:
        with ExitStack() as closing:  # all of them, whatever one raises
            for engine in self._engines:
                closing.callback(engine.close)


def _assemble(
    env_fns: Sequence[Factory],
    places: Sequence[str],
    *,
    same_step: bool,
    on_failure: OnFailure,
    timeout: float | None,
    num_workers: int | None,
) -> Engine:
    """The engine for all slots, each in its place."""
    here = {slot: build for slot, build in enumerate(env_fns) if places[slot] != "process"}
    away = {slot: build for slot, build in enumerate(env_fns) if places[slot] == "process"}
    engines: list[Engine] = []
    try:
        if here:
            loop = Loop()
            awaited = {slot: partial(on_loop, build, loop) for slot, build in here.items()}
            group = SlotGroup(awaited, same_step=same_step, on_failure=on_failure)
            parts = _part_with(group, {slot for slot in here if places[slot] == "thread"})
            engines += [InlineEngine(group)] if group.envs else []
            engines += [AsyncEngine(parts, timeout=timeout, num_workers=num_workers, loop=loop)] if parts else []
        if away:
            from gem.vector.process import ProcessEngine  # whoever needs no process need not wait for its imports

            engines.append(
                ProcessEngine(
                    away, same_step=same_step, on_failure=on_failure, timeout=timeout, num_workers=num_workers
                )
            )
    except BaseException:
        CompositeEngine(engines).close()
        raise
    return engines[0] if len(engines) == 1 else CompositeEngine(engines)


def _part_with(group: SlotGroup, slots: set[int]) -> dict[int, SlotGroup]:
    """Take those slots out of a group, and those that wait wherever they are; each into a group of its own."""
    wait = {slot for slot, env in group.envs.items() if isinstance(env, Awaited) or waits(env)}
    parts = {slot: group.part(slot) for slot in slots | wait}
    for slot in parts:
        del group.envs[slot]
    return parts


def _check_places(places: list[str], count: int) -> None:
    if len(places) != count:
        raise BadValue(f"runs needs one place per slot, {count} in all, got {len(places)}")
    for place in places:
        if place not in PLACES:
            raise BadValue(f"runs holds {', '.join(PLACES)}, not {place!r}")
