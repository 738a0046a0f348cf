"""The environments that a run trains on: their slots, and batches of episodes in proportion to the weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from gem.evaluation.tasks import Wrap
from gem.policies import Policy
from gem.rl.config import TrainConfig
from gem.rl.data.curriculum import ItemSampler, Learnability
from gem.rl.data.evaluation import Evaluation, curriculum_items, group_order
from gem.rl.data.self_play import PastPolicies, SelfPlayCollector
from gem.rl.environments import EnvSetting, wrapper_fns
from gem.rl.metrics import Metrics
from gem.rl.model.policy import CausalLMPolicy
from gem.rollout import Batch, BranchCollector, BranchPlan, Collector, GroupCollector, sampled_tokens
from gem.seeding import derive, stream
from gem.trajectory import Trajectory
from gem.vector import VectorEnv, make_vec
from gem.wrappers import StateKeyWrapper

AnyCollector = Collector | GroupCollector | BranchCollector | SelfPlayCollector


class MixedBatch(NamedTuple):
    """A batch of episodes of all environments.

    Args:
        trajectories: the episodes, environment by environment, each followed by its continuations.
        envs: for each episode, the index of its environment in config.envs.
        counts: failed episodes, groups that were dropped or have equal returns, and continuations; empty without
            groups and continuations.
    """

    trajectories: list[Trajectory]
    envs: list[int]
    counts: Metrics


class Mixture:
    """The slots of the environments of a run, and their episodes in flight.

    The environments are played one after another. Each has its own slots, in proportion to its weight, and each batch
    has the episodes of each environment in proportion to its weight: the fractions are rounded up or down at random,
    depending on the seed and the number of the batch, so that the shares are right in expectation.

    Args:
        tokenizer: for wrappers that render a chat template.
        purpose: names the random streams of the environments.
        slots: number of slots of all environments together; each has at least one.
        group_size: episodes that start from one state; 1 for no groups.
        plan: states from which continuations are played; None for none.
        past: earlier policies of the run, for self-play; None for the episodes of one seat against the opponent of
            the environment.
    """

    def __init__(
        self,
        config: TrainConfig,
        evaluation: Evaluation,
        tokenizer: Any,
        purpose: str,
        slots: int,
        group_size: int,
        plan: BranchPlan | None = None,
        past: PastPolicies | None = None,
    ) -> None:
        self.config, self.purpose, self.group_size, self.plan = config, purpose, group_size, plan
        self.collectors: list[AnyCollector] = []
        self.levels: Learnability | None = None
        self.items: list[ItemSampler] = []  # one per environment; empty without a curriculum over rows or seeds
        follows = config.curriculum is not None and purpose == "train"
        if follows and config.curriculum == "levels":
            self.levels = Learnability(len(config.envs))
        weights = [env.weight for env in config.envs]
        for i, (env, rows) in enumerate(zip(config.envs, evaluation.training, strict=True)):
            if past is not None:
                self.collectors.append(SelfPlayCollector(config, env, i, past))
                continue
            count = max(1, round(slots * env.weight / sum(weights)))
            seeds = [derive(config.seed, purpose, *([i] if i else []), slot) for slot in range(count)]
            items = follows and config.curriculum != "levels"
            if group_size == 1 and plan is None and not items:
                vec_env = make_slots(config, env, tokenizer, seeds, rows=rows.wraps, group_size=1)
                self.collectors.append(Collector(vec_env))
                continue
            seed_of: Callable[[int], int]
            if items:
                wraps, item_seeds = curriculum_items(config, env, rows)
                self.items.append(ItemSampler(item_seeds, config.seed, "curriculum", i))
                seed_of = self.items[i].seed_of
            else:
                wraps, seed_of = group_order(config, env, rows)
            vec_env = make_slots(config, env, tokenizer, seeds, rows=wraps, autoreset="disabled")
            if plan is None:
                self.collectors.append(GroupCollector(vec_env, group_size, seed_of))
            else:
                self.collectors.append(BranchCollector(vec_env, plan, seed_of))

    def collect(self, policies: Sequence[Policy], episodes: int, number: int) -> MixedBatch:
        """Collect a batch.

        Args:
            policies: one per environment.
            episodes: size of the batch, a multiple of the size of a group.
            number: number of the batch.

        Raises:
            Exception: any exception of the collectors.
        """
        units = episodes // self.group_size
        offset = stream(self.config.seed, "mixture", self.purpose, number).random()
        counts: Metrics = {}
        weights = [env.weight for env in self.config.envs]
        if self.levels is not None:
            weights = [weight * share for weight, share in zip(weights, self.levels.shares(), strict=True)]
            counts["levels"] = {
                env.label: weight / sum(weights) for env, weight in zip(self.config.envs, weights, strict=True)
            }
        shares = split_by_weight(weights, units, offset)
        played: list[Batch] = []
        envs: list[int] = []
        for i, (collector, policy, share) in enumerate(zip(self.collectors, policies, shares, strict=True)):
            if share:
                played.append(self._collect(collector, policy, share))
                envs += [i] * len(played[-1].trajectories)
                if isinstance(policy, CausalLMPolicy):
                    policy.forget()  # an update follows, or other environments
        batch = MixedBatch([t for part in played for t in part.trajectories], envs, counts | self._counts(played))
        self._tell_curriculum(batch)
        return batch

    def _collect(self, collector: AnyCollector, policy: Policy, share: int) -> Batch:
        if isinstance(collector, GroupCollector):
            return collector.collect(policy, groups=share, refill=self.config.refill_groups)
        found = collector.collect(policy, episodes=share)
        return Batch(found) if isinstance(found, list) else found

    def _counts(self, played: Sequence[Batch]) -> Metrics:
        """Return what the collectors count; all environments of a run have the same kind of collector."""
        failed, dropped = sum(part.failed for part in played), sum(part.dropped for part in played)
        if points := {name: own for part in played for name, own in part.points.items()}:
            return {"points": {name: sum(own) / len(own) for name, own in points.items()}}
        if self.plan is not None:
            branches = [t for part in played for t in part.trajectories if t.branch is not None]
            tokens = sampled_tokens(branches)
            return {"failed": failed, "episodes_dropped": dropped, "branches": len(branches), "branch_tokens": tokens}
        if self.group_size > 1:
            return {"failed": failed, "groups_dropped": dropped, "groups_equal": sum(part.equal for part in played)}
        return {"failed": failed} if self.items else {}

    def _tell_curriculum(self, batch: MixedBatch) -> None:
        """Tell the curriculum how the episodes ended."""
        for trajectory, env in zip(batch.trajectories, batch.envs, strict=True):
            if trajectory.failure is None and trajectory.branch is None:
                if self.levels is not None:
                    self.levels.add(env, trajectory.solved)
                if self.items and trajectory.seed is not None:
                    self.items[env].add(trajectory.seed, trajectory.solved)
        if self.items:
            rates = [s.learnability.success(item) for s in self.items for item in range(len(s.seeds))]
            batch.counts["learnable"] = sum(0.1 < rate < 0.9 for rate in rates) / len(rates)

    def get_state(self) -> list[dict[str, Any]]:
        """Return the states of all slots and of the episodes that were not returned yet, as plain data."""
        states = [collector.get_state() for collector in self.collectors]
        if self.levels is not None:
            states[0]["levels"] = self.levels.get_state()
        for state, sampler in zip(states, self.items, strict=False):
            state["items"] = sampler.get_state()
        return states

    def set_state(self, state: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> None:
        """Restore a state that get_state() returned, or the state of one collector, from an older checkpoint."""
        states = [state] if isinstance(state, Mapping) else state
        for collector, own in zip(self.collectors, states, strict=True):
            collector.set_state(own)
        if self.levels is not None:
            self.levels.set_state(states[0]["levels"])
        for own, sampler in zip(states, self.items, strict=False):
            sampler.set_state(own["items"])

    def close(self) -> None:
        """Close the environments."""
        for collector in self.collectors:
            if not isinstance(collector, SelfPlayCollector):  # it closes its games itself
                collector.vec_env.close()


def players(config: TrainConfig, policy: CausalLMPolicy) -> list[CausalLMPolicy]:
    """Return the policy of each environment: with its own limits, and its own random stream."""
    policies = []
    for i, env in enumerate(config.envs):
        seed = derive(config.seed, "env", i) if i else None
        limits = {"max_new_tokens": env.max_new_tokens, "max_context": env.max_context}
        own = i > 0 or any(limits.values())
        policies.append(policy.variant(seed=seed, **limits) if own else policy)
    return policies


def make_slots(
    config: TrainConfig,
    env: EnvSetting,
    tokenizer: Any,
    seeds: Sequence[int],
    *,
    kwargs: Mapping[str, Any] | None = None,
    rows: Sequence[Wrap] = (),
    autoreset: str = "same_step",
    group_size: int | None = None,
) -> VectorEnv:
    """Make one slot per seed of an environment, with its wrappers and its turn limit.

    Args:
        kwargs: constructor arguments; None for those of the setting.
        rows: innermost wrappers, which choose the rows of a data set.
        group_size: see make_vec.
    """
    keys = [StateKeyWrapper] if "states" in config.estimator.needs else []
    return make_vec(
        env.id,
        [*rows, *keys, *wrapper_fns(env, tokenizer)],
        [{**(env.kwargs if kwargs is None else kwargs), "seed": seed} for seed in seeds],
        backend=config.backend,
        autoreset=autoreset,
        timeout=config.timeout,
        on_failure=config.on_failure,
        group_size=group_size,
    )


def split_by_weight(weights: Sequence[float], count: int, offset: float) -> list[int]:
    """Divide a count in proportion to weights (systematic sampling).

    Args:
        weights: at least 0, with a positive sum.
        offset: random number in [0, 1), which decides how fractions are rounded. If it is uniform, the expected parts
            are proportional to the weights.

    >>> split_by_weight([2, 1], 4, offset=0.0), split_by_weight([2, 1], 4, offset=0.9)
    ([3, 1], [2, 2])
    """
    total, reached = sum(weights), 0.0
    boundaries = [0]  # how many of the points offset, offset + 1, … are below the cumulative weight
    for weight in weights[:-1]:
        reached += weight
        boundaries.append(min(count, math.ceil(reached / total * count - offset)))
    return [high - low for low, high in pairwise([*boundaries, count])]
