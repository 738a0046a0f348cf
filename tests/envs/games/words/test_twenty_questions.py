from dataclasses import replace

import pytest

from gem.core import StopReason
from gem.envs.games.words.twenty_questions import ATTRIBUTES, NAMES, Oracle, TwentyQuestionsEnv, greedy_depth, split
from gem.errors import BadValue

TRAITS = (("red", "small"), ("red", "large"), ("blue", "small"), ("blue", "large"))


def test_the_most_even_question_is_asked():
    assert split(TRAITS, (0, 1, 2, 3)) == "red" and split(TRAITS, (0, 1)) == "small"
    assert greedy_depth(TRAITS, (0, 1, 2, 3)) == 3 and greedy_depth(TRAITS, (2,)) == 1


def test_names_and_attributes_cannot_be_confused():
    values = [value for group in ATTRIBUTES.values() for value in group]
    assert len(set(values)) == len(values) and len(set(NAMES)) == len(NAMES)
    assert not set(values) & set(NAMES)


def test_no_two_objects_are_alike():
    env = TwentyQuestionsEnv(objects=30)
    for seed in range(20):
        env.reset(seed=seed)
        assert len(set(env.state.traits)) == len(set(env.state.names)) == 30


@pytest.mark.parametrize("arguments", [{}, {"objects": 12, "attributes": 3}, {"objects": 64, "attributes": 5}])
def test_the_oracle_finds_every_object_in_the_turns_without_slack(arguments, play):
    env = TwentyQuestionsEnv(**arguments, slack=0)
    turns = []
    for seed in range(25):
        total, _ = play(env, Oracle(env).act, seed)
        assert total == 1.0 and env.turn <= env.turn_limit() <= 20
        turns.append(env.turn == env.turn_limit())
    assert any(turns)


def test_answers_are_those_of_the_secret_object():
    env = TwentyQuestionsEnv()
    env.reset(seed=0)
    first = env.state.traits[env.state.secret]
    assert env.step(rf"\boxed{{ask {first[0]}}}").observation == f"Turn 1: {first[0]}? Yes."
    other = next(value for value in ATTRIBUTES["color"] if value != first[0])
    assert env.step(rf"\boxed{{ask {other}}}").observation == f"Turn 2: {other}? No."


def test_observations_of_different_secrets_differ_only_by_the_answers():
    env, other = TwentyQuestionsEnv(), TwentyQuestionsEnv()
    card, _ = env.reset(seed=0)
    other.reset(seed=0)
    other.state = replace(env.state, secret=(env.state.secret + 1) % 30)
    assert other.rules() == card


def test_a_wrong_guess_loses():
    env = TwentyQuestionsEnv()
    env.reset(seed=0)
    wrong = env.state.names[env.state.secret - 1]
    step = env.step(rf"\boxed{{guess {wrong}}}")
    assert (step.reward, step.terminated, step.info["stop_reason"]) == (0.0, True, StopReason.LOST)


@pytest.mark.parametrize("bad", [{"objects": 3}, {"attributes": 6}, {"slack": -1}, {"objects": 20, "attributes": 2}])
def test_wrong_arguments_are_named(bad):
    with pytest.raises(BadValue, match=next(iter(bad))):
        TwentyQuestionsEnv(**bad)
