"""Recorded rollouts, which the checks replay; policies that need no model; and estimates of their scores."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gem.core import StopReason
from gem.testing.check import CheckFailed, Unchecked
from gem.testing.env.harness import Harness, Rollout, TrackedEnv
from gem.testing.env.target import literal
from gem.testing.plain_data import text_of

ROLLOUT_TURNS = 100  # maximum length of a rollout; short, because most checks replay the rollouts
LONG_ROLLOUT_TURNS = 2_000  # maximum length of a rollout that should reach the end of the episode
ORACLE_ROLLOUTS = 3
# Recording fails after SLOW_SECONDS if the last quarter of the steps takes SLOWDOWN times as long as the first.
SLOW_SECONDS, SLOWDOWN, MIN_SLOWDOWN_S, MIN_STEPS = 5.0, 4.0, 0.01, 12
# Actions for environments that cannot sample actions. Some games accept some of these actions.
FALLBACK_ACTIONS = (r"\boxed{1}", r"\boxed{2}", r"\boxed{a}", r"\boxed{up}", r"\boxed{1 1}", "yes", r"\boxed{A B}", "")
SCORE_STEPS = 8_000  # step budget of one estimate, so that environments with long episodes do not take minutes …
MIN_EPISODES = 10  # … but at least this many episodes are played

ActionFunction = Callable[[Any], str]  # observation → action


def record_rollouts(harness: Harness) -> None:
    """Record the rollouts of the harness: with sampled actions, with constant actions and with the oracle's actions.

    Raises:
        CheckFailed: a rollout failed. This rollout is recorded up to the failure.
    """
    for seed in harness.seeds:
        harness.rollouts.append(_rollout(harness, seed, sampled_actions, ROLLOUT_TURNS))
    first = harness.rollouts[0]
    for action in dict.fromkeys(["", *first.actions[:1]]):
        harness.long_rollouts.append(_rollout(harness, first.seed, constant_action(action), LONG_ROLLOUT_TURNS))
    if harness.target.has_oracle:
        with suppress(Unchecked):
            for seed in harness.seeds[:ORACLE_ROLLOUTS]:
                harness.rollouts.append(_rollout(harness, seed, _oracle_actions_or_unchecked, ROLLOUT_TURNS))


def sampled_actions(env: TrackedEnv) -> ActionFunction:
    """Return a function that samples actions. After sampling has failed, the function returns fallback actions."""

    def choose(observation: Any) -> str:
        if env.harness.samples_actions:
            try:
                return env.sample()
            except (CheckFailed, Unchecked):  # the check "sampled-legal" reports this failure
                env.harness.samples_actions = False
        return FALLBACK_ACTIONS[env.turn % len(FALLBACK_ACTIONS)]

    return choose


def oracle_actions(env: TrackedEnv) -> ActionFunction:
    oracle = env.oracle()
    return lambda observation: str(env.harness.call("oracle.act(observation)", oracle.act, observation))


def constant_action(action: str) -> Callable[[TrackedEnv], ActionFunction]:
    return lambda env: lambda observation: action


@dataclass(frozen=True)
class BaselinePolicy:
    """A policy that needs no model.

    Args:
        make_action_function: returns the function that maps observations of an environment to actions.
        action_code: the action, as a Python expression that may use ``observation``.
        setup_code: a line of Python to run after every reset; may be empty.
    """

    make_action_function: Callable[[TrackedEnv], ActionFunction]
    action_code: str
    setup_code: str = ""


def constant_policy(action: str) -> BaselinePolicy:
    return BaselinePolicy(constant_action(action), literal(action))


def echo_policy() -> BaselinePolicy:
    """Return a policy whose action is the text of the observation."""
    return BaselinePolicy(lambda env: text_of, "observation")


def repeat_policy() -> BaselinePolicy:
    """Return a policy that samples one action per episode and repeats this action."""

    def make_action_function(env: TrackedEnv) -> ActionFunction:
        action = env.sample()
        return lambda observation: action

    return BaselinePolicy(make_action_function, "action", "action = env.sample_random_action()")


def oracle_policy(name: str) -> BaselinePolicy:
    """Return the policy of the oracle with this "module:function" name."""
    setup = f"oracle = gem.registry.resolve({name!r})(env.unwrapped)"
    return BaselinePolicy(oracle_actions, "oracle.act(observation)", setup)


@dataclass(frozen=True)
class EpisodeScore:
    """The result of one episode.

    Args:
        total: sum of rewards.
        turns: number of steps.
        solved: whether the stop_reason is SOLVED; None if the last step has no stop_reason.
    """

    total: float
    turns: int
    solved: bool | None


@dataclass(frozen=True)
class ScoreEstimate:
    """The episode scores of a policy on the seeds 0, 1, 2, …"""

    policy: BaselinePolicy
    episodes: list[EpisodeScore]

    @property
    def mean(self) -> float:
        return statistics.fmean(e.total for e in self.episodes)

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; 0 for a single episode."""
        if len(self.episodes) < 2:
            return 0.0
        return statistics.stdev(e.total for e in self.episodes) / math.sqrt(len(self.episodes))

    @property
    def success_rate(self) -> float:
        """Fraction of solved episodes. Episodes without a stop_reason count as not solved."""
        return statistics.fmean(bool(e.solved) for e in self.episodes)

    @property
    def mean_turns(self) -> float:
        """Mean number of turns of the solved episodes; NaN if no episode was solved."""
        solved = [e.turns for e in self.episodes if e.solved]
        return statistics.fmean(solved) if solved else math.nan

    def __str__(self) -> str:
        return f"mean reward {self.mean:.3f} ± {self.standard_error:.3f} over {len(self.episodes)} episodes"


