"""Limits and results, which need no backend. The backends are tested in their own files."""

import pytest

from gem.errors import BadValue
from gem.sandbox import Limits, Result, Status


@pytest.mark.parametrize("name", ["wall_s", "cpu_s", "memory_bytes", "processes", "disk_bytes", "output_bytes"])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan"), True, "10"])
def test_a_limit_that_is_no_finite_number_above_zero_is_refused(name, value):
    with pytest.raises(BadValue, match=f"limit {name} must be a finite number above 0"):
        Limits(**{name: value})


def test_no_limit_but_the_cpu_time_may_be_none():
    with pytest.raises(BadValue, match="limit wall_s"):
        Limits(wall_s=None)
    assert Limits(wall_s=4).cpu_seconds == 5
    assert Limits(wall_s=4, cpu_s=2).cpu_seconds == 2


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (Result(status=Status.OK, exit_code=0), ""),
        (Result(status=Status.ERROR, exit_code=3), ""),
        (Result(status=Status.ERROR, exit_code=3, state_lost=True), "[the interpreter exited with code 3]"),
        (Result(status=Status.TIMEOUT), "[timed out after 2.5 s]"),
        (Result(status=Status.MEMORY), "[killed: memory limit exceeded]"),
        (Result(status=Status.OUTPUT_LIMIT), "[killed: output limit exceeded]"),
        (Result(status=Status.KILLED, signal=11), "[killed by signal 11]"),
    ],
)
def test_the_message_says_why_a_program_was_killed(result, message):
    assert result.stopped(Limits(wall_s=2.5)) == message
    assert result.ok is (result.status is Status.OK)
