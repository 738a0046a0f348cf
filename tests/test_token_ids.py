"""TokenIds: sequences that share storage and behave like lists."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem.token_ids import TokenIds

IDS = st.lists(st.integers(0, 200_000), max_size=6)


@given(st.lists(st.tuples(st.integers(0, 9), IDS), max_size=8))
def test_extensions_in_any_order_are_those_of_lists(extensions):
    made, slow = [TokenIds([7])], [[7]]
    for index, more in extensions:  # several extensions of the same ids do not affect each other
        at = index % len(made)
        made.append(made[at].extended(more))
        slow.append(slow[at] + more)
    assert made == slow
    assert [ids.tolist() for ids in pickle.loads(pickle.dumps(made))] == slow
    for ids, plain in zip(made, slow, strict=True):
        assert (len(ids), list(ids), ids[1:3], ids[::-1], ids[-1]) == (
            len(plain),
            plain,
            plain[1:3],
            plain[::-1],
            plain[-1],
        )
        for other, other_plain in zip(made, slow, strict=True):
            assert ids.starts_with(other) == (plain[: len(other_plain)] == other_plain)
            assert (ids == other) == (plain == other_plain)
            assert ids.starts_with(other, [1]) == (plain[: len(other_plain) + 1] == [*other_plain, 1])


def test_ids_act_like_a_list():
    ids = TokenIds([1, 2])
    assert ids == [1, 2] == ids and ids + ids == [1, 2, 1, 2] and ids != [1]
    assert not TokenIds() and copy.deepcopy(ids) == ids and repr(ids) == "TokenIds([1, 2])"
    with pytest.raises(IndexError):
        ids[2]
    assert ids.continued([1, 2, 3]) == [1, 2, 3] and ids.continued([1, 3]) == [1, 3] and ids == [1, 2]


def test_extensions_share_storage():
    first = TokenIds(range(100_000))
    pickled = [first]
    for _ in range(20):
        pickled.append(pickled[-1].extended([1, 2, 3]))
    assert len(pickle.dumps(pickled)) < 1.1 * len(pickle.dumps([pickled[-1]]))
