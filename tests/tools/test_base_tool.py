"""The contract of a tool, and tools made of functions."""

from __future__ import annotations

import asyncio
import copy
import pickle
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest

from gem.errors import BadValue, ToolError
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import BaseTool, Function, reads_text
from gem.tools.function_tool import FunctionTool
from gem.tools.schema import descriptions, problem, schema_of, summary


class Greeter(BaseTool):
    tag, tag_argument = "greet", "name"

    def __init__(self, greeting: str, *, mark: str = "!") -> None:
        self.greeting, self.mark = greeting, mark  # and no super().__init__(): published tools forget it
        self.greeted = 0

    def functions(self):
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return [Function("greet", "Greet somebody.", schema), Function("wave", "Wave.")]

    def call(self, call):
        self.greeted += 1
        return ToolResult(f"{self.greeting} {call.arguments.get('name', 'all')}{self.mark}")


class TestContract:
    def test_another_tool_like_it_is_built_from_the_same_arguments(self):
        tool = Greeter("Hello", mark="?")
        tool.execute_action("<greet>you</greet>")
        for other in (tool.spawn(), pickle.loads(pickle.dumps(tool)), copy.deepcopy(tool)):
            assert other.execute_action("<greet>me</greet>")[2] == "Hello me?"
            assert (tool.greeted, other.greeted) == (1, 1)

    def test_the_published_instructions_show_the_tag_and_the_functions_without_one(self):
        text = Greeter("Hello").instruction_string()
        assert "Greet somebody." in text
        assert "<greet>name</greet>" in text
        assert '"name": "wave"' in text

    def test_every_function_can_be_called_by_name(self):
        text = "<tool_call><tool_name>wave</tool_name><arguments>{}</arguments></tool_call>"
        assert Greeter("Hello").execute_action(text) == (True, False, "Hello all!", text)

    def test_acall_is_call_on_a_thread_unless_it_is_written(self):
        call = ToolCall("greet", {"name": "you"})
        tool = Greeter("Hello")
        assert asyncio.run(tool.acall(call)) == tool.call(call)

    def test_a_tool_without_functions_says_what_it_lacks(self):
        with pytest.raises(NotImplementedError, match=r"must define functions\(\) and call\(\)"):
            BaseTool().functions()

    def test_tools_that_read_the_text_are_told_apart(self):
        class Old(BaseTool):
            def execute_action(self, action):
                return False, True, "", ""

        class Shouting(Greeter):
            def execute_action(self, action):
                return super().execute_action(action.lower())

        class Whispering(Shouting):
            def call(self, call):
                return super().call(call)

        assert reads_text(Old())
        assert not reads_text(Greeter("Hello"))
        assert reads_text(Shouting("Hello"))
        assert not reads_text(Whispering("Hello"))


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
    def test_a_typed_function_is_a_tool_in_one_line(self):
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
        schema = schema_of(weather)
        assert schema["properties"]["place"] == {"$ref": "#/$defs/Place", "description": "where, exactly."}
        assert schema["properties"]["mode"]["enum"] == ["long", "short"]
        assert schema["$defs"]["Place"]["required"] == ["town"]
        assert schema["required"] == ["place"]
        assert summary(weather) == "Tell the weather, for some days."
        assert descriptions(weather) == {"place": "where, exactly.", "days": "how many."}

    def test_arguments_arrive_as_the_types_that_the_function_names(self):
        tool = FunctionTool(weather)
        call = ToolCall("weather", {"place": {"town": "Bern"}, "days": 1, "unit": "k"})
        assert tool.call(call) == ToolResult('[{"town":"Bern","unit":"k","mode":"short"}]')

    def test_what_it_raises_is_a_fault_and_a_failure_of_the_machinery_goes_through(self):
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

    def test_what_cannot_be_called_by_name_or_written_in_json_is_refused(self):
        def positional(a, /):
            pass

        def several(*words):
            pass

        def strange(a: complex):
            pass

        for function in (positional, several, strange):
            with pytest.raises(BadValue, match=function.__name__):
                FunctionTool(function)

    def test_a_function_without_a_name_or_with_hints_that_are_not_there_is_refused(self):
        def lost(a: Nowhere):  # noqa: F821
            pass

        for function, says in [(lambda: 3, "name="), (lost, "Nowhere")]:
            with pytest.raises(BadValue, match=says):
                FunctionTool(function)

    def test_what_is_no_plain_data_is_shown_as_python_writes_it(self):
        assert FunctionTool(lambda: 3j, name="f", description="").call(ToolCall("f", {})).text == "3j"


