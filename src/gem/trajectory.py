"""The record of an episode that everyone reads: token-exact, turn by turn.

Nothing here is ever re-tokenised: a turn keeps the ids that were fed and the ids that were sampled.
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
    """One action of the agent and what it brought.

    Args:
        observation: what the agent saw last before acting.
        action: the text that went to the environment.
        prompt_ids: the whole context, as fed; empty for a policy without tokens.
        sampled_ids, logprobs, loss_mask: one entry per sampled token, the stop token included. logprobs are of the
            distribution sampled from (temperature and top-p applied); loss_mask is 1 where a loss should train.
        finish: "stop" when the model ended its turn, "length" when it ran into its token limit, None without tokens.
        reward: of this turn; None when the machinery failed, which is no reward.
        reward_parts: named parts that sum to reward, where the environment names some.
        invalid: what was wrong with the action, None when nothing was.
        seconds: wall-clock time of the policy's batch and of the environment's, {"policy": …, "env": …}.
        policy_version: how often the policy had been updated when it acted.
        role: who said the observation, where it is text: "user", or "tool" for the result of one.
        dropped: how many of the oldest turns its context left out.
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
    """A packed training sequence of T tokens: the contexts of its turns, each contained in the next.

    turn_T is the turn that sampled each token and -1 for what was fed; loss_mask_T is 1 on trained tokens, and
    logprobs_T is 0.0 on all others.
    """

    ids_T: list[int]
    loss_mask_T: list[int]
    logprobs_T: list[float]
    turn_T: list[int]


@dataclass(slots=True)
class Trajectory:
    """An episode from reset to end.

    Args:
        env_id: None for an environment that was not made by id.
        slot, episode: where it was played: the episode-th of a vector env's slot.
        seed: of the reset that started it, None when it went on from an earlier one.
        turns: K >= 1 of them, unless the environment failed at once.
        final_observation: what the last step showed.
        terminated, truncated, stop_reason: how it ended; see gem.core.StopReason.
        failure: the typed failure of the machinery, None when there was none.
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
        """The environment said so; a reward of 1 proves nothing where rewards are dense."""
        return self.stop_reason == StopReason.SOLVED

    @property
    def rewards_K(self) -> list[float]:
        """Per-turn rewards. Raises BadValue for a failed trajectory, which has none."""
        rewards_K = [turn.reward for turn in self.turns if turn.reward is not None]
        if self.failure is not None or len(rewards_K) < len(self.turns):
            raise BadValue(f"a failed trajectory has no rewards ({self.failure}); drop it or play it again")
        return rewards_K

    @property
    def total_reward(self) -> float:
        return sum(self.rewards_K)

    def sequences(self) -> list[TokenSequence]:
        """The episode packed for training: one sequence, or more where a context does not contain the one before."""
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
        return [sequence for sequence in packed if sequence.ids_T]  # a policy of text has no tokens

    def to_json(self) -> dict[str, Any]:
        """Plain data. A context is written as what it adds to the one before, so size grows with tokens, not turns²."""
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
        """What to_json() wrote. Raises BadValue when it is something else."""
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
    """Append trajectories to a file, one line each."""
    with open(path, "a", encoding="ascii") as file:
        for trajectory in trajectories:
            file.write(json.dumps(trajectory.to_json()) + "\n")
            file.flush()


def read_jsonl(path: str | os.PathLike[str]) -> Iterator[Trajectory]:
    """The trajectories of a file. Raises BadValue with file and line number for a line that is none."""
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield Trajectory.from_json(json.loads(line))
            except ValueError as e:  # no text, no JSON, or no trajectory
                raise BadValue(f"{path}, line {number}: {e}") from e


def _common_prefix(a: list[int], b: list[int]) -> int:
    if a == b[: len(a)]:  # the usual case, and the fast one
        return len(a)
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
