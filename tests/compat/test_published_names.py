"""Uses of gem in published code: each test follows a framework, an adapter or a set of environments.

These names must keep working exactly as written.
"""

from __future__ import annotations

import importlib
import json
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

import gem
import gem.envs  # importing it fills the registry, twice if need be
from gem import Env, EnvWrapper, Step
from gem.envs.registration import ENV_REGISTRY, EnvSpec, make, make_vec, register
from gem.wrappers.wrapper_factory import WRAPPER_FACTORY, get_wrapper_fns

NAMES = [
    "gem:make",
    "gem:make_vec",
    "gem:register",
    "gem:print_envs",
    "gem:Env",
    "gem:ENV_REGISTRY",
    "gem.core:Env",
    "gem.core:EnvWrapper",
    "gem.envs.registration:ENV_REGISTRY",
    "gem.envs.registration:EnvSpec",
    "gem.envs.registration:register",
    "gem.envs.registration:make",
    "gem.envs.registration:make_vec",
    "gem.envs.registration:print_envs",
    "gem.envs.code_env:CodeEnv",
    "gem.envs.math_env:MathEnv",
    "gem.envs.math_visual_env:MathVisualEnv",
    "gem.envs.qa_env:QaEnv",
    "gem.envs.game_env.guess_the_number:GuessTheNumberEnv",
    "gem.wrappers.wrapper_factory:WRAPPER_FACTORY",
    "gem.wrappers.wrapper_factory:get_wrapper_fns",
]


class TheirEnv(gem.Env):
    """An environment as they are written: no super().__init__(), the global stream, extra keyword arguments."""

    def __init__(self, max_turns: int = 3, **_: Any) -> None:
        self.max_turns = max_turns

    def reset(self, seed=None):
        Env.reset(self, seed)  # unbound, and positional
        self.secret = random.randint(0, 10**9)
        self.noise = float(np.random.random())
        self.turn = 0
        return "guess", {"env_instruction": "be brief", "suffix": "go"}

    def step(self, action):
        self.turn += 1
        over = self.turn >= self.max_turns
        return f"heard {action}", 0.1, over, over, {"metrics": {"ok": True}, "metrics_agg_mode": {"ok": "last"}}

    def sample_random_action(self):
        return str(random.randint(0, 9))


@pytest.fixture
def theirs():
    """Their environment under a plain id, without colon or version, taken out again afterwards."""
    gem.register("their_game", entry_point=TheirEnv, max_turns=2)
    yield "their_game"
    del ENV_REGISTRY["their_game"]


def test_published_names_are_where_they_were():
    at = [name.partition(":")[::2] for name in NAMES]
    assert [name for name in at if getattr(importlib.import_module(name[0]), name[1], None) is None] == []


def test_names_that_stand_in_two_places_are_the_same_object():
    assert (gem.make, gem.register, gem.make_vec) == (make, register, make_vec)
    assert gem.ENV_REGISTRY is ENV_REGISTRY
    assert gem.core.Env is gem.Env


def test_importing_the_environments_again_changes_nothing():
    before = list(ENV_REGISTRY)
    importlib.reload(gem.envs)
    assert list(ENV_REGISTRY) == before


# make and register


def test_make_takes_its_id_by_name_or_by_place():
    assert type(gem.make(env_id="game:GuessTheNumber-v0")) is type(gem.make("game:GuessTheNumber-v0"))


def test_plain_ids_of_the_older_release_exist():
    for env_id in ("game:GuessTheNumber-v0", "game:GuessTheNumber-v0-hard-no-max-turn"):
        assert gem.make(env_id).reset(seed=1)[0]


def test_an_environment_knows_its_id_and_entry_point(theirs):
    env = gem.make(theirs, max_turns=5, seed=3, something_of_theirs=1)
    assert (env.env_id, env.entry_point, env.max_turns) == ("their_game", TheirEnv, 5)


def test_a_registered_environment_shows_its_entry_point_and_arguments(theirs):
    spec = ENV_REGISTRY[theirs]
    assert isinstance(spec, EnvSpec)
    assert (spec.id, spec.entry_point, spec.kwargs) == (theirs, TheirEnv, {"max_turns": 2})


def test_a_duplicate_id_is_a_value_error(theirs):
    with pytest.raises(ValueError):
        gem.register(theirs, TheirEnv)


