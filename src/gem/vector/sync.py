"""Step all slots in the caller's thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from gem.core import Step
from gem.errors import BadValue
from gem.vector.engine import Engine
from gem.vector.slots import (
    Factory,
    Slot,
    SlotCall,
    SlotOutcome,
    SlotSettings,
    build_slots,
    close_slots,
)


def sync_engine(factories: Mapping[int, Factory], settings: SlotSettings) -> InlineEngine:
    """Return an engine that steps all slots one after another in the caller's thread.

    This is the reference implementation, and the fastest backend for environments whose steps take microseconds. recv()
    runs all pending calls and returns their results, for any value of min_envs.

    Raises:
        BadValue: there is a timeout, but a call in the caller's thread cannot be stopped.
    """
    if settings.timeout is not None:
        raise BadValue(
            f"sync cannot stop an environment that hangs, so it takes no timeout (got {settings.timeout!r}); "
            "backend 'thread', 'async' or 'process' can"
        )
    return InlineEngine(build_slots(factories, settings))


class InlineEngine(Engine):
    """Runs calls in collect(), in the thread of the caller and in the order of submission."""

    is_inline = True

    def __init__(self, slots: dict[int, Slot]) -> None:
        self._slots = slots
        self.metadata = {number: slot.metadata for number, slot in slots.items()}
        self._calls: deque[SlotCall] = deque()
        self._outcomes: list[SlotOutcome] = []

    def submit(self, calls: Sequence[SlotCall]) -> None:
        self._calls += calls

    def collect(self) -> list[SlotOutcome]:
        while self._calls:
            call = self._calls.popleft()
            try:
                self._outcomes.append(self._slots[call.slot].perform(call))
            except BaseException as e:
                self._interrupt(call, e)
                raise
            if self._outcomes[-1].interrupted:  # the later calls run in the next collect()
                break
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def step_all(self, actions: Sequence[Any]) -> list[Step] | None:
        if self._calls or self._outcomes:
            self._calls += [SlotCall(slot, "step", action) for slot, action in enumerate(actions)]
            return None
        steps: list[Step] = []
        try:
            for slot, action in zip(self._slots.values(), actions, strict=True):
                steps.append(slot.step(action))
        except BaseException as e:
            number = len(steps)
            failed = SlotCall(number, "step", actions[number])
            self._outcomes += [SlotOutcome(earlier, step) for earlier, step in enumerate(steps)]
            self._calls += [SlotCall(later, "step", actions[later]) for later in range(number + 1, len(actions))]
            if not isinstance(e, (Exception, SystemExit)):
                self._interrupt(failed, e)
                raise
            self._outcomes.append(self._slots[number].error_outcome(failed, e))
            return None
        return steps

    def envs(self) -> dict[int, Any]:
        return {number: slot.env for number, slot in self._slots.items()}

    def wait(self, timeout: float | None) -> None:
        return

    def close(self) -> None:
        close_slots(self._slots.values())

    def _interrupt(self, call: SlotCall, error: BaseException) -> None:
        self._outcomes.append(self._slots[call.slot].abandon(call, f"interrupted by {type(error).__name__}"))
