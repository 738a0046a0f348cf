"""Tests of the environment API: random streams, state, forks, wrappers and Step."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import gem
from gem.core import RESERVED_INFO_KEYS, EndOnTruncation, Env, EnvWrapper, Step, StopReason, require_text
from gem.envs.games.guess_the_number import GuessTheNumberEnv
from gem.errors import BadAction, BadValue, EpisodeOver, UnknownArgument
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.wrappers import EpisodeTrackingWrapper, ObservationWrapper


@dataclass(frozen=True)
class Dice:
    faces: int
    rolls: tuple[int, ...] = ()
    seen: dict[int, str] = field(default_factory=dict)


class DiceEnv(Env):
    """Rolls a die at every step, so that all random numbers are drawn during the episode."""

    state: Dice

    def __init__(self, faces: int = 1000, *, colour: str = "red") -> None:
        self.faces, self.colour = faces, colour

    def reset(self, seed=None):
        super().reset(seed)
        self.state = Dice(self.faces)
        return "Roll.", {}

    def step(self, action):
        roll = self.rng.randint(1, self.faces)
        self.state = replace(self.state, rolls=(*self.state.rolls, roll), seen={**self.state.seen, roll: action})
        return Step(str(roll), float(roll), truncated=len(self.state.rolls) == 5)

    def sample_random_action(self):
        return str(self.action_rng.randint(1, self.faces))


class Shouting(EnvWrapper):
    """Counts its steps and has its own constructor arguments."""

    def __init__(self, env: Any, mark: str = "!") -> None:
        super().__init__(env)
        self.mark, self.steps = mark, 0

    def step(self, action):
        self.steps += 1
        observation, *rest = self.env.step(action)
        return Step(observation + self.mark, *rest)

    def own_state(self):
        return self.steps

    def set_own_state(self, state):
        self.steps = state


def rolls(env: Any, seed: int | None, count: int = 5) -> list[str]:
    env.reset(seed)
    return [env.step("roll")[0] for _ in range(count)]


# Step


def test_flags_of_a_wrapper_are_those_of_what_it_wraps_unless_it_sets_its_own():
    class Plain(Env):
        shows_history = True

    class Own(EnvWrapper):
        shows_history = False

    class Duck:
        env_id = "duck"

    inner = EnvWrapper(Plain())
    assert inner.shows_history and not inner.shows_prompt and not Own(Plain()).shows_history
    inner.env.waits_for_io = True
    assert EnvWrapper(inner).waits_for_io
    inner.shows_prompt = True
    assert EnvWrapper(inner).shows_prompt
    assert not EnvWrapper(Duck()).ends_on_truncation  # an object that is no Env has no flags


def test_a_step_unpacks_into_gyms_five_values_and_has_field_names():
    step = Step("obs", 0.5, False, True, {"a": 1})
    observation, reward, terminated, truncated, info = step
    assert (observation, reward, terminated, truncated, info) == ("obs", 0.5, False, True, {"a": 1})
    assert (step.observation, step.reward, step.truncated) == ("obs", 0.5, True)


def test_every_step_gets_its_own_info_dict():
    first, second = Step("a"), Step("b")
    first.info["x"] = 1
    assert second.info == {}


def test_a_step_survives_pickle_copy_and_replace():
    step = Step("a", 1.0, info={"k": [1]})
    assert type(pickle.loads(pickle.dumps(step))) is Step
    assert pickle.loads(pickle.dumps(step)) == copy.deepcopy(step) == step
    assert step._replace(reward=2.0) == Step("a", 2.0, info={"k": [1]})


@pytest.mark.parametrize("reason", StopReason)
def test_a_stop_reason_is_its_word_in_text_and_json(reason):
    assert f"{reason}" == reason.value == reason
    assert json.loads(json.dumps({"stop_reason": reason})) == {"stop_reason": reason.value}


def test_a_non_string_action_is_rejected_with_its_value():
    with pytest.raises(BadAction, match=r"action .*str, got int 7"):
        require_text(7)


# Random streams


def test_the_same_seed_gives_the_same_episode():
    assert rolls(DiceEnv(), 3) == rolls(DiceEnv(), 3)
    assert rolls(DiceEnv(), 3) != rolls(DiceEnv(), 4)


@pytest.mark.parametrize("ids", [("game:Wordle-v0", "game:Wordle-v0-hard"), ("game:Hangman-v0", "game:Wordle-v0")])
def test_ids_that_draw_from_the_same_list_draw_different_words_at_the_same_seed(ids):
    secrets = []
    for env in map(gem.make, ids):
        secrets.append([])
        for seed in range(50):
            env.reset(seed)
            secrets[-1].append(env.secrets())
    assert sum(one == other for one, other in zip(*secrets, strict=True)) < 5


def test_all_ways_of_making_an_id_give_the_same_episode():
    def word(env, **seed):
        env.reset(**seed)
        return env.unwrapped.state.secret

    made = word(gem.make("game:Wordle-v0"), seed=3)
    assert word(gem.make("game:Wordle-v0", seed=3)) == made
    assert word(gem.make("game:Wordle-v0", end_on_truncation=True), seed=3) == made
    assert word(gem.make(gem.ENV_REGISTRY["game:Wordle-v0"]), seed=3) == made
    assert word(gem.make("game:Wordle-v0").spawn(), seed=3) == made
    assert word(gem.make("game:Wordle-v0").spawn(max_turns=2), seed=3) == made
    assert word(pickle.loads(pickle.dumps(gem.make("game:Wordle-v0"))), seed=3) == made


def test_a_class_in_main_has_the_same_episodes_in_a_worker_process():
    class Elsewhere(DiceEnv):
        __qualname__, __module__ = DiceEnv.__qualname__, "__mp_main__"

    assert rolls(Elsewhere(), 3) == rolls(DiceEnv(), 3)


def test_interleaving_environments_does_not_change_their_episodes():
    alone = rolls(DiceEnv(), 3)
    env, other = DiceEnv(), DiceEnv()
    env.reset(3)
    together = []
    for i in range(5):
        other.reset(i)
        together.append(env.step("roll").observation)
        other.step("roll")
    assert together == alone


def test_draws_from_the_global_stream_do_not_change_an_episode():
    env = gem.make("game:GuessTheNumber-v0-random")
    random.seed(0)
    first = [env.reset(seed=1), env.reset(), env.state]
    random.seed(99)
    assert [env.reset(seed=1), env.reset(), env.state] == first


def test_an_environment_of_gem_leaves_the_global_stream_alone():
    random.seed(5)
    expected = random.Random(5).random()
    env = gem.make("game:GuessTheNumber-v0-random", seed=1)
    env.reset()
    env.reset(seed=2)
    env.sample_random_action()
    env.step(r"\boxed{1}")
    assert random.random() == expected


def test_constructors_draw_no_random_numbers():
    before = random.getstate()
    env = gem.make("game:GuessTheNumber-v0-random", seed=1)
    assert random.getstate() == before
    assert not hasattr(env, "rng")


def test_the_kth_reset_after_a_seed_does_not_depend_on_earlier_episodes():
    idle, busy = DiceEnv(), DiceEnv()
    idle.reset(7)
    rolls(busy, 7)
    assert rolls(idle, None) == rolls(busy, None)


def test_episodes_of_one_seed_differ():
    env = DiceEnv()
    assert len({tuple(rolls(env, 7 if i == 0 else None)) for i in range(10)}) == 10


def test_unseeded_environments_differ():
    assert len({tuple(rolls(DiceEnv(), None)) for _ in range(10)}) == 10


def test_sampling_actions_does_not_change_the_episode():
    alone = rolls(DiceEnv(), 3)
    env = DiceEnv()
    env.reset(3)
    sampled = []
    for _ in range(5):
        env.sample_random_action()
        sampled.append(env.step("roll").observation)
    assert sampled == alone


def test_sampled_actions_are_reproducible():
    def actions() -> list[str]:
        env = DiceEnv()
        env.reset(3)
        return [env.sample_random_action() for _ in range(5)]

    assert actions() == actions()
    assert len(set(actions())) > 1


def test_sampled_actions_do_not_depend_on_how_many_were_sampled_before():
    idle, busy = DiceEnv(), DiceEnv()
    idle.reset(3), busy.reset(3)
    [busy.sample_random_action() for _ in range(7)]
    idle.reset(), busy.reset()
    assert busy.sample_random_action() == idle.sample_random_action()


@pytest.mark.parametrize("seed", [-1, 1.5, "3"])
def test_an_invalid_seed_is_rejected(seed):
    with pytest.raises(BadValue, match="seed must be an integer >= 0"):
        DiceEnv().reset(seed)


def test_a_seed_for_make_is_used_by_the_first_reset_only():
    env = gem.make("game:GuessTheNumber-v0-hard", seed=3)
    twin = gem.make("game:GuessTheNumber-v0-hard")
    env.reset(), twin.reset(seed=3)
    assert env.state == twin.state
    env.reset(), twin.reset()
    assert env.state == twin.state
    assert env._episode == 1


def test_a_seed_for_reset_replaces_the_seed_for_make():
    env = gem.make("game:GuessTheNumber-v0-random", seed=3)
    twin = gem.make("game:GuessTheNumber-v0-random")
    env.reset(seed=8), twin.reset(seed=8)
    env.reset(), twin.reset()
    assert env.state == twin.state


def test_a_restored_state_replaces_the_seed_for_make():
    played = gem.make("game:GuessTheNumber-v0-random")
    played.reset(seed=8)
    restored = gem.make("game:GuessTheNumber-v0-random", seed=3)
    restored.set_state(played.get_state())
    played.reset(), restored.reset()
    assert restored.state == played.state


# State


def test_a_state_restored_from_json_continues_identically():
    env = DiceEnv()
    env.reset(3)
    env.step("a"), env.sample_random_action()
    state = json.loads(json.dumps(env.get_state()))
    other = DiceEnv()
    other.set_state(state)
    assert other.state == env.state
    assert other.sample_random_action() == env.sample_random_action()
    assert [other.step("b") for _ in range(3)] == [env.step("b") for _ in range(3)]
    assert rolls(other, None) == rolls(env, None)


def test_a_saved_state_does_not_change_when_the_episode_continues():
    env = DiceEnv()
    env.reset(3)
    state = env.get_state()
    before = copy.deepcopy(state)
    env.step("a"), env.step("b"), env.sample_random_action()
    assert state == before


def test_getting_the_state_draws_no_random_numbers():
    env = DiceEnv()
    env.reset(3)
    env.get_state()
    assert [env.step("a").observation for _ in range(5)] == rolls(DiceEnv(), 3)


def test_a_dict_in_the_state_keeps_its_order():
    class Bag(Env):
        def reset(self, seed=None):
            super().reset(seed)
            self.state = {"pear": 1, "apple": 2}
            return "", {}

    env = Bag()
    env.reset(0)
    assert list(env.spawn(same_state=True).state) == ["pear", "apple"]


def test_an_environment_without_randomness_can_be_saved():
    class Lamp(Env):
        def reset(self, seed=None):
            self.state = False
            return "", {}

        def step(self, action):
            self.state = action == "on"
            return Step("")

    env = Lamp()
    env.reset()
    env.step("on")
    assert env.spawn(same_state=True).state is True


def test_a_class_attribute_none_stands_for_no_state_before_the_first_reset():
    class Lamp(Env):
        state = None

        def reset(self, seed=None):
            super().reset(seed)
            self.state = {"on": False}
            return "", {}

        def step(self, action):
            self.state = {"on": action == "on"}
            return Step("")

    env, fresh = Lamp(), Lamp()
    before = env.get_state()
    env.reset(seed=1)
    env.step("on")
    fresh.set_state(env.get_state())
    assert fresh.state == {"on": True}
    fresh.set_state(before)
    assert fresh.state is None
    with pytest.raises(BadValue):
        Lamp().set_state(env.get_state() | {"state": 3})


def test_saving_before_the_first_reset_raises_with_advice():
    with pytest.raises(NotImplementedError, match=r"call reset\(\) first"):
        DiceEnv().get_state()


def good_state() -> dict[str, Any]:
    env = DiceEnv()
    env.reset(3)
    return env.get_state()


@pytest.mark.parametrize(
    "state",
    [
        {},
        None,
        {**good_state(), "state": {"faces": "many"}},
        {**good_state(), "rng": []},
        {**good_state(), "rng": [3, [1, 2], None]},
        {**good_state(), "rng": "x"},
        {k: v for k, v in good_state().items() if k != "seed"},
        {k: v for k, v in good_state().items() if k != "episode"},
        {**good_state(), "episode": "first"},
    ],
    ids=["empty", "none", "state", "rng empty", "rng short", "rng text", "no seed", "no episode", "episode text"],
)
def test_invalid_state_is_rejected_and_changes_nothing(state):
    env = DiceEnv()
    env.reset(9)
    before = env.get_state()
    with pytest.raises(BadValue, match="invalid state for DiceEnv"):
        env.set_state(state)
    assert env.get_state() == before


def test_a_game_rejects_the_state_of_another_environment():
    with pytest.raises(BadValue, match="invalid state for GuessTheNumberEnv"):
        GuessTheNumberEnv().set_state(good_state())


@pytest.mark.parametrize("names", [(), ("concat_with_action",), ("concat", "episode_tracking")], ids=str)
@pytest.mark.parametrize("env_id", ["game:GuessTheNumber-v0", "game:GuessTheNumber-v0-random"])
def test_the_state_of_a_wrapped_environment_survives_json(env_id, names):
    def build() -> Any:
        env: Any = gem.make(env_id)
        for wrap in gem.wrappers.get_wrapper_fns(",".join(names)):
            env = wrap(env)
        return env

    env, other = build(), build()
    env.reset(seed=5)
    env.step(r"\boxed{2}")
    other.reset(seed=6)  # an episode that the restored one must replace completely
    other.step(r"\boxed{1}"), other.step(r"\boxed{3}")
    other.set_state(json.loads(json.dumps(env.get_state())))
    for guess in (4, 5):
        assert other.step(rf"\boxed{{{guess}}}") == env.step(rf"\boxed{{{guess}}}")
    assert other.reset() == env.reset()


def test_a_wrapper_rejects_the_state_of_another_wrapper_and_changes_nothing():
    half = {"observations": []}  # an ObservationWrapper can restore the first part of this state
    for wrapper in (ObservationWrapper(DiceEnv()), EpisodeTrackingWrapper(DiceEnv())):
        wrapper.reset(9)
        before, outer = wrapper.get_state(), type(wrapper).__name__
        wrapper.step("roll")
        other_env = {**wrapper.get_state(), "env": {}}
        wrapper.set_state(before)
        for state, rejects in (
            ({**before, "wrapper": None}, outer),
            ({**before, "wrapper": half}, outer),
            (good_state(), outer),
            (other_env, "DiceEnv"),
        ):
            with pytest.raises(BadValue, match=f"invalid state for {rejects}"):
                wrapper.set_state(state)
            assert wrapper.get_state() == before


# Spawn and pickle


def test_a_spawn_has_the_same_arguments_and_its_own_episode():
    env = DiceEnv(6, colour="blue")
    env.reset(3)
    other = env.spawn()
    assert (other.faces, other.colour) == (6, "blue")
    assert not hasattr(other, "state")


def test_spawn_overrides_positional_arguments_by_name():
    env = DiceEnv(6, colour="blue")
    other = env.spawn(faces=20)
    assert (other.faces, other.colour, env.faces) == (20, "blue", 6)


def test_a_seed_for_spawn_is_used_by_the_first_reset():
    assert rolls(DiceEnv().spawn(seed=3), None) == rolls(DiceEnv(), 3)


def test_a_misspelled_override_is_rejected_with_a_suggestion():
    with pytest.raises(UnknownArgument, match=r"'face'.*'faces'.*faces, colour"):
        DiceEnv().spawn(face=20)


@pytest.mark.parametrize("wrap", [lambda env: env, EndOnTruncation])
def test_an_unknown_argument_of_reset_is_rejected_with_the_place_for_settings(wrap):
    with pytest.raises(UnknownArgument, match=r"DiceEnv.reset\(\) takes no 'options', got \{\}; .* gem.make"):
        wrap(DiceEnv()).reset(options={})


def test_a_fork_continues_identically_and_independently():
    env = DiceEnv()
    env.reset(3)
    env.step("a")
    fork = env.spawn(same_state=True)
    ahead = [fork.step("b").observation for _ in range(3)]
    assert [env.step("b").observation for _ in range(3)] == ahead


def test_a_spawn_of_a_registered_environment_keeps_its_id():
    env = gem.make("game:GuessTheNumber-v0-easy")
    assert env.spawn().env_id == "game:GuessTheNumber-v0-easy"
    assert env.spawn().entry_point == env.entry_point
    assert (env.spawn().max_turns, env.spawn(max_turns=2).max_turns) == (4, 2)


def test_spawning_a_wrapper_keeps_its_own_arguments_and_overrides_the_inner_ones():
    env = Shouting(DiceEnv(6), mark="?")
    other = env.spawn(faces=20)
    assert (other.mark, other.faces, other.steps) == ("?", 20, 0)
    assert other.env is not env.env


def test_a_forked_wrapper_keeps_its_own_state():
    env = Shouting(ObservationWrapper(DiceEnv()))
    env.reset(3)
    env.step("a")
    fork = env.spawn(same_state=True)
    assert fork.steps == 1
    assert fork.step("b") == env.step("b")
    fork.step("c")
    assert (env.steps, fork.steps) == (2, 3)


def test_an_environment_pickles_in_mid_episode_wrapped_or_not():
    for env in (DiceEnv(), Shouting(DiceEnv(), mark="?")):
        env.reset(3)
        env.step("a")
        other = pickle.loads(pickle.dumps(env))
        assert other.step("b") == env.step("b")
        assert other.spawn().faces == env.faces


def test_arguments_of_any_subclass_are_recorded():
    class Sub(DiceEnv):
        def __init__(self, *sides: int, **named: Any) -> None:
            super().__init__(faces=sum(sides), **named)

    other = Sub(2, 4, colour="blue").spawn()
    assert (other.faces, other.colour) == (6, "blue")


def test_the_signature_of_a_class_is_that_of_its_constructor():
    assert list(inspect.signature(DiceEnv).parameters) == ["faces", "colour"]
    assert list(inspect.signature(Env).parameters) == []


@pytest.mark.parametrize(
    "build, said",
    [
        (lambda: GuessTheNumberEnv(max_turns="5"), "max_turns .*integer or None.*'5'"),
        (lambda: GuessTheNumberEnv(1, 8.5), r"max_number .*integer or None.*got 8\.5"),
        (lambda: DiceEnv(faces=True), "faces .*integer.*got True"),
        (lambda: ToolEnvWrapper(DiceEnv(), ["python"], "0.5"), "tool_reward .*number.*'0.5'"),
    ],
)
def test_constructors_name_an_argument_of_a_wrong_type(build, said):
    with pytest.raises(BadValue, match=said):
        build()


@pytest.mark.parametrize("state", [None, [], "state", {}])
def test_a_value_that_is_no_state_is_rejected(state):
    env = GuessTheNumberEnv()
    env.reset(seed=0)
    with pytest.raises(BadValue, match="state"):
        env.set_state(state)


def test_unknown_constructor_arguments_are_rejected():
    with pytest.raises(TypeError):
        DiceEnv(side=6)
    with pytest.raises(TypeError):
        Env(1)


# Wrappers


def test_a_wrapper_reads_attributes_of_the_environment_when_accessed():
    env = gem.make("game:GuessTheNumber-v0")
    wrapper = EpisodeTrackingWrapper(ObservationWrapper(env))
    wrapper.reset(seed=1)
    assert wrapper.turn == env.turn == 0
    wrapper.step(r"\boxed{1}"), wrapper.step(r"\boxed{2}")
    assert wrapper.turn == env.turn == 2
    assert wrapper.state is env.state
    assert wrapper.rng is env.rng
    assert wrapper.action_rng is env.action_rng


def test_a_wrapper_delegates_what_it_does_not_override():
    env = gem.make("game:GuessTheNumber-v0-easy")
    wrapper = EndOnTruncation(EnvWrapper(env))
    wrapper.reset(seed=1)
    assert wrapper.unwrapped is env
    assert (wrapper.env_id, wrapper.entry_point) == (env.env_id, env.entry_point)
    assert wrapper.optimum() == env.optimum()
    assert wrapper.secrets() == env.secrets()
    assert wrapper.state_type() is env.state_type()
    wrapper.env_id = "mine"
    assert env.env_id == "mine"


def test_a_missing_attribute_of_wrapper_and_environment_raises_attribute_error():
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = EnvWrapper(DiceEnv()).no_such_thing


def test_an_attribute_set_on_a_wrapper_stays_on_the_wrapper():
    env = DiceEnv()
    wrapper = EnvWrapper(env)
    wrapper.note = "mine"
    assert wrapper.note == "mine"
    assert not hasattr(env, "note")


def test_closing_closes_the_innermost_environment_and_may_be_repeated():
    closed = []

    class Closing(DiceEnv):
        def close(self):
            closed.append(1)

    with EnvWrapper(EnvWrapper(Closing())) as env:
        env.reset(1)
    env.close()
    assert len(closed) == 2


def test_end_on_truncation_sets_terminated_at_a_limit_and_nothing_else():
    env = gem.make("game:GuessTheNumber-v0", max_turns=1, end_on_truncation=True)
    env.reset(seed=1)
    assert env.step(r"\boxed{99}")[2:4] == (True, True)
    plain = gem.make("game:GuessTheNumber-v0", max_turns=1)
    plain.reset(seed=1)
    assert plain.step(r"\boxed{99}")[2:4] == (False, True)


def test_end_on_truncation_forks_and_saves_like_any_wrapper():
    env = gem.make("game:GuessTheNumber-v0", end_on_truncation=True)
    env.reset(seed=1)
    assert isinstance(env.spawn(same_state=True), EndOnTruncation)
    assert env.spawn(same_state=True).step(r"\boxed{1}") == env.step(r"\boxed{1}")


# Errors and metadata


def test_a_missing_method_is_named_in_the_error():
    class Empty(Env):
        pass

    with pytest.raises(NotImplementedError, match=r"Empty must define step\(action\)"):
        Empty().step("x")
    with pytest.raises(NotImplementedError, match=r"Empty must define sample_random_action\(\)"):
        Empty().sample_random_action()


def test_stepping_before_reset_and_after_the_end_raises():
    env = gem.make("game:GuessTheNumber-v0", max_turns=1)
    with pytest.raises(EpisodeOver, match="call reset"):
        env.step(r"\boxed{1}")
    env.reset(seed=1)
    env.step(r"\boxed{99}")
    with pytest.raises(EpisodeOver, match="call reset"):
        env.step(r"\boxed{1}")


def test_the_reserved_info_keys_are_those_that_clients_merge():
    assert {"observation", "actions_left", "messages", "reward"} <= RESERVED_INFO_KEYS
    assert {"llm_response", "prompt_ids", "response_ids", "infer_logprobs"} <= RESERVED_INFO_KEYS


def test_repr_shows_the_id_and_the_wrappers():
    env = gem.make("game:GuessTheNumber-v0")
    assert repr(env) == "<GuessTheNumberEnv game:GuessTheNumber-v0>"
    assert repr(EnvWrapper(env)) == "EnvWrapper(<GuessTheNumberEnv game:GuessTheNumber-v0>)"
    assert repr(GuessTheNumberEnv()) == "<GuessTheNumberEnv>"