def test_64_threads_make_256_environments(theirs, capfd):
    with ThreadPoolExecutor(64) as pool:
        envs = list(pool.map(lambda i: gem.make(theirs if i % 2 else "game:GuessTheNumber-v0", seed=i), range(256)))
    assert len({id(env) for env in envs}) == 256
    assert capfd.readouterr() == ("", "")


# Their classes


def test_a_class_needs_no_super_init_and_takes_any_attribute():
    env = TheirEnv()
    env.anything = [1]
    env.reset(seed=1)
    assert env.anything == [1]
    assert env.step(action="x")[0] == "heard x"


def test_a_class_without_a_constructor_takes_no_arguments():
    class Bare(gem.Env):
        pass

    gem.Env.__init__(Bare())
    with pytest.raises(TypeError):
        Bare(3)


def test_a_class_may_skip_its_parents_constructor():
    class Skips(TheirEnv):
        def __init__(self, extra: str) -> None:
            Env.__init__(self)
            self.extra, self.max_turns = extra, 1

    assert Skips("x").spawn().extra == "x"


class Mixin:
    """Some other library's base class; gymnasium's has no constructor, theirs often have."""

    def __init__(self) -> None:
        self.mixed = True

    def render(self):
        return "picture"


def test_multiple_inheritance_works_in_either_order():
    class First(gem.Env, Mixin):
        pass

    class Second(Mixin, gem.Env):
        pass

    for cls in (First, Second):
        env = cls()
        env.reset(seed=1)
        assert env.mixed and env.render() == "picture" and env.rng is not None


def test_an_abstract_base_class_can_be_mixed_in():
    import abc

    class Abstract(abc.ABC):
        @abc.abstractmethod
        def render(self): ...

    class Both(gem.Env, Abstract):
        def render(self):
            return "picture"

    assert Both().render() == "picture"


def test_reset_of_a_class_outside_gem_seeds_the_global_streams():
    env, twin = TheirEnv(), TheirEnv()
    env.reset(seed=7)
    random.random(), np.random.random()
    twin.reset(seed=7)
    assert (env.secret, env.noise) == (twin.secret, twin.noise)
    twin.reset(8)
    assert env.secret != twin.secret


def test_reset_without_a_seed_leaves_the_global_streams_alone():
    random.seed(1), np.random.seed(1)
    expected = random.Random(1).random(), np.random.RandomState(1).random_sample()
    gem.Env.reset(TheirEnv())
    assert (random.random(), np.random.random()) == expected


def test_reset_of_a_class_of_gem_leaves_the_global_streams_alone():
    random.seed(1), np.random.seed(1)
    expected = random.Random(1).random(), np.random.RandomState(1).random_sample()
    gem.make("game:GuessTheNumber-v0").reset(seed=7)
    assert (random.random(), np.random.random()) == expected


@pytest.mark.parametrize("seed", [2**32, 2**62])
def test_a_seed_too_large_for_numpys_global_stream_is_taken_all_the_same(seed):
    env = TheirEnv()
    env.reset(seed=seed)
    assert env.noise == pytest.approx(np.random.RandomState(seed % 2**32).random_sample())


def test_a_seed_given_to_make_reaches_their_global_streams(theirs):
    env, twin = gem.make(theirs, seed=5), gem.make(theirs, seed=5)
    env.reset(), twin.reset()
    assert env.secret == twin.secret


def test_a_plain_tuple_of_five_is_a_step_wherever_gem_takes_one(theirs):
    env: Any = gem.make(theirs)
    for wrap in get_wrapper_fns("concat_with_action, episode_tracking"):
        env = wrap(env)
    env.reset(seed=1)
    step = env.step("x")
    assert isinstance(step, Step)
    assert (step.reward, step.info["metrics"], step.info["cumulative_rewards"]) == (0.1, {"ok": True}, 0.1)


def test_their_environment_can_be_pickled_and_spawned(theirs):
    env = gem.make(theirs, max_turns=7)
    assert pickle.loads(pickle.dumps(env)).max_turns == 7
    assert env.spawn(max_turns=8).max_turns == 8


# Episodes as clients run them


def test_info_is_a_fresh_dict_that_the_caller_may_take_apart():
    env = gem.make("game:GuessTheNumber-v0")
    _, info = env.reset(seed=1)
    info.pop("suffix", None)
    history = [{"observation": "x", "actions_left": 9, "messages": None, **info}]
    for _ in range(2):
        *_, info = env.step(action=r"\boxed{99}")
        history[-1].update(info, reward=5)
        info.clear()
    assert env.step(r"\boxed{99}").info == {"invalid": "out_of_range"}


