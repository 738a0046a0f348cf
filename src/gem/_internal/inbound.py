"""Read what comes from outside: replies, answers of servers, files, folders, requests. Every reader has bounds.

The bounds are checked before a general reader (json, tomllib, yaml, zlib, Pillow) sees the data, so that no input costs
more than its size suggests, and depth is an error of its own: a reader's RecursionError depends on how deep the caller
stands, and data that a reader still takes may be too deep for the code that uses it.
"""

from __future__ import annotations

import ast
import copy
import io
import json
import logging
import math
import os
import re
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from gem.errors import BadInput, GemError, require

LONGEST_INT = 4300  # digits; Python's default limit, sys.int_info.default_max_str_digits
MAX_PIXELS = 64 << 20  # of an image, all frames together; 256 MiB as RGBA
# What needs no other program and no parser of documents: Pillow hands EPS to Ghostscript and finds formats by content.
IMAGE_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PPM")

logger = logging.getLogger(__name__)


class Bounds(NamedTuple):
    """What one document may have at most.

    Args:
        bytes: its length, after decompression.
        depth: nested arrays and objects.
        items: array items and keys of objects together, about 100 bytes each in memory.
    """

    bytes: int
    depth: int
    items: int


REPLY = Bounds(4 << 20, 64, 100_000)  # JSON that a model writes
MESSAGE = Bounds(16 << 20, 64, 1_000_000)  # an answer of a server, a request, a message of a sandbox
FILE = Bounds(256 << 20, 100, 16_000_000)  # a document or line of a file; an episode with tokens and images is one
SETTINGS = Bounds(1 << 18, 32, 10_000)  # a file that a person writes
_FREE, _MOST_GROWTH = 4 << 20, 100  # bytes of any compressed data; above them, bytes per compressed byte
_MOST_MEMBERS = 1000  # of gzip data; the rest is copied after each
_ZSTANDARD = 93  # compression of a member of a zip archive; the default of inspect-ai

_SURROGATE = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")  # a pair, or one that is alone
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'[]{},"'))
_NEITHER = bytes(set(_NOT_STRUCTURE) - set(b"\\/bfnrtu"))  # nor part of an escape
_AS_LISTS = bytes.maketrans(b"{}", b"[]")
_STRING = re.compile(rb'"[^"]*"?')
_DOTTED = re.compile(r"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){32}""")  # a key of TOML


def loads(
    data: str | bytes,
    source: str,
    bounds: Bounds = FILE,
    *,
    long_integers: bool = False,
    keep_surrogates: bool = False,
) -> Any:
    r"""Decode JSON. Lone surrogates, which no encoding takes, become U+FFFD; a warning counts them.

    Args:
        source: what the data is, for error messages.
        long_integers: read an integer of more than LONGEST_INT digits as ``Decimal``, which is exact and takes linear
            time; otherwise it is an error.
        keep_surrogates: keep lone surrogates, as records of what was said have to.

    Raises:
        BadInput: if the data is not UTF-8, not JSON, or exceeds the bounds.

    >>> loads('{"a": [1, "\\ud800"]}', "an example") == {"a": [1, "\ufffd"]}
    True
    >>> loads("[" * 100_000, "an example")
    Traceback (most recent call last):
    gem.errors.BadInput: an example is nested 100000 deep; at most 100 are read
    """
    import msgspec

    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data.removeprefix(b"\xef\xbb\xbf")
    check_json(raw, source, bounds)
    try:
        return msgspec.json.decode(raw)  # in half the time; what it takes it reads as the json module does
    except (ValueError, msgspec.MsgspecError):
        pass
    try:
        text = data if isinstance(data, str) else raw.decode()
        value = json.loads(text, parse_int=_integer) if long_integers else json.loads(text)
    except json.JSONDecodeError as e:
        at = f"line {e.lineno}, column {e.colno}" if e.lineno > 1 else f"column {e.colno}"
        raise BadInput(source, f"is not JSON: {e.msg} at {at}") from e
    except UnicodeDecodeError as e:
        raise BadInput(source, f"is not UTF-8: {e.reason} at byte {e.start}") from e
    except ValueError as e:  # an integer is too long
        raise BadInput(source, f"has an integer of more than {LONGEST_INT} digits", limit=LONGEST_INT) from e
    if keep_surrogates:
        return value
    value, count = without_surrogates(value)
    if count:
        logger.warning("%s: %d lone surrogates replaced", source, count)
    return value


