"""The base class of tools, and the execution of parsed tool calls.

A tool declares functions and executes calls to these functions. A call format (gem.tools.formats) defines how the agent
writes a call. Tools written for the published package define ``instruction_string`` and ``execute_action`` and parse
the agent's text themselves. ToolEnvWrapper supports both kinds of tools.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from gem._internal.annotations import check_arguments
from gem._internal.text import shorten
from gem.errors import BadValue, did_you_mean
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.arguments import Validator, make_validator, random_value
from gem.tools.formats import TAGS, CallFormat, InvalidCall
from gem.tools.formats.base import Function

__all__ = ["BaseTool", "Function", "parses_text"]

ToolT = TypeVar("ToolT", bound="BaseTool")
_MAX_THREADS = 16  # threads that execute the concurrent calls of one message


class BaseTool:
    """Base class of tools. A tool object belongs to one environment and is reset at the start of each episode.

    Attributes:
        tool_type: name of the tool in ``info["tool_type"]``.
        tag: name of the tag that calls the tool's first function in the published format, as in ``<tag>…</tag>``. None
            if the tool has no tag.
        tag_argument: name of the argument that receives the text between the tags.
        fences: languages of fenced code blocks. In the published format, such a block also calls the first function.
        concurrent: whether the calls of one message may run at the same time.
        inline: whether reset() and calls only compute, in microseconds. An environment whose tools are all inline runs
            in a vector environment as its spec says; with other tools, it does not run in the caller's thread.
    """

    tool_type: str = "tool"
    tag: str | None = None
    tag_argument: str = ""
    fences: tuple[str, ...] = ()
    concurrent: bool = False
    inline: bool = False
    _arguments: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
    _claimed: bool = False  # True after a ToolEnvWrapper has taken ownership of the tool

    def __new__(cls: type[ToolT], *args: Any, **kwargs: Any) -> ToolT:
        check_arguments(cls, args, kwargs)
        tool = super().__new__(cls)
        tool._arguments = (args, kwargs)  # kept for spawn() and pickling
        return tool

    def __init__(self, num_workers: int = 1) -> None:
        self.num_workers = num_workers

    def functions(self) -> list[Function]:
        """Return the functions of the tool. The list must not change during an episode."""
        raise NotImplementedError(f"{type(self).__name__} must define functions() and call()")

    def argument_validator(self, function: Function) -> Validator:
        """Return a validator for the arguments of a function. A call with invalid arguments is not executed."""
        return make_validator(function.parameters)

    def random_arguments(self, function: Function, rng: random.Random) -> dict[str, Any]:
        """Return valid arguments that are chosen at random, for the warm-up of a new model. They solve no task."""
        found: dict[str, Any] = random_value(function.parameters, rng)
        return found

    def attach(self, env: Any) -> None:
        """Receive the environment that the tool is used in, once, from ToolEnvWrapper. Most tools do not need it."""

    def call(self, call: ToolCall) -> ToolResult:
        """Execute a call whose arguments are valid.

        Mistakes of the agent and timeouts do not raise. The returned ToolResult then has an error type.

        Raises:
            ToolError: the infrastructure of the tool failed.
        """
        raise NotImplementedError(f"{type(self).__name__} must define functions() and call()")

    async def acall(self, call: ToolCall) -> ToolResult:
        """Execute a call from an event loop.

        The default implementation runs call() on a thread. Tools that wait for I/O should override this method.
        """
        return await asyncio.to_thread(self.call, call)

    @property
    def forkable(self) -> bool:
        """Whether own_state() contains the whole state of the episode, so that the episode can be forked."""
        return True

    def reset(self) -> None:
        """Prepare for a new episode: discard the state of the previous episode."""

    def close(self) -> None:
        """Release resources. May be called more than once."""

    def spawn(self: ToolT) -> ToolT:
        """Return a new tool for another environment, built from the same constructor arguments.

        Override this method if tools should share an expensive resource such as a connection pool or an index.
        """
        args, kwargs = self._arguments
        return type(self)(*args, **kwargs)

    def own_state(self) -> Any:
        """Return the state of the episode as JSON-compatible data, or None if the tool has no state."""
        return None

    def set_own_state(self, state: Any) -> None:
        """Restore a state that own_state() returned.

        The state may come from another tool that was built with the same constructor arguments.
        """

    def instruction_string(self) -> str:
        """Return the part of the prompt that explains how to call the tool in the published format."""
        return TAGS.describe_tool(self)

    def execute_action(self, action: str) -> tuple[bool, bool, str, str]:
        """Parse the calls in a text in the published format, and execute them.

        Returns:
            (is_valid, has_error, observation, parsed_action): whether the text contains a call, whether at least one
            call failed, the results of the calls, and the text up to the end of the last call. If the text contains no
            call, (False, True, "", "").
        """
        tools = ToolSet([self], parse_own_text=False)
        message = TAGS.read(action, tools.tools)
        if not message.calls:
            return False, True, "", ""
        results = tools.run(tools.plan(message.calls))
        text = tools.format.show([result.text for result in results])
        return True, not all(result.ok for result in results), text, message.parsed

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy has the same constructor arguments, fences and state. Connections and processes are not copied.
        return _build, (type(self), *self._arguments, self.own_state()), {"fences": self.fences}


def _build(cls: type[ToolT], args: tuple[Any, ...], kwargs: dict[str, Any], state: Any) -> ToolT:
    tool = cls(*args, **kwargs)
    if state is not None:
        tool.set_own_state(state)
    return tool


def parses_text(tool: BaseTool) -> bool:
    """Return whether a tool parses the agent's text itself, like the tools written for the published package.

    True if the most derived class that defines ``execute_action()`` or ``call()`` does not define ``call()`` and is not
    BaseTool.
    """
    first = next(cls for cls in type(tool).__mro__ if "execute_action" in vars(cls) or "call" in vars(cls))
    return first is not BaseTool and "call" not in vars(first)


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A parsed call and the tool that will execute the call, or the result.

    Args:
        call: the parsed call.
        tool: the tool that has the called function; None if the function is unknown.
        result: the result of a call that is refused or has been executed; None if the call will be executed.
    """

    call: ToolCall | InvalidCall
    tool: BaseTool | None = None
    result: ToolResult | None = None


