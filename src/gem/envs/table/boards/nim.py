r"""Nim: whoever takes the last object wins.

Position     the sizes of the heaps with commas between, "|", and the seat to move.
Action       a heap and how many objects to take from it: ``\boxed{2 3}`` takes 3 objects from the second heap.
Solution     the player to move wins if and only if the exclusive or of the sizes is not 0 (Bouton 1901).

>>> game = NimEnv()
>>> game.after("3,4,5|0", "1 2"), game.scores("0,0,0|1")
('1,4,5|1', (1.0, -1.0))
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from gem.envs.table.game import OnIllegal, TableGame
from gem.errors import BadValue

HEAPS, LARGEST = 3, 7  # number and largest size of random heaps


class NimEnv(TableGame):
    """See the module docstring for the rules, and TableGame for the other arguments.

    Args:
        heaps: the sizes of the heaps; None draws three heaps of 1 to 7 objects for every episode.

    Raises:
        BadValue: there is no heap, a heap is empty, or there are more than nine heaps.
    """

    seats = ("the first player", "the second player")
    card = (
        "Nim: the players take turns to remove any number of objects, at least one, from one heap. Whoever takes the "
        "last object wins.\nWrite the number of the heap and how many objects you take in a box: \\boxed{2 3} takes 3 "
        "objects from heap 2."
    )
    pattern = re.compile(r"\s*[1-9]\s+[1-9][0-9]{0,2}\s*")
    can_skip = True

    def __init__(
        self,
        heaps: Sequence[int] | None = None,
        *,
        on_illegal: OnIllegal = "lose",
        show_legal: bool = False,
        max_turns: int | None = None,
    ) -> None:
        if heaps is not None and not (1 <= len(heaps) <= 9 and all(1 <= heap <= 999 for heap in heaps)):
            raise BadValue(f"heaps must be one to nine sizes of 1 to 999 objects, got {list(heaps)}")
        self.heaps = heaps
        super().__init__(on_illegal=on_illegal, show_legal=show_legal, max_turns=max_turns)

    def deal(self, rng: random.Random) -> str:
        heaps = self.heaps or [rng.randint(1, LARGEST) for _ in range(HEAPS)]
        return f"{','.join(map(str, heaps))}|0"

    def to_move(self, position: str) -> int | None:
        return int(position[-1]) if any(_heaps(position)) else None

    def moves(self, position: str) -> list[str]:
        return [f"{n} {take}" for n, heap in enumerate(_heaps(position), 1) for take in range(1, heap + 1)]

    def every_move(self) -> list[str]:
        heaps = self.heaps or [LARGEST] * HEAPS
        return [f"{n} {take}" for n, heap in enumerate(heaps, 1) for take in range(1, heap + 1)]

    def after(self, position: str, move: str) -> str:
        heaps, (number, take) = _heaps(position), map(int, move.split())
        heaps[number - 1] -= take
        return f"{','.join(map(str, heaps))}|{1 - int(position[-1])}"

    def skipped(self, position: str) -> str:
        return f"{position[:-1]}{1 - int(position[-1])}"

    def scores(self, position: str) -> tuple[float, ...]:
        return (1.0, -1.0) if position.endswith("1") else (-1.0, 1.0)  # who has just moved took the last object

    def view(self, position: str, seat: int) -> str:
        return ", ".join(f"heap {n}: {heap}" for n, heap in enumerate(_heaps(position), 1))


def _heaps(position: str) -> list[int]:
    return [int(heap) for heap in position[:-2].split(",")]
