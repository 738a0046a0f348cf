"""MCPTool: the tools of MCP servers, for an agent in an environment.

    MCPTool("python -m gem.tools.mcp_server.time_mcp")     a command: the server is a process of this tool's own
    MCPTool("http://localhost:8000/mcp")                   a server that runs already
    MCPTool("mcp.json")                                    what Claude Desktop, VS Code and others are configured with

Needs the extra [mcp].
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from gem._internal.text import shorten
from gem.errors import BadValue, ToolError, did_you_mean, require
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import BaseTool, Function
from gem.tools.mcp_answer import Offer, Offered, Prefix, offer
from gem.tools.mcp_config import Source, read_servers

if TYPE_CHECKING:
    from gem.tools.mcp_link import Link

MAX_CHARS = 20_000
PROTOCOLS = ("auto", "legacy")


class MCPTool(BaseTool):
    """Calls the tools of one or several MCP servers.

    Args:
        server: a URL (one that ends in /sse is a server of that kind), a command as one string or a list of words, a
            dict of configuration, or the path of a JSON file with ``mcpServers`` or ``servers``.
        auth: for HTTP: a bearer token, or an httpx2.Auth.
        headers: for HTTP, added to all requests.
        log_handler: gets the SDK's LoggingMessageNotificationParams for each line that a server logs.
        progress_handler: gets progress, total (or None) and message (or None) while a call runs.
        sampling_handler: gets the SDK's request context and CreateMessageRequestParams, and returns a
            CreateMessageResult: the answer of a model that the server asks for. Without it, servers are told that
            there is none. All handlers may be coroutine functions; others are called on a thread.
        max_retries: tries to connect, after the first one. A call is never sent twice.
        delay: seconds between them.
        timeout: seconds that a call may take; a server's own ``timeout`` (milliseconds) in the configuration goes
            before it.
        connect_timeout: seconds that one try may take, the start of a process included.
        validate_on_init: connect now, so that a server that does not work is an error here and not in an episode.
        shared: the servers keep nothing between calls, so that all tools with the same servers and settings in this
            process use the same sessions. Otherwise each tool, and so each environment, has sessions of its own.
        fresh_per_episode: open new sessions in each episode. Without it, what a server keeps outlives the episode.
        prefix: "collision" puts a server's name in front of tools that two servers have, "always" of all.
        protocol: "auto" agrees with the server on a version; "legacy" insists on one before 2026, in which servers
            over HTTP have sessions and so can keep something.
        max_chars: of an answer; the rest is left out.

    The sessions of a tool are opened when they are needed first, and end with close(), the tool or the process. A
    server that dies under a call, or between two calls of an episode unless it is shared, is a ToolError; the call
    after that opens a new session.

    Raises BadValue for a configuration that cannot be read, and ToolError when validate_on_init fails.
    """

    tool_type = "mcp"

    def __init__(
        self,
        server: Source,
        *,
        auth: Any = None,
        headers: Mapping[str, str] | None = None,
        log_handler: Callable[..., Any] | None = None,
        progress_handler: Callable[..., Any] | None = None,
        sampling_handler: Callable[..., Any] | None = None,
        max_retries: int = 3,
        delay: float = 1.0,
        timeout: float = 30.0,
        connect_timeout: float = 60.0,
        validate_on_init: bool = True,
        shared: bool = False,
        fresh_per_episode: bool = False,
        prefix: Prefix = "collision",
        protocol: str = "auto",
        max_chars: int = MAX_CHARS,
        num_workers: int = 1,
    ) -> None:
        super().__init__(num_workers)
        if not (max_retries >= 0 <= delay and timeout > 0 < connect_timeout and max_chars > 0):
            raise BadValue(
                "max_retries and delay must not be negative, timeouts and max_chars must be above 0, got "
                f"{max_retries=}, {delay=}, {timeout=}, {connect_timeout=}, {max_chars=}"
            )
        if prefix not in get_args(Prefix):
            raise BadValue(f"prefix must be 'collision' or 'always', got {prefix!r}")
        if protocol not in PROTOCOLS:
            raise BadValue(f"protocol must be 'auto' or 'legacy', got {protocol!r}")
        if shared and fresh_per_episode:
            raise BadValue("fresh_per_episode gives each episode its own session, so it cannot be shared")
        require("mcp", extra="mcp")
        self.servers = read_servers(server)
        self.concurrent = shared
        self._shared, self._fresh, self._prefix, self._max_chars = shared, fresh_per_episode, prefix, max_chars
        self._settings = {
            "auth": auth,
            "headers": tuple((headers or {}).items()),
            "log_handler": log_handler,
            "progress_handler": progress_handler,
            "sampling_handler": sampling_handler,
            "max_retries": max_retries,
            "delay": delay,
            "timeout": timeout,
            "connect_timeout": connect_timeout,
            "protocol": protocol,
        }
        self._held: Link | None = None
        self._offer: Offer | None = None
        if validate_on_init:
            self.functions()

    @classmethod
    def from_url(cls, url: str, **settings: Any) -> MCPTool:
        """For a server that runs at a URL. settings: as of the class."""
        return cls({"url": url}, **settings)

    @classmethod
    def from_config_file(cls, path: str | Path, **settings: Any) -> MCPTool:
        """For the servers in a JSON file."""
        return cls(Path(path), **settings)

    @classmethod
    def from_local_command(
        cls,
        command: str,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        **settings: Any,
    ) -> MCPTool:
        """For a server that is started by a command."""
        return cls({"command": command, "args": list(args), "env": dict(env or {}), "cwd": cwd}, **settings)

    @classmethod
    def from_multi_server(cls, servers: Mapping[str, Mapping[str, Any]], **settings: Any) -> MCPTool:
        """For several servers, by name."""
        return cls({"mcpServers": dict(servers)}, **settings)

    def functions(self) -> list[Function]:
        """What the servers offer, sorted by name. Connects the first time. Raises ToolError when that fails."""
        return [offered.function for offered in self._offered().values()]

    def call(self, call: ToolCall) -> ToolResult:
        """Call a tool of a server; its answer is in ``<tool_response>``. Raises ToolError when the server failed."""
        offered = self._find(call.name)
        if isinstance(offered, ToolResult):
            return offered
        link = self._link()
        return _dressed(_wait(link.submit(link.call(offered.server, offered.tool, call.arguments, self._max_chars))))

    async def acall(self, call: ToolCall) -> ToolResult:
        if self._offer is None:
            await asyncio.to_thread(self.functions)
        offered = self._find(call.name)
        if isinstance(offered, ToolResult):
            return offered
        link = self._link()
        calling = link.submit(link.call(offered.server, offered.tool, call.arguments, self._max_chars))
        return _dressed(await asyncio.wrap_future(calling))

    def reset(self) -> None:
        if self._held is not None and not self._shared:
            self._held.new_episode(self._fresh)

    def close(self) -> None:
        """End the sessions, and the processes that were started for them, unless another tool shares them."""
        with _linking.lock:
            held, self._held = self._held, None
            if held is None:
                return
            held.users.discard(self)
            if held.users:
                return
            for key in [key for key, link in _linking.shared.items() if link is held]:
                del _linking.shared[key]
        held.close()

    def spawn(self) -> MCPTool:
        """A tool with sessions of its own (or, where shared, the same ones) that offers what this one does."""
        args, kwargs = self._arguments
        tool = type(self)(*args, **kwargs | {"validate_on_init": False})
        tool._offer = self._offer
        return tool

    def reconfigure(self, server: Source | None = None, **settings: Any) -> None:
        """End the sessions, and go on as if built with another server (None: the same) and other settings."""
        args, kwargs = self._arguments
        if server is not None:
            args, kwargs = (server, *args[1:]), {name: value for name, value in kwargs.items() if name != "server"}
        self.close()
        self.__init__(*args, **kwargs | settings)  # type: ignore[misc]
        self._arguments = (args, kwargs | settings)

    def __reduce__(self) -> tuple[Any, ...]:
        args, kwargs = self._arguments
        return _again, (type(self), args, kwargs)  # in another process, with sessions of its own

    def _find(self, name: str) -> Offered | ToolResult:
        offers = self._offered()
        if name in offers:
            return offers[name]
        text = (
            f"There is no tool {shorten(name, 80)!r}{did_you_mean(name[:200], offers)}. There are: {', '.join(offers)}."
        )
        return _dressed(ToolResult(text, ToolErrorType.UNKNOWN_TOOL))

    def _offered(self) -> Offer:
        if self._offer is None:
            link = self._link()
            self._offer = offer(_wait(link.submit(link.list_tools())), self._prefix)
            if not self._offer:
                raise ToolError(f"the MCP servers {[server.name for server in self.servers]} offer no tool")
        return self._offer

    def _link(self) -> Link:
        with _linking.lock:
            if self._held is None:
                from gem.tools.mcp_link import Link
                from gem.tools.mcp_transport import Options

                options = Options(**self._settings)
                key = (self.servers, options)
                link = _linking.shared.get(key) if self._shared else None
                if link is None:
                    link = Link(self.servers, options, stateful=not self._shared)
                if self._shared:
                    _linking.shared[key] = link
                link.users.add(self)
                self._held = link
            return self._held


def _dressed(result: ToolResult) -> ToolResult:
    return replace(result, text=f"<tool_response>{result.text}</tool_response>")


def _again(cls: type[MCPTool], args: tuple[Any, ...], kwargs: dict[str, Any]) -> MCPTool:
    return cls(*args, **kwargs | {"validate_on_init": False})


def _wait(future: Any) -> Any:
    try:
        return future.result()
    except BaseException:
        future.cancel()  # where the caller was interrupted
        raise


class _Linking:
    """The links that tools of this process share, by their servers and settings."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # the garbage collector may come in between
        self.shared: weakref.WeakValueDictionary[Any, Link] = weakref.WeakValueDictionary()


_linking = _Linking()


def _in_forked_child() -> None:
    global _linking
    _linking = _Linking()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
