r"""RushHour: move cars out of the way until the red car can leave a crowded parking lot of 6 × 6.

Action       text containing ``\boxed{B up 2}``: a car, a direction and a number of cells (1 if left out); the last
             such box counts.
Observation  the rules card on reset, then one line per turn; both with the map: ``.`` free, letters cars, X red.
Reward       1.0 when the red car is at the right edge; -0.1 for an unreadable turn, which ends the game; else 0.0.
Ends         terminated when solved or on an unreadable turn; truncated after ``max_turns`` turns.
Bound        every level can be solved in ``most_moves`` moves; breadth-first search has shown it.
Instances    a seed draws one of the stored levels with the number of moves asked for, which scripts/rush_hour_levels.py
             generated at random, and may turn it upside down.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import SUCCESS, GameEnv, OnUnreadable, Outcome, grid
from gem.parsing import last_boxed

SIDE, RED = 6, "X"
LEAST, MOST = 3, 14  # moves of the stored levels
_MOVE = re.compile(r"\s*([A-LX])[\s,]+(up|down|left|right)(?:[\s,]+([1-9][0-9]{0,2}))?\s*", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Car:
    """A car.

    Args:
        name: its letter.
        lane: the row of a horizontal car, the column of a vertical one.
        length: 2 or 3 cells.
        horizontal: whether it moves left and right.
    """

    name: str
    lane: int
    length: int
    horizontal: bool

    def cells(self, place: int) -> list[int]:
        """Return the cells of the car if its first cell is in this column or, for a vertical car, row."""
        if self.horizontal:
            return [self.lane * SIDE + place + n for n in range(self.length)]
        return [(place + n) * SIDE + self.lane for n in range(self.length)]

    def mask(self, place: int) -> int:
        return sum(1 << cell for cell in self.cells(place))


Offsets = tuple[int, ...]  # the first column or row of each car


@dataclass(frozen=True)
class State:
    """State of an episode: the cars, the red one first, and their offsets."""

    cars: tuple[Car, ...]
    offsets: Offsets


def solved(offsets: Offsets) -> bool:
    return offsets[0] == SIDE - 2


def neighbors(masks: list[list[int]], offsets: Offsets) -> Iterator[Offsets]:
    """Yield the positions after one move. ``masks`` has the cells of each car by place, as bits."""
    taken = 0
    for car, place in enumerate(offsets):
        taken |= masks[car][place]
    for car, place in enumerate(offsets):
        others = taken ^ masks[car][place]
        for step in (-1, 1):
            moved = place + step
            while 0 <= moved < len(masks[car]) and not others & masks[car][moved]:
                yield (*offsets[:car], moved, *offsets[car + 1 :])
                moved += step


def masks_of(cars: tuple[Car, ...]) -> list[list[int]]:
    return [[car.mask(place) for place in range(SIDE - car.length + 1)] for car in cars]


def distances(cars: tuple[Car, ...], offsets: Offsets, limit: int | None = None) -> dict[Offsets, int] | None:
    """Return the number of moves to the nearest solved position, for each position that can be reached.

    Returns None if more than `limit` positions can be reached. The dict is empty if no solved position can be.
    """
    masks, seen, layer = masks_of(cars), {offsets}, [offsets]
    while layer:
        reached = {after for before in layer for after in neighbors(masks, before)} - seen
        layer = list(reached)
        seen |= reached
        if limit is not None and len(seen) > limit:
            return None
    layer = [position for position in seen if solved(position)]  # its order does not change the distances
    found, moves = dict.fromkeys(layer, 0), 0
    while layer:
        moves += 1
        following = []
        for before in layer:
            for after in neighbors(masks, before):
                if after not in found:
                    found[after] = moves
                    following.append(after)
        layer = following
    return found


@cache
def levels() -> tuple[tuple[int, str], ...]:
    """Return the stored levels as (moves of the shortest solution, map), written by scripts/rush_hour_levels.py."""
    lines = (files("gem.envs.games") / "data" / "rush_hour.txt").read_text(encoding="ascii").splitlines()
    return tuple((int(line[:2]), line[3:]) for line in lines if not line.startswith("#"))


def upside_down(cells: str) -> str:
    return "".join(cells[start : start + SIDE] for start in range(SIDE * (SIDE - 1), -1, -SIDE))


class RushHourEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        least_moves, most_moves: least and greatest number of moves of the shortest solution, 3 to 14.
        max_turns: number of moves allowed, at least most_moves.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: for values outside these ranges.
    """

    state: State
    move_format = r"\boxed{A up 2}"

    def __init__(
        self,
        least_moves: int = 6,
        most_moves: int = 9,
        max_turns: int = 20,
        *,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        check_count("least_moves", least_moves, LEAST, MOST)
        check_count("most_moves", most_moves, least_moves, MOST, where=" (from least_moves)")
        check_count("max_turns", max_turns, most_moves, where=" (most_moves)")
        self.least_moves, self.most_moves = least_moves, most_moves
        super().__init__(max_turns=max_turns, on_unreadable=on_unreadable)

    def start(self) -> State:
        cells = self.rng.choice(self._maps())
        return read_map(upside_down(cells) if self.rng.random() < 0.5 else cells)

    def _maps(self) -> list[str]:
        return [cells for moves, cells in levels() if self.least_moves <= moves <= self.most_moves]

    def instances(self) -> int:
        return 2 * len(self._maps())

    def rules(self) -> str:
        return (
            f"Rush Hour: bring the red car X to the right edge of its row, in at most {self.max_turns} turns.\n"
            "Each letter is a car, which moves only along its length, through free cells (.), by any number of cells "
            f"in one turn. The level can be solved in {self.most_moves} moves or fewer.\n"
            r"Write each move in a box: \boxed{A up 2} moves car A up by two cells. Solving the level earns 1."
        )

    def board(self) -> str:
        return grid(drawn(self.state), SIDE)

    def read(self, action: str) -> tuple[str, str, int] | None:
        content = last_boxed(action, _MOVE)
        match = None if content is None else _MOVE.fullmatch(content)
        return None if match is None else (match[1].upper(), match[2].lower(), int(match[3] or 1))

    def play(self, move: tuple[str, str, int]) -> Outcome:
        (name, direction, count), state = move, self.state
        index = next((n for n, car in enumerate(state.cars) if car.name == name), None)
        if index is None:
            return Outcome(f"there is no car {name}.", invalid="no_such_car")
        if state.cars[index].horizontal != (direction in ("left", "right")):
            return Outcome(f"car {name} cannot move {direction}.", invalid="across_its_length")
        place = state.offsets[index] + (count if direction in ("right", "down") else -count)
        after = (*state.offsets[:index], place, *state.offsets[index + 1 :])
        if after not in neighbors(masks_of(state.cars), state.offsets):
            return Outcome(f"car {name} cannot move {direction} by {count}: the way is not free.", invalid="blocked")
        self.state = State(state.cars, after)
        line = f"car {name} moves {direction} by {count}."
        if solved(after):
            return Outcome(f"{line} Solved.", SUCCESS, StopReason.SOLVED)
        return Outcome(line)

    def secrets(self) -> list[str]:
        return []

    def sample_random_action(self) -> str:
        moves = neighbors(masks_of(self.state.cars), self.state.offsets)
        return written(self.state, self.action_rng.choice(list(moves)))

    def ordered_actions(self) -> Iterator[str]:
        while True:  # the legal moves of the first car that can move, in turn
            moves = list(neighbors(masks_of(self.state.cars), self.state.offsets))
            yield written(self.state, moves[self.turn % len(moves)])


def written(state: State, after: Offsets) -> str:
    """Return the action that leads to a neighboring position."""
    index = next(n for n, (old, new) in enumerate(zip(state.offsets, after, strict=True)) if old != new)
    car, by = state.cars[index], after[index] - state.offsets[index]
    direction = ("right" if by > 0 else "left") if car.horizontal else ("down" if by > 0 else "up")
    return rf"\boxed{{{car.name} {direction} {abs(by)}}}"


def drawn(state: State) -> str:
    """Return the map of 36 characters, by rows."""
    cells = ["."] * (SIDE * SIDE)
    for car, place in zip(state.cars, state.offsets, strict=True):
        for cell in car.cells(place):
            cells[cell] = car.name
    return "".join(cells)


def read_map(cells: str) -> State:
    """Read the cars and their offsets from a map of 36 characters."""
    cars, offsets = [], []
    for name in sorted(set(cells) - {"."}, key=lambda name: (name != RED, name)):
        first, length = cells.index(name), cells.count(name)
        horizontal = cells[first + 1 : first + 2] == name
        row, column = divmod(first, SIDE)
        cars.append(Car(name, row if horizontal else column, length, horizontal))
        offsets.append(column if horizontal else row)
    return State(tuple(cars), tuple(offsets))


class Oracle:
    """Play a shortest solution, found by breadth-first search; uses only observations."""

    def __init__(self, env: RushHourEnv) -> None:
        pass

    def act(self, observation: str) -> str:
        state = read_map("".join(observation.splitlines()[-SIDE:]).replace(" ", ""))
        known = _known_distances(state.cars)
        if state.offsets not in known:
            known.update(distances(state.cars, state.offsets) or {})
        return written(state, min(neighbors(masks_of(state.cars), state.offsets), key=known.__getitem__))


@lru_cache(maxsize=512)
def _known_distances(cars: tuple[Car, ...]) -> dict[Offsets, int]:
    """Return what is known about these cars, to be added to."""
    return {}
