"""LookupTool, and random calls for the warm-up."""

import re

import pytest

import gem
from gem.errors import BadValue
from gem.tools.function_tool import FunctionTool
from gem.tools.lookup_tool import LookupTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.vector import make_vec


def wrapped(drawers=1, **options):
    return ToolEnvWrapper(gem.make("tool:Lookup", seed=5, drawers=drawers), [LookupTool], **options)


def test_the_tool_shows_the_digit_and_the_answer_pays():
    with wrapped() as env:
        rules, _ = env.reset()
        drawer = re.search(r"in drawer (.)\?", rules)[1]
        shown = env.step(f"<lookup>{drawer}</lookup>").observation
        copy = env.spawn(same_state=True)
        for each in (env, copy):
            assert each.step(rf"\boxed{{{drawer}:{int(shown)}}}").reward == 1.0


def wait() -> str:
    """Wait for something."""
    return "done"


@pytest.mark.parametrize(("tools", "inline"), [([], True), ([FunctionTool(wait)], False)], ids=["lookup", "both"])
def test_a_tool_that_only_computes_needs_no_threads(tools, inline):
    with make_vec("tool:Lookup", [lambda env: ToolEnvWrapper(env, [LookupTool, *tools])], async_mode=True) as vec_env:
        assert vec_env.is_inline is inline


def test_an_unknown_drawer_is_an_error_that_the_agent_sees():
    with wrapped() as env:
        env.reset()
        step = env.step("<lookup>z</lookup>")
        assert step.observation == "There is no entry 'z'." and step.info["tool_faults"] == {"error": 1}
        assert not step.terminated


def test_an_environment_without_a_table_is_refused():
    with pytest.raises(BadValue, match=r"lookup_tool .*look_up\(\)"):
        ToolEnvWrapper(gem.make("game:GuessTheNumber-v0-easy"), [LookupTool])


def test_half_of_the_random_actions_are_random_calls_while_calls_are_left():
    with wrapped(drawers=4, max_tool_uses=3) as env:
        env.reset()
        actions = [env.sample_random_action() for _ in range(400)]
        calls = [action for action in actions if action.startswith("<lookup>")]
        assert {action[8] for action in calls} == set(env.unwrapped.look_up_keys()) and 150 < len(calls) < 250
        for _ in range(3):
            env.step(calls[0])
        assert not any("<lookup>" in env.sample_random_action() for _ in range(50))


def test_random_play_with_the_tool_is_uninformed():
    with wrapped() as env:
        won = 0.0
        for seed in range(600):
            env.reset(seed=seed)
            over = False
            while not over:
                _, reward, terminated, truncated, _ = env.step(env.sample_random_action())
                won, over = won + reward, terminated or truncated
    assert 0.05 < won / 600 < 0.15
