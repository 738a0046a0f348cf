"""Mutations of documents for fuzz_readers.py: bytes, JSON, TOML, YAML, gzip, zip and images."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any

MAX_BYTES = 1 << 20  # of a mutated document; a 16th of them if it is compressed
RAW = {  # JSON that json.dumps() does not write: what stands for a value, and its text
    "@huge@": "9" * 5000,
    "@infinite@": "1e999",
    "@nan@": "NaN",
    "@tiny@": "-1e-999",
    "@digits@": "1" + "0" * 400,
    "@half@": '"\\ud800"',
    "@deep@": "[" * 63 + "]" * 63,
    "@deeper@": '{"a":' * 99 + "1" + "}" * 99,
    "@deepest@": "[" * 5000 + "]" * 5000,
    "@twice@": '{"a": 1, "a": [2]}',
}
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 2**31, 2**63, -(2**63) - 1, 2**64, 10**18, 10**300, 0.5, -0.0, 1e308, 1e-320),
    *("", " ", "0", "nan", "1e400", "\0", "\x1b[2J", "\ud83d\ude00", "٣", "../../etc/passwd", "a" * 300, "[1]", "{"),
    *([], {}, [[]], [None], {"": None}, {"$dict": [[[], 1]]}, {"$numpy": ["<i8", [2], "AAAA"]}, {"$float": "x"}),
    *({"$numpy": ["O", [1], "AAAAAAAAAAA="]}, {"$numpy": ["V0", [9], "AAAA"]}, {"$numpy": ["<i4", [1 << 62], "AAAA"]}),
    *({"$tuple": 1}, {"$set": [[]]}, {"$bytes": "*"}, {"$image": "iVBORw0KGgo="}, {"$ref": "#"}, {"type": ["object"]}),
    *RAW,
]
TOKENS = [
    *(b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\x1b]0;x\x07", b"\xef\xbb\xbf", b"\r", b"\n", b"\x85", "\u2028".encode()),
    *(b'"', b"'", b"\\", b"\\u", b"\\ud800", b"{", b"}", b"[", b"]", b",", b":", b"NaN", b"-", b"1e999", b"9" * 5000),
    *(
        b"<tool_call>",
        b"</tool_call>",
        b"<arguments>",
        b"</think>",
        b"<think>",
        b"```python\n",
        b"\\boxed{",
        b"\\frac{",
    ),
    *(
        b"Action: f\nAction Input: ",
        b"<python>",
        b"\n[[env]]\n",
        b"a.b.c = 1\n",
        b"&a [*a, *a]\n",
        b"!!python/object:x {}",
    ),
    *(
        b"- &b [1]\n",
        b'"""',
        b"1979-05-27T07:32:00Z",
        b"0x_",
        b"inf",
        b"--",
        b"//",
        b"/*",
        b"${HOME}",
        b"${",
        b"%s",
        b"$",
    ),
]
OPENINGS = [
    b"[",
    b"{",
    b'{"a":',
    b"(",
    b"-",
    b"!",
    b"<think>",
    b"<tool_call>",
    b"\\boxed{",
    b"[[",
    b'"',
    b"- ",
    b"a:\n ",
]
OPENINGS += [
    b"\\frac{1}{",
    b"```\n",
    b"a.",
    b"{a = ",
    b'["',
    b"\\",
    b"lambda:",
    b"not ",
    b"<b>",
    b"x:",
    b"^",
    b"**",
    b"\n",
]
CLOSINGS = {
    b"[": b"]",
    b"{": b"}",
    b'{"a":': b"1}",
    b"(": b")",
    b"[[": b"]]",
    b"<think>": b"</think>",
    b"\\boxed{": b"}",
}


def mutated(seeds: Sequence[bytes], rng: Random) -> bytes:
    """Return a document with one to three mutations."""
    data = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = _once(data, seeds, rng)
        data = data[: MAX_BYTES // 16 if data[:2] in (b"\x1f\x8b", b"PK") else MAX_BYTES]  # it grows
    return data


def _once(data: bytes, seeds: Sequence[bytes], rng: Random) -> bytes:
    if rng.random() < 0.6:  # within the format, if it has one
        with suppress(ValueError, KeyError, OSError, EOFError, zlib.error, zipfile.BadZipFile, RecursionError):
            if data[:2] == b"\x1f\x8b":
                return _zipped(zlib.decompressobj(47).decompress(data, MAX_BYTES), seeds, rng)
            if data[:2] == b"PK":
                return _archive(data, rng)
            if data[:4] in (b"\x89PNG", b"GIF8", b"RIFF") or data[:2] in (b"\xff\xd8", b"BM", b"II"):
                return _image(data, rng)
            if len(data) < 1 << 16:
                return _json_lines(data, rng) if b"}\n{" in data else _json(data, rng)
    return rng.choice(BYTES)(data, seeds, rng)


def _flip(data: bytes, seeds: Sequence[bytes], rng: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8)) if data else 0):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(data: bytes, seeds: Sequence[bytes], rng: Random) -> bytes:
    start, end = _span(data, rng)
    return rng.choice((data[:start], data[start:], data[:start] + data[end:]))


def _splice(data: bytes, seeds: Sequence[bytes], rng: Random) -> bytes:
    other = rng.choice(seeds)
    return data[: _span(data, rng)[0]] + other[_span(other, rng)[0] :]


