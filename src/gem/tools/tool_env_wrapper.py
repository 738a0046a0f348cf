"""ToolEnvWrapper: execute the agent's tool calls, and pass messages without calls to the environment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from gem._internal.counts import check_count
from gem.core import EndOnTruncation, EnvWrapper, Info, Step, StopReason, has_coroutines
from gem.errors import BadValue, EpisodeOver
from gem.messages import ToolCall, ToolErrorType, ToolResult, media_parts
from gem.registry import ENV_REGISTRY
from gem.tools.base_tool import BaseTool, PlannedCall, ToolSet
from gem.tools.formats import CallFormat, InvalidCall, ParsedMessage, get_format, openai_schemas
from gem.tools.formats.base import escape_response

# A tool, or a callable that returns a new tool, such as a class, a function or a functools.partial.
ToolSource: TypeAlias = BaseTool | Callable[[], BaseTool]
WrapperT = TypeVar("WrapperT", bound=EnvWrapper)

# Error types of calls that were not executed.
_NOT_EXECUTED = {
    ToolErrorType.MALFORMED,
    ToolErrorType.EMPTY,
    ToolErrorType.UNKNOWN_TOOL,
    ToolErrorType.BAD_ARGUMENTS,
    ToolErrorType.OVER_BUDGET,
}
_SPARE_MESSAGES = 10  # if max_messages is None, an episode may have max_tool_uses + 10 messages with calls


@dataclass(frozen=True)
class ToolCounts:
    """Statistics about tool use in an episode.

    Args:
        uses: number of executed calls.
        successes: number of executed calls without an error.
        errors: number of executed and refused calls by error type.
        messages: number of agent messages.
        answered: number of messages with calls, which were not passed to the environment.
        over: True if no episode is running.
    """

    uses: int = 0
    successes: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    messages: int = 0
    answered: int = 0
    over: bool = True

    def add(self, results: Sequence[ToolResult]) -> ToolCounts:
        """Return the counts after one more message, whose calls had these results."""
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

    The wrapper appends instructions for the tools to the first observation. A message with calls is not passed to the
    environment; the observation contains the results of the calls or error messages. This also holds for a message that
    contains both calls and a final answer. After max_tool_uses is reached, every text is passed to the environment. If
    env contains another ToolEnvWrapper, calls to functions that this wrapper does not know are passed to the inner
    wrapper. If the environment reads answers from fenced code blocks (``answers_in_fences``), these are not calls.

    Args:
        env: the environment.
        tools: tools, or callables (such as tool classes) that return a new tool. If another wrapper already uses a
            tool, this wrapper uses a new tool from ``spawn()``, so that environments do not share tools.
        tool_reward: reward per executed call.
        tool_success_reward: additional reward per executed call without an error.
        tool_execute_error_reward: reward per executed or refused call with an error; at most 0.
        max_tool_uses: maximum number of executed calls per episode. The result of the last allowed call includes a
            notice that no calls are left. Further calls in the same message, and native ``tool_calls``, are refused.
        format: format of the calls: "tags" (the format of the published package), "hermes", "openai", "react", or a
            CallFormat.
        max_messages: maximum number of messages of the agent per episode, with and without calls. The episode is then
            truncated with stop_reason "max_turns". It is one of the task's rules, so state it to the agent. If None,
            the episode is truncated after max_tool_uses + 10 messages with calls, and ``info["outside_limit"]`` is
            True.

    All tool rewards default to 0, so that they do not change the return of an episode.

    The info of every step and reset contains ``tool_use_counter`` and ``tool_success_counter`` (number of executed
    calls, and of executed calls without an error, in the episode) and ``tool_faults`` (number of calls by error type).
    The info of a step also contains ``use_tool`` (whether the message contained calls), ``tool_type`` (type of the
    first known tool that was called, or None) and ``parsed_action`` (the message up to the end of its last call). After
    a message with calls, ``tool_calls`` is a list with the id, name, arguments, fault and text of each call. The info
    of a reset contains ``prev_ep_tool_use_counter`` and ``prev_ep_tool_success_counter`` of the episode before. With
    the format "openai", it contains ``tools``, a list of schemas for an OpenAI-compatible endpoint, with those of
    inner wrappers.

    Raises:
        BadValue: there are no tools, an object is not a tool, tool_execute_error_reward or a limit is out of range, or
            the format is unknown. Raised by the first reset if two tools have a function of the same name or the same
            tag.
        InfraError: raised by step() and reset() if the infrastructure of a tool fails. step() then leaves the counters
            unchanged, and may be called again with the same message.
    """

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
        check_count("max_tool_uses", max_tool_uses, 0)
        if max_messages is not None:
            check_count("max_messages", max_messages)
        self.tool_reward, self.tool_success_reward = tool_reward, tool_success_reward
        self.tool_execute_error_reward = tool_execute_error_reward
        self.max_tool_uses, self.max_messages = max_tool_uses, max_messages
        self.call_format = get_format(format)
        self.tools = [_claim(tool) for tool in tools]
        if self.answers_in_fences:
            for tool in self.tools:
                tool.fences = ()
        for tool in self.tools:
            tool.attach(env)
        self.awaits = not all(tool.inline for tool in self.tools)  # astep() then works around any environment
        self._tool_set = ToolSet(self.tools, self.call_format)
        self.tool_counts = ToolCounts()
        self._inline: bool | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for tool in self.tools:
            tool.attach(self.env)

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
        instructions = await asyncio.to_thread(self._start_episode)  # on a thread: resetting a tool may block
        return self._first_observation(instructions, *await self._acall_env("reset", seed=seed, **kwargs))

    def step(self, action: Any, verbose: bool = False) -> Step:
        """Take one action. verbose has no effect; the logger of a tool reports its calls."""
        message, planned = self._plan(action)
        if planned:
            return self._tool_step(message, planned, self._tool_set.run(planned))
        return self._env_step(message, *self.env.step(action if message.calls else message.text))

    async def astep(self, action: Any) -> Step:
        waits = self._tool_set.text_tools  # _plan() runs them
        message, planned = await asyncio.to_thread(self._plan, action) if waits else self._plan(action)
        if planned:
            return self._tool_step(message, planned, await self._tool_set.arun(planned))
        return self._env_step(message, *await self._acall_env("step", action if message.calls else message.text))

    async def _acall_env(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call reset() or step() of the environment: its coroutine, or the method, on a thread if it may wait."""
        if has_coroutines(self.env):
            return await getattr(self.env, f"a{method}")(*args, **kwargs)
        if self._runs_inline():
            return getattr(self.env, method)(*args, **kwargs)
        return await asyncio.to_thread(getattr(self.env, method), *args, **kwargs)

    def sample_random_action(self) -> str:
        """Return a call with random arguments half of the time, while calls are left, and else an action."""
        call = self._tool_set.random_call(self.action_rng) if self._calls_left() > 0 else None
        if call is None or self.action_rng.random() < 0.5:
            return super().sample_random_action()
        return self.call_format.write(call, self._tool_set.tools)

    def close(self) -> None:
        with ExitStack() as closing:  # close the environment and all tools, even if one close() raises
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
        """Reset the tools and the counters. Returns the instructions for the tools."""
        self._previous, self.tool_counts = self.tool_counts, ToolCounts()
        for tool in self.tools:
            tool.reset()
        self._tool_set.refresh()
        return self._tool_set.instructions()

    def _first_observation(self, instructions: str, observation: Any, info: Info) -> tuple[Any, Info]:
        info = dict(info)
        uses, successes = "prev_ep_tool_use_counter", "prev_ep_tool_success_counter"
        info[uses] = self._previous.uses + info.get(uses, 0)
        info[successes] = self._previous.successes + info.get(successes, 0)
        if self.call_format.name == "openai":
            info["tools"] = [*info.get("tools", ()), *openai_schemas(self._tool_set.functions)]
        self.tool_counts = ToolCounts(over=False)
        return _append_instructions(observation, instructions), info | self._counters()

    def _calls_left(self) -> int:
        return self.max_tool_uses - self.tool_counts.uses

    def _plan(self, action: Any) -> tuple[ParsedMessage, list[PlannedCall]]:
        """Read a message and plan its calls: those to execute, those to refuse, and that of a tool that parses text.

        The list is empty if the message is for the environment, because it has no calls, or because none is to a
        function of this wrapper and an inner wrapper may have the functions.
        """
        if self.tool_counts.over:
            raise EpisodeOver("no running episode: call reset() first, and again after each end")
        message, left = self.call_format.read(action, self._tool_set.tools), self._calls_left()
        calls = message.calls
        if left <= 0 and not message.native:
            return ParsedMessage(message.text, (), message.text), []
        if not any(map(self._tool_set.knows, calls)):
            for tool in self._tool_set.text_tools if left > 0 else ():
                valid, failed, text, parsed = tool.execute_action(message.text)
                if valid:
                    result = ToolResult(str(text), ToolErrorType.ERROR if failed else None)
                    found = PlannedCall(ToolCall(tool.tool_type, {}), tool, result)
                    return replace(message, parsed=parsed or message.text), [found]
            if not calls or (all(map(_is_unknown, calls)) and _find_wrapper(ToolEnvWrapper, self.env) is not None):
                return message, []
        return message, self._tool_set.plan(calls, left, self._budget_notice())

    def _tool_step(self, message: ParsedMessage, planned: Sequence[PlannedCall], results: Sequence[ToolResult]) -> Step:
        """Update the counters and return the step for a message with calls."""
        before = self.tool_counts
        self.tool_counts = counts = before.add(results)
        errors = [result.error for result in results if result.error is not None]
        texts = [escape_response(result.text) for result in results]
        if before.uses < self.max_tool_uses <= counts.uses and ToolErrorType.OVER_BUDGET not in errors:
            texts[-1] = f"{texts[-1].rstrip()}\n\n{self._budget_notice()}\n"
        observation = self.call_format.observe([plan.call for plan in planned], texts)
        observation = _with_media(observation, results)
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
        """Update the counters and return the environment's step with this wrapper's info.

        For ``use_tool``, ``tool_type`` and ``parsed_action``, the values of the environment take precedence.
        """
        over = bool(terminated or truncated)
        self.tool_counts = replace(self.tool_counts, messages=self.tool_counts.messages + 1, over=over)
        own: Info = {"use_tool": False, "tool_type": None, "parsed_action": message.text}
        return self._apply_limit(Step(observation, reward, terminated, truncated, {**own, **info, **self._counters()}))

    def _apply_limit(self, step: Step) -> Step:
        """Truncate the step if the episode has reached its limit of messages."""
        counts = self.tool_counts
        if self.max_messages is None:
            spent = step.info["use_tool"] and counts.answered >= self.max_tool_uses + _SPARE_MESSAGES
        else:
            spent = counts.messages >= self.max_messages
        if not spent or step.terminated or step.truncated:
            return step
        self.tool_counts = replace(counts, over=True)
        info = {**step.info, "stop_reason": StopReason.MAX_TURNS}
        if self.max_messages is None:
            info["outside_limit"] = True
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
        """Return whether the registered spec says to run the environment inline. Inline steps need no thread.

        An environment whose arguments make it wait, such as a model that plays a customer, has ``waits_for_io``.
        """
        if self._inline is None:
            env_id = self.env.env_id
            spec = ENV_REGISTRY.get(env_id) if env_id else None
            inline = spec is not None and spec.runs == "inline"
            self._inline = inline and not self.waits_for_io
        return self._inline


_claim_lock = threading.Lock()


def _claim(source: ToolSource) -> BaseTool:
    """Return a tool that no other wrapper uses: the given tool, or a new tool.

    Raises:
        BadValue: the source is neither a tool nor a callable that returns a tool.
    """
    tool = source if isinstance(source, BaseTool) else source() if callable(source) else None
    if not isinstance(tool, BaseTool):
        raise BadValue(f"a tool must be a BaseTool or a callable that builds one, got {source!r}")
    with _claim_lock:
        if tool._claimed:
            tool = tool.spawn()
        tool._claimed = True
    return tool


def _with_media(observation: Any, results: Sequence[ToolResult]) -> Any:
    """Add the images and the audio of results to an observation."""
    images = [image for result in results for image in result.images]
    audio = [recording for result in results for recording in result.audio]
    if isinstance(observation, list):  # APIs accept images and audio in the messages of users only
        parts = media_parts(images, audio)
        return [*observation, {"role": "user", "content": parts}] if parts else observation
    media = {name: items for name, items in (("images", images), ("audio", audio)) if items}
    return {"text": observation, **media} if media else observation


def _append_instructions(observation: Any, instructions: str) -> Any:
    """Append the instructions to the text of an observation.

    In a list of messages, the instructions are appended to the last user message. If there is no user message, or its
    content is not a string, a new user message is added.
    """
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
    """Return the outermost wrapper that is an instance of ``kind``, or None if there is no such wrapper."""
    while isinstance(env, EnvWrapper):
        if isinstance(env, kind):
            return env
        env = env.env
    return None


def _is_unknown(call: ToolCall | InvalidCall) -> bool:
    """Return whether a call that is to no function of a wrapper can be to a function of another wrapper."""
    return isinstance(call, ToolCall) or call.error is ToolErrorType.UNKNOWN_TOOL


def _call_info(call: Any, result: ToolResult) -> dict[str, Any]:
    """Return a call and its result as plain data."""
    return {
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments if isinstance(call, ToolCall) else None,
        "fault": None if result.error is None else result.error.value,
        "text": result.text,
    }
