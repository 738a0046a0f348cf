"""Convert episodes to padded training tensors. Axes: B sequences, T tokens."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gem.conversation.history import shown_observations
from gem.conversation.observations import images_of
from gem.rl.estimate.advantages import EpisodeRewards, Floats
from gem.trajectory import TokenSequence, Trajectory, Turn


@dataclass(frozen=True)
class Example:
    """A packed sequence with what the loss of its tokens needs.

    Args:
        sequence: the packed tokens.
        episode: index of the episode in the batch.
        versions_K: number of policy updates before each turn of the episode.
        advantage_T: one advantage per token; 0 on fed tokens.
        reference_T: log-probabilities under a reference model; None if there is no reference model.
        old_T: log-probabilities under the policy before the update; None for those of the sampler.
        weight_T: factor of the loss of each token; None for the loss mask.
        share_T: how much each trained token counts in the loss and its divisor; None for 1.
        images: those of the observations in the sequence, in order.
    """

    sequence: TokenSequence
    episode: int
    versions_K: Sequence[int]
    advantage_T: Sequence[float] = ()
    reference_T: Sequence[float] | None = None
    old_T: Sequence[float] | None = None
    weight_T: Sequence[float] | None = None
    share_T: Sequence[float] | None = None
    images: Sequence[Any] = ()

    @property
    def counts_T(self) -> Sequence[float]:
        """How much each token counts: share_T on trained tokens, else 0."""
        return self.sequence.loss_mask_T if self.share_T is None else self.share_T


@dataclass(frozen=True)
class Minibatch:
    """Right-padded tensors: int64 ids, attention mask, turns (-1 on fed tokens) and versions, the others floats.

    mask_BT is 1 on trained tokens. weight_BT is the factor of each token's loss, and 0 where mask_BT is. sampled_BT has
    the log-probabilities of the sampler, logp_old_BT those that the loss compares with. version_BT is the number of
    policy updates before the turn, and -1 on fed tokens. images has those of each sequence.
    """

    ids_BT: Tensor
    attend_BT: Tensor
    turn_BT: Tensor
    mask_BT: Tensor
    weight_BT: Tensor
    sampled_BT: Tensor
    version_BT: Tensor
    logp_old_BT: Tensor
    advantage_BT: Tensor
    reference_BT: Tensor
    images: Sequence[Sequence[Any]] = ()

    def to(self, device: torch.device | str) -> Minibatch:
        moved: dict[str, Any] = {f.name: getattr(self, f.name).to(device) for f in fields(self) if f.name != "images"}
        return replace(self, **moved)


def pack(trajectories: Sequence[Trajectory]) -> list[Example]:
    """Pack episodes into sequences, without advantages. The turns that a continuation repeats are not trained."""
    examples = []
    for i, trajectory in enumerate(trajectories):
        start = trajectory.branch[0] if trajectory.branch else 0
        versions_K = [turn.policy_version for turn in trajectory.turns]
        for s in trajectory.sequences():
            if start:
                s.loss_mask_T = [m if k >= start else 0 for m, k in zip(s.loss_mask_T, s.turn_T, strict=True)]
            if not start or any(s.loss_mask_T):
                examples.append(Example(s, i, versions_K, images=_images(trajectory, max(s.turn_T))))
    return examples


def _images(trajectory: Trajectory, last: int) -> list[Any]:
    """Return the images in the context of a turn."""
    turns, turn = trajectory.turns[:last], trajectory.turns[last]
    return [image for seen in shown_observations(turns, turn.observation, turn.dropped) for image in images_of(seen)]


def with_shares(batch: Sequence[Example], weight: Callable[[int], float]) -> list[Example]:
    """Let each trained token count as much as weight(index of its turn)."""
    return [
        replace(
            e, share_T=[m and m * weight(k) for m, k in zip(e.sequence.loss_mask_T, e.sequence.turn_T, strict=True)]
        )
        for e in batch
    ]


def with_advantages(batch: Sequence[Example], advantages: Sequence[Floats]) -> list[Example]:
    """Give each token the advantage of its turn. ``advantages`` has one array per episode."""
    lists = [advantage_K.tolist() for advantage_K in advantages]
    return [replace(e, advantage_T=[0.0 if k < 0 else lists[e.episode][k] for k in e.sequence.turn_T]) for e in batch]


def episode_rewards(
    batch: Sequence[Example], trajectories: Sequence[Trajectory], kl: float = 0.0
) -> list[EpisodeRewards]:
    """Return what the advantages of each episode depend on, except for a critic's values.

    Args:
        batch: the result of pack() for the same episodes.
        trajectories: completed episodes, with ``group_id`` for an estimator that compares groups. A failed episode
            raises BadValue. Turns with the same state_key, or without one the same observation, are in the same state.
        kl: weight of a penalty in the reward: each turn pays kl times the sum of log p - log p_reference of its trained
            tokens. Needs reference_T in the batch unless it is 0.
    """
    rewards = [list(t.rewards_K) for t in trajectories]
    if kl:
        for example in batch:
            assert example.reference_T is not None
            s = example.sequence
            for turn, trained, logp, reference in zip(
                s.turn_T, s.loss_mask_T, s.logprobs_T, example.reference_T, strict=True
            ):
                rewards[example.episode][turn] -= kl * (logp - reference) if trained else 0.0
    return [
        EpisodeRewards(
            rewards_K,
            t.group_id,
            [_state_key(turn) for turn in t.turns],
            start=t.branch[0] if t.branch else None,
        )
        for rewards_K, t in zip(rewards, trajectories, strict=True)
    ]


def _state_key(turn: Turn) -> str:
    """Return the key of the state before a turn: that of the environment or, without one, the observation."""
    return json.dumps([turn.observation] if turn.state_key is None else {"key": turn.state_key}, default=str)


def counted_tokens(batch: Sequence[Example]) -> float:
    """Return the number of trained tokens, each counted by its share."""
    return sum(sum(e.counts_T) for e in batch)


def replies(batch: Sequence[Example]) -> float:
    """Return the number of replies with trained tokens, each counted by its share."""
    return sum(sum({k: n for k, n in zip(e.sequence.turn_T, e.counts_T, strict=True) if n}.values()) for e in batch)


def with_equal_replies(batch: Sequence[Example]) -> list[Example]:
    """Weight each trained token by 1 / the number of trained tokens of its reply."""
    weighted = []
    for e in batch:
        lengths, weight_T = _reply_lengths(e), e.weight_T or e.counts_T
        shares_T = [w / lengths[k] if w else 0.0 for w, k in zip(weight_T, e.sequence.turn_T, strict=True)]
        weighted.append(replace(e, weight_T=shares_T))
    return weighted


def _reply_lengths(example: Example) -> Counter[int]:
    sequence = example.sequence
    return Counter(k for k, trained in zip(sequence.turn_T, sequence.loss_mask_T, strict=True) if trained)


def minibatches(batch: Sequence[Example], size: int, rng: Random) -> Iterator[list[Example]]:
    """Yield shuffled minibatches of nearly equal size, of at most `size` examples.

    With Adam, a step on one left-over example would move the weights as far as one on a whole minibatch.
    """
    order = list(range(len(batch)))
    rng.shuffle(order)
    count = math.ceil(len(order) / size)
    for k in range(count):
        yield [batch[i] for i in order[k * len(order) // count : (k + 1) * len(order) // count]]


def micro_batches(minibatch: Sequence[Example], rows: Callable[[int], int], pad_id: int) -> Iterator[Minibatch]:
    """Yield the parts of a minibatch whose gradients are computed one after another.

    Args:
        rows: see by_length(). If all examples fit in one part, they keep their order.
    """
    groups = by_length(minibatch, rows)
    for indices in groups if len(groups) > 1 else [range(len(minibatch))]:
        yield collate([minibatch[i] for i in indices], pad_id)


def by_length(batch: Sequence[Example], rows: Callable[[int], int]) -> list[list[int]]:
    """Divide examples into groups of similar length, which saves padding. Returns the indices of each group.

    The longest are first, so that memory is exhausted early.

    Args:
        rows: returns the maximum size of a group whose longest example has so many tokens.
    """
    order = sorted(range(len(batch)), key=lambda i: length(batch[i]), reverse=True)
    groups = []
    while order:
        size = rows(length(batch[order[0]]))
        groups.append(order[:size])
        order = order[size:]
    return groups


def length(example: Example) -> int:
    """Return the number of tokens."""
    return len(example.sequence.ids_T)


def trained_tokens(batch: Sequence[Example]) -> int:
    """Return the number of trained tokens."""
    return sum(sum(e.sequence.loss_mask_T) for e in batch)


def collate(chosen: Sequence[Example], pad_id: int) -> Minibatch:
    """Convert examples to tensors, padded to the length of the longest example. Floats have torch's default type."""
    sequences = [e.sequence for e in chosen]
    lengths_B = np.array([len(s.ids_T) for s in sequences])
    fed_BT = np.arange(lengths_B.max())[None] < lengths_B[:, None]

    def padded(rows: Iterable[Sequence[float]], fill: int = 0, kind: type = float) -> Tensor:
        values_BT: Any = np.full(fed_BT.shape, fill, kind)
        values_BT[fed_BT] = list(chain.from_iterable(rows))
        values = torch.from_numpy(values_BT)
        return values if kind is int else values.to(torch.get_default_dtype())

    return Minibatch(
        ids_BT=padded((s.ids_T for s in sequences), pad_id, int),
        attend_BT=torch.from_numpy(fed_BT).long(),
        turn_BT=padded((s.turn_T for s in sequences), -1, int),
        mask_BT=padded(s.loss_mask_T for s in sequences),
        weight_BT=padded(e.weight_T or e.counts_T for e in chosen),
        sampled_BT=padded(s.logprobs_T for s in sequences),
        version_BT=padded(([e.versions_K[k] if k >= 0 else -1 for k in e.sequence.turn_T] for e in chosen), -1, int),
        logp_old_BT=padded(e.old_T or e.sequence.logprobs_T for e in chosen),
        advantage_BT=padded(e.advantage_T or [0.0] * len(e.sequence.ids_T) for e in chosen),
        reference_BT=padded(e.reference_T or [0.0] * len(e.sequence.ids_T) for e in chosen),
        images=[e.images for e in chosen],
    )
