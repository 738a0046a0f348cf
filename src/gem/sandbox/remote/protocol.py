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
for an unknown path or method, 413 for a body that is too large (BadValue), and 503 for a failure of the sandbox
(SandboxError) or if too many requests are in progress. A run whose program fails has status 200; its result describes
the failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, TypedDict, TypeVar

import msgspec

from gem.errors import BadValue, SandboxError
from gem.sandbox.inputs import as_base64
from gem.sandbox.results import Case, Limits

Decoded = TypeVar("Decoded")
OK, BAD_VALUE, NOT_FOUND, TOO_LARGE, FAILED = 200, 400, 404, 413, 503


class TypedFields(TypedDict):
    """The fields of machine.Typed."""

    output: bytes
    open: bool
    problem: str


def packed_cases(cases: Sequence[Case]) -> list[dict[str, Any]]:
    return [{**asdict(case), "stdin": as_base64(case.stdin)} for case in cases]


def unpacked_cases(cases: Sequence[Mapping[str, Any]]) -> list[Case]:
    return [Case(**{**case, "stdin": msgspec.convert(case["stdin"], bytes)}) for case in cases]


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


def decoded(data: Any, kind: type[Decoded]) -> Decoded:
    """Convert a part of a response to a type.

    Raises:
        SandboxError: if the data does not follow the protocol.
    """
    try:
        return msgspec.convert(data, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as e:  # the latter for half of a surrogate pair
        raise SandboxError(f"invalid response from the server: {e}") from e
