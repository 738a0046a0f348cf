"""Statistics of episodes by environment id. The vectors that collect them are tested in test_base.py."""

import pytest

pytest.importorskip("numpy")

import numpy as np

from gem.core import StopReason
from gem.vector import EnvStats
from gem.vector.stats import SlotStats


def test_slots_with_the_same_id_share_their_statistics():
    stats = SlotStats(["a", "b", "a"])
    for _ in range(2):
        stats.step(range(3), np.array([1.0, 2.0, 4.0]))
    stats.end(0, {"stop_reason": StopReason.SOLVED})
    stats.end(2, {"stop_reason": StopReason.LOST})
    assert stats.by_id == {
        "a": EnvStats(slots=2, episodes=2, turns=4, reward=10.0, solved=1),
        "b": EnvStats(slots=1),
    }


def test_a_failed_episode_adds_neither_turns_nor_reward():
    stats = SlotStats(["a"])
    stats.step([0], np.array([1.0]))
    stats.end(0, {"failure": "timed out", "stop_reason": StopReason.FAILED})
    stats.step([0], np.array([0.5]))
    stats.end(0, {})
    assert stats.by_id["a"] == EnvStats(slots=1, episodes=1, failed=1, turns=1, reward=0.5)


def test_the_running_episodes_continue_from_a_saved_state():
    stats, restored = SlotStats(["a"]), SlotStats(["a"])
    stats.step([0], np.array([1.0]))
    restored.set_state(stats.get_state())
    restored.end(0, {})
    assert (restored.by_id["a"].turns, restored.by_id["a"].reward) == (1, 1.0)
