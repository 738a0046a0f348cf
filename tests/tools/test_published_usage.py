"""The published example of tools, and the same with several tools."""

from __future__ import annotations

import json

import pytest

import gem
from gem.tools.function_tool import FunctionTool
from gem.tools.python.tool import PythonCodeTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.wrappers.wrapper_factory import WRAPPER_FACTORY

pytest.importorskip("sympy", reason="needs the extra [math]")

QUESTION = "A farm has 1009 rows of 73 trees. How many trees are there?"


class Template:
    chat_template = "…"

    def apply_chat_template(self, messages, tokenize=False, add_generation_prompt=True, **_):
        return "".join(f"<|{m['role']}|>{m['content']}<|end|>" for m in messages) + "<|assistant|>"


@pytest.fixture
def gsm8k(tmp_path, monkeypatch):
    """Create the dataset of math:GSM8K in the layout of the hub, with one row."""
    spec = gem.ENV_REGISTRY["math:GSM8K"]
    folder = tmp_path / spec.kwargs["dataset_name"] / "data"
    folder.mkdir(parents=True)
    row = {"problem": QUESTION, "answer": str(1009 * 73)}
    (folder / f"{spec.kwargs['split']}-00000-of-00001.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    monkeypatch.setenv("GEM_DATA", str(tmp_path))


@pytest.mark.parametrize(
    "tokenizer", [Template(), pytest.param("built", marks=pytest.mark.train)], ids=["plain", "built"]
)
def test_the_published_example_runs(gsm8k, tokenizer):
    if tokenizer == "built":
        pytest.importorskip("transformers")
        from gem.rl.model.tiny import build_tokenizer

        tokenizer = build_tokenizer([QUESTION])
    env = gem.make("math:GSM8K")
    tool = PythonCodeTool()
    wrapped_env = ToolEnvWrapper(env, tools=[tool])
    wrapped_env = WRAPPER_FACTORY["concat_chat"](wrapped_env, tokenizer=tokenizer)

    obs, info = wrapped_env.reset()
    assert QUESTION in obs
    assert "<python>" in obs

    action = "<think>1009 times 73.</think><python>print(1009 * 73)</python>"
    obs, reward, terminated, truncated, info = wrapped_env.step(action)
    assert "Code execution result: 73657" in obs
    assert action in obs
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert (info["use_tool"], info["tool_use_counter"], info["tool_success_counter"]) == (True, 1, 1)

    obs, reward, terminated, truncated, info = wrapped_env.step(r"So it is \boxed{73657}.")
    assert (reward, terminated, truncated, info["use_tool"]) == (1.0, True, False, False)
    wrapped_env.close()


def test_several_tools_work_together(gsm8k):
    def look_up(word: str) -> str:
        """Look up a word."""
        return {"rows": "lines of trees"}.get(word, "not found")

    env = ToolEnvWrapper(gem.make("math:GSM8K"), tools=[PythonCodeTool(), FunctionTool(look_up, tag="look_up")])
    observation, _ = env.reset()
    assert "Available tools:" in observation
    step = env.step("<look_up>rows</look_up>\n<python>print(1009 * 73)</python>")
    assert step.observation == "lines of trees\nCode execution result: 73657\n\n"
    assert step.info["tool_use_counter"] == 2
    assert env.step(r"\boxed{73657}").reward == 1.0
    env.close()


@pytest.mark.slow
def test_vector_environments_share_only_the_sandbox(gsm8k):
    from functools import partial

    wrap = partial(ToolEnvWrapper, tools=[PythonCodeTool(stateful=True)])
    with gem.make_vec("math:GSM8K", num_envs=4, wrappers=[wrap], async_mode=True) as vec_env:
        vec_env.reset()
        vec_env.step([f"<python>x = {i}</python>" for i in range(4)])
        step = vec_env.step(["<python>x</python>"] * 4)
        assert list(step.observations_B) == [f"Code execution result: {i}\n\n" for i in range(4)]
        step = vec_env.step([r"\boxed{73657}"] * 4)
        assert list(step.rewards_B) == [1.0] * 4
