"""A limit on the length of the messages from MCP servers, so that parsing them does not hold up the event loop.

Of a response above the limit, the beginning of its first text is kept, so that only this call is affected.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

MAX_MESSAGE_BYTES = 8 << 20  # the parser takes about 20 ms for a message of this length
_KEPT_HEAD, _KEPT_TAIL = 1 << 17, 1 << 10  # bytes kept of a longer message

_ID = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,200}")'
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_ID_LAST = re.compile(_ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
_TEXT = re.compile(rb'"text"\s*:\s*"((?:[^"\\]|\\.)*)')
_HALF_SURROGATE = re.compile("[\ud800-\udfff]")


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

    def take(self) -> tuple[bytes, bool]:
        """Return the message and whether it is cut, and start the next. A cut message that is no response is empty."""
        data, length = bytes(self.data), self._length
        self.data, self._length = bytearray(), 0
        return (_cut_response(data, length), True) if length > self._limit else (data, False)


def _cut_response(data: bytes, length: int) -> bytes:
    """Build a response with the beginning of the text of a response that is too long; empty if it is no response."""
    data = data[max(data.find(b"{"), 0) :].replace(b"\ndata:", b"\n")  # lines of an event; JSON has no such text
    if (number := id_of(data)) is None:
        return b""
    text = ""
    if found := _TEXT.search(data[:_KEPT_HEAD]):
        with suppress(ValueError):
            text = json.loads(b'"' + found[1] + b'"')
    note = f"[the answer of {length} bytes is cut]"
    content = [{"type": "text", "text": f"{without_half_surrogates(text)}\n{note}" if text else note}]
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": {"content": content}}).encode()


def id_of(data: bytes) -> int | str | None:
    """Return the id at the beginning or the end of a message; None if there is none."""
    found = _ID_FIRST.match(data[:1024]) or _ID_LAST.search(data[-_KEPT_TAIL:])
    number: int | str | None = None if found is None else json.loads(found[1])
    return number


def without_half_surrogates(text: str) -> str:
    return _HALF_SURROGATE.sub("\ufffd", text)


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
                event.add(line)
                if event.data.endswith((b"\n\n", b"\r\r", b"\n\r\n")):
                    yield _event(*event.take())
    yield _event(*event.take())


def _event(data: bytes, is_cut: bool) -> bytes:
    return b"event: message\ndata: " + data + b"\n\n" if is_cut and data else data
