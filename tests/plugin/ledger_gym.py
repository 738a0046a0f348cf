"""A package outside gem: an environment, ids with a path, an exporter, a tool, a grader, an advantage and a loss.

It is not installed: tests put this folder on the path, where its .dist-info names the entry point.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gem
from gem import Env, EnvSpec, Step, StopReason
from gem.envs import QaEnv
from gem.errors import BadValue, EpisodeOver
from gem.graders import Grade
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.parsing import last_boxed
from gem.rl import needs
from gem.sandbox import Machine, get_sandbox
from gem.tools import BaseTool, Function
from gem.wrappers import WRAPPER_FACTORY, tool_wrapper

if TYPE_CHECKING:
    from gem.rl import EpisodeRewards, PolicyTokens, TokenLoss


@dataclass(frozen=True)
class State:
    amounts: tuple[int, ...]
    over: bool = False


class LedgerEnv(Env):
    r"""Add up the amounts of a ledger, which is a file on a machine. The answer is a number in ``\boxed{}``."""

    state: State = State((), over=True)

    def __init__(self, *, lines: int = 3) -> None:
        if lines < 1:
            raise BadValue(f"lines must be at least 1, got {lines}")
        self.lines, self._machine = lines, None

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed)
        self.close()
        self.state = State(tuple(self.rng.randint(1, 9) for _ in range(self.lines)))
        return r"What is the sum of the lines of ledger.txt? Answer with \boxed{number}.", {}

    def step(self, action: str) -> Step:
        if self.state.over:
            raise EpisodeOver("call reset()")
        self.state = replace(self.state, over=True)
        self.close()
        solved = last_boxed(action) == str(sum(self.state.amounts))
        info = {"stop_reason": StopReason.SOLVED if solved else StopReason.LOST}
        return Step("Right." if solved else "Wrong.", float(solved), terminated=True, info=info)

    def machine(self) -> Machine:
        if self._machine is None:
            text = "".join(f"{amount}\n" for amount in self.state.amounts)
            self._machine = get_sandbox().machine(files={"ledger.txt": text})
        return self._machine

    def close(self) -> None:
        machine, self._machine = self._machine, None
        if machine is not None:
            machine.close()

    def sample_random_action(self) -> str:
        return rf"\boxed{{{self.action_rng.randint(self.lines, 9 * self.lines)}}}"


class Oracle:
    def __init__(self, env: Env) -> None:
        self.env = env.unwrapped

    def act(self, observation: Any) -> str:
        return rf"\boxed{{{sum(self.env.state.amounts)}}}"


class AnswerOracle:
    def __init__(self, env: QaEnv) -> None:
        self.env = env.unwrapped

    def act(self, observation: Any) -> str:
        return f"<answer>{self.env.answer}</answer>"


def within_one_percent(answer: str, gold: str | list[str]) -> Grade:
    """Grade a number: right if it differs from the reference by at most one percent."""
    try:
        near = abs(float(answer) - float(str(gold))) <= abs(float(str(gold))) / 100
    except ValueError:
        near = False
    return Grade(reward=float(near), correct=near, reason="close enough" if near else "too far away", parsed=answer)


class RomanTool(BaseTool):
    """Converts numbers to Roman numerals."""

    tool_type, tag, tag_argument = "roman", "roman", "number"
    inline = True

    def functions(self) -> list[Function]:
        properties = {"number": {"type": "string", "maxLength": 4}}
        schema = {"type": "object", "properties": properties, "required": ["number"], "additionalProperties": False}
        return [Function("roman", "Write a number from 1 to 3999 as a Roman numeral.", schema)]

    def call(self, call: ToolCall) -> ToolResult:
        text = str(call.arguments["number"])
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 3999:
            return ToolResult(f"{text!r} is not a number from 1 to 3999.", ToolErrorType.ERROR)
        numeral, rest = "", int(text)
        for value, letters in zip(
            (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
            ["M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"],
            strict=True,
        ):
            numeral, rest = numeral + letters * (rest // value), rest % value
        return ToolResult(numeral)


@needs("groups")
def best_of_group(episodes: Sequence[EpisodeRewards], *, scale: float = 1.0) -> list[list[float]]:
    """Return the sum of the rewards, minus the best of the group."""
    best: dict[Any, float] = {}
    for episode in episodes:
        best[episode.group] = max(best.get(episode.group, -math.inf), sum(episode.rewards_K))
    return [[scale * (sum(e.rewards_K) - best[e.group] + 0.5)] * len(e.rewards_K) for e in episodes]


def imitate_the_best(tokens: PolicyTokens, *, above: float = 0.0) -> TokenLoss:
    """Return the negative log-probability of the tokens with an advantage above a bound."""
    from gem.rl import TokenLoss

    return TokenLoss(-tokens.logp_BT * (tokens.advantage_BT > above))


def export_jsonl(env: Env) -> Callable[[Path, str], None]:
    """Return a function that writes a ledger and its sum as one line of JSON."""
    inner = env.unwrapped
    if not isinstance(inner, LedgerEnv):
        raise BadValue(f"{env.env_id} has no ledger")

    def write(place: Path, name: str) -> None:
        amounts = inner.state.amounts
        place.with_suffix(".jsonl").write_text(
            json.dumps({"name": name, "amounts": amounts, "sum": sum(amounts)}) + "\n"
        )

    return write


def register_all() -> None:
    shared: dict[str, Any] = {"reward_range": (0.0, 1.0), "oracle_sees": "state"}
    ignorant = dict.fromkeys(["constant", "echo", "repeat-last"], 0.25)
    gem.register(
        EnvSpec(
            id="ledger:Sum",
            entry_point="ledger_gym:LedgerEnv",
            oracle="ledger_gym:Oracle",
            baseline_scores=ignorant,
            runs="thread",
            description="Add up the lines of a file on a machine.",
            **shared,
        )
    )
    gem.register(
        EnvSpec(
            id="estimate:PATH",
            entry_point="gem.envs:QaEnv",
            kwargs={"reward": "ledger_gym:within_one_percent"},
            path="dataset_name",
            oracle="ledger_gym:AnswerOracle",
            baseline_scores=ignorant,
            description="Estimates of a file of questions, right within one percent.",
            **{**shared, "reward_range": (-0.1, 1.0)},
        )
    )
    gem.register_exporter("ledger-jsonl", "ledger_gym:export_jsonl")
    WRAPPER_FACTORY["roman_tool"] = tool_wrapper("ledger_gym:RomanTool")
