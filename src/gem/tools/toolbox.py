"""The tools of one environment: which of them a call is for, whether it fits, and performing it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, TypeAlias

from gem._internal.text import shorten
from gem.errors import BadValue, did_you_mean
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import BaseTool, Function, reads_text
from gem.tools.formats import TAGS, Broken, CallFormat, Reading
from gem.tools.schema import problem

MAX_THREADS = 16  # for the concurrent calls of one message

# A tool, or what builds one: a class, a function, a partial.
ToolSource: TypeAlias = BaseTool | Callable[[], BaseTool]
_claiming = threading.Lock()


@dataclass(frozen=True)
class Job:
    """A call, and what becomes of it.

    Args:
        call: as it was read.
        tool: that it is for; None where there is none.
        refusal: the answer of a call that is not performed; None for one that is.
    """

    call: ToolCall | Broken
    tool: BaseTool | None = None
    refusal: ToolResult | None = None

    @property
    def performed(self) -> bool:
        return self.refusal is None

    @property
    def concurrent(self) -> bool:
        return self.performed and self.tool is not None and self.tool.concurrent


class Toolbox:
    """Tools, by the names of their functions.

    Args:
        tools: of one environment.
        call_format: how calls are written.
        readers: keep tools that read the agent's text themselves apart, as ``readers``.

    Functions are asked for when they are needed first: a tool may have to start a server to know its own. Two tools
    with a function or a tag of the same name raise BadValue then.
    """

    def __init__(self, tools: Sequence[BaseTool], call_format: CallFormat = TAGS, *, readers: bool = True) -> None:
        self.format = call_format
        self.readers = [tool for tool in tools if readers and reads_text(tool)]
        self.tools = [tool for tool in tools if tool not in self.readers]
        self._in_order = list(tools)

    @cached_property
    def functions(self) -> dict[str, tuple[BaseTool, Function]]:
        functions: dict[str, tuple[BaseTool, Function]] = {}
        tags: dict[str, BaseTool] = {}
        for tool in self.tools:
            for function in tool.functions():
                if function.name in functions:
                    raise BadValue(f"two tools have a function {function.name!r}; name one of them otherwise")
                functions[function.name] = (tool, function)
            if tool.tag is not None and tags.setdefault(tool.tag, tool) is not tool:
                raise BadValue(f"two tools have the tag <{tool.tag}>; give one of them another")
        return functions

    def instructions(self) -> str:
        """How to call the tools, for the prompt."""
        if self.functions and self.format is not TAGS:
            texts = [self.format.describe(self.tools), *(tool.instruction_string() for tool in self.readers)]
            return "\n".join(text for text in texts if text)
        return TAGS.describe(self._in_order) if self._in_order else ""

    def read(self, action: Any) -> Reading:
        """Raises BadAction for what is neither text nor message."""
        return self.format.read(action, self.tools)

    def jobs(self, calls: Sequence[ToolCall | Broken], left: int, notice: str) -> list[Job]:
        """What becomes of each call, where that many may be performed; the others are answered with the notice."""
        jobs = []
        for call in calls:
            job = self._job(call)
            if job.performed and left <= 0:
                job = Job(call, job.tool, ToolResult(notice, ToolErrorType.OVER_BUDGET))
            left -= job.performed
            jobs.append(job)
        return jobs

    def perform(self, jobs: Sequence[Job]) -> list[ToolResult]:
        """The answers, in order. Neighbours that may run at the same time do. Raises ToolError."""
        results: list[ToolResult] = []
        for concurrent, group in groupby(jobs, key=lambda job: job.concurrent):
            together = list(group)
            if concurrent and len(together) > 1:
                with ThreadPoolExecutor(min(len(together), MAX_THREADS)) as threads:
                    results += threads.map(_perform, together)
            else:
                results += map(_perform, together)
        return results

    async def aperform(self, jobs: Sequence[Job]) -> list[ToolResult]:
        """perform(), for event loops."""
        results: list[ToolResult] = []
        for concurrent, group in groupby(jobs, key=lambda job: job.concurrent):
            together = list(group)
            if concurrent and len(together) > 1:
                answers = await asyncio.gather(*map(_aperform, together), return_exceptions=True)
                for answer in answers:  # after all have ended, so that none goes on unseen
                    if isinstance(answer, BaseException):
                        raise answer
                    results.append(answer)
            else:
                results += [await _aperform(job) for job in together]
        return results

    def execute(self, action: Any) -> tuple[bool, bool, str, str]:
        """BaseTool.execute_action for all tools of the box, without a budget."""
        reading = self.read(action)
        if not reading.calls:
            return False, True, "", ""
        results = self.perform(self.jobs(reading.calls, len(reading.calls), ""))
        text = self.format.show([result.text for result in results])
        return True, not all(result.ok for result in results), text, reading.parsed

    def _job(self, call: ToolCall | Broken) -> Job:
        tool, function = self.functions.get(call.name, (None, None))
        if isinstance(call, Broken):
            said = "The call cannot be read" if call.error is ToolErrorType.MALFORMED else "The call failed"
            return Job(call, tool, ToolResult(f"{said}: {call.reason}", call.error))
        if tool is None or function is None:
            known = ", ".join(self.functions)
            text = f"There is no tool {shorten(call.name, 80)!r}{did_you_mean(call.name[:200], self.functions)}"
            return Job(call, None, ToolResult(f"{text}  (there are: {known})", ToolErrorType.UNKNOWN_TOOL))
        if wrong := problem(call.arguments, function.parameters):
            text = f"The arguments of {call.name} do not fit: {wrong}"
            return Job(call, tool, ToolResult(text, ToolErrorType.BAD_ARGUMENTS))
        if _is_empty(tool, call):
            text = f"The call of {call.name} is empty: write something in {tool.tag_argument}"
            return Job(call, tool, ToolResult(text, ToolErrorType.EMPTY))
        return Job(call, tool)


def claim(source: ToolSource) -> BaseTool:
    """A tool that no wrapper has yet. Raises BadValue for what is no tool and builds none."""
    tool = source if isinstance(source, BaseTool) else source() if callable(source) else None
    if not isinstance(tool, BaseTool):
        raise BadValue(f"a tool is a BaseTool, or builds one, got {source!r}")
    with _claiming:
        if tool._claimed:
            tool = tool.spawn()
        tool._claimed = True
    return tool


def told_in(observation: Any, instructions: str) -> Any:
    """A first observation that ends with the instructions: in its text, or in its last user message."""
    if not instructions:
        return observation
    if isinstance(observation, dict):
        return {**observation, "text": _joined(observation.get("text"), instructions)}
    if isinstance(observation, list):
        last = max((i for i, message in enumerate(observation) if message["role"] == "user"), default=None)
        if last is None or not isinstance(observation[last]["content"], str):
            return [*observation, {"role": "user", "content": instructions}]
        message = {**observation[last], "content": _joined(observation[last]["content"], instructions)}
        return [*observation[:last], message, *observation[last + 1 :]]
    return _joined(observation, instructions)


def _joined(text: Any, instructions: str) -> str:
    return f"{text}\n{instructions}" if text else instructions


def _is_empty(tool: BaseTool, call: ToolCall) -> bool:
    value = call.arguments.get(tool.tag_argument)
    return isinstance(value, str) and not value.strip() and call.name == tool.functions()[0].name


def _perform(job: Job) -> ToolResult:
    if job.refusal is not None:
        return job.refusal
    assert job.tool is not None and isinstance(job.call, ToolCall)
    return job.tool.call(job.call)


async def _aperform(job: Job) -> ToolResult:
    if job.refusal is not None:
        return job.refusal
    assert job.tool is not None and isinstance(job.call, ToolCall)
    return await job.tool.acall(job.call)
