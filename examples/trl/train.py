"""Train a model with TRL on an environment of gem, with an advantage per turn. See README.md."""

from __future__ import annotations

import argparse

from trl import GRPOConfig

from gem.integrations import make_tasks
from gem.integrations.trl import Rollouts, TurnGRPOTrainer, dataset, env_reward


def main(arguments: list[str] | None = None) -> TurnGRPOTrainer:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="Qwen/Qwen3-0.6B", help="name or folder of a chat model")
    parser.add_argument("--env", default="game:GuessTheNumber-v0-easy", help="an id of `gem list`")
    parser.add_argument("--wrappers", default="", help="such as python_tool,concat_chat")
    parser.add_argument("--num-envs", type=int, default=64, help="episodes of a batch")
    parser.add_argument("--group-size", type=int, default=8, help="episodes with the same seed")
    parser.add_argument("--max-new-tokens", type=int, default=256, help="of one reply")
    parser.add_argument("--max-completion", type=int, default=2048, help="tokens of an episode after its first prompt")
    parser.add_argument("--gamma", type=float, default=0.9, help="discount per turn")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--learning-rate", type=float, default=1e-6)
    parser.add_argument("--output", default="runs/trl")
    parser.add_argument("--resume", action="store_true", help="continue from the last checkpoint in --output")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args(arguments)

    config = GRPOConfig(
        output_dir=options.output,
        per_device_train_batch_size=options.num_envs,
        num_generations=options.group_size,
        max_completion_length=options.max_completion,
        max_steps=options.steps,
        learning_rate=options.learning_rate,
        use_cpu=options.cpu,
        bf16=not options.cpu,
        logging_steps=1,
        report_to=[],
    )
    tasks = make_tasks(options.env, options.steps * options.num_envs // options.group_size, wrappers=options.wrappers)
    trainer = TurnGRPOTrainer(
        model=options.model,
        reward_funcs=env_reward,
        args=config,
        train_dataset=dataset(tasks),
        rollout_func=Rollouts(max_new_tokens=options.max_new_tokens),
        gamma=options.gamma,
    )
    trainer.train(resume_from_checkpoint=options.resume or None)
    return trainer


if __name__ == "__main__":
    main()
