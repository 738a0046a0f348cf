"""Poker games: best responses, exploitability, averages of strategies, and the shipped equilibria."""

import itertools
import random

import pytest

from gem.envs.table.players import strategies
from gem.envs.table.poker import KuhnPokerEnv, LeducHoldemEnv
from gem.envs.table.poker_solver import average, best_response, exploitability, solve, uniform, value


def test_uniform_play_can_be_exploited_by_the_known_amounts():
    kuhn, leduc = KuhnPokerEnv(), LeducHoldemEnv()
    assert exploitability(kuhn, uniform(kuhn)) * kuhn.stake == pytest.approx(0.4583333)
    assert exploitability(leduc, uniform(leduc)) * leduc.stake == pytest.approx(2.3736111)


@pytest.mark.parametrize(("kind", "expected"), [(KuhnPokerEnv, -1 / 18), (LeducHoldemEnv, -0.0856)])
def test_the_shipped_strategies_are_equilibria(kind, expected):
    game, strategy = kind(), strategies()[kind.__name__]
    assert exploitability(game, strategy) * game.stake < 1e-3
    assert value(game, (strategy, strategy)) * game.stake == pytest.approx(expected, abs=5e-4)


def test_a_best_response_in_kuhn_poker_is_the_best_of_all_pure_strategies():
    game, rng = KuhnPokerEnv(), random.Random(3)
    strategy = {key: dict(zip(moves, (p := rng.random(), 1 - p), strict=True)) for key, moves in uniform(game).items()}
    for seat in (0, 1):
        keys = [key for key in strategy if key[0] == str(seat)]
        values = []
        for choice in itertools.product(*(strategy[key] for key in keys)):
            pure = {key: {m: float(m == move) for m in strategy[key]} for key, move in zip(keys, choice, strict=True)}
            both = (pure, strategy) if seat == 0 else (strategy, pure)
            values.append(value(game, both) * (1 if seat == 0 else -1))
        assert best_response(game, strategy, seat) == pytest.approx(max(values))


def test_more_iterations_come_closer_to_an_equilibrium():
    game = KuhnPokerEnv()
    assert (
        exploitability(game, solve(game, 100))
        < exploitability(game, solve(game, 10))
        < exploitability(game, uniform(game))
    )


def test_the_average_of_strategies_plays_one_of_them_in_each_game():
    game, rng = KuhnPokerEnv(), random.Random(5)
    played = []
    for _ in range(3):
        found = uniform(game)
        played.append({key: dict(zip(moves, (p := rng.random(), 1 - p), strict=True)) for key, moves in found.items()})
    mixed, other = average(game, played), uniform(game)
    mean = sum(value(game, (strategy, other)) for strategy in played) / 3
    assert value(game, (mixed, other)) == pytest.approx(mean)
    mean = sum(value(game, (other, strategy)) for strategy in played) / 3
    assert value(game, (other, mixed)) == pytest.approx(mean)
    assert exploitability(game, mixed) < sum(exploitability(game, strategy) for strategy in played) / 3


def test_an_average_ignores_what_a_strategy_does_where_it_never_gets():
    game = KuhnPokerEnv()
    bets, checks = uniform(game), uniform(game)
    bets["0K|"], bets["0K|kb"] = {"check": 0.0, "bet": 1.0}, {"call": 0.0, "fold": 1.0}
    checks["0K|"], checks["0K|kb"] = {"check": 1.0, "bet": 0.0}, {"call": 1.0, "fold": 0.0}
    mixed = average(game, [bets, checks])
    assert mixed["0K|"] == {"check": 0.5, "bet": 0.5}
    assert mixed["0K|kb"] == {"call": 1.0, "fold": 0.0}
    assert average(game, [bets])["0K|kb"] == {"call": 0.5, "fold": 0.5}  # never reached
