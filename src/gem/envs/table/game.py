r"""TableGame, the base class of games between players, which move one after another.

A game describes its rules as functions of a position, which is a string, and nothing else. So the same rules serve
episodes, search (gem.envs.table.boards.search) and exact solutions of poker games (gem.envs.table.poker).
"""

from __future__ import annotations

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

from gem._internal.counts import check_count
from gem.core import StopReason, require_text
from gem.envs.table.messages import quoted
from gem.errors import BadValue, EpisodeOver
from gem.multiagent import AgentSelector, MultiAgentEnv
from gem.parsing import last_boxed, last_tagged

_MESSAGE = re.compile(r"<say>.*?</say>", re.IGNORECASE | re.DOTALL)  # decides nothing

OnIllegal = Literal["lose", "retry", "skip"]
TALK = (
    "You may add a message to the other players, <say>your words</say>, of at most 200 characters. It decides nothing, "
    "and what they say may be untrue."
)
RETRIES = 3  # consecutive illegal actions of a player that lose the game under on_illegal="retry"


@dataclass(frozen=True)
class Table:
    """The state of an episode.

    Args:
        position: the position of the game; see the game's class.
        order: agents by seat; the first moves first.
        log: what all players saw, one line per move.
        seen: number of lines of the log that each agent had seen when it last acted.
        illegal: consecutive illegal actions of the player to move.
    """

    position: str
    order: list[str]
    log: list[str] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    illegal: int = 0


