"""Losses over tokens. Axes: B sequences, T tokens, V vocabulary."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

BETAS = (0.9, 0.99)  # of AdamW, for the policy and the critic
LOG_RATIO_LIMIT = 20.0  # log-ratios are clamped to ± this, where exp is finite in float32


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


class ClipRange(NamedTuple):
    """Bounds of the probability ratio, as distances from 1: ratios in [1 - low, 1 + high] are not clipped.

    Args:
        low, high: greater than 0; None for no bound on that side.
        dual: for negative advantages, the loss of a token is at most this multiple of the one at ratio 1; greater than
            1. None for no limit.
    """

    low: float | None
    high: float | None
    dual: float | None = None

    def clamp(self, ratio_BT: Tensor) -> Tensor:
        """Move ratios outside the range to its bounds."""
        if self.low is None and self.high is None:
            return ratio_BT
        return ratio_BT.clamp(
            None if self.low is None else 1.0 - self.low, None if self.high is None else 1.0 + self.high
        )


def policy_gradient(
    logp_BT: Tensor,
    logp_old_BT: Tensor,
    advantage_BT: Tensor,
    mask_BT: Tensor,
    *,
    clip: ClipRange,
    normalizer: float,
    loss: Literal["ppo", "gspo", "cispo"] = "ppo",
    turn_BT: Tensor | None = None,
    weight_BT: Tensor | None = None,
) -> PolicyLoss:
    """Compute the policy gradient loss, summed over trained tokens and divided by ``normalizer``.

    With r = p / p_old, the term of a token is:

    - "ppo": -min(r A, clip(r) A). Without bounds this is -r A, whose gradient is that of REINFORCE where the current
      policy sampled the token, and is corrected for turns that an earlier policy sampled.
    - "gspo": the same, with the geometric mean of r over the tokens of the turn's reply in place of r.
    - "cispo": -clip(r) A log p, where clip(r) is a constant, so that clipped tokens keep a gradient.

    Args:
        logp_BT: log-probabilities under the current policy, with gradient.
        logp_old_BT: log-probabilities under the policy that sampled the tokens.
        advantage_BT: for each token, the advantage of its turn.
        mask_BT: 1.0 on trained tokens, else 0.0.
        clip: bounds of r.
        normalizer: divisor of the sum. Use a constant that does not depend on the lengths, to avoid length bias.
        turn_BT: index of the turn that sampled each token; required by "gspo".
        weight_BT: factor of each token's term; 0 on tokens that are not trained. None for mask_BT.

    Sources: arXiv 1707.06347, eq. 7 (PPO); arXiv 1912.09729, eq. 5 (dual clip); arXiv 2507.18071, eq. 5 (GSPO);
    arXiv 2506.13585, eq. 4 (CISPO); arXiv 2503.20783 (Dr. GRPO, constant divisor).
    """
    weight_BT = mask_BT if weight_BT is None else weight_BT
    log_ratio_BT = ((logp_BT - logp_old_BT) * mask_BT).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    tokens = mask_BT.sum().clamp(min=1.0)
    drift = float(-log_ratio_BT.detach().sum() / tokens)
    if loss == "gspo":
        assert turn_BT is not None
        log_ratio_BT = mean_by_turn(log_ratio_BT, mask_BT, turn_BT)
    ratio_BT = log_ratio_BT.exp()
    bounded_BT = clip.clamp(ratio_BT)
    if loss == "cispo":
        objective_BT = bounded_BT.detach() * advantage_BT * logp_BT
    else:
        objective_BT = torch.minimum(ratio_BT * advantage_BT, bounded_BT * advantage_BT)
        if clip.dual is not None:
            lowest_BT = torch.where(advantage_BT < 0, clip.dual * advantage_BT, -torch.inf)
            objective_BT = torch.maximum(objective_BT, lowest_BT)
    clipped = ((ratio_BT != bounded_BT) * mask_BT).sum() / tokens
    return PolicyLoss(-(objective_BT * weight_BT).sum() / normalizer, float(clipped), drift)


def kl_penalty(
    logp_BT: Tensor,
    logp_old_BT: Tensor,
    logp_reference_BT: Tensor,
    weight_BT: Tensor,
    *,
    normalizer: float,
    estimator: Literal["k1", "k2", "k3"] = "k3",
) -> Tensor:
    """Estimate KL(policy, reference) from tokens that an earlier policy sampled.

    With d = log p - log p_reference and r = p / p_old, the value is the mean of r k, where k is d ("k1"), d²/2 ("k2")
    or exp(-d) + d - 1 ("k3"). k1 and k3 are unbiased; k3 is never negative and has a lower variance.

    The gradient is that of KL(policy, reference) for every estimator: r d ∇log p. Differentiating k1 and k3 directly
    would give an expectation of 0, and the gradient of KL(reference, policy), which is small where the policy prefers a
    token that the reference rarely takes. The KL is that of each token given the tokens before it; its effect
    on later tokens is not part of the gradient.

    Args:
        logp_BT: log-probabilities under the current policy, with gradient.
        logp_old_BT: log-probabilities under the policy that sampled the tokens.
        logp_reference_BT: log-probabilities under the reference model.
        weight_BT: factor of each token's term: 1.0 on trained tokens, else 0.0, or other weights.
        normalizer: divisor of the sum.

    Sources: http://joschu.net/blog/kl-approx.html (k1, k2, k3); arXiv 2402.03300 (GRPO), eq. 4.
    """
    trained_BT = weight_BT != 0
    constant_BT = logp_BT.detach()
    d_BT = ((constant_BT - logp_reference_BT) * trained_BT).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    ratio_BT = ((constant_BT - logp_old_BT) * trained_BT).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
    value_BT = {"k1": d_BT, "k2": d_BT**2 / 2, "k3": (-d_BT).exp() + d_BT - 1.0}[estimator]
    with_gradient_BT = value_BT + d_BT * (logp_BT - constant_BT)  # equals the value; d_BT is its slope
    return (ratio_BT * with_gradient_BT * weight_BT).sum() / normalizer


def mean_by_turn(values_BT: Tensor, mask_BT: Tensor, turn_BT: Tensor) -> Tensor:
    """Replace the value of each token by the mean over the trained tokens of its turn; tokens with turn -1 get 0."""
    index_BT = turn_BT + 1
    zeros_BK = values_BT.new_zeros(len(values_BT), int(index_BT.max()) + 1)
    sums_BK = zeros_BK.scatter_add(1, index_BT, values_BT * mask_BT)
    counts_BK = zeros_BK.scatter_add(1, index_BT, mask_BT.to(values_BT.dtype)).clamp(min=1.0)
    return (sums_BK / counts_BK).gather(1, index_BT) * (turn_BT >= 0)


def cross_entropy(logp_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Compute the mean negative log-likelihood of the tokens with mask 1."""
    return -(logp_BT * mask_BT).sum() / mask_BT.sum().clamp(min=1.0)


def mean_entropy(entropy_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Compute the mean entropy in nats over the tokens with mask 1."""
    return (entropy_BT * mask_BT).sum() / mask_BT.sum().clamp(min=1.0)
