"""The code environment: prompts, answer extraction, grading, and the grades of the built-in solutions."""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
import zlib
from collections import Counter

import pytest

import gem
from gem.core import StopReason
from gem.envs.questions.code_env import CodeEnv, fenced, program_in
from gem.envs.questions.code_solutions import solutions
from gem.errors import BadValue, GraderError, InfraError, SandboxError, UnknownArgument
from gem.graders.code.tests import read_tests
from gem.policies import oracle
from gem.sandbox import Limits, get_sandbox

WARMUP = "gem:code/warmup.jsonl"
ADD = {"problem": "Add two integers.", "tests": {"inputs": ["1 2\n", "30 4\n"], "outputs": ["3\n", "34\n"]}}
ADDS = "print(sum(map(int, input().split())))"
TWICE = {"problem": "Double a number.", "tests": {"fn_name": "twice", "inputs": [[1], [2.5]], "outputs": [2, 5.0]}}

MAY_SKIP = os.environ.get("GEM_ATTACK_MAY_SKIP") == "1"  # same switch as in tests/sandbox
ROWS = {row["id"]: idx for idx, row in enumerate(CodeEnv(WARMUP).dataset)}
SOLUTIONS = {f"{s.task}: {s.comment}": s for s in solutions("warmup")}


def answered(row, program, **kwargs):
    env = CodeEnv(dataset=[row], **{"timeout": 20.0, **kwargs})
    env.reset(seed=0)
    return env.step(fenced(program))


@pytest.fixture(params=["ns", pytest.param("lsm", marks=pytest.mark.exhaustive)])
def level(request):
    """A zygote sandbox at this level. If the level is unavailable, the test fails unless GEM_ATTACK_MAY_SKIP is 1."""
    if not sys.platform.startswith("linux"):
        pytest.skip("isolation levels exist on Linux only")
    try:
        return get_sandbox("zygote", level=request.param)
    except SandboxError as e:
        if MAY_SKIP:
            pytest.skip(f"level {request.param} is unavailable here: {e}")
        raise


# Prompts


def test_the_prompt_shows_the_task_and_how_to_answer():
    prompt, info = CodeEnv(dataset=[ADD], timeout=2.5).reset(seed=0)
    assert prompt.startswith("Add two integers.\n\n") and info == {"idx": 0}
    for part in ("Python 3 program", "standard input", "standard output", "2.5 seconds", "```python\n"):
        assert part in prompt


def test_the_prompt_names_the_function_and_shows_the_code_to_start_from():
    row = {**TWICE, "starter_code": "class Solution:\n    def twice(self, x):\n        pass\n"}
    prompt, _ = CodeEnv(dataset=[row]).reset(seed=0)
    assert "function `twice`" in prompt and fenced(row["starter_code"]) in prompt


def test_expected_outputs_do_not_appear_in_the_prompt_or_the_state():
    row = {"problem": "?", "tests": {"inputs": ["in-1"], "outputs": ["SECRET"]}}
    env = CodeEnv(dataset=[row])
    assert "SECRET" not in repr(env.reset(seed=0)) and "SECRET" not in json.dumps(env.get_state())


# Answer extraction


@pytest.mark.parametrize(
    ("answer", "program"),
    [
        ("```python\na\n```", "a\n"),
        ("```\na\n```", "a\n"),
        ("```py\na\n```", "a\n"),
        ("```Python3\na\n```", "a\n"),
        ("first\n```python\na\n```\nno, better:\n```python\nb\n```\nas asked", "b\n"),
        ("```python\na\n```\nit prints\n```text\n3\n```", "a\n"),
        ("~~~python\na\n~~~", "a\n"),
        ("<think>\n```python\na\n```\n</think>\n```python\nb\n```", "b\n"),
        ("```python\na\n```\n<think>or\n```python\nb\n```\n", "a\n"),
    ],
)
def test_the_last_block_that_may_be_python_is_the_program(answer, program):
    assert program_in(answer) == program


