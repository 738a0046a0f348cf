r"""The dialogue of TAU-bench and tau2-bench: an agent with a policy and tools, a customer with a hidden instruction.

Action       a message to the customer, or calls of the functions in the format of ToolEnvWrapper. A message with calls
             is not shown to the customer, nor is what stands before ``</think>`` or after a
             ``<think>`` that is not closed.
Observation  the reply of the customer, or the results of the calls; the policy on reset.
Reward       at the end, 1.0 if all checks of the benchmark pass, else 0.0. ``info["checks"]`` has each.
Ends         terminated when the customer stops or a function ends the conversation; truncated after ``max_turns``
             messages of the agent, without a reward.

A customer that cannot answer, because its endpoint is down, raises EndpointError: the episode failed and has no reward.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gem._internal.text import indented
from gem.core import Info, Step, StopReason, require_text, unwrapped
from gem.datasets import load_rows
from gem.datasets.rows import Row, Rows, bad_rows
from gem.envs.dataset_env import DatasetEnv, RowState
from gem.errors import BadValue, EpisodeOver
from gem.graders.base import Grade
from gem.messages import ToolCall, ToolErrorType, ToolResult, without_thinking
from gem.policies.customer import Event, ModelCustomer
from gem.tools.base_tool import BaseTool, Function
from gem.tools.tool_env_wrapper import ToolEnvWrapper

STOPS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")  # how a customer ends the conversation
MAX_BAD_ROWS = 20  # maximum number of malformed rows in a message
INSTRUCTIONS = "instructions"  # the customer that needs no model
_SAID_ALL = "That is all I know. Please do what is right."


class Domain(ABC):
    """A domain of a benchmark: its policy, functions, tasks and reward, from a checkout.

    Attributes:
        policy: the text for the agent.
        functions: those of the agent.
        rows: the tasks.
    """

    policy: str
    functions: Sequence[Function]
    rows: Sequence[Row]

    @abstractmethod
    def world(self, row: Row) -> Any:
        """Return the database of a task at its start, with the tools on it."""

    @abstractmethod
    def call(self, world: Any, by: str, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a function of the agent or of the customer. Return its result, and whether that is an error."""

    @abstractmethod
    def checks(self, row: Row, world: Any, events: Sequence[Event]) -> dict[str, bool]:
        """Return the checks of the reward at the end of a conversation. Raises InfraError if one cannot be made."""

    @abstractmethod
    def instruction(self, row: Row) -> str:
        """Return what the customer wants and knows."""

    @abstractmethod
    def prompt(self, row: Row) -> str:
        """Return the system message of a model that plays the customer."""

    def customer_tools(self, row: Row) -> Sequence[Mapping[str, Any]]:
        """Return the schemas of the customer's own tools."""
        return ()

    def needs_judge(self, row: Row) -> bool:
        """Return whether the reward of a task depends on a model that grades."""
        return False

    def ends(self, function: str) -> bool:
        """Return whether a call of the agent ends the conversation."""
        return False


@dataclass(frozen=True)
class DialogueState(RowState):
    """A conversation; ``events`` in order. The database follows from the calls."""

    events: tuple[Event, ...] = ()


