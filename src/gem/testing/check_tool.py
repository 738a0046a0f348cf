"""What every tool promises, held against one: ``check_tool(MyTool, calls=[…])``."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from gem.errors import GemError
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.testing.report import Report, Result, Status
from gem.tools.base_tool import BaseTool, reads_text
from gem.tools.formats import FORMATS
from gem.tools.toolbox import Toolbox

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Broken(Exception):
    """A promise is; the message says how."""


class Unchecked(Exception):
    """It cannot be told whether a promise holds; the message says why."""


def check_tool(make: Callable[[], BaseTool], calls: Sequence[ToolCall] = ()) -> Report:
    """Check the promises of a tool.

    Args:
        make: builds one: a class, a function. Every check has one of its own.
        calls: that are expected to succeed, and to answer the same twice in a row in new episodes; without any, what
            concerns calls stays unchecked.

    Returns a report with one result per promise. Nothing of the tool's raises here.

    >>> class Nothing(BaseTool):
    ...     def functions(self):
    ...         return []
    >>> check_tool(Nothing).failed[0].name
    'functions'
    """
    start = time.monotonic()
    results = [_result(name, check, make, calls) for name, check in CHECKS.items()]
    return Report(getattr(make, "__name__", repr(make)), results, (), 0, time.monotonic() - start)


def _result(name: str, check: Callable[..., str | None], make: Callable[[], BaseTool], calls: Any) -> Result:
    promise = " ".join((check.__doc__ or "").split())
    status: Status = "passed"
    tools: list[BaseTool] = []

    def built() -> BaseTool:
        tools.append(make())
        return tools[-1]

    try:
        detail = check(built, calls) or ""
    except Unchecked as e:
        status, detail = "unchecked", str(e)
    except Broken as e:
        status, detail = "failed", str(e)
    except Exception as e:  # somebody else's code, which may raise anything
        status, detail = "failed", f"raised {type(e).__name__}: {e}"
    for tool in tools:
        try:
            tool.close()
        except Exception as e:  # as above
            status, detail = "failed", f"close() raised {type(e).__name__}: {e}"
    return Result(name, promise, status, detail)


def _functions(make: Callable[[], BaseTool], calls: Sequence[ToolCall]) -> None:
    """It has functions, with names, descriptions and schemas that are plain data; the same each time."""
    tool = make()
    if reads_text(tool):
        raise Unchecked("it reads the agent's text itself")
    functions = tool.functions()
    if not functions:
        raise Broken("functions() is empty")
    for function in functions:
        if not _NAME.fullmatch(function.name):
            raise Broken(f"{function.name!r} is not 1 to 64 letters, digits, _ or -")
        if not function.description.strip():
            raise Broken(f"{function.name} has no description")
        if function.parameters.get("type") != "object" or json.loads(json.dumps(function.parameters)) is None:
            raise Broken(f"the schema of {function.name} is not of type object")
    if tool.functions() != functions:
        raise Broken("functions() changed")
    if len({function.name for function in functions}) < len(functions):
        raise Broken("two functions have one name")
    if tool.tag is not None and tool.tag_argument not in functions[0].parameters.get("properties", {}):
        raise Broken(f"tag_argument {tool.tag_argument!r} is no argument of {functions[0].name}")


def _instructions(make: Callable[[], BaseTool], calls: Sequence[ToolCall]) -> None:
    """It says how to call it, in every format."""
    tool = make()
    if not tool.instruction_string().strip():
        raise Broken("instruction_string() is empty")
    for name, call_format in FORMATS.items():
        if not reads_text(tool) and not call_format.describe([tool]).strip():
            raise Broken(f"there are no instructions in the format {name}")


def _words(make: Callable[[], BaseTool], calls: Sequence[ToolCall]) -> None:
    """Words without a call are none."""
    for text in ("", "It is 4.", "\0\ud800💥", "<" * 1000):
        valid, *_ = make().execute_action(text)
        if valid:
            raise Broken(f"execute_action({text[:20]!r}) found a call")


def _answers(make: Callable[[], BaseTool], calls: Sequence[ToolCall]) -> str:
    """It answers calls, the same in a new episode."""
    tool = make()
    for call in _given(calls):
        tool.reset()
        first = _checked(tool.call(call))
        tool.reset()
        if tool.call(call) != first:
            raise Broken(f"{call} was answered differently in a new episode")
        if not first.ok:
            raise Broken(f"{call} was not answered: {first}")
    return f"{len(calls)} calls"


def _waits(make: Callable[[], BaseTool], calls: Sequence[ToolCall]) -> None:
    """acall() answers what call() does."""
    tool = make()
    for call in _given(calls):
        tool.reset()
        first = tool.call(call)
        tool.reset()
        if asyncio.run(tool.acall(call)) != first:
            raise Broken(f"acall({call}) answered differently")


def _refuses(make: Callable[[], BaseTool], calls: Sequence[ToolCall]) -> None:
    """Calls that fit its schema and make no sense are answered, and raise nothing but InfraError."""
    tool = make()
    if reads_text(tool):
        raise Unchecked("it reads the agent's text itself")
    box = Toolbox([tool])
    for function in tool.functions():
        values: list[Any] = ["", "x" * 10_000, "\0", "💥", -1, 0, 10**30, 1e308, [], {}, None, True]
        for value in values:
            arguments = {name: value for name in function.parameters.get("properties", {})}
            for job in box.jobs([ToolCall(function.name, arguments)], 1, ""):
                try:
                    _checked(box.perform([job])[0])
                except GemError:
                    continue  # a failure of the machinery may be, here as anywhere


def _spawns(make: Callable[[], BaseTool], calls: Sequence[ToolCall]) -> None:
    """spawn() builds another one like it, which answers the same."""
    tool = make()
    other = tool.spawn()
    try:
        if other is tool or type(other) is not type(tool):
            raise Broken(f"got {other!r} from {tool!r}")
        for call in calls:
            tool.reset()
            other.reset()
            if other.call(call) != tool.call(call):
                raise Broken(f"the other one answers {call} differently")
    finally:
        other.close()


def _states(make: Callable[[], BaseTool], calls: Sequence[ToolCall]) -> None:
    """own_state() is plain data, which another one like it takes."""
    tool, other = make(), make()
    tool.reset()
    for call in calls:
        tool.call(call)
    other.set_own_state(json.loads(json.dumps(tool.own_state())))
    if other.own_state() != tool.own_state():
        raise Broken("another one has another state after set_own_state()")


def _closes(make: Callable[[], BaseTool], calls: Sequence[ToolCall]) -> None:
    """close() is safe before any call, and twice."""
    tool = make()
    tool.close()
    tool.close()


CHECKS: dict[str, Callable[[Callable[[], BaseTool], Sequence[ToolCall]], str | None]] = {
    "functions": _functions,
    "instructions": _instructions,
    "words": _words,
    "answers": _answers,
    "waits": _waits,
    "refuses": _refuses,
    "spawns": _spawns,
    "states": _states,
    "closes": _closes,
}


def _given(calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
    if not calls:
        raise Unchecked("no calls were given")
    return calls


def _checked(result: Any) -> ToolResult:
    if not isinstance(result, ToolResult) or not isinstance(result.text, str):
        raise Broken(f"a call was answered by {result!r}, which is no ToolResult with a text")
    if result.error is not None and not isinstance(result.error, ToolErrorType):
        raise Broken(f"{result.error!r} is no ToolErrorType")
    return result
