"""Losses over tokens. Axes: B sequences, T tokens, V vocabulary."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class PolicyLoss(NamedTuple):
    """A scalar to minimise and what to log of it, detached.

    clipped: share of trained tokens whose ratio lay outside the clip range, 0 to 1. kl: mean of logp_old - logp.
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
    """Policy gradient, summed over trained tokens and divided by a constant (Dr. GRPO, arXiv 2503.20783).

    Args:
        logp_BT: log-probabilities under the current policy, with gradient.
        logp_old_BT: under the policy that sampled.
        advantage_BT: one per token; the turn's advantage on each of its tokens.
        mask_BT: 1.0 where a token is trained, else 0.0.
        clip: None gives REINFORCE, -A log p; epsilon gives PPO's -min(r A, clip(r, 1 - epsilon, 1 + epsilon) A) with
            r = p / p_old (arXiv 1707.06347, eq. 7).
        normalizer: what the sum is divided by. A constant, so that a long answer weighs no more than a short one.
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
    """Estimate of KL(policy, reference) from the sampled tokens: r - log r - 1 with r = p_reference / p.

    Never negative, and low in variance (the estimator k3 of GRPO's loss, arXiv 2402.03300, eq. 4). The log-ratio is
    kept within 20, where exp is still finite in float32.
    """
    log_ratio_BT = ((logp_reference_BT - logp_BT) * mask_BT).clamp(-20.0, 20.0)
    return ((log_ratio_BT.exp() - log_ratio_BT - 1.0) * mask_BT).sum() / normalizer


def cross_entropy(logp_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Mean negative log-likelihood of the masked tokens: imitation."""
    return -(logp_BT * mask_BT).sum() / mask_BT.sum().clamp(min=1.0)


def mean_entropy(entropy_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Mean entropy, in nats, of the distributions that the masked tokens were drawn from."""
    return (entropy_BT * mask_BT).sum() / mask_BT.sum().clamp(min=1.0)
