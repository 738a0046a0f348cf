"""The protocol of remote sandboxes: JSON over HTTP, with a bearer token.

    POST   /run                  {"program", "stdin", "limits", "files"}       → result
    POST   /exec                 {"command", "stdin", "limits", "files"}       → result
    POST   /tests                {"program", "cases", "function", "limits"}    → {"results": [result, ...]}
    POST   /sessions             {"limits"}                                    → {"id"}
    POST   /sessions/{id}/cells  {"code", "wall_s"}                            → result
    DELETE /sessions/{id}                                                      → {}
    POST   /machines             {"limits", "files", "folder", "state"}        → {"id", "folder"}
    POST   /machines/{id}/{name} arguments of the method of Machine            → {"value", "folder", "ended"}
    DELETE /machines/{id}                                                      → {}
    GET    /report                                                             → report

Every request has the header ``Authorization: Bearer <token>``. Results, reports and limits are JSON objects with the
fields of the dataclasses in base.py; omitted fields have their default values. Programs, stdin and file contents are
base64, so that they can contain any bytes; files of machines are a base64 archive (machine_protocol.pack). If a method
of a machine raises OSError, the response has {"os_error": [number, text, path]} instead of a value; if the machine has
ended, it has {"failure": text}. The state of a machine is {"hash"}; the server keeps what it stands for. The body of an
error response is ``{"error": text}``. Its status is 400 for an invalid request (BadValue), 401 for a wrong token, 404
for an unknown path or method, and 503 for a failure of the sandbox (SandboxError). A run whose program fails has status
200; its result describes the failure.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, TypeVar

from gem.errors import BadValue, SandboxError
from gem.sandbox.inputs import as_base64
from gem.sandbox.machine import Typed
from gem.sandbox.machine_protocol import FileEntry, pack, unpack
from gem.sandbox.results import Case, Limits, Report, Result, Status

Decoded = TypeVar("Decoded")
OK, BAD_VALUE, UNAUTHORIZED, NOT_FOUND, FAILED = 200, 400, 401, 404, 503


def unpacked(text: str) -> bytes:
    """Decode base64.

    Raises:
        BadValue: if the text is not valid base64.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as e:
        raise BadValue(f"expected base64, got {text!r:.80}: {e}") from e


def unpacked_files(files: Mapping[str, str]) -> dict[str, str | bytes]:
    return {path: unpacked(content) for path, content in files.items()}


def packed_cases(cases: Sequence[Case]) -> list[dict[str, Any]]:
    return [{**asdict(case), "stdin": as_base64(case.stdin)} for case in cases]


def unpacked_cases(cases: Sequence[Mapping[str, Any]]) -> list[Case]:
    return [Case(**{**case, "stdin": unpacked(case["stdin"])}) for case in cases]


def packed_limits(limits: Limits | None) -> dict[str, Any] | None:
    return None if limits is None else asdict(limits)


def unpacked_limits(limits: Mapping[str, Any] | None) -> Limits | None:
    """Decode limits.

    Raises:
        BadValue: if a limit is unknown or out of range.
    """
    if limits is None:
        return None
    if unknown := set(limits) - {field.name for field in fields(Limits)}:
        raise BadValue(f"unknown limit {sorted(unknown)[0]!r}")
    return Limits(**limits)


def packed_result(result: Result) -> dict[str, Any]:
    return {**asdict(result), "status": str(result.status)}


def unpacked_result(data: Mapping[str, Any]) -> Result:
    """Decode a result. Raises KeyError, TypeError or ValueError if it is invalid."""
    return Result(**{**data, "status": Status(data["status"])})


def packed_report(report: Report) -> dict[str, Any]:
    return asdict(report)


def unpacked_report(data: Mapping[str, Any]) -> Report:
    """Decode a report. Raises TypeError if it is invalid."""
    return Report(**data)


def packed_entries(entries: Iterable[FileEntry]) -> str:
    return as_base64(pack(entries))


def unpacked_entries(text: str) -> list[FileEntry]:
    """Decode files of a machine. Raises BadValue, TypeError or ValueError if they are invalid."""
    return list(unpack(unpacked(text)))


def packed_typed(typed: Typed) -> dict[str, Any]:
    return {**typed._asdict(), "output": as_base64(typed.output)}


def unpacked_typed(data: Mapping[str, Any]) -> Typed:
    """Decode what keys gave. Raises KeyError or TypeError if it is invalid."""
    return Typed(**{**data, "output": unpacked(data["output"])})


def packed_os_error(error: OSError) -> list[Any]:
    path = error.filename.decode(errors="replace") if isinstance(error.filename, bytes) else error.filename
    return [error.errno or 0, error.strerror or str(error), path]


def unpacked_os_error(data: Sequence[Any]) -> tuple[int, str, str | None]:
    """Decode the arguments of an OSError. Raises TypeError or ValueError if they are invalid."""
    number, text, path = data
    return int(number), str(text), None if path is None else str(path)


def decoded(decode: Callable[[Any], Decoded], data: Any) -> Decoded:
    """Return ``decode(data)`` for a part of a response.

    Raises:
        SandboxError: if the data does not follow the protocol.
    """
    try:
        return decode(data)
    except (KeyError, TypeError, ValueError) as e:
        raise SandboxError(f"invalid response from the server: {type(e).__name__}: {e}") from e
