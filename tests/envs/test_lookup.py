"""The environment whose answer only a tool shows."""

import pytest

import gem
from gem.envs.lookup import LookupEnv, Oracle
from gem.errors import BadValue
from gem.testing import check_env


def test_the_environment_keeps_its_contract():
    assert check_env("tool:Lookup", seeds=2, episodes=30).ok


def test_the_oracle_answers_right_and_a_wrong_answer_ends_the_episode():
    with gem.make("tool:Lookup", seed=2) as env:
        observation, _ = env.reset()
        answer = Oracle(env).act(observation)
        assert env.spawn(same_state=True).step(answer).reward == 1.0
        wrong = (env.look_up(env.state.drawer) + 1) % 10
        step = env.step(rf"\boxed{{{wrong}}}")
        assert step.terminated and step.reward == 0.0 and step.info["stop_reason"] == "lost"


def test_drawers_must_have_a_letter_each():
    assert LookupEnv(drawers=26).look_up_keys()[-1] == "z"
    with pytest.raises(BadValue, match="drawers must be from 1 to 26, got 27"):
        LookupEnv(drawers=27)
