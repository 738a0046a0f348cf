r"""Lookup: say which digit is in a drawer. It cannot be guessed, but the tool of ``lookup_tool`` shows it.

Action       text containing ``\boxed{drawer:digit}``; the last such box counts. The drawers have digits as names.
Observation  the question on reset, then whether the answer is right.
Reward       1.0 for the digit; -0.1 for an answer without a digit for the drawer that is asked for; otherwise 0.0.
Ends         terminated on the first answer.
Bound        1.0 with the tool; without it, 1 / 10.

The answer repeats the name of the drawer, so that random legal actions teach a new model to copy digits, and not which.

>>> env = LookupEnv(drawers=4)
>>> question, _ = env.reset(seed=3)
>>> env.step(rf"\boxed{{{env.state.asked}:{env.look_up(env.state.asked)}}}").reward
1.0
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import SUCCESS, GameEnv, Outcome
from gem.parsing import last_boxed

ANSWER = re.compile(r"\s*(\d)\s*:\s*(\d)\s*", re.ASCII)
MAX_DRAWERS = 10


@dataclass(frozen=True)
class State:
    drawers: dict[str, int]  # digit by name
    asked: str  # name of the drawer that is asked for


class LookupEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        drawers: number of drawers, 1 to 10.

    Raises:
        BadValue: for another number of drawers.
    """

    state: State
    move_format = r"\boxed{drawer:digit}"

    def __init__(self, drawers: int = 1) -> None:
        check_count("drawers", drawers, 1, MAX_DRAWERS)
        super().__init__(max_turns=1)
        self.drawers = drawers

    def look_up_keys(self) -> list[str]:
        """Return the names of the drawers of this episode, for LookupTool."""
        return list(self.state.drawers)

    def look_up(self, key: str) -> int | None:
        """Return the digit in a drawer, or None if there is no such drawer."""
        return self.state.drawers.get(key)

    def start(self) -> State:
        names = self.rng.sample(range(10), self.drawers)
        drawers = {str(name): self.rng.randrange(10) for name in names}
        return State(drawers, self.rng.choice(list(drawers)))

    def rules(self) -> str:
        names = ", ".join(self.look_up_keys())
        return (
            f"Each drawer holds a digit: {names}. Which one is in drawer {self.state.asked}?\n"
            rf"Write both in a box, like {self.move_format}. You have one answer."
        )

    def secrets(self) -> list[str]:
        return [f"{self.state.asked}:{self.look_up(self.state.asked)}"]

    def read(self, action: str) -> int | None:
        box = ANSWER.fullmatch(last_boxed(action, ANSWER) or "")
        return int(box[2]) if box is not None and box[1] == self.state.asked else None

    def play(self, move: int) -> Outcome:
        if move == self.look_up(self.state.asked):
            return Outcome(f"{move} is right.", SUCCESS, StopReason.SOLVED)
        return Outcome(f"{move} is wrong.", 0.0, StopReason.LOST)

    def sample_random_action(self) -> str:
        return rf"\boxed{{{self.state.asked}:{self.action_rng.randrange(10)}}}"


class Oracle:
    """Reads the digit from the state."""

    def __init__(self, env: LookupEnv) -> None:
        self.env = env

    def act(self, observation: str) -> str:
        asked = self.env.state.asked
        return rf"\boxed{{{asked}:{self.env.look_up(asked)}}}"