class TableGame(MultiAgentEnv, ABC):
    r"""A game of players that move one after another. Moves are written in ``\boxed{…}``.

    Which agent has which seat is drawn from the seed. Rewards come at the end and lie between -1 and 1. Unless
    ``zero_sum`` is False, they sum to 0. What other players write is not shown: the log has their moves in the words of
    the game. In games that allow messages, ``<say>…</say>`` is shown in quotes as data; see gem.envs.table.messages.

    Args:
        on_illegal: what an unreadable or illegal action does. "lose" ends the game: its player gets -1, the others
            share 1, or get 0 if the game is not zero-sum. "retry" lets the player act again, and the third such action
            in a row loses. "skip" passes the turn, in games where a player may pass.
        show_legal: whether observations list the legal moves.
        max_turns: the game is truncated as a draw after this many actions of all players. None for no limit.

    Raises:
        BadValue: on_illegal is unknown or not possible in this game, or max_turns < 1.
    """

    seats: ClassVar[tuple[str, ...]]  # names of the seats in the order of play
    card: ClassVar[str]  # the rules, with an example of an action
    pattern: ClassVar[re.Pattern[str]]  # content of a box that is a move, in lower case with single spaces
    moves_only = True
    can_skip: ClassVar[bool] = False
    talks: ClassVar[bool] = False  # whether players may send messages
    needs_history: ClassVar[bool] = False  # whether view() shows less than what a player knows

    state: Table

    def __init__(
        self, *, on_illegal: OnIllegal = "lose", show_legal: bool = False, max_turns: int | None = None
    ) -> None:
        if on_illegal not in get_args(OnIllegal):
            raise BadValue(f"on_illegal must be one of {', '.join(get_args(OnIllegal))}, got {on_illegal!r}")
        if on_illegal == "skip" and not self.can_skip:
            raise BadValue(f"on_illegal='skip' is not possible in {type(self).__name__}: a player may not pass")
        check_count("max_turns", max_turns, optional=True)
        self.on_illegal, self.show_legal, self.max_turns = on_illegal, show_legal, max_turns
        self.possible_agents = [f"player_{seat}" for seat in range(len(self.seats))]
        super().__init__()

    # ---- the rules, as functions of a position

    @abstractmethod
    def deal(self, rng: random.Random) -> str:
        """Return the position at the start of an episode."""

    @abstractmethod
    def to_move(self, position: str) -> int | None:
        """Return the seat that moves, or None if the game is over."""

    @abstractmethod
    def moves(self, position: str) -> list[str]:
        """Return the legal moves; none if the game is over."""

    def is_legal(self, position: str, move: str) -> bool:
        """Return whether a move is legal: one of moves(), unless the game has more than it lists."""
        return move in self.moves(position)

    @abstractmethod
    def every_move(self) -> list[str]:
        """Return all moves that can be legal in some position, in a fixed order."""

    @abstractmethod
    def after(self, position: str, move: str) -> str:
        """Return the position after a legal move."""

    @abstractmethod
    def scores(self, position: str) -> tuple[float, ...]:
        """Return the rewards of a finished game by seat, between -1 and 1; with sum 0 if the game is zero-sum."""

    @abstractmethod
    def view(self, position: str, seat: int) -> str:
        """Return what a seat sees of a position."""

    def skipped(self, position: str) -> str:
        """Return the position after the player to move has passed. Defined where ``can_skip``."""
        raise NotImplementedError

    def may_talk(self, position: str) -> bool:
        """Return whether the message of the player to move is shown."""
        return self.talks

    def announced(self, position: str, seat: int, move: str) -> str:
        """Return what all players are told about a legal move in a position; "" for nothing."""
        return f"{self.seats[seat]} plays {move}."

    def winner(self, position: str) -> int | None:
        """Return who wins a finished game: the seat with the highest score, or the index of a side; None for a draw."""
        scores = self.scores(position)
        return scores.index(max(scores)) if scores.count(max(scores)) == 1 else None

    def scripted(self, position: str, rng: random.Random) -> str | None:
        """Return the move of the reference player of the game, or None if gem.envs.table.boards.search finds it."""
        return None

    # ---- an episode

    @property
    def position(self) -> str:
        """The position of the running episode."""
        return self.state.position

    def agent_of(self, seat: int) -> str:
        return self.state.order[seat]

    def seat_of(self, agent: str) -> int:
        return self.state.order.index(agent)

    def start_episode(self) -> None:
        order = list(self.possible_agents)
        self.rng.shuffle(order)
        self.state = Table(self.deal(self.rng), order)
        self.agents = list(order)  # the first moves first
        self.agent_selector = AgentSelector(order)

    def observe(self, agent: str) -> str:
        seat, state = self.seat_of(agent), self.state
        lines = []
        if agent not in state.seen:
            lines = [self.card, *[TALK] * self.talks, f"You are {self.seats[seat]}."]
        lines += state.log[state.seen.get(agent, 0) :]
        lines.append(self.view(state.position, seat))
        if self.agents and self.to_move(state.position) == seat:
            lines.append("Your move.")
            if self.show_legal:
                lines.append(f"Legal moves: {', '.join(self.moves(state.position))}.")
        return "\n".join(line for line in lines if line)

    def read(self, action: str) -> str | None:
        """Return the move in the last box of an action that has one, or None."""
        content = last_boxed(_MESSAGE.sub(" ", action) if self.talks else action, self.pattern)
        return None if content is None else " ".join(content.lower().split())

    def legal_moves(self) -> list[str]:
        """Return the legal moves of the player to move; none after the end."""
        return self.moves(self.position) if self.agents else []

    def sample_random_action(self) -> str:
        """Return a random legal action of the player to move."""
        moves = self.legal_moves()
        if not moves:
            raise EpisodeOver(f"{self!r} has no running episode; call reset()")
        return rf"\boxed{{{self.action_rng.choice(moves)}}}"

    def secrets(self) -> list[str] | None:
        return []

    def state_key(self) -> str:
        seat, state = self.to_move(self.state.position), self.state
        view = self.view(state.position, 0 if seat is None else seat)
        return "\n".join([*state.log, view]) if self.needs_history else view

    def apply_actions(self, actions: Mapping[str, Any]) -> None:
        (agent, action), state = next(iter(actions.items())), self.state
        require_text(action)
        move, seat = self.read(action), self.seat_of(agent)
        seen = {**state.seen, agent: len(state.log)}
        if move is not None and self.is_legal(state.position, move):
            happened = line = self.announced(state.position, seat, move)
            if self.may_talk(state.position) and (message := last_tagged(action, "say")):
                line = "\n".join(filter(None, [line, f"{self.seats[seat]} says: {quoted(message)}"]))
            self.state = replace(
                state, position=self.after(state.position, move), log=[*state.log, line], seen=seen, illegal=0
            )
        else:
            self.infos[agent]["invalid"] = "no_action" if move is None else "illegal"
            happened = line = f"{self.seats[seat]} made {'no readable' if move is None else 'an illegal'} move."
            self.state = replace(state, log=[*state.log, line], seen=seen, illegal=state.illegal + 1)
            if self.on_illegal == "lose" or (self.on_illegal == "retry" and self.state.illegal >= RETRIES):
                others = len(self.seats) - 1
                others_reward = 1.0 / others if self.zero_sum else 0.0
                self._finish([-1.0 if other == seat else others_reward for other in range(others + 1)], happened)
                return
            if self.on_illegal == "skip":
                self.state = replace(self.state, position=self.skipped(state.position), illegal=0)
        if self.to_move(self.position) is None:
            self._finish(self.scores(self.position), happened)
        elif self.max_turns is not None and len(self.state.log) >= self.max_turns:
            for other in self.agents:
                self.truncations[other] = True
                self.infos[other] |= {"stop_reason": StopReason.MAX_TURNS, "outside_limit": True}  # no rule states it
        else:
            self._pass_on()

    def _finish(self, scores: Sequence[float], happened: str) -> None:
        named = ", ".join(f"{name} {score:g}" for name, score in zip(self.seats, scores, strict=True))
        explanation = f"{happened[:1].upper()}{happened[1:]} Scores: {named}.".lstrip()
        for seat, score in enumerate(scores):
            agent = self.agent_of(seat)
            self.rewards[agent], self.terminations[agent] = score, True
            self.infos[agent]["stop_reason"] = StopReason.SOLVED if score > 0 else StopReason.LOST
            self.infos[agent]["explanation"] = explanation

    def _pass_on(self) -> None:
        """Let the selector's next(), which step() calls, give the turn to the player to move."""
        seat, selector = self.to_move(self.position), self.agent_selector
        assert seat is not None
        assert selector is not None
        selector.position = (seat - 1) % len(selector.agents)


class HiddenGame(TableGame):
    """A game with hidden information whose histories all players see; gem.envs.table.poker_solver can solve it."""

    needs_history = True

    @property
    def solution(self) -> str | None:
        """Name of the stored strategy, or None if these rules have none."""
        return type(self).__name__

    @abstractmethod
    def deals(self) -> dict[str, float]:
        """Return the positions that deal() can return, with their probabilities."""

    @abstractmethod
    def information(self, position: str, seat: int) -> str:
        """Return what a seat knows in a position, with the history."""


def rows_of(cells: str, width: int) -> str:
    """Format a board as text, one row per line, with spaces between cells."""
    return "\n".join(" ".join(cells[start : start + width]) for start in range(0, len(cells), width))
