"""check_tool(): test a tool against the BaseTool contract."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gem.errors import GemError
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.testing.check import Check, CheckFailed, CheckReport, Unchecked, check, exceptions_fail, run_checks
from gem.tools.base_tool import BaseTool, ToolSet, parses_text
from gem.tools.formats import FORMATS

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_tool(make: Callable[[], BaseTool], calls: Sequence[ToolCall] = ()) -> CheckReport:
    """Run every check on a tool.

    Args:
        make: a class or function that builds the tool. Every check builds its own instances.
        calls: calls that succeed and give the same result in every new episode. If empty, the checks that require
            calls are unchecked.

    Returns:
        A report with one result per check. Exceptions raised by the tool are reported as failures.

    >>> class Nothing(BaseTool):
    ...     def functions(self):
    ...         return []
    >>> check_tool(Nothing).failed[0].name
    'functions'
    """
    start = time.monotonic()
    harness = ToolHarness(make, calls)
    results = run_checks(CHECKS, harness, case=harness.case)
    return CheckReport(getattr(make, "__name__", repr(make)), results, (), 0, time.monotonic() - start)


class ToolHarness:
    """Builds the tools that a check uses, and closes them after the check.

    Args:
        make: a class or function that builds a tool.
        calls: calls that are expected to succeed.
    """

    def __init__(self, make: Callable[[], BaseTool], calls: Sequence[ToolCall]) -> None:
        self.calls = calls
        self._make = make
        self._tools: list[BaseTool] = []

    def build(self) -> BaseTool:
        self._tools.append(self._make())
        return self._tools[-1]

    def required_calls(self) -> Sequence[ToolCall]:
        """Return the calls. Raises Unchecked if no calls were given."""
        if not self.calls:
            raise Unchecked("no calls were given")
        return self.calls

    @contextmanager
    def case(self, check: Check[Any]) -> Iterator[None]:
        """Run one check, then close the tools built by the check. An exception raised by close() fails the check."""
        self._tools = []
        try:
            with exceptions_fail(check):
                yield
        finally:
            for tool in self._tools:
                try:
                    tool.close()
                except Exception as e:  # the tool may raise anything
                    raise CheckFailed(f"close() raised {type(e).__name__}: {e}") from e


@check("functions", "The tool has functions with names, descriptions and JSON schemas, the same at every call.")
def functions(harness: ToolHarness) -> None:
    tool = harness.build()
    if parses_text(tool):
        raise Unchecked("the tool parses the agent's text itself")
    functions = tool.functions()
    if not functions:
        raise CheckFailed("functions() is empty")
    for function in functions:
        if not _NAME.fullmatch(function.name):
            raise CheckFailed(f"{function.name!r} does not consist of 1 to 64 letters, digits, _ or -")
        if not function.description.strip():
            raise CheckFailed(f"{function.name} has no description")
        if function.parameters.get("type") != "object" or json.loads(json.dumps(function.parameters)) is None:
            raise CheckFailed(f"the schema of {function.name} is not of type object")
    if tool.functions() != functions:
        raise CheckFailed("functions() returned different values")
    if len({function.name for function in functions}) < len(functions):
        raise CheckFailed("two functions have the same name")
    if tool.tag is not None and tool.tag_argument not in functions[0].parameters.get("properties", {}):
        raise CheckFailed(f"tag_argument {tool.tag_argument!r} is not an argument of {functions[0].name}")


@check("instructions", "The tool has instructions for every call format.")
def instructions(harness: ToolHarness) -> None:
    tool = harness.build()
    if not tool.instruction_string().strip():
        raise CheckFailed("instruction_string() is empty")
    for name, call_format in FORMATS.items():
        if not parses_text(tool) and not call_format.describe([tool]).strip():
            raise CheckFailed(f"there are no instructions for the format {name}")


@check("plain-text", "Text without a call is not parsed as a call.")
def plain_text(harness: ToolHarness) -> None:
    for text in ("", "It is 4.", "\0\ud800💥", "<" * 1000):
        valid, *_ = harness.build().execute_action(text)
        if valid:
            raise CheckFailed(f"execute_action({text[:20]!r}) found a call")


@check("calls", "A call succeeds, with the same result in a new episode.")
def calls_succeed(harness: ToolHarness) -> str:
    tool = harness.build()
    for call in harness.required_calls():
        tool.reset()
        first = _checked(tool.call(call))
        tool.reset()
        if tool.call(call) != first:
            raise CheckFailed(f"{call} gave a different result in a new episode")
        if not first.ok:
            raise CheckFailed(f"{call} failed: {first}")
    return f"{len(harness.calls)} calls"


@check("acall", "acall() gives the same result as call().")
def acall(harness: ToolHarness) -> None:
    tool = harness.build()
    for call in harness.required_calls():
        tool.reset()
        first = tool.call(call)
        tool.reset()
        if asyncio.run(tool.acall(call)) != first:
            raise CheckFailed(f"acall({call}) gave a different result")


@check("bad-arguments", "Meaningless arguments that fit the schema give a result or raise InfraError.")
def bad_arguments(harness: ToolHarness) -> None:
    tool = harness.build()
    if parses_text(tool):
        raise Unchecked("the tool parses the agent's text itself")
    tools = ToolSet([tool])
    for function in tool.functions():
        values: list[Any] = ["", "x" * 10_000, "\0", "💥", -1, 0, 10**30, 1e308, [], {}, None, True]
        for value in values:
            arguments = {name: value for name in function.parameters.get("properties", {})}
            for planned in tools.plan([ToolCall(function.name, arguments)]):
                try:
                    _checked(tools.run([planned])[0])
                except GemError:
                    continue  # an infrastructure failure is not a violation of the contract


@check("spawn", "spawn() builds another tool of the same type that gives the same results.")
def spawn(harness: ToolHarness) -> None:
    tool = harness.build()
    other = tool.spawn()
    try:
        if other is tool or type(other) is not type(tool):
            raise CheckFailed(f"spawn() of {tool!r} returned {other!r}")
        for call in harness.calls:
            tool.reset()
            other.reset()
            if other.call(call) != tool.call(call):
                raise CheckFailed(f"the spawned tool gave a different result for {call}")
    finally:
        other.close()


@check("state", "own_state() is JSON-serializable, and another instance can restore it.")
def state(harness: ToolHarness) -> None:
    tool, other = harness.build(), harness.build()
    tool.reset()
    for call in harness.calls:
        tool.call(call)
    other.set_own_state(json.loads(json.dumps(tool.own_state())))
    if other.own_state() != tool.own_state():
        raise CheckFailed("the states differ after set_own_state()")


@check("close", "close() can be called before any call, and twice.")
def close(harness: ToolHarness) -> None:
    tool = harness.build()
    tool.close()
    tool.close()


CHECKS: tuple[Check[ToolHarness], ...] = (
    functions,
    instructions,
    plain_text,
    calls_succeed,
    acall,
    bad_arguments,
    spawn,
    state,
    close,
)


def _checked(result: Any) -> ToolResult:
    if not isinstance(result, ToolResult) or not isinstance(result.text, str):
        raise CheckFailed(f"a call returned {result!r}, not a ToolResult with a str text")
    if result.error is not None and not isinstance(result.error, ToolErrorType):
        raise CheckFailed(f"the error is {result.error!r}, not a ToolErrorType")
    return result
