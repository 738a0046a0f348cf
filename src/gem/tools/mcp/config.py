"""Parse the configuration of MCP servers.

A configuration is a URL, a command, a dict with the settings of one server, or the configuration of another MCP client
as a dict or JSON file: ``{"mcpServers": {name: …}}`` (Claude Desktop, Claude Code, Cursor, Copilot) or
``{"servers": {name: …}}`` (VS Code). Fields that do not affect the connection (``autoApprove``, ``description``, …) are
ignored.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlsplit

from gem._internal.inbound import SETTINGS, loads, read_text
from gem.errors import BadInput, BadValue, did_you_mean

Transport = Literal["stdio", "http", "sse"]
Source: TypeAlias = "str | Path | Sequence[str] | Mapping[str, Any]"

LISTS = ("mcpServers", "servers")
TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
_SECRET_LENGTH = 4  # shorter values of variables, such as a port, are not replaced in messages
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
# Group 1 is a string literal. What is not closed reaches to the end of the file, so that it is not tried at each place.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*(?:"|\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*(?:"|\Z))|,(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True)
class ClientOptions:
    """Options of all sessions of an MCPTool. MCPTool documents them."""

    auth: Any
    headers: tuple[tuple[str, str], ...]
    log_handler: Callable[..., Any] | None
    progress_handler: Callable[..., Any] | None
    sampling_handler: Callable[..., Any] | None
    elicitation_handler: Callable[..., Any] | None
    max_retries: int
    delay: float
    timeout: float
    connect_timeout: float
    protocol: str
    max_chars: int
    vision: bool
    audio: bool


@dataclass(frozen=True)
class ServerConfig:
    """Connection settings of one server.

    Args:
        name: name of the server in error messages, and prefix of its tool names.
        transport: "stdio" starts a server process per session; "http" and "sse" connect to a URL.
        command, args, env, cwd: command line, environment variables and working directory of the server process, for
            "stdio". The SDK adds ``env`` to its minimal default environment.
        url, headers: URL of the server and headers of every request, for "http" and "sse".
        timeout: seconds per call; None for the timeout of the MCPTool.
        secrets: (value, variable) of the environment variables that the configuration uses.

    The fields that may contain secrets are not part of the repr, and a ServerConfig cannot be pickled.
    """

    name: str
    transport: Transport
    command: str = field(default="", repr=False)
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    timeout: float | None = None
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def redact(self, text: str) -> str:
        """Replace the values of environment variables in a message with the names of the variables."""
        for value, variable in sorted(self.secrets, key=lambda secret: -len(secret[0])):
            for written in (value, quote(value, safe=""), quote(value)):
                text = text.replace(written, f"${{{variable}}}")
        return text

    def __reduce__(self) -> Any:
        raise TypeError("a ServerConfig may contain secrets and cannot be pickled; pickle the MCPTool instead")


def read_servers(source: Source) -> tuple[ServerConfig, ...]:
    """Return the enabled servers in a configuration: a URL, a command, a dict or a JSON file.

    Raises:
        BadValue: the configuration is invalid or contains no enabled server, a command is not installed, or a variable
            in the configuration has no value.

    >>> [server.name for server in read_servers({"mcpServers": {"a": {"url": "http://localhost:1/mcp"}}})]
    ['a']
    >>> read_servers("http://localhost:8000/sse")[0].transport
    'sse'
    """
    if isinstance(source, Mapping):
        return _from_mapping(source, Path.cwd())
    if isinstance(source, str) and re.match(r"https?://", source):
        return (_server("server", {"url": source}, None),)
    if isinstance(source, Path) or (isinstance(source, str) and re.fullmatch(r"\S*\.json", source)):
        return _from_file(Path(source))
    if isinstance(source, (str, Sequence)) and source and all(isinstance(word, str) for word in source):
        words = _split(source) if isinstance(source, str) else list(source)
        return (_server("server", {"command": words[0], "args": words[1:]}, None),)
    raise BadValue(f"an MCP server must be a URL, a command, a configuration dict or a JSON file, got {source!r}")


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as e:
        raise BadValue(f"cannot parse the command {command!r}: {e}") from e
    if not words:
        raise BadValue("the command of an MCP server is empty")
    return words


def _from_file(path: Path) -> tuple[ServerConfig, ...]:
    try:
        written = read_text(path, SETTINGS).removeprefix("\ufeff")
        for ignored in (_COMMENT, _LAST_COMMA):  # VS Code accepts comments and trailing commas
            written = ignored.sub(lambda match: match[1] or "", written)
        config = loads(written, str(path), SETTINGS)
    except OSError as e:
        raise BadValue(f"cannot read the MCP configuration {path}: {e.strerror}") from e
    except BadInput as e:
        raise BadValue(f"the MCP configuration {e}") from e
    if not isinstance(config, dict):
        raise BadValue(f"the MCP configuration {path} must be an object with 'mcpServers' or 'servers'")
    folder = path.absolute().parent
    return _from_mapping(config, folder.parent if folder.name == ".vscode" else folder)


def _from_mapping(config: Mapping[str, Any], folder: Path) -> tuple[ServerConfig, ...]:
    named = next((config[key] for key in LISTS if key in config), None)
    if named is None and ("command" in config or "url" in config):
        return (_server(str(config.get("name", "server")), config, folder),)
    if named is None:
        named = config
    if not isinstance(named, Mapping) or not all(isinstance(one, Mapping) for one in named.values()):
        raise BadValue(
            f"an MCP configuration must have 'mcpServers', 'servers', 'command' or 'url', got {sorted(config)}"
        )
    servers = tuple(_server(name, one, folder) for name, one in named.items() if not one.get("disabled"))
    if not servers:
        raise BadValue("the MCP configuration contains no enabled server")
    return servers


def _server(name: str, config: Mapping[str, Any], folder: Path | None) -> ServerConfig:
    variables = _Variables(folder)
    return replace(_read_server(name, config, variables.expand), secrets=tuple(variables.secrets.items()))


def _read_server(name: str, config: Mapping[str, Any], expand: Callable[[str], str]) -> ServerConfig:
    transport = _transport(name, config)
    timeout = config.get("timeout")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0):
        raise BadValue(f"MCP server {name!r}: timeout must be a positive number of milliseconds, got {timeout!r}")
    seconds = None if timeout is None else timeout / 1000
    if transport != "stdio":
        headers = _texts(name, "headers", config, expand)
        url = expand(_text(name, "url", config))
        _check_url(name, url, config["url"])
        return ServerConfig(name, transport, url=url, headers=headers, timeout=seconds)
    args = config.get("args") or []
    if isinstance(args, str) or not all(isinstance(word, str) for word in args):
        raise BadValue(f"MCP server {name!r}: args must be a list of strings, got {args!r}")
    env = _env_file(name, config, expand) | _texts(name, "env", config, expand)
    cwd = expand(_text(name, "cwd", config)) if config.get("cwd") else None
    command = expand(_text(name, "command", config))
    _check_installed(name, command, env, cwd, config["command"])
    return ServerConfig(name, transport, command, tuple(expand(word) for word in args), env, cwd, timeout=seconds)


def _transport(name: str, config: Mapping[str, Any]) -> Transport:
    said = next((config[key] for key in ("type", "transport", "transportType") if config.get(key)), None)
    if said is None:
        if "url" not in config:
            return "stdio"
        return "sse" if re.search(r"/sse/?($|[?#])", str(config["url"])) else "http"
    transport = TRANSPORTS.get(str(said).lower())
    if transport is None:
        hint = did_you_mean(str(said), TRANSPORTS)
        raise BadValue(f"MCP server {name!r}: unknown transport {said!r}{hint}  (available: stdio, http, sse)")
    return transport


def _text(name: str, key: str, config: Mapping[str, Any]) -> str:
    value = config.get(key)
    if not isinstance(value, str) or not value:
        raise BadValue(f"MCP server {name!r}: {key!r} must be a non-empty string, got {value!r}")
    return value


def _check_url(name: str, url: str, written: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError:  # for example, unbalanced brackets in the host name
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadValue(f"MCP server {name!r}: a URL must look like http://localhost:8000/mcp, got {written!r}")


def _texts(name: str, key: str, config: Mapping[str, Any], expand: Callable[[str], str]) -> dict[str, str]:
    values = config.get(key) or {}
    if not isinstance(values, Mapping):
        raise BadValue(f"MCP server {name!r}: {key!r} must map names to strings, got {values!r}")
    return {str(word): expand(str(value)) for word, value in values.items() if value is not None}


def _env_file(name: str, config: Mapping[str, Any], expand: Callable[[str], str]) -> dict[str, str]:
    """Read VS Code's ``envFile``: lines ``NAME=value`` with an optionally quoted value; lines with # are comments."""
    if not config.get("envFile"):
        return {}
    path = expand(_text(name, "envFile", config))
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as e:
        raise BadValue(f"MCP server {name!r}: cannot read the envFile {config['envFile']}: {e.strerror}") from e
    pairs = [line.strip().removeprefix("export ").partition("=") for line in lines if not line.strip().startswith("#")]
    return {word.strip(): value.strip().strip("\"'") for word, equals, value in pairs if equals}


