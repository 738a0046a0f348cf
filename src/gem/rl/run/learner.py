"""One policy update: from a batch of episodes to optimizer steps."""

from __future__ import annotations

import json
import math
import pickle
import reprlib
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from gem._internal.inbound import read_json
from gem.errors import BadValue, InfraError
from gem.rl.config import TrainConfig
from gem.rl.data.self_play import SeatAverages
from gem.rl.estimate.advantages import EpisodeRewards, Floats, generalized_advantages
from gem.rl.estimate.batch import (
    Example,
    Minibatch,
    by_length,
    collate,
    counted_tokens,
    episode_rewards,
    length,
    micro_batches,
    minibatches,
    pack,
    replies,
    trained_tokens,
    with_advantages,
    with_equal_replies,
    with_shares,
)
from gem.rl.estimate.losses import BETAS, MAX_GRAD_NORM, PolicyTokens, TokenLoss, kl_penalty, mean_entropy
from gem.rl.metrics import Metrics
from gem.rl.model.critic import Critic, explained_variance, final_value
from gem.rl.model.memory import explained_memory_errors, learning_advice
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.scoring import rows_at_once
from gem.rl.run.folder import check_intact
from gem.seeding import stream
from gem.trajectory import Trajectory

# The learning rate rises linearly over the first tenth of the updates, at most RAMP, because Adam's first steps are as
# large as later ones.
RAMP = 10
# Metrics that are added over micro-batches; the others are averaged.
_SUMS = frozenset({"loss", "kl_to_start", "gap", "current"})
FINAL_RATE = 0.1  # of the peak learning rate
REFERENCE = "weights.safetensors"