@pytest.mark.parametrize(
    "answer",
    ["", "print(1)", "```python\nprint(1)", "```python\n```", "```python\n \n\n```", "```cpp\nint main\n```", "`a`"],
)
def test_an_answer_without_a_program_is_penalized_and_ends_the_episode(answer):
    env = CodeEnv(dataset=[ADD])
    env.reset(seed=0)
    step = env.step(answer)
    assert (step.reward, step.terminated, step.truncated) == (-0.1, True, False)
    assert step.info.pop("explanation") == step.observation
    assert step.info == {"idx": 0, "correct": False, "invalid": "no_answer", "stop_reason": StopReason.FORMAT}
    assert "```python" in step.observation


def test_an_empty_last_block_is_no_program():
    assert program_in("```python\na\n```\n```python\n\n```") is None


def test_a_tag_of_thinking_in_a_string_of_the_program_does_not_hide_it():
    program = "print(input().split('</think>')[-1])\n"
    assert program_in(fenced(program)) == program
    assert program_in(f"<think>{fenced('draft')}</think>{chr(10)}{fenced(program)}") == program
    assert program_in(f"<think>{fenced('draft')}</think> no") is None


# Grading


def test_a_correct_program_solves_the_task(level):
    step = answered(ADD, ADDS, sandbox_type=level)
    assert (step.reward, step.terminated, step.truncated) == (1.0, True, False)
    assert step.info.items() >= {"correct": True, "tests": ["passed", "passed"], "stop_reason": "solved"}.items()
    assert step.observation == step.info["explanation"] == "2 tests: 2 passed."


def test_a_wrong_program_loses_it(level):
    step = answered(ADD, "print(3)", sandbox_type=level, early_exit=False)
    assert (step.reward, step.terminated) == (0.0, True)
    assert step.info.items() >= {"correct": False, "tests": ["passed", "wrong"], "stop_reason": "lost"}.items()
    assert step.info["checks"] == [
        {"name": "test 1", "passed": True, "detail": "passed"},
        {"name": "test 2", "passed": False, "detail": "wrong"},
    ]


def test_the_reward_can_be_the_fraction_of_tests_passed(level):
    step = answered(ADD, "print(3)", sandbox_type=level, reward="fraction")
    assert (step.reward, step.info["stop_reason"]) == (0.5, StopReason.LOST)


def test_functions_are_called(level):
    assert answered(TWICE, "def twice(x): return 2 * x", sandbox_type=level).reward == 1.0
    assert answered(TWICE, "def twice(x): return 2.0 * x", sandbox_type=level).reward == 0.0  # 2 is expected, not 2.0
    in_a_class = "class Solution:\n    def twice(self, x):\n        return x + x"
    assert answered(TWICE, in_a_class, sandbox_type=level).reward == 1.0


@pytest.mark.parametrize("program", ["def (", "import nothing_of_this_name", "\x00", "def thrice(x): return 3 * x"])
def test_a_program_that_cannot_run_fails_its_tests(level, program):
    for row in (ADD, TWICE):
        assert answered(row, program, sandbox_type=level).info["correct"] is False


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("while True: pass", "timeout"),
        ("while True: print('x' * 10**6)", "output_limit"),
        ("print(*input().split(), file=open('/etc/hosts', 'a'))", "error"),
        ("raise ValueError(input())", "error"),
        ("import os; os.kill(os.getpid(), 11)", "killed"),
    ],
)
def test_how_a_test_went_is_told(level, program, status):
    timeout = 0.5 if status == "timeout" else 20.0
    step = answered(ADD, program, sandbox_type=level, timeout=timeout, memory_bytes=2**28)
    assert Counter(step.info["tests"]) == {status: 1, "not_run": 1}


def test_a_program_that_exceeds_its_memory_limit_fails(level):
    greedy = "kept = [bytes(2**20) for _ in range(2**12)]\nprint(sum(map(int, input().split())))"
    step = answered(ADD, greedy, sandbox_type=level, memory_bytes=2**28)
    assert step.info["correct"] is False and set(step.info["tests"]) <= {"memory", "error", "not_run"}


