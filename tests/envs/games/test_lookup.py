"""The environment whose answer only a tool shows."""

import pytest

import gem
from gem.envs.games.lookup import LookupEnv, Oracle
from gem.errors import BadValue
from gem.testing import check_env


@pytest.mark.slow
def test_the_environment_keeps_its_contract():
    assert check_env("tool:Lookup", seeds=2, episodes=10).ok


def test_the_oracle_answers_right_and_a_wrong_answer_ends_the_episode():
    with gem.make("tool:Lookup", seed=2) as env:
        observation, _ = env.reset()
        answer = Oracle(env).act(observation)
        assert env.spawn(same_state=True).step(answer).reward == 1.0
        wrong = (env.look_up(env.state.asked) + 1) % 10
        step = env.step(rf"\boxed{{{env.state.asked}:{wrong}}}")
        assert step.terminated and step.reward == 0.0 and step.info["stop_reason"] == "lost"


@pytest.mark.parametrize("answer", [r"\boxed{7}", r"\boxed{%s:7}", r"\boxed{%s:77}", r"\boxed{:7}"])
def test_an_answer_that_does_not_name_the_drawer_cannot_be_read(answer: str):
    with gem.make("tool:Lookup", seed=2) as env:
        env.reset()
        other = str((int(env.state.asked) + 1) % 10)
        step = env.step(answer.replace("%s", other if answer.endswith(":7}") else env.state.asked))
        assert step.terminated and step.reward == -0.1 and step.info["invalid"] == "no_action"


def test_the_drawers_of_an_episode_have_different_digits_as_names():
    env = LookupEnv(drawers=10)
    env.reset(seed=0)
    assert sorted(env.look_up_keys()) == list("0123456789") and env.state.asked in env.rules()
    with pytest.raises(BadValue, match=r"drawers .*1 to 10.*got 11"):
        LookupEnv(drawers=11)
