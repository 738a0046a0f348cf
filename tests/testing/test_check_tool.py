"""check_tool(): a correct tool passes, and each deliberate defect is found by its check."""

from __future__ import annotations

import pytest

from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.testing.check_tool import CHECKS, check_tool
from gem.tools.base_tool import BaseTool, Function
from gem.tools.function_tool import FunctionTool
from gem.tools.python.tool import PythonCodeTool


def shout(word: str, times: int = 1) -> str:
    """Say a word, loudly."""
    return word.upper() * times


CALL = ToolCall("shout", {"word": "hi"})
SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


class Shout(BaseTool):
    tag, tag_argument = "shout", "word"

    def functions(self):
        return [Function("shout", "Say it loudly.", SCHEMA)]

    def call(self, call):
        return ToolResult(call.arguments["word"].upper())


def test_correct_tools_pass_every_check():
    for make, calls in [
        (Shout, [CALL]),
        (lambda: FunctionTool(shout), [CALL]),
        (PythonCodeTool, [ToolCall("python", {"code": "print(1)"})]),
    ]:
        report = check_tool(make, calls)
        assert report.ok, report.to_text()
        assert [result.name for result in report.results] == [check.name for check in CHECKS]
        assert not report.unchecked


def test_checks_that_need_calls_are_unchecked_without_any():
    report = check_tool(Shout)
    assert report.ok
    assert [result.name for result in report.unchecked] == ["calls", "acall"]


def broken(**methods):
    return type("Bad", (Shout,), methods)


def counting(self, call):
    self.count = getattr(self, "count", 0) + 1
    return ToolResult(str(self.count))


async def otherwise(self, call):
    return ToolResult("other")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (broken(functions=lambda self: []), "functions"),
        (broken(functions=lambda self: [Function("a b", "x", SCHEMA)]), "functions"),
        (broken(functions=lambda self: [Function("shout", " ", SCHEMA)]), "functions"),
        (broken(functions=lambda self: [Function("shout", "x", {"type": "string"})]), "functions"),
        (broken(tag_argument="words"), "functions"),
        (broken(instruction_string=lambda self: ""), "instructions"),
        (broken(execute_action=lambda self, action: (True, False, "", "")), "plain-text"),
        (broken(call=counting), "calls"),
        (broken(call=lambda self, call: ToolResult("no", ToolErrorType.ERROR)), "calls"),
        (broken(call=lambda self, call: "text"), "calls"),
        (broken(acall=otherwise), "acall"),
        (broken(call=lambda self, call: ToolResult(call.arguments["word"][5])), "bad-arguments"),
        (broken(spawn=lambda self: self), "spawn"),
        (broken(own_state=lambda self: {"id": id(self)}), "state"),
        (broken(own_state=lambda self: {1, 2}), "state"),
        (broken(close=lambda self: 1 / 0), "close"),
    ],
)
def test_each_defect_fails_its_check(make, name):
    report = check_tool(make, [CALL])
    assert name in {result.name for result in report.failed}, report.to_text()
