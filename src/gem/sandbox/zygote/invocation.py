"""Run a program in a test process, either as a script or by calling one of its functions."""

from __future__ import annotations

import json
import os
import types

from gem.sandbox.zygote import program, values
from gem.sandbox.zygote.batch_protocol import ARGUMENTS, VALUE


class ScriptInvocation:
    """Runs the program as a script. Calling the instance runs the program and returns its exit code."""

    def __init__(self, code: types.CodeType) -> None:
        self.code, self.module = code, program.new_module("__main__")

    def __call__(self) -> int:
        return program.execute(self._run)

    def _run(self) -> None:
        program.run_in(self.module, self.code)


class FunctionInvocation:
    """Calls a function of the program. Calling the instance runs the program and returns its exit code.

    The arguments are read as JSON from ARGUMENTS, and the return value is written as JSON to VALUE.

    Args:
        code: the compiled program.
        function: ``name`` or ``Class.method``. A method is called on a new instance. If the program has no function
            ``name``, the method ``Solution.name`` is called.
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
