"""BaseTool: copies, published calls, tools that parse text."""

from __future__ import annotations

import asyncio
import copy
import pickle

import pytest

from gem.messages import ToolCall, ToolResult
from gem.tools.base_tool import BaseTool, Function, parses_text


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
    def test_copies_are_built_from_the_same_arguments(self):
        tool = Greeter("Hello", mark="?")
        tool.execute_action("<greet>you</greet>")
        for other in (tool.spawn(), pickle.loads(pickle.dumps(tool)), copy.deepcopy(tool)):
            assert other.execute_action("<greet>me</greet>")[2] == "Hello me?"
            assert (tool.greeted, other.greeted) == (1, 1)

    def test_instructions_show_the_tag_and_other_functions(self):
        text = Greeter("Hello").instruction_string()
        assert "Greet somebody." in text
        assert "<greet>name</greet>" in text
        assert '"name": "wave"' in text

    def test_every_function_can_be_called_by_name(self):
        text = "<tool_call><tool_name>wave</tool_name><arguments>{}</arguments></tool_call>"
        assert Greeter("Hello").execute_action(text) == (True, False, "Hello all!", text)

    def test_acall_defaults_to_call(self):
        call = ToolCall("greet", {"name": "you"})
        tool = Greeter("Hello")
        assert asyncio.run(tool.acall(call)) == tool.call(call)

    def test_a_tool_without_functions_raises(self):
        with pytest.raises(NotImplementedError, match=r"must define functions\(\) and call\(\)"):
            BaseTool().functions()

    def test_tools_that_parse_text_are_recognized(self):
        class Old(BaseTool):
            def execute_action(self, action):
                return False, True, "", ""

        class Shouting(Greeter):
            def execute_action(self, action):
                return super().execute_action(action.lower())

        class Whispering(Shouting):
            def call(self, call):
                return super().call(call)

        assert parses_text(Old())
        assert not parses_text(Greeter("Hello"))
        assert parses_text(Shouting("Hello"))
        assert not parses_text(Whispering("Hello"))
