"""Tool wrappers by name: rewards, budgets, and separate tools per environment."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gem
from gem.tools.python.tool import PythonCodeTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.wrappers import WRAPPER_FACTORY, get_wrapper_fns
from gem.wrappers.episode_tracking import EpisodeTrackingWrapper
from gem.wrappers.observation import ObservationWrapper


class Template:
    chat_template = "…"

    def apply_chat_template(self, messages, tokenize=False, add_generation_prompt=True, **_):
        return "".join(f"[{message['role']}] {message['content']}\n" for message in messages) + "[assistant] "


def wrapped(names, env=None):
    env = gem.make("game:GuessTheNumber-v0", seed=1) if env is None else env
    for wrap in get_wrapper_fns(names, tokenizer=Template()):
        env = wrap(env)
    return env


@pytest.mark.parametrize(
    ("name", "rewards"),
    [
        ("python_tool", (0.05, 0.25)),
        ("python_tool_no_int_reward", (0.0, 0.0)),
        ("python_tool_no_int_reward_last_line_error", (0.0, 0.0)),
        ("search_tool", (0.3, 0.0)),
        ("search_tool_no_int_reward", (0.0, 0.0)),
    ],
)
def test_each_tool_name_sets_rewards_and_five_uses(name, rewards):
    env = wrapped(name)
    assert type(env) is ToolEnvWrapper
    assert (env.tool_reward, env.tool_success_reward, env.max_tool_uses) == (*rewards, 5)
    assert env.tools[0].tool_type == ("search" if "search" in name else "python_code")
    env.close()


def test_the_published_list_of_names_works():
    with wrapped("python_tool, concat_chat, episode_tracking") as env:
        assert [type(env), type(env.env), type(env.env.env)] == [
            EpisodeTrackingWrapper,
            ObservationWrapper,
            ToolEnvWrapper,
        ]
        env.reset()
        step = env.step("<think>x</think><python>print(6 * 7)</python> then")
        assert "Code execution result: 42" in step.observation
        assert step.reward == pytest.approx(0.3)
        assert (step.info["step_counter"], step.info["tool_use_counter"]) == (1, 1)
        assert step.info["cumulative_rewards"] == pytest.approx(0.3)


def test_the_last_line_variant_shows_only_the_last_line_of_an_error():
    with wrapped("python_tool_no_int_reward_last_line_error") as env:
        env.reset()
        assert env.step("<python>1/0</python>").observation.rstrip().endswith("\nZeroDivisionError: division by zero")
        assert "Traceback" not in env.step("<python>1/0</python>").observation


def test_every_environment_gets_its_own_tool():
    wrappers = get_wrapper_fns("python_tool, episode_tracking")
    with gem.make_vec("game:GuessTheNumber-v0", num_envs=3, wrappers=wrappers) as vec_env:
        vec_env.reset()
        vec_env.step(["<python>print(1)</python>", r"\boxed{1}", r"\boxed{1}"])
        tools = [env.env.tools[0] for env in vec_env.envs]
        assert len({id(tool) for tool in tools}) == 3
        assert [env.env.tool_use_counter for env in vec_env.envs] == [1, 0, 0]


def test_two_tools_by_name_work_in_either_order():
    for names in ("python_tool, search_tool", "search_tool,python_tool"):
        with wrapped(names) as env:
            observation, _ = env.reset()
            assert "<python>" in observation
            assert "<search>" in observation
            assert "42" in env.step("<python>print(42)</python>").observation
            assert env.step("<search></search>").info["tool_faults"] == {"empty": 1}


def test_wrapper_options_can_be_set():
    env = WRAPPER_FACTORY["python_tool"](gem.make("game:GuessTheNumber-v0"), format="hermes", max_tool_uses=1)
    assert (env.call_format.name, env.max_tool_uses, env.tool_reward) == ("hermes", 1, 0.05)
    assert isinstance(env.tools[0], PythonCodeTool)


def test_the_factory_does_not_import_tools():
    code = (
        "import sys, gem.wrappers; sys.exit(any(name.startswith(('gem.tools', 'gem.sandbox')) for name in sys.modules))"
    )
    paths = ":".join(filter(None, sys.path))
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": paths}, timeout=60).returncode == 0
