"""Turn-level returns and advantages, in numpy.

Axes: K turns of one episode, N turns of a whole batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gem.errors import BadValue

Floats = npt.NDArray[np.float64]


def discounted_returns(rewards_K: Sequence[float], gamma: float) -> Floats:
    """Compute discounted returns, one per turn: returns_K[k] = Σ_{j≥k} gamma^(j-k) rewards_K[j].

    Args:
        rewards_K: finite rewards, one per turn.
        gamma: discount per turn, in [0, 1].

    Raises:
        BadValue: for gamma out of range or a reward that is not finite.

    Source: arXiv 2510.01051, eq. 1.

    >>> discounted_returns([0, 0, 1], gamma=0.5).tolist()
    [0.25, 0.5, 1.0]
    """
    if not 0.0 <= gamma <= 1.0:
        raise BadValue(f"gamma must be in [0, 1], got {gamma}")
    returns_K = np.array(rewards_K, dtype=np.float64)
    if not np.isfinite(returns_K).all():
        raise BadValue(f"rewards must be finite, got {list(rewards_K)}; leave out failed episodes, which have none")
    for k in range(len(returns_K) - 2, -1, -1):
        returns_K[k] += gamma * returns_K[k + 1]
    return returns_K


def normalize_batch(
    returns_N: Sequence[float] | Floats, groups_N: Sequence[int] | npt.NDArray[np.int64] | None = None
) -> Floats:
    """Normalize returns over all turns of a batch (ReBN): (return - mean) / std.

    The population standard deviation is computed in float64 and two passes: the one-pass formula sqrt(E[x²] - E[x]²) in
    float32 gave NaN for constant batches. If the standard deviation is at most 1e-12 of the
    largest absolute return, all advantages are 0.

    Args:
        returns_N: one return per turn of the batch.
        groups_N: group of each turn. The mean of the group is subtracted instead of the mean of the batch; the divisor
            is the root mean square of the results over the whole batch. With turn indices as groups,
            early turns are not penalized for their smaller discounted returns. None treats the batch as one group.

    Returns:
        One advantage per turn.

    Source: arXiv 2510.01051, eq. 4.

    >>> normalize_batch([0.0, 1.0]).tolist(), normalize_batch([0.1, 0.1, 0.1]).tolist()
    ([-1.0, 1.0], [0.0, 0.0, 0.0])
    """
    returns = np.asarray(returns_N, dtype=np.float64)
    if returns.size == 0:
        return returns
    groups = np.zeros(returns.size, dtype=np.int64) if groups_N is None else np.asarray(groups_N)
    centered = np.empty_like(returns)
    for group in np.unique(groups):
        members = groups == group
        centered[members] = returns[members] - returns[members].mean()
    std = np.sqrt(np.mean(centered**2))
    if std <= 1e-12 * np.abs(returns).max():
        return np.zeros_like(returns)
    advantages: Floats = centered / std
    return advantages
