"""Modules of the compatibility layer: published paths that forward to this package."""

from __future__ import annotations

import asyncio
import importlib
import random
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import gem
from gem._published import PUBLISHED
from gem.errors import BadValue
from gem.utils import debug, math_grader, parsing, qa_em, seeding
from gem.utils.constants import BASE_IMPORTS, TERMINAL_STATE, LanguageGameReward
from gem.vector.async_vector_env import AsyncVectorEnv
from gem.vector.sync_vector_env import SyncVectorEnv
from gem.vector.vector_env import ArrayType, AutoresetMode, VectorEnv
from gem.wrappers.episode_tracking_wrapper import EpisodeTrackingWrapper
from gem.wrappers.observation_wrapper import ObservationWrapper, maybe_add_new_line

GAME = "game:GuessTheNumber-v0-easy"


def test_answers_are_extracted_from_boxes_tags_and_fences():
    text = r"first \boxed{1}, then \boxed{\frac{1}{2}} <answer> Bern </answer>"
    assert parsing.last_boxed_only_string(text) == r"\boxed{\frac{1}{2}}"
    assert parsing.remove_boxed(parsing.last_boxed_only_string(text)) == r"\frac{1}{2}"
    assert parsing.extract_last_boxed_answer(text) == r"\frac{1}{2}"
    assert parsing.extract_last_tagged_answer(text) == "Bern"
    assert parsing.extract_code_from_model("```python\nprint(1)\n```\nor\n```python\nprint(2)\n```") == "print(2)"


@pytest.mark.parametrize("name", [name for name in vars(parsing) if name.startswith(("extract_", "last_boxed_"))])
def test_a_text_without_an_answer_gives_none(name):
    assert getattr(parsing, name)("no answer") is None
    assert parsing.remove_boxed("1") is parsing.remove_boxed(None) is None


def test_math_answers_are_graded_under_the_published_names():
    for grade in (math_grader.grade, math_grader.grade_answer_mathd, math_grader.grade_answer_sympy):
        assert grade("1/2", "0.5") and not grade("1/3", "0.5")
    assert math_grader.is_latex_equal(r"\frac{1}{2}", "0.5")
    assert math_grader.boxed_reward_fn(r"\boxed{2}", ["1", "2"], fast=True) == ({"formatted": True}, 1.0)
    assert math_grader.boxed_reward_fn("2", "2") == ({"formatted": False}, 0.0)
    assert math_grader.answer_tag_reward_fn("<answer>2</answer>", "2")[1] == 1.0
    assert math_grader.r1_distill_qwen_math_reward_fn(r"<think>x</think> \boxed{2}", 2)[1] == 1.0
    assert math_grader.r1_distill_qwen_math_reward_fn(r"<think>\boxed{2}", "2") == ({"formatted": False}, 0.0)


def test_short_answers_match_exactly_after_normalization():
    assert qa_em.em_check("The Alps.", ["alps"]) and not qa_em.em_check("the", "a")
    assert qa_em.normalize_answer("The  Alps!") == "alps"


def test_the_global_streams_are_seeded_on_request():
    seeding.set_seed(3)
    drawn = random.random(), np.random.random()
    seeding.set_seed(3)
    assert (random.random(), np.random.random()) == drawn
    stream, seed = seeding.np_random(7)
    assert isinstance(stream, seeding.RNG) and seed == 7
    assert stream.random() == seeding.np_random(7)[0].random()
    assert seeding.np_random()[1] != seeding.np_random()[1]
    with pytest.raises(BadValue):
        seeding.np_random(-1)


def test_constants_have_their_published_values():
    assert TERMINAL_STATE == "<\uff5cTERMINAL_STATE\uff5c>"
    assert (LanguageGameReward.success_reward, LanguageGameReward.format_error_reward) == (1.0, -0.1)
    names: dict = {}
    exec(BASE_IMPORTS, names)
    assert names["math"].sqrt(16) == names["sqrt"](16) == 4.0


