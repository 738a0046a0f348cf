r"""What every game shares: turns, the unreadable action, the turn limit, the refusal to play on after the end.

A game gives its rules as functions of values and four methods: ``start`` draws the first state, ``rules`` writes
the card that reset shows, ``read`` turns text into a move or None, ``play`` judges a move.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from gem.core import Env, Info, Step, StopReason, require_text
from gem.errors import BadValue, EpisodeOver
from gem.parsing import last_boxed

SUCCESS = 1.0
FORMAT_ERROR = -0.1  # spec of the published system: LanguageGameReward.format_error_reward

OnUnreadable = Literal["end", "continue"]

_DIRECTION = re.compile(r"\s*(up|down|left|right)\s*", re.IGNORECASE | re.ASCII)


@dataclass(slots=True)  # not frozen: every move builds one, and a frozen dataclass takes six times as long to build
class Outcome:
    """What came of one readable move.

    Args:
        line: tells the agent what happened.
        reward: for this move.
        stop: SOLVED or LOST ends the game; None plays on.
        invalid: why the move was not possible, None when it was; the turn is spent all the same.
        parts: named components of the reward, where there are several.
    """

    line: str
    reward: float = 0.0
    stop: StopReason | None = None
    invalid: str | None = None
    parts: Mapping[str, float] | None = None


class GameEnv(Env, ABC):
    r"""A game of text: one move a turn, in ``\boxed{…}``.

    Args:
        max_turns: turns before the game is truncated.
        on_unreadable: whether an action without a readable move ends the game; it costs FORMAT_ERROR either way.

    Raises BadValue when max_turns < 1 or on_unreadable is neither word.
    """

    move_format: str  # one valid action, quoted back at whoever wrote an unreadable one

    def __init__(self, *, max_turns: int, on_unreadable: OnUnreadable = "end") -> None:
        if max_turns < 1:
            raise BadValue(f"max_turns must be at least 1, got {max_turns}")
        if on_unreadable not in get_args(OnUnreadable):
            raise BadValue(f"on_unreadable must be 'end' or 'continue', got {on_unreadable!r}")
        self.max_turns, self.on_unreadable = max_turns, on_unreadable
        self.turn, self.over = 0, True

    @abstractmethod
    def start(self) -> Any:
        """Draw the first state of an episode from self.rng."""

    @abstractmethod
    def rules(self) -> str:
        """The rules card: objective, action format with a valid example, limits, rewards, bound."""

    @abstractmethod
    def read(self, action: str) -> Any | None:
        """The move that an action asks for, None when it is unreadable. Takes any string and never raises."""

    @abstractmethod
    def play(self, move: Any) -> Outcome:
        """Judge a move and set self.state to what follows."""

    def turn_limit(self) -> int:
        """Turns allowed in this episode: max_turns, or fewer where an instance asks for fewer."""
        return self.max_turns

    def board(self) -> str:
        """What the agent sees of the state after every turn; empty where the lines say it all."""
        return ""

    def reward_at_limit(self) -> float:
        """Paid on top when the turns run out."""
        return 0.0

    def reset(self, seed: int | None = None) -> tuple[str, Info]:
        super().reset(seed)
        self.turn, self.over = 0, False
        self.state = self.start()
        return self._show(self.rules()), {}

    def step(self, action: str) -> Step:
        require_text(action)
        if self.over:
            raise EpisodeOver(f"{self!r} has no game running; call reset()")
        self.turn += 1
        move = self.read(action)
        outcome = self._unreadable() if move is None else self.play(move)
        reward, stop = outcome.reward, outcome.stop
        info: Info = {}
        if outcome.invalid is not None:
            info["invalid"] = outcome.invalid
        if outcome.parts is not None:
            info["reward_parts"] = dict(outcome.parts)
        truncated = stop is None and self.turn >= self.turn_limit()
        if truncated:
            stop = StopReason.MAX_TURNS
            reward += self.reward_at_limit()
        if stop is not None:
            info["stop_reason"] = stop
            self.over = True
        terminated = self.over and not truncated
        return Step(self._show(f"Turn {self.turn}: {outcome.line}"), reward, terminated, truncated, info)

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "turn": self.turn, "over": self.over}

    def set_state(self, state: Mapping[str, Any]) -> None:
        if not isinstance(state.get("turn"), int) or not isinstance(state.get("over"), bool):
            raise BadValue(f"invalid state for {type(self).__name__}: 'turn' or 'over' is missing")
        super().set_state(state)
        self.turn, self.over = state["turn"], state["over"]

    def _unreadable(self) -> Outcome:
        stop = StopReason.FORMAT if self.on_unreadable == "end" else None
        return Outcome(f"no move found; write it like {self.move_format}.", FORMAT_ERROR, stop, invalid="no_action")

    def _show(self, line: str) -> str:
        board = self.board()
        return f"{line}\n{board}" if board else line


def share(done: int, total: int) -> float:
    """done/total in steps of 2^-40, so that differences of shares sum exactly to 1.0, in any order of summation."""
    return round(done * 2**40 / total) / 2**40


def read_direction(action: str) -> str | None:
    r"""The direction in the last ``\boxed{…}`` that holds one, in lower case. None without one.

    >>> read_direction(r"not \boxed{up} but \boxed{ Left }")
    'left'
    """
    content = last_boxed(action, _DIRECTION)
    return None if content is None else content.strip().lower()


def grid(cells: Sequence[object], cols: int) -> str:
    """Lay out the cells of a board row by row, separated by spaces so that each cell is a token of its own."""
    return _grid_template(len(cells) // cols, cols) % tuple(cells)


@cache
def _grid_template(rows: int, cols: int) -> str:
    return "\n".join([" ".join(["%s"] * cols)] * rows)
