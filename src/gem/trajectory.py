"""Trajectories: token-exact records of episodes, turn by turn, and their JSON Lines files.

A turn records the ids fed to the model and the ids sampled from it, so text is never tokenized again.
Axes: K turns of an episode, T tokens of a sequence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gem.core import StopReason
from gem.errors import BadValue
from gem.messages import Role


@dataclass(slots=True)
class Turn:
    """One action of the agent and its result. Rollouts share empty lists and dicts between turns, so do not modify
    them in place.

    Args:
        observation: the last observation before the action.
        action: the text sent to the environment.
        prompt_ids: the whole context, as fed to the model; empty for a text policy.
        sampled_ids, logprobs, loss_mask: one entry per sampled token, including the stop token. logprobs are those of
            the sampling distribution (after temperature and top-p); loss_mask is 1 on tokens to train.
        finish: "stop" if the model ended its reply, "length" at its token limit; None for a text policy.
        reward: reward of this turn; None if the environment failed in this turn.
        reward_parts: named components that sum to reward; empty if the environment reports none.
        invalid: why the action was invalid; None for a valid action.
        seconds: wall-clock seconds that the policy took for the batch and the environment for the step, as
            {"policy": …, "env": …}. Turns of the same batch may share the dict.
        policy_version: number of policy updates before the action.
        role: role of a text observation: "user", or "tool" for a tool result.
        dropped: number of the oldest turns omitted from the context.
    """

    observation: Any
    action: str
    prompt_ids: list[int] = field(default_factory=list)
    sampled_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    loss_mask: list[int] = field(default_factory=list)
    finish: str | None = None
    reward: float | None = 0.0
    reward_parts: dict[str, float] = field(default_factory=dict)
    invalid: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    policy_version: int = 0
    role: Role = "user"
    dropped: int = 0


@dataclass(slots=True)
class TokenSequence:
    """A packed training sequence of T tokens. The context of each of its turns extends that of the previous turn.

    Args:
        ids_T: token ids.
        loss_mask_T: 1 on tokens to train, else 0.
        logprobs_T: log-probabilities of sampled tokens; 0.0 on fed tokens.
        turn_T: index of the turn that sampled the token; -1 for fed tokens.
    """

    ids_T: list[int]
    loss_mask_T: list[int]
    logprobs_T: list[float]
    turn_T: list[int]


@dataclass(slots=True)
class Trajectory:
    """An episode from reset to end.

    Args:
        env_id: id of the environment; None if the environment was not made by id.
        slot: slot of the vector environment.
        episode: number of the episode in that slot.
        seed: seed of the reset that started the episode; None if the reset had no seed and continued a
            sequence of episodes.
        turns: K >= 1 turns; empty only if the environment failed on reset.
        final_observation: the observation of the last step.
        terminated, truncated, stop_reason: how the episode ended; see gem.core.StopReason.
        failure: the infrastructure failure that ended the episode; None if there was none.
    """

    env_id: str | None = None
    slot: int = 0
    episode: int = 0
    seed: int | None = None
    turns: list[Turn] = field(default_factory=list)
    final_observation: Any = None
    terminated: bool = False
    truncated: bool = False
    stop_reason: str | None = None
    failure: str | None = None

    @property
    def solved(self) -> bool:
        """Whether the environment reported success. Rewards cannot be used for this, because they may be dense."""
        return self.stop_reason == StopReason.SOLVED

    @property
    def rewards_K(self) -> list[float]:
        """Rewards per turn. Raises BadValue for a failed trajectory."""
        rewards_K = [turn.reward for turn in self.turns if turn.reward is not None]
        if self.failure is not None or len(rewards_K) < len(self.turns):
            raise BadValue(f"a failed trajectory has no rewards ({self.failure}); drop it or play it again")
        return rewards_K

    @property
    def total_reward(self) -> float:
        return sum(self.rewards_K)

    def sequences(self) -> list[TokenSequence]:
        """Pack the episode for training. A context that does not extend the previous one starts a new sequence."""
        packed: list[TokenSequence] = []
        for k, turn in enumerate(self.turns):
            last = packed[-1] if packed else None
            keeps = len(last.ids_T) if last is not None else 0
            if last is None or turn.prompt_ids[:keeps] != last.ids_T:
                last, keeps = TokenSequence([], [], [], []), 0
                packed.append(last)
            fed = turn.prompt_ids[keeps:]
            last.ids_T += fed + turn.sampled_ids
            last.loss_mask_T += [0] * len(fed) + turn.loss_mask
            last.logprobs_T += [0.0] * len(fed) + turn.logprobs
            last.turn_T += [-1] * len(fed) + [k] * len(turn.sampled_ids)
        return [sequence for sequence in packed if sequence.ids_T]  # a text policy leaves a sequence without tokens

    def to_json(self) -> dict[str, Any]:
        """Convert to plain data. Each context is stored as its difference from the preceding tokens."""
        import msgspec

        data: dict[str, Any] = msgspec.to_builtins(self)
        before: list[int] = []
        for turn in data["turns"]:
            prompt = turn["prompt_ids"]
            keeps = _common_prefix(before, prompt)
            before = prompt + turn["sampled_ids"]
            turn["prompt_ids"] = {"keeps": keeps, "adds": prompt[keeps:]}
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Trajectory:
        """Restore a trajectory from the result of to_json(). Raises BadValue for any other data."""
        import msgspec

        try:
            before: list[int] = []
            turns = []
            for turn in data["turns"]:
                prompt = before[: turn["prompt_ids"]["keeps"]] + turn["prompt_ids"]["adds"]
                before = prompt + turn["sampled_ids"]
                turns.append({**turn, "prompt_ids": prompt})
            return msgspec.convert({**data, "turns": turns}, cls)
        except (KeyError, TypeError, ValueError) as e:
            raise BadValue(f"not a trajectory: {type(e).__name__}: {e}") from e


def write_jsonl(path: str | os.PathLike[str], trajectories: Iterable[Trajectory]) -> None:
    """Append trajectories to a JSON Lines file."""
    with open(path, "a", encoding="ascii") as file:
        for trajectory in trajectories:
            file.write(json.dumps(trajectory.to_json()) + "\n")
            file.flush()


def read_jsonl(path: str | os.PathLike[str]) -> Iterator[Trajectory]:
    """Yield the trajectories of a JSON Lines file. Raises BadValue with file and line number for an invalid line."""
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield Trajectory.from_json(json.loads(line))
            except ValueError as e:  # not text, not JSON, or not a trajectory
                raise BadValue(f"{path}, line {number}: {e}") from e


def _common_prefix(a: list[int], b: list[int]) -> int:
    if a == b[: len(a)]:  # the common case, compared in C
        return len(a)
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
