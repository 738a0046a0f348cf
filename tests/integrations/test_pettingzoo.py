"""Games between players pass PettingZoo's own tests."""

import warnings

import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="needs the extra [pettingzoo]")

from pettingzoo.test import api_test, parallel_api_test, seed_test

import gem
from gem.errors import BadValue
from gem.integrations.pettingzoo import to_pettingzoo

IDS = ["board:TicTacToe-v0", "board:Nim-v0", "board:ConnectFour-v0", "board:Othello-v0", "cards:KuhnPoker-v0"]
IDS += ["cards:LeducHoldem-v0", "cards:LiarsDice-v0", "talk:ColonelBlotto-v0", "talk:DontSayIt-v0"]
NOT_ZERO_SUM = ["talk:IteratedPrisonersDilemma-v0", "talk:Negotiation-v0", "talk:SealedAuction-v0", "talk:Mafia-v0"]


def game(env_id, **kwargs):
    return to_pettingzoo(gem.make(env_id, opponent=None), **kwargs)


@pytest.mark.parametrize("env_id", [*IDS, *NOT_ZERO_SUM])
def test_the_tests_of_pettingzoo_pass(env_id):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Observation (is not a NumPy array|space for each agent probably)")  # text
        warnings.filterwarnings("ignore", "Action mask numpy array is all zeros")  # of agents that are not to move
        api_test(game(env_id), num_cycles=300)
        parallel_api_test(game(env_id, parallel=True), num_cycles=300)
        seed_test(lambda: game(env_id), num_cycles=200)


@pytest.mark.parametrize("env_id", IDS)
def test_masked_actions_end_games_by_the_rules(env_id):
    aec = game(env_id)
    for seed in range(10):
        aec.reset(seed=seed)
        totals, rng = dict.fromkeys(aec.possible_agents, 0.0), np.random.default_rng(seed)
        for agent in aec.agent_iter():
            observation, reward, terminated, truncated, info = aec.last()
            totals[agent] += reward
            assert "invalid" not in info
            legal = np.flatnonzero(observation["action_mask"])
            aec.step(None if terminated or truncated else int(rng.choice(legal)))
        assert sum(totals.values()) == pytest.approx(0)
    aec.close()


def test_actions_can_be_text():
    aec = game("board:TicTacToe-v0", discrete=False)
    aec.reset(seed=0)
    first = aec.agent_selection
    aec.step("nonsense")
    assert aec.terminations == {"player_0": True, "player_1": True}
    assert aec.rewards[first] == -1.0
    assert aec.infos[first]["invalid"] == "no_action"


def test_one_seat_is_not_an_environment_of_several_agents():
    with pytest.raises(BadValue, match="opponent=None"):
        to_pettingzoo(gem.make("board:TicTacToe-v0"))
