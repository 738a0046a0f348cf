"""A session with one MCP server over stdio, HTTP or server-sent events, built on the SDK's Client.

In addition to the features of the SDK's client, a ServerSession detects a lost connection immediately and includes the
server's stderr in the error. A call that times out does not block the session. Mistakes of the agent are returned as
results; failures of the server raise.

This module imports the MCP SDK. MCPTool therefore imports the module only when a tool connects.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.types import CONNECTION_CLOSED, INVALID_PARAMS
from mcp.types.methods import parse_server_result

from gem._internal.inbound import MESSAGE, Bounds, check_value
from gem._internal.text import shorten
from gem.errors import ToolError
from gem.messages import ToolErrorType, ToolResult
from gem.tools.mcp.config import ClientOptions, ServerConfig
from gem.tools.mcp.content import to_result
from gem.tools.mcp.http import open_http
from gem.tools.mcp.schema import MAX_DESCRIPTION, cut_schema, cut_text
from gem.tools.mcp.stdio import StderrBuffer, open_stdio

MAX_TOOL_PAGES = 100  # maximum number of pages read from a server's tool list
MAX_TOOLS = 500  # maximum number of tools of a server
MAX_TOOL = Bounds(MESSAGE.bytes, 48, 20_000)  # depth and items of a tool with its schemas
# Notifications and requests of a server per call, of 1,000 characters each. A question to model or user counts as 100.
MAX_UNASKED, QUESTION = 10_000, 100
END_TIMEOUT_S = 5.0  # for a server over HTTP to take leave; less than CLOSE_TIMEOUT_S of the client
MAX_UNANSWERED = 2  # consecutive calls without a response, also to the probe, after which a server is restarted
PROBE_TIMEOUT_S = 5.0  # after a call timed out, wait this long for the server to respond to a request
REASON_TIMEOUT_S = 1.0  # wait this long for the exception that ended a connection

log = logging.getLogger(__name__)
# Server errors are reported by the calls. The SDK's tracebacks appear only if the application configures logging.
logging.getLogger("mcp").addHandler(logging.NullHandler())


@dataclass
class SessionLost(Exception):
    """The connection to a server ended before a call returned.

    Args:
        reason: why the connection ended.
        sent: whether the server may have executed the call.
    """

    reason: str
    sent: bool


class ServerSession:
    """A connection to one server. Use it only on the background loop.

    One task enters and exits the SDK's client, because the cancel scopes of the client do not allow two tasks.

    Args:
        server: configuration of the server.
        options: options of the connection.
        live: a set of running sessions. The session adds itself to the set when it opens and removes itself when it
            ends.

    Attributes:
        tools: the server's tools (SDK objects).
        changed: whether the server has announced that its list of tools changed since the list was read.
        gone: whether the connection has ended or is being closed.
        failure: the exception that ended the connection, or None.
    """

    def __init__(self, server: ServerConfig, options: ClientOptions, live: set[ServerSession]) -> None:
        self.server, self.options = server, options
        self._live = live
        self.tools: list[Any] = []
        self.changed = False
        self.gone = False
        self._unanswered = 0  # consecutive calls after whose time-out the server did not respond
        self._asked: set[str] = set()  # capabilities that the server asked for and that have no handler
        self._unasked = 0  # see MAX_UNASKED
        self.failure: BaseException | None = None
        self._forgotten = False  # the HTTP server does not know the session id
        self._client: Client | None = None
        self._scope: anyio.CancelScope | None = None
        self._stderr = StderrBuffer(server.name)
        self._settled, self._end, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def open(self) -> bool:
        """Connect and list the tools. Returns whether this succeeded; if not, reason() returns the cause."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._live.add(self)
        try:
            await self._settled.wait()
        except asyncio.CancelledError:
            self.end()
            raise
        return self._client is not None

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Call a tool. A timeout, an error and an invalid response are returned as results with an error type.

        Raises:
            SessionLost: the connection ended.
        """
        if self.gone or self._client is None:
            raise SessionLost(self.reason(), sent=False)
        seconds = self.server.timeout or self.options.timeout
        self._asked.clear()
        self._unasked = 0
        progress = _as_coroutine(self.options.progress_handler)
        try:
            with anyio.move_on_after(seconds):
                answer = await self._client.call_tool(tool, arguments, progress_callback=progress)
                self._unanswered = 0
                result = to_result(answer, self.options)
                return self._error(result.text) if answer.is_error else result
        except MCPError as e:
            if self._is_lost(e):
                raise await self._lost() from e
            if e.code == INVALID_PARAMS:
                return self._error(e.message, ToolErrorType.BAD_ARGUMENTS)
            return self._error(f"The server refused the call: {e.message} (code {e.code})")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as e:
            raise await self._lost() from e
        except Exception as e:  # the SDK rejects a response that violates the protocol
            if self.gone:
                raise await self._lost() from e
            return self._error(f"The server's response to {tool} is invalid: {shorten(_describe(e), 500)}")
        text = f"The call timed out after {seconds:g} s and was cancelled."
        if await self._is_alive():
            return ToolResult(text, ToolErrorType.TIMEOUT)
        self._unanswered += 1
        if self._unanswered < MAX_UNANSWERED:
            return ToolResult(f"{text} The server is still busy.", ToolErrorType.TIMEOUT)
        self.end()
        text += " The server does not respond. It will be restarted, and its state is lost."
        return ToolResult(text, ToolErrorType.TIMEOUT)

    def _error(self, text: str, kind: ToolErrorType = ToolErrorType.ERROR) -> ToolResult:
        """Return a result with an error, which names the capabilities that the server asked for in vain."""
        text = cut_text(text, self.options.max_chars)
        for capability in sorted(self._asked):
            text += f"\nThe server asked for {capability}, but MCPTool has no {capability}_handler."
        return ToolResult(self.server.redact(text), kind)

    def end(self) -> None:
        """Start to close the connection and to stop the server process, if any. Returns immediately."""
        self.gone = True
        self._end.set()
        if self._client is None and self._scope is not None:
            self._scope.cancel()

    async def ended(self) -> None:
        await self._ended.wait()

    def reason(self) -> str:
        """Return why the connection failed, with the end of the server's stderr output if there is any."""
        if isinstance(self.failure, TimeoutError):
            reason = f"no response within {self.options.connect_timeout:g} s"
        else:
            reason = "the connection ended" if self.failure is None else _describe(self.failure)
        stderr = self._stderr.text()
        return self.server.redact(f"{reason}; last output on stderr: {stderr}" if stderr else reason)

    async def _run(self) -> None:
        self._sdk = client = Client(
            self._transport(),
            sampling_callback=_as_coroutine(self.options.sampling_handler),
            elicitation_callback=_as_coroutine(self.options.elicitation_handler),
            logging_callback=_as_coroutine(self.options.log_handler),
            log_level="debug" if self.options.log_handler else None,
            mode=self.options.protocol,
        )
        try:
            with anyio.fail_after(self.options.connect_timeout) as self._scope:
                async with client:
                    await self._read_tools(client)
                    self._scope.deadline = math.inf
                    self._client = client
                    self._settled.set()
                    await self._end.wait()
                    self._scope.deadline = anyio.current_time() + END_TIMEOUT_S
        except BaseException as e:  # the SDK's tasks raise nested exception groups
            self.failure = self.failure or _innermost(e)
        finally:
            self.gone = True
            self._stderr.close()
            self._settled.set()
            self._ended.set()
            self._live.discard(self)

    async def refresh(self) -> None:
        """Read the list of tools again if the server announced a change."""
        if self.changed and self._client is not None:
            with anyio.move_on_after(self.options.connect_timeout):
                await self._read_tools(self._client)

    async def _read_tools(self, client: Client) -> None:
        """Read the pages of the tool list, until a page has no cursor or only tools that are known.

        Any cursor may lead on, also "" and one that repeats. Servers that end a list with "" refuse it or start again.
        """
        self.changed = False
        tools: dict[str, Any] = {}
        cursor: str | None = None
        for _ in range(MAX_TOOL_PAGES):
            try:
                page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            except MCPError as e:
                if cursor == "" and not self._is_lost(e):
                    cursor = None
                    break
                raise
            known = len(tools)
            for tool in page.tools:
                tools.setdefault(tool.name, tool)
            cursor = page.next_cursor
            if cursor is None or (page.tools and len(tools) == known) or len(tools) > MAX_TOOLS:
                break
        if cursor or len(tools) > MAX_TOOLS:
            used = min(len(tools), MAX_TOOLS)
            log.warning("MCP server %r: the list of its tools repeats or is long; %d are used", self.server.name, used)
        self.tools = list(tools.values())[:MAX_TOOLS]

    def _is_lost(self, error: MCPError) -> bool:
        """Return whether a protocol error says that the session ended."""
        # A server may send the code CONNECTION_CLOSED itself, so the message is checked as well. Over HTTP, the SDK's
        # message depends on how the connection ended, so it is not checked.
        closed = self.gone or self.server.transport == "http" or error.message == "Connection closed"
        return self._forgotten or (error.code == CONNECTION_CLOSED and closed)

    async def _lost(self) -> SessionLost:
        self.end()
        if self._forgotten:
            return SessionLost("the server no longer knows the session", sent=False)
        with anyio.move_on_after(REASON_TIMEOUT_S):
            await self._ended.wait()
        return SessionLost(self.reason(), not isinstance(self.failure, (httpx2.ConnectError, httpx2.ConnectTimeout)))

    async def _is_alive(self) -> bool:
        """Return whether the server still responds. Raises SessionLost if the session has ended."""
        try:
            with anyio.move_on_after(PROBE_TIMEOUT_S):
                if self._client is not None and not self.gone:
                    await self._client.list_tools(cache_mode="bypass")
                    return True
        except MCPError as e:
            if self._is_lost(e):
                raise await self._lost() from e
            return True
        except Exception as e:
            log.info("MCP server %r does not respond: %s", self.server.name, _describe(e))
        if self.gone:
            raise await self._lost()
        return False

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        """Open the transport. End the session if the server closes the stream, which the SDK does not report."""
        if self.server.transport == "stdio":
            streams = open_stdio(self.server, self._stderr.open())
        else:
            streams = open_http(self.server, self.options, self._forget)
        async with streams as (read, write):
            yield _ObservedStream(read, self.end, self._observe), write

    def _observe(self, message: Any) -> None:
        """Look at a message before the SDK does: note requests and changes, and remove tools that cannot be offered.

        Raises:
            StopAsyncIteration: the server sends too much that nobody asked for, for the loop or for the handlers.
        """
        method, result = getattr(message, "method", None), getattr(message, "result", None)
        self._unasked += 1  # also for what is no message, or answers nothing
        if method is not None:
            is_question = method.startswith(("sampling/", "elicitation/", "roots/"))
            self._unasked += QUESTION if is_question else len(message.model_dump_json()) // 1000
        if isinstance(result, dict) and isinstance(result.get("inputRequests"), dict):
            self._unasked += QUESTION * len(result["inputRequests"])
        if self._unasked > MAX_UNASKED:
            self.failure = ToolError(
                f"the server sent over {MAX_UNASKED} messages that nobody asked for during one call"
            )
            raise StopAsyncIteration
        if method == "notifications/tools/list_changed":
            self.changed = True
        for capability, handler in (
            ("sampling", self.options.sampling_handler),
            ("elicitation", self.options.elicitation_handler),
        ):
            if handler is None and method is not None and method.startswith(f"{capability}/"):
                self._asked.add(capability)
        if isinstance(result, dict) and isinstance(result.get("tools"), list):
            tools = result["tools"][: MAX_TOOLS + 1]  # one more says that there are too many
            result["tools"] = [tool for tool in tools if self._can_offer(tool, result)]

    def _can_offer(self, tool: Any, result: dict[str, Any]) -> bool:
        """Return whether a tool can be offered. If so, its texts are cut, and its output schema is removed."""
        name = shorten(str(tool.get("name") if isinstance(tool, dict) else tool), 80)
        try:  # the SDK refuses a whole list with a tool that is invalid in the version of the protocol
            check_value(tool, "it", MAX_TOOL)
            parse_server_result("tools/list", self._sdk.protocol_version, {**result, "tools": [tool]})
        except ValueError as e:
            why = shorten(" ".join(str(e).split()), 300)
            log.warning("MCP server %r: the tool %r is hidden: invalid description: %s", self.server.name, name, why)
            return False
        execution = tool.get("execution")  # a task needs further requests, which MCPTool does not make
        if isinstance(execution, dict) and execution.get("taskSupport") == "required":
            log.info("MCP server %r: the tool %r is hidden, because it requires tasks", self.server.name, name)
            return False
        tool["description"] = cut_text(tool.get("description") or "", MAX_DESCRIPTION)
        tool["inputSchema"] = cut_schema(tool["inputSchema"])
        tool.pop("outputSchema", None)  # the SDK would run its patterns, which may take exponential time
        return True

    def _forget(self) -> None:
        self._forgotten = True


