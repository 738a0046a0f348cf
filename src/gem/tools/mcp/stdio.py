"""The transport to an MCP server that is a child process: lines of JSON over its stdin and stdout.

Unlike the transport of the SDK, it cuts very long lines instead of holding up the event loop, and it ends the children
that a server leaves behind.

This module imports the MCP SDK. MCPTool therefore imports the module only when a tool connects.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from gem._internal.inbound import MESSAGE, loads
from gem._internal.text import shorten
from gem.tools.mcp.config import ServerConfig
from gem.tools.mcp.limits import MessageBuffer, id_of

_CHUNK_BYTES = 1 << 16
EXIT_TIMEOUT_S = 2.0  # for a server to exit after its stdin is closed, and again after SIGTERM
STDERR_BYTES = 2000  # number of bytes of a server's stderr kept for error messages
STDERR_READS = 16  # maximum number of reads from a server's stderr per callback

_MARK = "GEM_MCP_SERVER"  # environment variable that the processes of a server inherit
_MAX_SCANS = 20  # processes may start others while they are killed

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_stdio(server: ServerConfig, stderr: Any) -> AsyncIterator[Any]:
    """Start a server process and yield its streams of messages (read, write), as the transports of the SDK do.

    At the exit, the process and the processes of its group are ended; on Linux, also its other descendants that have
    inherited its environment, such as daemons.

    Raises:
        OSError: the process cannot be started.
    """
    mark = uuid4().hex
    process = await asyncio.create_subprocess_exec(
        server.command,
        *server.args,
        env=get_default_environment() | dict(server.env) | {_MARK: mark},
        cwd=server.cwd,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )
    received, read = anyio.create_memory_object_stream[Any](0)
    write, to_send = anyio.create_memory_object_stream[Any](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_receive, process, received)
            tasks.start_soon(_send, process, to_send, received)
            try:
                yield read, write
            finally:
                with anyio.CancelScope(shield=True):
                    read.close()
                    write.close()
                    await _stop(process)
                tasks.cancel_scope.cancel()
    finally:
        _signal_group(process, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await _kill_marked(mark)
        for stream in (received, read, write, to_send):
            stream.close()
        process._transport.close()  # type: ignore[attr-defined]  # a surviving child may hold the pipe open


async def _receive(process: asyncio.subprocess.Process, received: Any) -> None:
    """Parse the lines of a server's stdout. After the session ended, discard them, so that the server can exit."""
    assert process.stdout is not None
    line, discarding = MessageBuffer(), False
    async with received:
        while chunk := await process.stdout.read(_CHUNK_BYTES):
            *ended, rest = chunk.split(b"\n")
            for part in ended if not discarding else ():
                if not part and not line.data:
                    continue
                line.add(part)
                text, _ = line.take()
                try:
                    if text:
                        await received.send(_parse(text))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    discarding = True
                    break
            line.add(rest)


def _parse(line: bytes) -> SessionMessage | ValueError:
    """Parse a line. Returns a message, or an exception for a line that is none.

    The text of a message may contain half of a surrogate pair, as JavaScript cuts strings: loads() replaces it. An
    invalid message with an id becomes an error of that request, which otherwise would wait for its time limit.
    """
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as e:
        reason = e
    try:
        data = loads(line, "a message of an MCP server", MESSAGE)
        return SessionMessage(jsonrpc_message_adapter.validate_python(data, by_name=False))
    except ValueError:
        number = id_of(line)
    if number is None:
        return reason
    error = ErrorData(code=PARSE_ERROR, message=f"invalid message: {shorten(str(reason), 200)}")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))


async def _send(process: asyncio.subprocess.Process, to_send: Any, received: Any) -> None:
    assert process.stdin is not None
    try:
        async with to_send:
            async for message in to_send:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()
    except (OSError, anyio.ClosedResourceError):
        await received.aclose()  # the session then sees the end of the connection


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Close the server's stdin, and end its process group if it does not exit."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with anyio.move_on_after(EXIT_TIMEOUT_S):
            while process.returncode is None:
                await asyncio.sleep(0.01)
        if process.returncode is not None:
            return
        _signal_group(process, number)


def _signal_group(process: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def _kill_marked(mark: str) -> None:
    """Kill all processes of a server that has ended, until none is found. Needs /proc, that is, Linux."""
    wanted = f"{_MARK}={mark}".encode()
    for _ in range(_MAX_SCANS):
        found = False
        for number, environ in enumerate(Path("/proc").glob("[0-9]*/environ")):
            with suppress(OSError):  # the process has ended, or belongs to another user
                if wanted in environ.read_bytes().split(b"\0"):
                    found = True
                    os.kill(int(environ.parent.name), signal.SIGKILL)
            if number % 50 == 0:
                await asyncio.sleep(0)  # a scan takes some milliseconds
        if not found:
            return


class StderrBuffer:
    """Keep the last STDERR_BYTES bytes of a server's stderr, and log all of the output at debug level."""

    def __init__(self, name: str) -> None:
        self._name, self._kept = name, b""
        self._reading: int | None = None
        self._writing: Any = None

    def open(self) -> Any:
        """Return a file to pass to the server process as its stderr."""
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._writing = os.fdopen(writing, "w")
        asyncio.get_running_loop().add_reader(self._reading, self._read)
        return self._writing

    def text(self) -> str:
        self._read()
        return self._kept.decode("utf-8", "replace").strip()

    def close(self) -> None:
        if self._reading is not None:
            self._read()
            asyncio.get_running_loop().remove_reader(self._reading)
            os.close(self._reading)
            self._writing.close()
            self._reading = None

    def _read(self) -> None:
        for _ in range(STDERR_READS if self._reading is not None else 0):
            try:
                written = os.read(self._reading, 1 << 16)  # type: ignore[arg-type]
            except BlockingIOError:
                return
            log.debug("MCP server %r: %s", self._name, written.decode("utf-8", "replace").rstrip())
            self._kept = (self._kept + written)[-STDERR_BYTES:]
