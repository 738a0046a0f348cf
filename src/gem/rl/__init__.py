"""Reference reinforcement learning algorithms, written close to their papers. Needs the extra [train].

What a run is told is at the top: config and the files and options that become one. estimate turns rewards into
gradients, model has the policy and its critic, data collects episodes, and run is the training loop around them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gem._internal.imports import lazy_names

if TYPE_CHECKING:
    from gem.rl.choices import needs
    from gem.rl.config import TrainConfig
    from gem.rl.estimate.advantages import ADVANTAGES, EpisodeRewards, discounted_returns, normalize_batch
    from gem.rl.estimate.losses import LOSSES, PolicyTokens, TokenLoss
    from gem.rl.model.strategy import PolicyStrategy, strategy_of
    from gem.rl.run.build import load_policy
    from gem.rl.run.trainer import Trainer

__all__ = [
    "ADVANTAGES",
    "LOSSES",
    "EpisodeRewards",
    "PolicyStrategy",
    "PolicyTokens",
    "TokenLoss",
    "TrainConfig",
    "Trainer",
    "discounted_returns",
    "load_policy",
    "needs",
    "normalize_batch",
    "strategy_of",
]

# Read when PyTorch is imported. Threads that spin while they wait for each other take the time of those they wait for
# wherever other processes run: an update of SmolLM2-135M on two busy cores took 27 s instead of 8.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Most of them import PyTorch.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "config": "TrainConfig",
        "choices": "needs",
        "estimate.advantages": "ADVANTAGES EpisodeRewards discounted_returns normalize_batch",
        "estimate.losses": "LOSSES PolicyTokens TokenLoss",
        "model.strategy": "PolicyStrategy strategy_of",
        "run.build": "load_policy",
        "run.trainer": "Trainer",
    },
)
