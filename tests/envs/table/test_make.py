"""The ids of games between players: one seat against an opponent, or the game for all players."""

import random

import pytest

import gem
from gem.envs.table.boards.tic_tac_toe import TicTacToeEnv
from gem.envs.table.players import TablePlayer
from gem.errors import BadValue, EpisodeOver, InfraError, UnknownArgument
from gem.multiagent import as_single_agent
from gem.policies import RandomPolicy

IDS = [env_id for env_id in gem.ENV_REGISTRY if env_id.startswith(("board:", "cards:", "talk:"))]


@pytest.mark.parametrize("env_id", IDS)
def test_a_seat_is_an_environment_and_repeats_its_episodes(env_id):
    def rewards():
        env, found = gem.make(env_id), []
        for seed in range(5):
            env.reset(seed=seed)
            over = False
            while not over:
                observation, reward, terminated, truncated, _ = env.step(env.sample_random_action())
                found.append((observation, reward))
                over = terminated or truncated
        return found

    assert rewards() == rewards()


def test_the_other_seat_is_played_before_and_after_an_action():
    env = gem.make("board:TicTacToe-v0")
    for seed in range(10):
        observation, _ = env.reset(seed=seed)
        marks = observation.count("\nX plays") + observation.count("\nO plays")
        assert marks == (0 if "You are X" in observation else 1)
        observation, *_ = env.step(env.sample_random_action())
        assert env.unwrapped.agents == [] or len(env.unwrapped.state.log) == 2 + marks


def test_opponents_have_the_strength_that_was_asked_for():
    def score(opponent):
        env, total = gem.make("board:Nim-v0", opponent=opponent), 0.0
        for seed in range(60):
            env.reset(seed=seed)
            over = False
            while not over:
                _, reward, terminated, truncated, _ = env.step(env.sample_random_action())
                over, total = terminated or truncated, total + reward
        return total / 60

    assert score("random") > score(0.5) > score("best") + 0.2
    with pytest.raises(BadValue, match="opponent must be"):
        gem.make("board:Nim-v0", opponent="perfect")
    with pytest.raises(BadValue, match="strength"):
        gem.make("board:Nim-v0", opponent=1.5)


def test_a_player_that_fails_is_a_failure_and_no_win():
    class Broken:
        def act(self, env, agent, rng):
            raise ConnectionError("no route to the model")

    env = as_single_agent(TicTacToeEnv(), "player_1", others={"player_0": Broken()})
    with pytest.raises(InfraError, match=r"player_0 .*ConnectionError: no route"):
        for seed in range(10):
            env.reset(seed=seed)
            env.step(env.sample_random_action())


def test_a_seat_needs_a_player_for_each_other_agent():
    with pytest.raises(BadValue, match="others must have a player"):
        as_single_agent(TicTacToeEnv())
    with pytest.raises(BadValue, match="no agent 'player_2'"):
        as_single_agent(TicTacToeEnv(), "player_2", others={})
    with pytest.raises(BadValue, match=r"player_1 .*RandomPolicy.*gem\.rollout\.PolicyPlayer\(policy\)"):
        as_single_agent(TicTacToeEnv(), others={"player_1": RandomPolicy()})
    with pytest.raises(BadValue, match=r"player_1 needs act\(env, agent, rng\).*'best'"):
        as_single_agent(TicTacToeEnv(), others={"player_1": "best"})


def test_a_player_can_be_the_opponent_of_an_id():
    class First:
        def act(self, env, agent, rng):
            return rf"\boxed{{{env.legal_moves()[0]}}}"

    env = gem.make("talk:SealedAuction-v0", opponent=First())
    assert [type(player) for player in env.others.values()] == [First, First]
    env.reset(seed=0)
    env.step(env.sample_random_action())
    for wrong in ([1], True, RandomPolicy()):
        with pytest.raises(BadValue, match="the player of player_1"):
            gem.make("board:Nim-v0", opponent=wrong)


def test_an_opponent_that_loses_before_the_first_action_ends_the_episode_with_it():
    class Resigns:
        def act(self, env, agent, rng):
            return "I resign"

    env = as_single_agent(TicTacToeEnv(), others={"player_1": Resigns()})
    seed = next(seed for seed in range(20) if "You are O" in env.reset(seed=seed)[0])
    env.reset(seed=seed)
    assert env.step(env.sample_random_action())[1:3] == (1.0, True)
    for call in (env.sample_random_action, lambda: env.step(r"\boxed{1}")):
        with pytest.raises(EpisodeOver):
            call()


def test_vectors_play_seats():
    vec = gem.make_vec(["board:TicTacToe-v0"] * 4, seed=0)
    vec.reset(seed=0)
    for _ in range(6):
        _, rewards, *_ = vec.step([r"\boxed{1}"] * 4)
    assert set(rewards) <= {-1.0, 0.0, 1.0}
    vec.close()


def test_the_game_itself_is_for_all_players():
    game = gem.make("board:TicTacToe-v0", opponent=None)
    observations, _ = game.reset(seed=0)
    assert set(observations) == {"player_0", "player_1"}
    best = TablePlayer()
    while game.agents:
        agent = game.active_agents()[0]
        rewards = game.step({agent: best.act(game, agent, random.Random(0))})[1]
    assert rewards == {"player_0": 0.0, "player_1": 0.0}


def test_options_that_the_game_does_not_have_are_named():
    with pytest.raises(UnknownArgument, match=r"no option 'heap'.*heaps"):
        gem.make("board:Nim-v0", options={"heap": [1]})
    with pytest.raises(BadValue, match=r"options .*dict.*got 3"):
        gem.make("board:Nim-v0", options=3)
