"""LookupTool: ask an environment for one entry of its table, such as the drawers of tool:Lookup."""

from __future__ import annotations

import random
from typing import Any

from gem.errors import BadValue
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import BaseTool, Function


class LookupTool(BaseTool):
    """Look up an entry of the environment's table, with ``<lookup>key</lookup>``.

    The environment has the methods ``look_up_keys()``, the keys of this episode, and ``look_up(key)``, the entry or
    None.

    Raises:
        BadValue: from ToolEnvWrapper, if the environment has no such methods.
    """

    tool_type, tag, tag_argument = "lookup", "lookup", "key"
    inline = True

    def __init__(self) -> None:
        super().__init__()
        self._env: Any = None

    def attach(self, env: Any) -> None:
        self._env = getattr(env, "unwrapped", env)
        if not hasattr(self._env, "look_up"):
            raise BadValue(f"lookup_tool needs an environment with look_up(), such as tool:Lookup, got {env!r}")

    def functions(self) -> list[Function]:
        properties = {"key": {"type": "string"}}
        parameters = {"type": "object", "properties": properties, "required": ["key"], "additionalProperties": False}
        return [Function("lookup", "You can look up an entry.", parameters)]

    def random_arguments(self, function: Function, rng: random.Random) -> dict[str, Any]:
        return {"key": rng.choice(self._env.look_up_keys())}

    def call(self, call: ToolCall) -> ToolResult:
        key = str(call.arguments["key"])
        found = self._env.look_up(key)
        if found is None:
            return ToolResult(f"There is no entry {key!r}.", ToolErrorType.ERROR)
        return ToolResult(str(found))
