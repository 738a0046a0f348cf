"""The contract of a tool: functions that an agent may call, and what they answer.

A new tool says what its functions are and performs calls of them; how a call is written in text is the business of a
call format (gem.tools.formats). Tools written for the published package, which read the agent's text themselves, define
``instruction_string`` and ``execute_action`` and work in the same wrapper.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gem.messages import ToolCall, ToolResult

ToolT = TypeVar("ToolT", bound="BaseTool")


@dataclass(frozen=True)
class Function:
    """Something to be called.

    Args:
        name: 1 to 64 letters, digits, ``_`` or ``-``.
        description: what it does, for the agent.
        parameters: JSON Schema of its arguments, of type "object".
    """

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


class BaseTool:
    """A tool. It belongs to one environment, whose episodes it is told of by reset().

    Attributes:
        tool_type: its name in ``info["tool_type"]``.
        tag: in the published call format, ``<tag>…</tag>`` calls the tool's first function; None where it has no tag.
        tag_argument: the name of the argument that stands between the tags.
        fences: info words of fenced code blocks that are calls, too, in the published format.
        concurrent: whether the calls of one message may run at the same time.
    """

    tool_type: str = "tool"
    tag: str | None = None
    tag_argument: str = ""
    fences: tuple[str, ...] = ()
    concurrent: bool = False
    _arguments: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
    _claimed: bool = False  # by a wrapper, which is the only one to use it

    def __new__(cls: type[ToolT], *args: Any, **kwargs: Any) -> ToolT:
        tool = super().__new__(cls)
        tool._arguments = (args, kwargs)  # so that spawn() can build another, whatever __init__ does with them
        return tool

    def __init__(self, num_workers: int = 1) -> None:
        self.num_workers = num_workers

    def functions(self) -> list[Function]:
        """What can be called. Constant while the tool lives."""
        raise NotImplementedError(f"{type(self).__name__} must define functions() and call()")

    def call(self, call: ToolCall) -> ToolResult:
        """Perform a call of one of the functions, whose arguments fit its schema.

        What the agent is to blame for, a time-out included, is a result with its fault. Raises ToolError when the
        machinery behind the tool failed: that says nothing of the call.
        """
        raise NotImplementedError(f"{type(self).__name__} must define functions() and call()")

    async def acall(self, call: ToolCall) -> ToolResult:
        """call(), for event loops. A tool that waits defines it, so that waiting costs no thread."""
        return await asyncio.to_thread(self.call, call)

    def reset(self) -> None:
        """An episode begins: forget what belongs to the last one."""

    def close(self) -> None:
        """Release what the tool holds. Safe to call twice."""

    def spawn(self: ToolT) -> ToolT:
        """Another tool like this one, from the same constructor arguments, for another environment.

        A tool overrides it to share what is safe and costly to hold twice: a connection pool, an index.
        """
        args, kwargs = self._arguments
        return type(self)(*args, **kwargs)

    def own_state(self) -> Any:
        """What the tool remembers of the episode, as plain data; None where that is nothing."""
        return None

    def set_own_state(self, state: Any) -> None:
        """Restore what own_state() returned, here or in another tool built with the same arguments."""

    def instruction_string(self) -> str:
        """How to call it in the published format, for the prompt."""
        from gem.tools.formats import TAGS

        return TAGS.describe_one(self)

    def execute_action(self, action: str) -> tuple[bool, bool, str, str]:
        """Find calls in the agent's text, in the published format, and perform them.

        Returns (is_valid, has_error, observation, parsed_action): whether the text holds a call, whether it failed,
        what the agent is shown, and the text up to the end of the call; (False, True, "", "") where there is no call.
        """
        from gem.tools.toolbox import Toolbox

        return Toolbox([self], readers=False).execute(action)

    def __reduce__(self) -> tuple[Any, ...]:
        # Another one with the same arguments, in the same state: connections and processes stay where they are.
        return _build, (type(self), *self._arguments, self.own_state())


def _build(cls: type[ToolT], args: tuple[Any, ...], kwargs: dict[str, Any], state: Any) -> ToolT:
    tool = cls(*args, **kwargs)
    if state is not None:
        tool.set_own_state(state)
    return tool


def reads_text(tool: BaseTool) -> bool:
    """Whether a tool reads the agent's text itself, as tools of the published package do.

    A subclass that overrides execute_action() of a tool with call() does, too.
    """
    first = next(cls for cls in type(tool).__mro__ if "execute_action" in vars(cls) or "call" in vars(cls))
    return first is not BaseTool and "call" not in vars(first)
