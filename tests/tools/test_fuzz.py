"""Thousands of malformed calls per format: none raises or reaches the environment, and the counts are consistent."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from gem.core import Env, Step
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import BaseTool, Function
from gem.tools.tool_env_wrapper import ToolEnvWrapper

FORMATS = ("tags", "hermes", "openai", "react")
CASES = [
    *((name, 1000) for name in FORMATS),
    *(pytest.param(name, 10_000, marks=pytest.mark.exhaustive) for name in FORMATS),
]
REFUSED = {ToolErrorType.MALFORMED, ToolErrorType.EMPTY, ToolErrorType.UNKNOWN_TOOL, ToolErrorType.BAD_ARGUMENTS}


class Endless(Env):
    """Record all actions."""

    def reset(self, seed=None):
        super().reset(seed)
        self.state, self.heard = 0, []
        return "Go.", {}

    def step(self, action):
        assert isinstance(action, str)
        self.heard.append(action)
        return Step("heard")


class Python(BaseTool):
    tool_type, tag, tag_argument, fences = "python_code", "python", "code", ("python",)
    calls = 0

    def functions(self):
        code = {"type": "string"}
        schema = {"type": "object", "properties": {"code": code}, "required": ["code"], "additionalProperties": False}
        return [Function("python", "Run Python.", schema)]

    def call(self, call: ToolCall):
        self.calls += 1
        assert isinstance(call.arguments["code"], str)
        return ToolResult("ran", ToolErrorType.ERROR if "0" in call.arguments["code"] else None)


class Search(BaseTool):
    tool_type, tag, tag_argument = "search", "search", "query"
    calls = 0

    def functions(self):
        properties = {"query": {"type": "string"}, "topk": {"type": "integer", "minimum": 1}}
        schema = {"type": "object", "properties": properties, "required": ["query"], "additionalProperties": False}
        return [Function("search", "Search.", schema)]

    def call(self, call):
        self.calls += 1
        assert type(call.arguments.get("topk", 1)) is int
        return ToolResult("found", None)


def write(call_format: str, name: str, arguments: str) -> str:
    """Write a call in a format. The arguments are text, usually JSON."""
    if call_format == "tags":
        return f"<tool_call><tool_name>{name}</tool_name><arguments>{arguments}</arguments></tool_call>"
    if call_format == "hermes":
        return f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {arguments}}}\n</tool_call>'
    if call_format == "react":
        return f"Action: {name}\nAction Input: {arguments}"
    entry = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return json.dumps({"role": "assistant", "content": "", "tool_calls": [entry]})


def valid(call_format: str, rng: random.Random) -> str:
    name = rng.choice(["python", "search"])
    text = "".join(rng.choices("abc <>{}\"'\\\n√0", k=rng.randint(1, 12))) + "x"
    if call_format == "tags" and rng.random() < 0.5:
        return rng.choice([f"<python>{text}</python>", f"<search>{text}</search>", f"```python\n{text}\n```"])
    return write(call_format, name, json.dumps({"code" if name == "python" else "query": text}))


def break_json(call_format: str, rng: random.Random) -> str:
    arguments = [
        '{"code": }',
        '{"code": "x"',
        '{"code" "x"}',
        "{'code': 'x'}",
        '{"code": NaN}',
        "{,}",
        '{"a": 1}}',
        "{",
    ]
    return write(call_format, "python", rng.choice(arguments))


def misname(call_format: str, rng: random.Random) -> str:
    letters = list("python")
    rng.shuffle(letters)
    name = rng.choice(["pyton", "python2", "serach", "bash", "PYTHON", "p" * 500, "".join(letters) + "s"])
    return write(call_format, name, '{"code": "x"}')


def misfit(call_format: str, rng: random.Random) -> str:
    wrong = [
        *([], {}, {"code": 1}, {"code": None}, {"code": ["x"]}, {"cod": "x"}, {"code": "x", "timeout": 3}),
        *({"code": {"code": "x"}}, {"code": "\ud83d"}, {"code": ""}, {"code": "  "}, {"\udc00": 1, "code": "x"}),
    ]
    chosen = rng.choice(wrong[1:] if call_format == "react" else wrong)  # there, [] is a text like any other
    return write(call_format, "python", json.dumps(chosen))


def cut(call_format: str, rng: random.Random) -> str:
    """Cut a call within its arguments."""
    text = write(call_format, "python", json.dumps({"code": "x" * 20}))
    return text[: text.index("xx") + rng.randint(1, 18)]


BREAKS: list[Callable[[str, random.Random], str]] = [break_json, misname, misfit, cut]


def mutate(text: str, rng: random.Random) -> str:
    """Apply random edits: delete, double, swap or insert characters, and repeat parts."""
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(text) + 1), rng.randint(1, 6)
        part = text[at : at + length]
        put = rng.choice(["", part * 2, part[::-1], "".join(rng.choices("<>/{}[]:,\"'`\\n \n\0💥\ud800x0", k=length))])
        text = text[:at] + put + text[at + length :]
    return text


OPENERS = {"tags": ("<python>", "<search>", "<tool_call>"), "hermes": ("<tool_call>",), "react": ("Action: python\n",)}


def made(call_format: str) -> ToolEnvWrapper:
    env = ToolEnvWrapper(
        Endless(),
        [Python(), Search()],
        tool_reward=1.0,
        tool_success_reward=10.0,
        max_tool_uses=10**9,
        max_messages=10**9,
        format=call_format,
    )
    env.reset(seed=0)
    return env


def check_counts(env: ToolEnvWrapper, steps: list[Any]) -> None:
    """Check that all counters are consistent."""
    info = steps[-1][4]
    calls = [call for step in steps for call in step[4].get("tool_calls", [])]
    faults = Counter(call["fault"] for call in calls if call["fault"] is not None)
    performed = [call for call in calls if call["fault"] not in REFUSED]
    assert info["tool_faults"] == faults
    assert info["tool_use_counter"] == len(performed) == sum(tool.calls for tool in env.tools)
    assert info["tool_success_counter"] == sum(call["fault"] is None for call in calls)
    assert len(calls) == info["tool_use_counter"] + sum(faults[fault] for fault in REFUSED)
    assert len(env.heard) == sum(not step[4]["use_tool"] for step in steps)
    assert sum(step[1] for step in steps) == info["tool_use_counter"] + 10 * info["tool_success_counter"]


@pytest.mark.parametrize(("call_format", "count"), CASES)
def test_an_invalid_call_reaches_neither_environment_nor_tool(call_format, count):
    rng, env, steps = random.Random(f"broken {call_format}"), made(call_format), []
    for number in range(count):
        action = BREAKS[number % len(BREAKS)](call_format, rng)
        steps.append(step := env.step(action))
        assert step.info["use_tool"], action
        assert step.info["invalid"] in REFUSED, action
        assert step.observation
        assert (step.reward, step.terminated, step.truncated) == (0.0, False, False)
    assert env.heard == []
    assert len(env.tool_counts.errors) == 4
    check_counts(env, steps)


@pytest.mark.parametrize(("call_format", "count"), CASES)
def test_a_randomly_edited_call_is_handled(call_format, count):
    rng, env, steps = random.Random(f"edited {call_format}"), made(call_format), []
    for _ in range(count):
        action = mutate(valid(call_format, rng), rng)
        steps.append(step := env.step(action))
        if action.startswith(OPENERS.get(call_format, ('{"role": "assistant", "content": "", "tool_calls": [{',))):
            assert step.info["use_tool"], action
    check_counts(env, steps)
    assert env.tool_counts.successes > 10
    assert min(env.tool_counts.errors.get(fault, 0) for fault in ("malformed", "error")) > 2


@pytest.mark.parametrize("call_format", FORMATS)
def test_valid_calls_are_all_executed(call_format):
    rng, env = random.Random(f"valid {call_format}"), made(call_format)
    for _ in range(100):
        action = valid(call_format, rng)
        step = env.step(action)
        assert step.info["tool_calls"][0]["fault"] in (None, "error"), (action, step)
    assert env.heard == []


def test_messages_with_arbitrary_tool_calls_are_handled():
    rng, env, steps = random.Random(0), made("openai"), []
    values: list[Any] = [None, 1, "", "x", "{}", [], {}, {"code": "x"}, '{"code": "x"}', ["x"], True, float("nan")]
    for _ in range(1000):
        function = {key: rng.choice(values) for key in ("name", "arguments") if rng.random() < 0.8}
        if rng.random() < 0.5:
            function["name"] = rng.choice(["python", "search", "pyton"])
        entry = {"id": rng.choice(values), "function": rng.choice([function, function, function, *values])}
        entries = rng.choice([[entry], [entry, entry], entry, [rng.choice(values[:9])]])
        steps.append(step := env.step({"content": rng.choice([None, "", "x", []]), "tool_calls": entries}))
        assert step.info["use_tool"]
    assert env.heard == []
    check_counts(env, steps)
