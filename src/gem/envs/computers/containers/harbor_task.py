"""Reads task folders of Harbor, as in schema version 1.4 of task.toml. A field is supported, or refused by its name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gem._internal.inbound import read_toml
from gem._internal.typed import check_keys
from gem.errors import BadValue

NETWORK_MODES = ("no-network", "public", "allowlist")
ARTIFACTS = "/logs/artifacts"  # always an artifact
_VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_SIZES = {"K": 1 / 1024, "M": 1, "G": 1024}


@dataclass(frozen=True, kw_only=True)
class Healthcheck:
    """When a container is ready: the command exits with 0. Times in seconds."""

    command: str
    interval_s: float = 5.0
    timeout_s: float = 30.0
    start_period_s: float = 0.0
    start_interval_s: float = 5.0
    retries: int = 3


@dataclass(frozen=True, kw_only=True)
class ContainerSettings:
    """A container: the folder with its Dockerfile, or an image. None means no limit, or that of the image.

    Args:
        network: "no-network", "public" or "allowlist".
    """

    folder: Path
    image: str | None = None
    build_timeout_s: float = 600.0
    environment: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    cpus: float | None = None
    memory_mb: int | None = None
    network: str = "public"
    skills: str | None = None
    healthcheck: Healthcheck | None = None


@dataclass(frozen=True, kw_only=True)
class CollectCommand:
    """A command that runs in the agent's container after the agent."""

    command: str
    timeout_s: float = 60.0
    user: str | None = None


@dataclass(frozen=True, kw_only=True)
class HarborTask:
    """A task folder.

    Args:
        container: of the agent.
        verifier: the separate container of the verifier; None if it shares that of the agent.
        bundled: whether the image of the verifier has the tests.
        agent_timeout_s: for all commands of an episode together. None means no limit.
        artifacts: paths that are copied to a separate verifier.
        notes: what has no effect here.
    """

    folder: Path
    name: str
    instruction: str
    container: ContainerSettings
    verifier: ContainerSettings | None = None
    bundled: bool = False
    agent_timeout_s: float | None = None
    agent_user: str | None = None
    agent_network: str = "public"
    verifier_timeout_s: float = 600.0
    verifier_environment: Mapping[str, str] = field(default_factory=dict)
    verifier_user: str | None = None
    verifier_network: str = "public"
    collect: tuple[CollectCommand, ...] = ()
    solution_environment: Mapping[str, str] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_harbor_task(folder: Path) -> HarborTask:
    """Read a task folder.

    Raises:
        BadValue: a field has a wrong value, or needs what is not supported here, or a file is missing; the message
            names it.
        UnknownArgument: the format has no such field.
        OSError: a file cannot be read.
    """
    file = folder / "task.toml"
    top = _Table(str(file), "", read_toml(file, extra="containers"))
    top.only("version schema_version task metadata agent verifier environment solution artifacts source steps "
             "multi_step_reward_strategy")  # fmt: skip
    version = str(top.get("schema_version", str, top.get("version", str, "1.0")))
    if version not in _VERSIONS:
        raise BadValue(f"{file}: schema_version {version!r} is not supported  ({', '.join(_VERSIONS)})")
    top.refuse("steps", "tasks of several steps are not supported")
    top.refuse("multi_step_reward_strategy", "tasks of several steps are not supported")
    about = top.table("task")
    about.only("name version description authors keywords")
    agent, verifier, solution = top.table("agent"), top.table("verifier"), top.table("solution")
    agent.only("timeout_sec user network_mode allowed_hosts")
    verifier.only("timeout_sec env user environment_mode environment collect network_mode allowed_hosts")
    solution.only("env")
    container = _container(top.table("environment"), folder / "environment")
    _need(folder / "instruction.md")
    if container.image is None:
        _need(container.folder / "Dockerfile")
    separate, bundled = _separate(verifier, folder, container)
    network = container.network
    return HarborTask(
        folder=folder,
        name=about.get("name", str, folder.name),
        instruction=_without_canary(_read(folder / "instruction.md")),
        container=container,
        verifier=separate,
        bundled=bundled,
        agent_timeout_s=agent.number("timeout_sec", None),
        agent_user=agent.user("user"),
        agent_network=agent.network(network),
        verifier_timeout_s=verifier.number("timeout_sec", 600.0) or 600.0,
        verifier_environment=verifier.variables("env"),
        verifier_user=verifier.user("user"),
        verifier_network=verifier.network(separate.network if separate else network),
        collect=tuple(_collect(entry) for entry in verifier.tables("collect")),
        solution_environment=solution.variables("env"),
        artifacts=_artifacts(top),
        notes=tuple(_without_effect(top)),
    )


def check_variable(where: str, name: str, value: str) -> None:
    """Raise BadValue if this cannot be a variable of the environment."""
    if not name or "=" in name or "\0" in name + value:
        raise BadValue(f"{where}.{name!r} cannot be a variable: no '=' in names, no NUL")


