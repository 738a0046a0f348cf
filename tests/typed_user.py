"""A user's program, which `make check` type-checks with mypy --strict: the public names have types."""

from __future__ import annotations

from pathlib import Path

import gem
from gem.evaluation import Comparison, EvalReport, compare
from gem.rl import TrainConfig, Trainer
from gem.tools import PythonCodeTool, ToolEnvWrapper


def play(env_id: str, seed: int) -> float:
    env = ToolEnvWrapper(gem.make(env_id, seed=seed), [PythonCodeTool()])
    env.reset()
    total, over = 0.0, False
    while not over:
        step = gem.Step(*env.step(env.sample_random_action()))
        total, over = total + step.reward, step.terminated or step.truncated
    return total


def score(env_id: str, out: Path) -> EvalReport:
    return gem.evaluate("random", env_id, limit=20, rollouts=2, out=str(out))


def difference(one: Path, other: Path) -> Comparison:
    return compare([one, other])


def train(env_id: str) -> None:
    with Trainer.start(TrainConfig(env=env_id, steps=2)) as trainer:
        trainer.run()


def vector(env_ids: list[str]) -> int:
    with gem.make_vec(env_ids, seed=0) as envs:
        envs.reset()
        return envs.num_envs
