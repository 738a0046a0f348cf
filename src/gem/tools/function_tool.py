"""FunctionTool: build a tool from a typed Python function.

The type hints define the JSON Schema of the arguments, and the docstring becomes the description.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from gem.errors import BadValue, InfraError
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.arguments import Validator, conversion_error, names_error
from gem.tools.base_tool import BaseTool, Function

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SECTION = re.compile(r"[A-Z][a-z]+:")
_ARGS_HEADINGS = ("Args:", "Arguments:", "Parameters:")
_ARGS_ENTRY = re.compile(r"\s+\**(\w+)(?:\s*\([^)]*\))?:\s*(.*)")


class FunctionTool(BaseTool):
    """A tool that calls a Python function.

    If the function raises an exception, the result of the call is an error with the exception's message. An InfraError
    (such as ToolError) propagates to the caller instead. All environments call the same function. To keep state per
    episode, pass ToolEnvWrapper a callable that builds a new tool.

    Args:
        function: a plain or ``async`` function. All parameters must be accepted by name, and their type hints must have
            a JSON Schema.
        name: the name that the agent uses; None for the name of the function.
        description: the description for the agent; None for the docstring up to its first section.
        tag: name of a tag, so that in the published format ``<tag>…</tag>`` calls the function with the enclosed text
            as the first argument. None for no tag.
        concurrent: whether the calls of one message may run at the same time.

    Raises:
        BadValue: the name is invalid, the type hints cannot be resolved, or a parameter cannot be passed by name or has
            a type without a JSON Schema.

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
        name = function.__name__ if name is None else name
        if not _NAME.fullmatch(name):
            raise BadValue(f"name= of a tool is 1 to 64 letters, digits, _ or -, got {name!r}")
        hints = _type_hints(function)
        schema = _schema_of(function, hints)
        self._functions = [Function(name, _summary(function) if description is None else description, schema)]
        self._argument_struct = _argument_struct(schema["properties"], hints)
        self.tool_type = name
        self.tag_argument = next(iter(schema["properties"]), "")

    def functions(self) -> list[Function]:
        return self._functions

    def argument_validator(self, function: Function) -> Validator:
        def validate(arguments: Mapping[str, Any]) -> str:
            converted = names_error(arguments, function.parameters) or self._converted(arguments)
            return converted if isinstance(converted, str) else ""

        return validate

    def call(self, call: ToolCall) -> ToolResult:
        converted = self._converted(call.arguments)
        if isinstance(converted, str):
            return ToolResult(f"Invalid arguments for {call.name}: {converted}", ToolErrorType.BAD_ARGUMENTS)
        try:
            value = self.function(**converted)
            return ToolResult(_to_text(asyncio.run(value) if inspect.iscoroutine(value) else value))
        except Exception as e:  # user code may raise anything
            return _error_result(e)

    async def acall(self, call: ToolCall) -> ToolResult:
        if not inspect.iscoroutinefunction(self.function):
            return await asyncio.to_thread(self.call, call)
        converted = self._converted(call.arguments)
        if isinstance(converted, str):
            return ToolResult(f"Invalid arguments for {call.name}: {converted}", ToolErrorType.BAD_ARGUMENTS)
        try:
            return ToolResult(_to_text(await self.function(**converted)))
        except Exception as e:  # user code may raise anything
            return _error_result(e)

    def _converted(self, arguments: Mapping[str, Any]) -> dict[str, Any] | str:
        """Convert the arguments to the types of the type hints. Returns an error message if they are invalid."""
        import msgspec

        try:
            struct = msgspec.convert(arguments, self._argument_struct)
        except msgspec.ValidationError as e:
            return conversion_error(e)
        return {name: getattr(struct, name) for name in arguments}


def _argument_struct(names: Mapping[str, Any], hints: Mapping[str, Any]) -> Any:
    import msgspec

    fields: list[Any] = [(name, hints.get(name, Any), None) for name in names]
    return msgspec.defstruct("Arguments", fields, forbid_unknown_fields=True, kw_only=True)


def _to_text(value: Any) -> str:
    """Return a string unchanged. Encode other values as JSON, or with str() if JSON encoding fails."""
    import msgspec

    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return str(value)


def _error_result(error: Exception) -> ToolResult:
    """Return the result of a call whose function raised an exception. Raises an InfraError again."""
    if isinstance(error, InfraError):
        raise error
    timed_out = isinstance(error, (TimeoutError, asyncio.TimeoutError))
    error_type = ToolErrorType.TIMEOUT if timed_out else ToolErrorType.ERROR
    return ToolResult(f"{type(error).__name__}: {error}".rstrip(": "), error_type)


def _schema_of(function: Callable[..., Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a function's parameters, with descriptions from the docstring's Args section.

    Raises:
        BadValue: a parameter cannot be passed by name, or the type of a parameter has no JSON Schema.
    """
    import msgspec

    described = _parameter_descriptions(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise BadValue(f"{function.__name__}: parameter {parameter} cannot be passed by name")
        try:
            schema = msgspec.json.schema(hints.get(name, Any), ref_template="#/$defs/{name}")
        except TypeError as e:
            raise BadValue(f"{function.__name__}: the type of {name} has no JSON Schema: {e}") from e
        definitions.update(schema.pop("$defs", {}))
        if name in described:
            schema["description"] = described[name]
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is not None and isinstance(parameter.default, (bool, int, float, str)):
            schema["default"] = parameter.default
        properties[name] = schema
    made: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    made["additionalProperties"] = False
    return {**made, "$defs": definitions} if definitions else made


def _type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as e:
        raise BadValue(f"cannot resolve the type hints of {function!r}: {e}") from e


def _summary(function: Callable[..., Any]) -> str:
    """Return the docstring up to its first section, joined into one line.

    Without a docstring, returns the name of the function with spaces instead of underscores.
    """
    lines = (inspect.getdoc(function) or "").splitlines()
    end = next((i for i, line in enumerate(lines) if _SECTION.fullmatch(line)), len(lines))
    return " ".join(" ".join(lines[:end]).split()) or function.__name__.replace("_", " ")


def _parameter_descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Parse the docstring's Args section. Returns a dict from parameter name to description."""
    lines = (inspect.getdoc(function) or "").splitlines()
    names = inspect.signature(function).parameters
    begin = next((i for i, line in enumerate(lines) if line in _ARGS_HEADINGS), len(lines))
    found: dict[str, str] = {}
    current = ""
    for line in lines[begin + 1 :]:
        if line and not line[0].isspace():
            break
        match = _ARGS_ENTRY.fullmatch(line)
        if match and match[1] in names:
            current = match[1]
            found[current] = match[2].strip()
        elif current and line.strip():
            found[current] += f" {line.strip()}"
    return found
