"""Scores of simple players in the games: what is stored, that it is what is measured, and the order of the levels."""

from __future__ import annotations

import math
from itertools import islice

import pytest

import gem
from gem.cli import main
from gem.envs.games.baselines import EPSILONS, INVERTED, Score, inversions, stored, surely_less
from gem.envs.games.players import (
    game,
    open_loop_player,
    oracle_player,
    ordered_player,
    play,
    random_player,
    score,
    search_open_loop,
)

IDS = [spec.id for spec in gem.list_envs("game:*")]
FEW = range(40)
SHORT = [env_id for env_id in IDS if game(env_id).max_turns <= 100]
ONE = {i.partition("-")[0]: i for i in reversed(SHORT)}.values()  # a level of each game


def is_close(measured: Score, kept: Score, episodes: int = len(FEW)) -> bool:
    """Whether a mean over few episodes agrees with the stored one within four standard errors."""
    return abs(measured.mean - kept.mean) <= 4 * kept.deviation / math.sqrt(episodes) + 1e-9


def test_scores_on_400_seeds_are_stored_for_every_game():
    assert set(stored()) == set(IDS)
    assert {row.episodes for row in stored().values()} == {400}
    few = {env_id for env_id, row in stored().items() if row.oracle_episodes < 400}
    assert few <= {
        "game:Game2048-v0-hard",
        "game:Game2048-v0-extreme-hard",
        "game:Rooms-v0",
        "game:Rooms-v0-hard",
        "game:Sokoban-v0-hard",
        "game:Sokoban-v0-random",
    }


def test_random_legal_play_earns_at_most_a_quarter_of_the_oracle_unless_it_wins():
    assert [i for i, row in stored().items() if row.random.not_won > 0.25 * row.oracle.mean] == []


@pytest.mark.slow
@pytest.mark.parametrize("env_id", IDS)
def test_the_stored_scores_are_those_of_the_game_as_it_is(env_id):
    row = stored()[env_id]
    assert is_close(score(env_id, random_player, FEW), row.random)
    assert is_close(score(env_id, ordered_player, FEW), row.ordered)
    assert is_close(score(env_id, open_loop_player(row.sequence), FEW), row.open_loop)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", [i if i in ONE else pytest.param(i, marks=pytest.mark.exhaustive) for i in SHORT])
def test_the_stored_win_rates_of_the_oracle_with_random_moves_are_those_of_the_game_as_it_is(env_id):
    for epsilon, kept in stored()[env_id].ladder.items():
        wins = score(env_id, oracle_player(epsilon), FEW).wins
        assert abs(wins - kept) <= 4 * math.sqrt((kept * (1 - kept) + 0.01) / len(FEW)), epsilon


def test_an_easier_level_is_not_won_less_often_unless_published_parameters_say_so():
    assert {(found.easier, found.harder) for found in inversions(stored())} == set(INVERTED)


def test_a_difference_within_the_95_percent_interval_is_no_inversion():
    assert surely_less((0.5, 400), (0.6, 400)) and not surely_less((0.5, 400), (0.55, 400))
    assert not surely_less((0.5, 40), (0.6, 40)) and not surely_less((1.0, 400), (1.0, 400))


@pytest.mark.parametrize("env_id", IDS)
def test_the_actions_of_the_fixed_order_are_legal(env_id):
    env = game(env_id)
    for seed in range(5):
        env.reset(seed=seed)
        for action in islice(env.ordered_actions(), env.turn_limit()):
            assert "invalid" not in env.step(action).info, action
            if env.over:
                break


def test_letters_are_tried_by_frequency_and_numbers_from_the_lowest():
    assert play(game("game:Hangman-v0-hard"), ordered_player, 0).actions[:4] == [rf"\boxed{{{x}}}" for x in "eiar"]
    assert play(game("game:GuessTheNumber-v0"), ordered_player, 1).actions[:2] == [r"\boxed{1}", r"\boxed{2}"]


@pytest.mark.parametrize("env_id", [env_id for env_id in SHORT if "Minesweeper" not in env_id])
def test_a_game_won_by_the_oracle_returns_exactly_one(env_id):
    episodes = [play(game(env_id), oracle_player(), seed) for seed in range(5)]
    assert any(episode.won for episode in episodes)
    assert all(episode.total == 1.0 for episode in episodes if episode.won)


def test_random_moves_make_the_oracle_worse():
    wins = [score("game:FifteenPuzzle-v0", oracle_player(epsilon), FEW).wins for epsilon in (0, *EPSILONS, 1)]
    assert wins[0] == 1 and wins == sorted(wins, reverse=True) and wins[-1] < 0.1


def test_the_search_finds_the_same_good_sequence_every_time():
    env_id = "game:FifteenPuzzle-v0-easy"  # turning in one direction mostly solves it
    sequence = search_open_loop(env_id, steps=10_000)
    assert score(env_id, open_loop_player(sequence), FEW).wins > 0.7
    assert sequence == search_open_loop(env_id, steps=10_000)


def test_gem_info_prints_the_stored_scores_of_the_registered_parameters(capsys):
    assert main(["info", "game:Hangman-v0-hard"]) == 0
    row = stored()["game:Hangman-v0-hard"]
    random_line = f"random legal actions      mean reward {row.random.mean:.2f}, wins {row.random.wins:.1%}"
    assert random_line in capsys.readouterr().out
    main(["info", "game:Hangman-v0-hard", "--env-kwargs", "max_turns=3"])
    assert "random legal actions" not in capsys.readouterr().out
