"""Advantages over turns for frameworks whose estimators see tensors of token rewards and a mask."""

from __future__ import annotations

from typing import Any, Literal

from gem.errors import require
from gem.rl.estimate.advantages import ADVANTAGES, EpisodeRewards


def turn_advantages(name: Literal["rebn", "turn"], rewards_BT: Any, mask_BT: Any, gamma: float) -> tuple[Any, Any]:
    """Compute advantages over turns, which are the runs of ones in the mask.

    Args:
        name: see gem.rl.estimate.advantages.
        rewards_BT: tensor of token rewards. The reward of a turn is the sum of those from its first token up to the
            next turn.
        mask_BT: tensor of the same shape: 1 on sampled tokens. Rows without any are left out.
        gamma: discount per turn.

    Returns:
        The advantages, and the discounted returns of turns; both on the sampled tokens, and 0.0 on the others.
    """
    torch = require("torch", extra="train")
    mask = mask_BT.bool()
    starts = mask & ~torch.nn.functional.pad(mask[:, :-1], (1, 0))
    turn = starts.long().cumsum(1)  # 0 before the first turn
    turns = turn.amax(1).tolist()
    summed = torch.zeros(len(turn), max(turns, default=0) + 1, dtype=torch.float64, device=turn.device)
    summed.scatter_add_(1, turn, rewards_BT.double())
    episodes = [EpisodeRewards(row[1 : k + 1]) for row, k in zip(summed.tolist(), turns, strict=True) if k]
    results = []
    for estimate in (ADVANTAGES[name], ADVANTAGES["returns"]):
        values = torch.zeros(summed.shape, dtype=torch.float64)
        rows = (row for row, k in enumerate(turns) if k)
        for row, values_K in zip(rows, estimate(episodes, gamma=gamma), strict=True):
            values[row, 1 : len(values_K) + 1] = torch.from_numpy(values_K)
        results.append(values.to(turn.device).gather(1, turn).to(rewards_BT.dtype) * mask)
    return results[0], results[1]