@pytest.mark.slow
@pytest.mark.parametrize("text", [*SOLUTIONS])
def test_the_solutions_of_built_in_tasks_are_graded_as_their_headings_say(text, level):
    solution = SOLUTIONS[text]
    env = CodeEnv(WARMUP, sandbox_type=level, timeout=1.0 if "times out" in text else 20.0)
    found = []
    for _ in range(2):
        env.reset(seed=1, idx=ROWS[solution.task])
        found.append(env.step(fenced(solution.source)))
    passed = [[status == "passed" for status in step.info["tests"]] for step in found]
    assert passed[0] == passed[1]
    assert {(step.info["correct"], step.reward) for step in found} == {(solution.correct, float(solution.correct))}


def test_every_built_in_task_has_correct_and_wrong_solutions_and_there_are_ten_wrong_ones():
    kinds = Counter((solution.task, solution.correct) for solution in SOLUTIONS.values())
    assert len(ROWS) == 10
    assert all(kinds[task, True] >= 1 and kinds[task, False] >= 1 for task in ROWS)
    assert sum(not solution.correct for solution in SOLUTIONS.values()) >= 10


def test_the_built_in_tasks_cover_scripts_and_functions():
    functions = [read_tests(row["tests"]).function for row in CodeEnv(WARMUP).dataset]
    assert 3 <= functions.count(None) <= 7


# Checkers

PAIR = {
    "problem": "Print two numbers with sum n.",
    "tests": {"inputs": ["7\n", "12\n"], "outputs": ["1 6\n", "1 11\n"]},
}
PROGRAM = """import sys

def numbers(path):
    return [int(token) for token in open(path).read().split() if token.lstrip("-").isdigit()]

given, output, answer = map(numbers, sys.argv[1:4])
if __name__ == "__main__":
    assert sum(answer) == given[0]
    sys.exit(0 if len(output) == 2 and sum(output) == given[0] else 1)
"""
FUNCTION = """
def check(input, output, answer):
    numbers = [int(token) for token in output.split() if token.isdigit()]
    return len(numbers) == 2 and sum(numbers) == int(input) == sum(map(int, answer.split()))
"""
SORTED = """
def check(arguments, value, answer):
    assert isinstance(answer, list)
    return isinstance(value, list) and sorted(value) == sorted(arguments[0])
"""
PERMUTE = {"problem": "Permute a list.", "tests": {"fn_name": "f", "inputs": [[[1, 2, 3]]], "outputs": [[2, 1, 3]]}}


@pytest.mark.parametrize("checker", [PROGRAM, FUNCTION], ids=["program", "function"])
def test_a_checker_accepts_every_right_output_and_no_wrong_one(level, checker):
    row = {**PAIR, "checker": checker}
    for program, reward in (
        ("n = int(input())\nprint(n - 3, 3)", 1.0),
        ("n = int(input())\nprint(n, 3)", 0.0),
        ("print('no')", 0.0),
        ("", 0.0),
        ("n = int(input())\nprint(n - 3, 3)\nraise SystemExit(1)", 0.0),
    ):
        assert answered(row, program or "pass", sandbox_type=level).reward == reward


def test_a_checker_judges_return_values(level):
    row = {**PERMUTE, "checker": SORTED}
    for program, reward in (("[3, 2, 1]", 1.0), ("(1, 3, 2)", 1.0), ("[1, 2]", 0.0), ("None", 0.0), ("deque(x)", 0.0)):
        assert answered(row, f"def f(x): return {program}", sandbox_type=level).reward == reward
    assert answered({**row, "any_sequence": True}, "def f(x): return deque(x)", sandbox_type=level).reward == 1.0


def test_a_row_may_allow_other_sequences_where_a_list_is_expected(level):
    row = {"problem": "Count.", "tests": {"fn_name": "f", "inputs": [[3]], "outputs": [[[0, 1, 2]]]}}
    for allowed, reward in ((True, 1.0), (False, 0.0)):
        row["any_sequence"] = allowed
        assert answered(row, "def f(n): return range(n)", sandbox_type=level).reward == reward


