"""What a model wrote is sent back as every server accepts it; a valid conversation is sent as it is."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gem.core import Env, Step
from gem.errors import GraderError
from gem.messages import assistant, tool, user
from gem.policies.chat_requests import as_sent
from gem.rollout import play_seeds
from gem.testing.fakes.openai_schema import problem
from gem.tools.formats import OpenAIFormat
from gem.tools.function_tool import FunctionTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.trajectory import Trajectory
from gem.vector import VectorEnv

RAW = '{"path": "/tmp/a", "text": "He said "hello" and left"}'


def call(id: Any = "c1", name: Any = "add", arguments: Any = '{"a": 1}', **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def said(*calls: Any, content: Any = None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **more}


def result(text: str = "2", id: Any = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def refusal(messages: list[dict[str, Any]]) -> str | None:
    return problem("/v1/chat/completions", json.dumps({"model": "m", "messages": messages}).encode())


VALID = [
    [user("a")],
    [{"role": "system", "content": "Play."}, user("a"), assistant("b"), user("c")],
    [user("a"), said(call()), result(), assistant("2")],
    [user("a"), said(call("functions.add:0", extra_content={"s": "x"})), result("1", "functions.add:0"), user("next")],
    [user("a"), said(call(arguments=' {"b": [1.0]}'), content="Let me see.", reasoning_content="hm"), result()],
    [user("a"), said(call("call00000")), result("1", "call00000"), said(call("call00001")), result("2", "call00001")],
    [{"role": "user", "content": [{"type": "text", "text": "a"}]}, assistant("b"), user("c"), user("d")],
]


@pytest.mark.parametrize("messages", VALID)
def test_a_valid_conversation_is_sent_unchanged(messages):
    before = deepcopy(messages)
    assert as_sent(messages) == messages == before
    assert refusal(messages) is None


# Reports of conversations that a server refused: the messages, the messages expected, and who reported it.
REPORTS = {
    "quotes without escapes: vllm 43995, NVIDIA-NeMo/Gym 3474": (
        [said(call(arguments=RAW)), result("The call is malformed.")],
        [said(call(arguments=json.dumps({"invalid": RAW}))), result("The call is malformed.")],
    ),
    "arguments cut off: codegraff 752, kimi-cli 2165": (
        [said(call(arguments='{"a": ')), result()],
        [said(call(arguments='{"invalid": "{\\"a\\": "}')), result()],
    ),
    "no arguments: javascriptmusic 208, vllm 19419": (
        [said(call(arguments="")), result(), said(call("c2", arguments=None)), result(id="c2")],
        [said(call(arguments="{}")), result(), said(call("c2", arguments="{}")), result(id="c2")],
    ),
    "arguments that are an array: langchain 35990": (
        [said(call(arguments="[1]")), result()],
        [said(call(arguments='{"invalid": "[1]"}')), result()],
    ),
    "text after the arguments: vllm 43995": (
        [said(call(arguments='{}""')), result()],
        [said(call(arguments='{"invalid": "{}\\"\\""}')), result()],
    ),
    "arguments that are an object: greger.el 60": (
        [said(call(arguments={"a": 1})), result()],
        [said(call()), result()],
    ),
    "NaN and half a character, which llama.cpp does not parse: llama.cpp 25583": (
        [said(call(arguments='{"a": NaN}'), call("c2", arguments='{"a": "\\ud800"}')), result(), result(id="c2")],
        [
            said(
                call(arguments='{"invalid": "{\\"a\\": NaN}"}'),
                call("c2", arguments='{"invalid": "{\\"a\\": \\"\\\\ud800\\"}"}'),
            ),
            result(),
            result(id="c2"),
        ],
    ),
    "one id for two calls: openclaw 47136, anthropic-sdk-csharp 53": (
        [said(call(), call()), result("1"), result("2")],
        [said(call(), call("call00001")), result("1"), result("2", "call00001")],
    ),
    "the id of an earlier call: oh-my-pi 2055": (
        [said(call()), result("1"), said(call()), result("2")],
        [said(call()), result("1"), said(call("call00001")), result("2", "call00001")],
    ),
    "an empty id, a number and none: mlx-lm 1375": (
        [said(call(""), call(7), call(None)), result("1", ""), result("2", 7), tool("3")],
        [
            said(call("call00000"), call("7"), call("call00002")),
            result("1", "call00000"),
            result("2", "7"),
            result("3", "call00002"),
        ],
    ),
    "an id with a signature: LiteLLM, which wants it back": (
        [said(call("call_1__thought__" + "x" * 900)), result("1", "call_1__thought__" + "x" * 900)],
        [said(call("call_1__thought__" + "x" * 900)), result("1", "call_1__thought__" + "x" * 900)],
    ),
    "an empty name: continue 9784, TanStack/ai 532": (
        [said(call(name="")), result(), said(call("c2", name=None)), result(id="c2")],
        [said(call(name="invalid")), result(), said(call("c2", name="invalid")), result(id="c2")],
    ),
    "an invented name: mcp-use 90, gptscript 656": (
        [said(call(name="google.search: now!")), result(), said(call("c2", name="x" * 80)), result(id="c2")],
        [said(call(name="google_search__now_")), result(), said(call("c2", name="x" * 64)), result(id="c2")],
    ),
    "an empty list of calls: openai-node 1341, home-assistant 118577": ([said(content="a")], [assistant("a")]),
    "no text and no call: OpenHands 8685, AstrBot 7200, kimi-code 1985": (
        [{"role": "assistant", "content": None}, user("b"), assistant(""), user("c")],
        [assistant("(empty)"), user("b"), assistant("(empty)"), user("c")],
    ),
    "white space: opencode 31259, claude-code 23440": (
        [assistant("\n\n"), user(" "), said(call(), content="\n\n"), result("")],
        [assistant("(empty)"), user("(empty)"), said(call()), result("(empty)")],
    ),
    "an empty text beside a call: litellm 42186": ([said(call(), content=""), result()], [said(call()), result()]),
    "an empty part: mtga 68": (
        [{"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "b"}]}],
        [{"role": "user", "content": [{"type": "text", "text": "b"}]}],
    ),
    "a call that is not answered: agno 3105, dify 32222, qwen-code 606": (
        [said(call(), content="So:"), user("No guess found.")],
        [
            assistant(
                'So:\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
            ),
            user("No guess found."),
        ],
    ),
    "one of two calls answered: crush 3408, adk-python 417": (
        [said(call(), call("c2")), result()],
        [said(call(), content='<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'), result()],
    ),
    "a result without call: morphic 136, OpenManus 744": ([assistant("b"), result("2")], [assistant("b"), user("2")]),
    "two results for one call: Newelle 425": (
        [said(call()), result("1"), result("2")],
        [said(call()), result("1"), user("2")],
    ),
    "a message between call and result: rivet 487": (
        [said(call()), user("b"), result("1")],
        [said(call()), result("1"), user("b")],
    ),
    "reasoning that is missing beside a call: GitNexus 43, pi 4178": (
        [said(call(), reasoning_content="hm"), result(), said(call("c2"), reasoning_content=""), result(id="c2")],
        [said(call(), reasoning_content="hm"), result(), said(call("c2"), reasoning_content=" "), result(id="c2")],
    ),
    "reasoning without a call: deepseek-reasoner": (
        [{**assistant("b"), "reasoning_content": "hm", "thinking": "hm"}, user("c")],
        [assistant("b"), user("c")],
    ),
    "calls that are no objects": (
        [said("x", None, {"id": "c1", "name": "add"}), tool("1"), tool("2"), tool("3")],
        [
            said(
                call("call00000", "invalid", '{"invalid": "\\"x\\""}'),
                call("call00001", "invalid", '{"invalid": "null"}'),
                call("c1", "invalid", '{"id": "c1", "name": "add"}'),
            ),
            result("1", "call00000"),
            result("2", "call00001"),
            result("3", "c1"),
        ],
    ),
}


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_what_servers_refused_is_sent_as_they_accept_it(report):
    written, expected = deepcopy(report)
    sent = as_sent([user("task"), *written])
    expected = [{name: value for name, value in message.items() if value != []} for message in expected]
    assert sent == [user("task"), *expected]
    assert refusal(sent) is None and as_sent(sent) == sent
    assert written == report[0]  # the record keeps what the model wrote


def test_results_of_calls_in_the_text_have_the_role_asked_for():
    messages = [user("a"), assistant("<add>1 1</add>"), tool("2")]
    assert as_sent(messages)[-1] == user("2") and as_sent(messages, "tool")[-1] == tool("2")
    assert as_sent([user("a"), said(call(None)), tool("2")], "tool")[-1] == result("2", "call00000")


@pytest.mark.parametrize(
    ("name", "sent"), [("9lives", "_9lives"), ("-x", "_-x"), (5, "_5"), ("_a", "_a"), ("", "invalid")]
)
def test_the_name_of_a_function_begins_as_gemini_wants_it(name, sent):
    messages = as_sent([{"role": "user", "content": "?"}, said(call(name=name)), {**result(), "tool_call_id": "c1"}])
    assert messages[1]["tool_calls"][0]["function"]["name"] == sent


def test_a_message_has_at_most_128_calls():
    calls = [call(f"c{number}") for number in range(5000)]
    sent = as_sent([user("a"), said(*calls), *(result("x", each["id"]) for each in calls), user("b")])
    assert sent == [user("a"), said(*calls[:128]), *(result("x", each["id"]) for each in calls[:128]), user("b")]


texts = st.sampled_from(["", " \n", "a", "\\boxed{7}", "\ud800", "null"])
ids = st.sampled_from(
    ["c1", "c2", "", " ", "call00000", "call00001", "a b", "x" * 20_000, 0, 1, True, None, 1.5, [], {}]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
arguments = st.sampled_from(['{"a": 1, "b": 2}', "{}", "", " ", '{"a": ', "[1]", '{}""', "NaN", "\ud800", '{"a": NaN}'])
functions = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["add", "", " add ", "a.b c", "é", "x" * 70, None, 3]) | values,
        "arguments": arguments | values,
        "parameters": values,
    },
)
calls = st.fixed_dictionaries(
    {}, optional={"id": ids, "type": st.sampled_from(["function", "custom", None]), "function": functions | values}
)
kept = {"reasoning_content": texts, "thinking": texts, "reasoning_details": st.lists(values, max_size=1)}
conversations = st.one_of(
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": texts | st.none()},
        optional={"tool_calls": st.lists(calls | values, max_size=4) | values, **kept},
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "content": texts}, optional={"tool_call_id": ids}),
    st.fixed_dictionaries({"role": st.just("user"), "content": texts}),
)


def check_what_is_sent(messages):
    sent = as_sent([user("task"), *messages])
    # as Endpoint writes it, which replaces halves of characters
    text = json.dumps({"model": "m", "messages": sent}, ensure_ascii=False)
    assert problem("/v1/chat/completions", text.encode("utf-8", "replace")) is None
    assert [m["content"] for m in sent if m["role"] == "user"].count("task") == 1


@settings(max_examples=300, deadline=None)
@given(st.lists(conversations, max_size=8))
def test_no_conversation_is_refused(messages):
    check_what_is_sent(messages)


def add(a: int, b: int) -> str:
    """Adds."""
    return "" if a == b else str(a + b)


class Talk(Env):
    """Five turns, whatever is said. ``first``: the environment itself answers the first of the native calls."""

    def __init__(self, first: bool = False) -> None:
        super().__init__()
        self.first = first

    def reset(self, seed=None):
        super().reset(seed)
        self.state = 5
        return "task", {}

    def step(self, action):
        self.state -= 1
        done = self.state == 0
        if self.first and action.startswith('{"role"'):  # a message as JSON
            id = next((each.get("id") for each in json.loads(action)["tool_calls"] if isinstance(each, dict)), None)
            if isinstance(id, str):
                return Step([result("2", id), user("next")], 0.0, terminated=done)
        return Step("" if len(action) % 2 else f"{action}?", 0.0, terminated=done)


def with_tools(call_format: Any) -> Env:
    return ToolEnvWrapper(Talk(), [FunctionTool(add)], format=call_format, max_tool_uses=3)


STYLES = {
    "no tools": Talk,
    "native": partial(with_tools, OpenAIFormat(prompt=False)),
    "native, listed": partial(with_tools, "openai"),
    **{name: partial(with_tools, name) for name in ("hermes", "tags", "react")},
    "the first call": partial(Talk, first=True),
}


@pytest.fixture(scope="module")
def play():
    """Return a function that plays an episode against a strict server, whose replies have these bodies."""
    pytest.importorskip("aiohttp")
    from gem.policies import Endpoint, EndpointPolicy
    from gem.testing.fakes import Answer, FakeEndpoint

    bodies: list[str] = []
    vec_envs = {style: VectorEnv.of([make], "disabled") for style, make in STYLES.items()}

    def play(style: str, replies: list[str]) -> Trajectory:
        bodies[:] = replies
        server.refused.clear()
        (played,) = play_seeds(vec_envs[style], EndpointPolicy(endpoint), [0])
        assert server.refused == [] and played.failure is None
        return played

    server = FakeEndpoint(lambda request: Answer(body=bodies.pop(0)), strict=True)
    with server, Endpoint(server.url, "m", retries=0) as endpoint:
        yield play
    for vec_env in vec_envs.values():
        vec_env.close()


def body_of(message: dict[str, Any]) -> str:
    return json.dumps({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]})


written = st.sampled_from(
    [
        *("", " ", "7", "\\boxed{7}", "\ud800", "Action: add\nAction Input: {", "<tool_call>", "```python\n1"),
        *('<tool_call>{"name": "add", "arguments": {"a": 1, "b": 1}}</tool_call>', "<add>1</add>", '{"tool_calls": 3'),
    ]
)
part = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "reasoning", "image", None, 3])},
    optional={"text": written, "thinking": written | st.just([{"type": "text", "text": "hm"}]), "summary": values},
)
replies = st.fixed_dictionaries(
    {"content": written | st.none() | st.lists(part | written, max_size=3)},
    optional={"tool_calls": st.lists(calls | values, max_size=3) | values, "reasoning": values, **kept},
).map(body_of)
episodes = st.lists(replies, min_size=20, max_size=20)  # more than an episode has turns


@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=10, deadline=None)
@given(episodes)
def test_no_request_of_an_episode_is_refused(play, style, replies):
    play(style, replies)


@pytest.mark.exhaustive
@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=600, deadline=None)
@given(episodes)
def test_no_request_after_20_000_replies_is_refused(play, style, replies):
    play(style, replies)


def test_the_record_keeps_what_the_model_wrote(play):
    wrote = [call("c1", "add two", "[1]"), "x"]
    played = play("native", [body_of({"content": None, "tool_calls": wrote})] + 19 * [body_of({"content": "7"})])
    assert played.turns[0].message == {"role": "assistant", "content": None, "tool_calls": wrote}
    assert json.loads(played.turns[0].action)["tool_calls"] == wrote
    assert played.turns[0].invalid == "malformed"


@pytest.mark.parametrize("text", ["", " \n", "\ud800", "no verdict", "{}"])
def test_a_judge_or_a_customer_that_writes_anything_gets_valid_requests(text):
    pytest.importorskip("aiohttp")
    from gem.graders.judge import Judge
    from gem.policies import Endpoint
    from gem.policies.customer import ModelCustomer
    from gem.testing.fakes import Answer, FakeEndpoint

    named = call(name="get my data", arguments="{}")
    verdict, calls = {"content": text}, {"content": text, "tool_calls": [named]}
    answers = [Answer(body=body_of(message)) for message in (verdict, verdict, calls, {"content": "a"})]
    with FakeEndpoint(answers, strict=True) as server:
        with Endpoint(server.url, "m", retries=0) as endpoint, pytest.raises(GraderError):
            Judge(endpoint=endpoint).grade("7", "7")
        customer = ModelCustomer({"base_url": server.url, "model": "m", "retries": 0})
        schema = {"type": "function", "function": {"name": "data", "description": "", "parameters": {}}}
        events = [{"by": "agent", "say": text}]
        customer.turn("You are Ada.", events, [schema], lambda name, arguments: (text, False))
        customer.close()
    assert server.refused == [] and len(server.requests) == 4
