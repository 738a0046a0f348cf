"""MCPTool: call the tools of MCP servers, one tool over one or several servers. Requires the extra [mcp].

MCPTool("python -m gem.tools.mcp.time_server")     a command: each MCPTool starts its own server process
MCPTool("http://localhost:8000/mcp")                   a running server
MCPTool("mcp.json")                                    a configuration file of Claude Desktop, VS Code and others
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import re
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gem._internal.counts import check_count
from gem.errors import BadValue, ToolError, require
from gem.messages import ToolCall, ToolResult
from gem.tools.arguments import Validator
from gem.tools.base_tool import BaseTool, Function, unknown_tool
from gem.tools.formats.base import escape_response
from gem.tools.mcp.config import ClientOptions, Source, read_servers
from gem.tools.mcp.schema import schema_error, schema_validator

if TYPE_CHECKING:
    from mcp import StdioServerParameters

    from gem.tools.mcp.client import MCPClient

Prefix = Literal["several", "collision", "always"]
MAX_TOOLS_CHARS = 400_000  # of the descriptions and schemas of a server, about 100,000 tokens of each prompt
_NAME_LENGTH = 64

log = logging.getLogger(__name__)


class ListedTool(NamedTuple):
    """A tool of a server, and the corresponding Function with the name that the agent uses."""

    server: str
    tool: str
    function: Function


class MCPTool(BaseTool):
    """Call the tools of one or several MCP servers.

    A session with a server is opened on first use. It ends when close() is called, when the MCPTool is
    garbage-collected, or when the process exits. If a server dies during a call, it is restarted, and the result of the
    call is an error. Unless ``shared``, so is the result of the next call if a server that was called in this episode
    has died since, because the state of the server is lost. ToolError is raised if a server cannot be restarted.

    All handlers may be coroutine functions. Handlers that are plain functions run on a thread.

    Args:
        config: a URL (ending in /sse for a server that uses server-sent events), a command as a string or list, a
            configuration dict, or the path of a JSON file with ``mcpServers`` or ``servers``.
        auth: a bearer token or an httpx2.Auth, for servers over HTTP.
        headers: headers to send with every request, for servers over HTTP.
        log_handler: called with the SDK's LoggingMessageNotificationParams for each log message of a server.
        progress_handler: called with progress, total (or None) and message (or None) for each progress report.
        sampling_handler: called with the SDK's request context and CreateMessageRequestParams; returns a
            CreateMessageResult. None if servers may not request sampling.
        elicitation_handler: called with the SDK's request context and ElicitRequestParams; returns an ElicitResult.
            None if servers may not ask for input.
        max_retries: maximum number of further attempts if connecting fails. A call that a server may have executed is
            not sent again.
        delay_between_retries: seconds between two attempts to connect.
        execution_timeout: seconds per call. The ``timeout`` (in milliseconds) of a server in the configuration takes
            precedence.
        connect_timeout: seconds per attempt to connect, including the start of a server process.
        validate_on_init: connect in the constructor, so that a failing server raises ToolError here and not during an
            episode.
        shared: share sessions among all MCPTools of this process with the same servers and settings. Use this only if
            the servers keep no state between calls. If False, each MCPTool, and so each environment, has its own
            sessions.
        fresh_per_episode: open new sessions for each episode. If False, a server may keep state from one episode to
            the next.
        prefix: when a tool's name begins with the server's: with "several" if there are several servers, with
            "collision" if another tool has the same name, or "always".
        protocol: "auto" negotiates the protocol version; "legacy" requires a version before 2026, in which servers over
            HTTP have sessions and can keep state.
        max_chars: maximum number of characters of a result; the rest is omitted.
        vision: whether the model sees images; needs the extra [vision]. If False, images are only described.
        audio: whether the model takes audio as input. If False, a sentence describes it instead.

    Raises:
        BadValue: an argument or the configuration is invalid.
        ToolError: with validate_on_init, a server failed or the servers provide no tools.
    """

    tool_type = "mcp"

    def __init__(
        self,
        config: Source,
        auth: Any = None,
        headers: Mapping[str, str] | None = None,
        log_handler: Callable[..., Any] | None = None,
        progress_handler: Callable[..., Any] | None = None,
        sampling_handler: Callable[..., Any] | None = None,
        max_retries: int = 3,
        delay_between_retries: float = 1.0,
        execution_timeout: float = 30.0,
        validate_on_init: bool = True,
        num_workers: int = 1,
        *,
        elicitation_handler: Callable[..., Any] | None = None,
        connect_timeout: float = 60.0,
        shared: bool = False,
        fresh_per_episode: bool = False,
        prefix: Prefix = "several",
        protocol: Literal["auto", "legacy"] = "auto",
        max_chars: int = 20_000,
        vision: bool = False,
        audio: bool = False,
    ) -> None:
        super().__init__(num_workers)
        check_count("max_retries", max_retries, 0)
        check_count("max_chars", max_chars)
        if not (delay_between_retries >= 0 and execution_timeout > 0 < connect_timeout):
            raise BadValue(
                "delay_between_retries must not be negative and timeouts must be positive; "
                f"got {delay_between_retries=}, {execution_timeout=}, {connect_timeout=}"
            )
        if shared and fresh_per_episode:
            raise BadValue("fresh_per_episode opens sessions per episode and cannot be combined with shared")
        self.servers = read_servers(config)
        require("mcp", extra="mcp")
        self.concurrent = shared
        self._shared, self._fresh, self._prefix = shared, fresh_per_episode, prefix
        self._options = ClientOptions(
            auth=auth,
            headers=tuple((headers or {}).items()),
            log_handler=log_handler,
            progress_handler=progress_handler,
            sampling_handler=sampling_handler,
            elicitation_handler=elicitation_handler,
            max_retries=max_retries,
            delay=delay_between_retries,
            timeout=execution_timeout,
            connect_timeout=connect_timeout,
            protocol=protocol,
            max_chars=max_chars,
            vision=vision,
            audio=audio,
        )
        self._client: MCPClient | None = None
        self._listed: dict[str, ListedTool] | None = None
        if validate_on_init:
            self.functions()

    @classmethod
    def from_url(cls, url: str, auth: Any = None, headers: Mapping[str, str] | None = None, **settings: Any) -> MCPTool:
        """Build an MCPTool for a running server."""
        return cls({"url": url}, auth, headers, **settings)

    @classmethod
    def from_config_file(cls, config_path: str | Path, **settings: Any) -> MCPTool:
        """Build an MCPTool for the servers in a JSON file."""
        return cls(Path(config_path), **settings)

    @classmethod
    def from_local_command(
        cls,
        server_params: str | Mapping[str, Any] | StdioServerParameters,
        name: str = "default",
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        **settings: Any,
    ) -> MCPTool:
        """Build an MCPTool for a server that is started with a command.

        Args:
            server_params: the program; or a dict or the SDK's StdioServerParameters with "command" and, optionally,
                "args", "env" and "cwd".
            name: name of the server.
            args, env, cwd: used if server_params is a program.
            settings: further arguments of the constructor.
        """
        started: Any = server_params
        if isinstance(server_params, str):
            started = {"command": server_params, "args": list(args), "env": dict(env or {}), "cwd": cwd}
        elif not isinstance(server_params, Mapping):
            started = {key: getattr(server_params, key) for key in ("command", "args", "env", "cwd")}
        return cls({"mcpServers": {name: started}}, **settings)

    @classmethod
    def from_multi_server(cls, servers: Mapping[str, Mapping[str, Any]], **settings: Any) -> MCPTool:
        """Build an MCPTool for several servers, given as a dict from server name to configuration."""
        if not isinstance(servers, Mapping):
            raise BadValue(
                "servers must be a dict from server name to configuration, such as "
                f"{{'clock': {{'url': 'http://127.0.0.1:8000/mcp'}}}}, got {type(servers).__name__}"
            )
        return cls({"mcpServers": dict(servers)}, **settings)

    def get_available_tools(self) -> list[dict[str, Any]]:
        """Return the name, description and parameters of each tool."""
        return [asdict(function) for function in self.functions()]

    def functions(self) -> list[Function]:
        """Return the tools of all servers, sorted by name. The first use connects and raises ToolError on failure."""
        return [listed.function for listed in self._tools().values()]

    def argument_validator(self, function: Function) -> Validator:
        return schema_validator(function.parameters)

    def call(self, call: ToolCall) -> ToolResult:
        """Call a tool. The result is enclosed in ``<tool_response>`` tags. Raises ToolError if the server fails."""
        started = self._started(call)
        return started if isinstance(started, ToolResult) else _format(_wait(started))

    async def acall(self, call: ToolCall) -> ToolResult:
        if self._listed is None:
            await asyncio.to_thread(self.functions)
        started = self._started(call)
        return started if isinstance(started, ToolResult) else _format(await asyncio.wrap_future(started))

    def _started(self, call: ToolCall) -> ToolResult | Future[ToolResult]:
        """Send a call to its server. Returns an error if there is no such tool."""
        tools = self._tools()
        if call.name not in tools:
            return _format(unknown_tool(call.name, tools))
        listed, client = tools[call.name], self._connected()
        return client.submit(client.call(listed.server, listed.tool, call.arguments))

    def reset(self) -> None:
        if self._client is not None and self._client.changed:
            self._listed = None
        if self._client is not None and not self._shared:
            self._client.new_episode(self._fresh)

    def close(self) -> None:
        """End the sessions and their server processes, unless another MCPTool shares the sessions."""
        with _clients.lock:
            client, self._client = self._client, None
            if client is None:
                return
            client.users.discard(self)
            if client.users:
                return
            for key in [key for key, shared in _clients.shared.items() if shared is client]:
                del _clients.shared[key]
        client.close()

    @property
    def forkable(self) -> bool:
        return self._shared  # otherwise a server may keep state between calls

    def spawn(self) -> MCPTool:
        """Return a new MCPTool with the same functions. The new tool has its own sessions, unless ``shared`` is set."""
        args, kwargs = self._arguments
        tool = type(self)(*args, **kwargs | {"validate_on_init": False})
        tool._listed = self._listed
        return tool

    def reconfigure(
        self,
        new_config: Source | None = None,
        auth: Any = None,
        headers: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        """End the sessions and change the server and the given settings. What is None is kept."""
        args, kwargs = self._arguments
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        given = {"config": new_config, "auth": auth, "headers": headers}
        settings |= {name: value for name, value in given.items() if value is not None}
        kwargs = dict(zip(names, args, strict=False)) | kwargs | settings
        self.close()
        self.__init__(**kwargs)  # type: ignore[misc]
        self._arguments = ((), kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        args, kwargs = self._arguments
        return _rebuild, (type(self), args, kwargs)  # the copy opens its own sessions

    def _tools(self) -> dict[str, ListedTool]:
        if self._listed is None:
            client = self._connected()
            self._listed = list_tools(_wait(client.submit(client.list_tools())), self._prefix)
            if not self._listed:
                raise ToolError(f"the MCP servers {[server.name for server in self.servers]} provide no tools")
        return self._listed

    def _connected(self) -> MCPClient:
        with _clients.lock:
            if self._client is None:
                from gem.tools.mcp.client import MCPClient

                key = (self.servers, self._options)
                client = _clients.shared.get(key) if self._shared else None
                if client is None:
                    client = MCPClient(self.servers, self._options, stateful=not self._shared)
                if self._shared:
                    _clients.shared[key] = client
                client.users.add(self)
                self._client = client
            return self._client


def list_tools(tools: Mapping[str, Iterable[Any]], prefix: Prefix) -> dict[str, ListedTool]:
    """Return a dict from the name that the agent uses to the tool, sorted by name.

    Characters that model APIs do not accept in names are replaced with ``_``. Tools with an invalid JSON Schema are
    left out with a warning in the log, and so are those of a server after the first MAX_TOOLS_CHARS characters.

    Args:
        tools: a dict from server name to the server's tools (SDK objects).
        prefix: see MCPTool.
    """
    pairs = [(server, tool) for server, listed in tools.items() for tool in _offered(server, listed)]
    count = Counter(clean_name(tool.name) for _, tool in pairs)
    found: dict[str, ListedTool] = {}
    for server, tool in sorted(pairs, key=lambda pair: (pair[0], pair[1].name)):
        name = clean_name(tool.name)
        if prefix == "always" or (len(tools) > 1 and (prefix == "several" or count[name] > 1)):
            name = clean_name(f"{server}_{tool.name}")
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name[: _NAME_LENGTH - 1 - len(str(number))]}_{number}"
        found[unique] = ListedTool(server, tool.name, Function(unique, tool.description or "", dict(tool.input_schema)))
    return dict(sorted(found.items()))


def _offered(server: str, tools: Iterable[Any]) -> Iterator[Any]:
    left = MAX_TOOLS_CHARS
    for tool in tools:
        if error := schema_error(tool.input_schema):
            why = f"invalid input schema: {error}"
        else:
            left -= len(tool.description or "") + len(json.dumps(tool.input_schema))
            why = f"the tools of the server have more than {MAX_TOOLS_CHARS} characters" if left < 0 else ""
        if why:
            log.warning("MCP server %r: the tool %r is hidden: %s", server, tool.name, why)
        else:
            yield tool


def clean_name(name: str) -> str:
    """Convert a name to 1 to 64 letters, digits, ``_`` and ``-``. Other characters are replaced with ``_``.

    >>> clean_name("files/read.text")
    'files_read_text'
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_NAME_LENGTH] or "_"


def is_timeout_error(error: BaseException) -> bool:
    """Return whether an exception is a timeout, by its class or its message. Kept for compatibility."""
    return re.search("time(d ?)?out", f"{type(error).__name__}: {error}", re.IGNORECASE) is not None


def _format(result: ToolResult) -> ToolResult:
    return replace(result, text=f"<tool_response>{escape_response(result.text)}</tool_response>")


def _rebuild(cls: type[MCPTool], args: tuple[Any, ...], kwargs: dict[str, Any]) -> MCPTool:
    return cls(*args, **kwargs | {"validate_on_init": False})


def _wait(future: Any) -> Any:
    try:
        return future.result()
    except BaseException:
        future.cancel()  # for example, if KeyboardInterrupt ended the wait
        raise


class _SharedClients:
    """The clients that are shared by MCPTools of this process. The key is (servers, options)."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # reentrant: a finalizer may run while the lock is held
        self.shared: weakref.WeakValueDictionary[Any, MCPClient] = weakref.WeakValueDictionary()


_clients = _SharedClients()


def _in_forked_child() -> None:
    global _clients
    _clients = _SharedClients()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
