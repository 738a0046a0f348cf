"""The transport to an MCP server that is a child process: lines of JSON over its stdin and stdout.

Unlike the transport of the SDK, it cuts very long lines instead of holding up the event loop, and it ends the children
that a server leaves behind.

This module imports the MCP SDK. MCPTool therefore imports the module only when a tool connects.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from gem.tools.mcp_config import ServerConfig

MAX_LINE_BYTES = 8 << 20  # longer responses are cut; the parser takes about 20 ms for a line of this length
_KEPT_HEAD, _KEPT_TAIL = 1 << 17, 1 << 10  # bytes kept of a longer line
_CHUNK_BYTES = 1 << 16
EXIT_TIMEOUT_S = 2.0  # for a server to exit after its stdin is closed, and again after SIGTERM

_ID = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,200}")'
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_ID_LAST = re.compile(_ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
_TEXT = re.compile(rb'"text"\s*:\s*"((?:[^"\\]|\\.)*)')
_HALF_SURROGATE = re.compile("[\ud800-\udfff]")

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_stdio(server: ServerConfig, stderr: Any) -> AsyncIterator[Any]:
    """Start a server process and yield its streams of messages (read, write), as the transports of the SDK do.

    The process and all processes of its group are ended at the exit.

    Raises:
        OSError: the process cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        server.command,
        *server.args,
        env=get_default_environment() | dict(server.env),
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
        for stream in (received, read, write, to_send):
            stream.close()
        process._transport.close()  # type: ignore[attr-defined]  # a surviving child may hold the pipe open


async def _receive(process: asyncio.subprocess.Process, received: Any) -> None:
    """Parse the lines of a server's stdout. After the session ended, discard them, so that the server can exit."""
    assert process.stdout is not None
    line, length, discarding = bytearray(), 0, False
    async with received:
        while chunk := await process.stdout.read(_CHUNK_BYTES):
            *ended, rest = chunk.split(b"\n")
            for part in ended if not discarding else ():
                message = _parse(line + part, length + len(part))
                line, length = bytearray(), 0
                try:
                    if message is not None:
                        await received.send(message)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    discarding = True
                    break
            line += rest
            length += len(rest)
            if len(line) > MAX_LINE_BYTES:
                del line[_KEPT_HEAD : len(line) - _KEPT_TAIL]


def _parse(line: bytearray, length: int) -> Any:
    """Parse a line. Returns a message, an exception for a line that is no message, or None for a cut notification."""
    if length > MAX_LINE_BYTES:
        return _cut_response(bytes(line), length)
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(bytes(line), by_name=False))
    except ValueError as e:
        return e


def _cut_response(line: bytes, length: int) -> SessionMessage | None:
    """Build a response with the beginning of a text that is too long; None if the line is no response."""
    number = _ID_FIRST.match(line[:1024]) or _ID_LAST.search(line[-_KEPT_TAIL:])
    if number is None:
        return None
    text = ""
    if found := _TEXT.search(line[:_KEPT_HEAD]):
        with suppress(ValueError):
            text = json.loads(b'"' + found[1] + b'"')
    note = f"[the answer of {length} bytes is cut]"
    content = [{"type": "text", "text": f"{_HALF_SURROGATE.sub('', text)}\n{note}" if text else note}]
    response = {"jsonrpc": "2.0", "id": json.loads(number[1]), "result": {"content": content}}
    return SessionMessage(jsonrpc_message_adapter.validate_python(response))


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
