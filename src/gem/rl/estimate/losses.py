"""Losses over tokens.

LOSSES has the losses of the policy, by the name that `gem train --loss` takes. Each is given the tokens of a minibatch
and returns the loss of each token; its keyword arguments are what `--loss-options` sets. A function of yours works the
same way; see docs/algorithms.md.

Axes: B sequences, T tokens, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

from msgspec import Meta

from gem._internal.typed import Positive

if TYPE_CHECKING:  # so that options can be checked before PyTorch is imported, which takes seconds
    from torch import Tensor

__all__ = ["cispo", "gspo", "ppo", "reinforce"]

BETAS = (0.9, 0.99)  # of AdamW, for the policy and the critic
MAX_GRAD_NORM = 1.0  # larger gradients are scaled down, as in arXiv 2510.01051
LOG_RATIO_LIMIT = 20.0  # log-ratios are clamped to ± this, where exp is finite in float32

Below: TypeAlias = Annotated[float, Meta(gt=0, lt=1)] | None  # a ratio is at least 0: 1 would bound nothing
Above: TypeAlias = Positive | None


class PolicyTokens(NamedTuple):
    """The tokens of a minibatch, for a loss.

    Args:
        logp_BT: log-probabilities under the current policy, with gradient.
        logp_old_BT: log-probabilities under the policy that sampled the tokens.
        advantage_BT: for each token, the advantage of its turn.
        mask_BT: 1.0 on trained tokens, else 0.0.
        turn_BT: index of the turn that sampled each token; -1 on tokens that the policy did not sample.
    """

    logp_BT: Tensor
    logp_old_BT: Tensor
    advantage_BT: Tensor
    mask_BT: Tensor
    turn_BT: Tensor

    @property
    def log_ratio_BT(self) -> Tensor:
        """Log p - log p_old of the trained tokens, within LOG_RATIO_LIMIT; 0 on the others."""
        return ((self.logp_BT - self.logp_old_BT) * self.mask_BT).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


class TokenLoss(NamedTuple):
    """The result of a loss.

    Args:
        loss_BT: loss of each token, to minimize. The training loop weights, sums and divides them (`--aggregation`).
        clipped_BT: whether the probability ratio of a token is outside the clip range; None for a loss without one.
    """

    loss_BT: Tensor
    clipped_BT: Tensor | None = None


def reinforce(tokens: PolicyTokens) -> TokenLoss:
    """Compute -r A, with r = p / p_old.

    Its gradient is that of REINFORCE where the current policy sampled the token, and is corrected for turns that an
    earlier policy sampled.
    """
    return TokenLoss(-tokens.log_ratio_BT.exp() * tokens.advantage_BT)


def ppo(
    tokens: PolicyTokens,
    *,
    clip_low: Below = 0.2,
    clip_high: Above = 0.2,
    dual_clip: Annotated[float, Meta(gt=1)] | None = None,
) -> TokenLoss:
    """Compute -min(r A, clip(r) A), with r = p / p_old (arXiv 1707.06347, eq. 7).

    Args:
        clip_low, clip_high: ratios in [1 - clip_low, 1 + clip_high] are not clipped; None for no bound on that side.
        dual_clip: for negative advantages, the loss of a token is at most this multiple of the one at ratio 1
            (arXiv 1912.09729, eq. 5). None for no limit.
    """
    return _clipped(tokens.log_ratio_BT, tokens.advantage_BT, clip_low, clip_high, dual_clip)


def gspo(
    tokens: PolicyTokens,
    *,
    clip_low: Below = 3e-4,
    clip_high: Above = 4e-4,
    dual_clip: Annotated[float, Meta(gt=1)] | None = None,
) -> TokenLoss:
    """Compute the same as ppo(), with the geometric mean of r over the tokens of the turn's reply in place of r.

    Source: arXiv 2507.18071, eq. 5, and section 5.1 for the bounds.
    """
    log_ratio_BT = mean_by_turn(tokens.log_ratio_BT, tokens.mask_BT, tokens.turn_BT)
    return _clipped(log_ratio_BT, tokens.advantage_BT, clip_low, clip_high, dual_clip)


def cispo(tokens: PolicyTokens, *, clip_low: Below = None, clip_high: Above = 4.0) -> TokenLoss:
    """Compute -clip(r) A log p, where clip(r) is a constant, so that clipped tokens keep a gradient.

    Source: arXiv 2506.13585, eq. 4; weights of at most 5, as in arXiv 2510.13786.
    """
    ratio_BT = tokens.log_ratio_BT.exp()
    bounded_BT = _bounded(ratio_BT, clip_low, clip_high)
    return TokenLoss(-bounded_BT.detach() * tokens.advantage_BT * tokens.logp_BT, ratio_BT != bounded_BT)


# The losses of `gem train --loss`, by name; see gem.rl.estimate.losses.
LOSSES: dict[str, Callable[..., TokenLoss]] = {f.__name__: f for f in (ppo, gspo, cispo, reinforce)}


def _clipped(
    log_ratio_BT: Tensor, advantage_BT: Tensor, low: float | None, high: float | None, dual: float | None
) -> TokenLoss:
    ratio_BT = log_ratio_BT.exp()
    bounded_BT = _bounded(ratio_BT, low, high)
    objective_BT = (ratio_BT * advantage_BT).minimum(bounded_BT * advantage_BT)
    if dual is not None:
        lowest_BT = (dual * advantage_BT).masked_fill(advantage_BT >= 0, -math.inf)
        objective_BT = objective_BT.maximum(lowest_BT)
    return TokenLoss(-objective_BT, ratio_BT != bounded_BT)


def _bounded(ratio_BT: Tensor, low: float | None, high: float | None) -> Tensor:
    """Move ratios outside [1 - low, 1 + high] to the bounds."""
    if low is None and high is None:
        return ratio_BT
    return ratio_BT.clamp(None if low is None else 1.0 - low, None if high is None else 1.0 + high)


def kl_penalty(
    logp_BT: Tensor,
    logp_old_BT: Tensor,
    logp_reference_BT: Tensor,
    weight_BT: Tensor,
    *,
    normalizer: float,
) -> Tensor:
    """Estimate KL(policy, reference) from tokens that an earlier policy sampled.

    With d = log p - log p_reference and r = p / p_old, the value is the mean of r (exp(-d) + d - 1), which is unbiased
    and never negative ("k3").

    The gradient is that of KL(policy, reference): r d ∇log p. Differentiating the value would give that of
    KL(reference, policy), which is small where the policy prefers a token that the reference rarely takes. The KL is
    that of each token given the tokens before it; its effect on later tokens is not part of the gradient.

    Args:
        logp_BT: log-probabilities under the current policy, with gradient.
        logp_old_BT: log-probabilities under the policy that sampled the tokens.
        logp_reference_BT: log-probabilities under the reference model.
        weight_BT: factor of each token's term: 1.0 on trained tokens, else 0.0, or other weights.
        normalizer: divisor of the sum.

    Sources: http://joschu.net/blog/kl-approx.html (k3); arXiv 2402.03300 (GRPO), eq. 4.
    """
    trained_BT = weight_BT != 0
    constant_BT = logp_BT.detach()
    d_BT = ((constant_BT - logp_reference_BT) * trained_BT).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    ratio_BT = ((constant_BT - logp_old_BT) * trained_BT).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
    value_BT = (-d_BT).exp() + d_BT - 1.0
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
