r"""GameEnv, the base class of all games: which counts turns, handles unreadable actions and ends episodes.

A game implements its rules as pure functions and defines four methods: ``start`` draws the initial state,
``rules`` returns the rules card shown by ``reset``, ``read`` parses an action into a move or None, and ``play`` applies
a move.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from gem._internal.counts import check_count
from gem.core import Env, Info, Step, StopReason, require_text
from gem.errors import BadValue, EpisodeOver
from gem.parsing import last_boxed

SUCCESS = 1.0
FORMAT_ERROR = -0.1  # LanguageGameReward.format_error_reward of the published package

OnUnreadable = Literal["end", "continue"]

INTEGER = "[+-]?[0-9]{1,9}"  # a number in a move; a number outside the board is a readable but illegal move
_DIRECTION = re.compile(r"\s*(up|down|left|right)\s*", re.IGNORECASE | re.ASCII)


@dataclass(slots=True)  # not frozen: each move creates one, and a frozen dataclass takes six times as long to create
class Outcome:
    """The result of one readable move.

    Args:
        line: sentence that tells the agent what happened.
        reward: reward of this move.
        stop: SOLVED or LOST if the move ends the game; None if the game continues.
        invalid: reason code if the move was illegal, else None. An illegal move also uses up the turn.
        parts: named components of the reward; None if the reward has a single component.
    """

    line: str
    reward: float = 0.0
    stop: StopReason | None = None
    invalid: str | None = None
    parts: Mapping[str, float] | None = None


class GameEnv(Env, ABC):
    r"""Base class of text games with one move per turn, written in ``\boxed{…}``.

    The info of the last step has what ended the game under ``explanation`` and, of a game that is not won, the secrets
    of the episode under ``revealed``.

    Args:
        max_turns: maximum number of turns. The game is truncated after turn_limit() turns, which some games set lower.
        on_unreadable: whether an action without a readable move ends the game ("end") or only uses up the turn
            ("continue"). The reward of such an action is FORMAT_ERROR in both cases.

    Raises:
        BadValue: when max_turns < 1 or on_unreadable is neither "end" nor "continue".
    """

    moves_only = True
    move_format: str  # an example of a valid action, shown when an action is unreadable

    def __init__(self, *, max_turns: int, on_unreadable: OnUnreadable = "end") -> None:
        check_count("max_turns", max_turns)
        if on_unreadable not in get_args(OnUnreadable):
            raise BadValue(f"on_unreadable must be 'end' or 'continue', got {on_unreadable!r}")
        self.max_turns, self.on_unreadable = max_turns, on_unreadable
        self.turn, self.over = 0, True

    @abstractmethod
    def start(self) -> Any:
        """Draw the initial state of an episode from ``self.rng``."""

    @abstractmethod
    def rules(self) -> str:
        """Return the rules card: objective, action format with a valid example, limits and rewards."""

    @abstractmethod
    def read(self, action: str) -> Any | None:
        """Parse the move from an action. Return None if the action contains no move. Must accept any string."""

    @abstractmethod
    def play(self, move: Any) -> Outcome:
        """Apply a move: set ``self.state`` to the next state and return the outcome."""

    def turn_limit(self) -> int:
        """Return the number of turns allowed in this episode: max_turns unless the game overrides this method."""
        return self.max_turns

    def board(self) -> str:
        """Return the board shown after the rules card and every turn, or an empty string if the game shows no board."""
        return ""

    def state_key(self) -> str | None:
        return self.board() or None  # observations also have the number of the turn and what happened in it

    def get_task_suffix(self) -> str:
        """Return board(): the name of the published method."""
        return self.board()

    def reward_at_limit(self) -> float:
        """Return the reward added to the last turn if the turn limit truncates the game."""
        return 0.0

    def ordered_actions(self) -> Iterator[str]:
        """Yield actions in a fixed order, such as letters by frequency, without regard to what earlier ones revealed.

        Each action is legal in the state in which it is requested. See gem.envs.games.baselines.
        """
        return iter(())

    def reset(self, seed: int | None = None) -> tuple[str, Info]:
        super().reset(seed)
        self.turn, self.over = 0, False
        self.state = self.start()
        return self._show(self.rules()), {}

    def step(self, action: str) -> Step:
        require_text(action)
        if self.over:
            raise EpisodeOver(f"{self!r} has no running episode; call reset()")
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
            line = f"{outcome.line[:1].upper()}{outcome.line[1:]}"
            info["explanation"] = f"{line} The turn limit was reached." if truncated else line
            self.over = True
            if stop is not StopReason.SOLVED and (secrets := self.secrets()):
                info["revealed"] = secrets
                info["explanation"] += f" Revealed: {', '.join(secrets)}."
        terminated = self.over and not truncated
        return Step(self._show(f"Turn {self.turn}: {outcome.line}"), reward, terminated, truncated, info)

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "turn": self.turn, "over": self.over}

    def set_state(self, state: Mapping[str, Any]) -> None:
        fields = state if isinstance(state, Mapping) else {}
        if not isinstance(fields.get("turn"), int) or not isinstance(fields.get("over"), bool):
            raise BadValue(f"invalid state for {type(self).__name__}: 'turn' or 'over' is missing")
        super().set_state(state)
        self.turn, self.over = state["turn"], state["over"]

    def _unreadable(self) -> Outcome:
        stop = StopReason.FORMAT if self.on_unreadable == "end" else None
        line = f"no valid action found; use the format {self.move_format}."
        return Outcome(line, FORMAT_ERROR, stop, invalid="no_action")

    def _show(self, line: str) -> str:
        board = self.board()
        return f"{line}\n{board}" if board else line


def exact_fraction(done: int, total: int, power: int = 1) -> float:
    """Return (done / total) ** power, rounded to a multiple of 2^-40: what the progress made so far has earned.

    A power above 1 pays little for the first parts, which random legal moves also make, and most for the last ones.
    Differences of these values can be summed without rounding errors, so the rewards of a won game sum to exactly 1.0.
    """
    return round((done / total) ** power * 2**40) / 2**40


def read_direction(action: str) -> str | None:
    r"""Return the direction in the last ``\boxed{…}`` that contains a direction, in lower case; None if no box does.

    >>> read_direction(r"not \boxed{up} but \boxed{ Left }")
    'left'
    """
    content = last_boxed(action, _DIRECTION)
    return None if content is None else content.strip().lower()


def grid(cells: Sequence[object], cols: int) -> str:
    """Format a board as text, one row per line. Cells are separated by spaces so that each is tokenized separately."""
    return _grid_template(len(cells) // cols, cols) % tuple(cells)


@cache
def _grid_template(rows: int, cols: int) -> str:
    return "\n".join([" ".join(["%s"] * cols)] * rows)
