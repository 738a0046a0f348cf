r"""Fifteen Puzzle: slide the tiles of a square board into order.

Action       text containing ``\boxed{up}``, down, left or right, in any case: the direction in which a tile next to the
             blank moves; the last such box counts.
Observation  the result of the move, then the board, with ``.`` for the blank.
Reward       1.0 for the ordered board; -0.1 for a turn without a readable move, which ends the game; otherwise 0.0.
             Tiles in place earn nothing, because a solution often has to move them again.
Ends         terminated on the ordered board or an unreadable turn; truncated after ``max_turns`` turns.
Bound        boards are shuffled by a random walk of bounded length, which is also a bound on the solution.
Instances    at most 11 boards with 2 rows, 9 of them with 10 turns; many with more rows.

>>> env = FifteenPuzzleEnv(num_rows=2, max_turns=10)
>>> print(env.reset(seed=1)[0].splitlines()[0])
Fifteen Puzzle: order the tiles 1 to 3 row by row, with the blank last, in at most 10 turns.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import SUCCESS, GameEnv, OnUnreadable, Outcome, grid, read_direction
from gem.errors import BadValue

SIZES = range(2, 11)
RANDOM_TASKS = ((2, 10), (3, 20), (4, 50))  # (rows, turns) of the published fixed variants
SHUFFLED = 3 / 4  # longest shuffle as a fraction of max_turns, which leaves turns for detours
# Moves needed for the hardest board with n rows (single-tile moves; known from exhaustive search).
FARTHEST = {2: 6, 3: 31, 4: 80}
SLOW_ROWS = 4  # from this size on, solve() may take seconds
RING = 12  # boards with 2 rows; a walk that does not turn back goes around them in a circle
BLANK = 0

OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}

Board = tuple[int, ...]  # tiles in row-major order
_Place = tuple[int, str]  # in a walk: the cell of the blank and the last move
InitAlgo = Literal["monte_carlo", "pure_random"]


@dataclass  # not frozen: each move creates one, and a frozen dataclass takes six times as long to create
class State:
    """State of an episode. ``within`` is an upper bound on the length of a shortest solution of the initial board."""

    size: int
    board: Board
    max_turns: int
    within: int


@cache
def goal(size: int) -> Board:
    return (*range(1, size * size), BLANK)


@cache
def neighbours(size: int) -> tuple[dict[str, int], ...]:
    """Return, for each position of the blank, a map from each legal move to the cell of the tile that moves.

    >>> neighbours(2)[3]
    {'down': 1, 'right': 2}
    """
    tables = []
    for cell in range(size * size):
        row, col = divmod(cell, size)
        sources = {"up": (row + 1, col), "down": (row - 1, col), "left": (row, col + 1), "right": (row, col - 1)}
        tables.append({d: r * size + c for d, (r, c) in sources.items() if 0 <= r < size and 0 <= c < size})
    return tuple(tables)


def slide(board: Board, size: int, move: str) -> Board | None:
    """Return the board after a tile moves in that direction; None if no tile can move that way."""
    blank = board.index(BLANK)
    tile = neighbours(size)[blank].get(move)
    return None if tile is None else _swap(board, blank, tile)


def _swap(board: Board, a: int, b: int) -> Board:
    cells = list(board)
    cells[a], cells[b] = cells[b], cells[a]
    return tuple(cells)


def walk(rng: random.Random, size: int, moves: int) -> Board:
    """Shuffle the ordered board by `moves` random moves, none of which undoes the previous move.

    If the walk ends at the ordered board, its last move is undone.
    """
    cells, table, bits = list(goal(size)), _continuations(size), rng.getrandbits
    before, here = 0, (len(cells) - 1, "")
    for _ in range(moves):
        before, following = here[0], table[here]
        while (drawn := following[bits(2)]) is None:
            pass
        here = drawn
        cells[before], cells[here[0]] = cells[here[0]], BLANK
    board = tuple(cells)
    return _swap(board, here[0], before) if board == goal(size) else board


@cache
def _continuations(size: int) -> dict[_Place, list[_Place | None]]:
    """Return what may follow in a walk, indexed by two random bits. None stands for another draw.

    A draw and its result are those of ``rng.choice`` among one to three moves, which is four times as slow.
    """
    table: dict[_Place, list[_Place | None]] = {}
    for cell, moves in enumerate(neighbours(size)):
        for last in ("", *OPPOSITE):
            ways = [(source, move) for move, source in moves.items() if move != OPPOSITE.get(last)]
            # A single way needs one bit to be 0, the first of the two.
            table[cell, last] = [*(ways * 2 if len(ways) == 1 else ways), None, None, None][:4]
    return table


def permute(rng: random.Random, size: int) -> Board:
    """Return a board drawn uniformly from all solvable boards except the goal."""
    board = goal(size)
    while board == goal(size):
        board = tuple(rng.sample(board, size * size))
        if not is_solvable(board, size):
            first, second = [cell for cell, tile in enumerate(board) if tile != BLANK][:2]
            board = _swap(board, first, second)
    return board


def is_solvable(board: Board, size: int) -> bool:
    """Return whether the ordered board can be reached from a board.

    Each move swaps two cells and moves the blank by one cell. A board is therefore solvable exactly if the parity of
    its permutation equals the parity of the blank's distance from its goal corner.
    """
    swaps = sum(a > b for a, b in itertools.combinations([tile or size * size for tile in board], 2))
    row, col = divmod(board.index(BLANK), size)
    return (swaps + row + col) % 2 == 0


class FifteenPuzzleEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        max_turns: number of moves allowed; None stands for 50.
        num_rows: rows and columns of the board, 2 to 10; None stands for random_size.
        init_algo: "monte_carlo" shuffles by a random walk from the ordered board; "pure_random" draws uniformly from
            all solvable boards and requires max_turns to cover the hardest board (see FARTHEST), so it supports at
            most 4 rows.
        mc_rand_moves: the published name of shuffle_moves; reduced to three quarters of max_turns if it is larger.
        shuffle_moves: maximum length of the walk, 1 to max_turns; None stands for three quarters of max_turns. The
            length is drawn for every episode, between a third of the maximum and the maximum.
        random_size: draw rows and turns from RANDOM_TASKS for every episode; max_turns still applies.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: for values outside these ranges.
    """

    state: State
    move_format = r"\boxed{up}"
    VALID_INITIALIZATION_ALGOS = get_args(InitAlgo)

    def __init__(
        self,
        max_turns: int | None = 20,
        num_rows: int | None = 3,
        init_algo: InitAlgo = "monte_carlo",
        mc_rand_moves: int | None = None,
        *,
        shuffle_moves: int | None = None,
        random_size: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        random_size, num_rows = random_size or num_rows is None, 3 if num_rows is None else num_rows
        max_turns = RANDOM_TASKS[-1][1] if max_turns is None else max_turns
        if mc_rand_moves is not None and shuffle_moves is None:
            shuffle_moves = max(1, min(mc_rand_moves, int(max_turns * SHUFFLED)))
        super().__init__(max_turns=max_turns, on_unreadable=on_unreadable)
        check_count("num_rows", num_rows, SIZES[0], SIZES[-1])
        check_count("shuffle_moves", shuffle_moves, 1, max_turns, where=" (max_turns)", optional=True)
        if init_algo not in get_args(InitAlgo):
            raise BadValue(f"init_algo must be 'monte_carlo' or 'pure_random', got {init_algo!r}")
        if init_algo == "pure_random" and (random_size or not FARTHEST.get(num_rows, max_turns + 1) <= max_turns):
            known = ", ".join(f"num_rows={size} with max_turns={turns}" for size, turns in FARTHEST.items())
            got = f"num_rows={num_rows} with max_turns={max_turns}" if not random_size else "random_size"
            raise BadValue(f"init_algo='pure_random' takes {known}, or more turns; got {got}")
        self.num_rows, self.random_size = num_rows, random_size
        self.init_algo, self.shuffle_moves = init_algo, shuffle_moves

    def start(self) -> State:
        size, turns = self.rng.choice(RANDOM_TASKS) if self.random_size else (self.num_rows, self.max_turns)
        turns = min(turns, self.max_turns)
        if self.init_algo == "pure_random":
            return State(size, permute(self.rng, size), turns, within=FARTHEST[size])
        lengths = self._walk_lengths(turns)
        longest, moves = lengths[-1], self.rng.randint(lengths[0], lengths[-1])
        return State(size, walk(self.rng, size, moves), turns, within=min(longest, FARTHEST.get(size, longest)))

    def turn_limit(self) -> int:
        return self.state.max_turns

    def rules(self) -> str:
        state = self.state
        return (
            f"Fifteen Puzzle: order the tiles 1 to {state.size**2 - 1} row by row, with the blank last, "
            f"in at most {state.max_turns} turns.\n"
            "A move slides a tile into the blank '.' next to it. The direction is the tile's: 'up' moves the tile "
            "below the blank.\n"
            r"Write each move in a box: \boxed{up}, \boxed{down}, \boxed{left} or \boxed{right}."
            f"\nThe ordered board earns 1. It can be reached in at most {state.within} moves."
        )

    def board(self) -> str:
        return grid([tile or "." for tile in self.state.board], self.state.size)

    def read(self, action: str) -> str | None:
        return read_direction(action)

    def play(self, move: str) -> Outcome:
        state = self.state
        board = slide(state.board, state.size, move)
        if board is None:
            return Outcome(f"no tile can move {move}.", invalid="no_tile")
        self.state = State(state.size, board, state.max_turns, state.within)
        if board == goal(state.size):
            return Outcome(f"you moved {move}; the tiles are in order.", SUCCESS, StopReason.SOLVED)
        return Outcome(f"you moved {move}.")

    def instances(self) -> int | None:
        if self.random_size or self.num_rows > 2:
            return None
        if self.init_algo == "pure_random":
            return RING - 1
        ends = {end % RING for moves in self._walk_lengths(self.max_turns) for end in (moves, -moves)}
        return len((ends | {1, -1 % RING} if 0 in ends else ends) - {0})

    def _walk_lengths(self, turns: int) -> range:
        longest = min(turns, self.shuffle_moves or max(1, int(turns * SHUFFLED)))
        return range(max(1, longest // 3), longest + 1)

    def secrets(self) -> list[str]:
        return []

    def sample_random_action(self) -> str:
        moves = neighbours(self.state.size)[self.state.board.index(BLANK)]
        return rf"\boxed{{{self.action_rng.choice(list(moves))}}}"

    def ordered_actions(self) -> Iterator[str]:
        for move in OPPOSITE:
            if move in neighbours(self.state.size)[self.state.board.index(BLANK)]:
                yield rf"\boxed{{{move}}}"


def solve(board: Board) -> list[str]:
    """Return a shortest solution of a solvable board, found by A* with the sum of Manhattan distances.

    Solving a 4x4 board takes less than a second at 40 moves from the goal, but would take days for the hardest boards.
    """
    size = int(len(board) ** 0.5)
    targets = [divmod(tile - 1, size) for tile in range(size * size)]
    distance = [
        [abs(cell // size - row) + abs(cell % size - col) for cell in range(size * size)] for row, col in targets
    ]
    left = sum(distance[tile][cell] for cell, tile in enumerate(board) if tile != BLANK)
    moves: dict[Board, str] = {board: ""}  # the last move of the shortest known path to each board
    steps = {board: 0}
    heap = [(left, left, board)]
    while True:
        total, left, here = heapq.heappop(heap)
        if left == 0:
            break
        if total - left > steps[here]:
            continue  # a shorter path to this board has been found since it was queued
        step, blank = steps[here] + 1, here.index(BLANK)
        for move, source in neighbours(size)[blank].items():
            after, tile = _swap(here, blank, source), here[source]
            if after not in steps or steps[after] > step:
                moves[after], steps[after] = move, step
                after_left = left - distance[tile][source] + distance[tile][blank]
                heapq.heappush(heap, (step + after_left, after_left, after))
    path = []
    while moves[here]:
        path.append(moves[here])
        blank = here.index(BLANK)
        here = _swap(here, blank, neighbours(size)[blank][OPPOSITE[moves[here]]])
    return path[::-1]


class Oracle:
    """Play a shortest solution; uses only observations.

    A move of another player is undone if the board has SLOW_ROWS or more rows, where another search may take seconds.
    """

    def __init__(self, env: FifteenPuzzleEnv) -> None:
        self.plan: list[str] = []
        self.before: Board = ()  # the board at the last call
        self.move = ""
        self.expected: Board = ()

    def act(self, observation: str) -> str:
        lines = observation.splitlines()
        size = len(lines[-1].split())
        board = tuple(BLANK if tile == "." else int(tile) for line in lines[-size:] for tile in line.split())
        if board != self.expected:
            made = [
                move for move in OPPOSITE if len(self.before) == len(board) and slide(self.before, size, move) == board
            ]
            slow = made and size >= SLOW_ROWS
            self.plan = [OPPOSITE[made[0]], self.move, *self.plan] if slow else solve(board)
        self.before, self.move = board, self.plan.pop(0)
        self.expected = slide(board, size, self.move) or ()
        return rf"\boxed{{{self.move}}}"
