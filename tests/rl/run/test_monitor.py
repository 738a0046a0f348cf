"""Warnings about a training run."""

import pytest

from gem.rl.config import TrainConfig
from gem.rl.run.monitor import IN_A_ROW, WARNINGS, TrainingMonitor

HEALTHY = {
    "success": 0.5,
    "reward": 0.5,
    "reward_std": 0.5,
    "cut_replies": 0.0,
    "groups_equal": 10,
    "sampler_gap": 1e-6,
    "entropy": 0.5,
    "clipped": 0.1,
    "kl_to_start": 0.5,
}
ILL = {
    "cut_replies": {"cut_replies": 0.06},
    "equal_rewards": {"reward_std": 0.0, "success": 0.0, "reward": 0.0},
    "equal_groups": {"groups_equal": 50},
    "sampler_gap": {"sampler_gap": 0.03},
    "low_entropy": {"entropy": 0.02},
    "far_from_start": {"kl_to_start": 6.4},
    "clipped": {"clipped": 0.31},
}
CONFIG = TrainConfig(advantage="grpo", group_size=4)


def test_a_healthy_run_has_no_warnings():
    monitor = TrainingMonitor(CONFIG)
    assert not any(monitor.check(HEALTHY) for _ in range(10))


@pytest.mark.parametrize("name", WARNINGS)
def test_a_condition_that_holds_for_some_updates_in_a_row_is_a_warning(name):
    monitor, ill = TrainingMonitor(CONFIG), {**HEALTHY, **ILL[name]}
    monitor.check(HEALTHY)
    assert [monitor.check(ill) for _ in range(IN_A_ROW)] == [*[[]] * (IN_A_ROW - 1), [name]]
    assert monitor.check(HEALTHY) == [] == monitor.check(ill)
    assert WARNINGS[name].text.format_map(ill)


@pytest.mark.parametrize("name", ["equal_rewards", "equal_groups", "low_entropy"])
def test_a_skilled_policy_may_have_equal_rewards_and_a_low_entropy(name):
    monitor = TrainingMonitor(CONFIG)
    monitor.check(HEALTHY)
    assert not any(monitor.check({**HEALTHY, **ILL[name], "success": 0.95}) for _ in range(10))


def test_groups_that_were_replaced_count_among_those_that_were_played():
    monitor = TrainingMonitor(TrainConfig(advantage="grpo", group_size=4, refill_groups=True))
    assert not any(monitor.check({**HEALTHY, "groups_equal": 150}) for _ in range(10))
    assert [monitor.check({**HEALTHY, "groups_equal": 200}) for _ in range(IN_A_ROW)][-1] == ["equal_groups"]
