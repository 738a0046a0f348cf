"""What a training run would do: its resolved configuration, its memory, and conversations with their masks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from typing import Any

from gem.errors import BadValue
from gem.rl.config import TrainConfig
from gem.rl.config_file import config_to_toml
from gem.rl.data.evaluation import plan_evaluation
from gem.rl.data.imitation import RandomTextPolicy
from gem.rl.data.mixture import Mixture, players
from gem.rl.data.self_play import PastPolicies
from gem.rl.model.memory import estimate_disk, estimate_memory
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.run.build import build_policy
from gem.trajectory import Trajectory

CONVERSATIONS = 2
TRAINED = "⟦", "⟧"  # around the tokens that are trained


def dry_run(config: TrainConfig) -> Iterator[str]:
    """Build the model of a run and play episodes with it, without training or writing anything.

    The embedded model knows no format before its warm-up. Its conversations are therefore those of the warm-up, random
    legal play.

    Yields:
        The resolved configuration as TOML; then, as soon as each is known, texts on the evaluation, the disk, the
        memory and the conversations.

    Raises:
        BadValue: as Trainer.start().
    """
    policy = build_policy(config)
    yield config_to_toml(_resolved(config, policy))
    evaluation = plan_evaluation(config)
    count = max(CONVERSATIONS, len(config.envs))
    yield f"Evaluation: {evaluation.description}\n{estimate_disk(policy.model, config)}"
    yield f"Playing {count} episodes with replies of at most {policy.max_new_tokens} tokens."
    warm_up = config.model is None
    past = PastPolicies() if config.self_play else None
    with closing(Mixture(config, evaluation, policy.tokenizer, "train", count, 1, past=past)) as mixture:
        policies = [RandomTextPolicy(policy)] * len(config.envs) if warm_up else players(config, policy)
        played = mixture.collect(policies, count, 0).trajectories
    tokens = max((len(s.ids_T) for trajectory in played for s in trajectory.sequences()), default=1)
    yield _memory(policy, config, tokens)
    for number, trajectory in enumerate(played, start=1):
        yield "\n".join(["", *_conversation(number, trajectory, policy.tokenizer)])
    if warm_up:
        yield "\nThe actions are random legal play, as in the warm-up."


def _resolved(config: TrainConfig, policy: CausalLMPolicy) -> TrainConfig:
    """Return the same configuration with the defaults that depend on others or on the model."""
    return replace(
        config,
        slots=config.slots or config.batch,
        learning_rate=config.rates.policy,
        imitation_rate=config.rates.warm_up,
        threads=config.torch_threads,
        max_new_tokens=policy.max_new_tokens,
        gamma=config.estimator.value("gamma", config.gamma),
    )


def _memory(policy: CausalLMPolicy, config: TrainConfig, tokens: int) -> str:
    try:
        estimate = estimate_memory(policy.model, config, tokens=tokens)
    except BadValue as e:
        return f"No estimate: {e}"
    parts = {**estimate.always, **{f"learning: {k}": v for k, v in estimate.learning.items()}}
    parts |= {f"sampling: {k}": v for k, v in estimate.sampling.items()}
    listed = ", ".join(f"{name} {_mebibytes(size)}" for name, size in parts.items())
    return (
        f"Estimated memory for sequences of {tokens:,} tokens, the longest below: {_mebibytes(estimate.peak)} at the "
        f"peak, besides PyTorch itself ({listed})"
    )


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def _conversation(number: int, trajectory: Trajectory, tokenizer: Any) -> list[str]:
    if trajectory.failure is not None:
        return [f"Conversation {number}: {trajectory.env_id} failed: {trajectory.failure}"]
    sequences = trajectory.sequences()
    trained = sum(sum(s.loss_mask_T) for s in sequences)
    fed = sum(len(s.ids_T) for s in sequences) - trained
    lines = [
        f"Conversation {number}: {trajectory.env_id}, reward {trajectory.total_reward:g}, {trajectory.stop_reason}. "
        f"{trained} trained tokens, in {TRAINED[0]}{TRAINED[1]}; {fed} other tokens."
    ]
    for sequence in sequences:
        text = ""
        for mask, pairs in groupby(zip(sequence.loss_mask_T, sequence.ids_T, strict=True), key=lambda pair: pair[0]):
            part = tokenizer.decode([token for _, token in pairs], skip_special_tokens=False)
            text += f"{TRAINED[0]}{part}{TRAINED[1]}" if mask else part
        lines.append(text)
    return lines
