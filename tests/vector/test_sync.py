"""The plain loop: what is its own. What it shares with every backend is in test_base.py and test_slots.py."""

from __future__ import annotations

import threading

import pytest
from fixture_envs import Counting, Echo, Faulty

import gem
from gem.errors import BadValue
from gem.vector import SyncVectorEnv, VectorEnv


def test_its_environments_can_be_looked_at():
    env = SyncVectorEnv([Counting, Echo])
    assert [type(e) for e in env.envs] == [Counting, Echo]
    assert isinstance(env, VectorEnv)


def test_an_environment_that_was_built_anew_is_the_one_that_is_seen():
    env = SyncVectorEnv([lambda: Faulty({(0, 1): "raise"})], on_failure="restart")
    env.reset(seed=0)
    before = env.envs[0]
    env.step(["a"])
    assert env.envs[0] is not before


def test_it_takes_no_timeout_and_says_who_does():
    with pytest.raises(BadValue, match=r"takes no timeout \(got 1\.0\); backend 'thread', 'async' or 'process' can"):
        SyncVectorEnv([Counting], timeout=1.0)


def test_every_slot_is_stepped_in_the_thread_that_calls_in_the_order_given():
    seen: list[tuple[int, int]] = []

    class Watched(Echo):
        def step(self, action):
            seen.append((action, threading.get_ident()))
            return super().step(action)

    env = SyncVectorEnv([Watched] * 3)
    env.reset()
    env.step({2: 2, 0: 0, 1: 1})
    assert seen == [(slot, threading.get_ident()) for slot in (2, 0, 1)]


def test_what_was_sent_is_stepped_when_it_is_received():
    env = SyncVectorEnv([lambda: Counting(5)] * 3)
    env.reset()
    env.send(["a"] * 3)
    assert [e.turn for e in env.envs] == [0, 0, 0]
    assert env.recv(min_envs=1).ids_B == [0, 1, 2]
    assert [e.turn for e in env.envs] == [1, 1, 1]


def test_a_vector_needs_a_slot():
    with pytest.raises(BadValue, match="at least one environment"):
        SyncVectorEnv([])


def test_the_vector_of_make_vec_is_this_one_by_default():
    assert type(gem.make_vec("game:GuessTheNumber-v0", num_envs=2)) is SyncVectorEnv
