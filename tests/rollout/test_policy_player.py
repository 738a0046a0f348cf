"""PolicyPlayer: a policy plays the other seat of an environment of one seat."""

from __future__ import annotations

import json
import math
import pickle
import threading
import time
from concurrent.futures import Future
from functools import partial
from itertools import pairwise

import pytest

import gem
from gem.errors import BadValue, InfraError
from gem.multiagent import PlayerPool, as_single_agent
from gem.policies import RandomPolicy, Reply, ScriptedPolicy
from gem.rollout import Match, PolicyPlayer, collect, play_games
from gem.testing import check_env
from gem.vector import VectorEnv

thread_env = partial(VectorEnv.of, backend="thread")

TIC_TAC_TOE = "board:TicTacToe-v0"


def seat(policy, env_id=TIC_TAC_TOE, **kwargs):
    return gem.make(env_id, opponent=PolicyPlayer(policy), **kwargs)


def play(env, seed, act=lambda env: env.sample_random_action()):
    """Play an episode. Returns the first observation, and the observation and reward of each step."""
    seen, over = [env.reset(seed=seed)[0]], False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(act(env))
        seen.append((observation, reward))
        over = terminated or truncated
    return seen


class Recording(RandomPolicy):
    """Keeps the requests, and what they contained when they were made."""

    def __init__(self):
        self.keys, self.conversations = [], []

    def act(self, requests):
        self.keys += [request.key for request in requests]
        self.conversations += [[*(turn.observation for turn in r.turns), r.observation] for r in requests]
        return super().act(requests)


class Answering(RandomPolicy):
    """A policy with submit() that gives the same reply to each request."""

    def __init__(self, reply):
        self.reply = reply

    def submit(self, request):
        future = Future()
        if isinstance(self.reply, Exception):
            future.set_exception(self.reply)
        else:
            future.set_result(self.reply)
        return future


def test_the_policy_sees_the_whole_conversation_of_its_seat():
    policy = Recording()
    play(seat(policy), seed=1)
    assert [len(conversation) for conversation in policy.conversations] == list(range(1, len(policy.keys) + 1))
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(policy.conversations))
    assert "You are" in policy.conversations[0][0] and "You are" not in policy.conversations[1][-1]


def test_the_same_seed_gives_the_same_episode_and_actions_that_are_only_sampled_change_nothing():
    def first(env):
        return rf"\boxed{{{env.legal_moves()[0]}}}"

    def first_after_sampling(env):
        env.sample_random_action()
        return first(env)

    env = seat(RandomPolicy())
    episodes = [play(env, seed, first) for seed in range(5)]
    assert [play(env, seed, first_after_sampling) for seed in range(5)] == episodes
    assert len(set(map(str, episodes))) == 5


def test_the_key_of_a_request_depends_on_the_seed_and_the_agent_alone():
    policy = Recording()
    env = seat(policy)
    for seed in (1, 2, 1):
        play(env, seed)
    first = [key[:2] for key in policy.keys if key[2] == 0]
    assert first[0] == first[2] != first[1]
    policy.keys = []
    play(seat(policy, "talk:SealedAuction-v0"), seed=1)
    assert len({key[:2] for key in policy.keys}) == 2  # three players


def test_environments_that_share_a_player_do_not_mix_their_conversations():
    policy = Recording()
    envs = [seat(policy) for _ in range(2)]
    apart = []
    for env, seed in zip(envs, (1, 2), strict=True):
        policy.conversations = []
        play(env, seed)
        apart += policy.conversations
    policy.conversations = []
    for env, seed in zip(envs, (1, 2), strict=True):
        env.reset(seed=seed)
    running = list(envs)
    while running:
        running = [env for env in running if not env.step(env.sample_random_action()).terminated]
    assert sorted(policy.conversations) == sorted(apart)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Answering(Reply("", failure="EndpointError: the server is down")), "EndpointError: the server is down"),
        (Answering(ConnectionError("gone")), "ConnectionError: gone"),
        (Answering(InfraError("gone")), "gone"),
    ],
)
def test_a_request_that_fails_is_a_failure_that_names_the_agent(policy, message):
    env = seat(policy)
    seed = next(seed for seed in range(20) if "You are X" in seat(RandomPolicy()).reset(seed=seed)[0])
    env.reset(seed=seed)
    with pytest.raises(InfraError, match=f"player_1 .*{message}"):
        env.step(r"\boxed{1}")


