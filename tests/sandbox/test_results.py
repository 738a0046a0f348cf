"""Limits and results, which need no backend. The backends are tested in their own files."""

import sys

import pytest

from gem.errors import BadValue, SandboxError
from gem.sandbox import Case, Limits, Result, Status, make_sandbox
from gem.sandbox.results import MOST

NO_LIMITS = [
    0,
    -1,
    -0.0,
    float("inf"),
    float("-inf"),
    float("nan"),
    True,
    "10",
    b"10",
    [],
    1j,
    10**400,
    -(10**5000),
    1 << 64,
]


@pytest.mark.parametrize("name", ["wall_s", "cpu_s", "memory_bytes", "processes", "disk_bytes", "output_bytes"])
@pytest.mark.parametrize("value", NO_LIMITS, ids=lambda value: f"{type(value).__name__}")
def test_a_limit_that_is_no_number_in_its_range_is_refused_with_its_name_value_and_range(name, value):
    with pytest.raises(BadValue, match=rf"limit {name} must be a (whole )?number above 0 and at most [\d,]+, got ."):
        Limits(**{name: value})


@pytest.mark.parametrize("value", [1.5, 2.0, 1e300])
def test_bytes_and_processes_are_whole_numbers(value):
    with pytest.raises(BadValue, match="limit memory_bytes must be a whole number"):
        Limits(memory_bytes=value)
    assert Limits(wall_s=1.5, cpu_s=2.0).cpu_seconds == 2.0


def test_the_message_about_a_limit_is_short_whatever_the_value_is():
    for value in ("x" * 1_000_000, 10**100_000, "\ud800"):
        with pytest.raises(BadValue) as caught:
            Limits(wall_s=value)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("value", ["yes", 1, None, float("nan")])
def test_whether_there_is_a_network_is_true_or_false(value):
    with pytest.raises(BadValue, match="limit network must be True or False"):
        Limits(network=value)


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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the levels are those of Linux")
@pytest.mark.parametrize("level", ["ns", "lsm"])
def test_programs_and_tests_run_with_the_largest_limits(level):
    limits = Limits(**MOST)
    try:
        with make_sandbox("zygote", level=level, limits=limits) as sandbox:
            assert sandbox.run("print(1)").stdout == "1\n"
            assert [
                result.value for result in sandbox.run_tests("def f(): return 2", [Case(arguments="[]")], function="f")
            ] == ["2"]
            with sandbox.session() as session:
                assert session.run("3", wall_s=MOST["wall_s"]).stdout == "3\n"
    except SandboxError as e:
        pytest.skip(f"level {level} is not available here: {e}") if "not available" in str(e) else pytest.fail(str(e))


@pytest.mark.parametrize("wall_s", [0, -1, float("nan"), float("inf"), "1", 1e300])
def test_the_time_limit_of_a_cell_is_checked_like_that_of_a_run_and_the_session_stays(wall_s):
    with make_sandbox("subprocess") as sandbox, sandbox.session() as session:
        session.run("x = 1")
        with pytest.raises(BadValue, match="limit wall_s must be a number above 0 and at most 1,000,000"):
            session.run("1", wall_s=wall_s)
        assert session.run("x").stdout == "1\n"