ANY_OF = {"anyOf": [{"type": "integer"}, {"type": "null"}]}


class TestValidation:
    @pytest.mark.parametrize(
        ("value", "schema"),
        [
            (3, {"type": "integer"}),
            (3.0, {"type": "integer"}),
            (None, ANY_OF),
            ("a", {"type": ["string", "null"]}),
            ({"a": [1, 2]}, {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}),
            ({"x": 1}, {"type": "object"}),
            ({"a": 1}, {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}),
            ([1, "a"], {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}),
            (1, {}),
            (1, True),
            (1, {"type": "unheard-of"}),
            (1, {"$ref": "#/nowhere"}),
        ],
    )
    def test_what_fits_fits(self, value, schema):
        assert problem(value, schema) == ""

    @pytest.mark.parametrize(
        ("value", "schema", "says"),
        [
            (True, {"type": "integer"}, "it must be an integer, got True"),
            (3.5, {"type": "integer"}, "must be an integer, got 3.5"),
            ("3", ANY_OF, "must be an integer, got '3' or it must be null"),
            ({"a": [1, "2"]}, {"properties": {"a": {"items": {"type": "integer"}}}}, "a[1] must be an integer"),
            ({"a": {"b": 1}}, {"properties": {"a": {"properties": {"b": {"type": "string"}}}}}, "a.b must be a string"),
            ({}, {"required": ["a"]}, "'a' is missing"),
            ({"colour": 1}, {"required": ["color"]}, "did you mean it by 'colour'?"),
            ({"x": 1}, {"properties": {"y": {}}, "additionalProperties": False}, "there is no 'x'"),
            ({"x": 1}, {"additionalProperties": {"type": "string"}}, "x must be a string"),
            ("shrot", {"enum": ["short", "long"]}, "did you mean 'short'?"),
            (2, {"const": 1}, "must be one of 1"),
            (True, {"enum": [1]}, "must be one of 1"),
            (0, {"minimum": 1}, "at least 1"),
            (9, {"exclusiveMaximum": 9}, "less than 9"),
            ("", {"minLength": 1}, "at least 1 characters"),
            ([1, 2], {"maxItems": 1}, "at most 1 entries"),
            ([1, 2], {"prefixItems": [{}], "items": False}, "[1] must not be given"),
            ({"a": 1}, {"allOf": [{"required": ["b"]}]}, "'b' is missing"),
            ({"\ud800": 1}, {"type": "object"}, "surrogate"),
        ],
    )
    def test_what_does_not_is_told_in_words(self, value, schema, says):
        assert says in problem(value, schema)

    def test_depth_and_circles_end(self):
        circle = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
        assert "nested too deep" in problem(1, circle)
        deep: Any = []
        for _ in range(900):
            deep = [deep]
        assert "nested too deep" in problem({"a": deep}, {"type": "object"})

    @pytest.mark.parametrize(
        "schema", [{"type": 3}, {"minimum": "a"}, {"properties": []}, {"enum": 3}, {"required": 3}]
    )
    def test_a_schema_that_is_none_never_raises(self, schema):
        assert isinstance(problem({"a": 1}, schema), str)
        assert isinstance(problem(3, schema), str)
