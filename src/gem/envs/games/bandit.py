r"""Bandit: find the slot machine that pays most often, with a limited number of pulls.

Action       text containing ``\boxed{pull 2}`` to try machine 2, or ``\boxed{choose 2}`` to answer; the last such box
             counts.
Observation  the rules card on reset, then one line per turn; both with the pulls and payments of every machine.
Reward       1.0 for choosing the best machine; -0.1 for an unreadable turn, which ends the game; else 0.0.
Ends         terminated after a choice or an unreadable turn; truncated after ``max_turns`` turns.
Bound        no policy can be sure of the best machine. The oracle is UCB-E (Audibert, Bubeck and Munos 2010), which is
             optimal up to constants if the gap is known, and finds it in most episodes.
Instances    one machine pays with probability 1/2 + gap/2, the others with 1/2 - gap/2 or less, down to half of that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import INTEGER, SUCCESS, GameEnv, OnUnreadable, Outcome
from gem.errors import BadValue
from gem.parsing import last_boxed

MACHINES = range(2, 21)
LEAST_GAP = 0.001  # visible in the four digits of a probability
_MOVE = re.compile(rf"\s*(pull|choose)\s*:?\s*(?:machine\s*)?({INTEGER})\s*", re.IGNORECASE | re.ASCII)
_ROW = re.compile(r"^machine (\d+): (\d+) of (\d+) pulls paid", re.MULTILINE)
_LEFT = re.compile(r"^Turns left: (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class State:
    """State of an episode.

    Args:
        chances: probability that each machine pays.
        pulls, paid: how often each machine was pulled, and how often it paid.
    """

    chances: tuple[float, ...]
    pulls: tuple[int, ...]
    paid: tuple[int, ...]

    @property
    def best(self) -> int:
        return self.chances.index(max(self.chances))


class BanditEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        machines: number of machines, 2 to 20.
        gap: least difference between the best machine's probability to pay and that of any other, at least .001
            and below 1.
        max_turns: number of turns allowed, the choice included.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: for values outside these ranges, or when max_turns < 1.
    """

    state: State
    move_format = r"\boxed{pull 2}"

    def __init__(
        self, machines: int = 5, gap: float = 0.4, max_turns: int = 40, *, on_unreadable: OnUnreadable = "end"
    ) -> None:
        check_count("machines", machines, MACHINES[0], MACHINES[-1])
        if not LEAST_GAP <= gap < 1:
            raise BadValue(f"gap must be at least {LEAST_GAP} and below 1, got {gap}")
        self.machines, self.gap = machines, gap
        super().__init__(max_turns=max_turns, on_unreadable=on_unreadable)

    def start(self) -> State:
        lower = (1 - self.gap) / 2
        chances = [min(round(self.rng.uniform(lower / 2, lower), 4), lower) for _ in range(self.machines)]
        chances[self.rng.randrange(self.machines)] = (1 + self.gap) / 2  # not rounded, which could lessen the gap
        return State(tuple(chances), (0,) * self.machines, (0,) * self.machines)

    def rules(self) -> str:
        return (
            f"Bandit: find which of {self.machines} slot machines pays most often, in at most {self.max_turns} turns.\n"
            f"Each machine pays with a fixed probability; that of the best is {(1 + self.gap) / 2:g}, that of every "
            f"other at most {(1 - self.gap) / 2:g}. A turn either pulls a machine or chooses one, which ends the game: "
            "the best one earns 1, another one or no choice earns 0.\n"
            r"Write each move in a box: \boxed{pull 2} pulls machine 2, \boxed{choose 2} chooses it."
        )

    def board(self) -> str:
        state = self.state
        rows = [
            f"machine {n}: {paid} of {pulls} pulls paid"
            for n, (paid, pulls) in enumerate(zip(state.paid, state.pulls, strict=True), 1)
        ]
        return "\n".join([*rows, f"Turns left: {self.max_turns - self.turn}"])

    def read(self, action: str) -> tuple[str, int] | None:
        content = last_boxed(action, _MOVE)
        match = None if content is None else _MOVE.fullmatch(content)
        return None if match is None else (match[1].lower(), int(match[2]))

    def play(self, move: tuple[str, int]) -> Outcome:
        (verb, number), state = move, self.state
        if not 1 <= number <= self.machines:
            return Outcome(f"there is no machine {number}.", invalid="no_such_machine")
        machine = number - 1
        if verb == "choose":
            if machine == state.best:
                return Outcome(f"machine {number} is the best.", SUCCESS, StopReason.SOLVED)
            return Outcome(f"machine {number} is not the best.", stop=StopReason.LOST)
        pays = self.rng.random() < state.chances[machine]
        self.state = replace(
            state,
            pulls=_counted(state.pulls, machine),
            paid=_counted(state.paid, machine) if pays else state.paid,
        )
        return Outcome(f"machine {number} {'pays' if pays else 'pays nothing'}.")

    def secrets(self) -> list[str]:
        return [f"{chance:.4f}" for chance in self.state.chances]

    def sample_random_action(self) -> str:
        verb = self.action_rng.choice(("pull", "choose"))
        return rf"\boxed{{{verb} {self.action_rng.randint(1, self.machines)}}}"

    def ordered_actions(self) -> Iterator[str]:
        for turn in range(self.max_turns - 1):
            yield rf"\boxed{{pull {turn % self.machines + 1}}}"
        yield r"\boxed{choose 1}"


class Oracle:
    """UCB-E: pull the machine with the highest mean plus sqrt(a / pulls), and choose the highest mean in the last turn.

    Uses only observations.
    """

    def __init__(self, env: BanditEnv) -> None:
        self.gap, self.machines = env.gap, env.machines

    def act(self, observation: str) -> str:
        rows = [(int(n), int(paid), int(pulls)) for n, paid, pulls in _ROW.findall(observation)]
        match = _LEFT.search(observation)
        left = int(match[1]) if match else 1
        if left <= 1:
            best = max(rows, key=lambda row: ((row[1] + 0.5) / (row[2] + 1), row[2]))
            return rf"\boxed{{choose {best[0]}}}"
        budget = sum(pulls for _, _, pulls in rows) + left
        weight = 25 / 36 * (budget - self.machines) / (self.machines / self.gap**2)  # a of theorem 1

        def index(row: tuple[int, int, int]) -> float:
            _, paid, pulls = row
            return math.inf if pulls == 0 else paid / pulls + math.sqrt(weight / pulls)

        return rf"\boxed{{pull {max(rows, key=index)[0]}}}"


def _counted(counts: tuple[int, ...], machine: int) -> tuple[int, ...]:
    return (*counts[:machine], counts[machine] + 1, *counts[machine + 1 :])
