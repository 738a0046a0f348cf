# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Records: changes as lines of text.

A line has a checksum of eight hexadecimal digits, the operation, and its fields, separated by tabs. In fields,
backslashes, tabs and line breaks are escaped, and \\0 stands for None.
"""

import zlib

OPERATIONS = {"set": 4, "delete": 2, "begin": 0, "commit": 0}  # name: number of fields
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_PLAIN = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}


def encode(operation, *fields):
    """Return the line of a record, with a line break. Fields are text, integers or None."""
    if len(fields) != OPERATIONS[operation]:
        raise ValueError(f"{operation} has {OPERATIONS[operation]} fields, got {len(fields)}")
    body = "\t".join([operation, *(_escaped(field) for field in fields)])
    return f"{checksum(body)}\t{body}\n"


def decode(line):
    """Return (operation, fields as text or None) of a line. Raises ValueError if it is damaged."""
    if not line.endswith("\n"):
        raise ValueError("the line has no end")
    found, _, body = line[:-1].partition("\t")
    if found != checksum(body):
        raise ValueError("the checksum is wrong")
    operation, *fields = body.split("\t")
    if OPERATIONS.get(operation) != len(fields):
        raise ValueError(f"unknown operation {operation!r} with {len(fields)} fields")
    return operation, [_plain(field) for field in fields]


def checksum(text):
    return f"{zlib.crc32(text.encode('utf-8')):08x}"


def _escaped(field):
    if field is None:
        return "\\0"
    return "".join(_ESCAPES.get(char, char) for char in str(field))


def _plain(field):
    if field == "\\0":
        return None
    result = []
    chars = iter(field)
    for char in chars:
        result.append(_PLAIN[next(chars)] if char == "\\" else char)
    return "".join(result)
