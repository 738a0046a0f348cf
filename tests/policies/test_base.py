"""Policies without a model."""

from __future__ import annotations

import pytest

import gem
from gem.errors import BadValue
from gem.policies import RandomPolicy, Reply, Request, ScriptedPolicy, oracle
from gem.registry import EnvSpec


def request(turn: int = 0, action: str = "left") -> Request:
    return Request("obs", [], (0, 0, turn), lambda: action)


def test_the_random_policy_samples_from_the_environment():
    assert RandomPolicy().act([request(action="left"), request(action="right")]) == [Reply("left"), Reply("right")]


def test_a_script_plays_one_line_per_turn_and_repeats_the_last():
    policy = ScriptedPolicy(["a", "b"])
    assert [policy.act([request(turn)])[0].text for turn in range(4)] == ["a", "b", "b", "b"]
    assert [r.text for r in policy.act([request(1), request(0)])] == ["b", "a"]


@pytest.mark.parametrize("lines", [[], "abc", ""])
def test_an_empty_script_is_refused(lines):
    with pytest.raises(BadValue, match=r"list of .*one line, got"):
        ScriptedPolicy(lines)


def test_a_script_copies_its_list():
    lines = ["a"]
    policy = ScriptedPolicy(lines)
    lines[0] = "b"
    assert policy.act([request()])[0].text == "a"


@pytest.mark.parametrize("policy", [RandomPolicy(), ScriptedPolicy(["a"])])
def test_text_policies_have_no_tokens(policy):
    assert (policy.chat, policy.max_prompt_tokens, policy.version) == (None, None, 0)
    (reply,) = policy.act([request()])
    assert (list(reply.sampled_ids), list(reply.logprobs), reply.finish) == ([], [], None)
    assert policy.act([]) == []


def test_the_oracle_is_found_below_wrappers():
    env = gem.wrappers.EpisodeTrackingWrapper(gem.make("game:GuessTheNumber-v0-easy"))
    player = oracle(env)
    observation, _ = env.reset(seed=1)
    assert player.act(observation) == r"\boxed{5}"


def test_a_missing_oracle_names_the_spec_field(monkeypatch):
    from gem.envs.games.guess_the_number import GuessTheNumberEnv

    with pytest.raises(BadValue, match=r"no oracle is known for .*EnvSpec\.oracle"):
        oracle(GuessTheNumberEnv())
    monkeypatch.setitem(gem.ENV_REGISTRY, "mine", EnvSpec("mine", GuessTheNumberEnv))
    with pytest.raises(BadValue, match="no oracle is known for"):
        oracle(gem.make("mine"))
