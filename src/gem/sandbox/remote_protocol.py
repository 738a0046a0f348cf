"""The protocol of remote sandboxes: JSON over HTTP/1.1, with a bearer token.

    POST   /run                  {"program", "stdin", "limits", "files"}                → a result
    POST   /exec                 {"command", "stdin", "limits", "files"}                → a result
    POST   /tests                {"program", "cases", "function", "limits"}             → {"results": [a result, ...]}
    POST   /sessions             {"limits"}                                             → {"id"}
    POST   /sessions/{id}/cells  {"code", "wall_s"}                                     → a result
    DELETE /sessions/{id}                                                               → {}
    GET    /report                                                                      → a report

Every request carries ``Authorization: Bearer <token>``. Results, reports and limits are the fields of the dataclasses
in base.py; what is not given has its default. Programs, stdin and the contents of files are base64, so that any bytes
can be sent. An answer other than 200 has ``{"error": text}``: 400 is the caller's mistake (BadValue), 401 a wrong
token, 404 no such address, 503 a failure of the machinery (SandboxError). A program that fails is a result, and so
200.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from gem.errors import BadValue
from gem.sandbox.base import Case, Files, Limits, Report, Result, Status

OK, BAD_VALUE, UNAUTHORIZED, NOT_FOUND, FAILED = 200, 400, 401, 404, 503


def packed(data: str | bytes) -> str:
    """Text or bytes as base64; text as UTF-8."""
    return base64.b64encode(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data).decode()


def unpacked(text: str) -> bytes:
    """Raises BadValue for what is no base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as e:
        raise BadValue(f"expected base64, got {text!r:.80}: {e}") from e


def packed_files(files: Files | None) -> dict[str, str]:
    return {path: packed(content) for path, content in (files or {}).items()}


def unpacked_files(files: Mapping[str, str]) -> dict[str, str | bytes]:
    return {path: unpacked(content) for path, content in files.items()}


def packed_cases(cases: Sequence[Case]) -> list[dict[str, Any]]:
    return [{"stdin": packed(case.stdin), "arguments": case.arguments} for case in cases]


def unpacked_cases(cases: Sequence[Mapping[str, Any]]) -> list[Case]:
    return [Case(stdin=unpacked(case["stdin"]), arguments=case.get("arguments")) for case in cases]


def packed_limits(limits: Limits | None) -> dict[str, Any] | None:
    return None if limits is None else asdict(limits)


def unpacked_limits(limits: Mapping[str, Any] | None) -> Limits | None:
    """Raises BadValue for a limit that there is not, or a value that it cannot have."""
    if limits is None:
        return None
    if unknown := set(limits) - {field.name for field in fields(Limits)}:
        raise BadValue(f"no limit {sorted(unknown)[0]!r}")
    return Limits(**limits)


def packed_result(result: Result) -> dict[str, Any]:
    return {**asdict(result), "status": str(result.status)}


def unpacked_result(data: Mapping[str, Any]) -> Result:
    """Raises KeyError, TypeError or ValueError for what is no result."""
    return Result(**{**data, "status": Status(data["status"])})


def packed_report(report: Report) -> dict[str, Any]:
    return asdict(report)


def unpacked_report(data: Mapping[str, Any]) -> Report:
    """Raises TypeError for what is no report."""
    return Report(**data)
