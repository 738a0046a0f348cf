"""Judging by tests, over a sandbox that gives prepared results: what counts, in which order, and when it stops."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gem.errors import BadValue, InfraError, SandboxError
from gem.graders import Grade
from gem.graders.code import CodeGrader
from gem.graders.code_tests import read_tests
from gem.sandbox import Case, Limits, Report, Result, Sandbox, Status

OK = Status.OK


class Prepared(Sandbox):
    """Runs no program: what comes of a case is looked up, and tests end in an order of its own.

    results: stdin or arguments → the result. shuffled: a seed for the order in which tests end, None for their own.
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
    """Tests that print their input."""
    return read_tests({"inputs": [str(i) for i in range(count)], "outputs": [str(i) for i in range(count)]})


def right(given: str) -> Result:
    return printed(given)


def wrong_at(*wrong: str) -> Callable[[str], Result]:
    return lambda given: printed("no" if given in wrong else given)


# What passes


def test_a_program_that_passes_every_test_earns_one():
    verdict = CodeGrader().grade("x", numbered(3), Prepared(right))
    assert verdict == Grade(
        reward=1.0, correct=True, reason="3 tests: 3 passed.", details={"tests": ["passed", "passed", "passed"]}
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
def test_a_run_that_goes_wrong_fails_its_test_though_it_printed_the_answer(result):
    verdict = CodeGrader().grade("x", numbered(1), Prepared(lambda _: result))
    assert (verdict.reward, verdict.correct, verdict.details) == (0.0, False, {"tests": [str(result.status)]})


def test_a_call_is_judged_by_its_value_and_not_by_what_it_prints():
    suite = read_tests({"fn_name": "f", "inputs": [[1]], "outputs": [3]})
    said = Result(status=OK, exit_code=0, stdout="3", value="4")
    quiet = Result(status=OK, exit_code=0, stdout="4", value="3")
    nothing = Result(status=OK, exit_code=0, stdout="3", value=None)
    grades = [CodeGrader().grade("x", suite, Prepared(lambda _, r=r: r)).correct for r in (said, quiet, nothing)]
    assert grades == [False, True, False]


def test_any_accepted_value_passes():
    suite = read_tests({"fn_name": "f", "inputs": [[1], [2]], "outputs": [[3], [3]]})
    for value, correct in (("3", True), ("[3]", True), ("[[3]]", False)):
        sandbox = Prepared(lambda _, value=value: Result(status=OK, value=value))
        assert CodeGrader().grade("x", suite, sandbox).correct is correct


# What enters the sandbox


def test_the_sandbox_is_given_inputs_and_nothing_that_is_expected():
    suite = read_tests({"inputs": ["in-1", "in-2"], "outputs": ["SECRET-1", "SECRET-2"]})
    sandbox = Prepared(right)
    CodeGrader().grade("print(1)", suite, sandbox)
    assert "in-1" in repr(sandbox.asked) and "SECRET" not in repr(sandbox.asked)


def test_the_program_and_the_limits_are_passed_on():
    limits = Limits(wall_s=3, memory_bytes=2**28)
    sandbox = Prepared(right)
    CodeGrader(limits=limits).grade("print('é')", numbered(2), sandbox)
    [asked] = sandbox.asked
    assert asked["program"] == "print('é')".encode() and asked["function"] is None
    assert (asked["limits"].wall_s, asked["limits"].memory_bytes) == (3, 2**28)


def test_the_limit_on_output_leaves_room_for_a_right_answer():
    sandbox = Prepared(right)
    suite = read_tests({"inputs": ["1"], "outputs": ["é" * 500_000]})
    CodeGrader().grade("x", suite, sandbox)
    assert sandbox.asked[0]["limits"].output_bytes > 1_000_000
    CodeGrader().grade("x", numbered(1), sandbox)
    assert sandbox.asked[1]["limits"] == Limits()


def test_a_program_of_half_characters_is_the_programs_mistake():
    sandbox = Prepared(right)
    CodeGrader().grade("\ud800", numbered(1), sandbox)
    assert isinstance(sandbox.asked[0]["program"], bytes)


# Order and end


def test_tests_are_run_in_an_order_drawn_from_the_seed_and_told_in_their_own():
    runs = {}
    for seed in (1, 1, 2):
        sandbox = Prepared(wrong_at("4"))
        verdict = CodeGrader(reward="fraction").grade("x", numbered(20), sandbox, seed=seed)
        assert runs.setdefault(seed, sandbox.ran) == sandbox.ran
        assert [i for i, status in enumerate(verdict.details["tests"]) if status == "wrong"] == [4]
    assert runs[1] != runs[2] and sorted(runs[1]) == sorted(runs[2]) and runs[1] != sorted(runs[1], key=int)


def test_nothing_is_run_after_the_first_failure_where_all_have_to_pass():
    sandbox = Prepared(wrong_at("7"))
    verdict = CodeGrader().grade("x", numbered(20), sandbox, seed=3)
    assert sandbox.ran[-1] == "7" and len(sandbox.ran) < 20
    statuses = verdict.details["tests"]
    assert statuses[7] == "wrong" and statuses.count("passed") == len(sandbox.ran) - 1
    assert statuses.count("not_run") == 20 - len(sandbox.ran)


@pytest.mark.parametrize("grader", [CodeGrader(reward="fraction"), CodeGrader(early_exit=False)])
def test_every_test_is_run_where_shares_count_or_it_is_asked_for(grader):
    sandbox = Prepared(wrong_at("2", "7"))
    verdict = grader.grade("x", numbered(10), sandbox)
    assert len(sandbox.ran) == 10
    assert verdict.reward == (0.8 if grader.reward == "fraction" else 0.0)
    assert verdict.details["tests"].count("wrong") == 2


def test_a_share_may_end_early_when_asked_to():
    verdict = CodeGrader(reward="fraction", early_exit=True).grade("x", numbered(10), Prepared(wrong_at("2", "7")))
    statuses = verdict.details["tests"]
    assert statuses.count("wrong") == 1 and verdict.reward == statuses.count("passed") / 10


def test_three_time_outs_end_it_in_any_case():
    sandbox = Prepared(lambda _: ended(Status.TIMEOUT, signal=9))
    verdict = CodeGrader(reward="fraction").grade("x", numbered(50), sandbox)
    statuses = verdict.details["tests"]
    assert (statuses.count("timeout"), statuses.count("not_run"), verdict.reward) == (3, 47, 0.0)


@pytest.mark.parametrize("early_exit", [True, False])
def test_the_order_in_which_results_come_in_changes_no_verdict(early_exit):
    def results(given):
        return ended(Status.TIMEOUT, signal=9) if int(given) % 9 == 8 else wrong_at("4", "13")(given)

    def verdict(shuffled):
        grader = CodeGrader(reward="fraction", early_exit=early_exit)
        return grader.grade("x", numbered(40), Prepared(results, shuffled), seed=5)

    assert {repr(verdict(shuffled)) for shuffled in (None, *range(30))} == {repr(verdict(None))}


def test_at_most_so_many_tests_are_run_those_with_the_longest_inputs():
    data = {"inputs": ["1", "22", "333", "4444"], "outputs": ["1", "22", "333", "4444"]}
    sandbox = Prepared(right)
    verdict = CodeGrader(max_tests=2).grade("x", read_tests(data), sandbox)
    assert sorted(sandbox.ran) == ["333", "4444"] and verdict.details["tests"] == ["passed", "passed"]


def test_a_hundred_tests_are_run_where_nothing_is_said():
    sandbox = Prepared(right)
    CodeGrader().grade("x", numbered(120), sandbox)
    assert len(sandbox.ran) == 100


# Failures


def test_an_outage_is_an_infra_error_and_no_verdict():
    def broken(given):
        raise SandboxError("gone")

    with pytest.raises(InfraError, match="gone"):
        CodeGrader().grade("x", numbered(3), Prepared(broken))


def test_a_sandbox_that_leaves_tests_out_has_failed():
    class Forgetful(Prepared):
        def run_tests(self, program, cases, **_):
            return [printed(case.stdin) for case in cases[:-1]] + [None]

    with pytest.raises(SandboxError, match="2 of 3 tests"):
        CodeGrader().grade("x", numbered(3), Forgetful(right))


def test_a_sandbox_need_not_say_how_tests_went_while_they_run():
    class Late(Prepared):
        def run_tests(self, program, cases, **_):
            return [printed(case.stdin) for case in cases]

    assert CodeGrader().grade("x", numbered(3), Late(right)).correct


@pytest.mark.parametrize(
    ("kwargs", "says"), [({"reward": "some"}, "'all' or 'fraction'"), ({"max_tests": 0}, "at least 1")]
)
def test_rules_that_judge_nothing_are_refused(kwargs, says):
    with pytest.raises(BadValue, match=says):
        CodeGrader(**kwargs)


@pytest.mark.parametrize(("reward", "correct"), [(1.5, True), (-0.1, False), (1.0, False), (0.5, True)])
def test_a_verdict_that_contradicts_itself_is_refused(reward, correct):
    with pytest.raises(BadValue, match="reward must be"):
        Grade(reward=reward, correct=correct, reason="")
