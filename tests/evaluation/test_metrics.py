"""Statistics of evaluations: against slow reference implementations, and by simulated coverage."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from gem.errors import BadValue
from gem.evaluation.metrics import (
    bootstrap_interval,
    expected_half_width,
    interquartile_interval,
    interquartile_mean,
    mean_interval,
    paired_difference,
    pass_at_k,
    pass_hat_k,
    sign_test,
    stratified_interval,
    suite_mean,
    t_quantile,
    task_means,
    tasks_needed,
    wilson_interval,
)


def draws_of_k(rollouts: int, solved: int, k: int) -> list[tuple[bool, ...]]:
    """All ways to draw k of the rollouts."""
    return list(itertools.combinations([True] * solved + [False] * (rollouts - solved), k))


@pytest.mark.parametrize("rollouts", [1, 2, 5, 7])
def test_pass_at_k_and_pass_hat_k_are_shares_of_all_draws(rollouts):
    for solved, k in itertools.product(range(rollouts + 1), range(1, rollouts + 1)):
        draws = draws_of_k(rollouts, solved, k)
        assert pass_at_k(rollouts, solved, k) == pytest.approx(sum(map(any, draws)) / len(draws), abs=1e-12)
        assert pass_hat_k(rollouts, solved, k) == pytest.approx(sum(map(all, draws)) / len(draws), abs=1e-12)


def test_pass_at_k_of_many_rollouts_does_not_overflow():
    expected = 1 - math.comb(9_000, 100) / math.comb(10_000, 100)
    assert pass_at_k(10_000, 1_000, 100) == pytest.approx(expected, abs=1e-12)


def test_more_rollouts_are_needed_than_there_are():
    with pytest.raises(BadValue, match="k=5, rollouts=4"):
        pass_at_k(4, 1, 5)


# From tables of the t distribution.
@pytest.mark.parametrize(
    ("freedom", "expected"), [(1, 12.7062), (2, 4.30265), (5, 2.57058), (29, 2.04523), (200, 1.97190), (201, 1.97184)]
)
def test_the_quantile_of_t_is_that_of_the_tables(freedom, expected):
    assert t_quantile(0.975, freedom) == pytest.approx(expected, abs=2e-5)


def test_both_formulas_of_the_t_quantile_agree_where_they_meet():
    assert t_quantile(0.975, 201) == pytest.approx(1.9718365, abs=1e-6)
    assert 0 < t_quantile(0.975, 200) - t_quantile(0.975, 201) < 1e-4


def test_the_mean_interval_is_that_of_plain_loops():
    scores = [[0, 1, 1], [1], [0.25, 0.75], [0, 0, 0]]
    means = [sum(rollouts) / len(rollouts) for rollouts in scores]
    mean = sum(means) / 4
    half = 3.182446 * math.sqrt(sum((m - mean) ** 2 for m in means) / 3 / 4)
    found = mean_interval(scores)
    assert found[:3] == pytest.approx((mean, mean - half, mean + half), abs=1e-6) and found.method == "t"


def test_repeating_each_rollout_does_not_narrow_the_interval():
    scores = [[0], [1], [0], [0.5]]
    assert mean_interval([10 * rollouts for rollouts in scores])[1:3] == pytest.approx(mean_interval(scores)[1:3])


def inverted_score_test(successes: int, count: int) -> list[float]:
    """Shares that a normal test with their own variance does not reject: the definition of Wilson's interval."""
    shares = np.linspace(0, 1, 100_001)
    allowed = np.abs(successes / count - shares) <= 1.959964 * np.sqrt(shares * (1 - shares) / count) + 1e-12
    return [shares[allowed].min(), shares[allowed].max()]


@pytest.mark.parametrize(("successes", "count"), [(0, 10), (3, 10), (10, 10), (1, 500)])
def test_wilsons_interval_inverts_the_score_test(successes, count):
    found = wilson_interval(successes, count)
    assert [found.low, found.high] == pytest.approx(inverted_score_test(successes, count), abs=2e-5)


@pytest.mark.parametrize("rollouts", [1, 4])
@pytest.mark.parametrize("right", [0, 1])
def test_all_right_or_all_wrong_is_never_without_an_interval(right, rollouts):
    found = mean_interval([[right] * rollouts] * 50)
    assert found.value == right and found.half_width > 0.03 and found.method == "wilson"


def test_wilson_is_only_for_one_rollout_of_0_or_1_per_task():
    assert mean_interval([[0], [1], [1]]).method == "wilson"
    assert mean_interval([[0], [1], [0.5]]).method == mean_interval([[0, 1], [1, 1]]).method == "t"


