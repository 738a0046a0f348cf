"""Backend "sync". Behavior shared by all backends is tested in test_base.py and test_slots.py."""

from __future__ import annotations

import threading

import pytest
from fixture_envs import Counting, Echo, Faulty

import gem
from gem.errors import BadValue
from gem.vector import VectorEnv


def test_sync_exposes_its_environments():
    env = VectorEnv.of([Counting, Echo])
    assert [type(e) for e in env.envs] == [Counting, Echo]
    assert isinstance(env, VectorEnv)


def test_sync_exposes_rebuilt_environments():
    env = VectorEnv.of([lambda: Faulty({(0, 1): "raise"})], on_failure="restart")
    env.reset(seed=0)
    before = env.envs[0]
    env.step(["a"])
    assert env.envs[0] is not before


def test_sync_refuses_a_timeout_and_names_backends_that_accept_one():
    with pytest.raises(BadValue, match=r"no timeout \(got 1\.0\).*'thread', 'async' or 'process'"):
        VectorEnv.of([Counting], timeout=1.0)


def test_slots_are_stepped_in_the_callers_thread_in_the_given_order():
    seen: list[tuple[int, int]] = []

    class Watched(Echo):
        def step(self, action):
            seen.append((action, threading.get_ident()))
            return super().step(action)

    env = VectorEnv.of([Watched] * 3)
    env.reset()
    env.step({2: 2, 0: 0, 1: 1})
    assert seen == [(slot, threading.get_ident()) for slot in (2, 0, 1)]


def test_sent_steps_run_when_they_are_received():
    env = VectorEnv.of([lambda: Counting(5)] * 3)
    env.reset()
    env.send(["a"] * 3)
    assert [e.turn for e in env.envs] == [0, 0, 0]
    assert env.recv(min_envs=1).ids_B == [0, 1, 2]
    assert [e.turn for e in env.envs] == [1, 1, 1]


def test_a_vector_needs_a_slot():
    with pytest.raises(BadValue, match="at least one environment"):
        VectorEnv.of([])


def test_make_vec_uses_sync_by_default():
    assert gem.make_vec("game:GuessTheNumber-v0", num_envs=2).backend == "sync"
