"""check_rows(): gold answers score 1.0 and corrupted ones 0.0."""

from __future__ import annotations

import pytest

import gem
from gem.errors import BadValue
from gem.registry import ENV_REGISTRY, EnvSpec
from gem.testing import check_rows

FAMILIES = ["math:Arithmetic", "math:Algebra", "math:NumberTheory", "math:Geometry"]


def spec(env_id: str, rows: list[dict[str, str]], **kwargs: object) -> EnvSpec:
    return EnvSpec(
        id=env_id,
        entry_point="gem.envs.questions.qa_env:QaEnv",
        kwargs={"dataset": rows, **kwargs},
        oracle="gem.envs.questions.answer_format:AnswerOracle",
        oracle_sees="state",
    )


@pytest.fixture
def registered():
    """Registers specs for the duration of a test."""
    ids = []

    def add(one: EnvSpec) -> str:
        gem.register(one)
        ids.append(one.id)
        return one.id

    yield add
    for env_id in ids:
        del ENV_REGISTRY[env_id]


@pytest.mark.parametrize("env_id", ["logic:Rules", "qa:Facts"])
def test_gold_answers_of_shipped_datasets_score_one_and_wrong_ones_zero(env_id):
    result = check_rows(env_id, rows=100)
    assert (result.status, result.reproduction) == ("passed", ""), result


@pytest.mark.parametrize("env_id", FAMILIES)
def test_gold_answers_of_generated_math_score_one_and_wrong_ones_zero(env_id):
    pytest.importorskip("latex2sympy2_extended", reason="needs the extra [math]")
    assert check_rows(env_id, rows=60).status == "passed"


@pytest.mark.parametrize("env_id", ["vision:Geometry", "vision:Charts"])
def test_gold_answers_of_vision_tasks_score_one_and_wrong_ones_zero(env_id):
    pytest.importorskip("latex2sympy2_extended", reason="needs the extra [math]")
    pytest.importorskip("PIL", reason="needs the extra [vision]")
    assert check_rows(env_id, rows=30).status == "passed"


def test_reference_programs_pass_their_tests_and_corrupted_ones_do_not():
    assert check_rows("code:Warmup-v0").status == "passed"
    assert check_rows("code:Mini", rows=12).status == "passed"


def test_rows_are_spaced_over_the_dataset_and_capped_at_its_size(registered):
    done = []
    rows = [{"question": f"{n}?", "answer": f"word{n}"} for n in range(10)]
    env_id = registered(spec("test:Rows", rows))
    assert (
        check_rows(env_id, rows=3, progress=lambda *counts: done.append(counts)).detail
        == "3 of 10 rows, 3 distinct (100.0%)"
    )
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert check_rows(env_id, rows=99).detail == check_rows(env_id).detail == "all 10 rows, 10 distinct (100.0%)"
    with pytest.raises(BadValue, match="at least 1"):
        check_rows(env_id, rows=0)


def test_a_rejected_gold_answer_is_reported_with_a_program_that_reproduces_it(registered):
    rows = [{"question": "1?", "answer": "a"}, {"question": "2?", "answer": "</answer>"}]
    result = check_rows(registered(spec("test:Rows", rows)))
    assert result.status == "failed" and "row 1: the gold answer" in result.items[0]
    exec(compile(result.reproduction, "shown", "exec"), {"print": lambda *shown: None})


def test_a_grader_that_accepts_everything_is_reported(registered, monkeypatch):
    from gem.envs.questions import qa_env

    monkeypatch.setitem(
        qa_env.GRADERS, "exact", lambda answer, gold: gem.graders.Grade(reward=1.0, correct=True, reason="")
    )
    result = check_rows(registered(spec("test:Rows", [{"question": "1?", "answer": "a"}])))
    assert result.status == "failed" and "the wrong answer" in result.items[0]


def test_a_malformed_row_is_reported_with_file_and_row(registered, tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"question": "1?", "answer": "a"}\n{"question": "2?", "answer": null}\n')
    one = spec("test:Rows", [], dataset=None, dataset_name=str(path))
    result = check_rows(registered(one))
    assert result.status == "failed" and "row 1: the column 'answer'" in result.items[0]


def test_an_env_without_dataset_or_oracle_is_unchecked(registered):
    assert check_rows("game:GuessTheNumber-v0").status == "unchecked"
    one = EnvSpec("test:NoOracle", "gem.envs.questions.qa_env:QaEnv", {"dataset": [{"question": "1?", "answer": "a"}]})
    assert check_rows(registered(one)).status == "unchecked"


def test_repeated_questions_lower_the_share_of_distinct_rows(registered):
    rows = [{"question": f"{n % 3}?", "answer": f"word{n % 3}"} for n in range(12)]
    assert check_rows(registered(spec("test:Rows", rows))).detail == "all 12 rows, 3 distinct (25.0%)"


