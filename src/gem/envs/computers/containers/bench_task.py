"""Reads task folders of Terminal-Bench 1. A field is supported, or refused by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gem._internal.inbound import SETTINGS, parse_python, read_text, read_yaml
from gem._internal.typed import check_keys
from gem.envs.computers.containers.harbor_task import check_variable
from gem.errors import BadValue

MARKER = "task.yaml"
HIDDEN = (MARKER, "run-tests.sh", "solution.sh", "solution.yaml", "tests", "docker-compose.yaml")  # not for the agent
_FIELDS = (
    "instruction author_name author_email difficulty category tags parser_name max_agent_timeout_sec "
    "max_test_timeout_sec run_tests_in_same_shell disable_asciinema estimated_duration_sec expert_time_estimate_min "
    "junior_time_estimate_min"
)
_SERVICE = "build image container_name command environment volumes working_dir"
_WAITS = (["sh", "-c", "sleep infinity"], "sleep infinity", 'sh -c "sleep infinity"', None)


@dataclass(frozen=True, kw_only=True)
class BenchTask:
    """A task folder.

    Args:
        tests: names of the tests, with the number of results that each has at least.
        image: finished image; None if the Dockerfile is built.
        same_shell: whether the tests run in the shell of the agent.
    """

    folder: Path
    instruction: str
    tests: Mapping[str, int]
    image: str | None
    workdir: str | None
    environment: Mapping[str, str]
    agent_timeout_s: float
    test_timeout_s: float
    same_shell: bool


def read_bench_task(folder: Path) -> BenchTask:
    """Read a task folder.

    Raises:
        BadValue: a field has a wrong value, or needs what is not supported here; the message names it.
        UnknownArgument: the format has no such field.
        OSError: a file is missing.
    """
    file = folder / MARKER
    data = _yaml(file)
    check_keys(str(file), data, _FIELDS.split())
    if (parser := data.get("parser_name", "pytest")) != "pytest":
        raise BadValue(f"{file}: parser_name {parser!r} is not supported  (pytest)")
    instruction = data.get("instruction")
    if not isinstance(instruction, str) or not instruction.strip():
        raise BadValue(f"{file}: instruction must be a text, got {instruction!r}")
    same_shell = data.get("run_tests_in_same_shell", False)
    if not isinstance(same_shell, bool):
        raise BadValue(f"{file}: run_tests_in_same_shell must be true or false, got {same_shell!r}")
    service = _service(folder)
    if not (folder / "run-tests.sh").is_file():
        raise BadValue(f"{folder / 'run-tests.sh'} is missing")
    has_dockerfile = (folder / "Dockerfile").is_file()
    if not has_dockerfile and ("build" in service or not service.get("image")):
        raise BadValue(f"{folder / 'Dockerfile'} is missing")
    tests = {name: count for path in sorted((folder / "tests").glob("test_*.py")) for name, count in collected(path)}
    if not tests:
        raise BadValue(f"{folder / 'tests'} has no test_*.py with tests")
    return BenchTask(
        folder=folder,
        instruction=instruction,
        tests=tests,
        image=None if has_dockerfile else service["image"],
        workdir=service.get("working_dir"),
        environment=_environment(folder, service.get("environment")),
        agent_timeout_s=_seconds(file, data, "max_agent_timeout_sec", 360.0),
        test_timeout_s=_seconds(file, data, "max_test_timeout_sec", 60.0),
        same_shell=same_shell,
    )


def collected(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the tests of a file and how many results each has at least, without running it.

    A test that is parametrized over a literal list has a result for each element. Generated tests are not found; those
    that are in the output have to pass as well.

    Raises:
        BadValue: the file is not Python, or is too long.
    """
    for node in parse_python(read_text(path, SETTINGS), str(path)).body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            for inner in node.body:
                if name := _test_name(inner):
                    yield f"{path.name}::{node.name}::{name}", _count(node) * _count(inner)
        elif name := _test_name(node):
            yield f"{path.name}::{name}", _count(node)


