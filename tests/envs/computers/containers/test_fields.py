"""Every field of the formats of Harbor and Terminal-Bench has an effect, or is refused by its name, or is known to
describe the task only."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gem.envs.computers.containers.bench_task import read_bench_task
from gem.envs.computers.containers.harbor_task import read_harbor_task
from gem.errors import BadValue, UnknownArgument

DESCRIBES, REFUSED, NOTED = "describes", "refused", "noted"
# Field of a table of task.toml → a value and what it does.
CONTAINER = {
    "build_timeout_sec": "7",
    "cpus": "2",
    "memory_mb": "100",
    "memory": '"1G"',
    "storage_mb": ("5", NOTED),
    "storage": ('"5G"', NOTED),
    "gpus": ("1", REFUSED),
    "gpu_types": ('["H100"]', REFUSED),
    "tpu": ('{ type = "v6e" }', REFUSED),
    "docker_image": '"debian:12"',
    "allow_internet": "false",
    "network_mode": '"no-network"',
    "allowed_hosts": ('["pypi.org"]', NOTED),
    "env": '{ A = "1" }',
    "workdir": '"/srv"',
    "healthcheck": '{ command = "true" }',
    "mcp_servers": ('[{ name = "x", transport = "stdio", command = "y" }]', REFUSED),
    "skills_dir": '"/skills"',
    "os": ('"windows"', REFUSED),
}
HEALTHCHECK = {
    "command": '"false"',
    **{key: "9" for key in ("interval_sec", "timeout_sec", "start_period_sec", "start_interval_sec", "retries")},
}
TABLES = {
    "": {
        "version": ('"1.1"', DESCRIBES),
        "schema_version": ('"1.3"', DESCRIBES),
        "task": '{ name = "org/other" }',
        "metadata": ("{ anything = [1] }", DESCRIBES),
        "agent": "{ timeout_sec = 5 }",
        "verifier": "{ timeout_sec = 5 }",
        "environment": "{ cpus = 2 }",
        "solution": '{ env = { A = "1" } }',
        "artifacts": '["/app/x"]',
        "source": ('"somewhere"', DESCRIBES),
        "steps": ('[{ name = "one", min_reward = 0.5 }]', REFUSED),
        "multi_step_reward_strategy": ('"mean"', REFUSED),
    },
    "task": {
        "name": '"org/other"',
        "version": ('"1.0"', DESCRIBES),
        "description": ('"words"', DESCRIBES),
        "authors": ('[{ name = "A" }]', DESCRIBES),
        "keywords": ('["words"]', DESCRIBES),
    },
    "agent": {
        "timeout_sec": "5",
        "user": '"nobody"',
        "network_mode": '"no-network"',
        "allowed_hosts": ('["pypi.org"]', NOTED),
    },
    "verifier": {
        "timeout_sec": "5",
        "env": '{ A = "1" }',
        "user": "1000",
        "environment_mode": '"separate"',
        "environment": "{ cpus = 2 }",
        "collect": '[{ command = "true" }]',
        "network_mode": '"no-network"',
        "allowed_hosts": ('["pypi.org"]', NOTED),
    },
    "solution": {"env": '{ A = "1" }'},
    "environment": CONTAINER,
    "verifier.environment": CONTAINER,
    "environment.healthcheck": HEALTHCHECK,
    "verifier.environment.healthcheck": HEALTHCHECK,
    "verifier.collect": {
        "command": '"false"',
        "service": ('"db"', REFUSED),
        "timeout_sec": "5",
        "user": '"nobody"',
    },
    "artifacts": {
        "source": '"/app/other"',
        "destination": ('"x"', NOTED),
        "exclude": ('["*.o"]', REFUSED),
        "service": ('"db"', REFUSED),
    },
}
LISTS = ("verifier.collect", "artifacts")
NEEDED = {  # of tables in which a field is missing otherwise
    "environment.healthcheck": 'command = "true"',
    "verifier.environment.healthcheck": 'command = "true"',
    "verifier.collect": 'command = "true"',
    "artifacts": 'source = "/app/x"',
}
FIELDS = [(table, key) for table, fields in TABLES.items() for key in fields]


@pytest.fixture
def harbor(tmp_path):
    """A function that reads a folder with a text as task.toml."""
    if sys.version_info < (3, 11):
        pytest.importorskip("tomli")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test.sh").write_text("#!/bin/sh\n")
    (tmp_path / "instruction.md").write_text("Do it.\n")
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment" / "Dockerfile").write_text("FROM debian:12\n")

    def read(text):
        (tmp_path / "task.toml").write_text(text)
        return read_harbor_task(tmp_path)

    return read


def toml(table, line):
    """Return a task.toml with a line in a table, which may replace the line that the table needs."""
    needed = NEEDED.get(table, "")
    lines = [needed] if needed.split(" = ")[0] != line.split(" = ")[0] else []
    header = f"[[{table}]]" if table in LISTS else f"[{table}]" if table else ""
    return "\n".join([header, *lines, line])


@pytest.mark.parametrize(("table", "key"), FIELDS, ids=lambda name: name or "top")
def test_a_field_of_task_toml_has_an_effect_or_is_refused_by_its_name(harbor, table, key):
    given = TABLES[table][key]
    value, effect = given if isinstance(given, tuple) else (given, "")
    text, name = toml(table, f"{key} = {value}"), f"{table}.{key}" if table else key
    if effect == REFUSED:
        with pytest.raises(BadValue, match=rf"task\.toml: {re.escape(name)}\b"):
            harbor(text)
        return
    before, after = harbor(toml(table, "")), harbor(text)
    noted = any(re.search(rf"\b{re.escape(name)} (is not enforced|has no effect)", note) for note in after.notes)
    assert noted == (effect == NOTED)
    assert (replace(before, notes=()) == replace(after, notes=())) == (effect in (NOTED, DESCRIBES))


@pytest.mark.parametrize("table", TABLES, ids=lambda name: name or "top")
def test_the_fields_of_a_table_are_all_tested_and_no_other_is_accepted(harbor, table):
    with pytest.raises(UnknownArgument, match="unknown key 'qqq'") as caught:
        harbor(toml(table, "qqq = 1"))
    assert set(re.search(r"\(keys: (.*)\)", str(caught.value))[1].split(", ")) == set(TABLES[table])


def test_a_field_of_the_wrong_type_is_refused_by_its_name(harbor):
    for line in ("allowed_hosts = 5", "allowed_hosts = [5]", "storage_mb = 'x'", "storage = 5"):
        with pytest.raises(BadValue, match=rf"environment\.{line.split(' ')[0]} must be"):
            harbor(f"[environment]\n{line}")


# ---- Terminal-Bench 1

BENCH = {
    "instruction": ('"Do something else."', ""),
    "author_name": ('"A"', DESCRIBES),
    "author_email": ('"a@example.org"', DESCRIBES),
    "difficulty": ('"hard"', DESCRIBES),
    "category": ('"files"', DESCRIBES),
    "tags": ('["x"]', DESCRIBES),
    "parser_name": ('"swebench"', REFUSED),
    "max_agent_timeout_sec": ("5", ""),
    "max_test_timeout_sec": ("5", ""),
    "run_tests_in_same_shell": ("true", ""),
    "disable_asciinema": ("true", DESCRIBES),
    "estimated_duration_sec": ("5", DESCRIBES),
    "expert_time_estimate_min": ("5", DESCRIBES),
    "junior_time_estimate_min": ("5", DESCRIBES),
}
CLIENT = {
    "build": ('{ context: "..", dockerfile: Dockerfile }', REFUSED),
    "image": ('"debian:12"', ""),
    "container_name": ('"${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}"', DESCRIBES),
    "command": ('"nginx"', REFUSED),
    "environment": ("[TEST_DIR=/tests]", ""),
    "volumes": ('["/:/host"]', REFUSED),
    "working_dir": ('"/srv"', ""),
}
PLAIN = 'instruction: "Do it."\n'


@pytest.fixture
def bench(tmp_path):
    """A function that reads a folder with texts as task.yaml and docker-compose.yaml."""
    pytest.importorskip("yaml")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_outputs.py").write_text("def test_one(): ...\n")
    (tmp_path / "run-tests.sh").write_text("")
    (tmp_path / "Dockerfile").write_text("FROM debian:12\n")

    def read(text=PLAIN, client="{}"):
        if "image:" in client:  # a folder with a Dockerfile is built
            Path(tmp_path, "Dockerfile").unlink()
        Path(tmp_path, "task.yaml").write_text(text)
        Path(tmp_path, "docker-compose.yaml").write_text(f"services: {{ client: {client} }}\n")
        return read_bench_task(tmp_path)

    return read


@pytest.mark.parametrize("key", [*BENCH, *CLIENT])
def test_a_field_of_terminal_bench_has_an_effect_or_is_refused_by_its_name(bench, key):
    value, effect = BENCH.get(key) or CLIENT[key]
    line, text = f"{key}: {value}", "" if key == "instruction" else PLAIN
    arguments = {"text": f"{text}{line}\n"} if key in BENCH else {"client": f"{{ {line} }}"}
    if effect == REFUSED:
        with pytest.raises(BadValue, match=rf"\b{key}\b"):
            bench(**arguments)
    else:
        assert (bench() == bench(**arguments)) == (effect == DESCRIBES)


def test_the_fields_of_terminal_bench_are_all_tested_and_no_other_is_accepted(bench):
    with pytest.raises(UnknownArgument, match="unknown key 'qqq'") as caught:
        bench(f"{PLAIN}qqq: 1\n")
    assert set(re.search(r"\(keys: (.*)\)", str(caught.value))[1].split(", ")) == set(BENCH)
    with pytest.raises(BadValue, match=r"services\.client\.qqq .*not supported") as refused:
        bench(client="{ qqq: 1 }")
    assert set(re.search(r"\((.*)\)", str(refused.value))[1].split(", ")) == set(CLIENT)
