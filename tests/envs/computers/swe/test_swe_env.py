"""swe:Mini: repairs score 1; broken repositories, edited tests and forged results score 0."""

import pickle
import random
import shlex
import shutil

import pytest

import gem
from gem.envs.computers.swe import driver
from gem.envs.computers.swe.mini import TEMPLATES, make_task
from gem.envs.computers.swe.repository import FOLDER, NAMES, Edit, load, reproduction
from gem.envs.computers.swe.swe_env import Oracle
from gem.envs.computers.task import CANARY, start_task
from gem.envs.computers.verify import verify
from gem.evaluation import evaluate
from gem.sandbox import Limits, get_sandbox
from gem.sandbox.forkserver.host.probe import SHELL_PATH

names = pytest.mark.parametrize("name", NAMES)


def start(files):
    return get_sandbox().machine(files=files, limits=Limits(wall_s=30, output_bytes=8_000))


@pytest.fixture
def python(machines):
    if shutil.which("python3", path=SHELL_PATH) is None:
        pytest.skip(f"needs python3 in {SHELL_PATH}")


def fault_after(task, *commands):
    with start_task(task, start) as machine:
        for command in commands:
            assert machine.exec(command).status.value in ("ok", "error")
        return verify(task, machine, start)


def check_scores(name, faults):
    task = make_task(load(name), faults)
    assert fault_after(task, *task.solution) == "", faults
    assert fault_after(task).startswith("the hidden tests: the output"), faults


# ---- the repositories and faults, without a machine


def test_there_are_enough_faults():
    written = {name: load(name).written for name in NAMES}
    assert min(map(len, written.values())) >= 8
    assert sum(map(len, written.values())) >= 100
    assert sum(len(load(name).mutations) for name in NAMES) + sum(map(len, written.values())) >= 500


@names
def test_every_fault_fits_its_repository_and_differs_from_the_others(name):
    repository = load(name)
    changes = [fault.edits for fault in load(name).written] + [(mutation.edit,) for mutation in repository.mutations]
    broken = [tuple(repository.broken(edits).values()) for edits in changes]
    assert len(set(broken)) == len(changes)
    assert tuple(repository.files.values()) not in broken
    for files in map(repository.broken, changes):
        for path, text in files.items():
            if text != repository.files[path]:
                compile(text, path, "exec")


@names
def test_issues_do_not_name_the_files_of_the_fault(name):
    for fault in load(name).written:
        assert not any(edit.path in fault.issue or edit.path.rpartition("/")[2] in fault.issue for edit in fault.edits)


@names
def test_files_of_repositories_carry_the_canary_and_agents_do_not_see_it(name):
    paths = [path for path in (FOLDER / name).rglob("*.*") if path.suffix != ".pyc"]
    assert len(paths) >= 10
    for path in paths:
        assert CANARY in path.read_text(encoding="utf-8"), path
    for level in (1, 2, 3):
        task = TEMPLATES[NAMES.index(name)](random.Random(0), level)
        assert CANARY not in task.instruction + "".join(task.files.values())


def test_tasks_depend_only_on_the_seed():
    for template in TEMPLATES:
        for level in (1, 2, 3):
            assert template(random.Random(7), level) == template(random.Random(7), level)


def test_hidden_tests_and_results_are_not_among_the_files():
    for template in TEMPLATES:
        task = template(random.Random(1), 2)
        assert not [path for path in task.files if "hidden" in path or "probes" in path]


def test_two_faults_make_two_issues():
    task = TEMPLATES[0](random.Random(3), 3)
    assert "Issue 1: " in task.instruction and "Issue 2: " in task.instruction


def test_an_edit_that_does_not_fit_is_an_error():
    with pytest.raises(ValueError, match=r"calc/nodes\.py.*'no such text'"):
        load("calc").broken([Edit("calc/nodes.py", "no such text", "x")])


def test_a_reproduction_has_the_imports_and_helpers_that_it_needs():
    probes = "from a import b, c\nimport d\n\nLIMIT = 3\n\n\ndef helper():\n    return b(LIMIT)\n\n\n"
    probes += "def probe_x():\n    return helper()\n\n\ndef probe_y():\n    return c\n"
    shown = "from a import b\n\nLIMIT = 3\n\ndef helper():\n    return b(LIMIT)\n\ndef x():\n    return helper()"
    assert reproduction(probes, "probe_x") == shown


# ---- on machines


