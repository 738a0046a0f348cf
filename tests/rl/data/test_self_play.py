"""Self-play: both seats of a game, pools of opponents, averages by seat, and a short run that learns Nim."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("torch")

import gem.rl.run.trainer
from gem.errors import BadValue
from gem.policies import RandomPolicy, Reply
from gem.rl.config import TrainConfig
from gem.rl.data.self_play import PastPolicies, SeatAverages, SelfPlayCollector
from gem.rl.estimate.advantages import EpisodeRewards, seat
from gem.rl.run.trainer import Trainer
from training_runs import resumed_copy, run_of, timeless

pytestmark = pytest.mark.train

NIM = {"env": "board:Nim-v0", "env_kwargs": {"options": {"heaps": [1, 2]}}, "self_play": True}
POOL = {"latest": 0.5, "random": 0.3, "past": 0.2}
TINY = {
    **NIM,
    "opponents": POOL,
    "steps": 3,
    "batch": 12,
    "minibatch": 6,
    "imitation_steps": 8,
    "eval_episodes": 4,
    "eval_every": 3,
    "checkpoint_every": 1,
}


def collector(**settings) -> SelfPlayCollector:
    config = TrainConfig(**{**NIM, **settings})
    return SelfPlayCollector(config, config.envs[0], 0, PastPolicies())


def test_a_short_run_learns_nim_from_both_seats(tmp_path, monkeypatch):
    monkeypatch.setattr(gem.rl.run.trainer, "PAST_EVERY", 3)
    settings = {"steps": 12, "batch": 48, "minibatch": 24, "imitation_steps": 40, "learning_rate": 1.5e-3}
    config = TrainConfig(**NIM, **settings, opponents=POOL, eval_episodes=40, eval_every=12, out=str(tmp_path))
    with Trainer.start(config) as trainer:
        trainer.run()
        last = trainer.folder.read_metrics()[-1]
    for opponent, gain in (("random", 0.2), ("best", 0.5)):
        name = f"board:Nim-v0 against {opponent}"
        before = trainer.untrained["sets"][name]["sampled"]["reward"]
        assert last["eval"]["sets"][name]["sampled"]["reward"] > before + gain
    assert set(last["points"]) <= {"random", "past"}
    assert sorted(trainer.past.policies) == [3, 6, 9, 12]


def test_a_run_of_self_play_resumes_bit_identically(tmp_path, monkeypatch):
    monkeypatch.setattr(gem.rl.run.trainer, "PAST_EVERY", 1)
    whole = run_of(TrainConfig(**TINY, out=str(tmp_path), name="whole"))
    copy = resumed_copy(whole)
    assert timeless(copy) == timeless(whole)
    averages = [Trainer.resume(str(run)).learner.averages.get_state() for run in (copy, whole)]
    assert averages[0] == averages[1]


def test_versions_of_the_policy_are_kept_only_for_games_against_them(tmp_path):
    settings = TINY | {"opponents": {"latest": 1.0, "past": 0.0}, "steps": 10, "eval_every": 10}
    with Trainer.start(TrainConfig(**settings, out=str(tmp_path))) as trainer:
        trainer.run()
    assert trainer.past.policies == {}


def test_a_game_of_the_policy_against_itself_gives_an_episode_for_each_seat():
    batch = collector().collect(RandomPolicy(), episodes=40)
    episodes, points = batch.trajectories, batch.points
    assert points == {}
    assert len(episodes) <= 41
    assert Counter(e.group_id for e in episodes).keys() == {"seat 0", "seat 1"}
    for first, second in itertools.pairwise(episodes):
        if first.seed == second.seed:
            assert first.total_reward == -second.total_reward
    assert len({e.episode for e in episodes}) == len(episodes)


def test_a_game_against_a_fixed_player_gives_the_episode_of_the_learner_in_either_seat():
    batch = collector(opponents={"best": 1}).collect(RandomPolicy(), episodes=40)
    episodes, points = batch.trajectories, batch.points
    assert len({e.seed for e in episodes}) == len(episodes)
    assert Counter(e.group_id for e in episodes).keys() == {"seat 0", "seat 1"}
    assert len(points["best"]) == 40
    assert sum(points["best"]) < 20


def test_a_game_that_fails_at_its_first_move_gives_failed_episodes():
    class Failing(RandomPolicy):
        def act(self, requests):
            return [Reply("", failure="InfraError: no logits") for _ in requests]

    episodes = collector().collect(Failing(), episodes=4).trajectories
    assert [e.failure for e in episodes] == ["InfraError: no logits"] * 4


def test_batches_go_on_where_the_state_says():
    once, twice = collector(opponents={"random": 1}), collector(opponents={"random": 1})
    first = once.collect(RandomPolicy(), episodes=5).trajectories
    twice.set_state(json.loads(json.dumps(once.get_state())))
    after = once.collect(RandomPolicy(), episodes=5).trajectories
    again = twice.collect(RandomPolicy(), episodes=5).trajectories
    assert [e.seed for e in again] == [e.seed for e in after]
    assert not {e.seed for e in first} & {e.seed for e in after}


def test_the_average_of_a_seat_is_that_of_earlier_batches():
    averages = SeatAverages(decay=0.5)
    assert averages.value("first") == 0.0
    averages.add(["first", "first", "second"], [1.0, 0.0, -1.0])
    assert (averages.value("first"), averages.value("second")) == (0.5, -1.0)
    averages.add(["first"], [1.0])
    assert averages.value("first") == pytest.approx((0.5 * 1.0 + 1.0) / (0.5 * 2 + 1))


def test_the_advantage_of_a_seat_is_the_return_minus_its_average():
    found = seat([EpisodeRewards([0, 0, 1], baseline=0.25), EpisodeRewards([-1], baseline=-0.5)])
    assert [a.tolist() for a in found] == [[0.75, 0.75, 0.75], [-0.5]]
    assert np.isfinite(np.concatenate(found)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"opponents": {"latest": -1}}, "opponents .*at least 0.*-1"),
        ({"opponents": {"latest": 0}}, "positive sum"),
        ({"self_play": False, "opponents": {"past": 1}}, "opponents needs self_play"),
        ({"self_play": False, "advantage": "seat"}, "advantage='seat' needs self_play"),
        ({"wrappers": "concat"}, "wrappers .*no effect.*self_play"),
        ({"advantage": "grpo", "group_size": 2}, "'grpo' .*use seat, turn or gae"),
        ({"env_kwargs": {"opponent": "best"}}, "drop its opponent"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(BadValue, match=message):
        TrainConfig(**{**NIM, **settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"env": "game:GuessTheNumber-v0-easy", "env_kwargs": {}}, "game:GuessTheNumber-v0-easy .*two players"),
        ({"env": "talk:Negotiation-v0", "env_kwargs": {}}, "^self-play needs a zero-sum game"),
        ({"opponents": {"strong": 1}}, r"opponent must be .*'random', 'best'"),
    ],
)
def test_a_run_without_a_game_or_with_an_unknown_opponent_is_refused_before_the_first_step(settings, message, tmp_path):
    with pytest.raises(BadValue, match=message):
        Trainer.start(TrainConfig(**{**NIM, **settings}, out=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []
