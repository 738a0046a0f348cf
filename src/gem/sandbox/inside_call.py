"""Calls one function of a program, for sandboxes that start commands. Sent along with a job, run by inside_relay.py."""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

CHANNEL = 3  # the place of the socket among the descriptors


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Call options["function"] of options["source"], and answer with a line of JSON: its exit code and its value."""
    program: Any = sys.modules["program"]
    values: Any = sys.modules["values"]
    answer: dict[str, Any] = {"exit_code": 1}

    def call() -> None:
        try:
            module = program.new_module("subject")
            program.run_in(module, code)
            value = program.named(module, options["function"])(*json.loads(options["arguments"]))
            answer["value"] = values.encode(value)
        except MemoryError:
            answer["out_of_memory"] = True
            raise

    program.open_streams(unbuffered=True)
    code = program.compiled(base64.b64decode(options["source"]))
    if code is not None:
        answer["exit_code"] = program.execute(call)
    with socket.socket(fileno=fds[CHANNEL]) as channel:
        channel.sendall(json.dumps(answer).encode() + b"\n")
    os._exit(0)
