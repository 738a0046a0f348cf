import numpy as np
import pytest

from gem._internal.counts import check_count
from gem.errors import BadValue


def test_integers_in_the_range_are_accepted():
    for value in (1, 9, np.int64(3)):
        check_count("rows", value, 1, 9)
    check_count("rows", None, optional=True)
    check_count("retries", 0, 0)


@pytest.mark.parametrize("value", [0, 10, True, 2.0, np.float64(2), np.bool_(True), "3", None, [1]], ids=repr)
def test_other_values_are_named(value):
    with pytest.raises(BadValue) as caught:
        check_count("rows", value, 1, 9, where=" on this board")
    assert str(caught.value) == f"rows must be an integer from 1 to 9 on this board, got {value!r}"


def test_an_optional_count_says_so():
    with pytest.raises(BadValue, match=r"^limit must be an integer of at least 1 or None, got 0$"):
        check_count("limit", 0, optional=True)
