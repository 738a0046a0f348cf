"""Returns and their normalization, compared with plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem.errors import BadValue
from gem.rl.advantages import discounted_returns, normalize_batch

REWARDS = st.lists(st.floats(-10, 10), max_size=12)
RETURNS = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=1, max_size=30)


def returns_slowly(rewards: list[float], gamma: float) -> list[float]:
    returns = []
    for k in range(len(rewards)):
        total = 0.0
        for j in range(k, len(rewards)):
            total += gamma ** (j - k) * rewards[j]
        returns.append(total)
    return returns


def normalize_slowly(returns: list[float], groups: list[int]) -> list[float]:
    centered = []
    for value, group in zip(returns, groups, strict=True):
        members = [r for r, g in zip(returns, groups, strict=True) if g == group]
        centered.append(value - math.fsum(members) / len(members))
    std = math.sqrt(math.fsum(c * c for c in centered) / len(centered))
    return [0.0 if std < 1e-9 else c / std for c in centered]


@given(REWARDS, st.floats(0, 1))
def test_discounted_returns_agree_with_the_double_loop(rewards, gamma):
    assert discounted_returns(rewards, gamma).tolist() == pytest.approx(returns_slowly(rewards, gamma), abs=1e-6)


@pytest.mark.parametrize(
    ("rewards", "gamma", "returns"),
    [
        ([0, 0, 1], 0.9, [0.81, 0.9, 1.0]),
        ([0, 0, 1], 1.0, [1.0, 1.0, 1.0]),
        ([1, 2, 3], 0.0, [1.0, 2.0, 3.0]),
        ([1, 2, 3], 0.5, [2.75, 3.5, 3.0]),
        ([-0.1], 0.6, [-0.1]),
        ([], 0.9, []),
    ],
)
def test_golden_returns(rewards, gamma, returns):
    assert discounted_returns(rewards, gamma).tolist() == pytest.approx(returns, abs=1e-12)


def test_returns_do_not_modify_the_rewards():
    rewards = np.array([0.0, 0.0, 1.0])
    discounted_returns(rewards, 0.9)
    assert rewards.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("gamma", [-0.1, 1.1, math.nan, math.inf])
def test_a_discount_out_of_range_is_refused_by_value(gamma):
    with pytest.raises(BadValue, match=rf"gamma must be in \[0, 1\], got {gamma}"):
        discounted_returns([1.0], gamma)


@pytest.mark.parametrize("reward", [math.nan, math.inf, None])
def test_a_reward_that_is_not_finite_is_refused(reward):
    with pytest.raises(BadValue, match="rewards must be finite"):
        discounted_returns([0.0, reward], 0.9)


@given(RETURNS)
def test_normalizing_a_batch_agrees_with_the_plain_loop(returns):
    expected = normalize_slowly(returns, [0] * len(returns))
    assert normalize_batch(returns).tolist() == pytest.approx(expected, abs=1e-6)


@given(st.lists(st.tuples(st.floats(-100, 100).map(lambda x: round(x, 3)), st.integers(0, 3)), min_size=1, max_size=30))
def test_normalizing_by_groups_agrees_with_the_plain_loop(pairs):
    returns, groups = [r for r, _ in pairs], [g for _, g in pairs]
    assert normalize_batch(returns, groups).tolist() == pytest.approx(normalize_slowly(returns, groups), abs=1e-6)


@given(RETURNS)
def test_advantages_have_mean_zero_and_deviation_one(returns):
    advantages = normalize_batch(returns)
    assert advantages.mean() == pytest.approx(0.0, abs=1e-9)
    assert advantages.std() == pytest.approx(1.0, abs=1e-9) or not advantages.any()


def test_golden_advantages():
    assert normalize_batch([1.0, 2.0, 3.0, 4.0]).tolist() == pytest.approx(
        [-1.3416407865, -0.4472135955, 0.4472135955, 1.3416407865], abs=1e-9
    )
    # Two groups with means 1 and 20, compared on the scale of the batch: sqrt((1+1+100+100)/4).
    assert normalize_batch([0.0, 2.0, 10.0, 30.0], [0, 0, 1, 1]).tolist() == pytest.approx(
        [-0.1407195, 0.1407195, -1.4071951, 1.4071951], abs=1e-6
    )


@given(st.floats(-1e6, 1e6), st.integers(1, 3000))
def test_a_constant_batch_has_zero_advantages(value, count):
    assert normalize_batch([value] * count).tolist() == [0.0] * count


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=5), st.integers(1, 50))
def test_constant_groups_have_zero_advantages(values, count):
    groups = [i for i in range(len(values)) for _ in range(count)]
    assert not normalize_batch([values[g] for g in groups], groups).any()


@pytest.mark.parametrize("scale", [1e-15, 1e-9, 1.0, 1e9, 1e15])
def test_the_scale_of_the_returns_does_not_matter(scale):
    returns = [1.0, 2.0, 4.0]
    expected = normalize_batch(returns).tolist()
    assert normalize_batch([r * scale for r in returns]).tolist() == pytest.approx(expected, abs=1e-6)


def test_a_small_difference_between_large_returns_is_kept():
    # In float32, and as sqrt(E[x²] - E[x]²) even in float64, this is noise or NaN.
    assert normalize_batch([1e6, 1e6 + 1e-3]).tolist() == pytest.approx([-1.0, 1.0], abs=1e-6)


def test_an_empty_batch_gives_no_advantages():
    assert normalize_batch([]).shape == (0,)
