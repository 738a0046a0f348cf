"""Read and write TOML files."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gem.errors import BadValue, UnknownArgument, did_you_mean, require


def read_toml(path: Path, *, extra: str) -> dict[str, Any]:
    """Return the content of a TOML file.

    Args:
        extra: the extra that installs tomli, which Python 3.10 needs.

    Raises:
        OSError: the file cannot be read.
        BadValue: it is not TOML.
        MissingDependency: on Python 3.10 without tomli.
    """
    toml = require("tomllib" if sys.version_info >= (3, 11) else "tomli", extra=extra)
    try:
        data: dict[str, Any] = toml.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise BadValue(f"{path} is not TOML: {e}") from e
    return data


def check_keys(where: str, data: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise UnknownArgument for the first key that is not known."""
    known = list(known)
    for key in data:
        if not isinstance(key, str):
            raise BadValue(f"{where}: keys are text, got {key!r}")
        if key not in known:
            raise UnknownArgument(f"{where}: unknown key {key!r}{did_you_mean(key, known)}  (keys: {', '.join(known)})")


def write_toml(data: Mapping[str, Any]) -> str:
    """Return data as TOML. Lists of dicts at the top level become tables, other dicts become inline tables.

    Raises:
        BadValue: for a value that TOML does not have, such as None.
    """
    tables = {key: value for key, value in data.items() if _is_tables(value)}
    lines = [f"{_key(key)} = {_value(value, key)}" for key, value in data.items() if key not in tables]
    for key, rows in tables.items():
        for row in rows:
            lines += ["", f"[[{_key(key)}]]", *(f"{_key(k)} = {_value(v, k)}" for k, v in row.items())]
    return "\n".join(lines) + "\n"


def _is_tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("-", "_").isidentifier() else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any, name: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v, k)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(item, name) for item in value) + "]"
    raise BadValue(f"{name}={value!r} cannot be written as TOML")