SEES_NOTHING = """
import glob, os, pathlib, sys, time
found = glob.glob("**", recursive=True) + glob.glob("/tmp/**/answer.txt", recursive=True)
found += [name for name in ("checker.py", "answer.txt", "../answer.txt") if os.path.exists(name)]
if found or "checker" in sys.modules or len(sys.argv) > 1:
    print(7)
print(4, 3)
"""
LEAVES_FILES = """
import os, pathlib, subprocess, sys
fake = "import os\\nos._exit(0)\\ndef check(*_): return True"
for folder in (".", os.path.expanduser("~"), "/tmp", "/dev/shm"):
    for name in ("checker.py", "json.py", "runpy.py", "sitecustomize.py", "usercustomize.py", "answer.txt"):
        try:
            pathlib.Path(folder, name).write_text(fake)
        except OSError:
            pass
if os.fork() == 0:
    while True:
        pathlib.Path("checker.py").write_text(fake)
print(4, 4)
"""


@pytest.mark.parametrize("checker", [PROGRAM, FUNCTION], ids=["program", "function"])
def test_a_program_neither_sees_the_checker_and_the_answer_nor_changes_the_verdict(level, checker):
    row = {**PAIR, "tests": {"inputs": ["7"], "outputs": ["1 6"]}, "checker": checker}
    assert answered(row, SEES_NOTHING, sandbox_type=level).reward == 1.0
    assert answered(row, LEAVES_FILES, sandbox_type=level).info["tests"] == ["wrong"]


@pytest.mark.parametrize(
    ("checker", "says"),
    [
        ("import sys\nsys.exit(len(sys.argv) - 1)", "exit code 3"),
        ("import sys\nint(open(sys.argv[2]).read())", "exit code 3.*ValueError"),
        ("import sys\nopen(sys.argv[4])", "exit code 3.*IndexError"),
        ("import os, sys\nos.kill(os.getpid(), 9 * bool(sys.argv))", "killed by signal 9"),
        ("def check(input, output, answer):\n    while True: pass", "timed out"),
        ("def check(input, output, answer):\n    return 'yes'", "exit code 3.*True or False"),
        ("def check(input, output):\n    return True", "exit code 3.*TypeError"),
    ],
)
def test_a_checker_that_fails_gives_no_reward_and_leaves_the_task_open(level, checker, says, monkeypatch):
    monkeypatch.setattr("gem.graders.code.checker.CHECKER_CPU_S", 0.3)
    env = CodeEnv(dataset=[{**PAIR, "checker": checker}], sandbox_type=level, timeout=0.3)
    env.reset(seed=0)
    with pytest.raises(GraderError, match=says):
        env.step(fenced("print('words')"))
    env.reset(seed=0)
    env.suite = lambda: read_tests(PAIR["tests"])
    assert env.step(fenced("print(1, int(input()) - 1)")).reward == 1.0


def test_a_checker_may_be_in_the_tests_and_malformed_ones_are_errors_of_the_row():
    row = {**PAIR, "tests": json.dumps({**PAIR["tests"], "checker": FUNCTION})}
    assert answered(row, "print(2, int(input()) - 2)").reward == 1.0
    with pytest.raises(BadValue, match="columns 'tests' and 'checker' cannot be read: a checker must be Python"):
        CodeEnv(dataset=[{**PAIR, "checker": "int main() { registerTestlibCmd(argc, argv); }"}]).reset(seed=0)


# LiveCodeBench


def live_code_bench(kind, public, private, **columns):
    tests = [[{"input": i, "output": o, "testtype": kind} for i, o in pairs] for pairs in (public, private)]
    pickled = zlib.compress(pickle.dumps(json.dumps(tests[1])))
    return {
        "question_title": "Twice",
        "question_content": "Double a number.",
        "starter_code": "",
        "public_test_cases": json.dumps(tests[0]),
        "private_test_cases": base64.b64encode(pickled).decode(),
        "metadata": "{}",
        **columns,
    }