class _ObservedStream:
    """Wrap a stream of messages from a server. Call ``on_message`` with each, and ``on_end`` when either ends it."""

    def __init__(self, stream: Any, on_end: Callable[[], None], on_message: Callable[[Any], None]) -> None:
        self._stream, self._on_end, self._on_message = stream, on_end, on_message

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _ObservedStream:
        return self

    async def __anext__(self) -> Any:
        try:
            received = await self._stream.__anext__()
            self._on_message(getattr(received, "message", None))
        except BaseException:
            self._on_end()
            raise
        return received

    async def __aenter__(self) -> _ObservedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)


def _as_coroutine(handler: Callable[..., Any] | None) -> Any:
    """Convert a handler to a coroutine function. A plain function runs on a thread, so that the loop is not blocked."""
    if handler is None or inspect.iscoroutinefunction(handler):
        return handler

    async def called(*args: Any, **kwargs: Any) -> Any:
        answer = await asyncio.to_thread(handler, *args, **kwargs)
        return await answer if inspect.isawaitable(answer) else answer

    return called


def _innermost(error: BaseException) -> BaseException:
    """Return the first exception in nested exception groups; return any other exception unchanged."""
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]  # type: ignore[attr-defined]
    return error


def _describe(error: BaseException) -> str:
    return shorten(f"{type(error).__name__}: {_innermost(error)}", 2000)