class Learner:
    """Trains a policy on batches of episodes.

    Args:
        config: the settings of advantages, loss and optimizer.
        policy: the policy to train.

    Attributes:
        reference: the policy at the start of learning. None before begin(), and if config.kl is 0.
        critic: None before begin(), and unless the advantage needs values.
        trained: the parameters that are trained, by name.
        averages: of the returns of each seat of each game, if the advantage needs them; else empty.
    """

    def __init__(self, config: TrainConfig, policy: CausalLMPolicy) -> None:
        self.config, self.policy = config, policy
        self.trained = {name: p for name, p in policy.model.named_parameters() if p.requires_grad}
        fused = policy.model.device.type == "cuda" or None  # one kernel for all weights; None for the default
        self.optimizer = torch.optim.AdamW(
            self.trained.values(), lr=config.rates.policy, betas=BETAS, weight_decay=0.0, fused=fused
        )
        self.reference: CausalLMPolicy | None = None
        self.critic: Critic | None = None
        self.averages = SeatAverages()
        self._needs_seats = "seats" in config.estimator.needs

    def begin(self) -> None:
        """Copy the policy as the reference of the KL penalty and as the critic, if these are needed."""
        if (critic := self.config.critic) is not None:
            self.critic = Critic(
                self.policy.model,
                self.policy.pad_id,
                learning_rate=critic.learning_rate or self.config.rates.policy,
                max_norm=MAX_GRAD_NORM,
                shared=critic.shared,
                bf16=self.policy.bf16,
            )
        if self.config.kl:
            self.reference = self.policy.copy()

    def save(self, folder: Path) -> None:
        """Write the states of the optimizer and the critic to a folder."""
        torch.save(self.optimizer.state_dict(), folder / "optimizer.pt")
        if self._needs_seats:
            (folder / "seat_averages.json").write_text(json.dumps(self.averages.get_state()))
        if self.critic is not None:
            state = {"network": self.critic.network.state_dict(), "optimizer": self.critic.optimizer.state_dict()}
            torch.save(state, folder / "critic.pt")

    def save_reference(self, folder: Path) -> None:
        """Write the trained weights of the reference to a folder."""
        assert self.reference is not None
        weights = self.reference.model.state_dict()
        save_file({name: weights[name].contiguous() for name in self.trained}, folder / REFERENCE)

    def load(self, folder: Path, reference: Path) -> None:
        """Restore the states that save() and save_reference() wrote.

        Args:
            reference: folder of save_reference(), which is not read if no reference is needed.

        Raises:
            BadValue: if the reference is missing or damaged, or a file holds objects that could run code.
        """
        self.optimizer.load_state_dict(_tensors(folder / "optimizer.pt"))
        self.begin()
        if self._needs_seats:
            self.averages.set_state(read_json(folder / "seat_averages.json"))
        if self.reference is not None:
            weights = self._reference_weights(folder / "reference.pt", reference)
            self.reference.model.load_state_dict(weights, strict=False)  # frozen weights are those of the policy
        if self.critic is not None:
            state = _tensors(folder / "critic.pt")
            self.critic.network.load_state_dict(state["network"])
            self.critic.optimizer.load_state_dict(state["optimizer"])

    @staticmethod
    def _reference_weights(old: Path, folder: Path) -> dict[str, Tensor]:
        if old.exists():  # earlier versions wrote it to each checkpoint
            return _tensors(old)
        check_intact(folder, "copy the whole folder of the run, or start it again")
        return dict(load_file(folder / REFERENCE))

    def learn(self, trajectories: Sequence[Trajectory], update: int, envs: Sequence[int] = ()) -> Metrics:
        """Run config.epochs epochs over one batch of completed episodes. Returns the mean metrics of its steps.

        Args:
            envs: for each episode, the index of its environment in config.envs; empty for the first.
            update: number of updates before this one; determines the learning rate and the order of minibatches.

        Raises:
            InfraError: if the gradient is not finite, or memory is exhausted.
        """
        config = self.config
        rate = config.rates.policy * rate_factor(update, config.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with explained_memory_errors(learning_advice(config)):
            return self._learn(trajectories, update, rate, envs or [0] * len(trajectories))

    def _learn(self, trajectories: Sequence[Trajectory], update: int, rate: float, envs: Sequence[int]) -> Metrics:
        config = self.config
        batch, episodes = self.prepare(trajectories, envs)
        critic, options = self.critic, config.critic
        targets: list[Floats] = []
        critic_log: Metrics = {}
        if critic is not None:
            targets, critic_log = self._value_targets(episodes, envs)
            if not critic.shared:
                critic_log["value_loss"] = self._fit_critic(critic, batch, targets, update)
        # Computed once per batch, so that tokens in minibatches of long episodes do not get smaller weights.
        divisor = self.divisor(batch, sum(t.branch is None for t in trajectories))
        logs: list[dict[str, float]] = []
        for epoch in range(config.epochs):
            order = stream(config.seed, "minibatches", update, epoch)
            for minibatch in minibatches(batch, config.minibatch, order):
                self.optimizer.zero_grad()
                log = self.accumulate(minibatch, divisor)
                if critic is not None and critic.shared and options is not None:
                    critic.optimizer.zero_grad()
                    log["value_loss"] = critic.accumulate(
                        minibatch, targets, options.weight, self._rows(max(map(length, minibatch)))
                    )
                norm = torch.nn.utils.clip_grad_norm_(self.trained.values(), MAX_GRAD_NORM)
                if not torch.isfinite(norm):
                    raise InfraError(
                        f"the gradient of update {update + 1} is {float(norm)}; the last checkpoint is intact, "
                        "but a new run needs a lower --learning-rate"
                    )
                if options is None or update >= options.warmup:
                    self.optimizer.step()
                if critic is not None and critic.shared:
                    critic.step()
                logs.append({**log, "grad_norm": float(norm)})
        gaps = [(log.pop("gap"), log.pop("current")) for log in logs]
        gap, current = gaps[0]  # of the first step only, before which the weights are those of the sampler
        means = {name: statistics.fmean(log[name] for log in logs) for name in logs[0]}
        return {"learning_rate": rate, **means, **critic_log, "sampler_gap": gap / current if current else None}

    def prepare(
        self, trajectories: Sequence[Trajectory], envs: Sequence[int] = ()
    ) -> tuple[list[Example], list[EpisodeRewards]]:
        """Pack completed episodes, with advantages, and with reference and current log-probabilities where needed.

        Args:
            envs: see learn().

        Returns:
            The examples, and the data of each episode that its advantages were computed from.
        """
        config = self.config
        batch = pack(trajectories)
        if config.trains_branches and config.branch_plan is not None:
            batch = with_shares(batch, config.branch_plan.weight)
        elif config.kl_in == "loss":  # otherwise the rewards of continuations depend on their tokens
            batch = [e for e in batch if trajectories[e.episode].branch is None]
        if self.reference is not None:
            scores = self._logp(batch, self.reference)
            batch = [replace(e, reference_T=logp_T) for e, logp_T in zip(batch, scores, strict=True)]
        if config.truncated_is is not None:
            scores = self._logp(batch, self.policy)
            batch = [_reweighted(e, logp_T, config.truncated_is) for e, logp_T in zip(batch, scores, strict=True)]
        if config.aggregation == "sequence-mean":
            batch = with_equal_replies(batch)
        episodes = episode_rewards(batch, trajectories, config.kl if config.kl_in == "reward" else 0.0)
        if self.critic is not None:
            values = self.critic.values(batch, self._rows(max(map(length, batch))))
            episodes = [
                e._replace(values_K=values_K, final_value=final_value(t, values_K))
                for e, t, values_K in zip(episodes, trajectories, values, strict=True)
            ]
        envs = envs or [0] * len(episodes)
        if self._needs_seats:
            seats = [f"{env} {e.group}" for e, env in zip(episodes, envs, strict=True)]
            episodes = [e._replace(baseline=self.averages.value(s)) for e, s in zip(episodes, seats, strict=True)]
            self.averages.add(seats, [sum(e.rewards_K) for e in episodes])
        if not config.trains_branches:
            batch = [e for e in batch if trajectories[e.episode].branch is None]
        return with_advantages(batch, self._advantages(episodes, envs)), episodes

    def _advantages(self, episodes: Sequence[EpisodeRewards], envs: Sequence[int]) -> list[Floats]:
        """Compute advantages within each environment, so that no statistic mixes the rewards of two of them."""
        advantages: list[Floats] = [np.empty(0)] * len(episodes)
        for env in set(envs):
            indices = [i for i, other in enumerate(envs) if other == env]
            estimator = self.config.estimators[env]
            computed = estimator([episodes[i]._replace(rewards_K=tuple(episodes[i].rewards_K)) for i in indices])
            for i, advantages_K in zip(indices, _checked(computed, indices, episodes, estimator.name), strict=True):
                advantages[i] = advantages_K
        return advantages

    def _value_targets(self, episodes: Sequence[EpisodeRewards], envs: Sequence[int]) -> tuple[list[Floats], Metrics]:
        """Return what the values of the critic should be, from its values and the rewards together, and metrics."""
        values = [np.array(e.values_K) for e in episodes]
        chosen = [self.config.estimators[env] for env in envs]
        targets = [
            generalized_advantages(
                e.rewards_K, e.values_K, own.value("gamma", 1.0), own.value("gae_lambda", 1.0), e.final_value
            )
            + values_K
            for e, values_K, own in zip(episodes, values, chosen, strict=True)
        ]
        return targets, {"explained_variance": explained_variance(np.concatenate(values), np.concatenate(targets))}

    def _fit_critic(self, critic: Critic, batch: Sequence[Example], targets: Sequence[Floats], update: int) -> float:
        """Train a critic with a model of its own. Returns the mean loss."""
        config = self.config
        losses: list[float] = []
        for epoch in range(config.epochs):
            order = stream(config.seed, "critic", update, epoch)
            losses += critic.fit(batch, targets, config.minibatch, order, self._rows(max(map(length, batch))))
        return statistics.fmean(losses)

    def divisor(self, batch: Sequence[Example], episodes: int) -> float:
        """Return the divisor of the summed loss of a minibatch, per example in it."""
        if self.config.aggregation == "constant":
            return self.policy.max_new_tokens * episodes / len(batch)
        if self.config.aggregation == "sequence-mean":
            return replies(batch) / len(batch)
        return counted_tokens(batch) / len(batch)

    def accumulate(self, minibatch: Sequence[Example], divisor: float) -> dict[str, float]:
        """Add the gradient of a minibatch, computed in micro-batches, to that of the parameters. Returns its metrics.

        Args:
            divisor: see divisor().
        """
        total: dict[str, float] = {}
        tokens = max(1, trained_tokens(minibatch))
        for part in micro_batches(minibatch, self._rows, self.policy.pad_id):
            mb = part.to(self.policy.model.device)
            share = float(mb.mask_BT.sum()) / tokens
            loss, log = self.loss(mb, divisor * len(minibatch), share)
            loss.backward()  # type: ignore[no-untyped-call]
            for name, value in log.items():
                total[name] = total.get(name, 0.0) + (value if name in _SUMS else value * share)
        return total

    def loss(self, mb: Minibatch, normalizer: float, share: float = 1.0) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of a micro-batch. Returns it and its metrics.

        Args:
            normalizer: divisor of the summed loss, for the whole minibatch.
            share: share of the trained tokens of the minibatch that are in this part.
        """
        config = self.config
        scores = self.policy.score(mb.ids_BT, mb.attend_BT, mb.mask_BT, mb.images)
        tokens = PolicyTokens(scores.logp_BT, mb.logp_old_BT, mb.advantage_BT, mb.mask_BT, mb.turn_BT)
        loss_BT, clipped_BT = _checked_loss(config.objective(tokens), tokens, config.objective.name)
        trained = mb.mask_BT.sum().clamp(min=1.0)
        loss = (loss_BT * mb.weight_BT).sum() / normalizer
        log = {"kl": float(-tokens.log_ratio_BT.detach().sum() / trained)}
        current_BT = mb.mask_BT * (mb.version_BT == self.policy.version)
        log["gap"] = float(((scores.logp_BT.detach() - mb.sampled_BT).abs() * current_BT).sum())
        log["current"] = float(current_BT.sum())
        if clipped_BT is not None:
            log["clipped"] = float((clipped_BT * mb.mask_BT).sum() / trained)
        entropy = mean_entropy(scores.entropy_BT, mb.mask_BT)
        if config.entropy:
            loss = loss - config.entropy * share * entropy
        if self.reference is not None:
            penalty = kl_penalty(scores.logp_BT, mb.logp_old_BT, mb.reference_BT, mb.weight_BT, normalizer=normalizer)
            if config.kl_in == "loss":
                loss = loss + config.kl * penalty
            log["kl_to_start"] = float(penalty.detach())
        return loss, {**log, "loss": float(loss.detach()), "entropy": float(entropy.detach())}

    def _rows(self, tokens: int) -> int:
        """Return the number of sequences per forward and backward pass, if the longest has so many tokens."""
        model = self.policy.model
        return self.config.micro_batch or min(self.config.minibatch, rows_at_once(model, tokens, model.device.type))

    @torch.no_grad()
    def _logp(self, batch: Sequence[Example], policy: CausalLMPolicy) -> list[list[float]]:
        """Return the log-probabilities of the trained tokens of each example under a policy; 0 for other tokens."""
        found: list[list[float]] = [[] for _ in batch]
        # A GPU waits for the start of each pass, and without gradient a larger one fits.
        times = 4 if policy.model.device.type == "cuda" else 1
        for chosen in by_length(batch, lambda tokens: times * self._rows(tokens)):
            mb = collate([batch[i] for i in chosen], policy.pad_id).to(policy.model.device)
            rows = policy.score(mb.ids_BT, mb.attend_BT, mb.mask_BT, mb.images).logp_BT.tolist()
            for i, row in zip(chosen, rows, strict=True):
                found[i] = row[: len(batch[i].sequence.ids_T)]
        return found


def _reweighted(example: Example, logp_T: Sequence[float], limit: float) -> Example:
    """Weigh each token by the ratio of its probability now, of which logp_T is the log, and when it was sampled."""
    ratios_T = [
        count and count * min(math.exp(min(logp - sampled, 20.0)), limit)
        for count, logp, sampled in zip(example.counts_T, logp_T, example.sequence.logprobs_T, strict=True)
    ]
    return replace(example, old_T=logp_T, weight_T=ratios_T)


def _checked(computed: Any, indices: Sequence[int], episodes: Sequence[EpisodeRewards], name: str) -> list[Floats]:
    """Return the result of an advantage function as arrays. Raises BadValue unless it has a number for each turn."""
    turns = [len(episodes[i].rewards_K) for i in indices]
    try:
        arrays = [np.asarray(advantages_K, dtype=np.float64) for advantages_K in computed]
        fits = [a.shape for a in arrays] == [(n,) for n in turns] and all(np.isfinite(a).all() for a in arrays)
    except (TypeError, ValueError, RuntimeError):  # not numbers, or tensors with a gradient
        fits = False
    if not fits:
        raise BadValue(
            f"advantage={name!r} must return one array per episode, with a finite number per turn; the episodes have "
            f"{turns[:8]} turns, got {reprlib.repr(computed)}"
        )
    return arrays


def _checked_loss(result: Any, tokens: PolicyTokens, name: str) -> TokenLoss:
    """Return the result of a loss function. Raises BadValue unless it has a loss with a gradient for each token."""
    shape = tokens.logp_BT.shape
    if not isinstance(result, TokenLoss) or not all(
        isinstance(part, Tensor) and part.shape == shape for part in result if part is not None
    ):
        raise BadValue(
            f"loss={name!r} must return a TokenLoss of tensors of the shape of tokens.logp_BT, {tuple(shape)}, got "
            f"{reprlib.repr(result)}"
        )
    if tokens.logp_BT.requires_grad and not result.loss_BT.requires_grad:
        raise BadValue(f"loss={name!r} has no gradient: it must be computed from tokens.logp_BT")
    if not torch.isfinite(result.loss_BT[tokens.mask_BT > 0]).all():
        raise BadValue(f"loss={name!r} is not finite for some tokens")
    return result


def rate_factor(update: int, updates: int) -> float:
    """Return the learning rate of an update as a fraction of the peak: a linear ramp, then decay to FINAL_RATE."""
    ramp = min(RAMP, math.ceil(updates / 10))
    if update < ramp:
        return (update + 1) / ramp
    return 1.0 - (1.0 - FINAL_RATE) * (update + 1 - ramp) / (updates - ramp)


def _tensors(file: Path) -> dict[str, Any]:
    """Read a file of torch.save(). Raises BadValue if it is damaged or holds objects that could run code."""
    try:
        loaded: dict[str, Any] = torch.load(file, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as e:
        raise BadValue(f"{file} is damaged or holds objects that could run code; delete its checkpoint") from e
    return loaded
