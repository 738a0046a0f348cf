"""Checks of a training configuration that need no PyTorch, so that mistakes are found before it is imported."""

from __future__ import annotations

import json
from pathlib import Path

from gem.errors import BadValue
from gem.registry import ENV_REGISTRY, make
from gem.rl.config import TrainConfig
from gem.wrappers import get_wrapper_fns


def check_names(config: TrainConfig) -> None:
    """Raise CallerError if the environment, a wrapper or the folder of the model does not exist."""
    _ = ENV_REGISTRY[config.env]
    get_wrapper_fns(config.wrappers)
    check_model_path(config.model)


def check_model_path(model: str | None) -> None:
    """Raise BadValue unless ``model`` is None, an existing folder, or has the form owner/name of a hub id."""
    if model is not None and not Path(model).is_dir() and (model.startswith((".", "/", "~")) or model.count("/") != 1):
        raise BadValue(f"no model folder {model!r}; give a folder with config.json, or a hub id like owner/name")


def check_trainable(config: TrainConfig) -> None:
    """Check that the environment can be checkpointed and samples the random actions that the warm-up needs.

    Raises:
        BadValue: if the environment does not support this.
    """
    with make(config.env, **config.env_kwargs) as env:
        observation, _ = env.reset(seed=0)
        if isinstance(observation, dict) and set(observation) != {"text"}:
            raise BadValue(f"cannot train on {config.env}: its observations contain images, and policies read text")
        try:
            json.dumps(env.get_state())
            if config.model is None or config.imitation_steps:
                env.sample_random_action()
        except (NotImplementedError, TypeError) as e:
            raise BadValue(f"cannot train on {config.env}: {e}") from e
