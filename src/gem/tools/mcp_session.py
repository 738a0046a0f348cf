"""A live connection to an MCP server. All connections of a process share one event loop, on a thread of its own.

Imports the SDK, so it is imported when a tool connects, and not before.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import math
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import wait as wait_for_futures
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.types import CONNECTION_CLOSED, INVALID_PARAMS

from gem._internal.event_loop import BackgroundLoop
from gem.errors import ToolError
from gem.tools.mcp_config import Server
from gem.tools.mcp_transport import Options, Tail, coroutine, make_client

PAGES = 100  # of a server's list of tools: one that never ends keeps nobody
PROBE_S = 5.0  # seconds that a server has to show that it is alive, after a call that took too long
REASON_S = 1.0  # seconds to learn why a connection ended
CLOSING_S = 8.0  # seconds for a server to end: the SDK closes its stdin, terminates it after 2 and kills it after 4
STARTING_AT_ONCE = 8  # processes; the others wait, so that each has a fair share of its time to start

log = logging.getLogger(__name__)


class Refused(Exception):
    """The server did not take the arguments."""


@dataclass
class Late(Exception):
    """A call took longer than it may. stays: the server answers, and the connection goes on."""

    stays: bool


@dataclass
class Lost(Exception):
    """The connection ended. sent: the call may have been performed."""

    why: str
    sent: bool


@dataclass
class Unreachable(Exception):
    """No connection came about. hopeless: nor would it at another try."""

    why: str
    hopeless: bool = False


async def connect(server: Server, options: Options) -> Session:
    """A session, after as many tries as the options say. Raises ToolError."""
    for tried in range(options.max_retries + 1):
        if tried:
            await asyncio.sleep(options.delay)
        session = Session(server, options)
        try:
            async with _may_start(server):
                await session.open()
            return session
        except Unreachable as e:
            failure = e
            log.info("MCP server %r: try %d failed: %s", server.name, tried + 1, e.why)
            if e.hopeless:
                break
    tries = "1 try" if tried == 0 else f"{tried + 1} tries"
    raise ToolError(f"MCP server {server.name!r} could not be reached in {tries}: {failure.why}") from failure


class Session:
    """A connection, which one task owns from its beginning to its end: the SDK's scopes are left by who entered them.

    Used on the loop of background() alone. ``tools`` are the server's, as the SDK has them; ``gone`` tells that the
    connection has ended or is about to, ``forgotten`` that a server over HTTP does not know the session any more.
    """

    def __init__(self, server: Server, options: Options) -> None:
        self.server, self.options = server, options
        self.tools: list[Any] = []
        self.gone = self.forgotten = False
        self._client: Client | None = None
        self._scope: anyio.CancelScope | None = None
        self._failure: BaseException | None = None
        self.tail = Tail(server.name)
        self._settled, self._end, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def open(self) -> None:
        """Connect, and list the tools. Raises Unreachable."""
        self._task = asyncio.get_running_loop().create_task(self._own())
        _sessions.add(self)
        try:
            await self._settled.wait()
        except asyncio.CancelledError:
            self.end()
            raise
        if self._client is None:
            raise Unreachable(self.why(), isinstance(self._failure, (FileNotFoundError, PermissionError)))

    async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """What the server answers, as the SDK's CallToolResult.

        Raises Refused, Late, Lost, and ToolError when the answer is none.
        """
        if self.gone or self._client is None:
            raise Lost(self.why(), sent=False)
        seconds = self.server.timeout or self.options.timeout
        progress = coroutine(self.options.progress_handler)
        try:
            with anyio.move_on_after(seconds):
                return await self._client.call_tool(tool, arguments, progress_callback=progress)
        except MCPError as e:
            raise await self._said(e) from e
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as e:
            raise await self._lost() from e
        except Exception as e:  # the SDK's, where an answer does not fit the protocol or what the tool promised
            raise ToolError(f"MCP server {self.server.name!r}: {tool} was not answered properly: {_say(e)}") from e
        raise Late(stays=await self._answers())

    def end(self) -> None:
        """Leave the connection; its process, if it has one, is told to end. Does not wait for it."""
        self.gone = True
        self._end.set()
        if self._client is None and self._scope is not None:
            self._scope.cancel()

    async def ended(self) -> None:
        await self._ended.wait()

    def _forget(self) -> None:
        self.forgotten = True

    async def _own(self) -> None:
        try:
            with anyio.fail_after(self.options.connect_timeout) as self._scope:
                async with make_client(self.server, self.options, self.tail, self.end, self._forget) as client:
                    self.tools = await _list_tools(client)
                    self._scope.deadline = math.inf
                    self._client = client
                    self._settled.set()
                    await self._end.wait()
        except BaseException as e:  # whatever failed in the SDK's tasks, in groups; here is where they end
            self._failure = _leaf(e)
        finally:
            self.gone = True
            self.tail.close()
            self._settled.set()
            self._ended.set()
            _sessions.discard(self)

    async def _said(self, error: MCPError) -> Exception:
        """What an error of the protocol means. A tool's own errors come as results."""
        # Servers use the code, too. What the SDK itself says over HTTP differs with how the connection ended.
        closed = self.gone or self.server.transport == "http" or error.message == "Connection closed"
        if error.code == CONNECTION_CLOSED and closed:
            return await self._lost()
        if self.forgotten:
            self.end()
            return Lost("the server does not know the session any more", sent=False)
        if error.code == INVALID_PARAMS:
            return Refused(error.message)
        return ToolError(f"MCP server {self.server.name!r} failed: {error.message} (code {error.code})")

    async def _lost(self) -> Lost:
        self.end()
        with anyio.move_on_after(REASON_S):
            await self._ended.wait()
        return Lost(self.why(), sent=not isinstance(self._failure, (httpx2.ConnectError, httpx2.ConnectTimeout)))

    async def _answers(self) -> bool:
        """Whether the server still answers. Raises Lost when the connection is gone."""
        client = self._client
        try:
            with anyio.move_on_after(PROBE_S):
                if client is not None and not self.gone:
                    await client.list_tools(cache_mode="bypass")
                    return True
        except MCPError as e:
            said = await self._said(e)
            if isinstance(said, Lost):
                raise said from e
            return True
        except Exception as e:
            log.info("MCP server %r does not answer: %s", self.server.name, _say(e))
        if self.gone:
            raise await self._lost()
        self.end()
        return False

    def why(self) -> str:
        if isinstance(self._failure, TimeoutError):
            why = f"it did not answer within {self.options.connect_timeout:g} s"
        else:
            why = "the connection ended" if self._failure is None else _say(self._failure)
        stderr = self.tail.text()
        return f"{why}; its stderr ends: {stderr}" if stderr else why


