"""Statistics of evaluations: intervals clustered by task, pass@k, pass^k, paired differences, suites.

Rollouts of one task resemble each other, so intervals come from the spread between tasks. If 4 or 16 rollouts per task
were counted as independent samples, a nominal 95 % interval would cover the true score in 48 to 88 % of evaluations
(benchmarks/results/coverage.md).

Axes: P tasks, R_p >= 1 rollouts of task p. Scores are ragged: one sequence of numbers per task. Levels are shares such
as 0.95.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gem.errors import BadValue

__all__ = [
    "Estimate",
    "PairedDifference",
    "bootstrap_interval",
    "expected_half_width",
    "interquartile_band",
    "interquartile_interval",
    "interquartile_mean",
    "mean_interval",
    "paired_difference",
    "pass_at_k",
    "pass_hat_k",
    "stratified_interval",
    "suite_mean",
    "tasks_needed",
    "wilson_interval",
]

Scores: TypeAlias = Sequence[Sequence[float]]
LEVEL = 0.95
# Success rates of tasks vary like Beta(.5, .5): most tasks are nearly always or nearly never solved.
_BETWEEN = _WITHIN = 0.125  # its variance, and the mean variance of one rollout given the task
_CORRELATION = 0.5  # assumed between the success rates of two models on the same tasks
_DRAWS = 2000  # of a bootstrap
_ROUNDING = 1e-9  # of the largest score: means of equal scores differ by less, as sums of 0.1 do


class Estimate(NamedTuple):
    """An estimate with its confidence interval.

    Args:
        low, high: the bounds; NaN if the data says nothing about them.
        method: "t" (over tasks), "wilson" or "bootstrap".
    """

    value: float
    low: float
    high: float
    method: str

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Estimate:
        """Return the estimate that a report.json holds, where None stands for NaN."""
        value, low, high = (math.nan if data[name] is None else float(data[name]) for name in ("value", "low", "high"))
        return cls(value, low, high, str(data["method"]))

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class PairedDifference(NamedTuple):
    """The difference of two runs on the same tasks.

    Args:
        difference: mean of the second run minus mean of the first.
        wins, losses, ties: tasks on which the second run is better, worse, and equal.
        p: two-sided p-value of the exact sign test on wins and losses.
    """

    difference: Estimate
    wins: int
    losses: int
    ties: int
    p: float


def mean_interval(scores: Scores, *, level: float = LEVEL, bounds: tuple[float, float] | None = None) -> Estimate:
    """Return the mean over tasks of the mean over rollouts, with its interval.

    The interval is Student's t over the P task means. It is Wilson's over tasks for scores of 0 and 1 with one rollout
    per task; and if all task means are equal, where t would give a width of 0.

    Args:
        scores: per task, the scores of its rollouts.
        bounds: lowest and highest possible score; None if they are unknown. For scores of 0 and 1 they are 0 and 1. The
            bounds of the interval are NaN if these are unknown and all task means are equal.

    Raises:
        BadValue: there is no task, or a task without rollouts.
    """
    means_P = task_means(scores)
    values = [score for rollouts in scores for score in rollouts]
    is_binary = all(score in (0, 1) for score in values)
    if is_binary:
        bounds = (0.0, 1.0)
    elif bounds is not None and not (math.isfinite(bounds[0]) and math.isfinite(bounds[1]) and bounds[0] < bounds[1]):
        bounds = None
    if (is_binary and len(values) == len(scores)) or _are_equal(means_P, values):
        return _wilson_of_means(means_P, level, bounds)
    return _t_interval(means_P, level, bounds)


def task_means(scores: Scores) -> Any:
    """Return the mean score of each task, a float array of length P. Raises BadValue as mean_interval() does."""
    if not len(scores) or not all(len(rollouts) for rollouts in scores):
        raise BadValue("scores need at least one task, and at least one rollout of each task")
    return np.array([sum(map(float, rollouts)) / len(rollouts) for rollouts in scores])


def wilson_interval(successes: float, count: int, *, level: float = LEVEL) -> Estimate:
    """Return the share of successes with Wilson's interval, for independent samples.

    Raises:
        BadValue: unless 0 <= successes <= count and count >= 1.
    """
    if count < 1 or not 0 <= successes <= count:
        raise BadValue(f"need 0 <= successes <= count and count >= 1, got {successes!r} of {count!r}")
    z2, share = _z(level) ** 2, successes / count
    center = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = math.sqrt(z2 * (share * (1 - share) / count + z2 / (4 * count**2))) / (1 + z2 / count)
    low = 0.0 if successes == 0 else max(0.0, center - half)
    return Estimate(share, low, 1.0 if successes == count else min(1.0, center + half), "wilson")


def bootstrap_interval(
    groups: Sequence[Any],
    statistic: Callable[[list[Any]], float],
    *,
    level: float = LEVEL,
    draws: int = _DRAWS,
    seed: int = 0,
) -> Estimate:
    """Return a statistic of tasks with its percentile interval from a bootstrap over whole tasks.

    Args:
        groups: the data of each task.
        statistic: maps a list of tasks' data to a number.
        draws: number of resampled lists.
    """
    numbers = np.arange(len(groups))
    return stratified_interval(
        [numbers], lambda strata: statistic([groups[i] for i in strata[0]]), level=level, draws=draws, seed=seed
    )


def stratified_interval(
    strata: Sequence[Any],
    statistic: Callable[[list[Any]], float],
    *,
    level: float = LEVEL,
    draws: int = _DRAWS,
    seed: int = 0,
) -> Estimate:
    """Return a statistic with its percentile interval from a bootstrap that resamples within each stratum.

    Args:
        strata: an array per stratum, with one row per unit: the tasks of each environment of a suite; or the runs on
            each task, as in rliable (Agarwal et al. 2021, https://arxiv.org/abs/2108.13264).
        statistic: maps arrays of the same shapes to a number.
        draws: number of resampled strata.
    """
    value, low, high = _bootstrap(strata, statistic, level, draws, seed)
    return Estimate(float(value), float(low), float(high), "bootstrap")


def _bootstrap(
    strata: Sequence[Any], statistic: Callable[[list[Any]], Any], level: float, draws: int, seed: int
) -> tuple[Any, Any, Any]:
    """Return a statistic, a number or an array, and its percentile bounds."""
    rng, arrays = np.random.default_rng(seed), [np.asarray(units) for units in strata]
    values = [statistic([rows[rng.integers(len(rows), size=len(rows))] for rows in arrays]) for _ in range(draws)]
    tail = 50 * (1 - level)
    return statistic(arrays), *np.percentile(values, [tail, 100 - tail], axis=0)


def suite_mean(envs: Sequence[Any], estimates: Sequence[Estimate], *, level: float = LEVEL) -> Estimate:
    """Return the mean over environments, each of which counts once.

    The interval is a bootstrap that resamples the tasks within each environment. For environments whose tasks are all
    equal, where resampling says nothing, it is widened by their own intervals, as independent errors add up. Its bounds
    are NaN if one of those is unknown.

    Args:
        envs: per environment, the mean of each task, at least one.
        estimates: per environment, the mean over its tasks with its interval at the same level.
    """
    rng, total_D = np.random.default_rng(0), np.zeros(_DRAWS)
    fixed: list[Estimate] = []
    for means, estimate in zip(envs, estimates, strict=True):
        total_D += _resampled_means(np.asarray(means, float), rng)
        fixed += [estimate] if _are_equal(means, means) else []
    value, tail = sum(float(np.mean(means)) for means in envs) / len(envs), 50 * (1 - level)
    low, high = np.percentile(total_D / len(envs), [tail, 100 - tail])
    below = math.hypot(value - low, *((e.value - e.low) / len(envs) for e in fixed))
    above = math.hypot(high - value, *((e.high - e.value) / len(envs) for e in fixed))
    return Estimate(value, value - below, value + above, "bootstrap")


def _resampled_means(means_P: Any, rng: Any) -> Any:
    """Return the mean of the tasks in each draw of the bootstrap."""
    count = len(means_P)
    block = max(1, 1_000_000 // count)  # draws at once, which bounds the memory
    sizes = [min(block, _DRAWS - first) for first in range(0, _DRAWS, block)]
    return np.concatenate([means_P[rng.integers(count, size=(size, count))].mean(1) for size in sizes])


def interquartile_mean(values: Any) -> float:
    """Return the mean without the lowest and the highest quarter of the values, each rounded down to a whole number.

    As in rliable, whose values are the scores of all runs on all tasks (Agarwal et al. 2021).
    """
    return float(_trimmed(np.ravel(values)))


def _trimmed(values_NU: Any) -> Any:
    """Return the interquartile mean over the first axis."""
    ordered_NU = np.sort(np.asarray(values_NU, float), axis=0)
    cut = len(ordered_NU) // 4
    return ordered_NU[cut : len(ordered_NU) - cut].mean(0)


def interquartile_interval(runs: Sequence[Sequence[float]], *, level: float = LEVEL, draws: int = _DRAWS) -> Estimate:
    """Return the interquartile mean of the scores of several runs, with rliable's stratified bootstrap.

    The bootstrap resamples the runs within each environment: the interval is for other seeds on the same tasks.

    Args:
        runs: per environment, the score of each run, such as those of several seeds.
    """
    return stratified_interval(
        runs, lambda strata: interquartile_mean(np.concatenate(strata)), level=level, draws=draws
    )


def interquartile_band(curves_NU: Any, *, level: float = LEVEL, draws: int = _DRAWS) -> tuple[Any, Any, Any]:
    """Return the interquartile mean of N curves at each of U points, and the bounds of its interval at each.

    The bootstrap draws whole curves, as rliable does for sample efficiency.
    """
    return _bootstrap([curves_NU], lambda strata: _trimmed(strata[0]), level, draws, 0)


def pass_at_k(rollouts: int, solved: int, k: int) -> float:
    """Return the probability that at least one of k rollouts solves a task: 1 - C(n-c, k) / C(n, k), as a product.

    Unbiased for independent rollouts (Chen et al. 2021, https://arxiv.org/abs/2107.03374).

    Args:
        rollouts, solved: n rollouts of the task, and the c of them that solved it.

    Raises:
        BadValue: unless 1 <= k <= rollouts and 0 <= solved <= rollouts.
    """
    _check_counts(rollouts, solved, k)
    return 1.0 - _all_of(rollouts, rollouts - solved, k)


def pass_hat_k(rollouts: int, solved: int, k: int) -> float:
    """Return the probability that all of k rollouts solve a task, pass^k: C(c, k) / C(n, k).

    From tau-bench (Yao et al. 2024, https://arxiv.org/abs/2406.12045). Arguments and exceptions as for pass_at_k().
    """
    _check_counts(rollouts, solved, k)
    return _all_of(rollouts, solved, k)


def paired_difference(first: Scores, second: Scores, *, level: float = LEVEL) -> PairedDifference:
    """Compare two runs on the same tasks, in the same order.

    The interval is Student's t over the differences of task means. If all of them are 0, it is the Wilson bound of the
    share of tasks that differ; if all are equal otherwise, Wilson's interval between the largest possible differences.

    Raises:
        BadValue: the numbers of tasks differ, or as for mean_interval().
    """
    if len(first) != len(second):
        raise BadValue(f"both runs need the same tasks, got {len(first)} and {len(second)}")
    values = [score for scores in (first, second) for rollouts in scores for score in rollouts]
    changes_P = task_means(second) - task_means(first)
    changes_P[np.abs(changes_P) <= _rounding(values)] = 0.0
    span = 1.0 if _are_equal(values, values) else max(values) - min(values)
    wins, losses = int((changes_P > 0).sum()), int((changes_P < 0).sum())
    if not changes_P.any():
        bound = span * wilson_interval(0, len(changes_P), level=level).high
        difference = Estimate(0.0, -bound, bound, "wilson")
    elif _are_equal(changes_P, values):
        difference = _wilson_of_means(changes_P, level, (-span, span))
    else:
        difference = _t_interval(changes_P, level, (-span, span))
    return PairedDifference(difference, wins, losses, len(changes_P) - wins - losses, sign_test(wins, losses))


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value of the exact sign test. Ties are left out."""
    count, fewer = wins + losses, min(wins, losses)
    return min(1.0, 2 * sum(math.comb(count, i) for i in range(fewer + 1)) / (1 << count))


def expected_half_width(tasks: int, rollouts: int, *, level: float = LEVEL) -> float:
    """Return the half width of the interval that a run will have, for success rates that vary as Beta(.5, .5)."""
    return min(0.5, t_quantile((1 + level) / 2, max(1, tasks - 1)) * math.sqrt((_BETWEEN + _WITHIN / rollouts) / tasks))


def tasks_needed(difference: float, rollouts: int, *, power: float = 0.8, level: float = LEVEL) -> int:
    """Return the number of tasks on which two models must be compared to detect a difference in success.

    For paired tasks whose success rates vary as Beta(.5, .5), with correlation 0.5 between the models.

    Args:
        difference: between the mean success rates, such as 0.05.
        power: probability of detecting it.

    Raises:
        BadValue: unless 0 < difference <= 1.
    """
    if not 0 < difference <= 1:
        raise BadValue(f"the difference to detect must be a number in (0, 1], got {difference!r}")
    variance = 2 * _BETWEEN * (1 - _CORRELATION) + 2 * _WITHIN / rollouts
    return math.ceil(variance * ((_z(level) + NormalDist().inv_cdf(power)) / difference) ** 2)


@lru_cache(maxsize=1024)
def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution for a probability of at least 0.5.

    Args:
        freedom: degrees of freedom, >= 1.
    """
    if freedom > 200:  # Cornish-Fisher expansion; its error is below 1e-6 here
        z = NormalDist().inv_cdf(probability)
        first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + first / freedom + second / freedom**2 + third / freedom**3
    low, high = 0.0, 1.0
    while _t_cdf(high, freedom) < probability:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_cdf(middle, freedom) < probability else (low, middle)
    return high


def _t_cdf(t: float, freedom: int) -> float:
    """Exact for whole degrees of freedom; Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(freedom))
    cos2, odd = math.cos(angle) ** 2, freedom % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for i in range(freedom // 2):
        total += term
        term *= cos2 * (2 * i + 1 + odd) / (2 * i + 2 + odd)
    within = math.sin(angle) * total
    return 0.5 + ((angle + within) / math.pi if odd else within / 2)


def _are_equal(means_P: Any, values: Sequence[float]) -> bool:
    return float(np.ptp(means_P)) <= _rounding(values)


def _rounding(values: Sequence[float]) -> float:
    """Return how much two means of these scores may differ only because of rounding."""
    return _ROUNDING * max(map(abs, values))


def _z(level: float) -> float:
    if not 0 < level < 1:
        raise BadValue(f"level must be between 0 and 1, such as 0.95, got {level!r}")
    return NormalDist().inv_cdf((1 + level) / 2)


def _t_interval(means_P: Any, level: float, bounds: tuple[float, float] | None) -> Estimate:
    _z(level)  # checks it
    with np.errstate(over="ignore"):  # of scores above 1e154, in a report of someone else
        deviation = float(means_P.std(ddof=1))
    half = t_quantile((1 + level) / 2, len(means_P) - 1) * deviation / math.sqrt(len(means_P))
    value, (least, most) = float(means_P.mean()), bounds or (-math.inf, math.inf)
    return Estimate(value, max(least, value - half), min(most, value + half), "t")


def _wilson_of_means(means_P: Any, level: float, bounds: tuple[float, float] | None) -> Estimate:
    """Return Wilson's interval with tasks as samples, scaled to the bounds of the scores."""
    value = float(means_P.mean())
    if bounds is None:
        return Estimate(value, math.nan, math.nan, "wilson")
    least, span = bounds[0], bounds[1] - bounds[0]
    share = wilson_interval(min(1.0, max(0.0, (value - least) / span)) * len(means_P), len(means_P), level=level)
    return Estimate(value, least + span * share.low, least + span * share.high, "wilson")


def _check_counts(rollouts: int, solved: int, k: int) -> None:
    if not 1 <= k <= rollouts or not 0 <= solved <= rollouts:
        raise BadValue(f"need 1 <= k <= rollouts and 0 <= solved <= rollouts, got {k=}, {rollouts=}, {solved=}")


def _all_of(count: int, marked: int, k: int) -> float:
    """Return the probability that k of count items, drawn without replacement, are all marked."""
    return math.prod((marked - i) / (count - i) for i in range(k)) if k <= marked else 0.0
