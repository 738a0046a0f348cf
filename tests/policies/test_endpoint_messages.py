"""The conversation that EndpointPolicy sends: messages and their roles."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="needs the extra [eval]")

from gem.errors import BadValue
from gem.messages import assistant, tool, user
from gem.policies import Request
from gem.policies.endpoint import Endpoint, EndpointPolicy
from gem.trajectory import Turn

TURNS = [Turn("rules", "print(1)"), Turn("1", "2", role="tool"), Turn([tool("a"), user("b")], "c")]


def sent(request: Request, **kwargs: Any) -> list[dict[str, Any]]:
    return EndpointPolicy(Endpoint("http://127.0.0.1/v1", "m"), **kwargs).messages(request)


def request(observation: Any, **kwargs: Any) -> Request:
    return Request(observation, [], (0, 0, 3), lambda: "", TURNS, **kwargs)


def test_tool_results_become_user_messages():
    said = [user("rules"), assistant("print(1)"), user("1"), assistant("2"), user("a"), user("b"), assistant("c")]
    assert sent(request("4", role="tool"), system="Play.") == [{"role": "system", "content": "Play."}, *said, user("4")]
    calls = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]
    called = {"role": "assistant", "content": None, "tool_calls": calls}
    answer = {"role": "tool", "content": "4", "tool_call_id": "c1"}  # this one does answer a call
    assert sent(Request([answer], [], (0, 0, 1), str, [Turn("a", "", message=called)])) == [user("a"), called, answer]


def test_tool_results_have_the_role_tool_on_request():
    said = [user("rules"), assistant("print(1)"), tool("1"), assistant("2"), tool("a"), user("b"), assistant("c")]
    assert sent(request("4", role="tool"), tool_role="tool") == [*said, tool("4")]
    assert sent(request("4"), tool_role="tool") == [*said, user("4")]
    with pytest.raises(BadValue, match=r"tool_role .*'tool', 'user'.*'ipython'"):
        sent(request("4"), tool_role="ipython")


def test_dropped_turns_are_not_sent():
    assert sent(request("4", dropped=2)) == [user("rules"), assistant("c"), user("4")]


def test_an_address_is_no_client():
    with pytest.raises(BadValue, match=r"such as Endpoint\('http://.*', 'model'\), got 'http://localhost:8000'"):
        EndpointPolicy("http://localhost:8000")