class _Entry(NamedTuple):
    tool: BaseTool
    function: Function
    validate: Validator
    tagged: bool  # whether the tool's tag calls this function


class ToolSet:
    """The tools of one environment, indexed by function name.

    Args:
        tools: the tools.
        call_format: the format in which the agent writes calls.
        parse_own_text: put tools that parse the agent's text themselves into ``text_tools`` and not into ``tools``.

    The functions of the tools are listed on first use, because a tool may have to start a server to list its functions.
    The first use raises BadValue if two tools share a function name or a tag.
    """

    def __init__(
        self, tools: Sequence[BaseTool], call_format: CallFormat = TAGS, *, parse_own_text: bool = True
    ) -> None:
        self.format = call_format
        self.text_tools = [tool for tool in tools if parse_own_text and parses_text(tool)]
        self.tools = [tool for tool in tools if tool not in self.text_tools]
        self._all_tools = list(tools)

    def __getstate__(self) -> dict[str, Any]:
        # Validators are local functions, which cannot be pickled. A copy lists the functions again on first use.
        return {name: value for name, value in vars(self).items() if name != "_entries"}

    def refresh(self) -> None:
        """Read the functions of the tools again, for example if the tools of a server have changed."""
        if "_entries" in vars(self) and self.functions != [f for tool in self.tools for f in tool.functions()]:
            del self._entries

    @property
    def functions(self) -> list[Function]:
        return [entry.function for entry in self._entries.values()]

    @cached_property
    def _entries(self) -> dict[str, _Entry]:
        entries: dict[str, _Entry] = {}
        tags: dict[str, BaseTool] = {}
        for tool in self.tools:
            for index, function in enumerate(tool.functions()):
                if function.name in entries:
                    raise BadValue(f"two tools have a function {function.name!r}; rename one of them")
                validate = tool.argument_validator(function)
                entries[function.name] = _Entry(tool, function, validate, index == 0 and bool(tool.tag_argument))
            if tool.tag is not None and tags.setdefault(tool.tag, tool) is not tool:
                raise BadValue(f"two tools have the tag <{tool.tag}>; change one of them")
        return entries

    def instructions(self) -> str:
        """Return the part of the prompt that explains how to call the tools; "" if there are no tools."""
        if self._entries and self.format is not TAGS:
            texts = [self.format.describe(self.tools), *(tool.instruction_string() for tool in self.text_tools)]
            return "\n".join(text for text in texts if text)
        return TAGS.describe(self._all_tools) if self._all_tools else ""

    def random_call(self, rng: random.Random) -> ToolCall | None:
        """Return a call with random arguments, or None if there are no functions."""
        if not self._entries:
            return None
        entry = rng.choice(list(self._entries.values()))
        return ToolCall(entry.function.name, entry.tool.random_arguments(entry.function, rng))

    def knows(self, call: ToolCall | InvalidCall) -> bool:
        """Return whether a call, valid or invalid, is to a function of these tools."""
        return call.name in self._entries

    def plan(
        self, calls: Sequence[ToolCall | InvalidCall], budget: int | None = None, over_budget: str = ""
    ) -> list[PlannedCall]:
        """Look up the tool of each call and validate the arguments.

        Args:
            calls: the calls, in order of execution.
            budget: maximum number of calls to execute; None for no limit. Refused calls do not count.
            over_budget: the text of the result of each call that exceeds the budget.
        """
        planned: list[PlannedCall] = []
        for call in calls:
            plan = self._plan(call)
            if budget is not None and plan.result is None:
                if budget <= 0:
                    plan = PlannedCall(call, plan.tool, ToolResult(over_budget, ToolErrorType.OVER_BUDGET))
                else:
                    budget -= 1
            planned.append(plan)
        return planned

    def run(self, planned: Sequence[PlannedCall]) -> list[ToolResult]:
        """Execute planned calls and return their results in order.

        Adjacent calls of concurrent tools run at the same time, on threads.

        Raises:
            ToolError: the infrastructure of a tool failed.
        """
        results: list[ToolResult] = []
        for group in _groups(planned):
            if len(group) == 1:
                results.append(_run(group[0]))
            else:
                with ThreadPoolExecutor(min(len(group), _MAX_THREADS)) as threads:
                    results += threads.map(_run, group)
        return results

    async def arun(self, planned: Sequence[PlannedCall]) -> list[ToolResult]:
        """Like run(), for use on an event loop."""
        results: list[ToolResult] = []
        for group in _groups(planned):
            if len(group) == 1:
                results.append(await _arun(group[0]))
                continue
            for outcome in await asyncio.gather(*map(_arun, group), return_exceptions=True):
                if isinstance(outcome, BaseException):  # raised only after all calls of the group have ended
                    raise outcome
                results.append(outcome)
        return results

    def _plan(self, call: ToolCall | InvalidCall) -> PlannedCall:
        entry = self._entries.get(call.name)
        if isinstance(call, InvalidCall):
            prefix = "The call is malformed" if call.error is ToolErrorType.MALFORMED else "The call failed"
            return PlannedCall(call, entry and entry.tool, ToolResult(f"{prefix}: {call.reason}", call.error))
        if entry is None:
            return PlannedCall(call, None, unknown_tool(call.name, self._entries))
        if error := entry.validate(call.arguments):
            text = f"Invalid arguments for {call.name}: {error}"
            return PlannedCall(call, entry.tool, ToolResult(text, ToolErrorType.BAD_ARGUMENTS))
        if entry.tagged:
            value = call.arguments.get(entry.tool.tag_argument)
            if isinstance(value, str) and not value.strip():
                text = f"The call to {call.name} is empty: nothing was run."
                return PlannedCall(call, entry.tool, ToolResult(text, ToolErrorType.EMPTY))
        return PlannedCall(call, entry.tool)