def estimate_score(
    harness: Harness,
    policy: BaselinePolicy,
    *,
    episodes: int,
    max_steps: int = SCORE_STEPS,
    max_seconds: float = math.inf,
) -> ScoreEstimate:
    """Play episodes on the seeds 0, 1, 2, …

    Args:
        episodes: maximum number of episodes.
        max_steps, max_seconds: budget of all episodes together. When either is used up, no further episode starts,
            except that MIN_EPISODES episodes (or ``episodes``, if smaller) are always played.
    """
    played: list[EpisodeScore] = []
    deadline = time.perf_counter() + max_seconds
    while len(played) < episodes:
        if len(played) >= MIN_EPISODES and (max_steps <= 0 or time.perf_counter() > deadline):
            break
        played.append(_play_episode(harness, policy, seed=len(played)))
        max_steps -= played[-1].turns
    return ScoreEstimate(policy, played)


def score_script(harness: Harness, policy: BaselinePolicy, seeds: Sequence[int]) -> list[str]:
    """Return the lines of a program that plays the policy and prints the mean reward and each episode's reward."""
    return [
        *dict.fromkeys(["import gem", *harness.target.setup]),
        f"env = {harness.target.code}",
        "returns = []",
        f"for seed in {seeds}:",
        "    observation, info = env.reset(seed=seed)",
        *([f"    {policy.setup_code}"] if policy.setup_code else []),
        "    total, over = 0.0, False",
        "    while not over:",
        f"        observation, reward, terminated, truncated, info = env.step({policy.action_code})",
        "        total, over = total + reward, terminated or truncated",
        "    returns.append(total)",
        "print(sum(returns) / len(returns), returns)",
    ]


def _play_episode(harness: Harness, policy: BaselinePolicy, seed: int) -> EpisodeScore:
    harness.new_case()
    env, observation = harness.start(seed)
    act, total, reason = policy.make_action_function(env), 0.0, None
    while not env.over and env.turn < LONG_ROLLOUT_TURNS:
        observation, reward, _, _, info = env.step(act(observation))
        total, reason = total + reward, info.get("stop_reason")
    harness.best_total = max(harness.best_total, total)
    return EpisodeScore(total, env.turn, None if reason is None else reason == StopReason.SOLVED)


def _oracle_actions_or_unchecked(env: TrackedEnv) -> ActionFunction:
    """Like oracle_actions(), but raise Unchecked if the oracle fails: the check "oracle" reports this failure."""
    try:
        act = oracle_actions(env)
    except CheckFailed as e:
        raise Unchecked(e.detail) from e

    def choose(observation: Any) -> str:
        try:
            return act(observation)
        except CheckFailed as e:
            raise Unchecked(e.detail) from e

    return choose


def _rollout(
    harness: Harness, seed: int, make_action_function: Callable[[TrackedEnv], ActionFunction], turns: int
) -> Rollout:
    actions: list[str] = []
    times: list[float] = []
    harness.new_case()
    env = harness.build()
    try:
        observation = env.reset(seed)[0]
        act = make_action_function(env)
        while not env.over and len(actions) < turns:
            actions.append(act(observation))
            start = time.perf_counter()
            observation = env.step(actions[-1]).observation
            times.append(time.perf_counter() - start)
            _require_steady_time(times)
    except CheckFailed:
        harness.rollouts.append(Rollout(seed, tuple(actions)))
        raise
    return Rollout(seed, tuple(actions))


def _require_steady_time(times: Sequence[float]) -> None:
    """Raise CheckFailed if the steps have taken long and each quarter of them longer than the one before.

    Without this, 2,000 steps that become slower and slower would take minutes in each of the checks.
    """
    quarter = len(times) // 4
    if len(times) % 4 or len(times) < MIN_STEPS or sum(times) < SLOW_SECONDS:
        return
    medians = [statistics.median(times[i * quarter : (i + 1) * quarter]) for i in range(4)]
    grows = all(earlier < later for earlier, later in pairwise(medians))
    if grows and medians[-1] > SLOWDOWN * medians[0] and medians[-1] - medians[0] > MIN_SLOWDOWN_S:
        numbers = ", ".join(f"{1e3 * value:.3g}" for value in medians)
        raise CheckFailed(f"the steps take longer and longer: {numbers} ms, in the quarters of the first {len(times)}")
