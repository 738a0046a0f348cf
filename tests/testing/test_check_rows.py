"""check_rows(): gold answers score 1.0 and corrupted ones 0.0."""

from __future__ import annotations

import pytest

import gem
from gem.datasets import load_rows
from gem.envs.questions.answer_format import AnswerFormat
from gem.errors import BadValue
from gem.registry import ENV_REGISTRY, EnvSpec
from gem.testing import CheckReport, check_rows

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
    pytest.importorskip("sympy", reason="needs the extra [math]")
    assert check_rows(env_id, rows=60).status == "passed"


@pytest.mark.parametrize("env_id", ["vision:Geometry", "vision:Charts"])
def test_gold_answers_of_vision_tasks_score_one_and_wrong_ones_zero(env_id):
    pytest.importorskip("sympy", reason="needs the extra [math]")
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


def test_a_spec_need_not_be_registered():
    rows = [{"question": "1?", "answer": "a"}, {"question": "2?", "answer": "</answer>"}]
    assert check_rows(spec("test:Unregistered", rows[:1])).status == "passed"
    result = check_rows(spec("test:Unregistered", rows))
    assert (result.status, len(result.items), result.reproduction) == ("failed", 1, "")


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
    assert result.status == "failed" and "data.jsonl, line 2 (row 1): the column 'answer'" in result.items[0]


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
    pytest.importorskip("sympy", reason="needs the extra [math]")
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
        ([], "the column 'tests' must not be empty"),
        ({"inputs": ["1"], "outputs": ["2"], "fn_name": "not a name"}, "not the name of a function"),
        ("[" * 100_000, "the tests in the column 'tests' cannot be read"),
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
    def spec_of(*rows):
        return EnvSpec("test:Code", "gem.envs.questions.code_env:CodeEnv", {"dataset": rows})

    good = {**PAIR, "checker": CHECKER, "solution": "print(int(input()) - 1, 1)"}
    other = {**good, "tests": {"inputs": ["7", "7"], "outputs": ["1 6", "2 5"]}}
    assert check_rows(spec_of(good, other)).status == "passed"
    assert check_rows(spec_of({**PAIR, "checker": CHECKER})).status == "unchecked"
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
        ({**good, "tests": {**PAIR["tests"], "fn_name": "not a name"}}, "not the name of a function"),
    ]
    result = check_rows(registered(spec_of(good, *(row for row, _ in faulty))))
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


QUESTION = "Which is a prime number?\n(A) 4\n(B) 6\n(C) 7\n(D) 9"


@pytest.mark.parametrize("module", ["math_env:MathEnv", "qa_env:QaEnv"])
def test_a_letter_that_is_not_among_the_choices_is_reported(registered, module):
    pytest.importorskip("sympy", reason="needs the extra [math]")
    lined = QUESTION.replace("(", "").replace(")", ".")
    rows = [
        (QUESTION, "C"),
        (QUESTION, "(E)"),
        (lined, r"\text{(F)}"),
        (lined, "D"),
        ("Name point E of (A) to (C).", "E"),
    ]
    one = EnvSpec(
        "test:Choices",
        f"gem.envs.questions.{module}",
        {"dataset": [{"q": text, "a": gold} for text, gold in rows], "question_key": "q", "answer_key": "a"},
    )
    result = check_rows(registered(one))
    assert [item.partition(":")[0] for item in result.items] == ["rows, row 1", "rows, row 2"]
    assert "column 'a'" in result.items[0] and "'(E)'" in result.items[0] and "A to D" in result.items[0]


def test_images_that_cannot_be_read_are_reported_with_their_column(registered):
    pytest.importorskip("PIL", reason="needs the extra [vision]")
    images = [{"images": [3]}, {"images": "/no/such/file.png"}, {"images": [b"no image"]}, {}]
    rows = [{"problem": "How many?", "answer": "7", **columns} for columns in images]
    one = EnvSpec("test:Images", "gem.envs.questions.math_visual_env:MathVisualEnv", {"dataset": rows})
    result = check_rows(registered(one))
    assert len(result.items) == 4 and all("'image" in item for item in result.items)
    assert "got 3" in result.items[0] and "no column 'images'; the row has 'problem', 'answer'" in result.items[3]