def check_json(data: bytes, source: str, bounds: Bounds = FILE) -> None:
    """Check the bounds of JSON that another reader decodes. Says nothing about its syntax.

    Raises:
        BadInput: if the data exceeds the bounds.
    """
    check_size(len(data), source, bounds.bytes)
    opened = data.count(b"[") + data.count(b"{")
    if opened <= bounds.depth and opened + data.count(b",") <= bounds.items:
        return
    if b"\\" in data:  # from left to right, so that \\\\" ends a string and \\\" does not
        data = data.translate(None, _NEITHER).replace(b"\\\\", b"").replace(b'\\"', b"")
    structure = _STRING.sub(b"", data.translate(None, _NOT_STRUCTURE).replace(b'""', b""))
    brackets, deep = structure.translate(_AS_LISTS, b","), 0
    while brackets and (inner := brackets.replace(b"[]", b"")) != brackets and deep <= bounds.depth:
        brackets, deep = inner, deep + 1  # each round removes the innermost level
    if (deep := deep + brackets.count(b"[")) > bounds.depth:
        why = f"is nested {deep} deep; at most {bounds.depth} are read"
        raise BadInput(source, why, limit=bounds.depth, value=deep)
    items = structure.count(b",") + structure.count(b"[") + structure.count(b"{")
    if items > bounds.items:
        raise BadInput(source, f"has {items} items; at most {bounds.items} are read", limit=bounds.items, value=items)


def check_size(size: int, source: str, limit: int) -> None:
    """Raise BadInput if a size in bytes is above a limit."""
    if size > limit:
        raise BadInput(source, f"has {size:,} bytes; at most {limit:,} are read", limit=limit, value=size)


def check_value(value: Any, source: str, bounds: Bounds = SETTINGS) -> None:
    """Check depth and number of items of decoded data, counting shared parts as often as they occur.

    Raises:
        BadInput: if the value exceeds the bounds; also for one that contains itself.
    """
    level, depth, items = [value], 0, 0
    while level := [each for each in level if isinstance(each, (dict, list, tuple))]:
        depth, items = depth + 1, items + sum(map(len, level))
        if depth > bounds.depth:
            why = f"is nested more than {bounds.depth} deep"
            raise BadInput(source, why, limit=bounds.depth, value=depth)
        if items > bounds.items:
            raise BadInput(source, f"has more than {bounds.items} items", limit=bounds.items, value=items)
        level = [item for each in level for item in (each.values() if isinstance(each, dict) else each)]


def read_bytes(path: str | os.PathLike[str], bounds: Bounds = FILE) -> bytes:
    """Read a file. Raises OSError, or BadInput if it exceeds the bounds."""
    with open(path, "rb") as file:
        data = file.read(min(os.fstat(file.fileno()).st_size, bounds.bytes) + 1)  # reserves as much at once
        while len(data) <= bounds.bytes and (more := file.read(1 << 20)):  # a pipe, or a file that grows
            data += more
    if len(data) > bounds.bytes:
        check_size(max(len(data), os.path.getsize(path)), str(path), bounds.bytes)
    return data


def read_text(path: str | os.PathLike[str], bounds: Bounds = FILE) -> str:
    """Read a text file. Raises OSError, or BadInput if it is not UTF-8 or exceeds the bounds."""
    try:
        return read_bytes(path, bounds).decode("utf-8")
    except UnicodeDecodeError as e:
        raise BadInput(str(path), f"is not UTF-8: {e.reason} at byte {e.start}") from e


def read_json(path: str | os.PathLike[str], bounds: Bounds = FILE) -> Any:
    """Read a JSON file. Raises OSError, or BadInput as loads() does."""
    return loads(read_bytes(path, bounds), str(path), bounds)


