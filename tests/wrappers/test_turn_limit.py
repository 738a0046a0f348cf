"""TurnLimit: truncates an episode after a number of steps."""

import pytest

import gem
from gem.core import StopReason
from gem.errors import BadValue
from gem.wrappers import TurnLimit

WRONG = r"\boxed{0}"


def made(max_turns: int) -> TurnLimit:
    return TurnLimit(gem.make("game:GuessTheNumber-v0", seed=0), max_turns)


def test_an_episode_is_truncated_at_the_limit_and_counted_again_after_a_reset():
    env = made(2)
    for _ in range(2):
        env.reset()
        assert not env.step(WRONG).truncated
        step = env.step(WRONG)
        assert (step.terminated, step.truncated, step.info["stop_reason"]) == (False, True, StopReason.MAX_TURNS)
        assert step.info["outside_limit"], "the rules state 10 turns"


def test_an_episode_that_ends_in_the_last_step_ends_by_itself():
    env = made(1)
    env.reset()
    step = env.step("no number")
    assert (step.terminated, step.truncated, step.info["stop_reason"]) == (True, False, StopReason.FORMAT)


def test_the_count_is_part_of_the_state():
    env = made(2)
    env.reset()
    env.step(WRONG)
    other = made(2)
    other.reset()
    other.set_state(env.get_state())
    assert other.step(WRONG).truncated and env.step(WRONG).truncated


def test_a_limit_below_one_is_refused():
    with pytest.raises(BadValue, match=r"max_turns .*at least 1.*got 0"):
        made(0)