def unknown_tool(name: str, known: Collection[str]) -> ToolResult:
    """Return the result of a call to a function that no tool has."""
    text = f"There is no tool {shorten(name, 80)!r}{did_you_mean(name[:200], known)}  (available: {', '.join(known)})"
    return ToolResult(text, ToolErrorType.UNKNOWN_TOOL)


def _groups(planned: Sequence[PlannedCall]) -> list[list[PlannedCall]]:
    """Group the calls that run at the same time: adjacent calls of concurrent tools."""
    groups: list[list[PlannedCall]] = []
    joins = False  # whether the call before may run at the same time as another
    for plan in planned:
        concurrent = plan.result is None and plan.tool is not None and plan.tool.concurrent
        if joins and concurrent:
            groups[-1].append(plan)
        else:
            groups.append([plan])
        joins = concurrent
    return groups


def _run(plan: PlannedCall) -> ToolResult:
    if plan.result is not None:
        return plan.result
    assert plan.tool is not None and isinstance(plan.call, ToolCall)
    return plan.tool.call(plan.call)


async def _arun(plan: PlannedCall) -> ToolResult:
    if plan.result is not None:
        return plan.result
    assert plan.tool is not None and isinstance(plan.call, ToolCall)
    return await plan.tool.acall(plan.call)
