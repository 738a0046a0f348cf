"""Functions as policies: what they are called with, what they may return, and what their exceptions cost."""

import asyncio
import json
import threading
from types import SimpleNamespace

import pytest

import gem
from gem.core import Env, Step
from gem.errors import BadValue, EndpointError
from gem.evaluation import evaluate
from gem.policies import FunctionPolicy, Request
from gem.registry import ENV_REGISTRY
from gem.rollout import collect
from gem.tools.function_tool import FunctionTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.trajectory import Turn, read_jsonl
from gem.vector import VectorEnv

GAME = "game:GuessTheNumber-v0-easy"


class Echo(Env):
    """Two turns; the reward is 1 if the last action is "yes"."""

    turn = 0

    def reset(self, seed=None):
        super().reset(seed)
        self.turn = 0
        return "yes or no?", {}

    def step(self, action):
        self.turn += 1
        return Step("again?", float(self.turn == 2 and action == "yes"), self.turn == 2)


@pytest.fixture(autouse=True)
def echo():
    gem.register("test:Echo", Echo)
    yield
    del ENV_REGISTRY["test:Echo"]


def asked(function, **more):
    (reply,) = FunctionPolicy(function).act([Request("go on", [], (0, 0, 1), str, [Turn("rules", "left")], **more)])
    return reply


def test_a_function_gets_the_conversation_and_its_text_is_the_action():
    heard = []
    report = evaluate(lambda messages: heard.append(messages) or "yes", "test:Echo", limit=1)
    assert report.envs[0].score.value == 1.0
    first = [{"role": "user", "content": "yes or no?"}]
    assert heard == [
        first,
        [*first, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "again?"}],
    ]


def test_what_a_function_does_to_its_messages_changes_no_record(tmp_path):
    def forgetful(messages):
        messages[0]["content"] = "gone"
        messages.clear()
        return "yes"

    evaluate(forgetful, "test:Echo", limit=1, out=str(tmp_path / "run"))
    (episode,) = read_jsonl(tmp_path / "run" / "trajectories.jsonl")
    assert [turn.observation for turn in episode.turns] == ["yes or no?", "again?"]
    assert episode.model.endswith("forgetful")


def test_coroutine_functions_share_one_event_loop_and_wait_at_once():
    loops, waiting, most = set(), [], []

    async def slow(messages):
        loops.add(asyncio.get_running_loop())
        waiting.append(1)
        while len(waiting) < 4:  # goes on when all four wait
            await asyncio.sleep(0.001)
        most.append(len(waiting))
        return "yes"

    assert evaluate(slow, "test:Echo", limit=4, concurrency=4).envs[0].score.value == 1.0
    assert len(loops) == 1 and min(most) >= 4


def test_a_coroutine_function_is_evaluated_where_an_event_loop_runs_already():
    async def agent(messages):
        await asyncio.sleep(0)
        return "yes"

    async def notebook():
        return evaluate(agent, "test:Echo", limit=2)

    assert asyncio.run(notebook()).envs[0].score.value == 1.0


def test_a_function_is_called_at_most_as_often_at_once_as_concurrency_says():
    running, most, both = [], [], threading.Barrier(2)

    def count(messages):
        running.append(1)
        most.append(len(running))
        both.wait(timeout=60)  # two calls are in progress
        running.pop()
        return "yes"

    assert evaluate(count, "test:Echo", limit=6, concurrency=2).envs[0].done == 6
    assert max(most) == 2


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("left", "left"),
        ({"role": "assistant", "content": "left"}, "left"),
        ({"content": None}, ""),
        (SimpleNamespace(model_dump=lambda **_: {"content": "left"}), "left"),  # a message of the openai client
        ({"content": None, "tool_calls": [CALL]}, {"role": "assistant", "content": None, "tool_calls": [CALL]}),
    ],
    ids=["text", "message", "no content", "object", "calls"],
)
def test_a_reply_is_a_text_or_a_message(said, text):
    reply = asked(lambda messages: said)
    assert reply.failure is None
    assert (reply.text if isinstance(text, str) else json.loads(reply.text)) == text


@pytest.mark.parametrize("said", [None, 3, {"content": 3}, {"content": "a", "refusal": 3}, {"content": {1, 2}}, []])
def test_what_is_no_reply_fails_the_episode_and_is_named(said):
    failure = asked(lambda messages: said).failure
    assert failure.startswith("FunctionFailed: ") and "it must return" in failure


def test_an_exception_fails_its_sample_alone_and_is_not_scored(tmp_path):
    def fragile(messages):
        if fragile.calls.pop(0):
            raise LookupError("no such city")
        return "yes"

    fragile.calls = [0, 0, 1, *[0] * 40]  # the second sample fails in its first turn
    report = evaluate(fragile, "test:Echo", limit=4, concurrency=1, retries=0, out=str(tmp_path / "run"))
    (scored,) = report.envs
    assert (scored.done, scored.failed, scored.score.value) == (3, 1, 1.0)
    (failed,) = read_jsonl(tmp_path / "run" / "failures.jsonl")
    assert "LookupError: no such city (test_function.py, line" in failed.failure and failed.stop_reason == "failed"


def test_a_function_that_always_fails_stops_the_run_with_its_text():
    def broken(messages):
        raise NameError("name 'clinet' is not defined")

    with pytest.raises(EndpointError, match=r"samples failed: FunctionFailed: .*'clinet' is not defined") as stopped:
        evaluate(broken, GAME, limit=100, retries=0)
    assert "server" not in str(stopped.value)


def test_tools_are_passed_to_a_function_with_that_parameter():
    def add(a: int, b: int) -> int:
        """Add numbers."""
        return a + b

    def agent(messages, tools):
        offered.append([each["function"]["name"] for each in tools])
        if messages[-1]["role"] == "tool":
            messages[-2]["tool_calls"].clear()  # which changes no record
            return f"yes {messages[-1]['content']}"
        return {"tool_calls": [{**CALL, "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}]}

    offered = []
    env = VectorEnv.of([lambda: ToolEnvWrapper(Echo(), [FunctionTool(add)], format="openai")])
    (episode,) = collect(env, FunctionPolicy(agent), episodes=1)
    assert offered[0] == ["add"] and episode.turns[0].tool_calls[0]["name"] == "add"
    assert episode.turns[0].message["tool_calls"][0]["id"] == "1"
    assert "3" in episode.turns[1].action
    with pytest.raises(BadValue, match="needs a parameter ``tools``"):
        collect(
            VectorEnv.of([lambda: ToolEnvWrapper(Echo(), [FunctionTool(add)], format="openai")]),
            FunctionPolicy(lambda messages: "no"),
            episodes=1,
        )


@pytest.mark.parametrize("policy", [Echo, 3, None, "my_agent"])
def test_a_class_is_no_function(policy):
    with pytest.raises(BadValue, match="a function from messages to a reply"):
        evaluate(policy, GAME, limit=1)
