"""A strict fake endpoint refuses what the strict servers refuse, and says why."""

from __future__ import annotations

import json
import re

import pytest

from gem.testing.fakes.openai_schema import problem

USER = {"role": "user", "content": "a"}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "2"}
FUNCTION = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def said(*calls, content=None):
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {})}


def named(name):
    return {**CALL, "function": {"name": name, "arguments": "{}"}}


def calling(arguments):
    return {**CALL, "function": {"name": "add", "arguments": arguments}}


def chat(*messages, **fields):
    return problem("/v1/chat/completions", json.dumps({"model": "m", "messages": messages, **fields}).encode())


def test_valid_requests_are_not_refused():
    options = {"temperature": 0.5, "max_tokens": 9, "stop": ["a"], "seed": 3, "tools": [FUNCTION]}
    assert chat({"role": "system", "content": "Play."}, USER, said(CALL), RESULT, **options) is None
    assert chat(USER, said(CALL, {**CALL, "id": "c2"}), {**RESULT, "tool_call_id": "c2"}, RESULT) is None
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    assert chat({"role": "user", "content": [image, {"type": "text", "text": "a"}]}) is None
    prompt = {"model": "m", "prompt": [1, 2], "logprobs": 1, "return_token_ids": True, "stop_token_ids": [3]}
    assert problem("/v1/completions", json.dumps(prompt).encode()) is None


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "length >= 1"),
        ([{"role": "user"}], "content"),
        ([{"role": "user", "content": " "}], r"regex '\\\\S'"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], r"regex '\\\\S'"),
        ([{"role": "user", "content": [{"type": "image", "image": "x"}]}], "'image'"),
        ([{"role": "user", "content": "\ud800"}], "malformed|truncated"),
        ([{**USER, "id": 3}], "unknown field `id`"),
        ([{"role": "function", "content": "a"}], "'function'"),
        ([USER, said()], "either content or tool_calls"),
        ([USER, said(content="")], r"regex '\\\\S'"),
        ([USER, {**said(content="a"), "tool_calls": []}], "length >= 1"),
        ([USER, said(*({**CALL, "id": f"c{i}"} for i in range(129)))], "length <= 128"),
        ([USER, said("x"), RESULT], "tool_calls"),
        ([USER, said({**CALL, "id": None}), RESULT], r"tool_calls\[0\].id"),
        ([USER, said({**CALL, "id": ""}), RESULT], r"tool_calls\[0\].id"),
        ([USER, said(named("")), RESULT], "name"),
        ([USER, said(named("a.b")), RESULT], "name"),
        ([USER, said(named("x" * 65)), RESULT], "name"),
        ([USER, said(calling({})), RESULT], "arguments"),
        ([USER, said(calling("[1]")), RESULT], "Expected `object`"),
        ([USER, said(calling('{"a": ')), RESULT], "truncated"),
        ([USER, said(calling('{}""')), RESULT], "trailing"),
        ([USER, said(calling('{"a": NaN}')), RESULT], "malformed"),
        ([USER, said(CALL)], "must be followed by tool messages .*: c1"),
        ([USER, said(CALL), USER, RESULT], "must be followed by tool messages .*: c1"),
        ([USER, said(CALL, {**CALL, "id": "c2"}), RESULT, USER], "must be followed by tool messages .*: c2"),
        ([USER, said(CALL, CALL), RESULT, RESULT], "ids must be unique: 'c1'"),
        ([USER, said(CALL), RESULT, said(CALL), RESULT], "ids must be unique: 'c1'"),
        ([USER, RESULT], r"messages\[1\]: .* must be a response"),
        ([USER, said(CALL), RESULT, RESULT], r"messages\[3\]: .* must be a response"),
        ([USER, said(CALL), {"role": "tool", "content": "2"}], "tool_call_id"),
    ],
)
def test_a_conversation_is_refused(messages, why):
    assert re.search(why, chat(*messages) or "accepted")


@pytest.mark.parametrize(
    "field",
    [{"tool_role": "user"}, {"max_tokens": 0}, {"temperature": "1"}, {"temperature": 3}, {"stop": []}, {"tools": []}],
    ids=str,
)
def test_a_field_is_refused(field):
    assert chat(USER, **field) is not None


def test_a_strict_endpoint_answers_400_and_keeps_the_reason():
    pytest.importorskip("aiohttp")
    from gem.policies.endpoint import Endpoint, RequestRefused
    from gem.testing.fakes import FakeEndpoint

    with FakeEndpoint(["a"], strict=True) as server, Endpoint(server.url, "m", retries=0) as endpoint:
        assert endpoint.complete([USER]).text == "a"
        with pytest.raises(RequestRefused, match=r"400.*either content or tool_calls"):
            endpoint.complete([USER, said()])
    (why,) = server.refused
    assert "either content or tool_calls" in why and len(server.requests) == 2
