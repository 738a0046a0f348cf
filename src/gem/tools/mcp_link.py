"""The sessions of one tool, or of all tools that share them: opened when needed, and again when they are lost."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from gem.errors import ToolError
from gem.messages import ToolErrorType, ToolResult
from gem.tools.mcp_answer import answer_text
from gem.tools.mcp_config import Server
from gem.tools.mcp_session import CLOSING_S, Late, Lost, Refused, Session, background, connect
from gem.tools.mcp_transport import Options

Result = TypeVar("Result")

log = logging.getLogger(__name__)


class Link:
    """To the servers of a tool.

    Args:
        servers: by their names.
        stateful: they keep something between the calls of an episode, which is lost with a session.

    A call is never sent twice. Coroutines run on the loop of background(), by submit().
    """

    def __init__(self, servers: tuple[Server, ...], options: Options, *, stateful: bool) -> None:
        self.users: weakref.WeakSet[Any] = weakref.WeakSet()
        self._servers = {server.name: server for server in servers}
        self._options, self._stateful = options, stateful
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._sessions: dict[str, Session] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._used: set[str] = set()  # servers that were called in this episode
        self._finalizer = weakref.finalize(self, _abandon, self._pid, self._sessions)
        self._finalizer.atexit = False  # mcp_session ends all of them then

    def submit(self, coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
        if self._pid != os.getpid():  # a forked process opens sessions of its own
            self._finalizer.detach()
            self._start()
        return background().submit(coroutine)

    async def list_tools(self) -> dict[str, list[Any]]:
        """What each server offers, as the SDK has it. Raises ToolError."""
        sessions = await asyncio.gather(*(self._session(name) for name in self._servers), return_exceptions=True)
        for session in sessions:
            if isinstance(session, BaseException):
                raise session
        return {session.server.name: session.tools for session in sessions if isinstance(session, Session)}

    async def call(self, name: str, tool: str, arguments: dict[str, Any], max_chars: int) -> ToolResult:
        """Call a server's tool. Raises ToolError when the server failed."""
        if wrong := _unsendable(arguments):
            return ToolResult(wrong, ToolErrorType.BAD_ARGUMENTS)
        kept = self._stateful and name in self._used
        for _ in range(self._options.max_retries + 1):
            session = await self._session(name)
            self._used.add(name)
            try:
                answer = await session.call(tool, arguments)
            except Refused as e:
                return ToolResult(str(e), ToolErrorType.BAD_ARGUMENTS)
            except Late as e:
                return self._late(session, e)
            except Lost as e:
                self._used.discard(name)
                lost = e
                if e.sent or kept:
                    break
                continue  # nothing was sent, and nothing that an episode needs is gone
            text = answer_text(answer.content, answer.structured_content, max_chars)
            return ToolResult(text, ToolErrorType.ERROR if answer.is_error else None)
        raise ToolError(f"MCP server {name!r} was lost during a call of {tool}: {lost.why}") from lost

    def new_episode(self, fresh: bool) -> None:
        """fresh: end the sessions, so that the next call opens others. Does not wait."""
        if self._pid == os.getpid() and self._sessions:
            self.submit(self._new_episode(fresh))

    async def _new_episode(self, fresh: bool) -> None:
        self._used.clear()
        if fresh:
            for session in self._sessions.values():
                session.end()

    def close(self) -> None:
        """End the sessions, with their processes. Waits, for some seconds at most. The next call opens others."""
        if self._pid == os.getpid() and self._sessions:
            closing = self._close()
            try:
                self.submit(closing).result(CLOSING_S)
            except FutureTimeout:
                log.warning("MCP servers %s did not end within %g s", sorted(self._servers), CLOSING_S)
            except RuntimeError:  # the loop is closed, and they are ended: so is the process, soon
                closing.close()

    async def _close(self) -> None:
        ending = list(self._sessions.values())
        self._sessions.clear()
        self._used.clear()
        for session in ending:
            session.end()
        await asyncio.gather(*(session.ended() for session in ending))

    async def _session(self, name: str) -> Session:
        async with self._locks.setdefault(name, asyncio.Lock()):
            session = self._sessions.get(name)
            if session is not None and not session.gone:
                return session
            if session is not None and self._stateful and name in self._used:
                self._used.discard(name)
                raise ToolError(
                    f"MCP server {name!r} ended between two calls of an episode, and what it kept is lost: "
                    f"{session.why()}"
                )
            self._sessions[name] = await connect(self._servers[name], self._options)
            return self._sessions[name]

    def _late(self, session: Session, late: Late) -> ToolResult:
        seconds = session.server.timeout or self._options.timeout
        text = f"The call took longer than {seconds:g} s and was cancelled."
        if not late.stays:
            self._used.discard(session.server.name)
            text += " The server does not answer any more. It is started anew, and what it kept is lost."
        return ToolResult(text, ToolErrorType.TIMEOUT)


def _unsendable(arguments: dict[str, Any]) -> str:
    """Why arguments that a model wrote cannot go over the wire, where they would end the session; empty if they can."""
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as e:
        return f"The arguments hold {e.object[e.start]!r}, which is half a character."
    except (ValueError, TypeError, RecursionError) as e:
        return f"The arguments cannot be written as JSON: {e}"
    return ""


def _abandon(pid: int, sessions: dict[str, Session]) -> None:
    """End the sessions of a link that nobody has any more. Called by the garbage collector, on any thread."""
    if pid == os.getpid() and sessions:
        ending = _end(sessions)
        try:
            background().submit(ending)
        except RuntimeError:  # the loop is closed, and they are ended
            ending.close()


async def _end(sessions: dict[str, Session]) -> None:
    for session in sessions.values():
        session.end()
