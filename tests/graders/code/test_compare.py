import json
import math
import time
import tracemalloc
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem.graders.code.compare import MIN_VALUE_BYTES, same_output, same_value, value_bytes

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("3\n", "3"),
        ("3", "3\n\n"),
        ("1 2 3", " 1   2\t3  \n"),
        ("a\r\nb\r\n", "a\nb"),
        ("a\n\n\nb\n", "a\nb\n"),
        ("", "\n  \n"),
        ("Yes", "Yes"),
    ],
)
def test_blank_lines_and_the_amount_of_whitespace_are_ignored(printed, expected):
    assert same_output(printed, expected) and same_output(expected, printed)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("1 2", "1\n2"),
        ("1\n2", "1 2"),
        ("12", "1 2"),
        ("1 2 3", "1 2"),
        ("1", "1\n2"),
        ("yes", "Yes"),
        ("a, b", "a,b"),
        ("", "0"),
        ("-1", "1"),
        ("answer: 3", "3"),
    ],
)
def test_different_tokens_or_lines_do_not_match(printed, expected):
    assert not same_output(printed, expected)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("3.14159265", "3.141593"),
        ("3", "3.0"),
        ("0.3333333333", "0.333333"),
        ("-0", "0.0"),
        ("1000000.5", "1.0000005e6"),
        ("1234567890.4", "1234567890.5"),
        (".5", "0.50"),
        ("1e-9", "0.0"),
        ("100", "1e2"),
        ("1." + "3" * 30, "1.33333333"),
    ],
)
def test_expected_numbers_with_a_decimal_point_have_a_tolerance_of_a_millionth(printed, expected):
    assert same_output(printed, expected)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("3.0", "3"),
        ("3e0", "3"),
        ("007", "7"),
        ("+7", "7"),
        ("0.33", "0.333333"),
        ("1.00001", "1.0"),
        ("1_0.0", "10.0"),
        ("٣.0", "3.0"),
        ("nan", "0.0"),
        ("inf", "1e400"),
        ("1e99999999999", "1.5"),
        ("nan", "NaN"),
        ("1.0.0", "1.00.0"),
        ("e", "1.0"),
        ("1234567890", "1234567891"),
    ],
)
def test_other_tokens_have_to_be_equal(printed, expected):
    assert not same_output(printed, expected)


def test_the_tolerance_can_be_set():
    assert same_output("1.1", "1.0", tolerance=0.2) and not same_output("1.1", "1.0", tolerance=0.05)
    assert same_value("1.1", 1.0, tolerance=0.2) and not same_value("1.1", 1.0, tolerance=0.05)


def test_very_long_numbers_have_to_be_equal():
    digits = "1" * 1_000_000
    assert same_output(f"0.{digits}", f"0.{digits}") and not same_output(f"0.{digits}2", f"0.{digits}")


@pytest.mark.slow
@given(PLAIN)
def test_a_value_matches_itself(value):
    assert same_value(json.dumps(value), value)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [("3", 3.0), ("3.0000001", 3.0), ("[1, [2.0]]", [1, [2.0]]), ('{"a": 1}', {"a": 1}), ("null", None)],
)
def test_a_value_within_the_tolerance_matches(returned, expected):
    assert same_value(returned, expected)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("3.0", 3),
        ("true", 1),
        ("1", True),
        ("true", 1.0),
        ("0", None),
        ('"3"', 3),
        ("3", "3"),
        ("[1, 2]", [1]),
        ("[1]", [1, 2]),
        ("[1]", 1),
        ("[[1, 2]]", [[2, 1]]),
        ('{"a": 1}', {"a": 1, "b": 2}),
        ('{"a": 1}', {"b": 1}),
        ('"a "', "a"),
        ("NaN", 1.0),
        ("Infinity", 1.0),
        ("1.0", math.inf),
        ("1" + "0" * 400, 1.0),
    ],
)
def test_values_are_compared_by_type(returned, expected):
    assert not same_value(returned, expected)


@pytest.mark.parametrize("expected", [Decimal("7" * 6000), int(Decimal("7" * 6000))], ids=["Decimal", "int"])
def test_integers_of_any_length_are_compared_exactly(expected):
    digits = "7" * 6000
    assert same_value(f"[{digits}]", [expected]) and not same_value(f"[{digits[:-1]}8]", [expected])
    assert not same_value(f'["{digits}"]', [expected]) and not same_value(f"[{digits}.0]", [expected])
    assert value_bytes([expected]) == MIN_VALUE_BYTES


def test_a_very_long_integer_is_compared_in_linear_time():
    digits = "7" * 2_000_000
    cpu_s, _ = cost(lambda: same_value(digits, Decimal(f"{digits[:-1]}8")))
    assert cpu_s < 1  # the conversion to an int takes minutes


def test_nan_and_infinities_match_only_themselves():
    assert same_value("NaN", math.nan) and same_value("Infinity", math.inf) and not same_value("-Infinity", math.inf)


@given(PLAIN)
def test_a_value_that_matches_is_not_longer_than_the_limit(value):
    assert len(json.dumps(value, indent=2)) <= value_bytes(value)


def test_the_limit_does_not_show_the_length_of_a_short_expected_value():
    assert len({value_bytes(value) for value in (0, "x" * 1000, list(range(1000)))}) == 1
    assert value_bytes([0.5] * 10_000) >= len(json.dumps([0.49999999999999994] * 10_000))


LARGE = 15 << 20


@pytest.mark.parametrize(
    "returned",
    ["[" + "0," * (LARGE // 2) + "0]", "[" * LARGE, '"' + "x" * LARGE + '"', "[" + "[]," * (LARGE // 3) + "[]]"],
    ids=["numbers", "brackets", "text", "lists"],
)
@pytest.mark.parametrize("expected", [1, "x", [0], {"a": 1}], ids=repr)
def test_a_large_value_is_rejected_without_decoding_it(returned, expected):
    cpu_s, peak_bytes = cost(lambda: same_value(returned, expected))
    assert cpu_s < 0.05 and peak_bytes < 1 << 20 and not same_value(returned, expected)


@pytest.mark.parametrize("line", ["1 ", "1\n", " ", "\n", "1 2.5\n3\n", "9", "1.", "1e", "\x85"], ids=repr)
def test_the_cost_of_comparing_outputs_grows_at_most_linearly(line):
    def compare(size):
        printed = line * (size // len(line))
        return cost(lambda: same_output(printed, "1 2.5\n3"))

    (short_s, _), (long_s, peak_bytes) = compare(100_000), compare(1_000_000)
    assert long_s < max(0.05, 30 * short_s) and peak_bytes < 100_000_000


def cost(function):
    """Return the CPU seconds and the peak of additional memory (bytes) of a call."""
    start = time.process_time()
    function()
    seconds = time.process_time() - start
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak


@pytest.mark.parametrize("returned", [None, "", "print", "[" * 100_000, "9" * 100_000, "\ud800"])
def test_invalid_json_matches_nothing(returned):
    assert not any(same_value(returned, expected) for expected in (None, 0, "", [], [[]]))
