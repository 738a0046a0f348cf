"""Metrics of a batch of episodes, as written to metrics.jsonl."""

from __future__ import annotations

import resource
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gem.core import StopReason
from gem.trajectory import Trajectory

Metrics = dict[str, Any]


def summarize(trajectories: Sequence[Trajectory]) -> Metrics:
    """Return the metrics of a batch of episodes.

    ``failed`` counts failed episodes; all other metrics exclude them, and are None if they have nothing to average.
    ``overflowed`` is the share of episodes truncated by the token limit; ``cut_replies`` that of replies that reached
    their own limit. docs/reference/metrics.md explains all of them.
    """
    completed = [t for t in trajectories if t.failure is None]
    won = [len(t.turns) for t in completed if t.solved]
    turns = [turn for t in completed for turn in t.turns]
    calls = [call for turn in turns for call in turn.tool_calls]
    totals = [t.total_reward for t in completed]
    parts: Counter[str] = Counter()
    for turn in turns:
        parts.update(turn.reward_parts)
    return {
        "success": _ratio(len(won), len(completed)),
        "turns_when_won": statistics.fmean(won) if won else None,
        "reward": statistics.fmean(totals) if totals else None,
        "reward_std": statistics.pstdev(totals) if totals else None,
        **({"reward_parts": {name: parts[name] / len(completed) for name in sorted(parts)}} if parts else {}),
        "reply_tokens": statistics.fmean(len(turn.sampled_ids) for turn in turns) if turns else None,
        "cut_replies": _ratio(sum(turn.finish == "length" for turn in turns), len(turns)),
        "invalid": _ratio(sum(turn.invalid is not None for turn in turns), len(turns)),
        "overflowed": _ratio(sum(t.stop_reason == StopReason.MAX_TOKENS for t in completed), len(completed)),
        "tool_calls": len(calls) / max(1, len(completed)),
        "tool_errors": _ratio(sum(call.get("fault") is not None for call in calls), len(calls)),
        "failed": len(trajectories) - len(completed),
    }


def _ratio(count: int, total: int) -> float | None:
    return count / total if total else None


def summarize_each(names: Sequence[str], trajectories: Sequence[Trajectory], envs: Sequence[int]) -> Metrics:
    """Return the metrics of a batch by environment, and ``episodes``, their number.

    Args:
        names: of the environments.
        envs: for each episode, the index of its environment.
    """
    parts = {name: [t for t, env in zip(trajectories, envs, strict=True) if env == i] for i, name in enumerate(names)}
    return {name: {"episodes": len(part), **summarize(part)} for name, part in parts.items()}


def one_of_each(trajectories: Sequence[Trajectory], envs: Sequence[int]) -> list[Trajectory]:
    """Return the episodes in an order that takes one of each environment in turn."""
    seen: Counter[int] = Counter()
    keys = []
    for env in envs:
        keys.append((seen[env], env))
        seen[env] += 1
    return [trajectories[i] for i in sorted(range(len(trajectories)), key=keys.__getitem__)]


def modes(evaluation: Metrics) -> list[str]:
    """Return the names of the modes of an evaluation: "greedy" or a temperature first, then "sampled" if it has it."""
    return [name for name in evaluation if name not in ("sets", "game")]


def peak_memory_mib() -> float:
    """Return the peak resident memory of this process in MiB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss is in bytes on macOS, in KiB elsewhere
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)
