"""Manage the sessions of an MCPTool with its servers.

A session is opened on first use, reopened after its connection is lost, and closed when the process exits. All sessions
of a process run on one background event loop, so that they can be used from any thread and any event loop.

This module imports the MCP SDK. MCPTool therefore imports the module only when a tool connects.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import logging
import os
import threading
import weakref
from collections.abc import AsyncIterator, Coroutine, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures import wait as wait_for_futures
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gem._internal.event_loop import BackgroundLoop
from gem._internal.text import shorten
from gem.errors import ToolError
from gem.messages import ToolErrorType, ToolResult
from gem.tools.mcp.config import ClientOptions, ServerConfig
from gem.tools.mcp.session import ServerSession, SessionLost

CLOSE_TIMEOUT_S = 8.0  # the SDK closes a server's stdin, terminates the process after 2 s and kills it after 4 s
MAX_STARTING = 8  # maximum number of server processes that start at the same time

Result = TypeVar("Result")
log = logging.getLogger(__name__)


class MCPClient:
    """The sessions of an MCPTool with its servers.

    A session is opened on first use and reopened after its connection is lost. A call that a server may have executed
    is not sent again. Run the coroutines of this class on the background loop, with submit().

    Args:
        servers: configurations of the servers.
        options: options of the sessions.
        stateful: whether the servers keep state between the calls of an episode. If so, a call is not executed when
            the session of an earlier call in the same episode was lost.
    """

    def __init__(self, servers: tuple[ServerConfig, ...], options: ClientOptions, *, stateful: bool) -> None:
        self.users: weakref.WeakSet[Any] = weakref.WeakSet()
        self._servers = {server.name: server for server in servers}
        self._options, self._stateful = options, stateful
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._sessions: dict[str, ServerSession] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._used: set[str] = set()  # servers called in this episode
        self._finalizer = weakref.finalize(self, _end_sessions, self._pid, self._sessions)
        self._finalizer.atexit = False  # at exit, _at_exit() ends all sessions

    def submit(self, coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Run a coroutine on the background loop. In a forked child process, the client first discards its sessions."""
        if self._pid != os.getpid():
            self._finalizer.detach()
            self._start()
        return _background_loop().submit(coroutine)

    async def list_tools(self) -> dict[str, list[Any]]:
        """Return the tools (SDK objects) by server name. Raises ToolError if a connection fails."""
        opened = await asyncio.gather(*(self._session(name) for name in self._servers), return_exceptions=True)
        for one in opened:
            if isinstance(one, BaseException):
                raise one
        sessions = [one[0] for one in opened if not isinstance(one, BaseException)]
        await asyncio.gather(*(session.refresh() for session in sessions))
        return {session.server.name: session.tools for session in sessions}

    @property
    def changed(self) -> bool:
        """Whether a server has announced that its list of tools changed."""
        return any(session.changed for session in self._sessions.values())

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Call a tool of a server.

        If the server ended, it is restarted, and the result is an error: an agent may be able to end a server, and must
        not be able to void an episode with it. Raises ToolError if the server cannot be restarted.
        """
        if error := _serialization_error(arguments):
            return ToolResult(error, ToolErrorType.BAD_ARGUMENTS)
        has_state = self._stateful and server in self._used
        for _ in range(self._options.max_retries + 1):
            session, was_lost = await self._session(server)
            if was_lost:
                return _lost_state(f"The server ended after the last call ({was_lost})", " The call was not executed.")
            self._used.add(server)
            try:
                result = await session.call(tool, arguments)
            except SessionLost as e:
                self._used.discard(server)
                lost = e
                if e.sent or has_state:
                    break
                continue
            if session.gone:
                self._used.discard(server)
            return result
        log.info("MCP server %r ended during a call of %s: %s", server, tool, lost.reason)
        await self._session(server)
        return _lost_state(f"The server ended during the call ({shorten(lost.reason, 300)})")

    def new_episode(self, fresh: bool) -> None:
        """Start a new episode without blocking. If ``fresh``, end the sessions; the next call opens new sessions."""
        if self._pid == os.getpid() and self._sessions:
            self.submit(self._new_episode(fresh))

    async def _new_episode(self, fresh: bool) -> None:
        self._used.clear()
        if fresh:
            for session in self._sessions.values():
                session.end()

    def close(self) -> None:
        """End the sessions and server processes. Blocks for up to CLOSE_TIMEOUT_S. The next call opens new sessions."""
        if self._pid == os.getpid() and self._sessions:
            closing = self._close()
            try:
                self.submit(closing).result(CLOSE_TIMEOUT_S)
            except FutureTimeout:
                log.warning("MCP servers %s did not end within %g s", sorted(self._servers), CLOSE_TIMEOUT_S)
            except RuntimeError:  # the loop is already closed, and the sessions ended with the loop
                closing.close()

    async def _close(self) -> None:
        sessions = list(self._sessions.values())
        self._sessions.clear()
        self._used.clear()
        await _end_all(sessions)

    async def _session(self, name: str) -> tuple[ServerSession, str]:
        """Return a session, and the reason why an earlier session of the episode with state ended; "" if none did."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            session = self._sessions.get(name)
            if session is not None and not session.gone:
                return session, ""
            was_lost = ""
            if session is not None and self._stateful and name in self._used:
                self._used.discard(name)
                was_lost = shorten(session.reason(), 300)
            self._sessions[name] = await _connect(self._servers[name], self._options)
            return self._sessions[name], was_lost


