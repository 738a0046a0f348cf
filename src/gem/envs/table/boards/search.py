"""Minimax search: exact where a game is small, to a limited depth elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from gem.envs.table.game import TableGame

Heuristic = Callable[[str], float]  # an estimate of the first seat's reward, between -1 and 1


class Search:
    """Values of positions of a game of two players without chance or hidden information.

    Args:
        game: the game.
        depth: number of moves to look ahead; None for the end of the game.
        estimate: used for positions at that depth; None stands for 0.
    """

    def __init__(self, game: TableGame, depth: int | None = None, estimate: Heuristic | None = None) -> None:
        self.game, self.depth, self.estimate = game, depth, estimate
        self._known: dict[str, float] = {}  # exact values, by position

    def best(self, position: str) -> list[str]:
        """Return the moves with the highest value for the player to move, in the game's order.

        Without a depth, quicker wins and slower losses count as no better.
        """
        sign = 1 if self.game.to_move(position) == 0 else -1
        left = None if self.depth is None else self.depth - 1
        moves = self.game.moves(position)
        values = [sign * self.value(self.game.after(position, move), left) for move in moves]
        return [move for move, value in zip(moves, values, strict=True) if value == max(values)]

    def value(self, position: str, depth: int | None = None, low: float = -2.0, high: float = 2.0) -> float:
        """Return the first seat's reward under best play, or a bound of it outside (low, high). Alpha-beta search."""
        if position in self._known:
            return self._known[position]
        mover = self.game.to_move(position)
        if mover is None:
            return self.game.scores(position)[0]
        if depth == 0:
            return self.estimate(position) if self.estimate else 0.0
        left = None if depth is None else depth - 1
        best, start_low, start_high = (-2.0, low, high) if mover == 0 else (2.0, low, high)
        for move in self.game.moves(position):
            value = self.value(self.game.after(position, move), left, low, high)
            if mover == 0:
                best = max(best, value)
                low = max(low, best)
            else:
                best = min(best, value)
                high = min(high, best)
            if low >= high:
                break
        if depth is None and start_low < best < start_high:
            self._known[position] = best
        return best
