"""Train a model with verl on an environment of gem, with an advantage per turn. See README.md."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from datasets import Dataset
from gem.integrations import make_tasks
from gem.integrations.verl import dataset_rows


def main(arguments: list[str] | None = None) -> list[str]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="Qwen/Qwen3-0.6B", help="name or folder of a chat model")
    parser.add_argument("--env", default="game:GuessTheNumber-v0-easy", help="an id of `gem list`")
    parser.add_argument("--wrappers", default="", help="such as python_tool,concat_chat")
    parser.add_argument("--tasks", type=int, default=4096, help="seeds to train on")
    parser.add_argument("--num-envs", type=int, default=256, help="episodes of a batch")
    parser.add_argument("--group-size", type=int, default=8, help="episodes with the same seed")
    parser.add_argument("--gamma", type=float, default=0.9, help="discount per turn")
    parser.add_argument("--estimator", default="gem_rebn", choices=["gem_rebn", "gem_turn"])
    parser.add_argument("--output", default="runs/verl")
    parser.add_argument("--dry-run", action="store_true", help="write the tasks and return verl's arguments")
    options, more = parser.parse_known_args(arguments)  # more: arguments of verl, such as trainer.total_epochs=1

    folder = Path(options.output).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    tasks = make_tasks(options.env, options.tasks + 128, wrappers=options.wrappers)
    for name, part in (("train", tasks[:-128]), ("test", tasks[-128:])):
        Dataset.from_list(dataset_rows(part)).to_parquet(str(folder / f"{name}.parquet"))
    prompts = options.num_envs // options.group_size
    overrides = [
        f"data.train_files={folder}/train.parquet",
        f"data.val_files={folder}/test.parquet",
        f"data.train_batch_size={prompts}",
        "data.max_prompt_length=1024",
        "data.max_response_length=3072",
        f"actor_rollout_ref.model.path={options.model}",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={prompts}",
        "actor_rollout_ref.actor.use_dynamic_bsz=true",
        "actor_rollout_ref.rollout.name=vllm",
        "actor_rollout_ref.rollout.calculate_log_probs=true",
        "actor_rollout_ref.rollout.agent.default_agent_loop=gem",
        f"actor_rollout_ref.rollout.n={options.group_size}",
        f"algorithm.adv_estimator={options.estimator}",
        f"algorithm.gamma={options.gamma}",
        f"trainer.default_local_dir={folder}",
        "trainer.resume_mode=auto",
        "trainer.logger=[console]",
        "trainer.n_gpus_per_node=1",
        *more,
    ]
    if not options.dry_run:
        os.environ["VERL_USE_EXTERNAL_MODULES"] = "gem.integrations.verl"
        os.execv(sys.executable, [sys.executable, "-m", "verl.trainer.main_ppo", *overrides])
    return overrides


if __name__ == "__main__":
    main()