def test_info_uses_no_key_that_clients_merge_with_their_own():
    env = gem.make("game:GuessTheNumber-v0", max_turns=2)
    seen = set(env.reset(seed=1)[1])
    for action in (r"\boxed{99}", r"\boxed{1}"):
        seen |= set(env.step(action).info)
    assert seen.isdisjoint(gem.core.RESERVED_INFO_KEYS)
    assert seen == {"invalid", "stop_reason", "revealed", "explanation"}


def test_info_can_be_written_as_json():
    env = gem.make("game:GuessTheNumber-v0", max_turns=1)
    env.reset(seed=1)
    assert json.loads(json.dumps(env.step(r"\boxed{99}").info)) == {
        "invalid": "out_of_range",
        "stop_reason": "max_turns",
        "revealed": env.secrets(),
        "explanation": ANY,
    }


def test_a_loop_that_ends_on_terminated_alone_ends_with_end_on_truncation():
    env = gem.make("game:GuessTheNumber-v0", max_turns=3, end_on_truncation=True)
    env.reset(seed=1)
    ends = [env.step(action=r"\boxed{99}")[2] for _ in range(3)]
    assert ends == [False, False, True]
    assert env.max_turns == 3
    assert env.env_id == "game:GuessTheNumber-v0"


def test_closing_and_sampling_work_for_every_environment(theirs):
    for env_id in (theirs, "game:GuessTheNumber-v0"):
        env = gem.make(env_id)
        env.reset(seed=1)
        assert isinstance(env.sample_random_action(), str)
        env.close(), env.close()


def test_a_wrapper_of_theirs_calls_super_and_reads_through():
    class Theirs(EnvWrapper):
        def __init__(self, env: Any, bonus: float = 0.0) -> None:
            super().__init__(env)
            self.bonus = bonus

        def reset(self, seed=None):
            return self.env.reset(seed)

        def step(self, action):
            observation, reward, terminated, truncated, info = self.env.step(action)
            return observation, reward + self.bonus, terminated, truncated, info

    env = Theirs(gem.make("game:GuessTheNumber-v0"), bonus=0.5)
    env.reset(seed=1)
    assert env.step(r"\boxed{99}")[1] == 0.5
    assert env.turn == env.unwrapped.turn == 1
    env.step(r"\boxed{99}")
    assert env.turn == 2
    assert env.spawn(same_state=True).turn == 2


# Vectors as clients use them


def test_a_vector_is_made_and_stepped_as_published(theirs):
    vec_kwargs = [{"max_turns": 1}, {"max_turns": 2, "seed": 9}]
    wrappers = get_wrapper_fns("concat,episode_tracking", tokenizer=None)
    env = gem.make_vec([theirs, theirs], wrappers=wrappers, vec_kwargs=vec_kwargs, async_mode=False, seed=0)
    assert env.num_envs == len(env.envs) == 2
    observations, infos = env.reset(seed=[1, 2])
    assert observations == ["guess\ngo"] * 2
    assert [info["env_instruction"] for info in infos] == ["be brief"] * 2
    observations, rewards, terminated, truncated, infos = env.step({1: "x"})
    assert (len(observations), rewards.tolist(), terminated.tolist(), truncated.tolist()) == (
        1,
        [0.1],
        [False],
        [False],
    )
    assert env.step(["x", "x"]).terminated_B.tolist() == [True, True]


def test_observations_need_not_be_text(theirs):
    class Odd(TheirEnv):
        def reset(self, seed=None):
            super().reset(seed)
            return None, None

        def step(self, action):
            return [{"role": "user", "content": action["content"]}], 0.0, True, False, {}

    gem.register("their_odd_game", Odd)
    try:
        env = gem.make_vec("their_odd_game")
        assert env.reset() == ([None], [{}])
        step = env.step([{"role": "assistant", "content": "call"}])
        assert step.infos_B[0]["final_obs"] == [{"role": "user", "content": "call"}]
    finally:
        del ENV_REGISTRY["their_odd_game"]


def test_the_published_wrapper_names_that_exist_already():
    assert {"concat", "concat_chat", "concat_with_action", "concat_chat_on_reset", "episode_tracking"} <= set(
        WRAPPER_FACTORY
    )
