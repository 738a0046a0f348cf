"""Bradley-Terry ratings and their intervals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from gem.errors import BadValue
from gem.evaluation.ratings import ELO, bradley_terry, rate

TRUE = np.array([-200.0, -100.0, 0.0, 100.0, 200.0])


def simulated(rng, deals=20, true=TRUE):
    """A tournament of players with known ratings. The games of a deal share their luck."""
    found = {}
    for i, j in itertools.combinations(range(len(true)), 2):
        chance = 1 / (1 + 10 ** ((true[j] - true[i]) / 400))
        luck = rng.random(deals)
        found[i, j] = [(2.0 * (u < chance), 2) for u in luck]
    return found


def test_a_player_with_three_quarters_of_the_points_is_191_points_better():
    ratings = bradley_terry([[0, 75], [25, 0]], [[0, 100], [100, 0]])
    assert ratings[0] - ratings[1] == pytest.approx(400 * math.log10(3))
    assert ratings.sum() == pytest.approx(0)


def test_the_ratings_agree_with_the_iteration_of_zermelo():
    rng = np.random.default_rng(3)
    games = np.triu(rng.integers(5, 30, (4, 4)), 1)
    games = games + games.T
    points = np.triu(rng.random((4, 4)) * games, 1)
    points = points + np.tril((games.T - points.T), -1)
    strength = np.ones(4)
    for _ in range(5000):  # strength_i = points_i / sum_j games_ij / (strength_i + strength_j)
        strength = points.sum(1) / (games / (strength[:, None] + strength[None])).sum(1)
        strength /= np.exp(np.log(strength).mean())
    assert bradley_terry(points, games) == pytest.approx(ELO * np.log(strength), abs=1e-6)


def test_a_player_that_won_all_games_has_a_finite_rating():
    first, second = rate({(0, 1): [(2.0, 2)] * 20}, 2)
    assert 200 < first.value - second.value < 1500


def test_intervals_cover_the_true_ratings():
    # 150 tournaments of five players: 750 intervals. benchmarks/tournament.py has more.
    covered = []
    for seed in range(150):
        found = rate(simulated(np.random.default_rng(seed)), 5, draws=300, seed=seed)
        covered += [e.low <= true <= e.high for e, true in zip(found, TRUE, strict=True)]
    assert 0.92 <= np.mean(covered) <= 0.98


def test_a_pair_without_games_is_refused():
    with pytest.raises(BadValue, match=r"players \(0, 2\) have none"):
        rate({(0, 1): [(1.0, 2)], (1, 2): [(1.0, 2)]}, 3)
