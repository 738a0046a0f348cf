"""Calls one function of a program, for sandboxes that start commands. Sent along with a job, run by inside_relay.py."""

from __future__ import annotations

import base64
import json
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any

CHANNEL = 3  # the place of the socket among the descriptors


def run(options: Mapping[str, Any], fds: Sequence[int]) -> None:
    """Call options["function"] of options["source"], and answer with a line of JSON: its exit code and its value."""
    inside: Any = sys.modules["__main__"]
    values: Any = sys.modules["values"]
    try:
        inside.program(base64.b64decode(options["source"]), name="program")
        function = named(vars(sys.modules["program"]), options["function"])
        value = values.encode(function(*json.loads(options["arguments"])))
        answer: dict[str, Any] = {"exit_code": 0, "value": value}
    except SystemExit as e:
        if not isinstance(e.code, (int, type(None))):
            print(e.code, file=sys.stderr)
        answer = {"exit_code": e.code & 0xFF if isinstance(e.code, int) else int(e.code is not None)}
    except BaseException as e:
        inside.show_error(type(e), e, e.__traceback__)
        answer = {"exit_code": 1, "out_of_memory": isinstance(e, MemoryError)}
    with socket.socket(fileno=fds[CHANNEL]) as channel:
        channel.sendall(json.dumps(answer).encode() + b"\n")


def named(variables: Mapping[str, Any], path: str) -> Any:
    """The function that ``name`` or ``Class.name`` means; a bare name is also looked for in a class Solution."""
    owner, _, name = path.rpartition(".")
    if not owner and name not in variables and "Solution" in variables:
        owner = "Solution"
    return getattr(variables[owner](), name) if owner else variables[name]
