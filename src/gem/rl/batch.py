"""Convert episodes to padded training tensors. Axes: B sequences, T tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from random import Random
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gem.rl.advantages import discounted_returns, normalize_batch
from gem.trajectory import TokenSequence, Trajectory


@dataclass(frozen=True)
class Example:
    """A packed sequence with per-token advantages.

    Args:
        sequence: the packed tokens.
        advantage_T: one advantage per token; 0 on fed tokens.
        reference_T: log-probabilities under a reference model; None if there is no reference model.
    """

    sequence: TokenSequence
    advantage_T: list[float]
    reference_T: list[float] | None = None


@dataclass(frozen=True)
class Minibatch:
    """Right-padded tensors: int64 ids and attention mask, the others float32. mask_BT is 1 on trained tokens."""

    ids_BT: Tensor
    attend_BT: Tensor
    mask_BT: Tensor
    logp_old_BT: Tensor
    advantage_BT: Tensor
    reference_BT: Tensor

    def to(self, device: torch.device | str) -> Minibatch:
        return Minibatch(*(getattr(self, f.name).to(device) for f in fields(self)))


def examples(trajectories: Sequence[Trajectory], gamma: float, baseline: Literal["batch", "turn"]) -> list[Example]:
    """Pack episodes into sequences with advantages, normalized over all turns of the batch.

    Args:
        trajectories: completed episodes. A failed episode raises BadValue.
        gamma: discount per turn.
        baseline: "batch" subtracts the mean return of the batch, "turn" the mean return of the turns with the same
            index in the batch.
    """
    returns = [discounted_returns(t.rewards_K, gamma) for t in trajectories]
    turns = np.concatenate([np.arange(len(returns_K)) for returns_K in returns])
    advantages_N = normalize_batch(np.concatenate(returns), turns if baseline == "turn" else None)
    packed, start = [], 0
    for trajectory, returns_K in zip(trajectories, returns, strict=True):
        advantage_K = advantages_N[start : start + len(returns_K)].tolist()
        start += len(returns_K)
        for sequence in trajectory.sequences():
            packed.append(Example(sequence, [0.0 if k < 0 else advantage_K[k] for k in sequence.turn_T]))
    return packed


def minibatches(batch: Sequence[Example], size: int, pad_id: int, rng: Random | None = None) -> Iterator[Minibatch]:
    """Yield minibatches of at most `size` examples, in the given order or, if rng is given, shuffled."""
    order = list(range(len(batch)))
    if rng is not None:
        rng.shuffle(order)
    for start in range(0, len(order), size):
        yield collate([batch[i] for i in order[start : start + size]], pad_id)


def collate(chosen: Sequence[Example], pad_id: int) -> Minibatch:
    """Convert examples to tensors, padded to the length of the longest example."""
    sequences = [e.sequence for e in chosen]
    ids_BT = _padded([s.ids_T for s in sequences], pad_id, torch.long)
    lengths_B = torch.tensor([len(s.ids_T) for s in sequences])
    return Minibatch(
        ids_BT=ids_BT,
        attend_BT=(torch.arange(ids_BT.shape[1])[None] < lengths_B[:, None]).long(),
        mask_BT=_padded([s.loss_mask_T for s in sequences], 0, torch.float32),
        logp_old_BT=_padded([s.logprobs_T for s in sequences], 0, torch.float32),
        advantage_BT=_padded([e.advantage_T for e in chosen], 0, torch.float32),
        reference_BT=_padded([e.reference_T or [0.0] * len(e.advantage_T) for e in chosen], 0, torch.float32),
    )


def _padded(rows: Sequence[Sequence[float]], fill: float, dtype: torch.dtype) -> Tensor:
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], dtype=dtype)
