"""Ratings of players from games between pairs of them: the Bradley-Terry model, with bootstrap intervals.

The chance that player i beats player j is 1 / (1 + 10^((r_j - r_i) / 400)), with ratings r on the scale of Elo. A draw
is half a win for both. Scores between 0 and 1 count as that share of a win.

Axes: N players, D draws of the bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gem.errors import BadValue
from gem.evaluation.metrics import LEVEL, Estimate

ELO = 400 / math.log(10)  # points per unit of log odds
# Half of a drawn game is added to each pairing, so that a player who won all games has a finite rating.
PRIOR = 0.5
_STEPS, _LARGEST_STEP = 50, 1.0  # of Newton's method, in log odds


def bradley_terry(points_NN: Any, games_NN: Any) -> Any:
    """Return the ratings of maximum likelihood on the scale of Elo, with mean 0.

    Args:
        points_NN: points of player i against player j, between 0 and the number of games; more axes may come before.
        games_NN: number of games of i and j, symmetric, so that all players are connected.

    Source: Bradley and Terry 1952; Newton's method, as the likelihood is concave.
    """
    points_NN, games_NN = np.asarray(points_NN, float), np.asarray(games_NN, float)
    count = points_NN.shape[-1]
    theta_N, identity_NN = np.zeros(points_NN.shape[:-1]), np.eye(count)
    for _ in range(_STEPS):
        chance_NN = 1 / (1 + np.exp(theta_N[..., None, :] - theta_N[..., :, None]))
        gradient_N = (points_NN - games_NN * chance_NN).sum(-1)
        weight_NN = games_NN * chance_NN * (1 - chance_NN)
        fisher_NN = weight_NN.sum(-1)[..., None] * identity_NN - weight_NN
        # Equal ratings added to all players change nothing; the constant makes the matrix regular with steps of sum 0.
        step_N = np.linalg.solve(fisher_NN + 1 / count, gradient_N[..., None])[..., 0]
        theta_N = theta_N + np.clip(step_N, -_LARGEST_STEP, _LARGEST_STEP)
        if np.abs(step_N).max(initial=0.0) < 1e-9:
            break
    return ELO * (theta_N - theta_N.mean(-1, keepdims=True))


def rate(
    deals: Mapping[tuple[int, int], Sequence[tuple[float, int]]],
    players: int,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> list[Estimate]:
    """Return the rating of each player with its percentile interval from a bootstrap over deals within each pairing.

    Games from one deal, such as the same cards with exchanged seats, resemble each other, so that deals are drawn as a
    whole.

    Args:
        deals: for a pair of players, by index, one entry per deal: the points of the first of them, and the number of
            games.
        players: number of players.
        draws: number of resampled tournaments.

    Raises:
        BadValue: there are fewer than two players, or a pair without a game.
    """
    if players < 2:
        raise BadValue(f"ratings need at least two players, got {players}")
    wanted = [(i, j) for i in range(players) for j in range(i + 1, players)]
    missing = [pair for pair in wanted if not deals.get(pair)]
    if missing:
        raise BadValue(f"ratings need a game of each pair of players; players {missing[0]} have none")
    rng = np.random.default_rng(seed)
    points_DNN, games_DNN = np.zeros((draws + 1, players, players)), np.zeros((draws + 1, players, players))
    for i, j in wanted:
        values = np.array(deals[i, j], float)  # one row per deal
        picks = rng.integers(len(values), size=(draws, len(values)))
        sums = np.concatenate([values.sum(0)[None], values[picks].sum(1)])  # the first is the tournament itself
        points, games = sums[:, 0] + PRIOR / 2, sums[:, 1] + PRIOR
        points_DNN[:, i, j], points_DNN[:, j, i] = points, games - points
        games_DNN[:, i, j] = games_DNN[:, j, i] = games
    ratings_DN = bradley_terry(points_DNN, games_DNN)
    tail = 50 * (1 - LEVEL)
    low_N, high_N = np.percentile(ratings_DN[1:], [tail, 100 - tail], axis=0)
    return [
        Estimate(float(value), float(low), float(high), "bootstrap")
        for value, low, high in zip(ratings_DN[0], low_N, high_N, strict=True)
    ]
