"""Messages, tool calls and tool results."""

import json

import pytest

from gem.messages import ToolCall, ToolErrorType, ToolResult, assistant, tool, user, without_thinking


@pytest.mark.parametrize(("build", "role"), [(user, "user"), (assistant, "assistant"), (tool, "tool")])
def test_a_message_has_a_role_and_a_content(build, role):
    assert build("hello") == {"role": role, "content": "hello"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hello.", "Hello."),
        ("<think>a</think> b", "b"),
        ("a</think>b", "b"),
        ("<think>a", ""),
        ("</think>a<think>b", ""),
    ],
)
def test_an_answer_says_what_follows_its_thinking(text, said):
    assert without_thinking(text) == said


def test_a_result_without_an_error_is_ok():
    assert ToolResult("3").ok
    assert not any(ToolResult("failed", error).ok for error in ToolErrorType)


def test_an_error_type_is_formatted_and_serialized_as_its_value():
    assert f"{ToolErrorType.BAD_ARGUMENTS}" == str(ToolErrorType.BAD_ARGUMENTS) == "bad_arguments"
    assert json.dumps({"invalid": ToolErrorType.TIMEOUT}) == '{"invalid": "timeout"}'


def test_calls_are_compared_by_name_arguments_and_id():
    assert ToolCall("add", {"a": 1}) == ToolCall("add", {"a": 1}, id=None)
    assert ToolCall("add", {"a": 1}) != ToolCall("add", {"a": 1}, id="call-1")
