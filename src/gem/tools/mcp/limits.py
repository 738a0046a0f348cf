"""Limits on the messages from MCP servers, so that parsing them does not hold up the event loop.

Of a response that is too long, the beginning of its first text is kept. One that is nested too deeply, or has too many
items, becomes an error. So only this call is affected.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

from mcp.types import PARSE_ERROR

from gem._internal.inbound import MESSAGE, check_json, loads
from gem.errors import BadInput

MAX_MESSAGE_BYTES = 8 << 20  # the parser takes about 20 ms for a message of this length
BOUNDS = MESSAGE._replace(items=100_000)  # the SDK makes an object of each part of an answer
MAX_LINES = 10_000  # of an event; the SDK takes some microseconds for each
_KEPT_HEAD, _KEPT_TAIL = 1 << 17, 1 << 10  # bytes kept of a longer message

_ID = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,200}")'
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_ID_LAST = re.compile(_ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
_TEXT = re.compile(rb'"text"\s*:\s*"((?:[^"\\]|\\.)*)')


class MessageBuffer:
    """Collects the bytes of one message at a time. Keeps only the beginning and the end of a message above the limit.

    Args:
        limit: maximum length of a message in bytes.
    """

    def __init__(self, limit: int = MAX_MESSAGE_BYTES) -> None:
        self._limit = limit
        self.data, self._length = bytearray(), 0

    def add(self, part: bytes) -> None:
        self.data += part
        self._length += len(part)
        if len(self.data) > self._limit:
            del self.data[_KEPT_HEAD : len(self.data) - _KEPT_TAIL]

    def take(self, *, event: bool = False) -> tuple[bytes, bool]:
        """Return the message or event, and whether it was replaced by a short response, and start the next one.

        A message above a limit that is no response is replaced by nothing.
        """
        data, length = bytes(self.data), self._length
        self.data, self._length = bytearray(), 0
        is_long = length > self._limit or (event and data.count(b"\n") + data.count(b"\r") > MAX_LINES)
        if is_long:
            data = data[:-_KEPT_TAIL][:_KEPT_HEAD] + data[-_KEPT_TAIL:]
        message = _event_data(data) if event else data
        if is_long:
            return _cut_response(message, length), True
        try:
            check_json(message, "it", BOUNDS)
        except BadInput as e:
            error = {"code": PARSE_ERROR, "message": f"invalid message: {e}"}
            return _response(message, error=error), True
        return data, False


def _event_data(event: bytes) -> bytes:
    lines = event.splitlines()
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))


def _cut_response(message: bytes, length: int) -> bytes:
    """Build a response with the beginning of the text of a response that is too long; empty if it is no response."""
    text = ""
    if found := _TEXT.search(message[:_KEPT_HEAD]):
        with suppress(BadInput):
            text = loads(b'"' + found[1] + b'"', "a text")
    note = f"[the answer of {length} bytes is cut]"
    return _response(message, result={"content": [{"type": "text", "text": f"{text}\n{note}" if text else note}]})


def _response(message: bytes, **content: Any) -> bytes:
    """Return a response with the id of a message; empty if it has none."""
    number = id_of(message)
    return b"" if number is None else json.dumps({"jsonrpc": "2.0", "id": number, **content}).encode()


def id_of(data: bytes) -> int | str | None:
    """Return the id at the beginning or the end of a message; None if there is none."""
    found = _ID_FIRST.match(data[:1024]) or _ID_LAST.search(data[-_KEPT_TAIL:])
    with suppress(BadInput):
        number: int | str | None = None if found is None else loads(found[1], "an id")
        return number
    return None


async def limit_body(chunks: AsyncGenerator[bytes, None], limit: int) -> AsyncGenerator[bytes, None]:
    """Limit the body of an HTTP response that is one message."""
    message = MessageBuffer(limit)
    async with aclosing(chunks):
        async for chunk in chunks:
            message.add(chunk)
    yield message.take()[0]


async def limit_events(chunks: AsyncGenerator[bytes, None], limit: int) -> AsyncGenerator[bytes, None]:
    """Limit each of a stream of server-sent events."""
    event = MessageBuffer(limit)
    async with aclosing(chunks):
        async for chunk in chunks:
            for line in chunk.splitlines(keepends=True):
                if event.data or not line.isspace():  # an event begins; a stream may be blank lines only
                    event.add(line)
                if event.data.endswith((b"\n\n", b"\r\r", b"\n\r\n")):
                    yield _event(*event.take(event=True))
    yield _event(*event.take(event=True))


def _event(data: bytes, is_new: bool) -> bytes:
    return b"event: message\ndata: " + data + b"\n\n" if is_new and data else data
