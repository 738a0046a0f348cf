"""VectorEnv, tested through sync: autoreset, full and partial steps, send and recv, seeds, statistics, state and
checks of arguments."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import numpy as np
import pytest
from fixture_envs import Counting, Echo, Faulty, Walker

import gem
from gem.core import StopReason
from gem.errors import BadAction, BadValue, EpisodeOver
from gem.vector import Autoreset, EnvStats, VectorEnv, make_vec
from gem.vector.engine import Engine
from gem.vector.slots import Slot, SlotOutcome, SlotSettings, build_slots, close_slots
from gem.wrappers import EpisodeTrackingWrapper

GUESS = "game:GuessTheNumber-v0"
STATE = {"slots": [], "over": [False] * 2, "turns": [0] * 2, "rewards": [0.0] * 2}


def vector(*turns: int, autoreset: str = "same_step", **kwargs: Any) -> VectorEnv:
    return VectorEnv.of([lambda n=n: Counting(n, **kwargs) for n in turns], autoreset)


# Autoreset


def played(mode: str, steps: int = 4) -> list[tuple[list[str], list[float], list[bool]]]:
    """Step a slot with episodes of one turn and one with three, resetting by hand where the mode requires it."""
    env = vector(1, 3, autoreset=mode)
    env.reset()
    seen = []
    for _ in range(steps):
        step = env.step(["a", "a"])
        seen.append((step.observations_B, step.rewards_B.tolist(), step.terminated_B.tolist()))
        over = np.flatnonzero(step.terminated_B).tolist()
        if mode == "disabled" and over:
            seen.append((env.reset(ids=over)[0], [], []))
    return seen


# The three sequences below were recorded from the SyncVectorEnv of Gymnasium 1.x with an equivalent environment.


@pytest.mark.slow
def test_same_step_matches_gymnasium():
    assert played("same_step") == [
        (["episode 2", "turn 1 of 1"], [1.0, 1.0], [True, False]),
        (["episode 3", "turn 2 of 1"], [1.0, 2.0], [True, False]),
        (["episode 4", "episode 2"], [1.0, 3.0], [True, True]),
        (["episode 5", "turn 1 of 2"], [1.0, 1.0], [True, False]),
    ]


def test_next_step_matches_gymnasium():
    assert played("next_step", 5) == [
        (["turn 1 of 1", "turn 1 of 1"], [1.0, 1.0], [True, False]),
        (["episode 2", "turn 2 of 1"], [0.0, 2.0], [False, False]),
        (["turn 1 of 2", "turn 3 of 1"], [1.0, 3.0], [True, True]),
        (["episode 3", "episode 2"], [0.0, 0.0], [False, False]),
        (["turn 1 of 3", "turn 1 of 2"], [1.0, 1.0], [True, False]),
    ]


def test_disabled_matches_gymnasium():
    assert played("disabled", 3) == [
        (["turn 1 of 1", "turn 1 of 1"], [1.0, 1.0], [True, False]),
        (["episode 2"], [], []),
        (["turn 1 of 2", "turn 2 of 1"], [1.0, 2.0], [True, False]),
        (["episode 3"], [], []),
        (["turn 1 of 3", "turn 3 of 1"], [1.0, 3.0], [True, True]),
        (["episode 4", "episode 2"], [], []),
    ]


def test_same_step_autoreset_keeps_the_last_observation_and_info():
    env = vector(1, 2)
    env.reset()
    step = env.step(["a", "a"])
    assert step.observations_B == ["episode 2", "turn 1 of 1"]
    assert step.rewards_B.tolist() == [1.0, 1.0]
    assert step.terminated_B.tolist() == [True, False]
    assert step.infos_B[0]["final_obs"] == "turn 1 of 1"
    assert step.infos_B[0]["final_info"] == {"correct": True, "stop_reason": StopReason.SOLVED}
    assert step.infos_B[0]["suffix"] == "begin"
    assert "final_obs" not in step.infos_B[1]


def test_next_step_autoreset_ignores_the_action_after_the_end():
    env = vector(1, 3, autoreset="next_step")
    env.reset()
    last = env.step(["a", "a"])
    assert last.observations_B[0] == "turn 1 of 1"
    assert last.infos_B[0]["correct"] is True
    after = env.step(["ignored", "a"])
    assert after.observations_B == ["episode 2", "turn 2 of 1"]
    assert after.rewards_B.tolist() == [0.0, 2.0]
    assert not after.terminated_B.any() and not after.truncated_B.any()


def test_without_autoreset_an_ended_slot_must_be_reset():
    env = vector(1, 2, autoreset="disabled")
    env.reset()
    env.step(["a", "a"])
    with pytest.raises(EpisodeOver, match=r"slots \[0\] have ended.*reset\(ids=\[0\]\)"):
        env.step(["a", "a"])
    assert env.step({1: "a"}).observations_B == ["turn 2 of 1"]  # the refused step had no effect
    assert env.reset(ids=[0])[0] == ["episode 2"]
    assert env.step({0: "a"}).observations_B == ["turn 1 of 2"]


@pytest.mark.parametrize("mode", [Autoreset.NEXT_STEP, "next_step"])
def test_an_autoreset_mode_may_be_a_string(mode):
    assert vector(1, autoreset=mode).autoreset is Autoreset.NEXT_STEP


@pytest.mark.parametrize("mode", ["same-step", "NEXT_STEP", None, 1])
def test_an_unknown_autoreset_mode_fails_at_construction(mode):
    with pytest.raises(BadValue, match=r"autoreset must be one of \['same_step', 'next_step', 'disabled'\], got"):
        vector(1, autoreset=mode)


# Steps


def test_a_dict_steps_its_slots_in_its_order():
    env = vector(3, 3, 3)
    env.reset()
    env.step({1: "a"})
    step = env.step({2: "a", 1: "a"})
    assert step.observations_B == ["turn 1 of 1", "turn 2 of 1"]
    assert step.rewards_B.tolist() == [1.0, 2.0]
    assert env.step(["a"] * 3).rewards_B.tolist() == [1.0, 3.0, 2.0]


def test_actions_may_be_a_numpy_array():
    env = vector(2, 2)
    env.reset()
    assert env.step(np.array(["a", "b"])).rewards_B.tolist() == [1.0, 1.0]
    assert env.step({np.int64(1): "a"}).rewards_B.tolist() == [2.0]


@pytest.mark.parametrize("actions", ["ab", b"ab", ["a"], ["a"] * 3, None, 7, {"a", "b"}])
def test_actions_are_a_list_with_one_per_slot_or_a_dict(actions):
    env = vector(2, 2)
    env.reset()
    with pytest.raises(BadAction):
        env.step(actions)
    assert [e.turn for e in env.envs] == [0, 0]


@pytest.mark.parametrize("slot", [2, -1, "0", True, 0.0, None])
def test_an_unknown_slot_is_refused(slot):
    env = vector(2, 2)
    env.reset()
    with pytest.raises(BadAction, match=r"no slot .*; there are 2, numbered from 0"):
        env.step({slot: "a"})
    with pytest.raises(BadAction, match=r"no slot .*; there are 2, numbered from 0"):
        env.reset(ids=[slot])


def test_duplicate_slots_are_refused():
    with pytest.raises(BadAction, match="duplicate slots"):
        vector(2, 2).reset(ids=[1, 1])


def test_rewards_and_ends_are_numpy_arrays_of_their_type():
    env = vector(2, 2)
    env.reset()
    step = env.step(["a", "a"])
    assert (step.rewards_B.dtype, step.terminated_B.dtype, step.truncated_B.dtype) == (np.float64, np.bool_, np.bool_)
    assert len(env) == env.num_envs == 2


# send and recv


class Late(Engine):
    """Runs calls at once and returns their outcomes on demand, like real backends but deterministic."""

    def __init__(self, slots: dict[int, Slot]) -> None:
        self.slots, self.metadata = slots, {number: slot.metadata for number, slot in slots.items()}
        self.pending: list[SlotOutcome] = []
        self.ready: list[SlotOutcome] = []
        self.waits: list[float | None] = []

    def submit(self, calls):
        self.pending += [self.slots[call.slot].perform(call) for call in calls]

    def end(self, *slots: int) -> None:
        for slot in slots:
            outcome = next(outcome for outcome in self.pending if outcome.slot == slot)
            self.pending.remove(outcome)
            self.ready.append(outcome)

    def collect(self):
        ended, self.ready = self.ready, []
        return ended

    def wait(self, timeout):
        """Finish the first pending call; with a timeout, finish none."""
        self.waits.append(timeout)
        if timeout is None:
            self.end(self.pending[0].slot)
        else:
            time.sleep(timeout)

    def close(self):
        close_slots(self.slots.values())


def late(*turns: int, autoreset: Autoreset = Autoreset.SAME_STEP, **options: Any) -> tuple[VectorEnv, Late]:
    slots = build_slots(
        {slot: lambda n=n: Counting(n) for slot, n in enumerate(turns)},
        SlotSettings(autoreset is Autoreset.SAME_STEP, options.get("on_failure", "raise")),
    )
    engine = Late(slots)
    return VectorEnv(engine, autoreset), engine


def test_recv_returns_results_in_order_of_completion():
    env, engine = late(9, 9, 9, 9)
    env.reset()
    assert env.send(["a"] * 4) == [0, 1, 2, 3]
    engine.end(3, 1)
    received = env.recv()
    assert received.ids_B == [3, 1] and received.step.rewards_B.tolist() == [1.0, 1.0]
    assert env.pending == [0, 2]
    env.send({1: "a"})
    engine.end(1, 0)
    received = env.recv(min_envs=2)
    assert received.ids_B == [1, 0] and received.step.rewards_B.tolist() == [2.0, 1.0]


def test_recv_waits_for_min_envs_and_no_longer():
    env, engine = late(9, 9, 9)
    env.reset()
    env.send(["a"] * 3)
    engine.waits.clear()
    assert env.recv(min_envs=2).ids_B == [0, 1]
    assert engine.waits == [None, None] and env.pending == [2]


def test_recv_with_a_timeout_returns_what_has_arrived():
    env, engine = late(9, 9)
    env.reset()
    env.send(["a"] * 2)
    received = env.recv(timeout=0.01)
    assert received.ids_B == [] and len(received.step.rewards_B) == 0
    engine.end(1)
    assert env.recv(min_envs=2, timeout=0.01).ids_B == [1]
    assert env.pending == [0] and env.recv().ids_B == [0]


def test_a_step_waits_for_its_own_slots_and_leaves_the_others_to_recv():
    env, _ = late(9, 9, 9)
    env.reset()
    env.send({0: "a"})
    assert env.step({2: "a"}).observations_B == ["turn 1 of 1"]
    assert env.recv().ids_B == [0]


def test_a_list_of_actions_may_be_sent_to_given_ids():
    env, _ = late(9, 9, 9)
    env.reset()
    assert env.send(["a", "a"], ids=[2, 0]) == [2, 0]
    assert sorted(env.recv(min_envs=2).ids_B) == [0, 2]


def test_a_pending_slot_is_refused():
    env, engine = late(9, 9)
    env.reset()
    env.send({1: "a"})
    refused = [
        lambda: env.send({1: "a"}),
        lambda: env.step(["a", "a"]),
        lambda: env.send_reset([1]),
        lambda: env.sample_random_action(1),
        env.get_state,
    ]
    for use in refused:
        with pytest.raises(BadValue, match=r"slots \[1\] .*not received.*recv\(\)"):
            use()
    assert env.pending == [1] and [slot.env.turn for slot in engine.slots.values()] == [0, 1]
    assert env.recv().step.observations_B == ["turn 1 of 1"]


@pytest.mark.parametrize("min_envs", [0, -1, 1.0, True, None, "1"])
def test_min_envs_is_a_number_of_slots(min_envs):
    env = vector(2, 2)
    env.reset()
    env.send(["a", "a"])
    with pytest.raises(BadValue, match="min_envs must be an integer of at least 1"):
        env.recv(min_envs=min_envs)


@pytest.mark.parametrize("sent", [0, 1])
def test_waiting_for_more_slots_than_are_pending_is_refused(sent):
    env = vector(2, 2)
    env.reset()
    env.send({slot: "a" for slot in range(sent)})
    with pytest.raises(BadValue, match=rf"min_envs=2, but only {sent} slots are pending"):
        env.recv(min_envs=2)


@pytest.mark.parametrize(
    ("actions", "ids"),
    [
        ("ab", None),
        (["a"], None),
        (["a"] * 3, None),
        (["a"], [0, 1]),
        ({0: "a"}, [0]),
        (["a", "a"], [0, 0]),
        (["a"], [2]),
    ],
)
def test_actions_are_checked_before_any_slot_is_stepped(actions, ids):
    env = vector(2, 2)
    env.reset()
    with pytest.raises((BadAction, BadValue)):
        env.send(actions, ids)
    assert env.pending == [] and [e.turn for e in env.envs] == [0, 0]


def test_a_reset_can_be_sent_like_a_step():
    env, engine = late(9, 9, autoreset=Autoreset.DISABLED)
    env.reset()
    env.send({0: "a"})
    env.send_reset([1], seed=[7])
    engine.end(1, 0)
    received = env.recv(min_envs=2)
    assert received.ids_B == [1, 0]
    assert received.step.observations_B == ["episode 2", "turn 1 of 1"]
    assert received.step.rewards_B.tolist() == [0.0, 1.0]
    assert engine.slots[1].env._seed == 7


def test_a_reset_waits_for_pending_steps_and_drops_them():
    env, _ = late(9, 9)
    env.reset()
    env.send(["a", "a"])
    assert env.reset()[0] == ["episode 2", "episode 2"]
    assert env.pending == []


def test_without_autoreset_sending_to_an_ended_slot_is_refused():
    env = vector(1, 2, autoreset="disabled")
    env.reset()
    env.send(["a", "a"])
    env.recv(min_envs=2)
    with pytest.raises(EpisodeOver, match=r"slots \[0\] have ended"):
        env.send(["a", "a"])
    assert env.pending == []


def test_an_action_that_a_slot_refuses_is_raised_and_the_others_steps_are_kept():
    env = vector(3, 3, 3)
    env.reset()
    with pytest.raises(BadAction, match="this action is refused"):
        env.step(["a", "refused", "a"])
    assert env.pending == [0, 2]
    received = env.recv(min_envs=2)
    assert received.ids_B == [0, 2] and received.step.observations_B == ["turn 1 of 1"] * 2
    assert env.step(["a"] * 3).observations_B == ["turn 2 of 1", "turn 1 of 1", "turn 2 of 1"]


# Statistics


def test_statistics_count_completed_episodes_by_environment_id():
    env = make_vec({GUESS: 2, "game:GuessTheNumber-v0-easy": 1}, num_envs=3, max_turns=2, max_number=50)
    env.reset()
    for _ in range(3):
        env.step([r"\boxed{51}"] * 3)
    assert env.stats() == {
        GUESS: EnvStats(slots=2, episodes=2, turns=4),
        "game:GuessTheNumber-v0-easy": EnvStats(slots=1, episodes=1, turns=2),
    }


@pytest.mark.parametrize("mode", ["same_step", "next_step", "disabled"])
def test_statistics_are_the_same_under_every_autoreset(mode):
    env = vector(1, 3, autoreset=mode)
    env.reset()
    ended = [0, 0]
    while ended[1] < 2:
        step = env.step(["a", "a"])
        over = np.flatnonzero(step.terminated_B).tolist()
        for slot in over:
            ended[slot] += 1
        if mode == "disabled" and over:
            env.reset(ids=over)
    assert env.stats() == {
        None: EnvStats(slots=2, episodes=sum(ended), turns=ended[0] + 6, reward=ended[0] + 12.0, solved=sum(ended))
    }


def test_failed_episodes_are_counted_separately_and_their_turns_are_not():
    env = VectorEnv.of([lambda: Counting(2, fails_at=(2,)), lambda: Counting(1)])
    env.reset()
    env.step(["a", "a"])
    env.step(["a", "a"])
    assert env.stats() == {None: EnvStats(slots=2, episodes=2, failed=1, turns=2, reward=2.0, solved=2)}


def test_a_refused_action_is_no_turn_and_ends_nothing():
    env = vector(2)
    env.reset()
    env.step(["a"])
    with pytest.raises(BadAction):
        env.step(["refused"])
    env.step(["a"])
    assert env.stats() == {None: EnvStats(slots=1, episodes=1, turns=2, reward=3.0, solved=1)}


@pytest.mark.parametrize("sent", [False, True])
def test_an_episode_abandoned_by_a_reset_is_not_counted(sent):
    env = vector(2)
    env.reset()
    env.step(["a"])
    if sent:
        env.send_reset([0])
        env.recv()
    else:
        env.reset()
    env.step(["a"])
    env.step(["a"])
    assert env.stats()[None] == EnvStats(slots=1, episodes=1, turns=2, reward=3.0, solved=1)


def test_a_restored_episode_is_counted_with_its_earlier_turns():
    env = make_vec(GUESS, num_envs=1, max_turns=3)
    env.reset()
    env.step([r"\boxed{99}"])
    other = make_vec(GUESS, num_envs=1, max_turns=3)
    other.set_state(env.get_state())
    for _ in range(2):
        other.step([r"\boxed{99}"])
    assert other.stats()[GUESS] == EnvStats(slots=1, episodes=1, turns=3)


# Reset and seeds


def test_a_slot_plays_the_same_episodes_as_a_single_environment():
    vec = make_vec("game:GuessTheNumber-v0-random", num_envs=3, seed=5)
    vec.reset()
    alone = [gem.make("game:GuessTheNumber-v0-random") for _ in range(3)]
    for i, env in enumerate(alone):
        env.reset(seed=5 + i)
    assert [env.state for env in vec.envs] == [env.state for env in alone]


def test_seeds_are_one_for_all_slots_or_one_for_each():
    env = make_vec("game:GuessTheNumber-v0-random", num_envs=3)
    env.reset(seed=7)
    counted = [e.state for e in env.envs]
    env.reset(seed=[7, 8, 9])
    assert [e.state for e in env.envs] == counted
    env.reset(seed=np.array([7, 8, 9]))
    assert [e.state for e in env.envs] == counted
    env.reset(seed=[9, 7], ids=[2, 0])
    assert [e.state for e in env.envs] == counted
    env.reset(seed=7, ids=[1])
    assert env.envs[1].state == counted[1]


@pytest.mark.parametrize("seed", [[1], [1, 2, 3], -1, [1, -2], "12"])
def test_seeds_of_the_wrong_number_or_type_are_refused(seed):
    with pytest.raises(BadValue):
        vector(2, 2).reset(seed=seed)


def test_a_reset_with_a_seed_decides_the_episodes_that_follow_by_autoreset():
    def secrets(make_seed: int | None) -> list[Any]:
        env = make_vec("game:GuessTheNumber-v0-hard", num_envs=1, seed=make_seed, max_turns=1)
        env.reset(seed=3)
        states = [env.envs[0].state]
        for _ in range(4):
            env.step([r"\boxed{99}"])
            states.append(env.envs[0].state)
        return states

    assert secrets(make_seed=0) == secrets(make_seed=1) == secrets(make_seed=None)


def test_a_slot_is_reset_with_its_own_arguments():
    env = vector(2, 2)
    observations, infos = env.reset(env1_kwargs={"greeting": "hello"})
    assert observations == ["episode 1", "hello 1"]
    assert infos == [{"suffix": "begin"}] * 2
    with pytest.raises(BadValue, match=r"\['env7_kwargs'\]"):
        env.reset(env7_kwargs={})
    with pytest.raises(BadValue, match=r"\['env1_kwargs'\]"):
        env.reset(ids=[0], env1_kwargs={})


def test_global_random_state_and_other_vectors_change_no_episode():
    def play(noise: int) -> list[Any]:
        random.seed(noise)
        env = make_vec("game:GuessTheNumber-v0-random", num_envs=4, seed=1)
        other = make_vec("game:GuessTheNumber-v0-random", num_envs=noise, seed=2)
        seen = [env.reset()]
        for _ in range(20):
            other.reset(), random.random()
            seen.append(env.step([env.sample_random_action(i) for i in range(4)])[0])
        return seen

    assert play(1) == play(3)


def test_sampled_actions_come_from_the_slots_environment():
    env = make_vec("game:GuessTheNumber-v0", num_envs=2, seed=1)
    env.reset()
    alone = gem.make("game:GuessTheNumber-v0")
    alone.reset(seed=2)
    assert env.sample_random_action(1) == alone.sample_random_action()


# State


def test_a_restored_vector_continues_identically_through_autoresets():
    def build() -> VectorEnv:
        return make_vec(
            "game:GuessTheNumber-v0-random", wrappers=[EpisodeTrackingWrapper], num_envs=3, seed=1, max_turns=2
        )

    def play(env: VectorEnv, steps: int) -> list[Any]:
        return [env.step([env.sample_random_action(i) for i in range(3)])._asdict() for _ in range(steps)]

    env, other = build(), build()
    env.reset()
    play(env, 3)
    other.set_state(json.loads(json.dumps(env.get_state())))
    for mine, theirs in zip(play(env, 12), play(other, 12), strict=True):
        assert mine["observations_B"] == theirs["observations_B"]
        assert mine["infos_B"] == theirs["infos_B"]
        assert mine["rewards_B"].tolist() == theirs["rewards_B"].tolist()


def test_a_restored_vector_remembers_which_slots_have_ended():
    env = make_vec("game:GuessTheNumber-v0", num_envs=2, autoreset="disabled", max_turns=1)
    env.reset()
    env.step({0: r"\boxed{99}"})
    other = make_vec("game:GuessTheNumber-v0", num_envs=2, autoreset="disabled", max_turns=1)
    other.set_state(json.loads(json.dumps(env.get_state())))
    with pytest.raises(EpisodeOver, match=r"slots \[0\]"):
        other.step({0: "a"})
    assert other.step({1: r"\boxed{99}"}).truncated_B.tolist() == [True]


@pytest.mark.parametrize(
    "state",
    [
        {},
        None,
        {"slots": [{}, {}]},
        STATE | {"slots": [{}, {}]},
        STATE | {"slots": [{"env": {}, "pending_failure": None}] * 2},
    ],
)
def test_the_state_of_another_vector_is_refused(state):
    with pytest.raises(BadValue):
        make_vec("game:GuessTheNumber-v0", num_envs=2).set_state(state)


# Closing


def test_closing_closes_every_slot_once_and_ends_the_vector():
    with vector(2, 2) as env:
        env.reset()
    env.close()
    assert [e.closed for e in env.envs] == [1, 1]
    uses = [
        env.reset,
        lambda: env.reset(ids=[0]),
        lambda: env.step(["a", "a"]),
        lambda: env.send({0: "a"}),
        lambda: env.send_reset([0]),
        env.recv,
        env.get_state,
        lambda: env.set_state(STATE | {"slots": [{}, {}]}),
        lambda: env.sample_random_action(0),
    ]
    for use in uses:
        with pytest.raises(EpisodeOver, match="closed"):
            use()


def test_slots_made_by_id_know_their_ids():
    assert vector(1).env_ids == [None]
    assert make_vec(["game:GuessTheNumber-v0", "game:GuessTheNumber-v0-easy"]).env_ids == [
        "game:GuessTheNumber-v0",
        "game:GuessTheNumber-v0-easy",
    ]


def test_shows_history_is_visible_through_other_wrappers():
    fns = gem.wrappers.get_wrapper_fns("concat, episode_tracking")
    assert make_vec("game:GuessTheNumber-v0", wrappers=fns).shows_history(0)
    assert not make_vec("game:GuessTheNumber-v0", wrappers=[EpisodeTrackingWrapper]).shows_history(0)


# State after an error


def test_a_failing_sample_or_state_call_leaves_no_slot_pending():
    env = VectorEnv.of([Echo, Faulty])
    env.reset()
    state = env.get_state()
    with pytest.raises(BadValue):
        env.set_state(state | {"slots": [state["slots"][0], {"env": {}, "pending_failure": None}]})
    assert env.pending == []
    env.step(["a", "a"])


@pytest.mark.parametrize("seed", [[1, -2], "12", [1, 0.5]])
def test_bad_seeds_are_refused_before_any_slot_is_reset(seed):
    env = vector(2, 2)
    with pytest.raises(BadValue):
        env.reset(seed=seed)
    with pytest.raises(BadValue):
        env.send_reset([0, 1], seed=seed)
    assert env.pending == [] and [e.resets for e in env.envs] == [0, 0]


def test_ctrl_c_within_a_step_fails_that_slot_and_the_vector_stays_usable():
    class Interrupted(Walker):
        def step(self, action):
            if action == "ctrl-c":
                raise KeyboardInterrupt
            return super().step(action)

    env = VectorEnv.of([Interrupted] * 3, on_failure="restart")
    env.reset(seed=0)
    with pytest.raises(KeyboardInterrupt):
        env.step(["a", "ctrl-c", "a"])
    received = env.recv(min_envs=3)
    assert np.isnan(received.step.rewards_B).tolist() == [False, True, False]
    assert env.reset(seed=0)[0] == [f"episode 0 of seed {s}" for s in range(3)]
