"""Task folders of Terminal-Bench 1: what is read, and what is refused by name."""

import shutil
from pathlib import Path

import pytest

from gem.envs.computers.containers.bench_task import collected, read_bench_task, solution_of
from gem.envs.computers.containers.rewards import RewardMissing
from gem.envs.computers.containers.terminal_bench import read_summary
from gem.errors import BadValue, CallerError

TASKS = Path(__file__).parent / "tasks" / "terminalbench"
TESTS = {"test_outputs.py::test_one": 1, "test_outputs.py::test_two": 2}


def summary(*lines):
    return "\n".join(["...", "=== short test summary info ===", *lines])


ALL = ("PASSED ../tests/test_outputs.py::test_one", "PASSED test_outputs.py::test_two[a]")


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (summary(*ALL, "XFAIL tests/test_outputs.py::test_two[b - c] - known"), ""),
        (summary(*ALL), "test_two has not passed"),
        (summary("PASSED test_outputs.py::test_one"), "test_two has not passed"),
        (summary(*ALL, "FAILED tests/test_outputs.py::test_two[b] - assert 0"), "FAILED"),
        (summary(*ALL, ALL[1], "ERROR tests/test_other.py::test_x"), "ERROR"),
        (summary(*ALL, ALL[1], "XPASS tests/test_outputs.py::test_three"), "XPASS"),
        (summary(), "has not passed"),
        (summary(*ALL, ALL[1]) + summary("FAILED test_outputs.py::test_one"), "FAILED"),
    ],
)
def test_each_collected_test_must_pass_and_no_other_may_fail(output, why):
    found = read_summary(output, TESTS)
    assert why in found and bool(found) == bool(why)


def test_output_without_a_summary_gives_no_reward():
    with pytest.raises(RewardMissing, match="no summary"):
        read_summary("PASSED test_outputs.py::test_one", TESTS)


def test_tests_are_found_without_running_the_file(tmp_path):
    (tmp_path / "test_x.py").write_text(
        "import pytest\nraise SystemExit\n@pytest.mark.parametrize('a', [1, 2])\n"
        "@pytest.mark.parametrize('b', (3, 4))\n"
        "def test_a(a, b): ...\n@pytest.mark.parametrize('a', VALUES)\nasync def test_b(a): ...\ndef helper(): ...\n"
        "class TestC:\n    def test_d(self): ...\n    def other(self): ...\nclass Other:\n    def test_e(self): ...\n"
    )
    assert dict(collected(tmp_path / "test_x.py")) == {
        "test_x.py::test_a": 4,
        "test_x.py::test_b": 1,
        "test_x.py::TestC::test_d": 1,
    }


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("yaml")
    return Path(shutil.copytree(TASKS / "sort-lines", tmp_path / "task"))


def test_a_folder_is_read(folder):
    task = read_bench_task(folder)
    assert task.instruction == "Sort the lines of /app/words into /app/sorted."
    assert task.tests == {
        "test_outputs.py::test_the_lines_are_sorted": 1,
        "test_outputs.py::test_each_word_is_there": 3,
    }
    assert (task.agent_timeout_s, task.test_timeout_s, task.same_shell) == (180.0, 60.0, False)
    assert task.environment == {"TEST_DIR": "/tests"} and solution_of(folder) is None


def test_a_solution_may_be_a_list_of_commands():
    pytest.importorskip("yaml")
    assert solution_of(TASKS / "two-commands") == ["mkdir -p /app/a", "touch /app/a/b"]
    assert read_bench_task(TASKS / "two-commands").same_shell


def test_a_task_of_several_containers_is_refused_with_their_names():
    pytest.importorskip("yaml")
    with pytest.raises(BadValue, match=r"one container, client.*got client, web"):
        read_bench_task(TASKS / "two-services")


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("task.yaml", "parser_name: pytest", "parser_name: swebench", "parser_name 'swebench'"),
        ("task.yaml", "category: files", "categories: files", "categories"),
        ("task.yaml", "max_test_timeout_sec: 60", "max_test_timeout_sec: -1", "max_test_timeout_sec"),
        ("task.yaml", "instruction: |-", "instruction: [", "not YAML"),
        ("docker-compose.yaml", "    volumes:", "    privileged: true\n    volumes:", "services.client.privileged"),
        ("docker-compose.yaml", "sleep infinity", "nginx", "services.client.command"),
        ("docker-compose.yaml", "dockerfile: Dockerfile", "context: ..", "services.client.build"),
        ("docker-compose.yaml", "T_BENCH_TASK_LOGS_PATH", "HOME", "services.client.volumes"),
        ("docker-compose.yaml", "${T_BENCH_TEST_DIR}", "${SECRET}", "environment.TEST_DIR"),
        ("task.yaml", "category: files", "1: files", "keys are names, got 1"),
        ("task.yaml", "run_tests_in_same_shell: ", "run_tests_in_same_shell: x", "run_tests_in_same_shell"),
        ("tests/test_outputs.py", "def test_", "def check_", "no test_"),
        ("tests/test_outputs.py", "def test_", "def test_(", "not Python"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(folder, name, old, new, words):
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new).replace("PATH}:${T_BENCH_CONTAINER_LOGS_PATH}", "PATH}:/x"))
    with pytest.raises(CallerError, match=words.replace(".", r"\.").replace("[", r"\[")):
        read_bench_task(folder)


def test_a_folder_without_dockerfile_needs_an_image(folder):
    (folder / "Dockerfile").unlink()
    with pytest.raises(BadValue, match="Dockerfile is missing"):
        read_bench_task(folder)
    (folder / "docker-compose.yaml").write_text("services: {client: {image: 'ubuntu:24.04'}}")
    assert read_bench_task(folder).image == "ubuntu:24.04"


@pytest.mark.parametrize(
    ("compose", "words"),
    [
        ("services: [client]", "services must be"),
        ("services: 5", "services must be"),
        ("services: {client: 5}", "services.client must be"),
        ("services: {client: {environment: 5}}", "services.client.environment must be"),
        ("services: {client: {environment: [5]}}", "services.client.environment must be"),
        ("services: {client: {environment: [=5]}}", "services.client.environment.''"),
        ("services: {client: {volumes: 5}}", "services.client.volumes must be"),
        ("services: {client: {working_dir: 5}}", "services.client.working_dir must be"),
        ("services: {1: {}, 2: {}}", "got 1, 2"),
        ("1: 2", "keys are names"),
    ],
)
def test_a_malformed_compose_file_is_refused_by_name(folder, compose, words):
    (folder / "docker-compose.yaml").write_text(compose)
    with pytest.raises(BadValue, match=f"docker-compose.yaml: .*{words}"):
        read_bench_task(folder)
