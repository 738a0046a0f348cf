"""CodeGrader with a fake sandbox: which tests count, in which order they run, and when the run stops."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gem.errors import BadValue, GraderError, InfraError, SandboxError
from gem.graders import Grade
from gem.graders.code import CodeGrader
from gem.graders.code.checker import FILES
from gem.graders.code.tests import read_tests
from gem.sandbox import Case, Limits, Report, Result, Sandbox, Status

OK = Status.OK


class FakeSandbox(Sandbox):
    """Returns prepared results, in an order drawn from a seed.

    Args:
        results: stdin or arguments → result.
        shuffled: seed of the order in which tests end; None keeps their order.
    """

    def __init__(self, results: Callable[[str], Result], shuffled: int | None = None) -> None:
        self.limits, self.results, self.shuffled = Limits(), results, shuffled
        self.asked: list[dict[str, Any]] = []
        self.ran: list[str] = []

    def run_tests(self, program, cases: Sequence[Case], *, function=None, limits=None, stop=None):
        self.asked.append({"program": program, "cases": list(cases), "function": function, "limits": limits})
        order = list(range(len(cases)))
        if self.shuffled is not None:
            random.Random(self.shuffled).shuffle(order)
        found: list[Result | None] = [None] * len(cases)
        for index in order:
            given = cases[index].stdin if function is None else cases[index].arguments
            self.ran.append(given)
            found[index] = result = self.results(given)
            if stop is not None and stop(index, result):
                break
        return found

    def run(self, program, **_):
        raise NotImplementedError

    exec = session = run

    def report(self) -> Report:
        return Report("prepared", "", {})

    def close(self) -> None:
        pass


def printed(text: str) -> Result:
    return Result(status=OK, exit_code=0, stdout=text)


def ended(status: Status, **fields: Any) -> Result:
    return Result(status=status, **fields)


def numbered(count: int) -> Any:
    """Tests whose expected output is their input."""
    return read_tests({"inputs": [str(i) for i in range(count)], "outputs": [str(i) for i in range(count)]})


def right(given: str) -> Result:
    return printed(given)


def wrong_at(*wrong: str) -> Callable[[str], Result]:
    return lambda given: printed("no" if given in wrong else given)


# Which tests pass


def test_a_program_that_passes_every_test_gets_reward_one():
    verdict = CodeGrader().grade("x", numbered(3), FakeSandbox(right))
    assert verdict == Grade(
        reward=1.0,
        correct=True,
        reason="3 tests: 3 passed.",
        details={
            "tests": ["passed", "passed", "passed"],
            "checks": [{"name": f"test {k}", "passed": True, "detail": "passed"} for k in (1, 2, 3)],
        },
    )


@pytest.mark.parametrize(
    "result",
    [
        ended(Status.ERROR, exit_code=1, stdout="0"),
        ended(Status.TIMEOUT, signal=9, stdout="0"),
        ended(Status.MEMORY, exit_code=1, stdout="0"),
        ended(Status.OUTPUT_LIMIT, signal=9, stdout="0"),
        ended(Status.KILLED, signal=11, stdout="0"),
    ],
)
def test_a_failed_run_fails_its_test_even_with_the_correct_output(result):
    verdict = CodeGrader().grade("x", numbered(1), FakeSandbox(lambda _: result))
    assert (verdict.reward, verdict.correct, verdict.details["tests"]) == (0.0, False, [str(result.status)])


def test_a_call_is_graded_by_its_return_value_not_by_its_output():
    suite = read_tests({"fn_name": "f", "inputs": [[1]], "outputs": [3]})
    printed_only = Result(status=OK, exit_code=0, stdout="3", value="4")
    quiet = Result(status=OK, exit_code=0, stdout="4", value="3")
    nothing = Result(status=OK, exit_code=0, stdout="3", value=None)
    grades = [
        CodeGrader().grade("x", suite, FakeSandbox(lambda _, r=r: r)).correct for r in (printed_only, quiet, nothing)
    ]
    assert grades == [False, True, False]


def test_live_code_bench_accepts_errors_up_to_1e_5_because_its_values_have_five_decimals():
    test = {"input": "7", "output": "2.33333", "testtype": "functional", "metadata": {"func_name": "f"}}
    for value, correct in (("2.3333333333333335", True), ("2.33339", False)):
        sandbox = FakeSandbox(lambda _, value=value: Result(status=OK, value=value))
        assert CodeGrader().grade("x", read_tests([test]), sandbox).correct is correct


def test_any_accepted_value_passes():
    suite = read_tests({"fn_name": "f", "inputs": [[1], [2]], "outputs": [[3], [3]]})
    for value, correct in (("3", True), ("[3]", True), ("[[3]]", False)):
        sandbox = FakeSandbox(lambda _, value=value: Result(status=OK, value=value))
        assert CodeGrader().grade("x", suite, sandbox).correct is correct


# Sandbox inputs


def test_expected_outputs_do_not_enter_the_sandbox():
    suite = read_tests({"inputs": ["in-1", "in-2"], "outputs": ["SECRET-1", "SECRET-2"]})
    sandbox = FakeSandbox(right)
    CodeGrader().grade("print(1)", suite, sandbox)
    assert "in-1" in repr(sandbox.asked) and "SECRET" not in repr(sandbox.asked)


def test_the_program_and_the_limits_reach_the_sandbox():
    limits = Limits(wall_s=3, memory_bytes=2**28)
    sandbox = FakeSandbox(right)
    CodeGrader(limits=limits).grade("print('é')", numbered(2), sandbox)
    [asked] = sandbox.asked
    assert asked["program"] == "print('é')".encode() and asked["function"] is None
    assert (asked["limits"].cpu_s, asked["limits"].memory_bytes) == (3, 2**28)


@pytest.mark.parametrize(
    ("limits", "cpu_s", "wall_s"),
    [
        (Limits(wall_s=3), 3, 19),
        (Limits(wall_s=3, cpu_s=2), 2, 13),
        (Limits(wall_s=100, cpu_s=2), 2, 100),
    ],
)
def test_the_time_limit_is_cpu_time_and_elapsed_time_is_a_multiple(limits, cpu_s, wall_s):
    sandbox = FakeSandbox(right)
    CodeGrader(limits=limits).grade("x", numbered(1), sandbox)
    assert (sandbox.asked[0]["limits"].cpu_s, sandbox.asked[0]["limits"].wall_s) == (cpu_s, wall_s)


def test_the_output_limit_is_raised_for_long_correct_outputs():
    sandbox = FakeSandbox(right)
    suite = read_tests({"inputs": ["1"], "outputs": ["é" * 500_000]})
    CodeGrader().grade("x", suite, sandbox)
    assert sandbox.asked[0]["limits"].output_bytes > 1_000_000
    CodeGrader().grade("x", numbered(1), sandbox)
    assert sandbox.asked[1]["limits"].output_bytes == Limits().output_bytes


def test_the_size_of_a_return_value_is_limited_by_the_longest_accepted_value():
    sandbox = FakeSandbox(lambda _: Result(status=OK, value="[1]"))
    suite = read_tests({"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], ["x" * 1_000_000]]})
    CodeGrader(early_exit=False).grade("x", suite, sandbox)
    limits = {case.arguments: case.value_bytes for case in sandbox.asked[0]["cases"]}
    assert limits["[1]"] == 65_536 and 2_000_000 < limits["[2]"] < 20_000_000


def test_a_program_with_lone_surrogates_reaches_the_sandbox_as_bytes():
    sandbox = FakeSandbox(right)
    CodeGrader().grade("\ud800", numbered(1), sandbox)
    assert isinstance(sandbox.asked[0]["program"], bytes)


# Order and early exit


def test_tests_run_in_an_order_drawn_from_the_seed_and_are_reported_in_their_own_order():
    runs = {}
    for seed in (1, 1, 2):
        sandbox = FakeSandbox(wrong_at("4"))
        verdict = CodeGrader(reward="fraction").grade("x", numbered(20), sandbox, seed=seed)
        assert runs.setdefault(seed, sandbox.ran) == sandbox.ran
        assert [i for i, status in enumerate(verdict.details["tests"]) if status == "wrong"] == [4]
    assert runs[1] != runs[2] and sorted(runs[1]) == sorted(runs[2]) and runs[1] != sorted(runs[1], key=int)


def test_the_run_stops_at_the_first_failure_if_all_tests_have_to_pass():
    sandbox = FakeSandbox(wrong_at("7"))
    verdict = CodeGrader().grade("x", numbered(20), sandbox, seed=3)
    assert sandbox.ran[-1] == "7" and len(sandbox.ran) < 20
    statuses = verdict.details["tests"]
    assert statuses[7] == "wrong" and statuses.count("passed") == len(sandbox.ran) - 1
    assert statuses.count("not_run") == 20 - len(sandbox.ran)


@pytest.mark.parametrize("grader", [CodeGrader(reward="fraction"), CodeGrader(early_exit=False)])
def test_every_test_runs_for_fractional_rewards_or_without_early_exit(grader):
    sandbox = FakeSandbox(wrong_at("2", "7"))
    verdict = grader.grade("x", numbered(10), sandbox)
    assert len(sandbox.ran) == 10
    assert verdict.reward == (0.8 if grader.reward == "fraction" else 0.0)
    assert verdict.details["tests"].count("wrong") == 2


def test_fractional_rewards_can_use_early_exit():
    verdict = CodeGrader(reward="fraction", early_exit=True).grade("x", numbered(10), FakeSandbox(wrong_at("2", "7")))
    statuses = verdict.details["tests"]
    assert statuses.count("wrong") == 1 and verdict.reward == statuses.count("passed") / 10


def test_three_timeouts_always_stop_the_run():
    sandbox = FakeSandbox(lambda _: ended(Status.TIMEOUT, signal=9))
    verdict = CodeGrader(reward="fraction").grade("x", numbered(50), sandbox)
    statuses = verdict.details["tests"]
    assert (statuses.count("timeout"), statuses.count("not_run"), verdict.reward) == (3, 47, 0.0)


@pytest.mark.parametrize("early_exit", [True, False])
def test_the_order_in_which_results_arrive_does_not_change_the_grade(early_exit):
    def results(given):
        return ended(Status.TIMEOUT, signal=9) if int(given) % 9 == 8 else wrong_at("4", "13")(given)

    def verdict(shuffled):
        grader = CodeGrader(reward="fraction", early_exit=early_exit)
        return grader.grade("x", numbered(40), FakeSandbox(results, shuffled), seed=5)

    assert {repr(verdict(shuffled)) for shuffled in (None, *range(30))} == {repr(verdict(None))}


def test_max_tests_selects_the_tests_with_the_longest_inputs():
    data = {"inputs": ["1", "22", "333", "4444"], "outputs": ["1", "22", "333", "4444"]}
    sandbox = FakeSandbox(right)
    verdict = CodeGrader(max_tests=2).grade("x", read_tests(data), sandbox)
    assert sorted(sandbox.ran) == ["333", "4444"] and verdict.details["tests"] == ["passed", "passed"]


def test_a_hundred_tests_are_run_by_default():
    sandbox = FakeSandbox(right)
    CodeGrader().grade("x", numbered(120), sandbox)
    assert len(sandbox.ran) == 100


# Checkers

FUNCTION = "def check(input, output, answer): return output != 'no'"


class CheckingSandbox(FakeSandbox):
    """A FakeSandbox that also runs checkers: with prepared results, given the content of output.txt."""

    def __init__(self, results, checks: Callable[[str], Result], shuffled: int | None = None) -> None:
        super().__init__(results, shuffled)
        self.checks, self.files, self.checker_limits = checks, [], None

    def run(self, program, *, files, limits, **_):
        self.files.append(dict(files))
        self.checker_limits = limits
        return self.checks(files["output.txt"])


def checked(**tests: Any) -> Any:
    return read_tests({"inputs": ["in"], "outputs": ["answer"], "checker": FUNCTION, **tests})


def code(number: int) -> Callable[[str], Result]:
    return lambda _: ended(Status.ERROR if number else OK, exit_code=number, stderr="said")


def test_a_checker_decides_and_gets_the_input_the_output_and_the_answer_in_a_run_of_its_own():
    for exit_code, statuses in ((0, ["passed"]), (1, ["wrong"]), (2, ["wrong"]), (4, ["wrong"]), (8, ["wrong"])):
        sandbox = CheckingSandbox(lambda _: printed("out"), code(exit_code))
        assert CodeGrader().grade("x", checked(), sandbox).details["tests"] == statuses
        files = {"checker.py": FUNCTION, "input.txt": "in", "output.txt": "out", "answer.txt": "answer"}
        assert sandbox.files == [files] and "answer" not in repr(sandbox.asked)


def test_points_are_not_the_full_mark():
    assert not CodeGrader().grade("x", checked(), CheckingSandbox(right, code(7))).correct


@pytest.mark.parametrize(
    "result",
    [
        ended(Status.ERROR, exit_code=3),
        ended(Status.ERROR, exit_code=9),
        ended(Status.TIMEOUT, signal=9),
        ended(Status.MEMORY, exit_code=1),
        ended(Status.KILLED, signal=11),
        ended(Status.OUTPUT_LIMIT, signal=9, exit_code=0),
    ],
)
def test_a_failure_of_the_checker_raises_instead_of_grading(result):
    with pytest.raises(GraderError, match=r"the checker failed .* on the output 'in'"):
        CodeGrader().grade("x", checked(), CheckingSandbox(right, lambda _: result))


def test_a_checker_sees_values_as_json():
    suite = checked(fn_name="f", inputs=[[1, "a"]], outputs=[{"b": [2]}])
    sandbox = CheckingSandbox(lambda _: Result(status=OK, value="[3]"), code(0))
    assert CodeGrader().grade("x", suite, sandbox).correct
    assert [json.loads(sandbox.files[0][name]) for name in FILES] == [[1, "a"], [3], {"b": [2]}]


@pytest.mark.parametrize("value", [None, "", "[1"])
def test_what_is_not_a_value_does_not_reach_a_checker(value):
    sandbox = CheckingSandbox(lambda _: Result(status=OK, value=value), code(0))
    assert not CodeGrader().grade("x", checked(fn_name="f", inputs=[[1]], outputs=[1]), sandbox).correct
    assert sandbox.files == []


def test_a_failed_run_or_a_part_of_an_output_does_not_reach_a_checker():
    for result, status in (
        (ended(Status.ERROR, exit_code=1, stdout="out"), "error"),
        (Result(status=OK, exit_code=0, stdout="a [...] z", truncated=True), "output_limit"),
    ):
        sandbox = CheckingSandbox(lambda _, result=result: result, code(0))
        assert CodeGrader().grade("x", checked(), sandbox).details["tests"] == [status] and sandbox.files == []


def test_a_checker_has_more_time_than_a_program_with_a_short_limit():
    sandbox = CheckingSandbox(right, code(0))
    CodeGrader(limits=Limits(wall_s=0.5, memory_bytes=2**28)).grade("x", checked(), sandbox)
    assert (sandbox.checker_limits.cpu_s, sandbox.checker_limits.wall_s) == (10, 60)
    assert sandbox.checker_limits.memory_bytes == 2**28


def test_a_return_value_for_a_checker_may_be_longer_than_the_expected_one():
    sandbox = CheckingSandbox(lambda _: Result(status=OK, value="1"), code(0))
    CodeGrader().grade("x", checked(fn_name="f", inputs=[[1]], outputs=[1]), sandbox)
    assert sandbox.asked[0]["cases"][0].value_bytes == 1 << 20


def test_tests_after_the_one_that_stopped_the_run_are_not_checked():
    def checks(output):
        return ended(Status.ERROR, exit_code=3) if output == "5" else code(output == "4")(output)

    numbers, order = [str(i) for i in range(8)], FakeSandbox(right)
    suite = checked(inputs=numbers, outputs=numbers)
    CodeGrader(early_exit=False).grade("x", numbered(8), order, seed=1)
    assert order.ran.index("4") < order.ran.index("5")
    for shuffled in range(20):
        verdict = CodeGrader().grade("x", suite, CheckingSandbox(right, checks, shuffled), seed=1)
        assert verdict.details["tests"][4:6] == ["wrong", "not_run"]


@pytest.mark.parametrize(
    ("accepts", "error"),
    [
        (lambda output: output == "answer", None),
        (lambda output: False, "rejects the expected output of test 0"),
        (lambda output: True, "accepts the output '' of every test"),
        (lambda output: output != "", "accepts the output 'no such answer' of every test"),
    ],
)
def test_a_checker_is_checked_with_expected_and_wrong_outputs(accepts, error):
    sandbox = CheckingSandbox(right, lambda output: code(not accepts(output))(output))
    found = CodeGrader().checker_error(checked(inputs=["1", "2"], outputs=["answer", "answer"]), sandbox)
    assert found is None if error is None else error in found


def test_a_checker_that_crashes_on_a_wrong_output_is_reported():
    sandbox = CheckingSandbox(right, lambda output: code(0 if output == "answer" else 3)(output))
    assert "exit code 3" in CodeGrader().checker_error(checked(), sandbox)


def test_a_checker_of_tests_without_expected_outputs_is_only_checked_with_words():
    sandbox = CheckingSandbox(right, code(1))
    assert CodeGrader().checker_error(checked(outputs=[""]), sandbox) is None
    assert [files["output.txt"] for files in sandbox.files] == ["no such answer"]


# Failures


def test_a_sandbox_outage_raises_instead_of_grading():
    def broken(given):
        raise SandboxError("gone")

    with pytest.raises(InfraError, match="gone"):
        CodeGrader().grade("x", numbered(3), FakeSandbox(broken))


def test_missing_results_raise_sandbox_error():
    class Forgetful(FakeSandbox):
        def run_tests(self, program, cases, **_):
            return [printed(case.stdin) for case in cases[:-1]] + [None]

    with pytest.raises(SandboxError, match="2 of 3 tests"):
        CodeGrader().grade("x", numbered(3), Forgetful(right))


def test_a_sandbox_may_ignore_the_stop_callback():
    class Late(FakeSandbox):
        def run_tests(self, program, cases, **_):
            return [printed(case.stdin) for case in cases]

    assert CodeGrader().grade("x", numbered(3), Late(right)).correct


@pytest.mark.parametrize(
    ("kwargs", "says"), [({"reward": "some"}, "'all' or 'fraction'"), ({"max_tests": 0}, "at least 1")]
)
def test_invalid_arguments_raise_bad_value(kwargs, says):
    with pytest.raises(BadValue, match=says):
        CodeGrader(**kwargs)


@pytest.mark.parametrize(("reward", "correct"), [(1.5, True), (-0.1, False), (1.0, False), (0.5, True)])
def test_an_inconsistent_grade_raises_bad_value(reward, correct):
    with pytest.raises(BadValue, match="reward must be"):
        Grade(reward=reward, correct=correct, reason="")
