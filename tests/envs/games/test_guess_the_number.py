"""Tests of GuessTheNumber: its rules, edge cases and variants."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gem
from gem.core import StopReason
from gem.envs.games.guess_the_number import (
    GuessTheNumberEnv,
    Oracle,
    State,
    balanced_search,
    default_turns,
    hint,
)
from gem.errors import BadAction, BadValue
from gem.policies import oracle

IDS = [spec.id for spec in gem.list_envs("game:GuessTheNumber-v0")]


def with_secret(secret: int, **kwargs: Any) -> GuessTheNumberEnv:
    env = GuessTheNumberEnv(**kwargs)
    env.reset(seed=0)
    env.state = State(env.min_number, env.max_number, secret)
    return env


# Rules


@pytest.mark.parametrize(("guess", "said"), [(3, "too low"), (5, "right"), (9, "too high")])
def test_a_hint_compares_the_guess_with_the_secret(guess, said):
    assert hint(guess, secret=5) == said


@pytest.mark.parametrize(
    ("width", "turns", "optimum"),
    [
        (10, 4, (1.0, 2.9)),
        (20, 10, (1.0, (1 + 4 + 12 + 32 + 25) / 20)),
        (50, 7, (1.0, 4.86)),
        (1, 1, (1.0, 1.0)),
        (10, 3, (0.7, (1 + 4 + 12) / 7)),
        (10, 1, (0.1, 1.0)),
    ],
)
def test_balanced_search_fills_a_binary_tree_level_by_level(width, turns, optimum):
    found = balanced_search(width, turns)
    assert (found.success, found.turns) == pytest.approx(optimum)


@given(st.integers(1, 60), st.integers(1, 8))
def test_the_oracle_reaches_the_optimum(width, turns):
    env = GuessTheNumberEnv(1, width, turns)
    player = Oracle(env)
    won = []
    for secret in range(1, width + 1):
        observation, _ = env.reset(seed=0)
        env.state = State(1, width, secret)
        step = env.step(player.act(observation))
        while not (step.terminated or step.truncated):
            step = env.step(player.act(step.observation))
        if step.terminated:
            won.append(env.turn)
    optimum = balanced_search(width, turns)
    assert len(won) / width == pytest.approx(optimum.success)
    assert sum(won) / len(won) == pytest.approx(optimum.turns)


@pytest.mark.parametrize(("width", "turns"), [(1, 2), (10, 5), (50, 9), (51, 9)])
def test_the_random_variant_allows_the_published_number_of_turns(width, turns):
    assert default_turns(width) == turns >= math.ceil(math.log2(width + 1))


def test_the_observation_starts_with_the_turn_number():
    env = with_secret(5)
    assert env.step(r"\boxed{2}").observation == "Turn 1: 2 is too low."
    assert env.step(r"\boxed{9}").observation == "Turn 2: 9 is too high."


def test_the_rules_state_the_range_the_turns_and_the_format():
    rules, info = GuessTheNumberEnv(3, 9, 4).reset(seed=0)
    assert "between 3 and 9" in rules and "at most 4 turns" in rules
    assert r"\boxed{3}" in rules
    assert info == {}


def test_the_secret_wins():
    env = with_secret(5)
    assert env.secrets() == ["5"]
    step = env.step(r"\boxed{5}")
    assert (step.reward, step.terminated, step.truncated) == (1.0, True, False)
    assert step.info == {"stop_reason": StopReason.SOLVED, "explanation": ANY}


def test_the_secret_also_wins_on_the_last_turn():
    step = with_secret(5, max_turns=1).step(r"\boxed{5}")
    assert (step.reward, step.terminated, step.truncated) == (1.0, True, False)


@pytest.mark.parametrize("far", [1, 4, 20])
def test_the_turn_limit_truncates_without_reward_for_a_close_guess(far):
    step = with_secret(5, max_turns=1).step(rf"\boxed{{{far}}}")
    assert (step.reward, step.terminated, step.truncated) == (0.0, False, True)
    assert step.info == {"stop_reason": StopReason.MAX_TURNS, "revealed": ["5"], "explanation": ANY}


def test_zero_is_a_valid_guess():
    step = with_secret(0, min_number=0).step(r"\boxed{0}")
    assert step.info["stop_reason"] == StopReason.SOLVED
    outside = with_secret(5).step(r"\boxed{0}")
    assert outside.info == {"invalid": "out_of_range"}
    assert not outside.terminated


def test_a_guess_out_of_range_only_uses_up_a_turn():
    env = with_secret(5)
    step = env.step(r"\boxed{99}")
    assert (step.observation, step.reward) == ("Turn 1: 99 is not between 1 and 20.", 0.0)
    assert step.info == {"invalid": "out_of_range"}
    assert env.turn == 1


def test_an_unreadable_action_on_the_last_turn_truncates():
    env = with_secret(5, on_unreadable="continue", max_turns=2)
    first, second = env.step("?"), env.step("?")
    assert (first.reward, first.terminated, first.truncated) == (-0.1, False, False)
    assert (second.reward, second.terminated, second.truncated) == (-0.1, False, True)
    assert second.info == {
        "invalid": "no_action",
        "stop_reason": StopReason.MAX_TURNS,
        "revealed": ["5"],
        "explanation": ANY,
    }


def test_the_last_box_with_a_number_counts():
    assert with_secret(5).step(r"not \boxed{3} but \boxed{5}, that is \boxed{it}").terminated


@pytest.mark.parametrize("action", [None, 5, b"x", ["x"], {"role": "assistant"}])
def test_a_non_string_action_raises_bad_action(action):
    with pytest.raises(BadAction, match="action must be a str"):
        with_secret(5).step(action)


def test_a_rejected_action_uses_up_no_turn():
    env = with_secret(5)
    with pytest.raises(BadAction):
        env.step(5)
    assert env.turn == 0


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"min_number": 9, "max_number": 3}, "min_number .*max_number.*got 9 > 3"),
        ({"max_turns": 0}, "max_turns .*at least 1.*got 0"),
        ({"on_unreadable": "stop"}, "on_unreadable .*'end', 'continue'.*'stop'"),
    ],
)
def test_invalid_parameters_are_rejected(kwargs, says):
    with pytest.raises(BadValue, match=says):
        GuessTheNumberEnv(**kwargs)


# Every variant


def test_all_variants_of_the_catalog_are_registered():
    assert {i.removeprefix("game:GuessTheNumber-v0") for i in IDS} == {
        "",
        "-easy",
        "-hard",
        "-hard-no-max-turn",
        "-random",
    }


@pytest.mark.parametrize("env_id", IDS)
def test_the_oracle_wins_every_game_and_earns_exactly_one(env_id, play):
    env = gem.make(env_id)
    player = oracle(env)
    for seed in range(200):
        total, step = play(env, player.act, seed)
        assert total == 1.0 and step.info["stop_reason"] == StopReason.SOLVED


@pytest.mark.parametrize("env_id", IDS)
def test_a_constant_guess_earns_no_more_than_the_declared_baseline(env_id, play):
    env = gem.make(env_id)
    baseline = gem.ENV_REGISTRY[env_id].baseline_scores["constant"]
    for constant in range(0, 61, 4):
        action = rf"\boxed{{{constant}}}"
        assert sum(play(env, lambda _, action=action: action, seed)[0] for seed in range(100)) / 100 <= baseline


@pytest.mark.parametrize("env_id", IDS)
def test_secrets_are_drawn_from_the_whole_range(env_id):
    env = gem.make(env_id)
    env.reset(seed=0)
    for seed in range(2000):
        env.reset(seed=seed)
        assert env.state.low <= env.state.secret <= env.state.high
    if not env.random_range:
        drawn = set()
        for seed in range(2000):
            env.reset(seed=seed)
            drawn.add(env.state.secret)
        assert drawn == set(range(env.min_number, env.max_number + 1))


def test_the_random_variant_draws_its_range_within_the_published_bounds():
    env = gem.make("game:GuessTheNumber-v0-random")
    ranges = set()
    for seed in range(500):
        rules, _ = env.reset(seed=seed)
        low, high = env.state.low, env.state.high
        ranges.add((low, high))
        assert 1 <= low <= 10 and 5 <= high - low <= 50
        assert f"between {low} and {high}, in at most {math.ceil(math.sqrt(high - low + 1)) + 1} turns" in rules
    assert len(ranges) > 100


@given(st.text())
def test_no_text_raises(action):
    step = with_secret(5).step(action)
    assert step.reward in (-0.1, 0.0, 1.0)
