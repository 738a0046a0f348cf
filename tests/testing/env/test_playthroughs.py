import importlib
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import gem
from gem.errors import BadValue, UnknownEnv
from gem.registry import ENV_REGISTRY, EnvSpec
from gem.testing import record, replay
from gem.testing.env.playthroughs import recorded_actions

sys.path.insert(0, str(Path(__file__).parents[1]))
broken = importlib.import_module("broken_envs")

EASY = "game:GuessTheNumber-v0-easy"


class Odd(broken.Correct):
    """Observations and actions that a line-by-line format could misread."""

    def info(self, **more):
        return {"parts": [1, 2], **more}

    def judge(self, action, guess):
        return super().judge(action, guess)._replace(observation="\n> quoted\r\nturn 7\n  é\n")

    def sample_random_action(self):
        return f"think\n\n> {self.action_rng.randint(1, 60)}\nturn 1\n"


@pytest.fixture
def odd():
    gem.register(EnvSpec("test:Odd", Odd))
    yield "test:Odd"
    del ENV_REGISTRY["test:Odd"]


def test_a_playthrough_contains_seed_rules_actions_observations_rewards_and_end():
    lines = record(EASY, seed=0).split("\n")
    assert lines[:3] == [f"playthrough of {EASY}", "seed 0", "actions by the oracle"]
    assert lines[4:6] == ["reset", "< Guess the secret integer between 1 and 10, in at most 4 turns."]
    assert lines[8:12] == ["turn 1", r"> \boxed{5}", "< Turn 1: 5 is too low.", "reward 0.0"]
    assert lines[-2:] == ["end terminated (solved) after 4 turns, rewards sum to 1.0", ""]


def test_replaying_a_new_recording_shows_no_difference():
    for seed in range(5):
        assert replay(record(EASY, seed)) == []


def test_unusual_text_is_recorded_and_replayed(odd):
    text = record(odd, seed=3)
    assert "actions at random" in text and 'info {"invalid": "no_action", "parts": [1, 2]}' in text
    assert replay(text) == []
    [action] = recorded_actions(text)
    assert action.startswith("think\n\n> ") and action.endswith("\nturn 1\n")


def test_a_changed_reward_is_one_difference(monkeypatch):
    text = record(EASY, seed=0)
    differences = replay(text.replace("reward 1.0", "reward 0.5"))
    assert [(d.recorded, d.replayed) for d in differences] == [("reward 0.5", "reward 1.0")]
    assert text.split("\n")[differences[0].line - 1] == "reward 1.0"


def test_an_episode_that_ends_sooner_shows_the_missing_lines():
    text = record(EASY, seed=0)
    changed = ENV_REGISTRY[EASY]
    ENV_REGISTRY[EASY] = replace(changed, kwargs={**changed.kwargs, "max_turns": 2})
    try:
        differences = replay(text)
    finally:
        ENV_REGISTRY[EASY] = changed
    assert "turn 3" in [d.recorded for d in differences]
    assert [d.replayed for d in differences if d.replayed][
        -1
    ] == "end truncated (max_turns) after 2 turns, rewards sum to 0.0"


def test_a_playthrough_may_stop_before_the_end_of_the_episode():
    text = record(EASY, seed=0)
    played = replay(text[: text.index("\nturn 3")])
    assert played[-1].replayed is not None and "not reached after 2 turns" in "".join(d.replayed or "" for d in played)


@pytest.mark.parametrize("text", ["", "playthrough of x", "seed 0\nplaythrough of x\nactions y\n"])
def test_other_text_raises_bad_value(text):
    with pytest.raises(BadValue, match="not a playthrough"):
        replay(text)


def test_a_playthrough_of_an_unknown_id_raises_unknown_env():
    with pytest.raises(UnknownEnv, match="game:Gone-v0"):
        replay("playthrough of game:Gone-v0\nseed 0\nactions by the oracle\n")