def test_a_mistake_of_the_caller_names_the_agent():
    with pytest.raises(BadValue, match=r"player_1 .*no tokenizer"):
        play(seat(Answering(BadValue("no tokenizer"))), seed=0)


def test_a_refusal_is_an_unreadable_action_and_loses():
    policy = Answering(Reply(r"I will not play \boxed{1}.", finish="refusal"))
    for seed in range(4):
        assert play(seat(policy), seed)[-1][1] == 1.0


def test_saved_and_forked_episodes_continue_with_the_conversation():
    policy = Recording()
    env = seat(policy)
    env.reset(seed=1)
    env.step(env.sample_random_action())
    saved = json.loads(json.dumps(env.get_state()))
    action = env.sample_random_action()
    expected, conversation = env.step(action), policy.conversations[-1]
    assert len(conversation) >= 2
    restored = seat(policy)
    restored.set_state(saved)
    fork = restored.spawn(same_state=True)
    env.set_state(saved)
    for other in (restored, fork, env):
        assert json.loads(json.dumps(other.get_state())) == saved
        assert other.step(action) == expected and policy.conversations[-1] == conversation


def test_the_conversation_of_a_pool_continues_with_the_player_that_was_drawn():
    scripts = [ScriptedPolicy(["a", "b", "c"]), ScriptedPolicy(["1", "2", "3"])]
    pool = PlayerPool([PolicyPlayer(script) for script in scripts])
    game = partial(gem.make, TIC_TAC_TOE, opponent=None, on_illegal="retry")
    for seed in range(4):
        env = as_single_agent(game(), others={"player_1": pool})
        env.reset(seed=seed)
        if not env._playing:
            env.step(env.sample_random_action())
        fork = env.spawn(same_state=True)
        assert fork._player("player_1").policy is env._player("player_1").policy
        assert len(fork._player("player_1").episode.turns) == len(env._player("player_1").episode.turns) == 3


def test_the_state_of_an_episode_with_another_player_is_refused():
    env = seat(RandomPolicy(), "board:Nim-v0")
    seed = next(seed for seed in range(20) if env.reset(seed=seed) and env._playing)
    env.reset(seed=seed)
    other = gem.make("board:Nim-v0")
    other.set_state(env.get_state())
    with pytest.raises(BadValue, match="episode with another player"):
        for _ in range(10):
            other.step(other.sample_random_action())


@pytest.mark.slow
def test_checks_pass_for_a_seat_against_a_policy():
    report = check_env(partial(seat, RandomPolicy(), "board:Nim-v0"), seeds=3, episodes=10)
    assert report.failed == []
    assert pickle.loads(pickle.dumps(PolicyPlayer(RandomPolicy()))).policy.max_prompt_tokens is None


def test_a_seat_against_a_policy_can_be_collected():
    vec = gem.make_vec("board:Nim-v0", num_envs=4, opponent=PolicyPlayer(ScriptedPolicy(["no idea"])))
    trajectories = list(collect(vec, RandomPolicy(), episodes=8))
    assert [trajectory.total_reward for trajectory in trajectories] == [1.0] * 8
    vec.close()


def test_what_is_no_policy_is_refused():
    with pytest.raises(BadValue, match="PolicyPlayer needs a policy"):
        PolicyPlayer("best")


def test_players_of_policies_and_pools_play_games_too():
    pool = PlayerPool([PolicyPlayer(RandomPolicy()), PolicyPlayer(ScriptedPolicy(["no idea"]))])
    matches = [Match(n, n, {"player_0": RandomPolicy(), "player_1": pool}) for n in range(12)]
    played = list(play_games(lambda: gem.make("board:Nim-v0", opponent=None), matches))
    texts = {turn.action for p in played for turn in p.trajectories["player_1"].turns}
    assert all(p.failure is None for p in played) and "no idea" in texts and len(texts) > 1


