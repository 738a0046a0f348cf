"""Slot: an environment that fails, hangs or dies. Every backend runs its slots through it."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from fixture_envs import Counting, Echo, Faulty, Walker

from gem.core import Env, Step, StopReason
from gem.errors import BadAction, BadValue, EnvFailed, InfraError
from gem.vector import EnvStats, VectorEnv
from gem.vector.slots import MAX_FAILURES, Slot, SlotCall, SlotSettings, as_step, build_slots, close_slots


def faulty(
    *faults: dict[tuple[int, int], str], autoreset: str = "same_step", on_failure: Any = "restart", **walker: Any
):
    fns = [lambda own=own: Faulty(own, **{"longest": 1, **walker}) for own in faults]
    return VectorEnv.of(fns, autoreset, on_failure=on_failure)


def is_failed(step: Any, slot: int = 0) -> bool:
    return bool(math.isnan(step.rewards_B[slot]) and step.truncated_B[slot] and not step.terminated_B[slot])


# InfraError


def test_a_failed_slot_has_no_reward_and_does_not_stop_the_others():
    env = VectorEnv.of([Counting, lambda: Counting(5, fails_at=(1,)), Counting], "disabled")
    env.reset()
    step = env.step(["a"] * 3)
    assert np.isnan(step.rewards_B).tolist() == [False, True, False]
    assert (step.terminated_B[1], step.truncated_B[1]) == (False, True)
    assert step.infos_B[1]["stop_reason"] == StopReason.FAILED
    assert step.infos_B[1]["failure"] == "InfraError: the server died"
    assert step.observations_B[2] == "turn 1 of 1"


@pytest.mark.parametrize("on_failure", ["raise", "restart"])
def test_a_failed_slot_starts_its_next_episode(on_failure):
    env = VectorEnv.of([lambda: Counting(5, fails_at=(1,))], on_failure=on_failure)
    env.reset()
    before = env.envs[0]
    step = env.step(["a"])
    assert step.observations_B == ["episode 2"]
    assert step.infos_B[0]["final_info"]["failure"] == "InfraError: the server died"
    assert env.envs[0] is before


def test_a_failure_within_autoreset_keeps_the_finished_episode_and_the_other_slots():
    env = VectorEnv.of([lambda: Counting(1, fails_at_reset=(2,)), lambda: Counting(9)])
    env.reset()
    step = env.step(["a", "a"])
    assert step.rewards_B.tolist() == [1.0, 1.0]
    assert step.infos_B[0]["final_info"]["correct"] is True
    after = env.step(["a", "a"])  # the episode that could not start ends as failed, and the next one starts
    assert is_failed(after)
    assert after.infos_B[0]["final_info"]["failure"] == "InfraError: no server for episode 2"
    assert after.observations_B == ["episode 3", "turn 2 of 1"]


# on_failure="raise"


@pytest.mark.parametrize("kind", ["raise", "exit"])
def test_a_bug_in_an_environment_is_raised_with_its_cause_and_location(kind):
    env = faulty({(0, 1): kind}, on_failure="raise")
    env.reset(seed=0)
    with pytest.raises(EnvFailed, match=r"slot 0 failed: \w+: injected \(.*fixture_envs\.py:\d+\)") as caught:
        env.step(["a"])
    assert isinstance(caught.value, InfraError)
    assert type(caught.value.__cause__) is (ZeroDivisionError if kind == "raise" else SystemExit)


def test_the_slots_that_did_not_fail_keep_their_steps():
    env = faulty({}, {(0, 1): "raise"}, {}, on_failure="raise", longest=1)
    env.reset(seed=0)
    with pytest.raises(EnvFailed, match="slot 1 failed"):
        env.step(["a"] * 3)
    received = env.recv(min_envs=2)
    assert received.ids_B == [0, 2]
    assert [info["final_obs"].split(":")[0] for info in received.step.infos_B] == [
        "episode 0 of seed 0, turn 1",
        "episode 0 of seed 2, turn 1",
    ]


def test_several_failures_at_once_raise_one_error_with_their_number():
    env = faulty({(0, 1): "raise"}, {(0, 1): "raise"}, {(0, 1): "raise"}, on_failure="raise")
    env.reset(seed=0)
    with pytest.raises(EnvFailed, match=r"slot 0 failed: .*; and 2 more slots"):
        env.step(["a"] * 3)
    assert env.pending == []


@pytest.mark.parametrize("turn", [0, 1])
def test_a_seed_that_always_fails_may_be_played_any_number_of_times(turn):
    env = faulty({(0, turn): "raise"}, {}, autoreset="disabled")
    for _ in range(3 * MAX_FAILURES):  # as the evaluations of a run play it
        env.reset(seed=[7, 8])
        assert is_failed(env.step(["a", "a"]), slot=0)


def test_a_failed_slot_is_refused_until_it_is_reset():
    env = faulty({(0, 1): "raise"}, {}, on_failure="raise", autoreset="disabled", longest=3)
    env.reset(seed=0)
    with pytest.raises(EnvFailed):
        env.step(["a", "a"])
    env.recv()
    with pytest.raises(EnvFailed, match=r"slot 0 .*not reset since: ZeroDivisionError"):
        env.step({0: "a"})
    before = env.envs[0]
    assert env.reset(ids=[0])[0] == ["episode 1 of seed 0"]
    assert env.envs[0] is not before
    assert env.step({0: "a"}).observations_B[0].startswith("episode 1 of seed 0, turn 1")
    assert env.stats()[None].failed == 1


@pytest.mark.parametrize("sent", [False, True])
def test_each_failure_is_counted_once(sent):
    env = faulty({(0, 1): "raise", (1, 1): "raise"}, on_failure="raise")
    env.reset(seed=0)
    for failures in (1, 2):
        for _ in range(3):  # the first one fails, the others are refused
            with pytest.raises(EnvFailed):
                env.step(["a"])
        assert env.stats()[None].failed == failures
        if sent:
            env.send_reset([0])
            env.recv()
        else:
            env.reset()


def test_a_reset_that_raises_leaves_the_others_reset():
    env = faulty({(0, 0): "raise"}, {}, on_failure="raise")
    with pytest.raises(EnvFailed, match="slot 0 failed"):
        env.reset(seed=0)
    received = env.recv()
    assert (received.ids_B, received.step.observations_B) == ([1], ["episode 0 of seed 1"])
    assert env.reset(ids=[0])[0] == ["episode 1 of seed 0"]
    assert env.step(["a", "a"]).rewards_B.shape == (2,)


# on_failure="restart"


def test_restart_continues_with_the_next_episode_of_the_same_seed():
    env = faulty({(1, 1): "raise"}, {}, longest=1)
    env.reset(seed=3)
    steps = [env.step(["a", "a"]) for _ in range(3)]
    assert [is_failed(step) for step in steps] == [False, True, False]
    assert [step.observations_B[0] for step in steps] == [f"episode {e} of seed 3" for e in (1, 2, 3)]
    assert [step.observations_B[1] for step in steps] == [f"episode {e} of seed 4" for e in (1, 2, 3)]
    last = steps[1].infos_B[0]["final_info"]
    assert last["stop_reason"] == StopReason.FAILED and last["failure"].startswith("ZeroDivisionError: injected (")
    assert env.stats()[None].failed == 1


def test_a_failed_environment_is_closed():
    class Raising(Counting):
        def step(self, action):
            raise ZeroDivisionError

    env = VectorEnv.of([Raising], on_failure="restart")
    env.reset()
    before = env.envs[0]
    env.step(["a"])
    assert (before.closed, env.envs[0].closed) == (1, 0)


@pytest.mark.parametrize("mode", ["next_step", "disabled"])
def test_restart_works_under_every_autoreset(mode):
    env = faulty({(0, 1): "raise"}, autoreset=mode)
    env.reset(seed=3)
    step = env.step(["a"])
    assert is_failed(step) and "failure" in step.infos_B[0]
    begun = env.reset(ids=[0])[0] if mode == "disabled" else env.step(["a"]).observations_B
    assert begun == ["episode 1 of seed 3"]


def test_a_reset_that_raises_fails_the_episode_at_its_first_step():
    env = faulty({(0, 0): "raise"}, {})
    observations, infos = env.reset(seed=0)
    assert observations == ["", "episode 0 of seed 1"]
    assert infos[0]["failure"].startswith("ZeroDivisionError: injected")
    step = env.step(["a", "a"])
    assert is_failed(step) and not is_failed(step, 1)
    assert step.observations_B[0] == "episode 1 of seed 0"


def test_a_failure_of_the_reset_within_autoreset_loses_no_episode():
    env = faulty({(1, 0): "raise"})
    env.reset(seed=0)
    step = env.step(["a"])
    assert not is_failed(step) and "failure" not in step.infos_B[0]["final_info"]
    assert step.infos_B[0]["failure"].startswith("ZeroDivisionError")
    step = env.step(["a"])
    assert is_failed(step) and step.observations_B == ["episode 2 of seed 0"]
    assert env.stats()[None] == EnvStats(slots=1, episodes=1, failed=1, turns=1, **reward_and_solved(seed=0))


def reward_and_solved(seed: int) -> dict[str, Any]:
    env = Faulty({}, longest=1)
    env.reset(seed=seed)
    step = env.step("a")
    return {"reward": step.reward, "solved": int(step.terminated)}


def test_failures_change_no_other_episode():
    sound = faulty({}, longest=3)
    broken = faulty({(1, 2): "raise", (2, 1): "infra", (4, 0): "raise"}, longest=3)

    def episodes(env: VectorEnv, steps: int) -> dict[str, float]:
        begun, rewards = env.reset(seed=5)[0][0], {}
        total = 0.0
        for _ in range(steps):
            step = env.step(["a"])
            total += step.rewards_B[0]
            if step.terminated_B[0] or step.truncated_B[0]:
                rewards[begun], begun, total = total, step.observations_B[0], 0.0
        return rewards

    whole, part = episodes(sound, 120), episodes(broken, 60)
    completed = {name: reward for name, reward in part.items() if not math.isnan(reward)}
    assert len(completed) >= 10 and completed.items() <= whole.items()
    assert len(part) - len(completed) == 3


@pytest.mark.parametrize("turn", [0, 1])
def test_five_failures_of_a_slot_in_a_row_raise(turn):
    env = faulty({(episode, turn): "raise" for episode in range(99)}, {})
    failures = 0
    with pytest.raises(EnvFailed, match=r"slot 0 .* 5 times.*ZeroDivisionError"):
        env.reset(seed=0)
        for _ in range(15):
            failures += is_failed(env.step(["a", "a"]))
    assert failures == 5 - (1 if turn else 2)  # the first failed reset was not a step


def test_a_successful_step_resets_the_failure_count():
    env = faulty({(episode, 2): "raise" for episode in range(99)}, longest=50)
    env.reset(seed=0)
    for _ in range(40):
        env.step(["a"])
    assert env.stats()[None].failed > 5


def test_a_failed_rebuild_reports_both_errors():
    built = []

    def build() -> Faulty:
        if built:
            raise OSError("no memory")
        built.append(1)
        return Faulty({(0, 1): "raise"})

    env = VectorEnv.of([build], on_failure="restart")
    env.reset(seed=0)
    with pytest.raises(EnvFailed, match=r"ZeroDivisionError.*cannot be rebuilt: OSError: no"):
        env.step(["a"])


def test_a_refused_action_is_not_a_failure():
    env = VectorEnv.of([Counting], on_failure="restart")
    env.reset()
    before = env.envs[0]
    with pytest.raises(BadAction, match="refused"):
        env.step(["refused"])
    assert env.envs[0] is before and env.stats()[None].failed == 0
    assert env.step(["a"]).observations_B == ["turn 1 of 1"]


@pytest.mark.parametrize("on_failure", ["ignore", None, True])
def test_an_unknown_on_failure_is_refused(on_failure):
    with pytest.raises(BadValue, match=f"on_failure .*'raise' or 'restart'.*got {on_failure!r}"):
        VectorEnv.of([Counting], on_failure=on_failure)


def test_a_step_that_returns_four_values_is_a_failure():
    class Four(Echo):
        def step(self, action):
            return "text", 0.0, False, {}

    env = VectorEnv.of([Four])
    env.reset()
    with pytest.raises(EnvFailed, match=r"step\(\) returned .* instead of \(observation"):
        env.step(["a"])


@pytest.mark.parametrize("answer", [None, "text", ("text", {}, 1)])
def test_a_reset_that_returns_no_pair_is_a_failure(answer):
    class Odd(Echo):
        def reset(self, seed=None):
            return answer

    with pytest.raises(EnvFailed, match=r"reset\(\) returned .* instead of \(observation, info\)"):
        VectorEnv.of([Odd]).reset()


# Calls made by engines


def reset_slot(on_failure: Any = "restart", same_step: bool = True) -> Slot:
    slot = Slot(0, lambda: Faulty({}, longest=50), same_step=same_step, on_failure=on_failure)
    slot.perform(SlotCall(0, "reset", (0, {})))
    return slot


def test_an_abandoned_call_ends_as_failed_and_replaces_the_environment():
    slot = reset_slot()
    before = slot.env
    outcome = slot.abandon(SlotCall(0, "step", "a"), "timed out after 2 s")
    assert outcome.error is None and outcome.position == (0, 1)
    assert outcome.value.observation == "episode 1 of seed 0"
    assert outcome.value.info["final_info"]["failure"] == "timed out after 2 s"
    assert slot.env is not before


def test_with_raise_an_abandoned_call_is_an_error():
    slot = reset_slot(on_failure="raise")
    outcome = slot.abandon(SlotCall(0, "step", "a"), "timed out after 2 s")
    assert isinstance(outcome.error, EnvFailed) and "slot 0 failed: timed out after 2 s" in str(outcome.error)
    assert isinstance(slot.perform(SlotCall(0, "step", "a")).error, EnvFailed)
    assert slot.perform(SlotCall(0, "reset", (None, {}))).value[0] == "episode 1 of seed 0"


def test_the_result_of_an_abandoned_call_is_dropped():
    class Slow(Walker):
        def step(self, action):
            slot.abandon(SlotCall(0, "step", action), "timed out after 2 s")  # as a timer would
            return super().step(action)

    slot = Slot(0, Slow, same_step=True, on_failure="restart")
    slot.perform(SlotCall(0, "reset", (0, {})))
    assert "this call was abandoned" in str(slot.perform(SlotCall(0, "step", "a")).error)


@pytest.mark.parametrize("same_step", [True, False])
def test_a_lost_slot_fails_once_and_continues_after_its_last_position(same_step):
    slot = reset_slot(same_step=same_step)
    slot.mark_lost("its worker was killed", (7, 4))
    outcome = slot.perform(SlotCall(0, "step", "a"))
    last = outcome.value.info["final_info"] if same_step else outcome.value.info
    assert last["failure"] == "its worker was killed" and math.isnan(outcome.value.reward)
    begun = outcome.value.observation if same_step else slot.perform(SlotCall(0, "reset", (None, {}))).value[0]
    assert begun == "episode 5 of seed 7"
    assert slot.perform(SlotCall(0, "step", "a")).value.observation.startswith("episode 5 of seed 7, turn 1")


def test_with_raise_a_lost_slot_raises_until_it_is_reset():
    slot = reset_slot(on_failure="raise")
    slot.mark_lost("its worker was killed", (7, 4))
    assert "its worker was killed" in str(slot.perform(SlotCall(0, "step", "a")).error)
    assert slot.perform(SlotCall(0, "reset", (None, {}))).value[0] == "episode 5 of seed 7"


def test_a_reset_of_a_lost_slot_starts_a_normal_episode():
    slot = reset_slot()
    slot.mark_lost("its worker was killed", (7, 4))
    assert slot.perform(SlotCall(0, "reset", (9, {}))).value[0] == "episode 0 of seed 9"
    assert not math.isnan(slot.perform(SlotCall(0, "step", "a")).value.reward)


def test_a_pending_failure_is_saved_with_the_state():
    env = faulty({(0, 0): "infra"})
    env.reset(seed=0)
    state = json.loads(json.dumps(env.get_state()))
    other = faulty({})
    other.set_state(state)
    step = other.step(["a"])
    assert is_failed(step) and step.observations_B == ["episode 1 of seed 0"]


def test_an_error_on_close_does_not_keep_the_others_open(caplog):
    class Stuck(Counting):
        def close(self):
            raise OSError("busy")

    slots = build_slots({0: Stuck, 1: Counting}, SlotSettings(True, "raise"))
    close_slots(slots.values())
    assert slots[1].env.closed == 1
    assert "slot 0 failed to close" in caplog.text


def test_a_build_failure_closes_the_environments_built_before():
    first = Counting()

    def fail() -> Env:
        raise OSError("no memory")

    with pytest.raises(OSError, match="no memory"):
        build_slots({0: lambda: first, 1: fail}, SlotSettings(True, "raise"))
    assert first.closed == 1


def test_a_step_that_returns_a_plain_tuple_becomes_a_step():
    class Plain(Echo):
        def step(self, action):
            return action, 1.0, False, False, {}

    slot = Slot(0, Plain, same_step=True, on_failure="raise")
    assert isinstance(slot.perform(SlotCall(0, "step", "a")).value, Step)


@pytest.mark.parametrize("reward", [1, True, np.float32(1.0), np.int64(1), np.array(1.0)])
def test_numbers_and_flags_of_numpy_are_converted(reward):
    step = as_step(("", reward, np.True_, 0, None))
    assert step == Step("", 1.0, True, False, {})
    assert [type(value) for value in step[1:]] == [float, bool, bool, dict]


def test_a_malformed_info_of_a_reset_fails_its_slot():
    class Listing(Walker):
        def reset(self, seed=None):
            return super().reset(seed)[0], []

    with pytest.raises(EnvFailed, match=r"reset\(\) returned the info \[\], which is not a dict"):
        VectorEnv.of([Listing]).reset(seed=0)