def _check_installed(name: str, command: str, env: Mapping[str, str], cwd: str | None, written: str) -> None:
    if os.sep in command:
        found = os.access(os.path.join(cwd or "", command), os.X_OK)
    else:
        found = shutil.which(command, path=env.get("PATH")) is not None
    if not found:
        raise BadValue(f"MCP server {name!r}: the command {written!r} is not installed")


class _Variables:
    """Substitutes ``${VAR}``, ``${VAR:-default}``, ``${env:VAR}``, ``${workspaceFolder}`` and ``${userHome}``.

    Args:
        folder: the workspace; None to substitute nothing.

    Attributes:
        secrets: values of the environment variables that were substituted, with the names of the variables.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.secrets: dict[str, str] = {}

    def expand(self, text: str) -> str:
        return text if self._folder is None else _VARIABLE.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        word, has_default, default = match[1].partition(":-")
        word = word.removeprefix("env:")
        if word.startswith("input:"):
            raise BadValue(f"{match[0]} asks the user for a value; use an environment variable ${{NAME}} instead")
        if word in ("workspaceFolder", "userHome"):
            return str(self._folder if word == "workspaceFolder" else Path.home())
        found = os.environ.get(word)
        if has_default and not found:
            return default
        if found is None:
            raise BadValue(f"the MCP configuration uses {match[0]}, but {word} is not set in the environment")
        if len(found) >= _SECRET_LENGTH:
            self.secrets[found] = word
        return found
