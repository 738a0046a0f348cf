"""Running checks, and the report of their results."""

import pytest

from gem.testing import CheckReport
from gem.testing.check import CheckFailed, CheckResult, Unchecked, check, require, run_checks


@check("is-positive", "The number is positive.")
def positive(number):
    require(number > 0, f"{number} is not positive")


@check("is-even", "The number is even.", needs=("is-positive",))
def even(number):
    if number > 100:
        raise Unchecked("too large")
    require(number % 2 == 0, f"{number} is odd")
    return f"half is {number // 2}"


@check("has-even-half", "Half of the number is even.", needs=("is-even",))
def even_half(number):
    raise CheckFailed("it is odd", ["number = 6", "assert number // 2 % 2 == 0"])


def report(number):
    results = run_checks([positive, even, even_half], number)
    return CheckReport(str(number), results, seeds=[0], episodes=1, seconds=0.25)


def statuses(number):
    return [result.status for result in report(number).results]


def test_a_check_is_left_out_when_one_that_it_needs_fails():
    assert statuses(-1) == ["failed", "unchecked", "unchecked"]
    assert report(-1)["has-even-half"].detail == "needs 'is-positive' to pass first"


def test_only_essential_unchecked_checks_block_others():
    assert statuses(102) == ["passed", "unchecked", "failed"]


def test_an_exception_of_the_target_fails_the_check():
    failed = run_checks([positive], "three")[0]
    assert failed.status == "failed" and failed.detail.startswith("raised TypeError: ")


def test_the_report_counts_the_results_and_finds_them_by_name():
    found = report(6)
    assert not found.ok and [result.name for result in found.failed] == ["has-even-half"]
    assert found["is-even"].detail == "half is 3"
    assert found.summary() == "FAILED  6  2 passed, 1 FAILED, 0 unchecked, 0.2 s"
    with pytest.raises(KeyError, match="is-odd"):
        found["is-odd"]


def test_the_text_contains_the_reproduction_of_a_failure():
    text = report(6).to_text(only_failed=True)
    assert "assert number // 2 % 2 == 0" in text and "is-positive" not in text


def test_a_target_that_could_hardly_be_checked_is_not_called_ok_and_the_reason_is_shown():
    results = [CheckResult("built", "It can be built.", "passed")]
    results += [CheckResult("played", "It can be played.", "unchecked", "the server is down")]
    results += [CheckResult("fair", "It is fair.", "unchecked", "needs 'played' to pass first")]
    found = CheckReport("102", results, seeds=[], episodes=0, seconds=0.0)
    assert found.ok and found.summary().startswith("unchecked  102")
    text = found.to_text(only_failed=True)
    assert "the server is down" in text and "It is fair" not in text and "It can be built" not in text


def test_a_target_with_only_unchecked_results_is_not_called_ok():
    found = CheckReport("102", run_checks([even], 102), seeds=[], episodes=0, seconds=0.0)
    assert found.ok and found.summary().startswith("unchecked  102")
