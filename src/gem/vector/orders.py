"""Shared orders of rows: the slots of a vector over a data set ask each row once per epoch together.

A *place* is a number in an order. Each reset of a slot takes the next place of its order, in the sequence of the
resets. The episode at a place is the episode of that number of the order's seed, whichever slot plays it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gem.errors import BadValue
from gem.vector.slots import Position, SlotCall, SlotMetadata


class SharedOrders:
    """Assigns places to resets. A slot leaves its order when it is reset with a seed.

    Args:
        metadata: slot → metadata of its environment.
    """

    def __init__(self, metadata: Mapping[int, SlotMetadata]) -> None:
        self._orders = {slot: own.order for slot, own in sorted(metadata.items()) if own.order is not None}
        self._members = set(self._orders)
        self._next = dict.fromkeys(self._orders.values(), 0)  # order → next place

    def assign(self, calls: Sequence[SlotCall]) -> Sequence[SlotCall]:
        """Return the calls, with the next place of the slot's order in each reset without a seed or a row number."""
        return [self._assigned(call) if call.method == "reset" else call for call in calls] if self._orders else calls

    def __contains__(self, slot: object) -> bool:
        """Return whether the slot was built with a shared order, so that it does not reset itself."""
        return slot in self._orders

    def __len__(self) -> int:
        """Return the number of slots that were built with a shared order."""
        return len(self._orders)

    def restore(self, slot: int, position: Position) -> None:
        """Let a slot whose state was restored continue the shared order if its episode belongs to it."""
        if slot in self._orders:
            in_order = position[0] == self._orders[slot][0]
            (self._members.add if in_order else self._members.discard)(slot)

    def get_state(self) -> dict[str, Any]:
        return {"places": list(self._next.values())}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore the places. Raises BadValue if the state does not fit."""
        places = state.get("places", [])
        if len(places) != len(self._next):
            raise BadValue(
                f"the state has {len(places) or 'no'} places in the order of the rows, this vector env needs "
                f"{len(self._next)}: it was saved by a vector env with other slots, or by an older version"
            )
        self._next = dict(zip(self._next, places, strict=True))

    def _assigned(self, call: SlotCall) -> SlotCall:
        slot, method, (seed, kwargs) = call
        if seed is not None:
            self._members.discard(slot)
        if slot not in self._members or kwargs.get("idx") is not None:
            return call
        order = self._orders[slot]
        self._next[order] += 1
        return SlotCall(slot, method, (seed, kwargs, (order[0], self._next[order] - 1)))