def test_rows_of_live_code_bench_are_read_as_published():
    row = live_code_bench("stdin", [("1\n", "2\n")], [("5\n", "10"), ("8\n", "16\n")])
    env = CodeEnv(dataset=[row])
    assert env.reset(seed=0)[0].startswith("Double a number.\n\nWrite a Python 3 program")
    assert env.step(fenced("print(2 * int(input()))")).info["tests"] == ["passed"] * 3
    assert answered(row, "print(2)").reward == 0.0


def test_functions_of_live_code_bench_are_methods_of_solution():
    starter = "class Solution:\n    def twice(self, x: List[int]) -> List[float]:\n        "
    row = live_code_bench(
        "functional",
        [("[1]", "[2.00000]")],
        [("[2, 0.333333333]", "[4, 0.66667]")],
        starter_code=starter,
        metadata='{"func_name": "twice"}',
    )
    env = CodeEnv(dataset=[row])
    assert fenced(starter) in env.reset(seed=0)[0]
    assert env.step(fenced(f"{starter}return [2 * n for n in x]")).info["tests"] == ["passed"] * 2
    assert answered(row, f"{starter}return [2 * n + 1 for n in x]").reward == 0.0


# Solutions in the rows


@pytest.mark.parametrize(
    "columns",
    [
        {"solution": ADDS},
        {"solution": f"The sum.\n{fenced(ADDS)}"},
        {"solutions": [ADDS, "print(3)"]},
        {"solutions": json.dumps(["print 3", ADDS])},
        {"solutions": {"language": [2, 3], "solution": ["int main() {}", ADDS]}},
        {"gold_standard_solution": ADDS},
    ],
)
def test_a_solution_in_the_row_is_the_gold_action(columns):
    env = CodeEnv(dataset=[{**ADD, **columns}])
    env.reset(seed=0)
    assert program_in(env.gold_action()).strip() == ADDS


@pytest.mark.parametrize("columns", [{}, {"solutions": "[]"}, {"solution": "int main() {}"}, {"solutions": [None]}])
def test_a_row_without_a_python_solution_has_no_gold_action(columns):
    env = CodeEnv(dataset=[{**ADD, **columns}])
    env.reset(seed=0)
    assert env.gold_action() is None


# Outages


class Dead(CodeEnv):
    """A CodeEnv whose sandbox does not start."""

    def sandbox(self):
        raise SandboxError("no sandbox could be started")


def test_a_sandbox_outage_gives_no_reward_and_leaves_the_task_open():
    env = Dead(dataset=[ADD])
    env.reset(seed=0)
    with pytest.raises(InfraError):
        env.step(fenced(ADDS))
    env.sandbox = lambda: get_sandbox()
    assert env.step(fenced(ADDS)).reward == 1.0


def test_a_sandbox_outage_in_a_vector_env_is_a_failed_episode():
    gem.register("test:Dead", Dead, dataset=[ADD])
    try:
        env = gem.make_vec("test:Dead", num_envs=2)
        env.reset(seed=0)
        step = env.step([fenced(ADDS)] * 2)
    finally:
        del gem.ENV_REGISTRY["test:Dead"]
    assert all(reward != reward for reward in step.rewards_B)
    assert step.truncated_B.all() and not step.terminated_B.any()


# Datasets


@pytest.mark.parametrize(
    "row",
    [
        {"problem": "Add.", "tests": json.dumps(ADD["tests"])},
        {"question": "Add.", "input_output": json.dumps(ADD["tests"]), "starter_code": ""},
        {
            "description": "Add.",
            "public_tests": {"input": ["1 2"], "output": ["3"]},
            "private_tests": {"input": ["30 4"], "output": ["34"]},
            "generated_tests": {"input": [], "output": []},
        },
        {
            "prompt": "Add.",
            "verification_info": json.dumps(
                {
                    "language": "python",
                    "test_cases": [
                        {"type": "stdin_stdout", "fn_name": None, "input": "1 2\n", "output": "3\n"},
                        {"type": "stdin_stdout", "fn_name": None, "input": "30 4\n", "output": "34\n"},
                    ],
                }
            ),
        },
    ],
    ids=["published", "TACO and APPS", "CodeContests", "PrimeIntellect"],
)
def test_columns_of_common_data_sets_are_found(row):
    step = answered(row, ADDS)
    assert step.info["tests"] == ["passed", "passed"]