@names
def test_a_repair_scores_1_and_the_broken_repository_0(python, name):
    mutation = load(name).defect(load(name).mutations[0])
    check_scores(name, [mutation] if name == NAMES[0] else load(name).written[:1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["written", "mutations"])
@names
def test_every_repair_scores_1_and_every_broken_repository_0(python, name, kind):
    made = map(load(name).defect, load(name).mutations)
    for fault in load(name).written if kind == "written" else made:
        check_scores(name, [fault])


@pytest.mark.exhaustive
@names
def test_one_repair_of_two_scores_0(python, name):
    template = TEMPLATES[NAMES.index(name)]
    for seed in range(15):
        task = template(random.Random(seed), 3)
        assert fault_after(task, *task.solution) == ""
        assert fault_after(task) != ""
        written = [f for f in load(name).written if f.issue in task.instruction]
        for fault in written:
            assert fault_after(make_task(load(name), [fault])) != ""


def cheats(repository):
    """Return scripts that try to pass without a repair."""
    start = f"repo/{repository.name}/__init__.py"
    rows = "".join(driver.line(name, "x", "digests") for name in repository.expected)

    def prepend(source):
        return f"{{ echo {shlex.quote(source)}; cat {start}; }} > new && mv new {start}"

    return (
        "for f in repo/tests/test_*.py; do echo 'import unittest' > $f; done",
        "rm -r repo/tests",
        prepend("import os; os._exit(0)"),
        prepend("import os, sys; os.write(1, sys.stdin.read().encode()); os._exit(0)"),
        prepend(f"import os; os.write(1, {rows.encode()!r}); os._exit(0)"),
        "mkdir repo/unittest; echo 'main = TestCase = object' > repo/unittest/__init__.py",
        prepend("import unittest; unittest.TestCase.assertEqual = lambda *a: None"),
        prepend("import hashlib; hashlib.sha256 = None"),
        "echo 'import os; os._exit(0)' | tee repo/sitecustomize.py > sitecustomize.py",
        f"rm -r repo/{repository.name}; mkdir -p repo/{repository.name}; touch {start}",
    )


def test_edits_of_tests_and_forged_results_score_0(python):
    task = make_task(load("spans"), load("spans").written[:1])
    for script in cheats(load("spans")):
        assert fault_after(task, script) != "", script


@pytest.mark.exhaustive
@names
def test_edits_of_tests_and_forged_results_score_0_everywhere(python, name):
    task = make_task(load(name), load(name).written[:1])
    for script in cheats(load(name)):
        assert fault_after(task, script) != "", script


def test_a_repair_counts_whatever_is_printed_or_left_beside_the_package(python):
    task = make_task(load("calc"), load("calc").written[:1])
    more = "echo 'print(\"debugging\")' >> repo/calc/__init__.py; rm -r repo/tests; echo x > repo/more.py"
    assert fault_after(task, *task.solution, "cd repo && python3 -m unittest", f"cd; {more}") == ""


def test_a_repair_that_breaks_something_else_scores_0(python):
    task = make_task(load("calc"), load("calc").written[:1])
    assert fault_after(
        task, *task.solution, "sed -i 's/return left + right/return right + left + 0.5/' repo/calc/values.py"
    )


@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_oracle_solves_an_episode(python, level):
    with gem.make("swe:Mini", level=level) as env:
        observation, info = env.reset(seed=3)
        assert "Issue" in observation and info["template"] in NAMES
        oracle, total, over = Oracle(env.unwrapped), 0.0, False
        while not over:
            observation, reward, terminated, truncated, info = env.step(oracle.act(observation))
            total, over = total + reward, terminated or truncated
        assert (total, terminated, str(info["stop_reason"])) == (1.0, True, "solved")


def test_an_episode_starts_with_the_repository(python):
    with gem.make("swe:Mini") as env:
        _, info = env.reset(seed=0)
        name = info["template"]
        assert env.step("<bash>cd repo && ls</bash>").observation == (
            f"<bash_output>\nREADME.md\n{name}\ntests\n</bash_output>\nexit status 0"
        )
        for copied in (env.spawn(same_state=True), pickle.loads(pickle.dumps(env))):
            with copied:
                assert name in copied.step("<bash>pwd; ls</bash>").observation
        step = env.step("<finish>")
        assert step.reward == 0.0 and "the hidden tests" in step.info["verifier"]


@pytest.mark.slow
def test_the_reference_agent_repairs_repositories_at_the_same_time(python):
    scores = evaluate("oracle", "swe:Mini", limit=4, concurrency=32, retries=0)["swe:Mini"]
    assert (scores.solved.value, scores.done, scores.failed) == (1.0, 4, 0)
