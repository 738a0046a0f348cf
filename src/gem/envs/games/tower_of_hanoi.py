r"""Tower of Hanoi: move every disk to peg C, one at a time, never a larger one onto a smaller one.

Action       text containing ``\boxed{A C}``, source peg then target peg; the last box with two pegs counts.
Observation  the rules card on reset, then one line per turn; both with the pegs, disks from bottom to top.
Reward       1.0 when every disk is on C. At the turn limit, 1/disks for each disk settled since the start: a disk is
             settled when it and all larger disks are on C. -0.1 for an unreadable turn, which ends the game.
Ends         terminated when solved or on an unreadable turn; truncated after ``max_turns`` turns.
Bound        2^disks - 1 moves from the full stack on A; no legal position needs more moves.
Instances    one for each number of disks, the full stack on A; 3^disks - 1 with ``random_start``.

>>> env = TowerofHanoiEnv(num_disks=3)
>>> _ = env.reset(seed=0)
>>> print(env.step(r"\boxed{A C}").observation)
Turn 1: moved disk 1 from A to C.
A: 3 2
B: -
C: 1
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

from gem._internal.counts import check_count
from gem.core import Optimum, StopReason
from gem.envs.game import SUCCESS, GameEnv, OnUnreadable, Outcome
from gem.parsing import last_boxed

PEGS = "ABC"
GOAL = 2  # peg C
DISKS = range(2, 11)  # with a single disk, always making the same move would solve half of all positions
TURNS = {3: 10, 4: 20, 5: 35}  # published limits; random_level draws from these sizes

_MOVE = re.compile(r"\s*([ABCabc])\s*(?:,\s*|\bto\b\s*)?([ABCabc])\s*")
_PEG_LINE = re.compile(r"^([ABC]): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class State:
    """State of an episode.

    Args:
        where: the peg, 0 to 2, of each disk, smallest disk first.
        settled_at_start: number of disks settled in the initial position. They earn nothing.
    """

    where: tuple[int, ...]
    settled_at_start: int


def invalid_reason(where: tuple[int, ...], source: int, target: int) -> str | None:
    """Return a reason code if the top disk of one peg cannot be moved to another, else None."""
    if source == target:
        return "same_peg"
    if source not in where:
        return "empty_peg"
    if target in where and where.index(target) < where.index(source):
        return "larger_on_smaller"
    return None


def moved(where: tuple[int, ...], source: int, target: int) -> tuple[int, ...]:
    top = where.index(source)
    return (*where[:top], target, *where[top + 1 :])


def settled(where: tuple[int, ...]) -> int:
    """Return the number of settled disks: disks on the goal peg, all of whose larger disks are also on the goal peg."""
    count = 0
    for peg in reversed(where):
        if peg != GOAL:
            break
        count += 1
    return count


def shortest_solution(where: tuple[int, ...]) -> tuple[int, tuple[int, int] | None]:
    """Return the length of the shortest solution, which is unique, and its first move.

    The first move is None if the position is solved.

    The largest disk that is not on its goal peg must move there, so all smaller disks must first be on the third peg,
    which becomes their goal.
    """
    length, first, goal = 0, None, GOAL
    for disk in reversed(range(len(where))):
        if where[disk] != goal:
            length += 1 << disk
            first = (where[disk], goal)
            goal = 3 - where[disk] - goal
    return length, first


def longest(num_disks: int) -> int:
    """Return the number of moves needed from the hardest legal position, such as the full stack on peg A."""
    return (1 << num_disks) - 1


def render(where: tuple[int, ...]) -> str:
    lines = []
    for peg, name in enumerate(PEGS):
        disks = [str(disk + 1) for disk in reversed(range(len(where))) if where[disk] == peg]
        lines.append(f"{name}: {' '.join(disks) or '-'}")
    return "\n".join(lines)


class TowerofHanoiEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        num_disks: number of disks, 2 to 10; None stands for random_level.
        max_turns: number of moves allowed; None stands for the published limit for 3 to 5 disks, and for
            2^disks - 1 + disks otherwise. With fewer than 2^disks - 1 moves, some positions cannot be solved.
        random_start: start from a uniformly drawn legal position, never the solved one, instead of the stack on A.
        random_level: draw the number of disks, 3 to 5, for every episode and ignore num_disks.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: when num_disks is out of range or max_turns < 1.
    """

    state: State
    move_format = r"\boxed{A C}"

    def __init__(
        self,
        num_disks: int | None = 3,
        max_turns: int | None = None,
        *,
        random_start: bool = False,
        random_level: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        random_level, num_disks = random_level or num_disks is None, 3 if num_disks is None else num_disks
        check_count("num_disks", num_disks, DISKS[0], DISKS[-1])
        self.num_disks, self.random_start, self.random_level = num_disks, random_start, random_level
        self.turns_from_size = max_turns is None
        if max_turns is None:
            max_turns = max(TURNS.values()) if random_level else default_turns(num_disks)
        super().__init__(max_turns=max_turns, on_unreadable=on_unreadable)

    def start(self) -> State:
        disks = self.rng.choice(sorted(TURNS)) if self.random_level else self.num_disks
        where = (0,) * disks
        if self.random_start:
            position = self.rng.randrange(
                3**disks - 1
            )  # one base-3 digit per disk; the last position, all disks on C, is excluded
            where = tuple(position // 3**disk % 3 for disk in range(disks))
        return State(where, settled(where))

    def turn_limit(self) -> int:
        return default_turns(len(self.state.where)) if self.turns_from_size else self.max_turns

    def rules(self) -> str:
        disks = len(self.state.where)
        return (
            f"Tower of Hanoi: move all {disks} disks to peg C, in at most {self.turn_limit()} turns.\n"
            "A move takes the top disk of one peg to another peg, never onto a smaller disk; disk 1 is the smallest. "
            "No position needs more than "
            rf"{longest(disks)} moves. Write each move in a box, source peg then target peg, like \boxed{{A C}}."
            "\nSolving the puzzle earns 1. If the turns run out, each disk that you have moved to C together with all "
            f"larger ones earns 1/{disks}.\nThe pegs, with disks listed from bottom to top:"
        )

    def board(self) -> str:
        return render(self.state.where)

    def read(self, action: str) -> tuple[int, int] | None:
        content = last_boxed(action, _MOVE)
        if content is None:
            return None
        source, target = [PEGS.index(letter) for letter in content.upper() if letter in PEGS]
        return source, target

    def play(self, move: tuple[int, int]) -> Outcome:
        where, (source, target) = self.state.where, move
        reason = invalid_reason(where, source, target)
        if reason is not None:
            return Outcome(self._refusal(reason, source, target), invalid=reason)
        disk = where.index(source) + 1
        where = moved(where, source, target)
        self.state = State(where, self.state.settled_at_start)
        line = f"moved disk {disk} from {PEGS[source]} to {PEGS[target]}."
        if settled(where) == len(where):
            return Outcome(f"{line} Solved.", SUCCESS, StopReason.SOLVED)
        return Outcome(line)

    def _refusal(self, reason: str, source: int, target: int) -> str:
        if reason == "same_peg":
            return "a move needs two different pegs."
        if reason == "empty_peg":
            return f"peg {PEGS[source]} is empty."
        larger, smaller = (self.state.where.index(peg) + 1 for peg in (source, target))
        return f"disk {larger} cannot be placed on the smaller disk {smaller}."

    def reward_at_limit(self) -> float:
        where = self.state.where
        return max(0, settled(where) - self.state.settled_at_start) / len(where)

    def optimum(self) -> Optimum | None:
        worst, positions = longest(self.num_disks), 3**self.num_disks
        if self.random_level or self.max_turns < worst:
            return None
        # The mean distance to a given peg over all positions, including the solved one, is two thirds of the maximum.
        mean = 2 / 3 * worst * positions / (positions - 1) if self.random_start else worst
        return Optimum(1.0, mean, "shortest solution")

    def instances(self) -> int:
        sizes = sorted(TURNS) if self.random_level else [self.num_disks]
        return sum(3**disks - 1 if self.random_start else 1 for disks in sizes)

    def secrets(self) -> list[str]:
        return []

    def sample_random_action(self) -> str:
        where = self.state.where
        moves = [f"{PEGS[a]} {PEGS[b]}" for a in range(3) for b in range(3) if invalid_reason(where, a, b) is None]
        return rf"\boxed{{{self.action_rng.choice(moves)}}}"

    def ordered_actions(self) -> Iterator[str]:
        for source, target in permutations(range(len(PEGS)), 2):
            if invalid_reason(self.state.where, source, target) is None:
                yield rf"\boxed{{{PEGS[source]} {PEGS[target]}}}"


def default_turns(num_disks: int) -> int:
    return TURNS.get(num_disks, longest(num_disks) + num_disks)


class Oracle:
    """Play the shortest solution; uses only observations."""

    def __init__(self, env: TowerofHanoiEnv) -> None:
        pass

    def act(self, observation: str) -> str:
        peg_of = {
            int(disk): PEGS.index(name)
            for name, disks in _PEG_LINE.findall(observation)
            for disk in disks.split()
            if disk != "-"
        }
        _, move = shortest_solution(tuple(peg_of[disk] for disk in sorted(peg_of)))
        source, target = move or (0, GOAL)
        return rf"\boxed{{{PEGS[source]} {PEGS[target]}}}"
