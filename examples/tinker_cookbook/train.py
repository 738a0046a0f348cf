"""Train a model with the loop of tinker-cookbook. Needs TINKER_API_KEY. See README.md."""

from __future__ import annotations

import argparse
import asyncio

from tinker_cookbook.rl.train import Config, main

from gem.integrations.tinker_cookbook import CookbookDatasetBuilder


def configuration(arguments: list[str] | None = None) -> Config:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="Qwen/Qwen3-8B", help="a base model of the service")
    parser.add_argument("--tokenizer", help="name or folder; default: that of the model")
    parser.add_argument("--env", default="game:GuessTheNumber-v0-easy", help="an id of `gem list`")
    parser.add_argument("--wrappers", default="", help="such as python_tool,concat_chat")
    parser.add_argument("--groups", type=int, default=16, help="seeds per step")
    parser.add_argument("--group-size", type=int, default=4, help="episodes with the same seed")
    parser.add_argument("--max-tokens", type=int, default=512, help="of one reply")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--output", default="runs/tinker_cookbook")
    options = parser.parse_args(arguments)
    builder = CookbookDatasetBuilder(
        env_id=options.env,
        tokenizer=options.tokenizer or options.model,
        num_tasks=options.steps * options.groups,
        batch_size=options.groups,
        group_size=options.group_size,
        wrappers=options.wrappers,
    )
    return Config(
        recipe_name="gem",
        model_name=options.model,
        dataset_builder=builder,
        learning_rate=options.learning_rate,
        max_tokens=options.max_tokens,
        log_path=options.output,
    )


if __name__ == "__main__":
    asyncio.run(main(configuration()))
