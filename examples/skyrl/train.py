"""Train a model with SkyRL on an environment of gem. See README.md."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from gem.integrations import make_tasks
from gem.integrations.skyrl import GemGenerator, dataset_rows


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options of this script, and the arguments of SkyRL."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--env", default="game:GuessTheNumber-v0-easy", help="an id of `gem list`")
    parser.add_argument("--wrappers", default="", help="such as python_tool,concat_chat")
    parser.add_argument("--num-tasks", type=int, default=4096, help="tasks, each with its own seed")
    parser.add_argument("--data", type=Path, default=Path("data/skyrl"), help="folder of the dataset")
    return parser.parse_known_args(arguments)


def write_dataset(options: argparse.Namespace) -> list[str]:
    """Write the files of tasks; return the arguments of SkyRL that name them."""
    options.data.mkdir(parents=True, exist_ok=True)
    found = []
    for name, number, seed in (("train", options.num_tasks, 0), ("val", 256, 1)):
        tasks = make_tasks(options.env, number, seed=seed, wrappers=options.wrappers)
        path = options.data / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in dataset_rows(tasks)), encoding="utf-8")
        found.append(f"data.{name}_data=['{path}']")
    return found


def main(arguments: list[str]) -> None:
    import ray
    from skyrl.train.config import SkyRLTrainConfig
    from skyrl.train.entrypoints.main_base import BasePPOExp
    from skyrl.train.utils import initialize_ray, validate_cfg

    options, others = parse(arguments)
    config = SkyRLTrainConfig.from_cli_overrides([*write_dataset(options), *others])
    validate_cfg(config)
    initialize_ray(config)

    class Experiment(BasePPOExp):
        def get_generator(self, cfg, tokenizer, inference_engine_client):
            if cfg.generator.vision_language_generator:  # GemTextEnv, with images
                return super().get_generator(cfg, tokenizer, inference_engine_client)
            return GemGenerator(cfg.generator, cfg.environment.skyrl_gym, inference_engine_client, tokenizer)

    @ray.remote(num_cpus=1)
    def run() -> None:
        import gem.integrations.skyrl  # noqa: F401  registers the environment class and the estimators

        Experiment(config).run()

    ray.get(run.remote())


if __name__ == "__main__":
    main(sys.argv[1:])
