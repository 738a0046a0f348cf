"""The code environment: prompts, answer extraction, grading, and the grades of the built-in solutions."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter

import pytest

import gem
from gem.core import StopReason
from gem.envs.questions.code_env import CodeEnv, fenced, program_in
from gem.envs.questions.code_solutions import solutions
from gem.errors import BadValue, InfraError, SandboxError, UnknownArgument
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
    assert step.info == {"idx": 0, "correct": False, "invalid": "no_answer", "stop_reason": StopReason.FORMAT}
    assert "```python" in step.observation


def test_an_empty_last_block_is_no_program():
    assert program_in("```python\na\n```\n```python\n\n```") is None


# Grading


def test_a_correct_program_solves_the_task(level):
    step = answered(ADD, ADDS, sandbox_type=level)
    assert (step.reward, step.terminated, step.truncated) == (1.0, True, False)
    assert step.info == {"idx": 0, "correct": True, "tests": ["passed", "passed"], "stop_reason": StopReason.SOLVED}
    assert step.observation == "2 tests: 2 passed."


def test_a_wrong_program_loses_it(level):
    step = answered(ADD, "print(3)", sandbox_type=level, early_exit=False)
    assert (step.reward, step.terminated) == (0.0, True)
    assert step.info == {"idx": 0, "correct": False, "tests": ["passed", "wrong"], "stop_reason": StopReason.LOST}


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