def read_lines(file: Any, source: str, bounds: Bounds = FILE) -> Iterator[bytes]:
    """Yield the lines of a binary file. Raises BadInput, naming the line, for one that exceeds the bounds."""
    number = 1
    while line := file.readline(bounds.bytes + 1):
        if len(line) > bounds.bytes:
            check_size(len(line), f"{source}, line {number}", bounds.bytes)
        yield line
        number += 1


def read_toml(path: Path, *, extra: str) -> dict[str, Any]:
    """Return the content of a TOML file.

    Args:
        extra: the extra that installs tomli, which Python 3.10 needs.

    Raises:
        OSError: the file cannot be read.
        BadInput: it is not TOML, or exceeds the bounds of SETTINGS.
        MissingDependency: on Python 3.10 without tomli.
    """
    toml = require("tomllib" if sys.version_info >= (3, 11) else "tomli", extra=extra)
    if _DOTTED.search(text := read_text(path, SETTINGS)):  # which takes quadratic time
        raise BadInput(str(path), "has a key of more than 32 parts", limit=32)
    try:
        data: dict[str, Any] = toml.loads(text)
    except (ValueError, RecursionError) as e:
        raise BadInput(str(path), f"is not TOML: {e}") from e
    check_value(data, str(path))
    return data


def read_yaml(path: Path, *, extra: str) -> Any:
    """Return the content of a YAML file, in which no tag makes an object.

    Args:
        extra: the extra that installs PyYAML.

    Raises:
        OSError: the file cannot be read.
        BadInput: it is not YAML, or exceeds the bounds of SETTINGS, aliases counted as often as they occur.
        MissingDependency: without PyYAML.
    """
    yaml = require("yaml", extra=extra)
    text = read_text(path, SETTINGS._replace(bytes=48 << 10))  # in half a second; the parser in C overflows the stack
    steps = {"[": 1, "{": 1, "]": -1, "}": -1}
    if max(accumulate(steps.get(character, 0) for character in text), default=0) > 1000:  # quadratic time
        raise BadInput(str(path), "has more than 1000 open brackets", limit=1000)
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise BadInput(str(path), f"is not YAML: {' '.join(str(e).split())}") from e
    check_value(data, str(path))
    return data


def parse_python(source: str, name: str) -> ast.Module:
    """Return the syntax tree of Python source. Raises BadInput if it is not Python, or has more than 100,000 bytes."""
    check_size(len(source.encode("utf-8", "surrogatepass")), name, 100_000)  # the tree takes 600 bytes per byte
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of "\\d" in a literal
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:  # the last two if it is nested
        raise BadInput(name, f"is not Python: {e or 'it is nested too deeply'}") from e


def open_image(data: bytes | str | os.PathLike[str], source: str, most: int = MAX_PIXELS) -> Any:
    """Return an image that is read whole, as a PIL image of its first frame or frames.

    Args:
        data: the bytes of the file, or its path.
        most: pixels of all frames together.

    Raises:
        BadInput: if it is not one of IMAGE_FORMATS, is damaged, or has more than ``most`` pixels.
        MissingDependency: without the extra [vision].
    """
    pil = require("PIL.Image", extra="vision")
    try:
        image = pil.open(io.BytesIO(data) if isinstance(data, bytes) else data, formats=IMAGE_FORMATS)
        pixels = image.width * image.height  # from the header; counting frames reads the file, but decodes nothing
        if pixels <= most:
            pixels *= getattr(image, "n_frames", 1)
        if pixels > most:
            why = f"has {pixels:,} pixels; at most {most:,} are read"
            raise BadInput(source, why, limit=most, value=pixels)
        image.load()
        return image
    except BadInput:
        raise
    except Exception as e:  # Pillow's plugins raise of many types for damaged data
        raise BadInput(source, f"is not a readable image: {type(e).__name__}: {e}") from e


def grown(size: int, limit: int) -> int:
    """Return how many bytes so many compressed ones may become, at most ``limit``: 1 MiB can hold 1 GiB."""
    return min(limit, max(_FREE, _MOST_GROWTH * size))


