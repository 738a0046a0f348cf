"""Players of table games: random, best known, and sparring partners in between.

The best known player is exact for TicTacToe, Nim, small boards of ConnectFour, Colonel Blotto and, up to .001 antes,
both poker games and liar's dice with one die each. For the full ConnectFour and Othello it searches a few moves ahead.
In the other games it is scripted; see TableGame.scripted().
"""

from __future__ import annotations

import json
import random
from functools import cache
from importlib.resources import files
from typing import Any

from gem.envs.table.boards.connect_four import ConnectFourEnv
from gem.envs.table.boards.nim import NimEnv
from gem.envs.table.boards.othello import SIDE, OthelloEnv
from gem.envs.table.boards.search import Search
from gem.envs.table.game import HiddenGame, TableGame
from gem.errors import BadValue

SMALL_BOARD = 16  # cells up to which ConnectFour is searched to the end
CONNECT_FOUR_DEPTH, OTHELLO_DEPTH = 4, 3
_CORNERS = (0, SIDE - 1, SIDE * (SIDE - 1), SIDE * SIDE - 1)


class TablePlayer:
    """Plays one seat: a random legal move with probability 1 - strength, otherwise the best known one.

    Args:
        strength: 0 for random play, 1 for the best known.

    Raises:
        BadValue: strength is not between 0 and 1.
    """

    def __init__(self, strength: float = 1.0) -> None:
        if not 0 <= strength <= 1:
            raise BadValue(f"strength must be between 0 and 1, got {strength}")
        self.strength = float(strength)

    def act(self, game: TableGame, agent: str, rng: random.Random) -> str:
        """Return an action for the player to move."""
        position = game.position
        guess = rng.random() >= self.strength
        return rf"\boxed{{{rng.choice(game.moves(position)) if guess else self._best(game, position, rng)}}}"

    def _best(self, game: TableGame, position: str, rng: random.Random) -> str:
        if isinstance(game, NimEnv):
            return rng.choice(best_in_nim(position))
        if isinstance(game, HiddenGame) and game.solution is not None:
            seat = game.to_move(position)
            chances = strategies()[game.solution][f"{seat}{game.information(position, seat or 0)}"]
            return rng.choices(list(chances), list(chances.values()))[0]
        if (move := game.scripted(position, rng)) is not None:
            return move
        return rng.choice(search(game).best(position))


class Oracle:
    """The best known player of the seat that an environment of one seat plays; see gem.multiagent.as_single_agent."""

    def __init__(self, game: TableGame) -> None:
        self.game, self.player = game, TablePlayer()

    def act(self, observation: Any) -> str:
        game = self.game
        seat = game.to_move(game.position) or 0
        # The stream depends on the position alone, so that two oracles of one episode act alike.
        return self.player.act(game, game.agent_of(seat), random.Random(f"{game.position} {len(game.state.log)}"))


def search(game: TableGame) -> Search:
    """Return the search that the best known player of a game without hidden information uses."""
    size = (game.rows, game.columns, game.length) if isinstance(game, ConnectFourEnv) else ()
    return _search(type(game), size)


@cache  # what is known about positions serves all episodes
def _search(kind: type[TableGame], size: tuple[int, ...]) -> Search:
    game = kind(*size)
    if isinstance(game, ConnectFourEnv) and game.rows * game.columns > SMALL_BOARD:
        return Search(game, CONNECT_FOUR_DEPTH, lambda position: _open_lines(game, position))
    if isinstance(game, OthelloEnv):
        return Search(game, OTHELLO_DEPTH, _corners_and_mobility(game))
    return Search(game)


def best_in_nim(position: str) -> list[str]:
    """Return the moves after which the exclusive or of the heaps is 0, or all moves if there is none."""
    heaps = [int(heap) for heap in position[:-2].split(",")]
    total = 0
    for heap in heaps:
        total ^= heap
    winning = [f"{n} {heap - (heap ^ total)}" for n, heap in enumerate(heaps, 1) if heap ^ total < heap]
    return winning or [f"{n} {take}" for n, heap in enumerate(heaps, 1) for take in range(1, heap + 1)]


@cache
def strategies() -> dict[str, dict[str, dict[str, float]]]:
    """Return the solved strategies by class name, written by scripts/solve_games.py."""
    found: dict[str, dict[str, dict[str, float]]] = json.loads(
        files("gem.envs").joinpath("data/table_games/solved.json").read_text("utf-8")
    )
    return found


def _open_lines(game: ConnectFourEnv, position: str) -> float:
    """Compare in how many lines each player can still get all discs, weighted by those that it has."""
    first, second = (game.bits(position, mark) for mark in game.seats)
    total = 0
    for line in game.lines:
        if not line & second:
            total += (line & first).bit_count() ** 2
        elif not line & first:
            total -= (line & second).bit_count() ** 2
    return total / (len(game.lines) * game.length**2)


def _corners_and_mobility(game: OthelloEnv) -> Any:
    def estimate(position: str) -> float:
        corners = sum((position[cell] == "X") - (position[cell] == "O") for cell in _CORNERS)
        seat = game.to_move(position)
        mobility = len(game.moves(position)) * (1 if seat == 0 else -1)
        return max(-0.99, min(0.99, corners / 5 + mobility / 100))

    return estimate
