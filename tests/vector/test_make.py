"""make_vec: build vectors from ids."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import gem
from gem.core import EnvWrapper
from gem.errors import BadValue, UnknownArgument, UnknownEnv
from gem.vector import make_vec

PLAIN, EASY = "game:GuessTheNumber-v0", "game:GuessTheNumber-v0-easy"


def states(env: Any) -> list[Any]:
    env.reset()
    return [slot.state for slot in env.envs]


def test_num_envs_sets_the_number_of_slots():
    env = make_vec(PLAIN, num_envs=8)
    assert env.num_envs == len(env.envs) == len(env.reset()[0]) == 8


def test_one_id_alone_makes_one_slot():
    assert make_vec(PLAIN).num_envs == 1


def test_a_list_of_ids_makes_one_slot_each():
    env = make_vec([PLAIN, EASY, PLAIN])
    assert [slot.max_number for slot in env.envs] == [20, 10, 20]


def test_vec_kwargs_override_the_common_arguments_of_one_slot():
    env = make_vec(PLAIN, vec_kwargs=[{}, {"max_number": 5}], max_number=9, max_turns=3)
    assert [slot.max_number for slot in env.envs] == [9, 5]
    assert [slot.max_turns for slot in env.envs] == [3, 3]


@pytest.mark.parametrize(
    ("env_ids", "kwargs"),
    [
        ([PLAIN, PLAIN], {"num_envs": 3}),
        ([PLAIN, PLAIN], {"vec_kwargs": [{}]}),
        (PLAIN, {"num_envs": 2, "vec_kwargs": [{}]}),
    ],
)
def test_lengths_that_disagree_are_refused(env_ids, kwargs):
    with pytest.raises(BadValue, match="conflicting numbers of slots"):
        make_vec(env_ids, **kwargs)


@pytest.mark.parametrize(("env_ids", "kwargs"), [([], {}), (PLAIN, {"num_envs": 0}), (PLAIN, {"vec_kwargs": []})])
def test_a_vector_without_slots_is_refused(env_ids, kwargs):
    with pytest.raises(BadValue, match="at least one slot"):
        make_vec(env_ids, **kwargs)


def test_the_same_seed_gives_the_same_games_every_time():
    assert states(make_vec(PLAIN, num_envs=6, seed=0)) == states(make_vec(PLAIN, num_envs=6, seed=0))
    assert states(make_vec(PLAIN, num_envs=6, seed=0)) != states(make_vec(PLAIN, num_envs=6, seed=100))


def test_slot_i_plays_the_games_of_seed_plus_i():
    alone = []
    for i in range(4):
        env = gem.make(PLAIN, seed=10 + i)
        env.reset()
        alone.append(env.state)
    assert states(make_vec(PLAIN, num_envs=4, seed=10)) == alone


def test_without_a_seed_the_games_differ_from_run_to_run():
    assert states(make_vec(PLAIN, num_envs=20, seed=None)) != states(make_vec(PLAIN, num_envs=20, seed=None))


def test_a_seed_in_vec_kwargs_takes_precedence_and_the_dict_is_not_modified():
    given: list[dict[str, Any]] = [{}, {"seed": 7}, {}]
    before = copy.deepcopy(given)
    first = states(make_vec(PLAIN, vec_kwargs=given, seed=0))
    assert given == before
    assert states(make_vec(PLAIN, vec_kwargs=given, seed=0)) == first
    assert first[1:2] == states(make_vec(PLAIN, seed=7))


@pytest.mark.parametrize("seed", [-1, 0.5, "1"])
def test_a_bad_seed_fails_at_once(seed):
    with pytest.raises(BadValue, match="seed must be an integer"):
        make_vec(PLAIN, seed=seed)


def test_wrappers_are_applied_to_every_slot_innermost_first():
    class Outer(EnvWrapper):
        pass

    env = make_vec(PLAIN, wrappers=[EnvWrapper, Outer], num_envs=2)
    assert all(type(slot) is Outer and type(slot.env) is EnvWrapper for slot in env.envs)
    assert env.envs[0].unwrapped is not env.envs[1].unwrapped


def test_wrapper_names_are_refused_with_a_hint():
    with pytest.raises(BadValue, match="get_wrapper_fns"):
        make_vec(PLAIN, wrappers="concat")


def test_unknown_ids_and_arguments_are_refused_as_by_make():
    with pytest.raises(UnknownEnv, match="did you mean"):
        make_vec("game:GuessTheNumber-v1", num_envs=2)
    with pytest.raises(UnknownArgument, match="did you mean 'max_turns'"):
        make_vec(PLAIN, num_envs=2, max_turn=3)
    with pytest.raises(UnknownArgument, match="did you mean 'max_turns'"):
        make_vec(PLAIN, vec_kwargs=[{"max_turn": 3}])


def test_an_unknown_autoreset_mode_fails_at_construction():
    with pytest.raises(BadValue, match="autoreset must be one of"):
        make_vec(PLAIN, autoreset="sometimes")


# Mixtures


def test_a_mixture_assigns_slots_by_weight_at_least_one_each():
    def counts(weights: dict[str, float], num_envs: int) -> list[int]:
        ids = make_vec(weights, num_envs=num_envs).env_ids
        return [ids.count(env_id) for env_id in weights]

    assert counts({PLAIN: 2, EASY: 1}, 9) == [6, 3]
    assert counts({PLAIN: 2, EASY: 1}, 4) == [3, 1]
    assert counts({PLAIN: 0.5, EASY: 0.25}, 9) == [6, 3]
    assert counts({PLAIN: 1000, EASY: 1}, 8) == [7, 1]
    assert counts({PLAIN: 1}, 3) == [3]


def test_a_mixture_without_num_envs_has_one_slot_of_each():
    assert make_vec({PLAIN: 2, EASY: 1}).env_ids == [PLAIN, EASY]


def test_a_mixture_is_the_same_every_time_and_interleaved():
    ids = make_vec({PLAIN: 1, EASY: 1}, num_envs=6).env_ids
    assert ids == make_vec({PLAIN: 1, EASY: 1}, num_envs=6).env_ids
    assert sorted(ids[:2]) == sorted(ids[2:4]) == sorted(ids[4:])


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), "2", None, True])
def test_a_weight_is_a_number_above_zero(weight):
    with pytest.raises(BadValue, match=f"the weight of '{PLAIN}' must be a number above 0, got"):
        make_vec({PLAIN: weight}, num_envs=2)


def test_a_mixture_of_more_ids_than_slots_is_refused():
    with pytest.raises(BadValue, match=r"2 ids .*2 slots.*num_envs=1"):
        make_vec({PLAIN: 1, EASY: 1}, num_envs=1)


def test_an_empty_mixture_is_refused():
    with pytest.raises(BadValue, match="at least one slot"):
        make_vec({})


# Backends and their options


def test_the_backend_is_sync_unless_another_is_named():
    assert make_vec(PLAIN).backend == make_vec(PLAIN, backend="sync").backend == "sync"


@pytest.mark.parametrize(("asked", "meant"), [("proces", "process"), ("Thread", "thread")])
def test_an_unknown_backend_is_refused_with_a_suggestion(asked, meant):
    with pytest.raises(BadValue, match=f"no backend '{asked}'; did you mean '{meant}'.*there are: sync, async, thread"):
        make_vec(PLAIN, backend=asked)


def test_async_mode_conflicts_with_another_backend():
    with pytest.raises(BadValue, match=r"async_mode=True .*'async'.*backend='sync'"):
        make_vec(PLAIN, async_mode=True, backend="sync")


@pytest.mark.parametrize(
    ("backend", "options", "message"),
    [
        ("sync", {"num_workers": 2}, "num_workers=2 .*'sync'.* async, thread, process, ray"),
        ("sync", {"timeout": 2.0}, "takes no timeout"),
        ("thread", {"address": "auto"}, "address='auto' .*'thread'.* ray"),
        ("thread", {"num_workers": 0}, "num_workers .*at least 1.*got 0"),
        ("process", {"num_workers": 1.5}, r"num_workers .*at least 1.*got 1\.5"),
        ("sync", {"on_failure": "retry"}, "on_failure .*'raise' or 'restart'.*'retry'"),
    ],
)
def test_an_option_that_is_not_for_the_backend_is_refused(backend, options, message):
    with pytest.raises(BadValue, match=message):
        make_vec(PLAIN, backend=backend, **options)


@pytest.mark.parametrize("backend", ["thread", "async", "process"])
@pytest.mark.parametrize("timeout", [0, -1, "1", True])
def test_a_timeout_is_seconds_above_zero(backend, timeout):
    with pytest.raises(BadValue, match=f"timeout .*above 0, or None.*got {timeout!r}"):
        make_vec(PLAIN, backend=backend, timeout=timeout)


def test_end_on_truncation_reaches_every_slot():
    env = make_vec(PLAIN, num_envs=2, max_turns=1, end_on_truncation=True, autoreset="disabled")
    env.reset()
    step = env.step([r"\boxed{99}"] * 2)
    assert step.terminated_B.all() and step.truncated_B.all()


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
def test_a_slot_plays_the_episode_that_make_gives_for_its_id_and_seed(backend):
    with make_vec(["game:Wordle-v0", "game:Hangman-v0"], backend=backend, seed=3) as vec:
        vec.reset()
        played = [slot["env"]["state"] for slot in vec.get_state()["slots"]]
    alone = [gem.make("game:Wordle-v0", seed=3), gem.make("game:Hangman-v0", seed=4)]
    for env in alone:
        env.reset()
    assert played == [env.get_state()["state"] for env in alone]


@pytest.mark.parametrize("group_size", [0, True, 1.5])
def test_a_group_size_is_an_integer_above_zero(group_size):
    with pytest.raises(BadValue, match=f"group_size .*at least 1.*got {group_size}"):
        make_vec("qa:Facts", group_size=group_size)


def test_the_number_of_slots_must_be_an_integer():
    with pytest.raises(BadValue, match=r"num_envs .*integer or None.*'4'"):
        make_vec(PLAIN, num_envs="4")