class _Table:
    """A table of task.toml. Its methods raise BadValue with the name of the field."""

    def __init__(self, file: str, name: str, data: Mapping[str, Any]) -> None:
        self.file, self.name, self.data = file, name, data

    def at(self, key: str) -> str:
        return f"{self.file}: {self.name}.{key}" if self.name else f"{self.file}: {key}"

    def only(self, known: str) -> None:
        check_keys(f"{self.file}: [{self.name}]" if self.name else self.file, self.data, known.split())

    def get(self, key: str, kind: type, default: Any) -> Any:
        value = self.data.get(key)
        if value is None:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise BadValue(f"{self.at(key)} must be of type {kind.__name__}, got {value!r}")
        return value

    def number(self, key: str, default: float | None) -> float | None:
        value = self.data.get(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            raise BadValue(f"{self.at(key)} must be a number above 0, got {value!r}")
        return float(value)

    def user(self, key: str) -> str | None:
        value = self.data.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int))):
            raise BadValue(f"{self.at(key)} must be a name or an id, got {value!r}")
        return None if value is None else str(value)

    def table(self, key: str) -> _Table:
        return _Table(self.file, f"{self.name}.{key}" if self.name else key, self.get(key, dict, {}))

    def tables(self, key: str) -> list[_Table]:
        entries = self.get(key, list, [])
        if wrong := [entry for entry in entries if not isinstance(entry, dict)]:
            raise BadValue(f"{self.at(key)} must be a list of tables, got {wrong[0]!r}")
        return [_Table(self.file, f"{self.name}.{key}", entry) for entry in entries]

    def variables(self, key: str) -> dict[str, str]:
        """Return environment variables; ${NAME} and ${NAME:-default} stand for those of the host."""
        found = {}
        for name, value in self.get(key, dict, {}).items():
            if not isinstance(value, str):
                raise BadValue(f"{self.at(key)}.{name} must be of type str, got {value!r}")
            check_variable(self.at(key), name, value)

            def variable(match: re.Match[str], name: str = name) -> str:
                known = os.environ.get(match[1], match[2])
                if known is None:
                    raise BadValue(f"{self.at(key)}.{name} needs the environment variable {match[1]}")
                return known

            found[name] = _VARIABLE.sub(variable, value)
        return found

    def network(self, default: str) -> str:
        mode = self.get("network_mode", str, None)
        if mode is None and self.data.get("allow_internet") is not None:
            mode = "public" if self.get("allow_internet", bool, True) else "no-network"
        if mode is not None and mode not in NETWORK_MODES:
            raise BadValue(f"{self.at('network_mode')} must be one of {', '.join(NETWORK_MODES)}, got {mode!r}")
        return mode or default

    def refuse(self, key: str, why: str) -> None:
        if self.data.get(key):
            raise BadValue(f"{self.at(key)}: {why}")


def _container(table: _Table, folder: Path) -> ContainerSettings:
    table.only(
        "build_timeout_sec cpus memory_mb memory storage_mb storage gpus gpu_types tpu docker_image allow_internet "
        "network_mode allowed_hosts env workdir healthcheck mcp_servers skills_dir os"
    )
    for key, why in (
        ("gpus", "containers have no GPU here"),
        ("gpu_types", "containers have no GPU here"),
        ("tpu", "containers have no TPU here"),
        ("mcp_servers", "MCP servers of a task are not supported"),
    ):
        table.refuse(key, why)
    if table.get("os", str, "linux").lower() != "linux":
        raise BadValue(f"{table.at('os')}: only linux is supported, got {table.data['os']!r}")
    if (folder / "docker-compose.yaml").exists():
        raise BadValue(f"{folder / 'docker-compose.yaml'}: tasks of several containers are not supported")
    image, workdir = table.get("docker_image", str, None), table.get("workdir", str, None)
    if workdir and not workdir.startswith("/"):
        raise BadValue(f"{table.at('workdir')} must be an absolute path, got {workdir!r}")
    memory = table.get("memory_mb", int, None)
    if memory is None and (size := table.get("memory", str, None)):
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?[KMG]", size.strip().upper()):
            raise BadValue(f"{table.at('memory')} must be a size such as 2G, got {size!r}")
        memory = int(float(size.strip()[:-1]) * _SIZES[size.strip()[-1].upper()])
    if memory is not None and memory < 1:
        raise BadValue(f"{table.at('memory_mb')} must be at least 1 MB, got {memory}")
    check = table.table("healthcheck")
    check.only("command interval_sec timeout_sec start_period_sec start_interval_sec retries")
    return ContainerSettings(
        folder=folder,
        image=image,
        build_timeout_s=table.number("build_timeout_sec", 600.0) or 600.0,
        environment=table.variables("env"),
        workdir=workdir,
        cpus=table.number("cpus", None),
        memory_mb=memory,
        network=table.network("public"),
        skills=table.get("skills_dir", str, None),
        healthcheck=_healthcheck(check) if check.data else None,
    )


