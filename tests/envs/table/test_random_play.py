"""Games between random players end as the table says."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest

import gem
from gem.cli import main
from gem.envs.table.boards.tic_tac_toe import TicTacToeEnv
from gem.envs.table.random_play import OUTCOMES

GAMES = 300
RESULTS = Path(__file__).parents[3] / "benchmarks" / "results" / "random_play.md"


def outcome(game, rng):
    """Return the seat or side that wins, or None for a draw."""
    position = game.deal(rng)
    while game.to_move(position) is not None:
        position = game.after(position, rng.choice(game.moves(position)))
    return game.winner(position)


def test_the_table_has_every_game_between_players():
    assert set(OUTCOMES) == {env_id for env_id in gem.ENV_REGISTRY if env_id.startswith(("board:", "cards:", "talk:"))}


@pytest.mark.parametrize("env_id", OUTCOMES)
def test_games_between_random_players_end_as_stored(env_id):
    game, rng = gem.make(env_id, opponent=None), random.Random(f"random play {env_id}")
    games = GAMES // 5 if "Othello" in env_id or env_id == "board:ConnectFour-v0" else GAMES
    ends = [outcome(game, rng) for _ in range(games)]
    for end, share in [*enumerate(OUTCOMES[env_id]), (None, 1 - sum(OUTCOMES[env_id]))]:
        deviation = math.sqrt(max(share * (1 - share), 0.001) / games)
        assert abs(ends.count(end) / games - share) < 4 * deviation


def test_the_shares_of_tic_tac_toe_are_those_of_the_whole_tree_within_a_hundredth():
    game, known = TicTacToeEnv(), {}

    def shares(position):
        if position not in known:
            if game.to_move(position) is None:
                first = game.scores(position)[0]
                known[position] = (float(first > 0), float(first < 0))
            else:
                after = [shares(game.after(position, move)) for move in game.moves(position)]
                known[position] = tuple(sum(column) / len(after) for column in zip(*after, strict=True))
        return known[position]

    exact = shares(game.deal(random.Random(0)))
    assert exact == pytest.approx((0.585, 0.288), abs=5e-4)
    assert OUTCOMES["board:TicTacToe-v0"] == pytest.approx(exact, abs=0.01)


def test_the_table_is_that_of_the_recorded_benchmark():
    rows = re.findall(r"^\| `(\S+)` \|(.*)\| \S+ \|$", RESULTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert {env_id: tuple(map(float, shares.split("|"))) for env_id, shares in rows} == OUTCOMES


def test_gem_info_prints_the_table(capsys):
    assert main(["info", "board:TicTacToe-v0"]) == 0
    assert re.search(r"random against random: first player wins +0\.587 of the games", capsys.readouterr().out)
