"""Tools around an environment: a message that calls one is answered here, every other message is the environment's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar, cast

from gem.core import EndOnTruncation, EnvWrapper, Info, Step, StopReason, has_coroutines
from gem.errors import BadValue, EpisodeOver
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.registry import ENV_REGISTRY
from gem.tools.base_tool import BaseTool
from gem.tools.formats import CallFormat, Reading, get_format, openai_schemas
from gem.tools.tool_counts import Counts
from gem.tools.toolbox import Job, Toolbox, ToolSource, claim, told_in

WrapperT = TypeVar("WrapperT", bound=EnvWrapper)
# A tool that answers so was called and did nothing.
REFUSALS = {ToolErrorType.MALFORMED, ToolErrorType.EMPTY, ToolErrorType.UNKNOWN_TOOL, ToolErrorType.BAD_ARGUMENTS}
SPARE_MESSAGES = 10  # answered here beyond max_tool_uses, where no max_messages says otherwise


@dataclass(frozen=True)
class _Answer:
    """What came of a message that calls tools."""

    reading: Reading
    jobs: Sequence[Job]
    results: Sequence[ToolResult]


class ToolEnvWrapper(EnvWrapper):
    """Answers the messages that call a tool, and hands all others to the environment.

    The first observation ends with how to call the tools. A message that calls tools never ends the episode of the
    environment, nor reaches it: its observation is what the tools answer, or what was wrong with the call. A message
    with calls and a final answer is a message with calls, also after the budget is spent: it is told so.

    Args:
        env: the environment.
        tools: tools, classes of tools, or functions that build one. A tool that another wrapper has already is spawned,
            so that no two environments share one.
        tool_reward: of each call that is performed.
        tool_success_reward: of each call that is performed without a fault, besides.
        tool_execute_error_reward: of each call with a fault, performed or not; at most 0.
        max_tool_uses: calls performed per episode. The agent is told when they are spent; a further call is answered.
        format: how calls are written: "tags" (as published), "hermes", "openai", "react", or a CallFormat.
        max_messages: messages of the agent per episode, those to the environment included, after which it is truncated
            with the stop_reason "max_turns". None counts those that never reach the environment, and takes
            max_tool_uses + 10 of them.

    The rewards are 0 unless asked for, so that a perfect episode is worth 1.

    Info, on every step and reset: ``tool_use_counter`` and ``tool_success_counter`` of the episode, ``tool_faults``
    ({fault: calls}). On steps: ``use_tool`` (whether the message was answered here), ``tool_type`` (of the first call's
    tool, None without), ``parsed_action`` (the message up to the end of its last call), and, when answered here,
    ``tool_calls``: for each call its id, name, arguments, fault and text. On a reset after an episode:
    ``prev_ep_tool_use_counter`` and ``prev_ep_tool_success_counter``. In the format "openai", ``tools`` on resets: the
    schemas for an endpoint.

    Raises BadValue for no tools, something that is none, a reward or limit out of range, an unknown format; on the
    first reset for two tools with functions of the same name. Steps and resets raise InfraError when the machinery of a
    tool failed: nothing has been counted then, and the step may be tried again.
    """

    awaits = True  # tools are awaited, whatever the environment within does

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
            raise BadValue(f"tools is a list of at least one tool, got {tools!r}")
        if tool_execute_error_reward > 0:
            raise BadValue(f"tool_execute_error_reward must be at most 0, got {tool_execute_error_reward!r}")
        _check_count("max_tool_uses", max_tool_uses, least=0)
        if max_messages is not None:
            _check_count("max_messages", max_messages, least=1)
        self.tool_reward, self.tool_success_reward = tool_reward, tool_success_reward
        self.tool_execute_error_reward = tool_execute_error_reward
        self.max_tool_uses, self.max_messages = max_tool_uses, max_messages
        self.call_format = get_format(format)
        self.tools = [claim(tool) for tool in tools]
        self._box = Toolbox(self.tools, self.call_format)
        self.tool_counts = Counts()
        self._inline: bool | None = None

    @property
    def tool_use_counter(self) -> int:
        return self.tool_counts.uses

    @property
    def tool_success_counter(self) -> int:
        return self.tool_counts.successes

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        instructions = self._begin()
        return self._opened(instructions, *self.env.reset(seed=seed, **kwargs))

    async def areset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        instructions = await asyncio.to_thread(self._begin)  # tools may have to end what they hold, or start a server
        if has_coroutines(self.env):
            return self._opened(instructions, *await self.env.areset(seed=seed, **kwargs))
        if self._runs_inline():
            return self._opened(instructions, *self.env.reset(seed=seed, **kwargs))
        return self._opened(instructions, *await asyncio.to_thread(self.env.reset, seed=seed, **kwargs))

    def step(self, action: Any) -> Step:
        reading = self._read(action)
        if self._is_ours(reading):
            jobs = self._jobs(reading)
            return self._answered(_Answer(reading, jobs, self._box.perform(jobs)))
        answer = self._ask_readers(reading) or self._refusal(reading)
        if answer is not None:
            return self._answered(answer)
        action = action if reading.calls else reading.text  # calls are for a wrapper further in
        return self._handed_on(reading, *self.env.step(action))

    async def astep(self, action: Any) -> Step:
        reading = self._read(action)
        if self._is_ours(reading):
            jobs = self._jobs(reading)
            return self._answered(_Answer(reading, jobs, await self._box.aperform(jobs)))
        answer = await asyncio.to_thread(self._ask_readers, reading) if self._box.readers else None
        answer = answer or self._refusal(reading)
        if answer is not None:
            return self._answered(answer)
        action = action if reading.calls else reading.text  # calls are for a wrapper further in
        if has_coroutines(self.env):
            return self._handed_on(reading, *await self.env.astep(action))
        if self._runs_inline():
            return self._handed_on(reading, *self.env.step(action))
        return self._handed_on(reading, *await asyncio.to_thread(self.env.step, action))

    def close(self) -> None:
        with ExitStack() as closing:  # all of them, whatever one raises
            closing.callback(self.env.close)
            for tool in self.tools:
                closing.callback(tool.close)

    def own_state(self) -> dict[str, Any]:
        return {**asdict(self.tool_counts), "tools": [tool.own_state() for tool in self.tools]}

    def set_own_state(self, state: Mapping[str, Any]) -> None:
        remembered = dict(state)
        tools = remembered.pop("tools")
        for tool, own in zip(self.tools, tools, strict=True):
            tool.set_own_state(own)
        self.tool_counts = Counts(**{**remembered, "faults": dict(remembered["faults"])})

    def _begin(self) -> str:
        """Tell the tools that an episode begins. Returns the instructions."""
        self._previous, self.tool_counts = self.tool_counts, Counts()
        for tool in self.tools:
            tool.reset()
        return self._box.instructions()

    def _opened(self, instructions: str, observation: Any, info: Info) -> tuple[Any, Info]:
        info = dict(info)
        if self._previous.messages:
            uses, successes = "prev_ep_tool_use_counter", "prev_ep_tool_success_counter"
            info[uses] = self._previous.uses + info.get(uses, 0)
            info[successes] = self._previous.successes + info.get(successes, 0)
        if self.call_format.name == "openai":
            info["tools"] = openai_schemas([function for _, function in self._box.functions.values()])
        self.tool_counts = Counts(over=False)
        return told_in(observation, instructions), self._counted(info)

    def _read(self, action: Any) -> Reading:
        if self.tool_counts.over:
            raise EpisodeOver("no running episode: call reset() first, and again after each end")
        return self._box.read(action)

    def _jobs(self, reading: Reading) -> list[Job]:
        return self._box.jobs(reading.calls, self.max_tool_uses - self.tool_counts.uses, self._spent())

    def _is_ours(self, reading: Reading) -> bool:
        """Whether a message calls one of the tools that it is read for here."""
        return any(call.name in self._box.functions for call in reading.calls)

    def _refusal(self, reading: Reading) -> _Answer | None:
        """The answer to calls of unknown tools; None without calls, and where a wrapper within may know them."""
        foreign = all(isinstance(call, ToolCall) or call.error is ToolErrorType.UNKNOWN_TOOL for call in reading.calls)
        if not reading.calls or (foreign and _within(ToolEnvWrapper, self.env) is not None):
            return None
        jobs = self._jobs(reading)
        return _Answer(reading, jobs, self._box.perform(jobs))

    def _ask_readers(self, reading: Reading) -> _Answer | None:
        """The answer of the first tool that reads the agent's text itself and finds a call in it.

        Such a tool has to be asked even after the budget is spent, to know whether there is a call; its answer is not
        shown then.
        """
        for tool in self._box.readers:
            valid, failed, text, parsed = tool.execute_action(reading.text)
            if valid:
                result = ToolResult(str(text), ToolErrorType.ERROR if failed else None)
                job = Job(ToolCall(tool.tool_type, {}), tool)
                if self.tool_counts.uses >= self.max_tool_uses:
                    result = ToolResult(self._spent(), ToolErrorType.OVER_BUDGET)
                    job = Job(job.call, tool, result)
                return _Answer(replace(reading, parsed=parsed or reading.text), [job], [result])
        return None

    def _answered(self, answer: _Answer) -> Step:
        """The step of a message with calls."""
        performed = [
            job.performed and result.error not in REFUSALS
            for job, result in zip(answer.jobs, answer.results, strict=True)
        ]
        before = self.tool_counts
        self.tool_counts = counts = before.add(list(zip(performed, answer.results, strict=True)))
        texts = [result.text for result in answer.results]
        if before.uses < self.max_tool_uses <= counts.uses and ToolErrorType.OVER_BUDGET not in _faults(answer.results):
            texts[-1] = f"{texts[-1].rstrip()}\n\n{self._spent()}\n"
        shown = self.call_format.observe([job.call for job in answer.jobs], texts)
        parts = self._rewards(performed, answer.results)
        info: Info = {
            "use_tool": True,
            "tool_type": next((job.tool.tool_type for job in answer.jobs if job.tool is not None), None),
            "parsed_action": answer.reading.parsed,
            "tool_calls": [_told(job, result) for job, result in zip(answer.jobs, answer.results, strict=True)],
        }
        invalid = [
            fault.value
            for fault in _faults(answer.results)
            if fault not in (ToolErrorType.ERROR, ToolErrorType.TIMEOUT)
        ]
        if invalid:
            info["invalid"] = invalid[0]
        if parts:
            info["reward_parts"] = parts
        return self._limited(Step(shown, float(sum(parts.values())), info=self._counted(info)))

    def _handed_on(
        self, reading: Reading, observation: Any, reward: float, terminated: bool, truncated: bool, info: Info
    ) -> Step:
        """The step of a message for the environment; what a wrapper within says of its own tools stands."""
        over = bool(terminated or truncated)
        self.tool_counts = replace(self.tool_counts, messages=self.tool_counts.messages + 1, over=over)
        own: Info = {"use_tool": False, "tool_type": None, "parsed_action": reading.text}
        return self._limited(Step(observation, reward, terminated, truncated, self._counted({**own, **info})))

    def _limited(self, step: Step) -> Step:
        """The same step, truncated where no messages are left."""
        counts = self.tool_counts
        if self.max_messages is None:
            spent = step.info["use_tool"] and counts.answered >= self.max_tool_uses + SPARE_MESSAGES
        else:
            spent = counts.messages >= self.max_messages
        if not spent or step.terminated or step.truncated:
            return step
        self.tool_counts = replace(counts, over=True)
        info = {**step.info, "stop_reason": StopReason.MAX_TURNS}
        terminated = _within(EndOnTruncation, self.env) is not None
        return Step(step.observation, step.reward, terminated, True, info)

    def _rewards(self, performed: Sequence[bool], results: Sequence[ToolResult]) -> dict[str, float]:
        """The named parts of the reward that are not 0."""
        done = [result for was, result in zip(performed, results, strict=True) if was]
        parts = {
            "tool": self.tool_reward * len(done),
            "tool_success": self.tool_success_reward * sum(result.ok for result in done),
            "tool_error": self.tool_execute_error_reward * len(_faults(results)),
        }
        return {name: part for name, part in parts.items() if part}

    def _spent(self) -> str:
        if self.max_tool_uses == 0:
            return "No tools may be used here. Give your final answer without calling a tool."
        times = "the one tool call" if self.max_tool_uses == 1 else f"all {self.max_tool_uses} tool calls"
        return f"You have used {times} that you had. Give your final answer without calling a tool."

    def _counted(self, info: Info) -> Info:
        counts = self._totals()
        counters = {"tool_use_counter": counts.uses, "tool_success_counter": counts.successes}
        return {**info, **counters, "tool_faults": dict(counts.faults)}

    def _totals(self) -> Counts:
        """The counts of this wrapper and of those like it further in."""
        within = _within(ToolEnvWrapper, self.env)
        return self.tool_counts if within is None else self.tool_counts.plus(within._totals())

    def _runs_inline(self) -> bool:
        """Whether a step of the environment takes microseconds, so that a thread would cost more."""
        if self._inline is None:
            env_id = getattr(self.env, "env_id", None)
            spec = ENV_REGISTRY.get(env_id) if env_id else None
            self._inline = spec is not None and spec.runs == "inline"
        return self._inline


def _within(kind: type[WrapperT], env: Any) -> WrapperT | None:
    """The outermost wrapper of that kind among an environment's; None without one."""
    while isinstance(env, EnvWrapper):
        if isinstance(env, kind):
            return env
        env = env.env
    return None


def _faults(results: Sequence[ToolResult]) -> list[ToolErrorType]:
    return [result.error for result in results if result.error is not None]


def _told(job: Job, result: ToolResult) -> dict[str, Any]:
    """A call and its answer as plain data."""
    return {
        "id": job.call.id,
        "name": job.call.name,
        "arguments": job.call.arguments if isinstance(job.call, ToolCall) else None,
        "fault": None if result.error is None else result.error.value,
        "text": result.text,
    }


def _check_count(name: str, value: Any, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadValue(f"{name} must be an integer >= {least}, got {cast(object, value)!r}")
