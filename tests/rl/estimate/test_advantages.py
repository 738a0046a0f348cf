"""Returns and their normalization, compared with plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem.errors import BadValue
from gem.rl.estimate.advantages import (
    ADVANTAGES,
    EpisodeRewards,
    center,
    discounted_returns,
    generalized_advantages,
    normalize_batch,
)

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


EPISODES = [  # two groups of three; states named by letters
    EpisodeRewards([0.0, 1.0], "g", ["a", "b"]),
    EpisodeRewards([0.0, 0.0, 0.5], "g", ["a", "c", "b"]),
    EpisodeRewards([-0.5], "g", ["a"]),
    EpisodeRewards([1.0], "h", ["a"]),
    EpisodeRewards([1.0], "h", ["a"]),
    EpisodeRewards([0.0, 1.0], "h", ["a", "b"]),
]


def others(values: list[float], own: int) -> float:
    rest = [v for i, v in enumerate(values) if i != own]
    return sum(rest) / len(rest) if rest else 0.0


def advantages_slowly(name: str, gamma: float, **options: object) -> list[list[float]]:
    returns = [returns_slowly(list(e.rewards_K), gamma) for e in EPISODES]
    result = []
    for p, episode in enumerate(EPISODES):
        group = [q for q, other in enumerate(EPISODES) if other.group == episode.group]
        totals = [sum(EPISODES[q].rewards_K) for q in group]
        own = group.index(p)
        mean = others(totals, own) if name == "rloo" or options.get("leave_one_out") else sum(totals) / len(totals)
        deviation = math.sqrt(sum((t - sum(totals) / len(totals)) ** 2 for t in totals) / len(totals))
        scaled = name != "rloo" and options.get("group_scale") != "none"
        whole = (totals[own] - mean) / ((deviation or math.inf) if scaled else 1.0)
        row = []
        for k, value in enumerate(returns[p]):
            if name == "returns":
                row.append(value)
            elif name == "turn":
                same = [r[k] for r in returns if len(r) > k]
                row.append(value - others(same, same.index(value)))
            elif name == "gigpo":
                pairs = [(q, j) for q in group for j, s in enumerate(EPISODES[q].states_K) if s == episode.states_K[k]]
                same = [returns[q][j] for q, j in pairs]
                center_ = sum(same) / len(same)
                spread = math.sqrt(sum((x - center_) ** 2 for x in same) / len(same))
                step = (value - center_) / ((spread or math.inf) if scaled else 1.0)
                row.append(whole + float(options.get("step_weight", 1.0)) * step)  # type: ignore[arg-type]
            else:
                row.append(whole)
        result.append(row)
    return result


@pytest.mark.parametrize(
    ("name", "gamma", "options"),
    [
        ("returns", 0.5, {}),
        ("turn", 0.5, {"leave_one_out": True, "batch_scale": "none"}),
        ("rloo", 1.0, {}),
        ("grpo", 1.0, {}),
        ("grpo", 1.0, {"group_scale": "none"}),
        ("grpo", 1.0, {"group_scale": "none", "leave_one_out": True}),
        ("gigpo", 0.5, {}),
        ("gigpo", 0.5, {"group_scale": "none", "step_weight": 0.3}),
    ],
    ids=str,
)
def test_each_estimator_agrees_with_the_plain_loop(name, gamma, options):
    discount = {} if name in ("grpo", "rloo") else {"gamma": gamma}
    found = ADVANTAGES[name](EPISODES, **discount, **options)
    for advantage_K, expected_K in zip(found, advantages_slowly(name, gamma, **options), strict=True):
        assert advantage_K.tolist() == pytest.approx(expected_K, abs=1e-9)


@pytest.mark.parametrize("name", ["rebn", "turn"])
def test_rebn_and_turn_normalize_over_the_batch(name):
    returns = [discounted_returns(e.rewards_K, 0.8) for e in EPISODES]
    turns = np.concatenate([np.arange(len(r)) for r in returns])
    expected = normalize_batch(np.concatenate(returns), turns if name == "turn" else None)
    assert np.concatenate(ADVANTAGES[name](EPISODES)).tolist() == expected.tolist()


def test_a_group_with_equal_returns_contributes_nothing():
    equal = [EpisodeRewards([0.1, 0.2], "g", ["a", "b"]), EpisodeRewards([0.1, 0.2], "g", ["a", "b"])]
    for name in ("grpo", "rloo", "gigpo"):
        assert not np.concatenate(ADVANTAGES[name](equal)).any()


def test_leaving_one_out_subtracts_nothing_where_there_are_no_others():
    assert center(np.array([3.0, 1.0, 2.0]), np.array([0, 1, 1]), leave_one_out=True).tolist() == [3.0, -1.0, 1.0]


@pytest.mark.parametrize("name", ["returns", "rebn", "turn", "grpo", "rloo", "gigpo"])
def test_every_estimator_refuses_rewards_that_are_not_finite(name):
    with pytest.raises(BadValue, match="rewards must be finite"):
        ADVANTAGES[name]([EpisodeRewards([0.0, math.nan], "g", ["a", "b"])])
    assert ADVANTAGES[name]([]) == []


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1, max_size=8), st.floats(0, 1), st.floats(0, 1)
)
def test_gae_agrees_with_the_double_loop(pairs, gamma, gae_lambda):
    rewards, values = [r for r, _ in pairs], [v for _, v in pairs]
    after = [*values[1:], 0.25]
    errors = [r + gamma * n - v for r, n, v in zip(rewards, after, values, strict=True)]
    expected = returns_slowly(errors, gamma * gae_lambda)
    assert generalized_advantages(rewards, values, gamma, gae_lambda, 0.25).tolist() == pytest.approx(
        expected, abs=1e-6
    )


def test_gae_without_values_is_the_return():
    assert generalized_advantages([0.0, 0.0, 1.0], [0.0, 0.0, 0.0], 0.9, 1.0).tolist() == pytest.approx(
        [0.81, 0.9, 1.0]
    )


@pytest.mark.parametrize("values", [[0.0], [0.0, math.nan]])
def test_gae_needs_one_finite_value_per_turn(values):
    with pytest.raises(BadValue, match="one finite value per turn"):
        generalized_advantages([0.0, 1.0], values, 0.9, 0.95)


@pytest.mark.parametrize("states_K", [(), ["a"], ["a", "b", "c"]], ids=len)
def test_gigpo_needs_one_state_per_turn(states_K):
    with pytest.raises(BadValue, match=f"one state per turn, got {len(states_K)} for 2 turns"):
        ADVANTAGES["gigpo"]([EpisodeRewards([0.0, 1.0], group=0, states_K=states_K)])


def branch(rewards: list[float], start: int | None = None, group: int = 0) -> EpisodeRewards:
    return EpisodeRewards(rewards, group, start=start)


def test_branch_is_the_reward_plus_the_discounted_value_after_minus_the_value_before():
    played = [0.1, 0.2, 1.0]
    continuations = {0: [[0.5], [0.0, 0.3]], 1: [[0.1, 0.4], [0.1, 0.0, 0.8]], 2: [[0.1, 0.2, 0.0], [0.1, 0.2, 0.6]]}
    episodes = [branch(played), *(branch(r, start) for start, both in continuations.items() for r in both)]
    values = [sum(returns_slowly(r[start:], 0.9)[0] for r in both) / 2 for start, both in continuations.items()]
    expected = [played[k] + 0.9 * after - values[k] for k, after in enumerate([*values[1:], 0.0])]
    found = ADVANTAGES["branch"]([*episodes, branch([1.0], group=1)], gamma=0.9)
    assert found[0].tolist() == pytest.approx(expected)
    assert found[-1].tolist() == [1.0], "an episode without continuations has no baseline"


def test_a_continuation_is_compared_with_its_episode_and_the_other_continuations():
    episodes = [branch([0.0, 1.0]), branch([0.0, 0.5], 0), branch([0.2], 0), branch([0.0, 0.7], 1)]
    found = ADVANTAGES["branch"](episodes, gamma=1.0)
    assert found[1].tolist() == pytest.approx([0.5 - (1.0 + 0.2) / 2, 0.5 - 1.0])
    assert found[2].tolist() == pytest.approx([0.2 - (1.0 + 0.5) / 2])
    assert found[3].tolist() == pytest.approx([0.0, 0.7 - 1.0]), "nothing for the turn that it repeats"


def test_turns_after_the_last_state_with_continuations_are_compared_with_the_same_turn_of_these():
    found = ADVANTAGES["branch"]([branch([0.0, 0.0, 1.0]), branch([0.0, 0.5], 0), branch([0.0], 0)], gamma=1.0)
    assert found[0].tolist() == pytest.approx([1.0 - 0.25, 1.0 - 0.5, 1.0])


def test_a_state_in_which_the_episode_ended_has_the_value_0():
    found = ADVANTAGES["branch"]([branch([0.0]), branch([0.5], 0), branch([0.0], 1)], gamma=1.0)
    assert found[0].tolist() == pytest.approx([-0.5])


def test_the_scale_of_branching_advantages_ignores_repeated_turns():
    episodes = [branch([0.0, 1.0]), branch([0.0, 0.5], 0), branch([0.0, 0.7], 1)]
    plain, scaled = (ADVANTAGES["branch"](episodes, gamma=1.0, batch_scale=scale) for scale in ("none", "std"))
    scored = np.concatenate([plain[0], plain[1], plain[2][1:]])
    assert scaled[0].tolist() == pytest.approx((plain[0] / np.sqrt((scored**2).mean())).tolist())


def test_branch_needs_one_episode_per_group():
    with pytest.raises(BadValue, match=r"one episode per group.*got 0 .*group 0"):
        ADVANTAGES["branch"]([branch([0.0], 0)])
