"""Tools improve results: the same scripted agent with and without a tool."""

from __future__ import annotations

import pytest
from agents import calculator, mean_reward, play

import gem
from gem.tools.python.tool import PythonCodeTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper

pytest.importorskip("sympy", reason="needs the extra [math]")
LEVEL = 3
SEEDS = range(20)


def test_python_solves_arithmetic_with_large_numbers():
    with gem.make("math:Arithmetic", level=LEVEL) as env:
        alone = mean_reward(env, calculator, SEEDS)
    with ToolEnvWrapper(gem.make("math:Arithmetic", level=LEVEL), tools=[PythonCodeTool()]) as env:
        helped = mean_reward(env, calculator, SEEDS)
    assert helped >= 0.97
    assert alone <= 0.1


def test_one_call_is_enough():
    with ToolEnvWrapper(gem.make("math:Arithmetic", level=LEVEL), tools=[PythonCodeTool()]) as env:
        played = play(env, calculator, seed=3)
    assert played.reward == 1.0
    assert len(played.actions) == 2
    assert played.info["tool_use_counter"] == played.info["tool_success_counter"] == 1


def test_attributes_of_the_environment_are_available_through_the_wrapper():
    with ToolEnvWrapper(gem.make("math:Arithmetic"), tools=[PythonCodeTool()]) as env:
        env.reset(seed=1)
        assert env.step(env.format.write(env.answer)).reward == 1.0
