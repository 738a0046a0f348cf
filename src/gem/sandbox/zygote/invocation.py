"""Run a program in the process of a test: as a script, or by calling one of its functions."""

from __future__ import annotations

import json
import os
import types

from gem.sandbox.zygote import program, values
from gem.sandbox.zygote.batch_protocol import ARGUMENTS, VALUE


class ScriptInvocation:
    """Runs the program as __main__. Calling it returns the exit code."""

    def __init__(self, code: types.CodeType) -> None:
        self.code, self.module = code, program.new_module("__main__")

    def __call__(self) -> int:
        return program.execute(self._run)

    def _run(self) -> None:
        program.run_in(self.module, self.code)


class FunctionInvocation:
    """Calls a function of the program. Calling it returns the exit code.

    Args:
        code: the compiled program.
        function: ``name``, also looked up in a class Solution, or ``Class.method``, called on a new instance.
    """

    def __init__(self, code: types.CodeType, function: str) -> None:
        self.code, self.function, self.module = code, function, program.new_module("program")

    def __call__(self) -> int:
        return program.execute(self._call)

    def _call(self) -> None:
        with open(ARGUMENTS, "rb") as file:
            arguments = json.load(file)
        program.run_in(self.module, self.code)
        value = program.find_function(self.module, self.function)(*arguments)
        try:
            text = values.encode(value)
        except values.NotPlain as e:
            raise SystemExit(f"the return value of {self.function} {e}") from None
        write_all(VALUE, text.encode())


def write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
