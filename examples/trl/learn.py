"""Train the embedded model of gem with TRL, from a checkpoint after its warm-up, and evaluate it before and after.

  python examples/trl/learn.py             80 batches of 256 episodes
  python examples/trl/learn.py --steps 4   a test

The warm-up is that of `gem train`: it teaches how an action is written, on random play. The success rates are those of
256 seeds that are not trained on, sampled. Exit code 1 if the success rate rises by less than 0.2.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig

from gem.integrations import EnvTask, make_tasks, play_tasks
from gem.integrations.trl import Rollouts, TurnGRPOTrainer, dataset, env_reward
from gem.rl import TrainConfig, Trainer
from gem.rl.model.policy import CausalLMPolicy

ENV, EPISODES, REPLY_TOKENS = "game:GuessTheNumber-v0-easy", 256, 16


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=80, help="batches; each is trained on three times")
    parser.add_argument("--num-envs", type=int, default=256, help="episodes of a batch")
    parser.add_argument("--group-size", type=int, default=2, help="episodes with the same seed")
    parser.add_argument("--learning-rate", type=float, default=1.5e-3)
    parser.add_argument("--gamma", type=float, default=0.8, help="discount per turn")
    parser.add_argument("--output", default=None, help="folder; default a temporary one")
    options = parser.parse_args(arguments)

    torch.set_num_threads(1)
    folder = Path(options.output or tempfile.mkdtemp())
    checkpoint = warm_up(folder)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(checkpoint), AutoTokenizer.from_pretrained(checkpoint)
    fresh = make_tasks(ENV, EPISODES, seed=1)
    tasks = make_tasks(ENV, options.steps * options.num_envs // options.group_size)
    assert not {task.seed for task in fresh} & {task.seed for task in tasks}
    before = success(model, tokenizer, fresh)
    print(f"after the warm-up: success {before:.3f}, {time.process_time():.0f} s of CPU", flush=True)
    config = GRPOConfig(
        output_dir=str(folder / "trl"),
        per_device_train_batch_size=options.num_envs // 4,
        steps_per_generation=4,
        num_iterations=3,
        num_generations=options.group_size,
        max_completion_length=512,
        max_steps=12 * options.steps,
        learning_rate=options.learning_rate,
        max_grad_norm=1.0,
        gradient_checkpointing=False,
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        logging_steps=60,
        report_to=[],
    )
    trainer = TurnGRPOTrainer(
        model=model,
        reward_funcs=env_reward,
        args=config,
        train_dataset=dataset(tasks),
        processing_class=tokenizer,
        rollout_func=Rollouts(max_new_tokens=REPLY_TOKENS),
        gamma=options.gamma,
    )
    trainer.train()
    after = success(model, tokenizer, fresh)
    print(f"after {options.steps} batches: success {after:.3f}, {time.process_time():.0f} s of CPU", flush=True)
    return before, after


def warm_up(folder: Path) -> Path:
    """Write a checkpoint of `gem train` after its warm-up, before the first update."""
    config = TrainConfig(env=ENV, out=str(folder), name="warm-up", steps=1, eval_episodes=32)
    with Trainer.start(config) as trainer:
        trainer.run(should_stop=lambda: bool(trainer.untrained))
        trainer.policy.save(folder / "model")
    return folder / "model"


def success(model, tokenizer, tasks: list[EnvTask]) -> float:
    policy = CausalLMPolicy(model, tokenizer, max_new_tokens=REPLY_TOKENS, seed=1)
    played, failed = play_tasks(tasks, policy, tokenizer)
    assert not failed
    return sum(episode.solved for episode in played) / len(played)


if __name__ == "__main__":
    before, after = main()
    sys.exit(0 if after - before >= 0.2 else 1)
