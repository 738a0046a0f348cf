"""Train a model with OpenRLHF on an environment of gem, with an advantage per turn. See README.md."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from pathlib import Path

from gem.integrations import make_tasks
from gem.integrations.openrlhf import dataset_rows, use_turn_advantages


def main(arguments: list[str] | None = None) -> list[str]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="Qwen/Qwen3-0.6B", help="name or folder of a chat model")
    parser.add_argument("--env", default="game:GuessTheNumber-v0-easy", help="an id of `gem list`")
    parser.add_argument("--wrappers", default="", help="such as python_tool,concat_chat")
    parser.add_argument("--tasks", type=int, default=4096, help="seeds to train on")
    parser.add_argument("--num-envs", type=int, default=256, help="episodes of a batch")
    parser.add_argument("--group-size", type=int, default=8, help="episodes with the same seed")
    parser.add_argument("--max-new-tokens", type=int, default=256, help="of one reply")
    parser.add_argument("--gamma", type=float, default=0.9, help="discount per turn")
    parser.add_argument("--output", default="runs/openrlhf")
    parser.add_argument("--dry-run", action="store_true", help="write the tasks and return OpenRLHF's arguments")
    options, more = parser.parse_known_args(arguments)  # more: further arguments of OpenRLHF

    folder = Path(options.output).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    tasks = make_tasks(options.env, options.tasks, wrappers=options.wrappers)
    lines = [json.dumps(row) + "\n" for row in dataset_rows(tasks)]
    (folder / "tasks.jsonl").write_text("".join(lines), encoding="utf-8")
    settings = {
        "--actor.model_name_or_path": options.model,
        "--train.agent_func_path": Path(__file__).with_name("agent.py"),
        "--data.prompt_dataset": folder / "tasks.jsonl",
        "--data.input_key": "input",
        "--data.label_key": "label",
        "--data.max_len": 4096,
        "--rollout.max_new_tokens": options.max_new_tokens,
        "--rollout.batch_size": options.num_envs // options.group_size,
        "--rollout.n_samples_per_prompt": options.group_size,
        "--algo.advantage.estimator": "reinforce",
        "--algo.advantage.gamma": options.gamma,
        "--algo.kl.init_coef": 0,
        "--ckpt.path": folder / "checkpoints",
        "--ckpt.output_dir": folder / "model",
    }
    passed = [str(word) for pair in settings.items() for word in pair] + ["--ckpt.load_enable", *more]
    if not options.dry_run:
        use_turn_advantages("rebn")
        sys.argv[1:] = passed
        runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__")
    return passed


if __name__ == "__main__":
    main()
