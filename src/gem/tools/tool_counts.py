"""What is counted of the calls of an episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gem.messages import ToolResult


@dataclass(frozen=True)
class Counts:
    """An episode, as far as tools go.

    Args:
        uses, successes: calls that were performed, and those of them without a fault.
        faults: fault → how many calls had it, performed or not.
        messages: of the agent. answered: those of them that went to no environment.
        over: whether there is no running episode.
    """

    uses: int = 0
    successes: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    messages: int = 0
    answered: int = 0
    over: bool = True

    def add(self, results: Sequence[tuple[bool, ToolResult]]) -> Counts:
        """After another message that was answered here; results: (whether it was performed, the answer)."""
        faults = dict(self.faults)
        for _, result in results:
            if result.error is not None:
                faults[result.error.value] = faults.get(result.error.value, 0) + 1
        return replace(
            self,
            uses=self.uses + sum(performed for performed, _ in results),
            successes=self.successes + sum(performed and result.ok for performed, result in results),
            faults=faults,
            messages=self.messages + 1,
            answered=self.answered + 1,
        )

    def plus(self, other: Counts) -> Counts:
        """With the calls of another wrapper."""
        faults = {fault: self.faults.get(fault, 0) + other.faults.get(fault, 0) for fault in self.faults | other.faults}
        uses, successes = self.uses + other.uses, self.successes + other.successes
        return replace(self, uses=uses, successes=successes, faults=faults)
