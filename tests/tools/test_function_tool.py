"""FunctionTool: schema from type hints, conversion of arguments, errors of the function."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest

from gem.errors import BadValue, ToolError
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import Function
from gem.tools.function_tool import FunctionTool


class Unit(Enum):
    CELSIUS = "c"
    KELVIN = "k"


@dataclass
class Place:
    town: str
    height: float = 0.0


def weather(place: Place, days: int = 1, unit: Unit = Unit.CELSIUS, mode: Literal["short", "long"] = "short") -> Any:
    """Tell the weather,
    for some days.

    Args:
        place: where,
            exactly.
        days (int): how many.

    Returns a list.
    """
    if days < 0:
        raise ValueError("days are counted from 0")
    return [{"town": place.town, "unit": unit.value, "mode": mode}] * days


class TestFunctionTool:
    def test_a_typed_function_becomes_a_tool(self):
        def add(a: int, b: int = 1) -> int:
            """Add two numbers."""
            return a + b

        [function] = FunctionTool(add).functions()
        assert function == Function(
            "add",
            "Add two numbers.",
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 1}},
                "required": ["a"],
                "additionalProperties": False,
            },
        )

    def test_types_descriptions_and_defaults_are_in_the_schema(self):
        [function] = FunctionTool(weather).functions()
        schema = function.parameters
        assert schema["properties"]["place"] == {"$ref": "#/$defs/Place", "description": "where, exactly."}
        assert schema["properties"]["mode"]["enum"] == ["long", "short"]
        assert schema["$defs"]["Place"]["required"] == ["town"]
        assert schema["required"] == ["place"]
        assert schema["properties"]["days"]["description"] == "how many."
        assert function.description == "Tell the weather, for some days."

    def test_arguments_are_converted_to_the_hinted_types(self):
        tool = FunctionTool(weather)
        call = ToolCall("weather", {"place": {"town": "Bern"}, "days": 1, "unit": "k"})
        assert tool.call(call) == ToolResult('[{"town":"Bern","unit":"k","mode":"short"}]')

    def test_exceptions_are_error_results_and_infrastructure_errors_propagate(self):
        def late():
            raise TimeoutError("too slow")

        def gone():
            raise ToolError("gone")

        call = ToolCall("weather", {"place": {"town": "Bern"}, "days": -1})
        assert FunctionTool(weather).call(call) == ToolResult(
            "ValueError: days are counted from 0", ToolErrorType.ERROR
        )
        assert FunctionTool(late).call(ToolCall("late", {})).error is ToolErrorType.TIMEOUT
        with pytest.raises(ToolError):
            FunctionTool(gone).call(ToolCall("gone", {}))
        with pytest.raises(ToolError):
            asyncio.run(FunctionTool(gone).acall(ToolCall("gone", {})))

    def test_functions_may_be_coroutines(self):
        async def double(n: int) -> int:
            await asyncio.sleep(0)
            return 2 * n

        tool, call = FunctionTool(double), ToolCall("double", {"n": 4})
        assert tool.call(call) == asyncio.run(tool.acall(call)) == ToolResult("8")

    def test_a_function_can_have_a_tag(self):
        tool = FunctionTool(lambda word: word[::-1], name="reverse", description="Reverse.", tag="reverse")
        assert tool.execute_action("<reverse>abc</reverse>")[2] == "cba"

    def test_unsupported_parameters_are_refused(self):
        def positional(a, /):
            pass

        def several(*words):
            pass

        def strange(a: complex):
            pass

        for function in (positional, several, strange):
            with pytest.raises(BadValue, match=function.__name__):
                FunctionTool(function)

    def test_missing_names_and_unresolvable_hints_are_refused(self):
        def lost(a: Nowhere):  # noqa: F821
            pass

        for function, says in [(lambda: 3, "name="), (lost, "Nowhere")]:
            with pytest.raises(BadValue, match=says):
                FunctionTool(function)

    def test_other_values_are_shown_as_str(self):
        assert FunctionTool(lambda: 3j, name="f", description="").call(ToolCall("f", {})).text == "3j"

    def test_bounds_of_annotated_parameters_are_checked(self):
        def wait(seconds: Annotated[int, msgspec.Meta(gt=0)]) -> str:
            return f"waited {seconds} s"

        tool = FunctionTool(wait)
        validate = tool.argument_validator(tool.functions()[0])
        assert tool.functions()[0].parameters["properties"]["seconds"]["exclusiveMinimum"] == 0
        assert (validate({"seconds": 1}), validate({"seconds": 0})) == ("", "Expected `int` >= 1 - at `seconds`")
        assert tool.call(ToolCall("wait", {"seconds": 0})).error is ToolErrorType.BAD_ARGUMENTS