def test_columns_can_be_named():
    row = {"text": "Add.", "checks": ADD["tests"], "problem": "no", "tests": "no"}
    assert answered(row, ADDS, question_key="text", test_key="checks").reward == 1.0


@pytest.mark.parametrize("kwargs", [{"question_key": "txt"}, {"test_key": "checks"}])
def test_an_unknown_column_is_an_error_that_lists_the_columns(kwargs):
    with pytest.raises(BadValue, match=r"no column '(txt|checks)'.*'problem', 'tests'"):
        CodeEnv(dataset=[ADD], **kwargs).reset(seed=0)


def test_malformed_tests_raise_bad_value():
    with pytest.raises(BadValue, match="not valid JSON"):
        CodeEnv(dataset=[{"problem": "?", "tests": "assert f() == 1"}]).reset(seed=0)


# Arguments


@pytest.mark.parametrize("kwargs", [{"max_tests": 0}, {"reward": "some"}, {"timeout": 0.0}, {"memory_bytes": -1}])
def test_the_constructor_rejects_values_out_of_range(kwargs):
    with pytest.raises(BadValue):
        CodeEnv(dataset=[ADD], **kwargs)


def test_an_unknown_sandbox_name_raises_bad_value():
    env = CodeEnv(dataset=[ADD], sandbox_type="zygot")
    env.reset(seed=0)
    with pytest.raises(BadValue, match=r"'zygot'.*'zygote'"):
        env.step(fenced(ADDS))


def test_unknown_arguments_are_errors():
    with pytest.raises(UnknownArgument, match="did you mean 'max_tests'"):
        gem.make("code:Warmup-v0", max_test=3)


def test_limits_come_from_the_constructor():
    env = gem.make("code:Warmup-v0", timeout=2.0, memory_bytes=2**28)
    assert env.limits == Limits(wall_s=2.0, memory_bytes=2**28)
    assert CodeEnv(dataset=[ADD]).limits.wall_s == 10.0


def test_the_published_name_none_selects_the_subprocess_sandbox():
    env = CodeEnv(dataset=[ADD], sandbox_type="none")
    env.reset(seed=0)
    assert env.sandbox() is get_sandbox("subprocess")
    assert env.step(fenced(ADDS)).reward == 1.0


def test_a_sandbox_object_is_used_as_given(level):
    assert CodeEnv(dataset=[ADD], sandbox_type=level).sandbox() is level


# The built-in environment


def test_the_oracle_solves_every_task():
    env = gem.make("code:Warmup-v0")
    player = oracle(env)
    for idx in range(10):
        observation, _ = env.reset(seed=0, idx=idx)
        assert env.step(player.act(observation)).reward == 1.0


def test_sampled_actions_are_programs_that_solve_no_task():
    env = gem.make("code:Warmup-v0")
    rewards = []
    for idx in range(10):
        env.reset(seed=idx, idx=idx)
        step = env.step(env.sample_random_action())
        assert "invalid" not in step.info
        rewards.append(step.reward)
    assert rewards == [0.0] * 10


def test_malformed_rows_can_be_skipped_and_are_counted():
    good = {"problem": "Print 3.", "tests": {"inputs": [""], "outputs": ["3"]}}
    env = CodeEnv(dataset=[good, {"problem": "Print 4."}, {"problem": "Print 5.", "tests": "no"}], skip_bad_rows=True)
    assert (len(env.dataset), env.skipped_rows) == (1, 2)