def test_a_policy_without_submit_gets_one_request_at_a_time():
    class Slow(RandomPolicy):
        running, most = 0, 0

        def act(self, requests):
            self.running += 1
            self.most = max(self.most, self.running)
            time.sleep(0.01)
            self.running -= 1
            return super().act(requests)

    policy = Slow()
    vec = thread_env([partial(seat, policy)] * 4)
    assert len(collect(vec, RandomPolicy(), episodes=4)) == 4 and policy.most == 1
    vec.close()


def test_branches_continue_with_the_conversation_of_the_opponent():
    policy = Recording()
    vec = gem.make_vec(TIC_TAC_TOE, num_envs=2, autoreset="disabled", opponent=PolicyPlayer(policy))
    vec.reset(seed=[1, 2])
    vec.step([vec.sample_random_action(slot) for slot in range(2)])
    action = vec.sample_random_action(0)
    vec.set_slot_states({1: vec.get_slot_states([0])[0]})
    policy.conversations = []
    vec.step([action, action])
    assert len(policy.conversations) == 2 and policy.conversations[0] == policy.conversations[1]
    vec.close()


def test_threads_do_not_wait_for_each_other_at_an_endpoint_and_a_failed_request_fails_its_slot_alone():
    pytest.importorskip("aiohttp")
    from gem.policies import Endpoint, EndpointPolicy
    from gem.testing.fakes.endpoint import Answer, FakeEndpoint

    seen, together = [], threading.Barrier(8)

    def reply(request):
        messages = request.body["messages"]
        seen.append([message["role"] for message in messages])
        if len(messages) == 1:
            together.wait(60)
        if "X plays 2." in messages[0]["content"]:
            return Answer(status=400, body="no such model")
        return Answer(text=r"\boxed{99}")

    agent = seat(RandomPolicy())
    seeds = [seed for seed in range(40) if "You are X" in agent.reset(seed=seed)[0]][:8]
    with FakeEndpoint(reply) as fake, Endpoint(fake.url, "model", retries=0) as endpoint:
        player = PolicyPlayer(EndpointPolicy(endpoint))
        build = partial(gem.make, TIC_TAC_TOE, opponent=player, on_illegal="retry")
        vec = thread_env([build] * 8, autoreset="disabled")
        vec.reset(seed=seeds)
        step = vec.step([r"\boxed{1}"] * 7 + [r"\boxed{2}"])
        vec.close()
    assert step.rewards_B.tolist()[:7] == [1.0] * 7  # three illegal moves in a row lose
    assert math.isnan(step.rewards_B[7]) and "the player of player_1" in step.infos_B[7]["failure"]
    assert sorted(map(len, seen)) == [1] * 8 + [3] * 7 + [5] * 7
    assert all(roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] for roles in seen)


@pytest.mark.train
def test_contexts_are_those_of_games_between_policies():
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from gem.rl.model.policy import CausalLMPolicy
    from gem.rl.model.tiny import build_model, build_tokenizer

    class Model(CausalLMPolicy):
        def act(self, requests):
            fed.extend(list(request.prompt_ids) for request in requests)
            return super().act(requests)

    tokenizer = build_tokenizer(["TicTacToe: X and O play. The board: your move"], vocabulary=300)
    model, greedy = build_model(tokenizer, seed=0), {"temperature": 0.0, "max_new_tokens": 8}
    game = partial(gem.make, TIC_TAC_TOE, opponent=None, on_illegal="retry")
    seed = next(seed for seed in range(20) if next(iter(game().reset(seed=seed)[0])) == "player_1")

    def contexts_of_one_seat(policy):
        fed.clear()
        env = as_single_agent(game(), others={"player_1": PolicyPlayer(policy)})
        env.reset(seed=seed)
        assert env.step("")[1:3] == (1.0, True)  # three illegal actions have lost
        return list(fed)

    fed = []
    policy = Model(model, tokenizer, **greedy)
    contexts = contexts_of_one_seat(policy)
    fed.clear()
    [played] = play_games(game, [Match(0, seed, {"player_0": RandomPolicy(), "player_1": policy})])
    assert contexts == fed and len(fed) == 3
    for turn, after in pairwise(played.trajectories["player_1"].turns):
        assert after.context.starts_with(turn.context, turn.sampled_ids)
    too_small = len(contexts[1]) + greedy["max_new_tokens"] - 1  # for the second context
    assert contexts_of_one_seat(Model(model, tokenizer, max_context=too_small, **greedy)) == contexts[:1]
