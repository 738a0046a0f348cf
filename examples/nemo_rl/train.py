"""Train a model with NeMo-RL on an environment of gem. See README.md."""

from __future__ import annotations

import argparse
import sys

from gem.integrations import EnvTask, make_tasks
from gem.integrations.nemo_rl import TASK_NAME, GemActor, GemDataset


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options of this script, and the overrides of NeMo-RL's configuration."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--config", required=True, help="a configuration of NeMo-RL for GRPO")
    parser.add_argument("--env", default="game:GuessTheNumber-v0-easy", help="an id of `gem list`")
    parser.add_argument("--wrappers", default="", help="such as python_tool")
    parser.add_argument("--num-tasks", type=int, default=4096, help="tasks, each with its own seed")
    return parser.parse_known_args(arguments)


def tasks(options: argparse.Namespace) -> tuple[list[EnvTask], list[EnvTask]]:
    """Return the tasks to train and to validate on."""
    train = make_tasks(options.env, options.num_tasks, wrappers=options.wrappers)
    return train, make_tasks(options.env, 256, seed=1, wrappers=options.wrappers)


def main(arguments: list[str]) -> None:
    from nemo_rl.algorithms.grpo import MasterConfig, grpo_train, setup
    from nemo_rl.algorithms.utils import get_tokenizer, set_seed
    from nemo_rl.distributed.virtual_cluster import init_ray
    from nemo_rl.models.generation import configure_generation_config
    from nemo_rl.utils.config import load_config, parse_hydra_overrides, register_omegaconf_resolvers
    from nemo_rl.utils.logger import get_next_experiment_dir
    from omegaconf import OmegaConf

    options, overrides = parse(arguments)
    register_omegaconf_resolvers()
    loaded = parse_hydra_overrides(load_config(options.config), overrides)
    config = MasterConfig(**OmegaConf.to_container(loaded, resolve=True))
    config.logger["log_dir"] = get_next_experiment_dir(config.logger["log_dir"])
    init_ray()
    set_seed(config.grpo.seed)
    tokenizer = get_tokenizer(config.policy["tokenizer"])
    config.policy["generation"] = configure_generation_config(config.policy["generation"], tokenizer)
    train, validation = (GemDataset(split, tokenizer) for split in tasks(options))
    actors = {TASK_NAME: GemActor.remote({"tokenizer": config.policy["tokenizer"]["name"]})}
    policy, generation, _, _, loader, val_loader, loss, logger, checkpointer, state, config, *_ = setup(
        config, tokenizer, train, validation
    )
    grpo_train(
        policy, generation, loader, val_loader, tokenizer, loss, actors, actors, logger, checkpointer, state, config
    )


if __name__ == "__main__":
    main(sys.argv[1:])