async def _list_tools(client: Client) -> list[Any]:
    tools: list[Any] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


def _leaf(error: BaseException) -> BaseException:
    """The first error in a group of groups."""
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]  # type: ignore[attr-defined]
    return error


def _say(error: BaseException) -> str:
    return f"{type(error).__name__}: {_leaf(error)}"


# The loop and what lives on it. A forked process starts with none of its own, and leaves its parent's alone.


@dataclass
class _Process:
    lock: Any = field(default_factory=threading.RLock)  # the garbage collector may come in between
    background: BackgroundLoop[None] | None = None
    starting: asyncio.Semaphore | None = None


_process = _Process()
_sessions: set[Session] = set()
_inherited: list[Any] = []  # kept, because collecting a parent's connection would close it


def background() -> BackgroundLoop[None]:
    """The loop of this process, which runs until the process ends."""
    with _process.lock:
        if _process.background is None:
            _process.background = BackgroundLoop(_listening)
        return _process.background


@asynccontextmanager
async def _listening() -> AsyncIterator[None]:
    asyncio.get_running_loop().set_exception_handler(_note)
    yield


def _note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A pipe that breaks has been told already, to whoever called: asyncio would print it once more."""
    if isinstance(context.get("exception"), (BrokenPipeError, ConnectionResetError)):
        log.debug("%s: %r", context["message"], context["exception"])
    else:
        loop.default_exception_handler(context)


def _may_start(server: Server) -> AbstractAsyncContextManager[None]:
    if server.transport != "stdio":
        return contextlib.nullcontext()
    if _process.starting is None:
        _process.starting = asyncio.Semaphore(STARTING_AT_ONCE)
    return _process.starting


async def _end_all() -> None:
    ending = list(_sessions)
    for session in ending:
        session.end()
    for session in ending:
        await session.ended()


@atexit.register
def _at_exit() -> None:
    running = _process.background
    if running is not None and running.pid == os.getpid():
        wait_for_futures([running.submit(_end_all())], CLOSING_S)
        running.close()


def _in_forked_child() -> None:
    global _process, _sessions
    _inherited.append((_process, _sessions))
    _process, _sessions = _Process(), set()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