class DialogueEnv(DatasetEnv):
    """The conversation without tools; dialogue() adds them.

    Args:
        domain: the tasks.
        user: who plays the customer: the settings of a ModelCustomer, or "instructions" for a customer that says its
            whole instruction at once, knows nothing else and ends the conversation at the word goodbye.
        dataset: rows to use instead of those of the domain.
        seed, shuffle: see DatasetEnv.

    Raises:
        BadValue: ``user`` is missing or invalid, or is "instructions" for customers that use tools.
    """

    state: DialogueState

    def __init__(
        self,
        domain: Domain,
        user: str | Mapping[str, Any] | None = None,
        *,
        dataset: Any = None,
        seed: int | None = None,
        shuffle: bool = True,
    ) -> None:
        self.domain = domain  # open() needs it
        super().__init__(dataset=domain.rows if dataset is None else dataset, seed=seed, shuffle=shuffle)
        self.customer: ModelCustomer | None = None
        if isinstance(user, Mapping):
            self.customer = ModelCustomer(user)
        elif user != INSTRUCTIONS:
            raise BadValue(
                'say who plays the customer: user={"base_url": …, "model": …} for a model, or user="instructions" for '
                f"a customer that says its whole instruction at once; got {user!r}"
            )
        elif domain.customer_tools(domain.rows[0]):
            raise BadValue('these customers use tools, so a model has to play them: user={"base_url": …, "model": …}')
        self._world: Any = None

    def open(self, row: Row) -> str:
        self._world = None
        return f"Serve a customer under this policy. The reward is 1 or 0.\n\n{self.domain.policy}\n"

    def reset(self, seed: int | None = None, idx: int | None = None) -> tuple[str, Info]:
        rules, info = super().reset(seed, idx)
        self.state = DialogueState(self.state.idx)
        self.state, said = self._ask()
        self.first_obs = f"{rules}\nCustomer: {said}\n"
        return self.first_obs, {**info, "task_id": str(self.row.get("id", self.idx))}

    def step(self, action: str) -> Step:
        require_text(action)
        if getattr(self, "state", None) is None or self.state.over:
            raise EpisodeOver(f"{self!r} has no running episode; call reset()")
        message = without_thinking(action)
        if not message:
            return Step("The customer waits for a message.", info={"invalid": "no_action"})
        before, said = self.state, {"by": "agent", "say": message}
        self.state = replace(before, events=(*before.events, said))
        try:
            self.state, text = self._ask()
        except BaseException:  # the step may be repeated
            self.state, self._world = before, None
            raise
        return self.end() if self._stopped() else Step(f"Customer: {text}")

    def call(self, call: ToolCall) -> ToolResult:
        """Execute a call of the agent."""
        if self.state.over:
            return ToolResult("The conversation is over.", ToolErrorType.ERROR)
        text, error = self.domain.call(self.world(), "agent", call.name, call.arguments)
        event = {"by": "agent", "call": call.name, "arguments": dict(call.arguments), "result": text, "error": error}
        self.state = replace(self.state, events=(*self.state.events, event), over=self.domain.ends(call.name))
        return ToolResult(text, ToolErrorType.ERROR if error else None)

    def grade_action(self, action: str) -> Grade:
        """Grade the conversation so far, as if it ended here."""
        checks = self.domain.checks(self.row, self.world(), self.state.events)
        wrong = [name for name, passed in checks.items() if not passed]
        reason = f"failed: {', '.join(wrong)}" if wrong else "all checks passed"
        return Grade(reward=float(not wrong), correct=not wrong, reason=reason, details={"checks": checks})

    def baseline_score(self, numbers: Sequence[int]) -> str:
        """Return what an agent scores that ends each conversation at once, on the tasks that need no judge."""
        asked = [self.dataset[number] for number in numbers]  # type: ignore[index]  # never a stream
        rows = [row for row in asked if not self.domain.needs_judge(row)]
        scores = [all(self.domain.checks(row, self.domain.world(row), ()).values()) for row in rows]
        on = "" if len(rows) == len(numbers) else f" on the {len(rows)} that need no judge"
        return f"doing nothing scores {sum(scores) / max(len(scores), 1):.3f}{on}"

    def end(self) -> Step:
        """End the conversation and return the step with its reward."""
        grade = self.grade_action("")  # if this raises, the conversation goes on
        self.state = replace(self.state, over=True)
        reason = StopReason.SOLVED if grade.correct else StopReason.LOST
        info: Info = {"idx": self.idx, "correct": grade.correct, "stop_reason": reason, "explanation": grade.reason}
        info |= grade.details
        return Step("The conversation is over.", grade.reward, terminated=True, info=info)

    def world(self) -> Any:
        """Return the database after the calls so far."""
        if self._world is None:
            self._world = self.domain.world(self.row)
            for event in self.state.events:
                if "call" in event:
                    self.domain.call(self._world, event["by"], event["call"], event["arguments"])
        return self._world

    def set_state(self, state: Mapping[str, Any]) -> None:
        super().set_state(state)
        self._world = None

    def sample_random_action(self) -> str:
        return self.action_rng.choice(["How can I help you?", "May I have your name?", "Is there anything else?"])

    def close(self) -> None:
        if self.customer is not None:
            self.customer.close()

    # ---- the customer

    def _ask(self) -> tuple[DialogueState, str]:
        """Let the customer act until it says something. Return the state after that, and what the agent reads."""
        state = self.state
        if self.customer is None:
            said = self._scripted(state)
            return replace(state, events=(*state.events, {"by": "customer", "say": said})), said
        prompt, tools = self.domain.prompt(self.row), self.domain.customer_tools(self.row)
        new = self.customer.turn(prompt, state.events, tools, self._called)
        return replace(state, events=(*state.events, *new)), indented(new[-1]["say"])

    def _scripted(self, state: DialogueState) -> str:
        if not state.events:
            return self.domain.instruction(self.row)
        return STOPS[0] if "goodbye" in str(state.events[-1]["say"]).lower() else _SAID_ALL

    def _called(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Execute a call of the customer."""
        return self.domain.call(self.world(), "customer", name, arguments)

    def _stopped(self) -> bool:
        last = self.state.events[-1]
        return last["by"] == "customer" and any(stop in last["say"] for stop in STOPS)


def checked_rows(dataset: Any, check: Callable[[Row], None]) -> Rows:
    """Load rows of the caller and check each of them.

    Raises:
        BadValue: the dataset is unreadable, or ``check`` raises BadValue for rows, which are then named.
    """
    rows = load_rows(dataset)
    bad = list(bad_rows(rows, check).reasons.values())
    if bad:
        more = f"; and {len(bad) - MAX_BAD_ROWS:,} more" if len(bad) > MAX_BAD_ROWS else ""
        raise BadValue("; ".join(bad[:MAX_BAD_ROWS]) + more)
    return rows


class DialogueTool(BaseTool):
    """The agent's functions, for ToolEnvWrapper around a DialogueEnv."""

    tool_type = "tau"

    def __init__(self) -> None:
        super().__init__()
        self._env: Any = None

    def attach(self, env: Any) -> None:
        self._env = unwrapped(env)
        if not isinstance(self._env, DialogueEnv):
            raise BadValue(f"DialogueTool needs a DialogueEnv, got {env!r}")

    def functions(self) -> list[Function]:
        return list(self._env.domain.functions)

    def argument_validator(self, function: Function) -> Any:
        return lambda arguments: ""  # the benchmark's function answers invalid arguments with an error

    def call(self, call: ToolCall) -> ToolResult:
        result: ToolResult = self._env.call(call)
        return result


class DialogueTools(ToolEnvWrapper):
    """A ToolEnvWrapper whose calls can end the conversation."""

    def _tool_step(self, *args: Any) -> Step:
        step = super()._tool_step(*args)
        if not self.env.unwrapped.state.over:
            return step
        self.tool_counts = replace(self.tool_counts, over=True)
        end = self.env.unwrapped.end()
        return Step(step.observation, step.reward + end.reward, True, False, {**step.info, **end.info})


def dialogue(env: DialogueEnv, max_turns: int, format: str) -> DialogueTools:
    """Return an environment with its tools.

    Args:
        max_turns: messages of the agent, with and without calls.
        format: the format of calls, see ToolEnvWrapper; "openai" for native calls.
    """
    calls = 8 * max_turns
    return DialogueTools(env, [DialogueTool], max_tool_uses=calls, format=format, max_messages=max_turns)
