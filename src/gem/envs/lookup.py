r"""Lookup: say which digit is in a drawer. It cannot be guessed, but the tool of ``lookup_tool`` shows it.

Action       text containing ``\boxed{n}``; the last box with an integer counts.
Observation  the rules card on reset, then whether the answer is right.
Reward       1.0 for the digit; -0.1 for an answer that cannot be read; otherwise 0.0.
Ends         terminated on the first answer.
Bound        1.0 with the tool; without it, 1 / 10.

>>> env = LookupEnv(drawers=4)
>>> rules, _ = env.reset(seed=3)
>>> env.look_up(env.state.drawer) == env.state.digits[env.look_up_keys().index(env.state.drawer)]
True
"""

from __future__ import annotations

from dataclasses import dataclass

from gem.core import StopReason
from gem.envs.game_env.base import SUCCESS, GameEnv, Outcome
from gem.errors import BadValue
from gem.parsing import last_boxed_int

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class State:
    digits: tuple[int, ...]  # in each drawer
    drawer: str  # that is asked for


class LookupEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        drawers: number of drawers, 1 to 26.

    Raises:
        BadValue: for another number of drawers.
    """

    state: State
    move_format = r"\boxed{digit}"

    def __init__(self, drawers: int = 4) -> None:
        if not 1 <= drawers <= len(LETTERS):
            raise BadValue(f"drawers must be from 1 to {len(LETTERS)}, got {drawers}")
        super().__init__(max_turns=1)
        self.drawers = drawers

    def look_up_keys(self) -> list[str]:
        """Return the names of the drawers, for LookupTool."""
        return list(LETTERS[: self.drawers])

    def look_up(self, key: str) -> int | None:
        """Return the digit in a drawer, or None if there is no such drawer."""
        keys = self.look_up_keys()
        return self.state.digits[keys.index(key)] if key in keys else None

    def start(self) -> State:
        digits = tuple(self.rng.randrange(10) for _ in range(self.drawers))
        return State(digits, self.rng.choice(self.look_up_keys()))

    def rules(self) -> str:
        keys = self.look_up_keys()
        return (
            f"Each of the drawers {keys[0]} to {keys[-1]} holds a digit. Which one is in drawer {self.state.drawer}?\n"
            rf"Write it in a box, like {self.move_format}. You have one answer."
        )

    def secrets(self) -> list[str]:
        return [str(self.look_up(self.state.drawer))]

    def read(self, action: str) -> int | None:
        return last_boxed_int(action)

    def play(self, move: int) -> Outcome:
        if move == self.look_up(self.state.drawer):
            return Outcome(f"{move} is right.", SUCCESS, StopReason.SOLVED)
        return Outcome(f"{move} is wrong.", 0.0, StopReason.LOST)

    def sample_random_action(self) -> str:
        return rf"\boxed{{{self.action_rng.randrange(10)}}}"


class Oracle:
    """Reads the digit from the state."""

    def __init__(self, env: LookupEnv) -> None:
        self.env = env

    def act(self, observation: str) -> str:
        return rf"\boxed{{{self.env.look_up(self.env.state.drawer)}}}"
