"""A tool out of a typed Python function, in one line."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from typing import Any

from gem.errors import BadValue, InfraError
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import BaseTool, Function
from gem.tools.schema import hints_of, schema_of, summary

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class FunctionTool(BaseTool):
    """Calls a function of yours: its type hints are the schema, its docstring the description.

    What the function raises is told to the agent by its last line, as a fault; an InfraError (ToolError) goes through.
    The tools of all environments call the same function: where it keeps a state of an episode, hand a factory to the
    wrapper instead.

    Args:
        function: plain or ``async``; its parameters have names, and types that JSON can hold.
        name: by which it is called; None is the function's own.
        description: for the agent; None is the docstring's first part.
        tag: in the published format, ``<tag>…</tag>`` calls it with its first argument. None for no tag.
        concurrent: whether the calls of one message may run at the same time.

    Raises BadValue for a name that is none, and a parameter that cannot be given by name or has no JSON Schema.

    >>> def add(a: int, b: int = 1) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> FunctionTool(add).call(ToolCall("add", {"a": 2})).text
    '3'
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        tag: str | None = None,
        concurrent: bool = False,
    ) -> None:
        super().__init__()
        self.function, self.tag, self.concurrent = function, tag, concurrent
        self._hints = hints_of(function)
        name = function.__name__ if name is None else name
        if not _NAME.fullmatch(name):
            raise BadValue(f"name= of a tool is 1 to 64 letters, digits, _ or -, got {name!r}")
        own = Function(name, summary(function) if description is None else description, schema_of(function))
        self._functions = [own]
        self.tool_type = own.name
        self.tag_argument = next(iter(own.parameters["properties"]), "")

    def functions(self) -> list[Function]:
        return self._functions

    def call(self, call: ToolCall) -> ToolResult:
        return self._answer(call, lambda given: _finished(self.function(**given)))

    async def acall(self, call: ToolCall) -> ToolResult:
        if not inspect.iscoroutinefunction(self.function):
            return await asyncio.to_thread(self.call, call)
        given = self._given(call)
        if isinstance(given, ToolResult):
            return given
        try:
            return ToolResult(_text(await self.function(**given)))
        except InfraError:
            raise
        except Exception as e:  # the function is somebody else's; what it raises is told to the agent
            return _failed(e)

    def _answer(self, call: ToolCall, run: Callable[[dict[str, Any]], Any]) -> ToolResult:
        given = self._given(call)
        if isinstance(given, ToolResult):
            return given
        try:
            return ToolResult(_text(run(given)))
        except InfraError:
            raise
        except Exception as e:  # as above
            return _failed(e)

    def _given(self, call: ToolCall) -> dict[str, Any] | ToolResult:
        """The arguments, each of the type that the function names."""
        import msgspec

        try:
            return {name: msgspec.convert(value, self._hints.get(name, Any)) for name, value in call.arguments.items()}
        except msgspec.ValidationError as e:
            return ToolResult(f"The arguments of {call.name} do not fit: {e}", ToolErrorType.BAD_ARGUMENTS)


def _finished(value: Any) -> Any:
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def _text(value: Any) -> str:
    """A text as it is, plain data as JSON, whatever else as Python writes it."""
    import msgspec

    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return str(value)


def _failed(error: Exception) -> ToolResult:
    timed_out = isinstance(error, (TimeoutError, asyncio.TimeoutError))
    fault = ToolErrorType.TIMEOUT if timed_out else ToolErrorType.ERROR
    return ToolResult(f"{type(error).__name__}: {error}".rstrip(": "), fault)
