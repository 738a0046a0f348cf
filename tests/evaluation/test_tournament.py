"""Tournaments: ranking, both seats, resuming, failures."""

from __future__ import annotations

import json

import pytest

from gem.errors import BadValue, InfraError
from gem.evaluation import play_tournament
from gem.evaluation.tournament import sparring_player
from gem.policies import RandomPolicy
from gem.trajectory import read_jsonl

NIM, TIC_TAC_TOE = "board:Nim-v0", "board:TicTacToe-v0"
STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


def sparring(env_id, *strengths):
    return {f"strength:{strength:g}": sparring_player(env_id, strength) for strength in strengths}


class Unreliable:
    """Fails in its first games, then plays like the oracle."""

    def __init__(self, failures):
        self.left, self.player = failures, sparring_player(NIM, "best")

    def act(self, env, agent, rng):
        if self.left:
            self.left -= 1
            raise ConnectionError("down")
        return self.player.act(env, agent, rng)


@pytest.mark.parametrize("env_id", [NIM, TIC_TAC_TOE])
def test_five_players_of_graded_strength_are_ranked_rightly(env_id):
    report = play_tournament(sparring(env_id, *STRENGTHS), env_id, games=60)
    assert report.ranking == [f"strength:{strength:g}" for strength in reversed(STRENGTHS)]
    assert all(rating.low <= rating.value <= rating.high for rating in report.ratings)
    assert sum(report.points(i)[0] for i in range(5)) == report.planned == 600


def test_each_deal_is_played_with_both_seats():
    seen = []

    class Watching(RandomPolicy):
        def act(self, requests):
            seen.extend(request.observation for request in requests if not request.key[2])
            return super().act(requests)

    play_tournament({"a": Watching(), "b": sparring_player(TIC_TAC_TOE, "random")}, TIC_TAC_TOE, games=10)
    assert sum("You are X" in text for text in seen) == sum("You are O" in text for text in seen) == 5


def test_a_tournament_that_was_cut_is_resumed_and_ends_like_an_uncut_one(tmp_path):
    whole = play_tournament(sparring(NIM, 0, 1), NIM, games=20, out=str(tmp_path / "whole"))
    cut = tmp_path / "cut"
    play_tournament(sparring(NIM, 0, 1), NIM, games=20, out=str(cut))
    lines = (cut / "trajectories.jsonl").read_bytes().splitlines(keepends=True)
    (cut / "trajectories.jsonl").write_bytes(b"".join(lines[:7]) + lines[7][:40])  # a kill leaves a torn line
    resumed = play_tournament(sparring(NIM, 0, 1), NIM, games=20, out=str(cut), resume=True)
    assert resumed == whole
    numbers = [trajectory.episode for trajectory in read_jsonl(cut / "trajectories.jsonl")]
    assert sorted(numbers) == list(range(20))
    assert json.loads((cut / "report.json").read_text()) == json.loads((tmp_path / "whole/report.json").read_text())
    with pytest.raises(BadValue, match="other settings: games was 20, now 22"):
        play_tournament(sparring(NIM, 0, 1), NIM, games=22, out=str(cut), resume=True)


def test_a_failed_game_is_never_a_win_and_is_played_again(tmp_path):
    players = {"unreliable": Unreliable(3), "random": sparring_player(NIM, "random")}
    report = play_tournament(players, NIM, games=4, retries=0, concurrency=4, out=str(tmp_path / "t"))
    assert (report.failures, report.points(0)[1], report.points(1)[1]) == (3, 1, 1)
    assert "ConnectionError: down" in report.last_failure
    report = play_tournament(players, NIM, games=4, out=str(tmp_path / "t"), resume=True)
    assert (report.failures, report.points(0)[1]) == (0, 4)


def test_a_player_that_always_fails_stops_the_tournament_and_gives_nobody_a_point():
    players = {"down": Unreliable(10**9), "random": sparring_player(NIM, "random")}
    with pytest.raises(InfraError, match="the last 8 games failed"):
        play_tournament(players, NIM, games=20, concurrency=4)
    report = play_tournament(players, NIM, games=2, retries=0)
    assert (report.failures, report.points(1), report.ratings) == (2, (0.0, 0), None)


@pytest.mark.parametrize("env_id", ["game:GuessTheNumber-v0-easy", "qa:Facts"])
def test_only_games_of_two_players_have_tournaments(env_id):
    with pytest.raises(BadValue, match=f"{env_id} .*two players.*`gem list`"):
        play_tournament({"a": RandomPolicy(), "b": RandomPolicy()}, env_id)


def test_arguments_out_of_range_are_refused():
    both = {"a": RandomPolicy(), "b": RandomPolicy()}
    with pytest.raises(BadValue, match=r"games .*even"):
        play_tournament(both, NIM, games=3)
    with pytest.raises(BadValue, match="at least two players, got a"):
        play_tournament({"a": RandomPolicy()}, NIM)
