"""Terminal tasks exported as Harbor folders with a separate verifier."""

import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import gem
from gem._internal.imports import resolve
from gem.cli import main
from gem.cli.export import read_seeds
from gem.envs.computers.containers import exported_verifier
from gem.envs.computers.containers.container_env import Oracle
from gem.envs.computers.containers.exported_verifier import extra_file, first_wrong_file, wrong_link
from gem.envs.computers.containers.harbor_export import write_harbor
from gem.envs.computers.containers.harbor_task import read_harbor_task
from gem.errors import BadValue

FAMILIES = ("files", "text", "data", "git", "logs", "build", "archive", "mixed")


def tasks(family):
    for template in resolve(f"gem.envs.computers.terminal.{family}:TEMPLATES"):
        yield template.__name__, template(random.Random(3), 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_task_of_a_family_is_a_folder_of_the_format(family, tmp_path):
    if sys.version_info < (3, 11):
        pytest.importorskip("tomli")
    for name, task in tasks(family):
        write_harbor(task, tmp_path / name, name=name, programs=("git",), seconds=600.0)
        read = read_harbor_task(tmp_path / name)
        assert read.bundled and read.verifier.network == read.container.network == "no-network"
        assert (read.agent_user, read.artifacts[0]) == ("user", "/home/user")
        assert task.instruction in read.instruction
        with tarfile.open(tmp_path / name / "environment" / "files.tar") as tar:
            assert {f"home/user/{entry.path}" for entry in task.entries()} <= set(tar.getnames())


def test_what_is_expected_is_only_in_the_folder_of_the_tests(tmp_path):
    _, task = next(tasks("text"))
    write_harbor(task, tmp_path / "x", name="x", programs=(), seconds=600.0)
    assert json.loads((tmp_path / "x" / "tests" / "task.json").read_text())["expected"] == dict(task.expected)
    assert "tests" not in (tmp_path / "x" / "environment" / "Dockerfile").read_text()


def test_a_task_with_a_service_and_an_existing_folder_are_refused(tmp_path):
    service = next(task for _, task in tasks("processes") if task.service)
    with pytest.raises(BadValue, match="running service"):
        write_harbor(service, tmp_path / "x", name="x", programs=(), seconds=600.0)
    _, task = next(tasks("files"))
    with pytest.raises(BadValue, match="exists"):
        write_harbor(task, tmp_path, name="x", programs=(), seconds=600.0)


def test_the_verifier_compares_files_and_links(tmp_path):
    (tmp_path / "a").write_text("text\n")
    (tmp_path / "inside").mkdir()
    (tmp_path / "link").symlink_to("a")
    assert first_wrong_file({"a": "text\n", "b": None}, tmp_path) == ""
    assert "content of a " in first_wrong_file({"a": "other\n"}, tmp_path)
    (tmp_path / "cut").write_text("text")
    assert first_wrong_file({"cut": "text\n"}, tmp_path) == ""
    assert "content of cut " in first_wrong_file({"cut": "text\n"}, tmp_path, ["cut"])
    assert first_wrong_file({"a": None}, tmp_path) == "a still exists"
    assert "regular file" in first_wrong_file({"link": "text\n"}, tmp_path)
    assert "regular file" in first_wrong_file({"inside": ""}, tmp_path)
    assert wrong_link({"link": "a"}, tmp_path) == "" and "wrong place" in wrong_link({"link": "b"}, tmp_path)
    task = {"expected": {"inside/x": "1"}, "exact": [], "links": {}, "complete": ["inside"]}
    assert extra_file(task, tmp_path) == ""
    (tmp_path / "inside" / "y").touch()
    assert extra_file(task, tmp_path) == "inside/y should not exist"


def test_a_link_to_a_folder_is_not_followed(tmp_path):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "x").write_text("1")
    (tmp_path / "inside").symlink_to("hidden")
    assert "regular file" in first_wrong_file({"inside/x": "1"}, tmp_path)