USABLE = ["7", "Monday", r"\frac{1}{2}", "[0, 1]", "{1, 2}", "2 hours and 30 minutes", r"x=2 \text{ or } x=3"]
USABLE += [
    "Ann, Bob, Carl, Dan, Eve, Fay, Gus, Hal, Ida, Jim",
    r"\begin{cases} 1 & \text{if } x<1 \\ 2 & \text{if } x<2 \\ 3 & \text{if } x<3 \\ 4 & \text{otherwise}\end{cases}",
    "The answer is: $5$",
    r"\text{all real numbers except 2 and 3}",
]
UNUSABLE = {
    "prose": "We add the two numbers. The result is then divided by the number of apples.",
    "sentence": "The function grows without any bound because its derivative is positive everywhere",
    "worked solution": "3 + 4 = 7\n#### 7",
    "list as text": "['7']",
    "numpy array as text": "['7' '8']",
    "dict as text": "{'value': 7}",
    "NaN as text": "nan",
    "NaN": float("nan"),
    "dict": {"value": 7},
    "nested list": [["7"]],
    "empty": " ",
    "missing": None,
    "unbalanced": r"\frac{1}{2",
    "unparsable": r"\frac{1}",
}


@pytest.mark.parametrize("module", ["questions.math_env:MathEnv", "questions.qa_env:QaEnv"])
def test_gold_answers_that_can_never_be_right_are_named_by_row(registered, module):
    pytest.importorskip("latex2sympy2_extended", reason="needs the extra [math]")
    faulty = dict(UNUSABLE)
    if module == "questions.qa_env:QaEnv":  # short answers are compared as words, so these can be right
        for name in ("prose", "sentence", "unbalanced", "unparsable"):
            del faulty[name]
        faulty["long prose"] = " ".join(f"word{chr(97 + n)}" for n in range(26))
    golds = [*USABLE, *faulty.values()]
    rows = [{"question": f"Question {n}?", "answer": gold} for n, gold in enumerate(golds)]
    one = EnvSpec(
        "test:Golds",
        f"gem.envs.{module}",
        {"dataset": rows, "question_key": "question"},
        oracle="gem.envs.questions.answer_format:AnswerOracle",
        oracle_sees="state",
    )
    result = check_rows(registered(one))
    assert result.status == "failed"
    assert [item.partition(":")[0] for item in result.items] == [
        f"rows, row {n}" for n in range(len(USABLE), len(rows))
    ]


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        ({"inputs": ["1", "1"], "outputs": ["2", "3"]}, "another output than test 0"),
        ({"inputs": ["1", "2"], "outputs": ["", "\n"]}, "output is empty"),
        ('[{"input": [1], "output": NaN, "fn_name": "f"}]', "expects NaN"),
        ({"inputs": ["1"], "outputs": []}, "lists of the same length"),
        ([], "no column"),
    ],
)
def test_tests_that_no_program_can_pass_are_named_without_an_oracle(registered, tests, message):
    rows = [{"problem": "Print it.", "tests": {"inputs": ["1", "1"], "outputs": ["2", "2 "]}}]
    one = EnvSpec(
        "test:Code", "gem.envs.questions.code_env:CodeEnv", {"dataset": [*rows, {"problem": "Print.", "tests": tests}]}
    )
    result = check_rows(registered(one))
    assert result.status == "failed"
    (item,) = result.items
    assert item.startswith("rows, row 1: ") and message in item


PAIR = {"problem": "Print two numbers with sum n.", "tests": {"inputs": ["7"], "outputs": ["1 6"]}}
CHECKER = (
    "def check(input, output, answer):\n    return sum(int(t) for t in output.split() if t.isdigit()) == int(input)"
)


def test_rows_with_checkers_are_answered_with_their_solutions(registered):
    def check(*rows):
        one = EnvSpec(f"test:Code{len(names)}", "gem.envs.questions.code_env:CodeEnv", {"dataset": rows})
        names.append(registered(one))
        return check_rows(one)

    names = []
    good = {**PAIR, "checker": CHECKER, "solution": "print(int(input()) - 1, 1)"}
    assert check(good).status == "passed"
    assert check({**PAIR, "checker": CHECKER}).status == "unchecked"
    faulty = [
        ({**good, "solution": "print(1, 1)"}, "the gold answer"),
        ({**good, "checker": "import sys\nsys.argv"}, "accepts the output '' of every test"),
        ({**good, "checker": CHECKER.replace("== int", "!= int")}, "rejects the expected output of test 0"),
        ({**good, "checker": "def check(i, o, a):\n    return o.split()[0] == '1'"}, "IndexError"),
        (
            {**good, "checker": f"{CHECKER} or 1 // (output != '9 9\\n') > 1", "solution": "print(9, 9)"},
            "cannot be graded",
        ),
        ({**good, "checker": "int main() {}"}, "must be Python source"),
    ]
    result = check(good, *(row for row, _ in faulty))
    assert (result.status, len(result.items)) == ("failed", len(faulty))
    for number, (item, (_, message)) in enumerate(zip(result.items, faulty, strict=True), 1):
        assert item.startswith(f"rows, row {number}: ") and message in item
    exec(compile(result.reproduction, "shown", "exec"), {"print": lambda *shown: None})


def test_an_environment_with_usable_golds_but_no_oracle_is_unchecked(registered):
    one = EnvSpec("test:NoOracle", "gem.envs.questions.qa_env:QaEnv", {"dataset": [{"question": "1?", "answer": "a"}]})
    result = check_rows(registered(one))
    assert (
        result.status == "unchecked" and "all 1 rows, 1 distinct (100.0%); no gold answer was played" in result.detail
    )
