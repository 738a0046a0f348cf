"""Play the evaluations of a training run."""

from __future__ import annotations

import time
from typing import NamedTuple

from gem.rl.config import TrainConfig
from gem.rl.data.evaluation import Evaluation
from gem.rl.data.mixture import make_slots
from gem.rl.metrics import Metrics, summarize
from gem.rl.model.policy import CausalLMPolicy
from gem.rollout import play_seeds
from gem.seeding import derive
from gem.trajectory import Trajectory

EVAL_SLOTS = 512


class EvalResult(NamedTuple):
    """The result of an evaluation.

    Args:
        scores: the metrics of all episodes by mode; see summarize(). The mode is "greedy", or names the temperature of
            a set. With several sets, "sets" has the metrics of each, by name and mode.
        episodes: the episodes by mode.
    """

    scores: Metrics
    episodes: dict[str, list[Trajectory]]


class Evaluator:
    """The environments of the evaluations of a run, in which the current weights of its policy play.

    Args:
        plan: the sets of episodes.

    Attributes:
        seconds: wall-clock seconds of the last evaluation; 0 before it.
    """

    def __init__(self, config: TrainConfig, policy: CausalLMPolicy, plan: Evaluation) -> None:
        self.config, self.policy, self.plan = config, policy, plan
        self.seconds = 0.0
        slots = config.slots or EVAL_SLOTS
        self.envs = [
            make_slots(
                config,
                part.env,
                policy.tokenizer,
                [derive(config.seed, "held-out", i) for i in range(min(len(part.seeds), slots))],
                kwargs=part.kwargs,
                rows=part.rows,
                autoreset="disabled",
            )
            for part in plan.sets
        ]

    def evaluate(self, *, both: bool) -> EvalResult:
        """Play all sets of the plan.

        Args:
            both: also evaluate with the sampling settings of training, as the mode "sampled".
        """
        started = time.perf_counter()
        episodes: dict[str, list[Trajectory]] = {}
        sets: Metrics = {}
        for number, part in enumerate(self.plan.sets):
            modes: dict[str, float | None] = {part.env.mode: part.env.temperature}
            if both:
                modes["sampled"] = None
            for mode, temperature in modes.items():
                played = play_seeds(self.envs[number], self._player(number, temperature), part.seeds)
                episodes[mode] = episodes.get(mode, []) + played
                sets.setdefault(part.env.label, {})[mode] = summarize(played)
        together = {mode: summarize(played) for mode, played in episodes.items()}
        self.seconds = time.perf_counter() - started
        return EvalResult({**together, "sets": sets} if len(sets) > 1 else together, episodes)

    def show_game(self) -> Trajectory:
        """Play the first episode of the first set greedily."""
        return play_seeds(self.envs[0], self._player(0, 0.0), self.plan.sets[0].seeds[:1])[0]

    def close(self) -> None:
        for vec_env in self.envs:
            vec_env.close()

    def _player(self, number: int, temperature: float | None) -> CausalLMPolicy:
        """Return the policy that plays a set."""
        env = self.plan.sets[number].env
        parts = ("evaluation", number) if number else ("evaluation",)
        return self.policy.variant(
            temperature=temperature,
            seed=derive(self.config.seed, *parts),  # a separate stream, not correlated with training
            max_new_tokens=env.max_new_tokens,
            max_context=env.max_context,
        )
