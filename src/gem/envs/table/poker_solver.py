"""Exact values of games with hidden information, and approximate equilibria by counterfactual regret minimisation.

Source: CFR+ with alternating updates and linear averaging (Tammelin 2014, arXiv 1407.5042). The exploitability of a
strategy is the mean of what a best response wins against it from either seat, less the value of the game, which is the
same as half of the sum of both best responses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gem.envs.table.game import HiddenGame

__all__ = [
    "average",
    "exploitability",
]

Strategy = Mapping[str, Mapping[str, float]]  # by what a player knows: probability by move


def solve(game: HiddenGame, iterations: int) -> dict[str, dict[str, float]]:
    """Return the average strategy of both seats after a number of iterations."""
    solver = _Solver(game)
    for iteration in range(1, iterations + 1):
        for seat in (0, 1):
            solver.gains = {}
            for position, probability in game.deals().items():
                solver.visit(position, seat, 1.0, probability, iteration)
            for key, gains in solver.gains.items():
                regrets = solver.regrets.setdefault(key, dict.fromkeys(gains, 0.0))
                for move, gain in gains.items():
                    regrets[move] = max(regrets[move] + gain, 0.0)
    return {key: _normalized(weights) for key, weights in sorted(solver.weights.items())}


class _Solver:
    def __init__(self, game: HiddenGame) -> None:
        self.game = game
        self.regrets: dict[str, dict[str, float]] = {}
        self.weights: dict[str, dict[str, float]] = {}
        self.gains: dict[str, dict[str, float]] = {}

    def visit(self, position: str, learner: int, own: float, others: float, iteration: int) -> float:
        """Return the learner's expected reward from a position, and collect its counterfactual gains.

        Args:
            own, others: probabilities that the learner, or chance and the other player, play to this position.
        """
        seat = self.game.to_move(position)
        if seat is None:
            return self.game.scores(position)[learner]
        key, moves = f"{seat}{self.game.information(position, seat)}", self.game.moves(position)
        strategy = _normalized(self.regrets.get(key) or dict.fromkeys(moves, 0.0))
        after = {move: self.game.after(position, move) for move in moves}
        if seat != learner:
            return sum(
                p * self.visit(after[move], learner, own, others * p, iteration)
                for move, p in strategy.items()
                if p > 0 or own > 0
            )
        values = {move: self.visit(after[move], learner, own * p, others, iteration) for move, p in strategy.items()}
        mean = sum(strategy[move] * value for move, value in values.items())
        gains = self.gains.setdefault(key, dict.fromkeys(moves, 0.0))
        weights = self.weights.setdefault(key, dict.fromkeys(moves, 0.0))
        for move, value in values.items():
            gains[move] += others * (value - mean)
            weights[move] += iteration * own * strategy[move]
        return mean


def value(game: HiddenGame, strategies: tuple[Strategy, Strategy]) -> float:
    """Return the first player's expected reward if the seats play these strategies."""

    def of(position: str) -> float:
        seat = game.to_move(position)
        if seat is None:
            return game.scores(position)[0]
        chosen = _at(game, strategies[seat], position, seat)
        return sum(p * of(game.after(position, move)) for move, p in chosen.items() if p > 0)

    return sum(probability * of(position) for position, probability in game.deals().items())


def best_response(game: HiddenGame, strategy: Strategy, seat: int) -> float:
    """Return the highest expected reward that a seat can reach against a strategy of the other seat."""

    def of(reach: dict[str, float]) -> float:
        """Return the sum over positions with the same history of probability × reward, with best moves of the seat.

        Args:
            reach: positions with equal histories; probability that chance and the other player play to each.
        """
        first = next(iter(reach))
        mover = game.to_move(first)
        if mover is None:
            return sum(p * game.scores(position)[seat] for position, p in reach.items())
        if mover != seat:
            chosen = {position: _at(game, strategy, position, mover) for position in reach}
            return sum(
                of({game.after(position, move): p * chosen[position][move] for position, p in reach.items()})
                for move in game.moves(first)
            )
        known: dict[str, dict[str, float]] = {}
        for position, p in reach.items():
            known.setdefault(game.information(position, seat), {})[position] = p
        return sum(
            max(of({game.after(position, move): p for position, p in same.items()}) for move in game.moves(first))
            for same in known.values()
        )

    return of(dict(game.deals()))


def exploitability(game: HiddenGame, strategy: Strategy) -> float:
    """Return the mean reward of best responses to a strategy from both seats; 0 for an equilibrium."""
    return (best_response(game, strategy, 0) + best_response(game, strategy, 1)) / 2


def average(game: HiddenGame, strategies: Sequence[Strategy]) -> dict[str, dict[str, float]]:
    """Return the strategy that plays one of these strategies, drawn before each game.

    Each has the weight, at what a player knows, of the probability that its own moves lead there. Where those of none
    do, all moves are equally likely.
    """
    weights: dict[str, dict[str, float]] = {}
    for strategy in strategies:
        for key, chances in _reached(game, strategy).items():
            total = weights.setdefault(key, dict.fromkeys(chances, 0.0))
            for move, chance in chances.items():
                total[move] += chance
    return {key: _normalized(chances) for key, chances in sorted(weights.items())}


def _reached(game: HiddenGame, strategy: Strategy) -> dict[str, dict[str, float]]:
    """Return by what a player knows and by move the probability that the player's own moves get there and make it."""
    found: dict[str, dict[str, float]] = {}

    def visit(position: str, own: tuple[float, ...]) -> None:
        seat = game.to_move(position)
        if seat is None:
            return
        chances = {move: own[seat] * p for move, p in _at(game, strategy, position, seat).items()}
        found[f"{seat}{game.information(position, seat)}"] = chances
        for move, chance in chances.items():
            visit(game.after(position, move), (chance, own[1]) if seat == 0 else (own[0], chance))

    for position in game.deals():
        visit(position, (1.0, 1.0))
    return found


def uniform(game: HiddenGame) -> dict[str, dict[str, float]]:
    """Return the strategy that plays every legal move with the same probability."""
    found: dict[str, dict[str, float]] = {}

    def visit(position: str) -> None:
        seat = game.to_move(position)
        if seat is not None:
            moves = game.moves(position)
            found[f"{seat}{game.information(position, seat)}"] = dict.fromkeys(moves, 1 / len(moves))
            for move in moves:
                visit(game.after(position, move))

    for position in game.deals():
        visit(position)
    return found


def _at(game: HiddenGame, strategy: Strategy, position: str, seat: int) -> Mapping[str, float]:
    return strategy[f"{seat}{game.information(position, seat)}"]


def _normalized(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {move: weight / total if total > 0 else 1 / len(weights) for move, weight in weights.items()}
