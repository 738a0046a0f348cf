"""ToolEnvWrapper: run tool calls around an environment, and pass all other messages to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias, TypeVar, cast

from gem.core import EndOnTruncation, EnvWrapper, Info, Step, StopReason, has_coroutines
from gem.errors import BadValue, EpisodeOver
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.registry import ENV_REGISTRY
from gem.tools.base_tool import BaseTool, PlannedCall, ToolSet
from gem.tools.formats import CallFormat, ParsedMessage, get_format, openai_schemas

# A tool, or a callable that builds one: a class, a function, a partial.
ToolSource: TypeAlias = BaseTool | Callable[[], BaseTool]
WrapperT = TypeVar("WrapperT", bound=EnvWrapper)

# A call with one of these errors was not executed.
_NOT_EXECUTED = {
    ToolErrorType.MALFORMED,
    ToolErrorType.EMPTY,
    ToolErrorType.UNKNOWN_TOOL,
    ToolErrorType.BAD_ARGUMENTS,
    ToolErrorType.OVER_BUDGET,
}
_SPARE_MESSAGES = 10  # messages with calls allowed beyond max_tool_uses when max_messages is None


@dataclass(frozen=True)
class ToolCounts:
    """Tool use of an episode.

    Args:
        uses, successes: executed calls, and those of them without an error.
        errors: number of calls by error type, executed or not.
        messages: messages of the agent.
        answered: messages that contained calls and did not reach the environment.
        over: no episode is running.
    """

    uses: int = 0
    successes: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    messages: int = 0
    answered: int = 0
    over: bool = True

    def add(self, results: Sequence[ToolResult]) -> ToolCounts:
        """Count a message with calls."""
        errors = dict(self.errors)
        for result in results:
            if result.error is not None:
                errors[result.error.value] = errors.get(result.error.value, 0) + 1
        return replace(
            self,
            uses=self.uses + sum(result.error not in _NOT_EXECUTED for result in results),
            successes=self.successes + sum(result.error is None for result in results),
            errors=errors,
            messages=self.messages + 1,
            answered=self.answered + 1,
        )


class ToolEnvWrapper(EnvWrapper):
    """Execute tool calls, and pass messages without calls to the environment.

    The first observation ends with instructions for the tools. A message with calls never reaches the environment nor
    ends its episode: its observation contains the results or an error message. A message with calls and a final answer
    counts as a message with calls, also after the budget is spent.

    Args:
        env: the environment.
        tools: tools, tool classes, or functions that build one. A tool already used by another wrapper is spawned, so
            that environments do not share tools.
        tool_reward: per executed call.
        tool_success_reward: in addition, per executed call without an error.
        tool_execute_error_reward: per call with an error, executed or not; at most 0.
        max_tool_uses: executed calls per episode. The last result announces the end; further calls are refused.
        format: notation of the calls: "tags" (as published), "hermes", "openai", "react", or a CallFormat.
        max_messages: messages of the agent per episode, including those for the environment; then the episode is
            truncated with stop_reason "max_turns". None truncates after max_tool_uses + 10 messages with calls.

    All rewards default to 0, so that a perfect episode returns 1.

    Info on every step and reset: ``tool_use_counter`` and ``tool_success_counter`` of the episode, ``tool_faults``
    (number of calls by error type). On steps: ``use_tool`` (whether the message contained calls), ``tool_type`` (of the
    first call, or None) and ``parsed_action`` (the message up to the end of its last call). On steps with calls:
    ``tool_calls``, with id, name, arguments, fault and text of each. On a reset after an episode:
    ``prev_ep_tool_use_counter`` and ``prev_ep_tool_success_counter``. On resets with the format "openai": ``tools``,
    the schemas for an endpoint.

    Raises:
        BadValue: no tools, an object that is not a tool, a reward or limit out of range, an unknown format; on the
            first reset, two tools with functions of the same name.
        InfraError: on step and reset, when the infrastructure of a tool failed. The counters are unchanged, and the
            step may be repeated.
    """

    awaits = True  # tools are awaited, whatever the environment does

    def __init__(
        self,
        env: Any,
        tools: Sequence[ToolSource],
        tool_reward: float = 0.0,
        tool_success_reward: float = 0.0,
        tool_execute_error_reward: float = 0.0,
        max_tool_uses: int = 10,
        *,
        format: str | CallFormat = "tags",
        max_messages: int | None = None,
    ) -> None:
        super().__init__(env)
        if isinstance(tools, (str, BaseTool)) or not tools:
            raise BadValue(f"tools must be a list of at least one tool, got {tools!r}")
        if tool_execute_error_reward > 0:
            raise BadValue(f"tool_execute_error_reward must be at most 0, got {tool_execute_error_reward!r}")
        _check_count("max_tool_uses", max_tool_uses, least=0)
        if max_messages is not None:
            _check_count("max_messages", max_messages, least=1)
        self.tool_reward, self.tool_success_reward = tool_reward, tool_success_reward
        self.tool_execute_error_reward = tool_execute_error_reward
        self.max_tool_uses, self.max_messages = max_tool_uses, max_messages
        self.call_format = get_format(format)
        self.tools = [_claim(tool) for tool in tools]
        self._tool_set = ToolSet(self.tools, self.call_format)
        self.tool_counts = ToolCounts()
        self._inline: bool | None = None

    @property
    def tool_use_counter(self) -> int:
        return self.tool_counts.uses

    @property
    def tool_success_counter(self) -> int:
        return self.tool_counts.successes

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        instructions = self._start_episode()
        return self._first_observation(instructions, *self.env.reset(seed=seed, **kwargs))

    async def areset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        instructions = await asyncio.to_thread(self._start_episode)  # tools may stop or start processes
        if has_coroutines(self.env):
            return self._first_observation(instructions, *await self.env.areset(seed=seed, **kwargs))
        if self._runs_inline():
            return self._first_observation(instructions, *self.env.reset(seed=seed, **kwargs))
        return self._first_observation(instructions, *await asyncio.to_thread(self.env.reset, seed=seed, **kwargs))

    def step(self, action: Any) -> Step:
        message = self._read(action)
        if message.calls and self._tool_set.names_function_in(message):
            planned = self._plan(message)
            return self._tool_step(message, planned, self._tool_set.run(planned))
        answered = self._run_text_tools(message) or self._refuse_unknown(message)
        if answered is not None:
            return answered
        action = action if message.calls else message.text  # calls are for an inner wrapper
        return self._env_step(message, *self.env.step(action))

    async def astep(self, action: Any) -> Step:
        message = self._read(action)
        if message.calls and self._tool_set.names_function_in(message):
            planned = self._plan(message)
            return self._tool_step(message, planned, await self._tool_set.arun(planned))
        answered = await asyncio.to_thread(self._run_text_tools, message) if self._tool_set.text_tools else None
        answered = answered or self._refuse_unknown(message)
        if answered is not None:
            return answered
        action = action if message.calls else message.text  # calls are for an inner wrapper
        if has_coroutines(self.env):
            return self._env_step(message, *await self.env.astep(action))
        if self._runs_inline():
            return self._env_step(message, *self.env.step(action))
        return self._env_step(message, *await asyncio.to_thread(self.env.step, action))

    def close(self) -> None:
        with ExitStack() as closing:  # close all of them even if one raises
            closing.callback(self.env.close)
            for tool in self.tools:
                closing.callback(tool.close)

    def own_state(self) -> dict[str, Any]:
        return {**asdict(self.tool_counts), "tools": [tool.own_state() for tool in self.tools]}

    def set_own_state(self, state: Mapping[str, Any]) -> None:
        counts = dict(state)
        tools = counts.pop("tools")
        for tool, own in zip(self.tools, tools, strict=True):
            tool.set_own_state(own)
        self.tool_counts = ToolCounts(**{**counts, "errors": dict(counts["errors"])})

    def _start_episode(self) -> str:
        """Reset the tools. Returns the instructions."""
        self._previous, self.tool_counts = self.tool_counts, ToolCounts()
        for tool in self.tools:
            tool.reset()
        return self._tool_set.instructions()

    def _first_observation(self, instructions: str, observation: Any, info: Info) -> tuple[Any, Info]:
        info = dict(info)
        if self._previous.messages:
            uses, successes = "prev_ep_tool_use_counter", "prev_ep_tool_success_counter"
            info[uses] = self._previous.uses + info.get(uses, 0)
            info[successes] = self._previous.successes + info.get(successes, 0)
        if self.call_format.name == "openai":
            info["tools"] = openai_schemas(self._tool_set.functions)
        self.tool_counts = ToolCounts(over=False)
        return _append_instructions(observation, instructions), info | self._counters()

    def _read(self, action: Any) -> ParsedMessage:
        if self.tool_counts.over:
            raise EpisodeOver("no running episode: call reset() first, and again after each end")
        return self.call_format.read(action, self._tool_set.tools)

    def _plan(self, message: ParsedMessage) -> list[PlannedCall]:
        left = self.max_tool_uses - self.tool_counts.uses
        return self._tool_set.plan(message.calls, left, self._budget_notice())

    def _refuse_unknown(self, message: ParsedMessage) -> Step | None:
        """Refuse calls of unknown tools; return None without calls, or when an inner wrapper may know the tools."""
        if not message.calls:
            return None
        foreign = all(isinstance(call, ToolCall) or call.error is ToolErrorType.UNKNOWN_TOOL for call in message.calls)
        if foreign and _find_wrapper(ToolEnvWrapper, self.env) is not None:
            return None
        planned = self._plan(message)
        return self._tool_step(message, planned, self._tool_set.run(planned))

    def _run_text_tools(self, message: ParsedMessage) -> Step | None:
        """Return the step of the first tool that parses the text itself and finds a call in it.

        Such a tool executes its call even after the budget is spent, since only it can tell whether there is a call;
        its result is not shown then.
        """
        for tool in self._tool_set.text_tools:
            valid, failed, text, parsed = tool.execute_action(message.text)
            if valid:
                result = ToolResult(str(text), ToolErrorType.ERROR if failed else None)
                if self.tool_counts.uses >= self.max_tool_uses:
                    result = ToolResult(self._budget_notice(), ToolErrorType.OVER_BUDGET)
                planned = PlannedCall(ToolCall(tool.tool_type, {}), tool)
                return self._tool_step(replace(message, parsed=parsed or message.text), [planned], [result])
        return None

    def _tool_step(self, message: ParsedMessage, planned: Sequence[PlannedCall], results: Sequence[ToolResult]) -> Step:
        """Return the step for a message with calls."""
        before = self.tool_counts
        self.tool_counts = counts = before.add(results)
        errors = [result.error for result in results if result.error is not None]
        texts = [result.text for result in results]
        if before.uses < self.max_tool_uses <= counts.uses and ToolErrorType.OVER_BUDGET not in errors:
            texts[-1] = f"{texts[-1].rstrip()}\n\n{self._budget_notice()}\n"
        observation = self.call_format.observe([plan.call for plan in planned], texts)
        parts = {
            "tool": self.tool_reward * (counts.uses - before.uses),
            "tool_success": self.tool_success_reward * (counts.successes - before.successes),
            "tool_error": self.tool_execute_error_reward * len(errors),
        }
        parts = {name: part for name, part in parts.items() if part}
        info: Info = {
            "use_tool": True,
            "tool_type": next((plan.tool.tool_type for plan in planned if plan.tool is not None), None),
            "parsed_action": message.parsed,
            "tool_calls": [_call_info(plan.call, result) for plan, result in zip(planned, results, strict=True)],
            **self._counters(),
        }
        invalid = [error for error in errors if error not in (ToolErrorType.ERROR, ToolErrorType.TIMEOUT)]
        if invalid:
            info["invalid"] = invalid[0].value
        if parts:
            info["reward_parts"] = parts
        return self._apply_limit(Step(observation, float(sum(parts.values())), info=info))

    def _env_step(
        self, message: ParsedMessage, observation: Any, reward: float, terminated: bool, truncated: bool, info: Info
    ) -> Step:
        """Return the step for a message to the environment. Entries of an inner wrapper take precedence."""
        over = bool(terminated or truncated)
        self.tool_counts = replace(self.tool_counts, messages=self.tool_counts.messages + 1, over=over)
        own: Info = {"use_tool": False, "tool_type": None, "parsed_action": message.text}
        return self._apply_limit(Step(observation, reward, terminated, truncated, {**own, **info, **self._counters()}))

    def _apply_limit(self, step: Step) -> Step:
        """Truncate the step when no messages are left."""
        counts = self.tool_counts
        if self.max_messages is None:
            spent = step.info["use_tool"] and counts.answered >= self.max_tool_uses + _SPARE_MESSAGES
        else:
            spent = counts.messages >= self.max_messages
        if not spent or step.terminated or step.truncated:
            return step
        self.tool_counts = replace(counts, over=True)
        info = {**step.info, "stop_reason": StopReason.MAX_TURNS}
        terminated = _find_wrapper(EndOnTruncation, self.env) is not None
        return Step(step.observation, step.reward, terminated, True, info)

    def _budget_notice(self) -> str:
        if self.max_tool_uses == 0:
            return "No tools may be used here. Give your final answer without calling a tool."
        times = "your only tool call" if self.max_tool_uses == 1 else f"all {self.max_tool_uses} tool calls"
        return f"You have used {times}. Give your final answer without calling a tool."

    def _counters(self) -> Info:
        """Return the counters of this wrapper plus those of inner ToolEnvWrappers."""
        counts = self.tool_counts
        counters: Info = {
            "tool_use_counter": counts.uses,
            "tool_success_counter": counts.successes,
            "tool_faults": dict(counts.errors),
        }
        inner = _find_wrapper(ToolEnvWrapper, self.env)
        if inner is not None:
            theirs = inner._counters()
            counters["tool_use_counter"] += theirs["tool_use_counter"]
            counters["tool_success_counter"] += theirs["tool_success_counter"]
            for error, count in theirs["tool_faults"].items():
                counters["tool_faults"][error] = counters["tool_faults"].get(error, 0) + count
        return counters

    def _runs_inline(self) -> bool:
        """Return whether a step of the environment takes microseconds, so that a thread would cost more."""
        if self._inline is None:
            env_id = getattr(self.env, "env_id", None)
            spec = ENV_REGISTRY.get(env_id) if env_id else None
            self._inline = spec is not None and spec.runs == "inline"
        return self._inline


_claim_lock = threading.Lock()


def _claim(source: ToolSource) -> BaseTool:
    """Return a tool that no other wrapper uses.

    Raises:
        BadValue: the source is not a tool and does not build one.
    """
    tool = source if isinstance(source, BaseTool) else source() if callable(source) else None
    if not isinstance(tool, BaseTool):
        raise BadValue(f"a tool must be a BaseTool or a callable that builds one, got {source!r}")
    with _claim_lock:
        if tool._claimed:
            tool = tool.spawn()
        tool._claimed = True
    return tool


def _append_instructions(observation: Any, instructions: str) -> Any:
    """Append the instructions to an observation: to its text, or to its last user message."""
    if not instructions:
        return observation
    if isinstance(observation, dict):
        return {**observation, "text": _join(observation.get("text"), instructions)}
    if isinstance(observation, list):
        last = max((i for i, message in enumerate(observation) if message["role"] == "user"), default=None)
        if last is None or not isinstance(observation[last]["content"], str):
            return [*observation, {"role": "user", "content": instructions}]
        message = {**observation[last], "content": _join(observation[last]["content"], instructions)}
        return [*observation[:last], message, *observation[last + 1 :]]
    return _join(observation, instructions)


def _join(text: Any, instructions: str) -> str:
    return f"{text}\n{instructions}" if text else instructions


def _find_wrapper(kind: type[WrapperT], env: Any) -> WrapperT | None:
    """Return the outermost wrapper of a kind; None without one."""
    while isinstance(env, EnvWrapper):
        if isinstance(env, kind):
            return env
        env = env.env
    return None


def _call_info(call: Any, result: ToolResult) -> dict[str, Any]:
    """Return a call and its result as plain data."""
    return {
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments if isinstance(call, ToolCall) else None,
        "fault": None if result.error is None else result.error.value,
        "text": result.text,
    }


def _check_count(name: str, value: Any, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadValue(f"{name} must be an integer >= {least}, got {cast(object, value)!r}")
