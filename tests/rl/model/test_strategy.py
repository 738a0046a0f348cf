"""The strategy of a policy in Kuhn poker agrees with what it samples, and with exploitability known otherwise."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

import gem
from gem.envs.table.poker_solver import exploitability, uniform
from gem.errors import BadValue
from gem.rl.config import TrainConfig
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.strategy import strategy_of
from gem.rl.run.trainer import Trainer
from gem.rollout import Match, play_games

pytestmark = pytest.mark.train

KUHN = "cards:KuhnPoker-v0"


@pytest.fixture(scope="module")
def policy(tmp_path_factory) -> CausalLMPolicy:
    """A policy after a short warm-up."""
    config = TrainConfig(
        env=KUHN, self_play=True, imitation_steps=40, steps=1, batch=8, minibatch=8, eval_episodes=1,
        out=str(tmp_path_factory.mktemp("runs")),
    )  # fmt: skip
    with Trainer.start(config) as trainer:
        trainer.run(should_stop=lambda: trainer.untrained != {})
        return trainer.policy


def table():
    return gem.make(KUHN, opponent=None)


def test_every_information_set_has_probabilities_of_the_legal_moves(policy):
    found = strategy_of(policy, table())
    assert found.moves.keys() == found.legal.keys() == uniform(table()).keys()
    for key, chances in uniform(table()).items():
        assert found.moves[key].keys() == chances.keys()
        assert sum(found.moves[key].values()) == pytest.approx(1)
        assert 0.5 < found.legal[key] < 1.00001


def test_the_probabilities_are_those_with_which_the_policy_samples(policy):
    found, compared = strategy_of(policy, table()), 0
    matches = (Match(number, number, {"player_0": policy, "player_1": policy}) for number in range(60))
    for played in play_games(table, matches):
        game, turns = table(), {agent: list(played.trajectories[agent].turns) for agent in played.order}
        game.reset(seed=played.match.seed)
        while game.agents:
            agent = game.active_agents()[0]
            turn, seat = turns[agent].pop(0), game.seat_of(agent)
            move = game.read(turn.action)
            if turn.action != rf"\boxed{{{move}}}" or move not in game.legal_moves():
                break
            key = f"{seat}{game.information(game.position, seat)}"
            expected = found.moves[key][move] * found.legal[key]
            assert math.exp(sum(turn.logprobs)) == pytest.approx(expected, rel=1e-3)
            game.step({agent: turn.action})
            compared += 1
    assert compared > 60


def test_the_exploitability_of_a_policy_that_is_close_to_random_is_close_to_that_of_random_play(policy):
    game = table()
    found = exploitability(game, strategy_of(policy, game).moves) * game.stake
    assert found == pytest.approx(11 / 24, abs=0.25)


def test_a_greedy_policy_has_no_probabilities(policy):
    with pytest.raises(BadValue, match="temperature 0"):
        strategy_of(policy.variant(temperature=0.0), table())