@pytest.mark.parametrize("error", [gem.errors.GraderError("timed out"), ZeroDivisionError("by\nzero")])
def test_the_rows_after_one_that_raises_are_checked(registered, monkeypatch, error):
    from gem.envs.questions import qa_env

    def fail_on_b(answer, gold):
        if "b" in gold:
            raise error
        return exact_match(answer, gold)

    exact_match = qa_env.GRADERS["exact"]
    monkeypatch.setitem(qa_env.GRADERS, "exact", fail_on_b)
    rows = [{"question": f"{n}?", "answer": gold} for n, gold in enumerate(["a", "b", "c", None])]
    result = check_rows(registered(spec("test:Rows", rows)))
    assert [item.partition(":")[0] for item in result.items] == ["rows, row 1", "rows, row 3"]
    assert str(error).splitlines()[0] in result.items[0] and "\n" not in result.items[0]


def test_the_report_counts_the_faulty_rows_that_it_does_not_show(registered):
    rows = [{"question": f"{n}?", "answer": None if n else "a"} for n in range(81)]
    result = check_rows(registered(spec("test:Rows", rows)), rows=72)
    report = CheckReport("test:Rows", [result], range(1), 1, 0.0)
    assert len(result.items) == 71 and "71 faulty rows" in result.detail and "--rows all" in result.detail
    assert report.to_text().count("column 'answer'") == 50 and "21 more" in report.to_text()


class OnlyRows(gem.Env):
    """An environment over rows that is no DatasetTask. It opens the rows that it is asked."""

    def __init__(self, dataset):
        self.dataset = dataset

    def ask_only(self, numbers, *, shuffle=True):
        self.numbers = numbers

    def reset(self, seed=None):
        super().reset(seed)
        if self.dataset[self.numbers[0]]["wrong"]:
            raise BadValue("the column 'patch' is empty")
        return "Solve it.", {}

    def step(self, action):
        raise NotImplementedError

    def sample_random_action(self):
        return ""


def test_rows_without_a_gold_answer_are_opened(registered):
    rows = load_rows([{"wrong": False}, {"wrong": True}, {"wrong": False}])
    result = check_rows(registered(EnvSpec("test:Only", OnlyRows, {"dataset": rows})))
    assert result.items == ("rows, row 1: the column 'patch' is empty",)
    assert check_rows(registered(EnvSpec("test:Good", OnlyRows, {"dataset": rows[:1]}))).status == "unchecked"


class Drawn(gem.Env):
    """Questions without rows, whose gold answers come in this order."""

    golds = ("7", None, "{", "", "8")
    format = AnswerFormat("boxed")
    answer: str | None = None

    def reset(self, seed=None):
        super().reset(seed)
        self.answer = self.golds[self._episode]
        return "What?", {}

    def step(self, action):
        return gem.Step("Done.", float(self.format.read(action) == self.answer), terminated=True)

    def sample_random_action(self):
        return ""


def test_gold_answers_of_generated_questions_that_cannot_be_read_are_named(registered):
    oracle = "gem.envs.questions.answer_format:AnswerOracle"
    result = check_rows(registered(EnvSpec("test:Drawn", Drawn, oracle=oracle, oracle_sees="state")), rows=5)
    assert [item.partition(" of seed 0: ")[0] for item in result.items] == ["question 1", "question 2", "question 3"]
    assert "no gold answer" in result.items[0] and "'\\\\boxed{{}' scores 0" in result.items[1]
    shown = []
    exec(compile(result.reproduction, "shown", "exec"), {"print": shown.append})
    assert shown == [None]
