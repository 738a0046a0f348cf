r"""Rooms: follow an instruction such as "pick up the grey key" in a grid of rooms with doors, keys, balls and boxes.

Action       text containing ``\boxed{forward}`` (or left, right, pick up, drop, toggle); the last such box counts.
Observation  the rules card with the task on reset, then one line per turn; both with what the agent sees: the part of a
             square of 7 × 7 cells ahead of it that walls and closed doors do not hide, as a map and in words.
Reward       1.0 when the task is done; -0.1 for an unreadable turn, which ends the game; else 0.0.
Ends         terminated when the task is done or on an unreadable turn; truncated after ``max_turns`` turns.
Bound        the plan in gem.envs.games.grids.rooms_world solves every episode in at most half of ``max_turns`` turns.
Instances    rooms, doors, objects and tasks are drawn until the plan of one is neither too long nor too short.
Source       the tasks and the six actions are those of BabyAI (Chevalier-Boisvert et al. 2018).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import cycle

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import SUCCESS, GameEnv, OnUnreadable, Outcome, grid
from gem.envs.games.grids.rooms_world import (
    COMPASS,
    FLOOR,
    MOVES,
    WALL,
    Door,
    State,
    Thing,
    after,
    is_done,
    plan,
)
from gem.errors import BadValue
from gem.parsing import last_boxed

COLORS = ("red", "green", "blue", "purple", "yellow", "grey")
KINDS = {"ball": "o", "box": "x", "key": "k"}  # with their signs on the map
DRAWS = 2_000  # of which at least a third is playable with the arguments of the ids
UNSEEN, AGENT, OPEN_DOOR, CLOSED_DOOR = "?", "^", "/", "D"
VIEW = 7  # rows and columns of what the agent sees; it stands in the middle of the last row
_AWAY = [(far, side) for far in range(VIEW - 1, -1, -1) for side in range(-(VIEW // 2), VIEW // 2 + 1)]
_START = _AWAY.index((0, 0))
_NEIGHBORS = [
    [
        index
        for index, other in enumerate(_AWAY)
        if index != _START and max(abs(other[0] - away[0]), abs(other[1] - away[1])) == 1
    ]
    for away in _AWAY
]
_OFFSETS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # differences of row and column, by direction
_MOVE = re.compile(
    r"\s*(?:(?:turn\s+)?(left|right)|(?:go\s+|move\s+)?(forward)|(pick)\s*up|(drop)|(toggle))\s*",
    re.IGNORECASE | re.ASCII,
)


def seen(state: State) -> list[int | None]:
    """Return the cells that the agent sees, by rows of VIEW, the farthest first; None for a hidden one.

    A cell is seen if a way leads to it, also diagonally, over cells of the view that do not hide others.
    """
    rows, width = len(state.walls) // state.width, state.width
    row, column = divmod(state.where, width)
    down, right = _OFFSETS[state.facing]
    walls, opaque = state.walls, {door.cell for door in state.doors if door.status != "open"}
    found: list[int | None] = [None] * (VIEW * VIEW)
    found[_START] = state.where
    waiting = [_START]
    while waiting:
        for other in _NEIGHBORS[waiting.pop()]:
            if found[other] is None:
                far, side = _AWAY[other]
                y, x = row + far * down + side * right, column + far * right - side * down
                if 0 <= y < rows and 0 <= x < width:
                    cell = found[other] = y * width + x
                    if walls[cell] == FLOOR and cell not in opaque:
                        waiting.append(other)
    return found


class RoomsEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        rows, columns: number of rooms below and beside each other, 1 to 4; at least two rooms.
        size: rows and columns of a room without its walls, 3 to 6.
        objects: number of objects besides the keys of locked doors, 2 to 8.
        locked: number of locked doors, 0 to 3, less than the number of rooms.
        tasks: the kinds of tasks, some of "go to", "pick up", "open" and "put".
        least_moves: the plan of a task has at least as many moves.
        max_turns: number of turns allowed, at least 8 and four times least_moves. Plans take at most half of them.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: for values outside these ranges; by reset, if no task was found with these arguments.
    """

    state: State
    move_format = r"\boxed{forward}"

    def __init__(
        self,
        rows: int = 2,
        columns: int = 2,
        size: int = 4,
        objects: int = 4,
        locked: int = 1,
        tasks: tuple[str, ...] = ("go to", "pick up", "open", "put"),
        least_moves: int = 12,
        max_turns: int = 80,
        *,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        check_count("max_turns", max_turns, 8)
        rooms = rows * columns
        for name, value, least, most in (
            *(("rows", rows, 1, 4), ("columns", columns, 1, 4), ("size", size, 3, 6), ("objects", objects, 2, 8)),
            *(("locked", locked, 0, min(3, rooms - 1)), ("least_moves", least_moves, 2, max_turns // 4)),
        ):
            check_count(name, value, least, most)
        if rooms < 2:
            raise BadValue("columns must be at least 2 where rows is 1, got 1")
        if not tasks or set(tasks) - {"go to", "pick up", "open", "put"}:
            raise BadValue(f"tasks must be some of 'go to', 'pick up', 'open' and 'put', got {tasks!r}")
        self.rows, self.columns, self.size, self.objects, self.locked = rows, columns, size, objects, locked
        self.tasks, self.least_moves = tuple(tasks), least_moves
        super().__init__(max_turns=max_turns, on_unreadable=on_unreadable)

    def start(self) -> State:
        for _ in range(DRAWS):
            state = self._drawn(self.rng)
            moves = None if is_done(state) else plan(state)
            if moves is not None and self.least_moves <= len(moves) <= self.max_turns // 2:
                return state
        raise BadValue(f"no task of {DRAWS:,} has a plan of {self.least_moves} moves or more; lower least_moves")

    def _drawn(self, rng: random.Random) -> State:
        """Draw rooms that are all connected, with objects and a task, which may be impossible."""
        pitch, rooms = self.size + 1, self.rows * self.columns
        width = self.columns * pitch + 1
        walls = "".join(
            WALL if row % pitch == 0 or column % pitch == 0 else FLOOR
            for row in range(self.rows * pitch + 1)
            for column in range(width)
        )
        floor = [cell for cell, sign in enumerate(walls) if sign == FLOOR]
        between = [(room, room + 1) for room in range(rooms) if (room + 1) % self.columns]
        between += [(room, room + self.columns) for room in range(rooms - self.columns)]
        rng.shuffle(between)
        group, gaps = list(range(rooms)), []
        for one, other in between:
            joins = group[one] != group[other]
            if joins or rng.random() < 0.25:
                row, column = (value * pitch for value in divmod(one, self.columns))
                along = rng.randint(1, self.size)
                down = other - one == self.columns
                gaps.append((row + pitch) * width + column + along if down else (row + along) * width + column + pitch)
                group = [group[one] if g == group[other] else g for g in group]
        rng.shuffle(gaps)
        colors = rng.sample(COLORS, len(COLORS))
        doors = tuple(
            Door(f"{color} door", cell, "locked" if number < self.locked else "closed")
            for number, (cell, color) in enumerate(zip(gaps, colors, strict=False))  # further gaps have no doors
        )
        walls = "".join(FLOOR if cell in gaps else sign for cell, sign in enumerate(walls))
        keys = [door.key for door in doors[: self.locked]]
        others = [f"{color} {kind}" for color in COLORS for kind in KINDS]
        names = keys + rng.sample([name for name in others if name not in keys], self.objects)
        near = {gap + step for gap in gaps for step in (-width, -1, 1, width)}  # kept free, or doors would be blocked
        cells = rng.sample([cell for cell in floor if cell not in near], len(names) + 1)
        things = tuple(map(Thing, names, cells))
        verb, target = rng.choice(self.tasks), ""
        if verb == "open":
            name = rng.choice(doors).name
        elif verb == "put":
            name, target = rng.sample(names, 2)
        else:
            name = rng.choice(names)
        return State(walls, width, things, doors, cells[-1], rng.randrange(4), (verb, name, target))

    def task(self) -> str:
        """Return the instruction, such as "put the red ball next to the blue box"."""
        verb, name, other = self.state.task
        return f"{verb} the {name}" + (f" next to the {other}" if other else "")

    def rules(self) -> str:
        return (
            f"Rooms: {self.task()}, in at most {self.max_turns} turns.\n"
            f"You see at most {VIEW} rows and columns ahead of you, but not through walls and closed doors. The map "
            f"shows them as you look: {AGENT} is you, facing up, {FLOOR} floor, {WALL} wall, {UNSEEN} not seen, "
            f"{OPEN_DOOR} an open door, {CLOSED_DOOR} a closed one, "
            f"{', '.join(f'{sign} a {kind}' for kind, sign in KINDS.items())}.\n"
            "Write each move in a box: \\boxed{left} and \\boxed{right} turn you, \\boxed{forward} takes you one cell "
            "ahead, \\boxed{pick up} and \\boxed{drop} take and put one object in the cell ahead, and \\boxed{toggle} "
            "opens or closes the door ahead. You can carry one object. A locked door needs the key of its color in "
            "your hands. To go to something means to face it in the next cell. Next to something is not diagonally. "
            "Doing the task earns 1."
        )

    def board(self) -> str:
        state = self.state
        view, held = seen(state), state.carried()
        signs, things = [], []
        for cell, (far, side) in zip(view, _AWAY, strict=True):
            item = None if cell is None else state.at(cell)
            if cell is None:
                signs.append(UNSEEN)
            elif cell == state.where:
                signs.append(AGENT)
            elif item is None:
                signs.append(state.walls[cell])
            else:
                signs.append(_sign(item))
                things.append((far + abs(side), f"{_described(item)} {_place(far, side)}"))
        listed = "; ".join(text for _, text in sorted(things)) or "nothing but floor and walls"
        carrying = f" and carry {_article(held.name)}" if held else ""
        return f"{grid(signs, VIEW)}\nYou face {COMPASS[state.facing]}{carrying}. You see: {listed}."

    def state_key(self) -> str:
        return repr(self.state)  # different states look alike

    def read(self, action: str) -> str | None:
        content = last_boxed(action, _MOVE)
        match = None if content is None else _MOVE.fullmatch(content)
        if match is None:
            return None
        word = next(group for group in match.groups() if group).lower()
        return "pick up" if word == "pick" else word

    def play(self, move: str) -> Outcome:
        self.state, line, invalid = after(self.state, move)
        if invalid is None and is_done(self.state):
            return Outcome(f"{line} The task is done.", SUCCESS, StopReason.SOLVED)
        return Outcome(line, invalid=invalid)

    def secrets(self) -> list[str]:
        return []

    def sample_random_action(self) -> str:
        legal = [move for move in MOVES if after(self.state, move)[2] is None]
        return rf"\boxed{{{self.action_rng.choice(legal)}}}"

    def ordered_actions(self) -> Iterator[str]:
        for move in cycle(("forward", "toggle", "pick up", "right")):  # the first that is legal, in turn
            if after(self.state, move)[2] is None:
                yield rf"\boxed{{{move}}}"


def _sign(item: Thing | Door) -> str:
    if isinstance(item, Door):
        return OPEN_DOOR if item.status == "open" else CLOSED_DOOR
    return KINDS[item.name.split()[1]]


def _described(item: Thing | Door) -> str:
    return _article(f"{item.status} {item.name}" if isinstance(item, Door) else item.name)


def _place(far: int, side: int) -> str:
    aside = f"{abs(side)} {'left' if side < 0 else 'right'}"
    return f"{far} ahead and {aside}" if far and side else f"{far} ahead" if far else aside


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


class Oracle:
    """Play the plan of gem.envs.games.grids.rooms_world; reads the state."""

    def __init__(self, env: RoomsEnv) -> None:
        self.env = env
        self.expected: State | None = None
        self.left: list[str] = []

    def act(self, observation: str) -> str:
        state = self.env.state
        if state != self.expected or not self.left:
            self.left = plan(state) or []
        if not self.left:  # others have blocked the way
            return self.env.sample_random_action()
        move, *self.left = self.left
        self.expected = after(state, move)[0]
        return rf"\boxed{{{move}}}"
