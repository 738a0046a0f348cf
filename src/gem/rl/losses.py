"""Losses over tokens. Axes: B sequences, T tokens, V vocabulary."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class PolicyLoss(NamedTuple):
    """A scalar loss and detached statistics.

    Args:
        loss: scalar to minimize.
        clipped: share of trained tokens whose probability ratio is outside the clip range, 0 to 1.
        kl: mean of logp_old - logp over trained tokens.
    """

    loss: Tensor
    clipped: float
    kl: float


def policy_gradient(
    logp_BT: Tensor,
    logp_old_BT: Tensor,
    advantage_BT: Tensor,
    mask_BT: Tensor,
    *,
    clip: float | None,
    normalizer: float,
) -> PolicyLoss:
    """Compute the policy gradient loss, summed over trained tokens and divided by ``normalizer``.

    Args:
        logp_BT: log-probabilities under the current policy, with gradient.
        logp_old_BT: log-probabilities under the policy that sampled the tokens.
        advantage_BT: for each token, the advantage of its turn.
        mask_BT: 1.0 on trained tokens, else 0.0.
        clip: None selects REINFORCE, -A log p; epsilon selects PPO's -min(r A, clip(r, 1 - epsilon, 1 + epsilon) A)
            with r = p / p_old.
        normalizer: divisor of the sum. Use a constant that does not depend on the lengths, to avoid length bias.

    Sources: arXiv 2503.20783 (Dr. GRPO, constant divisor); arXiv 1707.06347, eq. 7 (PPO).
    """
    log_ratio_BT = ((logp_BT - logp_old_BT) * mask_BT).clamp(-20.0, 20.0)  # exp stays finite in float32
    tokens = mask_BT.sum().clamp(min=1.0)
    if clip is None:
        objective_BT = logp_BT * advantage_BT
        clipped = torch.zeros(())
    else:
        ratio_BT = log_ratio_BT.exp()
        bounded_BT = ratio_BT.clamp(1.0 - clip, 1.0 + clip)
        objective_BT = torch.minimum(ratio_BT * advantage_BT, bounded_BT * advantage_BT)
        clipped = (((ratio_BT - 1.0).abs() > clip) * mask_BT).sum() / tokens
    loss = -(objective_BT * mask_BT).sum() / normalizer
    return PolicyLoss(loss, float(clipped), float(-log_ratio_BT.detach().sum() / tokens))


def kl_penalty(logp_BT: Tensor, logp_reference_BT: Tensor, mask_BT: Tensor, *, normalizer: float) -> Tensor:
    """Estimate KL(policy, reference) from the sampled tokens: r - log r - 1 with r = p_reference / p.

    The estimator (k3) is never negative and has low variance. The log-ratio is clamped to ±20, where exp is finite in
    float32.

    Args:
        logp_BT: log-probabilities under the current policy, with gradient.
        logp_reference_BT: log-probabilities under the reference model.
        mask_BT: 1.0 on trained tokens, else 0.0.
        normalizer: divisor of the sum.

    Source: arXiv 2402.03300 (GRPO), eq. 4.
    """
    log_ratio_BT = ((logp_reference_BT - logp_BT) * mask_BT).clamp(-20.0, 20.0)
    return ((log_ratio_BT.exp() - log_ratio_BT - 1.0) * mask_BT).sum() / normalizer


def cross_entropy(logp_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Compute the mean negative log-likelihood of the tokens with mask 1."""
    return -(logp_BT * mask_BT).sum() / mask_BT.sum().clamp(min=1.0)


def mean_entropy(entropy_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Compute the mean entropy in nats over the tokens with mask 1."""
    return (entropy_BT * mask_BT).sum() / mask_BT.sum().clamp(min=1.0)
