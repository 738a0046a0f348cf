"""Checks of a training configuration that need no PyTorch, so that mistakes are found before it is imported."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

from gem.conversation.observations import images_of
from gem.errors import BadValue
from gem.evaluation.logs.services import check_installed
from gem.evaluation.tournament import make_game, sparring_player
from gem.registry import ENV_REGISTRY, make
from gem.rl.config import LATEST, PAST, TrainConfig, opponent_value
from gem.rl.environments import EnvSetting, wrapper_fns
from gem.rollout import check_forkable
from gem.wrappers.wrapper_factory import is_tool


def check_names(config: TrainConfig) -> None:
    """Raise CallerError if an environment, a wrapper or the folder of the model does not exist."""
    for env in (*config.envs, *config.eval_sets):
        _ = ENV_REGISTRY[env.id]
        check_wrappers(env)
    check_model_path(config.model)
    if config.log is not None:
        check_installed(config.log)


def check_wrappers(env: EnvSetting) -> None:
    """Raise BadValue unless at most one wrapper shows the history, and no tool comes after it."""
    names = [name.strip() for name in (env.wrappers or "").split(",") if name.strip()]
    wrapper_fns(env)
    history = [i for i, name in enumerate(names) if name.startswith("concat")]
    if len(history) > 1:
        raise BadValue(
            f"wrappers of {env.id}: {names[history[0]]} and {names[history[1]]} would show the history twice"
        )
    for name in names[history[0] + 1 :] if history else []:
        if is_tool(name):
            raise BadValue(
                f"wrappers of {env.id}: {name} must come before {names[history[0]]}, which shows its results"
            )


def check_model_path(model: str | None) -> None:
    """Raise BadValue unless ``model`` is None, an existing folder, or has the form owner/name of a hub id."""
    if model is not None and not Path(model).is_dir() and (model.startswith((".", "/", "~")) or model.count("/") != 1):
        raise BadValue(f"no model folder {model!r}; give a folder with config.json, or a hub id like owner/name")


def check_trainable(config: TrainConfig) -> None:
    """Check that each environment can be checkpointed and samples the random actions that the warm-up needs.

    Raises:
        BadValue: if an environment does not support this.
    """
    for env in config.envs:
        _check_trainable(config, env)
    if config.model is None:
        check_images(config, reads_images=False)


def samples_actions(config: TrainConfig) -> bool:
    """Return whether all environments sample the random legal actions that a warm-up imitates."""
    for env in config.envs:
        with make(env.id, **env.kwargs) as made:
            made.reset(seed=0)
            try:
                made.sample_random_action()
            except NotImplementedError:
                return False
    return True


def check_images(config: TrainConfig, *, reads_images: bool) -> None:
    """Raise BadValue if an environment shows images, unless the model reads them and the options support them."""
    for env in {env.id: env for env in (*config.eval_sets, *config.envs)}.values():
        with make(env.id, **env.kwargs) as made:
            observation, _ = made.reset(seed=0)
        if not isinstance(observation, str) and images_of(observation):
            if not reads_images:
                raise BadValue(f"cannot train on {env.id}: its observations contain images, and the model reads text")
            if config.critic is not None or config.sampler is not None:
                unsupported = "a critic" if config.critic is not None else "a sampler"
                raise BadValue(f"cannot train on {env.id} with {unsupported}, which reads no images")


def _check_trainable(config: TrainConfig, env: EnvSetting) -> None:
    if config.self_play:
        make_game(env.id, env.kwargs, "self-play").close()
        for name in set(config.opponent_weights) - {LATEST, PAST}:
            sparring_player(env.id, opponent_value(name), env.kwargs)
    with make(env.id, **env.kwargs) as made:
        made.reset(seed=0)
        try:
            json.dumps(made.get_state())
            if config.model is None or config.imitation_steps:
                made.sample_random_action()
        except (NotImplementedError, TypeError) as e:
            raise BadValue(f"cannot train on {env.id}: {e}") from e
    if config.branch_plan is not None:
        with ExitStack() as stack:
            made = stack.enter_context(make(env.id, **env.kwargs))
            for wrap in wrapper_fns(env):
                made = stack.enter_context(wrap(made))
            check_forkable(made)
