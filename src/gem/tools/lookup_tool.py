"""LookupTool: ask an environment for one entry of its table, such as the drawers of tool:Lookup."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from gem.core import unwrapped
from gem.errors import BadValue
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import BaseTool, Function


@runtime_checkable
class HasTable(Protocol):
    """An environment with a table for LookupTool."""

    def look_up_keys(self) -> Sequence[str]:
        """Return the keys of this episode's table."""

    def look_up(self, key: str) -> Any:
        """Return the entry of a key, or None if there is none."""


class LookupTool(BaseTool):
    """Look up an entry of the environment's table, with ``<lookup>key</lookup>``.

    Raises:
        BadValue: from ToolEnvWrapper, if the environment has no table.
    """

    tool_type, tag, tag_argument = "lookup", "lookup", "key"
    inline = True

    def __init__(self) -> None:
        super().__init__()
        self._env: HasTable | None = None

    def attach(self, env: Any) -> None:
        if not isinstance(inner := unwrapped(env), HasTable):
            raise BadValue(
                f"lookup_tool needs an environment with look_up() and look_up_keys(), such as tool:Lookup, got {env!r}"
            )
        self._env = inner

    def functions(self) -> list[Function]:
        properties = {"key": {"type": "string"}}
        parameters = {"type": "object", "properties": properties, "required": ["key"], "additionalProperties": False}
        return [Function("lookup", "You can look up an entry.", parameters)]

    def random_arguments(self, function: Function, rng: random.Random) -> dict[str, Any]:
        assert self._env is not None
        return {"key": rng.choice(self._env.look_up_keys())}

    def call(self, call: ToolCall) -> ToolResult:
        assert self._env is not None
        key = str(call.arguments["key"])
        found = self._env.look_up(key)
        if found is None:
            return ToolResult(f"There is no entry {key!r}.", ToolErrorType.ERROR)
        return ToolResult(str(found))