def _healthcheck(table: _Table) -> Healthcheck:
    times = {}
    for name in ("interval_s", "timeout_s", "start_period_s", "start_interval_s"):
        value = table.data.get(key := f"{name}ec", getattr(Healthcheck, name))
        times[name] = 0.0 if value == 0 and value is not False else table.number(key, value) or 0.0
    return Healthcheck(command=_text(table, "command"), retries=table.get("retries", int, 3), **times)


def _separate(verifier: _Table, folder: Path, agent: ContainerSettings) -> tuple[ContainerSettings | None, bool]:
    """Return the container of a separate verifier, or None, and whether its image has the tests."""
    mode = verifier.get("environment_mode", str, "separate" if "environment" in verifier.data else "shared")
    if mode not in ("shared", "separate"):
        raise BadValue(f"{verifier.at('environment_mode')} must be shared or separate, got {mode!r}")
    bundled = mode == "separate" and (folder / "tests" / "Dockerfile").is_file()
    separate = None
    if "environment" in verifier.data:
        if mode == "shared":
            raise BadValue(f"{verifier.at('environment')} needs environment_mode 'separate'")
        separate = _container(verifier.table("environment"), folder / "tests")
        bundled = bundled or separate.image is not None
    if mode == "shared":
        _need(folder / "tests" / "test.sh")
        return None, False
    if (folder / "tests" / "docker-compose.yaml").exists():
        raise BadValue(f"{folder / 'tests' / 'docker-compose.yaml'}: tasks of several containers are not supported")
    values = vars(separate or agent)
    if not bundled:
        _need(folder / "tests" / "test.sh")
        return ContainerSettings(**{**values, "folder": agent.folder, "image": agent.image}), False
    image = separate.image if separate else None
    return ContainerSettings(**{**values, "folder": folder / "tests", "image": image}), True


def _collect(table: _Table) -> CollectCommand:
    table.only("command service timeout_sec user")
    if table.get("service", str, "main") != "main":
        raise BadValue(f"{table.at('service')}: tasks of several containers are not supported")
    timeout_s = table.number("timeout_sec", 60.0) or 60.0
    return CollectCommand(command=_text(table, "command"), timeout_s=timeout_s, user=table.user("user"))


def _artifacts(top: _Table) -> tuple[str, ...]:
    given = top.data.get("artifacts", [])
    entries = given if isinstance(given, list) else [given]
    found = []
    for entry in entries:
        if not isinstance(entry, (str, dict)):
            raise BadValue(f"{top.at('artifacts')} must be paths or tables with a source, got {entry!r}")
        table = _Table(top.file, "artifacts", {"source": entry} if isinstance(entry, str) else entry)
        table.only("source destination exclude service")
        table.refuse("exclude", "patterns of artifacts are not supported")
        if table.get("service", str, "main") != "main":
            raise BadValue(f"{table.at('service')}: tasks of several containers are not supported")
        source = _text(table, "source").rstrip("/")
        if not source or ".." in source.split("/"):
            raise BadValue(f"{table.at('source')} must name a file or folder without '..', got {source!r}")
        found.append(source)
    return tuple(dict.fromkeys([*found, ARTIFACTS]))


def _without_effect(top: _Table) -> Iterator[str]:
    """Yield what a task asks for and does not get here. Raises BadValue for values of a wrong type."""
    verifier = top.table("verifier")
    for table in (top.table("environment"), top.table("agent"), verifier, verifier.table("environment")):
        hosts = table.get("allowed_hosts", list, [])
        if wrong := [host for host in hosts if not isinstance(host, str)]:
            raise BadValue(f"{table.at('allowed_hosts')} must be a list of names, got {wrong[0]!r}")
        if hosts:
            yield f"{table.name}.allowed_hosts has no effect, as an allowlist is no network here"
        for key, kind in (("storage_mb", int), ("storage", str)):
            if table.get(key, kind, None) is not None:
                yield f"{table.name}.{key} is not enforced"
    given = top.data.get("artifacts", [])
    for entry in given if isinstance(given, list) else [given]:
        if isinstance(entry, dict) and entry.get("destination") is not None:
            yield f"artifacts.destination has no effect: {entry['destination']!r}"


def _text(table: _Table, key: str) -> str:
    value = table.get(key, str, "")
    if not value:
        raise BadValue(f"{table.at(key)} is missing")
    return str(value)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
        raise BadValue(f"{path} is not UTF-8: {e}") from e


def _need(path: Path) -> None:
    if not path.is_file():
        raise BadValue(f"{path} is missing")


def _without_canary(text: str) -> str:
    """Return an instruction without the lines at its start that mark it for filters of training data."""
    lines = text.splitlines(keepends=True)
    while lines and (not lines[0].strip() or ("canary" in lines[0].lower() and lines[0].lstrip()[:1] in "<#")):
        del lines[0]
    return "".join(lines)
