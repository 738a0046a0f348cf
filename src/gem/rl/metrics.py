"""What a batch of episodes amounts to, as it is written to metrics.jsonl."""

from __future__ import annotations

import resource
import statistics
import sys
from collections.abc import Sequence
from typing import Any

from gem.core import StopReason
from gem.trajectory import Trajectory

Metrics = dict[str, Any]


def summarize(trajectories: Sequence[Trajectory]) -> Metrics:
    """What a batch of episodes amounts to. Shares and means leave failed episodes out and count them in `failed`.

    overflowed: the share of episodes cut because the next context would not have fitted the model.
    """
    whole = [t for t in trajectories if t.failure is None]
    won = [len(t.turns) for t in whole if t.solved]
    turns = [turn for t in whole for turn in t.turns]
    return {
        "success": len(won) / len(whole) if whole else None,
        "turns_when_won": statistics.fmean(won) if won else None,
        "reward": statistics.fmean(t.total_reward for t in whole) if whole else None,
        "invalid": sum(turn.invalid is not None for turn in turns) / len(turns) if turns else None,
        "overflowed": sum(t.stop_reason == StopReason.MAX_TOKENS for t in whole) / len(whole) if whole else None,
        "failed": len(trajectories) - len(whole),
    }


def peak_memory_mib() -> float:
    """The most memory that this process has held, in MiB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10  # getrusage counts bytes on macOS, KiB elsewhere
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)
