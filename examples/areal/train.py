"""Train a model with AReaL on an environment of gem. See README.md."""

from __future__ import annotations

import argparse
import sys

from datasets import Dataset
from gem.integrations import make_tasks


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options of this script, and the arguments of AReaL."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--env", default="game:GuessTheNumber-v0-easy", help="an id of `gem list`")
    parser.add_argument("--wrappers", default="", help="such as python_tool,concat_chat")
    parser.add_argument("--num-tasks", type=int, default=4096, help="tasks, each with its own seed")
    return parser.parse_known_args(arguments)


def dataset(options: argparse.Namespace) -> Dataset:
    tasks = make_tasks(options.env, options.num_tasks, wrappers=options.wrappers)
    return Dataset.from_list([task.to_row() for task in tasks])


def main(arguments: list[str]) -> None:
    from areal.api.cli_args import PPOConfig, load_expr_config
    from areal.trainer import PPOTrainer

    options, others = parse(arguments)
    config, _ = load_expr_config(others, PPOConfig)
    settings = {"gconfig": config.gconfig, "tokenizer": config.tokenizer_path}
    with PPOTrainer(config, train_dataset=dataset(options)) as trainer:
        trainer.train(workflow="gem.integrations.areal.GemWorkflow", workflow_kwargs=settings)


if __name__ == "__main__":
    main(sys.argv[1:])