def _test_name(node: ast.stmt) -> str:
    """Return the name of a test function; "" if it is none."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
        return node.name
    return ""


def _count(node: Any) -> int:
    count = 1
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "attr", "") == "parametrize":
            values = decorator.args[1] if len(decorator.args) > 1 else None
            if isinstance(values, (ast.List, ast.Tuple)) and not any(isinstance(v, ast.Starred) for v in values.elts):
                count *= len(values.elts)
    return count


def solution_of(folder: Path) -> list[str] | None:
    """Return the commands of solution.yaml; None if there is solution.sh instead.

    Raises:
        BadValue: there is no solution, or it is no list of commands that end.
    """
    if (folder / "solution.sh").is_file():
        return None
    file = folder / "solution.yaml"
    if not file.is_file():
        raise BadValue(f"{folder} has neither solution.sh nor solution.yaml")
    steps = _yaml(file, list)
    for step in steps:
        if not isinstance(step, dict) or not isinstance(step.get("command"), str):
            raise BadValue(f"{file}: each step needs a command, got {step!r}")
        if not step.get("append_enter", True):
            raise BadValue(f"{file}: append_enter: keys are not supported")
    return [step["command"] for step in steps]


def _service(folder: Path) -> dict[str, Any]:
    """Return the only service of docker-compose.yaml; nothing if there is no such file."""
    file = folder / "docker-compose.yaml"
    if not file.is_file():
        return {}
    data = _yaml(file)
    services = _of_type(file, "services", data.get("services") or {}, dict)
    if len(services) != 1 or "client" not in services:
        names = ", ".join(map(str, services)) or "none"
        raise BadValue(f"{file}: services: only a task of one container, client, is supported, got {names}")
    service: dict[str, Any] = _of_type(file, "services.client", services["client"] or {}, dict)
    for key in service:
        if key not in _SERVICE.split():
            raise BadValue(f"{file}: services.client.{key} is not supported  ({', '.join(_SERVICE.split())})")
    if service.get("command") not in _WAITS:
        raise BadValue(f"{file}: services.client.command must be 'sleep infinity', got {service['command']!r}")
    build = service.get("build")
    context = build.get("context", ".") if isinstance(build, dict) else build or "."
    dockerfile = build.get("dockerfile", "Dockerfile") if isinstance(build, dict) else "Dockerfile"
    if str(context).rstrip("/") != "." or dockerfile != "Dockerfile":
        raise BadValue(f"{file}: services.client.build must be the Dockerfile of the folder, got {build!r}")
    for key in ("image", "working_dir"):
        _of_type(file, f"services.client.{key}", service.get(key) or "", str)
    for volume in _of_type(file, "services.client.volumes", service.get("volumes") or [], list):
        if not str(volume).startswith("${T_BENCH_TASK_"):
            raise BadValue(f"{file}: services.client.volumes: only those of logs are supported, got {volume!r}")
    return service


def _environment(folder: Path, given: Any) -> dict[str, str]:
    """Return the variables of a service, without those that the harness of the format sets."""
    file, where = folder / "docker-compose.yaml", "services.client.environment"
    if isinstance(given, list):
        given = dict(_of_type(file, where, item, str).partition("=")[::2] for item in given)
    pairs = _of_type(file, where, given or {}, dict)
    found = {}
    for name, value in pairs.items():
        text = "" if value is None else str(value).replace("${T_BENCH_TEST_DIR}", "/tests")
        if "$" in text and "T_BENCH" not in text:
            raise BadValue(f"{file}: {where}.{name} depends on the host")
        check_variable(f"{file}: {where}", str(name), text)
        if "$" not in text:
            found[str(name)] = text
    return found


def _of_type(file: Path, where: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise BadValue(f"{file}: {where} must be of type {kind.__name__}, got {value!r}")
    return value


def _seconds(file: Path, data: Mapping[str, Any], key: str, default: float) -> float:
    value = data.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise BadValue(f"{file}: {key} must be a number above 0, got {value!r}")
    return float(value)


def _yaml(file: Path, kind: type = dict) -> Any:
    data = read_yaml(file, extra="containers")
    if not isinstance(data, kind):
        raise BadValue(f"{file} must hold a {kind.__name__}, got {type(data).__name__}")
    if isinstance(data, dict) and (wrong := [key for key in data if not isinstance(key, str)]):
        raise BadValue(f"{file}: keys are names, got {wrong[0]!r}")
    return data
