r"""Sokoban: push every box onto a target. First the rules, then the making of levels, the env, the oracle's search.

Action       text holding ``\boxed{up}``, down, left or right, in any case; the last such box counts. You walk one cell
             that way, and push a box that stands there if the cell behind it is free.
Observation  what the move did, then the board: ``#`` wall, ``_`` floor, ``.`` target, ``$`` box, ``*`` box on a target,
             ``@`` you, ``+`` you on a target.
Reward       half of 1.0 in equal shares for the boxes, each paid when more of them than ever before stand on targets;
             the rest of 1.0 when all do. -0.1 for a turn with no readable move, which ends the game.
Ends         terminated when all boxes stand on targets or on an unreadable turn; truncated when ``max_turns`` are
             spent. A box stuck in a corner does not end the game.
Bound        levels are made by playing backwards from the end, so a known number of moves, four fifths of
             ``max_turns`` at most, always suffices.

>>> env = SokobanEnv(dim_room=(6, 6), num_boxes=2, max_turns=20)
>>> print(env.reset(seed=0)[0].splitlines()[0])
Sokoban: push every box (2) onto a target, in at most 20 turns.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from gem.core import StopReason
from gem.envs.game_env.base import SUCCESS, GameEnv, OnUnreadable, Outcome, grid, read_direction, share
from gem.errors import BadValue

WALL, FLOOR, TARGET = "#", "_", "."
SIDES = range(5, 13)
CELLS_PER_BOX = 4  # inner cells that a level needs for every box, so that boxes can be moved at all
# Rooms, boxes, turns: the published ones.
RANDOM_TASKS = (((6, 6), 2, 20), ((8, 8), 5, 50))
INNER_WALLS = 1 / 5  # of the inner cells, where the floor stays in one piece
SOLUTION = 4 / 5  # of max_turns at most: the rest is for detours
ATTEMPTS = 100
SEARCHED = 5_000  # positions that the oracle looks at before it gives up: about half a second


Boxes = tuple[int, ...]
Offsets = tuple[int, ...]  # by how much the number of the next cell differs, for each direction


@dataclass(frozen=True)
class Level:
    """A room with its boxes and player. Cells are numbered row by row; walls surround them.

    Args:
        room: WALL, FLOOR or TARGET for each cell.
        cols: cells to a row.
        solution: moves that solve the level from here; not the shortest ones.
    """

    room: str
    cols: int
    boxes: Boxes
    player: int
    solution: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """best: most boxes that stood on targets at once, those of the start included."""

    level: Level
    boxes: Boxes
    player: int
    best: int
    max_turns: int


@cache
def steps(cols: int) -> dict[str, int]:
    """For each direction, the offset to the next cell."""
    return {"up": -cols, "down": cols, "left": -1, "right": 1}


def push(room: str, step: int, boxes: Boxes, player: int) -> tuple[Boxes, int] | None:
    """Boxes and player after a step; None when a wall, or a box that cannot be pushed, is in the way."""
    ahead = player + step
    if room[ahead] == WALL:
        return None
    if ahead not in boxes:
        return boxes, ahead
    behind = ahead + step
    if room[behind] == WALL or behind in boxes:
        return None
    return tuple([behind if box == ahead else box for box in boxes]), ahead


def on_target(room: str, boxes: Boxes) -> int:
    return sum(room[box] == TARGET for box in boxes)


def paid(best: int, first: int, boxes: int) -> float:
    """What `best` boxes on targets have paid in all, where `first` of them stood there at the start."""
    return SUCCESS if best == boxes else share(best - first, boxes - first) / 2


def reach(room: str, offsets: Offsets, boxes: Boxes, start: int) -> dict[int, int]:
    """The cells that the player can walk to, nearest first, each with the offset by which it was entered; start: 0."""
    entered, queue = {start: 0}, [start]
    for cell in queue:
        for offset in offsets:
            ahead = cell + offset
            if ahead not in entered and room[ahead] != WALL and ahead not in boxes:
                entered[ahead] = offset
                queue.append(ahead)
    return entered


def way(entered: dict[int, int], cell: int) -> list[int]:
    """The offsets that walk to a cell that reach() found."""
    path = []
    while entered[cell]:
        path.append(entered[cell])
        cell -= entered[cell]
    return path[::-1]


def legal_moves(room: str, cols: int, boxes: Boxes, player: int) -> list[str]:
    return [move for move, step in steps(cols).items() if push(room, step, boxes, player) is not None]


def is_trivial(level: Level) -> bool:
    """Whether one direction, repeated, solves the level."""
    for step in steps(level.cols).values():
        boxes, player = level.boxes, level.player
        while (after := push(level.room, step, boxes, player)) is not None:
            boxes, player = after
            if on_target(level.room, boxes) == len(boxes):
                return True
    return False


def draw_room(rng: random.Random, rows: int, cols: int) -> str:
    """A walled room with some walls inside; its floor is in one piece."""
    inside = [row * cols + col for row in range(1, rows - 1) for col in range(1, cols - 1)]
    room = [WALL] * (rows * cols)
    for cell in inside:
        room[cell] = FLOOR
    offsets = tuple(steps(cols).values())
    for cell in rng.sample(inside, int(len(inside) * INNER_WALLS)):
        room[cell] = WALL
        beside = next(cell + offset for offset in offsets if room[cell + offset] == FLOOR)
        if len(reach("".join(room), offsets, (), beside)) < room.count(FLOOR):
            room[cell] = FLOOR
    return "".join(room)


class _Scene(NamedTuple):
    """A moment of a game played backwards.

    entered: the cells that the player can walk to, see reach(). path: the offsets walked so far.
    """

    boxes: Boxes
    entered: dict[int, int]
    path: list[int]


def _pull(rng: random.Random, room: str, offsets: Offsets, targets: Boxes, scene: _Scene, budget: int) -> _Scene | None:
    """The scene after walking to a box and pulling it for one to three cells; None when that is nowhere possible.

    Boxes on targets go first. The player never shuts itself out of half of the floor.
    """
    boxes, entered, path = scene
    options = [(box not in targets, rng.random(), box, offset) for box in boxes for offset in offsets]
    for _, _, box, offset in sorted(options):
        player, after = box + offset, boxes
        if player not in entered:
            continue
        walk = way(entered, player)
        for _ in range(min(rng.randint(1, 3), budget - len(path) - len(walk))):
            if room[player + offset] == WALL or player + offset in after:
                break
            after = tuple([player if b == box else b for b in after])
            box, player = player, player + offset
            walk.append(offset)
        if after != boxes:
            entered_after = reach(room, offsets, after, player)
            if 2 * len(entered_after) > room.count(FLOOR) - len(boxes):
                return _Scene(after, entered_after, path + walk)
    return None


def unplay(rng: random.Random, room: str, cols: int, num_boxes: int, budget: int) -> Level:
    """A level made backwards: from boxes on targets, the player pulls them away, in at most `budget` moves."""
    offsets = tuple(steps(cols).values())
    floor = [cell for cell, kind in enumerate(room) if kind == FLOOR]
    targets = tuple(rng.sample(floor, num_boxes))
    # Where the player ends does not matter, so it may start pulling anywhere.
    scene = _Scene(targets, {cell: 0 for cell in floor if cell not in targets}, [])
    spare = rng.randint(0, 3)
    while (pulled := _pull(rng, room, offsets, targets, scene, budget - spare)) is not None:
        scene = pulled
    # Walk away at last, or every level would begin with a push.
    left = budget - len(scene.path)
    player = rng.choice([cell for cell in scene.entered if len(way(scene.entered, cell)) <= left])
    path = scene.path + way(scene.entered, player)
    names = {-offset: name for name, offset in steps(cols).items()}  # played forwards, each step goes the other way
    board = "".join(TARGET if cell in targets else kind for cell, kind in enumerate(room))
    return Level(board, cols, scene.boxes, player, tuple(names[offset] for offset in reversed(path)))


def draw_level(rng: random.Random, rows: int, cols: int, num_boxes: int, budget: int) -> Level:
    """An unsolved level that at most `budget` moves solve.

    One direction repeated does not solve it, no box stands on a target, and the known solution takes at least half the
    budget, unless ATTEMPTS levels in a row miss that; then it is the one of them that comes nearest.
    """
    ranked: list[tuple[bool, int, int, Level]] = []
    while len(ranked) < ATTEMPTS or not any(off for _, off, _, _ in ranked):
        level = unplay(rng, draw_room(rng, rows, cols), cols, num_boxes, budget)
        off, length = num_boxes - on_target(level.room, level.boxes), len(level.solution)
        ranked.append((not is_trivial(level), off, length, level))
        if ranked[-1][:2] == (True, num_boxes) and 2 * length >= budget:
            return level
    return max(ranked, key=lambda row: (row[1] > 0, *row[:3]))[3]


class SokobanEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        dim_room: rows and columns of the room with its outer walls, 5 to 12 each.
        num_boxes: 1 to a quarter of the cells within the outer walls.
        max_turns: moves allowed. The known solution takes four fifths of them at most.
        random_size: draw room, boxes and turns from RANDOM_TASKS for every episode; max_turns still holds.
        on_unreadable: see GameEnv.

    Raises BadValue for values outside these ranges.
    """

    state: State
    move_format = r"\boxed{up}"

    def __init__(
        self,
        dim_room: Sequence[int] = (6, 6),
        num_boxes: int = 2,
        max_turns: int = 20,
        *,
        random_size: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        super().__init__(max_turns=max_turns, on_unreadable=on_unreadable)
        sides = tuple(dim_room) if isinstance(dim_room, Sequence) else ()
        if len(sides) != 2 or not all(side in SIDES for side in sides):
            raise BadValue(f"dim_room must be two integers from {SIDES[0]} to {SIDES[-1]}, got {dim_room!r}")
        rows, cols = sides
        most = (rows - 2) * (cols - 2) // CELLS_PER_BOX
        if num_boxes not in range(1, most + 1):
            raise BadValue(f"num_boxes must be an integer from 1 to {most} in a {rows}x{cols} room, got {num_boxes!r}")
        self.dim_room, self.num_boxes, self.random_size = (rows, cols), num_boxes, random_size

    def start(self) -> State:
        (rows, cols), num_boxes, turns = self.dim_room, self.num_boxes, self.max_turns
        if self.random_size:
            (rows, cols), num_boxes, turns = self.rng.choice(RANDOM_TASKS)
            turns = min(turns, self.max_turns)
        level = draw_level(self.rng, rows, cols, num_boxes, budget=max(1, int(turns * SOLUTION)))
        return State(level, level.boxes, level.player, on_target(level.room, level.boxes), turns)

    def turn_limit(self) -> int:
        return self.state.max_turns

    def rules(self) -> str:
        level = self.state.level
        return (
            f"Sokoban: push every box ({len(level.boxes)}) onto a target, in at most {self.state.max_turns} turns.\n"
            "'#' wall, '_' floor, '.' target, '$' box, '*' box on a target, '@' you, '+' you on a target. You walk one "
            "cell a turn and push a box in your way, if the cell behind it is free; you cannot pull.\n"
            r"Write each move in a box: \boxed{up}, \boxed{down}, \boxed{left} or \boxed{right}."
            "\nEach new record of boxes on targets pays a share of 0.5, and a solved level what is left of 1. "
            f"It can be done in {len(level.solution)} moves."
        )

    def board(self) -> str:
        level, state = self.state.level, self.state
        cells = list(level.room)
        for box in state.boxes:
            cells[box] = "*" if cells[box] == TARGET else "$"
        cells[state.player] = "+" if cells[state.player] == TARGET else "@"
        return grid(cells, level.cols)

    def read(self, action: str) -> str | None:
        return read_direction(action)

    def play(self, move: str) -> Outcome:
        state = self.state
        level, total = state.level, len(state.boxes)
        after = push(level.room, steps(level.cols)[move], state.boxes, state.player)
        if after is None:
            return Outcome(f"the way {move} is blocked.", invalid="blocked")
        boxes, player = after
        if boxes is state.boxes:
            self.state = replace(state, player=player)
            return Outcome(f"you moved {move}.")
        placed, first = on_target(level.room, boxes), on_target(level.room, level.boxes)
        best = max(state.best, placed)
        self.state = replace(state, boxes=boxes, player=player, best=best)
        reward = paid(best, first, total) - paid(state.best, first, total)
        line = f"you pushed a box {move}; {placed} of {total} are on targets."
        return Outcome(line, reward, StopReason.SOLVED if placed == total else None)

    def secrets(self) -> list[str]:
        return []

    def sample_random_action(self) -> str:
        level = self.state.level
        moves = legal_moves(level.room, level.cols, self.state.boxes, self.state.player)
        return rf"\boxed{{{self.action_rng.choice(moves)}}}"


def push_distances(room: str, cols: int) -> dict[int, int]:
    """For each cell from which a lone box can be pushed onto a target, the least number of pushes."""
    queue = [cell for cell, kind in enumerate(room) if kind == TARGET]
    distances = dict.fromkeys(queue, 0)
    for cell in queue:
        for offset in steps(cols).values():
            source, pusher = cell + offset, cell + 2 * offset
            if room[source] != WALL and room[pusher] != WALL and source not in distances:
                distances[source] = distances[cell] + 1
                queue.append(source)
    return distances


def search(room: str, cols: int, boxes: Boxes, player: int) -> list[str]:
    """Moves that solve a position, not the fewest; empty where SEARCHED positions show none.

    Best first, by moves so far and twice the pushes that every box needs at least.
    """
    offsets = {offset: name for name, offset in steps(cols).items()}
    distances = push_distances(room, cols)
    if not all(box in distances for box in boxes):
        return []
    heap: list[tuple[int, int, int, Boxes, list[int]]] = [(0, 0, player, tuple(sorted(boxes)), [])]
    seen: set[tuple[int, Boxes]] = set()
    while heap and len(seen) < SEARCHED:
        _, _, player, boxes, path = heapq.heappop(heap)
        if on_target(room, boxes) == len(boxes):
            return [offsets[offset] for offset in path]
        if (player, boxes) in seen:
            continue
        seen.add((player, boxes))
        entered = reach(room, tuple(offsets), boxes, player)
        for box in boxes:
            for offset in offsets:
                pushed = push(room, offset, boxes, box - offset) if box - offset in entered else None
                if pushed is not None and box + offset in distances:
                    after = tuple(sorted(pushed[0]))
                    longer = [*path, *way(entered, box - offset), offset]
                    need = sum(distances[b] for b in after)
                    heapq.heappush(heap, (len(longer) + 2 * need, need, box, after, longer))
    return []


class Oracle:
    """Plays the solution that the level was made with, which it reads from the state.

    Where the game has left that path, it plays what search() finds, and walks about where that is nothing.
    """

    def __init__(self, env: SokobanEnv) -> None:
        self.env = env
        self.plan: list[str] = []
        self.expected: tuple[Boxes, int] | None = None

    def act(self, observation: str) -> str:
        state = self.env.state
        level, here = state.level, (state.boxes, state.player)
        if self.env.turn == 0:
            self.plan = list(level.solution)
        elif here != self.expected:
            self.plan = search(level.room, level.cols, *here)
        move = self.plan.pop(0) if self.plan else legal_moves(level.room, level.cols, *here)[0]
        self.expected = push(level.room, steps(level.cols)[move], *here)
        return rf"\boxed{{{move}}}"