def test_equal_scores_other_than_0_and_1_have_an_interval_within_known_bounds_only():
    assert math.isnan(mean_interval([[-0.1]] * 9).low)
    found = mean_interval([[-0.1]] * 9, bounds=(-0.1, 1.0))
    assert (found.value, found.low) == pytest.approx((-0.1, -0.1)) and 0.1 < found.high < 0.4
    assert math.isnan(mean_interval([[0.3]], bounds=(-math.inf, math.inf)).high)


def test_means_that_differ_only_by_rounding_are_equal():
    """The mean of three times -0.1 is not quite -0.1."""
    found = mean_interval([[-0.1], [-0.1] * 3, [-0.1] * 6], bounds=(-0.1, 1.0))
    assert found.method == "wilson" and found.low == pytest.approx(-0.1) and found.high > 0.4
    assert math.isnan(mean_interval([[-0.1], [-0.1] * 3]).high)
    pair = paired_difference([[0.1]] * 9, [[0.1] * 3, *[[0.1 + 0.2 - 0.2]] * 8])
    assert (pair.wins, pair.losses, pair.ties, pair.p) == (0, 0, 9, 1.0)
    assert pair.difference.high == -pair.difference.low > 0.1
    shifted = paired_difference([[0.1], [0.1] * 3], [[0.4], [0.4] * 3]).difference
    assert shifted.method == "wilson" and shifted.low < 0


def test_scores_of_0_and_1_have_the_same_interval_whatever_else_was_possible():
    scores = [[0], [1], [1], [0]]
    assert mean_interval(scores, bounds=(-0.1, 1.0)) == mean_interval(scores)


def test_an_evaluation_without_tasks_has_no_mean():
    with pytest.raises(BadValue, match="at least one task"):
        mean_interval([])


def test_the_bootstrap_draws_whole_tasks():
    scores = [[0, 0, 0, 0], [1, 1, 1, 1]] * 20
    found = bootstrap_interval(scores, lambda tasks: sum(map(sum, tasks)) / 160)
    expected = mean_interval(scores)
    assert found.value == 0.5 and found[1:3] == pytest.approx(expected[1:3], abs=0.02)


# Scores of runs by task, and what rliable 1.2.0 says of them with 20,000 draws: aggregate_iqm and its interval.
RLIABLE = [
    (
        [[0.922, 0.542, 0.995], [0.106, 0.247, 0.005], [0.0, 0.454, 0.6], [0.744, 0.644, 0.801]],
        (0.5385, 0.3895, 0.6478333),
    ),
    ([[0.004, 0.922, 1.0, 0.967, 0.085]], (0.658, 0.031, 0.989)),
    ([[0.911, 0.531], [0.995, 0.031], [0.996, 0.866]], (0.82575, 0.48975, 0.97425)),
]


@pytest.mark.parametrize(("runs", "expected"), RLIABLE)
def test_the_interquartile_mean_and_its_interval_are_those_of_rliable(runs, expected):
    assert interquartile_interval(runs, draws=5000)[:3] == pytest.approx(expected, abs=0.01)
    assert interquartile_mean(runs[0] + runs[-1]) == interquartile_mean([*reversed(runs[0] + runs[-1])])


def test_an_interquartile_mean_of_fewer_than_four_values_is_their_mean():
    assert interquartile_mean([0.0, 1.0, 5.0]) == 2.0
    assert interquartile_mean([-9.0, 1.0, 2.0, 90.0]) == 1.5


def test_a_stratified_bootstrap_keeps_the_size_of_each_stratum():
    found = stratified_interval([[0.0, 0.0], [1.0, 1.0, 1.0]], lambda strata: sum(float(rows.sum()) for rows in strata))
    assert found[:3] == (3.0, 3.0, 3.0)


def suite(*envs):
    return suite_mean([task_means(scores) for scores in envs], [mean_interval(scores) for scores in envs])


def test_the_mean_of_a_suite_counts_each_environment_once():
    small, large = [[0], [1]] * 10, [[1], [1], [0], [1]] * 50
    found = suite(small, large)
    assert found.value == pytest.approx((0.5 + 0.75) / 2) and found.method == "bootstrap"
    widths = [mean_interval(scores).half_width for scores in (small, large)]
    assert found.half_width == pytest.approx(math.hypot(*widths) / 2, rel=0.15)


def test_an_environment_whose_tasks_are_all_solved_still_widens_the_interval_of_its_suite():
    solved = [[1]] * 20
    found, alone = suite(solved, solved), mean_interval(solved)
    assert found.value == found.high == 1.0
    assert 1 - found.low == pytest.approx((1 - alone.low) / math.sqrt(2))
    assert math.isnan(suite(solved, [[0.3]]).low)


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (5, 0), (7, 2), (3, 3)])
def test_the_sign_test_counts_all_outcomes_at_least_as_uneven(wins, losses):
    outcomes = list(itertools.product([-1, 1], repeat=wins + losses))
    uneven = sum(abs(sum(outcome)) >= abs(wins - losses) for outcome in outcomes)
    assert sign_test(wins, losses) == sign_test(losses, wins) == pytest.approx(uneven / len(outcomes))


