"""Seed derivation and independent random streams."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem.errors import BadValue
from gem.seeding import check_seed, derive, fresh_seed, stream

PARTS = st.lists(st.integers() | st.text(), min_size=1, max_size=4)


@given(PARTS)
def test_the_same_parts_give_the_same_seed_of_63_bits(parts):
    assert derive(*parts) == derive(*parts)
    assert 0 <= derive(*parts) < 2**63


@given(PARTS, PARTS)
def test_different_parts_give_different_seeds(a, b):
    assert (derive(*a) == derive(*b)) == (a == b)


def test_order_number_and_type_of_the_parts_matter():
    ways = [derive(1, 23), derive(12, 3), derive(23, 1), derive(123), derive("1", "23"), derive("1", 23)]
    assert len(set(ways)) == len(ways)


def test_no_text_can_imitate_the_separator():
    assert derive("a", "b") != derive("a\x1fsb")


def test_derived_seeds_are_stable():
    # A golden value: a change would change every recorded episode.
    assert derive(0, "world", 1) == 2_001_535_273_457_425_921


def test_a_seed_does_not_depend_on_the_hash_seed_of_the_process():
    code = "from gem.seeding import derive; print(derive(0, 'world', 1))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "123", "PYTHONPATH": ":".join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(run.stdout) == derive(0, "world", 1)


def test_streams_of_one_seed_are_independent_of_each_other():
    alone = [stream(7, 0, "world").random(), stream(7, 0, "action").random()]
    world, action = stream(7, 0, "world"), stream(7, 0, "action")
    assert [world.random(), action.random()] == alone
    assert alone[0] != alone[1]


def test_the_global_random_stream_is_not_used():
    random.seed(5)
    expected = random.Random(5).random()
    stream(derive(1), fresh_seed()).random()
    assert random.random() == expected


def test_fresh_seeds_differ():
    assert len({fresh_seed() for _ in range(50)}) == 50


@pytest.mark.parametrize("seed", [0, 5, 2**80, np.int64(5), np.uint8(3)])
def test_any_nonnegative_integer_is_a_seed(seed):
    assert check_seed(seed) == int(seed)
    assert type(check_seed(seed)) is int


@pytest.mark.parametrize("seed", [-1, 1.0, "1", [1], np.float64(1), np.int64(-3)])
def test_other_seeds_are_refused(seed):
    with pytest.raises(BadValue, match="seed must be an integer >= 0") as e:
        check_seed(seed)
    assert str(e.value).endswith(f"got {seed}") or str(e.value).endswith(f"got {seed!r}")
