"""Task folders of Harbor: what is read, and what is refused by name."""

import sys
from pathlib import Path

import pytest

from gem.envs.computers.containers.harbor_task import read_harbor_task
from gem.errors import BadValue, CallerError

if sys.version_info < (3, 11):
    pytest.importorskip("tomli")

TASKS = Path(__file__).parent / "tasks" / "harbor"


def folder_with(tmp_path, toml, **files):
    found = {"task.toml": toml, "instruction.md": "Do it.\n", "tests/test.sh": "#!/bin/sh\n"}
    found |= {"environment/Dockerfile": "FROM ubuntu:24.04\n", **files}
    for name, text in found.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("folder", sorted(path.parent for path in TASKS.rglob("task.toml")), ids=lambda f: f.name)
def test_the_folders_of_the_tests_can_be_read(folder):
    task = read_harbor_task(folder)
    assert task.name == f"gem/{folder.name}" and "canary" not in task.instruction


def test_an_empty_file_has_the_defaults_of_the_format(tmp_path):
    task = read_harbor_task(folder_with(tmp_path, ""))
    assert task.name == tmp_path.name and task.instruction == "Do it.\n"
    assert (task.verifier, task.agent_timeout_s, task.verifier_timeout_s) == (None, None, 600.0)
    assert task.container.network == "public" and task.artifacts == ("/logs/artifacts",)


def test_settings_are_read(monkeypatch):
    monkeypatch.delenv("GEM_TEST_GREETING", raising=False)
    task = read_harbor_task(TASKS / "settings")
    container = task.container
    assert (container.cpus, container.memory_mb, container.workdir) == (1.0, 512, "/srv")
    assert container.environment == {"GREETING": "good day"} and container.healthcheck.interval_s == 0.5
    assert task.notes == ("environment.storage_mb is not enforced",)
    monkeypatch.setenv("GEM_TEST_GREETING", "hi")
    assert read_harbor_task(TASKS / "settings").container.environment == {"GREETING": "hi"}


def test_a_separate_verifier_has_an_image_of_its_own_or_a_copy():
    bundled, copied = read_harbor_task(TASKS / "separate-image"), read_harbor_task(TASKS / "separate-copy")
    assert bundled.bundled and bundled.verifier.folder.name == "tests" and bundled.verifier.network == "no-network"
    assert not copied.bundled and copied.verifier.folder.name == "environment"
    assert copied.artifacts == ("/app/sum.txt", "/logs/artifacts")


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[environment]\ngpus = 1", "environment.gpus"),
        ('[environment]\ntpu = {type = "v6e", topology = "2x2"}', "environment.tpu"),
        ('[environment]\nos = "windows"', "environment.os"),
        ('[[environment.mcp_servers]]\nname = "x"', "environment.mcp_servers"),
        ('[environment]\nnetwork_mode = "some"', "environment.network_mode"),
        ('[environment]\ncpus = "two"', "environment.cpus"),
        ("[environment]\nmemory = '2 apples'", "environment.memory"),
        ("[environment]\nenv = { A = 1 }", "environment.env.A"),
        ("[environment]\nenv = { A = '${GEM_NO_SUCH}' }", "GEM_NO_SUCH"),
        ("[environment.healthcheck]\nretries = 2", "healthcheck.command"),
        ("[environment]\ndisk = 3", "disk"),
        ("[agent]\ntimeout_sec = -1", "agent.timeout_sec"),
        ("[agent]\nuser = true", "agent.user"),
        ('[verifier]\nenvironment_mode = "both"', "verifier.environment_mode"),
        ('[verifier]\nenvironment_mode = "shared"\n[verifier.environment]\ncpus = 1', "verifier.environment"),
        ('[[verifier.collect]]\ncommand = "x"\nservice = "db"', "collect.service"),
        ('[[steps]]\nname = "one"', "steps"),
        ('artifacts = [{ source = "/a", service = "db" }]', "artifacts.service"),
        ('artifacts = [{ source = "/a", exclude = ["*.o"] }]', "artifacts.exclude"),
        ('artifacts = ["/a/../b"]', "artifacts.source"),
        ('schema_version = "9.0"', "schema_version"),
        ("[task]\nauthor = 'me'", "author"),
        ("[environment", "not TOML"),
        ("artifacts = 5", "task.toml: artifacts"),
        ("artifacts = [5]", "task.toml: artifacts"),
        ("[environment]\nmemory = '..G'", "environment.memory"),
        ("[environment]\nmemory_mb = -1", "environment.memory_mb"),
        ("[environment]\nenv = { 'A=B' = 'x' }", "environment.env.'A=B'"),
        ('[environment]\nenv = { A = "\\u0000" }', "environment.env.'A'"),
        ("[environment.healthcheck]\ncommand = 'x'\ninterval_sec = '5'", "healthcheck.interval_sec"),
        ("[environment.healthcheck]\ncommand = 'x'\ninterval_sec = -1", "healthcheck.interval_sec"),
        ("[verifier]\ncollect = [5]", "verifier.collect"),
        ('[environment]\nworkdir = "app"', "environment.workdir"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(tmp_path, toml, words):
    with pytest.raises(CallerError, match=words.replace(".", r"\.")):
        read_harbor_task(folder_with(tmp_path, toml))


@pytest.mark.parametrize("place", ["environment", "tests"])
def test_tasks_of_several_containers_are_refused(tmp_path, place):
    toml = '[verifier]\nenvironment_mode = "separate"'
    folder = folder_with(tmp_path, toml, **{f"{place}/docker-compose.yaml": "services: {}\n"})
    with pytest.raises(BadValue, match="docker-compose"):
        read_harbor_task(folder)


def test_an_instruction_that_is_not_utf8_is_refused_by_name(tmp_path):
    folder = folder_with(tmp_path, "")
    (folder / "instruction.md").write_bytes(b"\xff")
    with pytest.raises(BadValue, match=r"instruction\.md is not UTF-8"):
        read_harbor_task(folder)


@pytest.mark.parametrize("name", ["tests/test.sh", "instruction.md", "environment/Dockerfile"])
def test_a_task_without_one_of_its_files_is_refused(tmp_path, name):
    folder = folder_with(tmp_path, "")
    (folder / name).unlink()
    with pytest.raises(BadValue, match=f"{name} is missing"):
        read_harbor_task(folder)


def test_a_finished_image_needs_no_dockerfile(tmp_path):
    folder = folder_with(tmp_path, '[environment]\ndocker_image = "ubuntu:24.04"')
    (folder / "environment" / "Dockerfile").unlink()
    assert read_harbor_task(folder).container.image == "ubuntu:24.04"