def _lost_state(what: str, more: str = "") -> ToolResult:
    return ToolResult(f"{what} and was restarted. Its state is lost.{more}", ToolErrorType.ERROR)


async def _connect(server: ServerConfig, options: ClientOptions) -> ServerSession:
    """Open a session. Retries failed attempts, then raises ToolError."""
    for attempt in range(options.max_retries + 1):
        if attempt:
            await asyncio.sleep(options.delay)
        session = ServerSession(server, options, _process.sessions)
        async with _start_slots() if server.transport == "stdio" else contextlib.nullcontext():
            if await session.open():
                return session
        log.info("MCP server %r: attempt %d failed: %s", server.name, attempt + 1, session.reason())
        if isinstance(session.failure, (FileNotFoundError, PermissionError)):
            break
    attempts = "1 attempt" if attempt == 0 else f"{attempt + 1} attempts"
    raise ToolError(f"could not connect to MCP server {server.name!r} in {attempts}: {session.reason()}")


def _serialization_error(arguments: dict[str, Any]) -> str:
    """Check that arguments can be sent as JSON. Sending other arguments would end the session.

    Returns:
        An error message for the agent, or "" if the arguments can be sent.
    """
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as e:
        return f"The arguments contain {e.object[e.start]!r}, half of a surrogate pair."
    except (ValueError, TypeError, RecursionError) as e:
        return f"The arguments cannot be written as JSON: {e}"
    return ""


@dataclass
class _ProcessState:
    """The background loop and the sessions of this process. A forked child process replaces this object."""

    lock: Any = field(default_factory=threading.RLock)  # reentrant: a finalizer may run while the lock is held
    loop: BackgroundLoop[None] | None = None
    start_slots: asyncio.Semaphore | None = None
    sessions: set[ServerSession] = field(default_factory=set)


_process = _ProcessState()
_inherited: list[_ProcessState] = []  # keeps the parent's connections alive: garbage collection would close them


def _background_loop() -> BackgroundLoop[None]:
    with _process.lock:
        if _process.loop is None:
            _process.loop = BackgroundLoop(_ignoring_broken_pipes)
        return _process.loop


def _start_slots() -> asyncio.Semaphore:
    if _process.start_slots is None:
        _process.start_slots = asyncio.Semaphore(MAX_STARTING)
    return _process.start_slots


@asynccontextmanager
async def _ignoring_broken_pipes() -> AsyncIterator[None]:
    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if isinstance(context.get("exception"), (BrokenPipeError, ConnectionResetError)):  # the call raises
            log.debug("%s: %r", context["message"], context["exception"])
        else:
            loop.default_exception_handler(context)

    asyncio.get_running_loop().set_exception_handler(handle)
    yield


async def _end_all(sessions: Sequence[ServerSession]) -> None:
    for session in sessions:
        session.end()
    await asyncio.gather(*(session.ended() for session in sessions))


def _end_sessions(pid: int, sessions: dict[str, ServerSession]) -> None:
    """End the sessions of a garbage-collected client. May be called from any thread."""
    if pid == os.getpid() and sessions:
        ending = _end_all(list(sessions.values()))
        try:
            _background_loop().submit(ending)
        except RuntimeError:  # the loop is already closed, and the sessions ended with the loop
            ending.close()


@atexit.register
def _at_exit() -> None:
    running = _process.loop
    if running is not None and running.pid == os.getpid():
        wait_for_futures([running.submit(_end_all(list(_process.sessions)))], CLOSE_TIMEOUT_S)
        running.close()


def _in_forked_child() -> None:
    global _process
    _inherited.append(_process)
    _process = _ProcessState()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