@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
def test_a_vector_is_built_from_ids_and_functions(cls):
    env = cls([GAME] * 2, [partial(gem.make, GAME)] * 2, AutoresetMode.SAME_STEP)
    try:
        assert isinstance(env, VectorEnv) and env.env_ids == [GAME] * 2
        env.reset(seed=0)
        assert isinstance(env.step([r"\boxed{1}"] * 2)[1], ArrayType)
    finally:
        env.close()


def test_vectors_of_make_vec_are_instances_of_the_published_classes():
    for async_mode, cls, other in ((False, SyncVectorEnv, AsyncVectorEnv), (True, AsyncVectorEnv, SyncVectorEnv)):

        class Own(cls):
            pass

        with gem.make_vec([GAME] * 2, async_mode=async_mode) as env:
            assert isinstance(env, cls) and not isinstance(env, (other, Own))
    assert not isinstance(gem.make(GAME), SyncVectorEnv)


def test_wrappers_have_their_published_defaults():
    with pytest.raises(BadValue, match="tokenizer"):
        ObservationWrapper(gem.make(GAME))
    env = EpisodeTrackingWrapper(ObservationWrapper(gem.make(GAME), include_chat_template=False))
    env.reset(seed=1)
    shown, *_, info = env.step("hello")
    assert "hello" in shown and env.observation(info) == shown
    assert [maybe_add_new_line(text) for text in ("a", "a\n", "")] == ["a\n", "a\n", ""]


def test_an_episode_is_played_and_printed(capsys):
    env = gem.make(GAME)
    debug.run_and_print_episode(env, lambda _: env.sample_random_action())
    assert "reward" in capsys.readouterr().out
    with pytest.raises(gem.errors.EpisodeOver):
        env.step("x")


def test_a_vector_is_played_and_printed(capsys):
    env = gem.make_vec(GAME, num_envs=3)
    debug.run_and_print_episode(env, lambda _: [r"\boxed{1}"] * 3, ignore_done=True, max_steps=5)
    assert capsys.readouterr().out.count("---") == 5
    debug.run_and_print_episode_with_selective_step(env, lambda _: [r"\boxed{1}"] * 3)
    debug.run_and_print_episode_with_selective_step(env, lambda _: {1: "x"}, ignore_done=True, max_steps=2)


def test_a_policy_may_be_a_coroutine_function(capsys):
    async def policy(observation):
        return r"\boxed{1}"

    asyncio.run(debug.run_and_print_episode_async(gem.make(GAME), policy))
    assert "terminated" in capsys.readouterr().out


@pytest.mark.parametrize("path", PUBLISHED)
def test_a_published_path_is_the_module_that_it_names(path):
    module, home = importlib.import_module(path), importlib.import_module(PUBLISHED[path])
    names = [name for name in vars(home) if not name.startswith("_")]
    assert names and all(getattr(module, name) is getattr(home, name) for name in names)
    assert home.__spec__.name == PUBLISHED[path]  # the import system has not renamed it


def test_a_folder_that_an_older_version_left_does_not_hide_a_published_path(tmp_path):
    (tmp_path / "multiagent").mkdir()
    code = "import gem.envs; gem.envs.__path__.append(sys.argv[1]); from gem.envs.multiagent import MultiAgentEnv"
    subprocess.run([sys.executable, "-c", f"import sys; {code}", str(tmp_path)], check=True)


def test_all_names_of_a_published_package_can_be_imported():
    names: dict = {}
    exec("from gem.envs.game_env.sokoban import *", names)
    assert {"SokobanEnv", "CHANGE_COORDINATES"} <= set(names)


def test_a_published_server_runs_by_its_path():
    command = [sys.executable, "-m", "gem.tools.mcp_server.time_mcp", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "--transport" in shown


def test_a_path_that_was_never_published_does_not_exist():
    for path in ("gem.envs.game_env.chess", "gem.tools.search_engine.index"):
        with pytest.raises(ModuleNotFoundError, match=path):
            importlib.import_module(path)


def test_the_multi_agent_environment_is_where_it_was():
    from gem.envs.multiagent import multi_agent_env
    from gem.multiagent import MultiAgentEnv

    assert multi_agent_env.MultiAgentEnv is gem.envs.multiagent.MultiAgentEnv is MultiAgentEnv