def _repeat(data: bytes, seeds: Sequence[bytes], rng: Random) -> bytes:
    start, end = _span(data, rng)
    count = min(rng.choice((2, 10, 100, 1000, 100_000)), MAX_BYTES // max(1, end - start))
    return data[:start] + data[start:end] * count + data[end:]


def _insert(data: bytes, seeds: Sequence[bytes], rng: Random) -> bytes:
    start = _span(data, rng)[0]
    return data[:start] + rng.choice(TOKENS) * rng.choice((1, 1, 1, 2, 100)) + data[start:]


def _nest(data: bytes, seeds: Sequence[bytes], rng: Random) -> bytes:
    start, end = _span(data, rng)
    opening, depth = rng.choice(OPENINGS), rng.choice((10, 50, 64, 100, 101, 200, 1000, 10_000, 100_000))
    closing = CLOSINGS.get(opening, b"") if rng.random() < 0.5 else b""
    return data[:start] + opening * depth + rng.choice((b"", b"1", data[start:end])) + closing * depth + data[end:]


def _lengthen(data: bytes, seeds: Sequence[bytes], rng: Random) -> bytes:
    start = _span(data, rng)[0]
    return (
        data[:start]
        + rng.choice((b"a", b" ", b"\0", b"9", b"\xc3\xa9", b"\\", b'"', b"a,")) * _size(rng)
        + data[start:]
    )


BYTES = [_flip, _flip, _cut, _splice, _repeat, _insert, _insert, _nest, _lengthen]


def _span(data: bytes, rng: Random) -> tuple[int, int]:
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return (start, end) if rng.random() < 0.3 else (start, min(end, start + rng.randrange(1, 30)))


def _size(rng: Random) -> int:
    return rng.choice((10, 100, 1000, 10_000, 100_000, MAX_BYTES // 2))


def _json(data: bytes, rng: Random) -> bytes:
    """Change one node of a JSON document: another value, a key twice, renamed or huge, more items, a long string."""
    value = json.loads(data)
    nodes: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        node = pending.pop()
        inner = (
            list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
        )
        nodes += [(node, key) for key, _ in inner]
        pending += [item for _, item in inner]
    if not nodes:
        return _written(rng.choice(VALUES))
    parent, key = rng.choice(nodes)
    old, change = parent[key], rng.randrange(8)
    if change < 4:
        parent[key] = rng.choice(VALUES)
    elif change == 4:
        parent[key] = rng.choice(([old], {"a": old}, [old] * rng.choice((2, 1000)), str(old), json.dumps(old)))
    elif change == 5 and isinstance(parent, dict):
        parent[rng.choice((f"{key}\0", "@half@", "a" * _size(rng), "", "$float", "__proto__", key.upper()))] = (
            parent.pop(key)
        )
    elif change == 6:
        parent[key] = rng.choice("a\0\u00e9[\\")[:1] * _size(rng)
    else:
        del parent[key]
    text = _written(value)
    if rng.random() < 0.1 and isinstance(parent, dict):  # the key once more
        name = json.dumps(key).encode() + b":"
        text = text.replace(b"{", b"{" + name + _written(rng.choice(VALUES)) + b",", 1)
    return text


def _written(value: Any) -> bytes:
    text = json.dumps(value)
    for name, raw in RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text.encode()


def _json_lines(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    number = rng.randrange(len(lines))
    lines[number] = _json(lines[number], rng)
    return b"\n".join(lines)


def _zipped(inner: bytes, seeds: Sequence[bytes], rng: Random) -> bytes:
    if rng.random() < 0.1:
        return gzip.compress(rng.choice((b"\0", b"\n", b'{"a":1}\n', b"[")) * rng.choice((1, 10, 50)) * MAX_BYTES, 1)
    return gzip.compress(rng.choice(BYTES)(inner, [inner], rng)[:MAX_BYTES], 1)


def _archive(data: bytes, rng: Random) -> bytes:
    """Change a member of a zip archive, or make it a bomb."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except (
        NotImplementedError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
    ):  # an earlier mutation damaged it
        return data
    name = rng.choice(list(members))
    bomb = rng.random() < 0.1
    members[name] = rng.choice((b"\0", b" ", b"[")) * 50 * MAX_BYTES if bomb else _json(members[name], rng)
    if rng.random() < 0.1:
        members[rng.choice((f"../{name}", f"{name}\n", "samples/" + "a" * 60_000, "samples/"))] = members.pop(name)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def _image(data: bytes, rng: Random) -> bytes:
    """Set sizes in the header, or 2 or 4 bytes anywhere, and repair the checksum of a PNG's header."""
    if rng.random() < 0.1:  # an image of one color, whose file is small
        width, height = rng.choice(((2000, 2000), (1, 65535), (4000, 3000), (9000, 9000), (1 << 20, 100)))
        rows = zlib.compress(bytes((width + 1) * height), 1)
        parts = (b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0), b"IDAT" + rows, b"IEND")
        chunks = [struct.pack(">I", len(p) - 4) + p + struct.pack(">I", zlib.crc32(p)) for p in parts]
        return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
    changed = bytearray(data)
    size = rng.choice((0, 1, 255, 8191, 65535, 100_000, 1 << 20, (1 << 31) - 1, (1 << 32) - 1))
    if data[:4] == b"\x89PNG" and rng.random() < 0.7:
        changed[16:24] = struct.pack(">II", size, rng.choice((1, 1000, 8191, size)))
        changed[24:26] = bytes(
            rng.choice(((8, 2), (8, 6), (16, 6), (1, 0), (8, 3), (rng.randrange(256), rng.randrange(8))))
        )
        changed[29:33] = struct.pack(">I", zlib.crc32(changed[12:29]))
        return bytes(changed)
    at = 6 if data[:4] == b"GIF8" and rng.random() < 0.5 else rng.randrange(max(1, min(len(data), 400)))
    changed[at : at + 4] = struct.pack(rng.choice("<>") + "I", size)
    return bytes(changed)
