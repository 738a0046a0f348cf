"""From rewards to advantages, turn by turn. Plain numpy, no model.

Axes: K turns of one episode, N turns of a whole batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gem.errors import BadValue

Floats = npt.NDArray[np.float64]


def discounted_returns(rewards_K: Sequence[float], gamma: float) -> Floats:
    """returns_K[k] = Σ_{j≥k} gamma^(j-k) rewards_K[j], one per turn (arXiv 2510.01051, eq. 1).

    gamma: discount per turn, in [0, 1]. Raises BadValue outside, and for a reward that is not finite.

    >>> discounted_returns([0, 0, 1], gamma=0.5).tolist()
    [0.25, 0.5, 1.0]
    """
    if not 0.0 <= gamma <= 1.0:
        raise BadValue(f"gamma must be in [0, 1], got {gamma}")
    returns_K = np.array(rewards_K, dtype=np.float64)
    if not np.isfinite(returns_K).all():
        raise BadValue(f"rewards must be finite, got {list(rewards_K)}; a failed episode has none and is left out")
    for k in range(len(returns_K) - 2, -1, -1):
        returns_K[k] += gamma * returns_K[k + 1]
    return returns_K


def normalize_batch(
    returns_N: Sequence[float] | Floats, groups_N: Sequence[int] | npt.NDArray[np.int64] | None = None
) -> Floats:
    """Return batch normalisation, ReBN: (G - mean) / std over all turns of a batch (arXiv 2510.01051, eq. 4).

    The population standard deviation, in two passes and float64: sqrt(E[x²] - E[x]²) in float32 gave NaN on constant
    batches. Where all returns are equal (to 1e-12 of their size) there is nothing to prefer: zeros.

    groups_N: when given, each return is compared with the mean of its group instead of the batch's; the scale stays
    the batch's. With turn indices as groups a lucky first turn is no longer punished for being early.

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