def inflate(data: bytes, source: str, limit: int) -> bytes:
    """Decompress gzip or zlib data. Raises BadInput if it is damaged or has more than ``limit`` or grown() bytes."""
    return _decompressed(data, source, grown(len(data), limit), lambda: zlib.decompressobj(zlib.MAX_WBITS | 32))


def _decompressed(data: bytes, source: str, limit: int, decompressor: Callable[[], Any]) -> bytes:
    parts, size = list[bytes](), 0
    try:
        while data and len(parts) < _MOST_MEMBERS:  # members of gzip and frames of zstandard may follow each other
            stream = decompressor()
            parts.append(stream.decompress(data, limit - size + 1))
            size += len(parts[-1])
            if size > limit:
                break
            if not stream.eof:
                raise BadInput(source, "is compressed and cut off")
            data = stream.unused_data.lstrip(b"\0")
    except BadInput:
        raise
    except Exception as e:  # zlib.error, or the error of a library for zstandard
        raise BadInput(source, f"has invalid compressed data: {e}") from e
    check_size(size, f"{source}, decompressed,", limit)
    return b"".join(parts)


def read_member(archive: zipfile.ZipFile, name: str, bounds: Bounds = FILE, *, extra: str) -> bytes:
    """Read one member of a zip archive that is stored, deflated or compressed with zstandard, as far as its bounds.

    Args:
        extra: the extra that installs backports.zstd, which Python before 3.14 needs for zstandard.

    Raises:
        BadInput: if it is missing, damaged, encrypted, has another compression, or exceeds the bounds.
        MissingDependency: for zstandard, without backports.zstd.
    """
    source = f"{archive.filename}, {name}"
    limit = grown(getattr(archive, "start_dir", 0), bounds.bytes)
    try:
        member = archive.getinfo(name)
        checksum, is_zstandard = member.CRC, member.compress_type == _ZSTANDARD
        if is_zstandard:  # read as it is stored
            member = copy.copy(member)
            member.compress_type, member.file_size = zipfile.ZIP_STORED, member.compress_size
            del member.CRC
        elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # zipfile reads others unbounded
            raise ValueError(f"compression {member.compress_type}")
        with archive.open(member) as file:
            data = file.read(limit + 1)
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as e:
        raise BadInput(source, f"cannot be read: {e}") from e
    check_size(len(data), source, limit)
    if is_zstandard:
        zstd = require("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd", extra=extra)
        data = _decompressed(data, source, limit, zstd.ZstdDecompressor)
        if zlib.crc32(data) != checksum:
            raise BadInput(source, "cannot be read: it is damaged")
    return data


@contextmanager
def shaped(source: str, what: str, error: type[GemError] = BadInput) -> Iterator[None]:
    """Raise an error, "source is not what", for those of code that takes data apart and finds another shape."""
    try:
        yield
    except GemError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as e:
        reason = f"is not {what}: {type(e).__name__}: {e}"
        raise (BadInput(source, reason) if error is BadInput else error(f"{source} {reason}")) from e


def without_surrogates(data: Any) -> tuple[Any, int]:
    """Return plain data that can be encoded, and how many characters of its text could not.

    The halves of a pair, which some decoders of JSON leave apart, are joined. A lone surrogate becomes U+FFFD.
    """
    count = 0

    def repaired(part: Any) -> Any:
        nonlocal count
        if isinstance(part, str) and not part.isascii():
            part, found = _SURROGATE.subn(_character, part)
            count += found
        elif isinstance(part, Mapping):
            return {repaired(key): repaired(item) for key, item in part.items()}
        elif isinstance(part, (list, tuple)):
            return [repaired(item) for item in part]
        return part

    return repaired(data), count


def _character(surrogates: re.Match[str]) -> str:
    return surrogates[0].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def finite(data: Any) -> Any:
    """Return decoded JSON with text for NaN and Infinity, which JSON does not have."""
    if isinstance(data, dict):
        return {name: finite(item) for name, item in data.items()}
    if isinstance(data, list):
        return [finite(item) for item in data]
    return str(data) if isinstance(data, float) and not math.isfinite(data) else data


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= LONGEST_INT else Decimal(digits)
