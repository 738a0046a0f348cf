r"""FrozenLake: cross a frozen lake without falling into a hole, on ice that may be slippery.

Action       text containing ``\boxed{down}`` (or up, left, right); the last box with a direction counts.
Observation  the rules card on reset, then one line per turn; both with the map: ``.`` ice, ``O`` hole, ``G`` goal,
             ``@`` the player.
Reward       1.0 at the goal; -0.1 for an unreadable turn, which ends the game; else 0.0.
Ends         terminated at the goal, in a hole or on an unreadable turn; truncated after ``max_turns`` turns.
Bound        on ice that is not slippery, the shortest way is at most ``max_turns`` long. Otherwise the oracle reaches
             the goal with the highest possible probability, found by dynamic programming over the turns left.
Instances    maps are drawn until a way from the upper left to the lower right corner exists that short.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import cycle

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import SUCCESS, GameEnv, OnUnreadable, Outcome, grid, read_direction
from gem.errors import BadValue

SIZES = range(3, 13)
STEPS = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}  # clockwise
DIRECTIONS = tuple(STEPS)
ICE, HOLE, GOAL, PLAYER = ".", "O", "G", "@"


@dataclass(frozen=True)
class State:
    """State of an episode.

    Args:
        cells: the map by rows, without the player.
        where: the player's cell.
    """

    cells: str
    where: int = 0


def after(where: int, direction: str, size: int) -> int:
    """Return the cell reached from a cell; at the edge, the player stays."""
    row, column = divmod(where, size)
    down, right = STEPS[direction]
    row, column = min(max(row + down, 0), size - 1), min(max(column + right, 0), size - 1)
    return row * size + column


def sideways(direction: str) -> tuple[str, str]:
    """Return the two directions at right angles."""
    turn = DIRECTIONS.index(direction)
    return DIRECTIONS[(turn + 1) % 4], DIRECTIONS[(turn + 3) % 4]


def distance(cells: str, size: int) -> int | None:
    """Return the length of the shortest way from the first cell to the goal, or None if there is no way."""
    found, queue = {0: 0}, deque([0])
    while queue:
        where = queue.popleft()
        if cells[where] == GOAL:
            return found[where]
        for direction in DIRECTIONS:
            reached = after(where, direction, size)
            if reached not in found and cells[reached] != HOLE:
                found[reached] = found[where] + 1
                queue.append(reached)
    return None


class FrozenLakeEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        size: rows and columns of the lake, 3 to 12.
        holes: share of the cells that are holes, between 0 and 0.5.
        slip: probability that a move goes in one of the two directions at right angles instead, each equally likely.
        max_turns: number of turns allowed; None stands for 4 * size, and with slippery ice for 8 * size.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: for values outside these ranges, when max_turns < 1, or when no way can be short enough.
    """

    state: State
    move_format = r"\boxed{down}"

    def __init__(
        self,
        size: int = 6,
        holes: float = 0.25,
        slip: float = 0.0,
        max_turns: int | None = None,
        *,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        check_count("size", size, SIZES[0], SIZES[-1])
        if not 0 <= holes <= 0.5:
            raise BadValue(f"holes must be between 0 and 0.5, got {holes}")
        if not 0 <= slip < 1:
            raise BadValue(f"slip must be at least 0 and below 1, got {slip}")
        self.size, self.holes, self.slip = size, holes, slip
        turns = (8 if slip else 4) * size if max_turns is None else max_turns
        super().__init__(max_turns=turns, on_unreadable=on_unreadable)
        if turns < (shortest := 2 * (size - 1)):
            raise BadValue(f"max_turns must be at least {shortest} for size {size}, got {turns}")

    def start(self) -> State:
        size, rng = self.size, self.rng
        while True:
            cells = [HOLE if rng.random() < self.holes else ICE for _ in range(size * size)]
            cells[0], cells[-1] = ICE, GOAL
            way = distance("".join(cells), size)
            if way is not None and way <= self.max_turns:
                return State("".join(cells))

    def rules(self) -> str:
        ice = "The ice is not slippery."
        if self.slip:
            ice = (
                f"The ice is slippery: with probability {self.slip:g} a move goes in one of the two directions at "
                "right angles instead, each equally likely."
            )
        return (
            f"Frozen Lake: walk from the upper left to the goal G, in at most {self.max_turns} turns.\n"
            f"On the map, . is ice, O a hole, and @ is you. Falling into a hole ends the game; at the edge you stay "
            f"where you are. {ice}\n"
            r"Write each move in a box: \boxed{up}, \boxed{down}, \boxed{left} or \boxed{right}. "
            "Reaching the goal earns 1."
        )

    def board(self) -> str:
        state = self.state
        return grid(state.cells[: state.where] + PLAYER + state.cells[state.where + 1 :], self.size)

    def read(self, action: str) -> str | None:
        return read_direction(action)

    def play(self, move: str) -> Outcome:
        went = move
        if self.slip and self.rng.random() < self.slip:
            went = self.rng.choice(sideways(move))
        where = after(self.state.where, went, self.size)
        stays = where == self.state.where
        self.state = replace(self.state, where=where)
        line = f"you {'slip and ' if went != move else ''}{'stay at the edge' if stays else f'move {went}'}."
        if self.state.cells[where] == GOAL:
            return Outcome(f"{line} You reach the goal.", SUCCESS, StopReason.SOLVED)
        if self.state.cells[where] == HOLE:
            return Outcome(f"{line} You fall into a hole.", stop=StopReason.LOST)
        return Outcome(line)

    def secrets(self) -> list[str]:
        return []

    def sample_random_action(self) -> str:
        return rf"\boxed{{{self.action_rng.choice(DIRECTIONS)}}}"

    def ordered_actions(self) -> Iterator[str]:
        return cycle([r"\boxed{right}", r"\boxed{down}"])


class Oracle:
    """Play the way to the goal with the highest probability of arriving in time; reads the map from observations."""

    def __init__(self, env: FrozenLakeEnv) -> None:
        self.env = env  # for the parameters of the card, and the turn

    def act(self, observation: str) -> str:
        env = self.env
        rows = observation.splitlines()[-env.size :]
        cells = "".join(rows).replace(" ", "")
        where = cells.index(PLAYER)
        plan = best_directions(cells.replace(PLAYER, ICE), env.size, env.slip, env.max_turns)
        return rf"\boxed{{{plan[env.max_turns - env.turn - 1][where]}}}"


@lru_cache(maxsize=64)
def best_directions(cells: str, size: int, slip: float, turns: int) -> list[list[str]]:
    """Return the best direction in each cell, by the number of turns left after this one."""
    import numpy as np  # imported late: games otherwise need the standard library only

    reached = np.array([[after(cell, direction, size) for cell in range(size * size)] for direction in DIRECTIONS])
    sides = [[DIRECTIONS.index(side) for side in sideways(direction)] for direction in DIRECTIONS]
    goal = np.array([cell == GOAL for cell in cells])
    over = np.array([cell != ICE for cell in cells])
    value, plan = goal.astype(float), []
    for _ in range(turns):
        straight = value[reached]
        values = (1 - slip) * straight + slip / 2 * sum(straight[[pair[k] for pair in sides]] for k in range(2))
        plan.append([DIRECTIONS[index] for index in values.argmax(axis=0)])
        value = np.where(over, goal.astype(float), values.max(axis=0) * (1 - 1e-6))  # sooner is better
    return plan