def test_seeds_are_numbers_and_ranges():
    assert read_seeds("0-2, 7,1") == [0, 1, 2, 7]
    for wrong in ("", "a", "3-1", "-1"):
        with pytest.raises(BadValue, match="seeds are"):
            read_seeds(wrong)
    with pytest.raises(BadValue, match="more than 10000"):
        read_seeds("0-5,0-999999999999")


def test_an_environment_without_such_tasks_is_named(capsys, tmp_path):
    assert main(["export", "harbor", "game:Wordle-v0", "--output", str(tmp_path)]) == 2
    assert "game:Wordle-v0 cannot be exported" in capsys.readouterr().err


def test_rows_of_swe_bench_are_refused(machines, capsys, tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    (tmp_path / "rows.jsonl").write_text("{}\n")
    assert main(["export", "harbor", f"swebench:{tmp_path}/rows.jsonl", "--output", str(tmp_path)]) == 2
    assert "cannot be exported" in capsys.readouterr().err


@pytest.mark.parametrize("make_wrong", [lambda place: os.mkfifo(place), lambda place: place.write_text("a file")])
def test_a_pipe_or_a_file_in_place_of_a_folder_is_a_reason(make_wrong, tmp_path, monkeypatch):
    home, logs, tests = (tmp_path / name for name in ("home", "logs", "tests"))
    for folder in (home, logs, tests):
        folder.mkdir()
    make_wrong(home / "place")
    check = {"name": "check", "only": (), "files": {"place/x": ""}}
    task = {"expected": {}, "exact": [], "links": {}, "complete": [], "checks": [check]}
    (tests / "task.json").write_text(json.dumps(task))
    monkeypatch.setattr(exported_verifier, "HOME", home)
    monkeypatch.setattr(exported_verifier, "Path", lambda path, *more: Path(str(path).replace("/tests", str(tests))
                        .replace("/logs/verifier", str(logs)), *more))  # fmt: skip
    monkeypatch.setattr(exported_verifier, "kill_user", lambda: None)
    monkeypatch.setattr(Path, "rename", lambda self, target: os.rename(self, tests / "given") or tests / "given")
    exported_verifier.main()
    assert (logs / "reward.txt").read_text() == "0\n"


def test_a_program_that_prints_without_end_is_stopped(tmp_path, monkeypatch):
    real = subprocess.Popen
    without_user = lambda *a, user, group, extra_groups, **rest: real(*a, **rest)  # noqa: E731
    monkeypatch.setattr(exported_verifier.subprocess, "Popen", without_user)
    monkeypatch.setattr(exported_verifier, "HOME", tmp_path)
    monkeypatch.setattr(exported_verifier, "MAX_BYTES", 1 << 16)
    monkeypatch.setattr(exported_verifier, "kill_user", lambda: None)
    printed = tmp_path / "output"
    monkeypatch.setattr(exported_verifier, "open", lambda path, mode: printed.open(mode), raising=False)
    check = {"name": "check", "arguments": ["yes"], "stdin": "", "stdout": "y\n", "expected": {}}
    assert exported_verifier.outcome(check) == "check: the output is wrong"
    assert printed.stat().st_size == 1 << 16


def test_the_command_writes_a_folder_per_seed(machines, tmp_path, capsys):
    assert main(["export", "harbor", "terminal:Files", "--seeds", "0-1", "--output", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["terminal-files-0", "terminal-files-1"]
    assert "wrote 2 of 2 tasks" in capsys.readouterr().out


@pytest.mark.containers
@pytest.mark.parametrize("env_id", ["terminal:Files", "terminal:Build", "swe:Mini"])
def test_an_exported_task_is_solved_by_its_solution_only(machines, debian, env_id, tmp_path):
    assert main(["export", "harbor", env_id, "--output", str(tmp_path)]) == 0
    with gem.make(f"harbor:{tmp_path}", image_map={"debian:bookworm": debian}) as env:
        observation, _ = env.reset(seed=0)
        oracle, step = Oracle(env), None
        while step is None or not (step.terminated or step.truncated):
            step = env.step(oracle.act(observation))
        assert step.reward == 1.0, step
        env.reset(seed=0)
        assert "task.json" not in env.step("<bash>ls -R /tests /solution /opt</bash>").observation
        assert env.step("<finish>").reward == 0.0