def test_a_paired_difference_is_narrower_than_two_means():
    rng = random.Random(0)
    easy = [[float(rng.random() < p) for _ in range(8)] for p in [0.05, 0.95] * 50]
    hard = [[float(rng.random() < p) for _ in range(8)] for p in [0.15, 0.95] * 50]
    found = paired_difference(easy, hard)
    assert found.difference.value == pytest.approx(mean_interval(hard).value - mean_interval(easy).value)
    assert found.difference.half_width < 0.5 * mean_interval(easy).half_width
    assert found.wins + found.losses + found.ties == 100 and found.wins > found.losses


def test_runs_that_never_or_always_differ_have_an_interval_as_well():
    same = paired_difference([[1], [0]] * 10, [[1], [0]] * 10)
    assert same.difference.value == 0 and 0.1 < same.difference.high < 0.2 and same.p == 1.0
    opposite = paired_difference([[0]] * 10, [[1]] * 10)
    assert opposite.difference.value == 1 and opposite.difference.low < 0.7 and opposite.p == pytest.approx(2 / 1024)


def test_runs_on_other_numbers_of_tasks_are_not_compared():
    with pytest.raises(BadValue, match="got 1 and 2"):
        paired_difference([[1]], [[1], [0]])


def simulated(tasks: int, rollouts: int, shape: float, rng: np.random.Generator) -> list[list[int]]:
    return rng.binomial(1, rng.beta(shape, shape, size=(tasks, 1)), size=(tasks, rollouts)).tolist()


@pytest.mark.parametrize("shape", [0.5, 2.0])
@pytest.mark.parametrize(("tasks", "rollouts"), [(30, 1), (30, 4), (100, 4)])
def test_the_interval_covers_the_true_score_nineteen_times_in_twenty(tasks, rollouts, shape):
    rng, runs = np.random.default_rng(tasks + rollouts), 500
    found = [mean_interval(simulated(tasks, rollouts, shape, rng)) for _ in range(runs)]
    assert 0.92 <= sum(interval.low <= 0.5 <= interval.high for interval in found) / runs <= 0.98


def test_the_other_intervals_cover_the_true_value_as_often():
    rng, runs, k = np.random.default_rng(3), 300, 2
    true = {"pass@k": 0.7, "pass^k": 0.3, "difference": 0.0, "bootstrap": 0.5}  # of Beta(2, 2) and k = 2
    covered = dict.fromkeys(true, 0)
    for run in range(runs):
        rates = rng.beta(2.0, 2.0, size=(60, 1))
        first, second = (rng.binomial(1, rates, size=(60, 4)).tolist() for _ in range(2))
        means = [sum(task) / 4 for task in first]
        found = {
            "pass@k": mean_interval([[pass_at_k(4, sum(task), k)] for task in first], bounds=(0, 1)),
            "pass^k": mean_interval([[pass_hat_k(4, sum(task), k)] for task in first], bounds=(0, 1)),
            "difference": paired_difference(first, second).difference,
            "bootstrap": bootstrap_interval(means, lambda m: sum(m) / 60, draws=100, seed=run),
        }
        for name, estimate in found.items():
            covered[name] += estimate.low <= true[name] <= estimate.high
    assert all(0.91 <= count / runs <= 0.99 for count in covered.values()), covered


def test_the_expected_width_is_the_mean_width_of_simulated_runs():
    rng = np.random.default_rng(0)
    widths = [mean_interval(simulated(100, 4, 0.5, rng)).half_width for _ in range(100)]
    assert expected_half_width(100, 4) == pytest.approx(np.mean(widths), rel=0.03)


def test_smaller_differences_need_more_tasks_and_more_rollouts_need_fewer():
    assert tasks_needed(0.05, 1) == pytest.approx(4 * tasks_needed(0.1, 1), rel=0.01)
    assert tasks_needed(0.05, 4) < tasks_needed(0.05, 1) == 1178
    with pytest.raises(BadValue, match="got 5"):
        tasks_needed(5, 1)


def test_on_the_tasks_needed_the_difference_is_2_8_standard_errors():
    rng, tasks, rollouts = np.random.default_rng(1), tasks_needed(0.2, 2), 2
    found = []
    for _ in range(500):
        first, other = rng.beta(0.5, 0.5, size=(2, tasks))
        second = np.where(rng.random(tasks) < 0.5, first, other)  # rates with a correlation of 0.5
        runs = [rng.binomial(rollouts, rates).mean() / rollouts for rates in (first, second)]
        found.append(runs[1] - runs[0])
    assert 0.2 / np.std(found) == pytest.approx(1.96 + 0.84, rel=0.07)
