"""Reference reinforcement learning algorithms, written close to their papers. Needs the extra [train].

What a run is told is at the top: config and the files and options that become one. estimate turns rewards into
gradients, model has the policy and its critic, data collects episodes, and run is the training loop around them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem._internal.imports import resolve

if TYPE_CHECKING:
    from gem.rl.config import TrainConfig
    from gem.rl.estimate.advantages import EpisodeRewards, Estimator, discounted_returns, normalize_batch
    from gem.rl.model.strategy import PolicyStrategy, strategy_of
    from gem.rl.run.build import load_policy
    from gem.rl.run.trainer import Trainer

__all__ = [
    "EpisodeRewards",
    "Estimator",
    "PolicyStrategy",
    "TrainConfig",
    "Trainer",
    "discounted_returns",
    "load_policy",
    "normalize_batch",
    "strategy_of",
]

# Imported on first use, because most of them import PyTorch.
_HOMES = {
    "TrainConfig": "config",
    **dict.fromkeys(["EpisodeRewards", "Estimator", "discounted_returns", "normalize_batch"], "estimate.advantages"),
    **dict.fromkeys(["PolicyStrategy", "strategy_of"], "model.strategy"),
    "load_policy": "run.build",
    "Trainer": "run.trainer",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gem.rl' has no attribute {name!r}")
    return resolve(f"gem.rl.{_HOMES[name]}:{name}")
