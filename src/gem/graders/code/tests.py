r"""Read the test formats of common programming datasets into one representation.

The format is detected from the data, never from the dataset name. Supported formats, each also as JSON text:

    {"inputs": [...], "outputs": [...]}                       stdin and stdout, as in TACO and APPS
    {"input": [...], "output": [...]}                         the same, as in CodeContests
    {"inputs": ..., "outputs": ..., "fn_name": "f"}           arguments and return values of f
    [{"input": ..., "output": ..., "fn_name": "f"}, ...]      one dict per test, as in PrimeIntellect
    {"test_cases": ...}                                       any of these, nested under this name or "tests", or
                                                              under "public_tests", "private_tests" and
                                                              "generated_tests" (CodeContests), or "public_test_cases"
                                                              and "private_test_cases" (LiveCodeBench), which are
                                                              combined

Stdin and stdout are strings or lists of lines. The arguments of a function call are a list, JSON text of a list, or
text with one JSON argument per line. LiveCodeBench uses the last form; its tests have ``"testtype": "functional"`` and
the name of the function in ``"metadata"``; as on LeetCode, expected floats are rounded, and values within 1e-5 are
right. LiveCodeBench publishes private tests as base64 of zlib of a pickled string of JSON, which is read without
unpickling objects. If the arguments are text, the return value can be JSON text too. APPS wraps each return value in a
list: if all expected values of a task are lists of one item, both the list and the item are accepted.

Next to the tests, in the same dict, there may be

    "checker": "..."        Python source that decides whether an output is right; see gem.graders.code.checker. The
                            expected outputs are then examples of right ones.
    "any_sequence": true    the function may return a deque, a range or an array where a list is expected

Integers may have any length; those of more than 4,300 digits are kept as ``Decimal`` (gem._internal.json_codec).
"""

from __future__ import annotations

import base64
import pickletools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from gem._internal.inbound import inflate, loads
from gem._internal.json_codec import dumps
from gem._internal.text import short_repr
from gem.errors import BadInput, BadValue
from gem.graders.code.checker import Checker, read_checker
from gem.sandbox import Case, Limits, Sandbox

_COLUMNS = (("inputs", "outputs"), ("input", "output"))
OPTIONS = ("checker", "any_sequence")
SPLIT_TESTS = ("public_tests", "private_tests", "generated_tests", "public_test_cases", "private_test_cases")
_NESTED = ("test_cases", "tests", *SPLIT_TESTS)
LEETCODE_TOLERANCE = 1e-5  # "Answers within 10^-5 of the actual answer will be accepted"; expected ones have 5 decimals
MAX_PACKED_BYTES = 1 << 28  # of compressed tests, when decompressed
_PICKLED_TEXT = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")
_PICKLE_FRAME = ("PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP")


@dataclass(frozen=True)
class ProgramTest:
    """One test of a program.

    Args:
        case: the input. Only the input enters the sandbox.
        accepted: the accepted outputs as text, or the accepted return values as plain data.
        tolerance: tolerance for expected floats, if it is larger than the tolerance of the grader.
    """

    case: Case
    accepted: tuple[Any, ...]
    tolerance: float = 0.0

    @property
    def size(self) -> int:
        """Length of the input: stdin, or the JSON text of the arguments."""
        return len(self.case.stdin) if self.case.arguments is None else len(self.case.arguments)

    def example(self) -> str:
        """Return the first accepted output, or the JSON text of the first accepted return value."""
        return self.accepted[0] if self.case.arguments is None else dumps(self.accepted[0])

    def accepted_by(self, checker: Checker, output: str, sandbox: Sandbox, limits: Limits) -> bool:
        """Return whether a checker accepts an output, or a return value as JSON text; see Checker.accepts()."""
        given = _text(self.case.stdin) if self.case.arguments is None else self.case.arguments
        values = self.case.arguments is not None
        return checker.accepts(given, output, self.example(), sandbox, limits, values=values)


@dataclass(frozen=True)
class Suite:
    """The tests of one task.

    Args:
        tests: at least one test.
        function: name of the function that the tests call; None if the tests run the program as a script.
        checker: decides whether an output is right; None if outputs are compared with the accepted ones.
    """

    tests: tuple[ProgramTest, ...]
    function: str | None = None
    checker: Checker | None = None

    def longest(self, count: int) -> Suite:
        """Return a suite of the ``count`` tests with the longest inputs, in their original order."""
        by_size = sorted(range(len(self.tests)), key=lambda index: -self.tests[index].size)
        return replace(self, tests=tuple(self.tests[index] for index in sorted(by_size[:count])))


@dataclass(frozen=True)
class _Raw:
    """A test before conversion. by_line: whether each line is one argument, as in LiveCodeBench."""

    input: Any
    output: Any
    function: str | None
    by_line: bool = False


def read_tests(data: Any) -> Suite:
    r"""Read tests in any of the formats in the module docstring.

    Raises:
        BadValue: if the data has none of these formats or contains no tests, or an option has an invalid value.

    >>> suite = read_tests('{"inputs": ["1 2\\n"], "outputs": ["3\\n"]}')
    >>> suite.function, suite.tests[0].case.stdin, suite.tests[0].accepted
    (None, '1 2\n', ('3\n',))
    >>> read_tests([{"input": [1, 2], "output": 3, "fn_name": "add"}]).function
    'add'
    """
    options: dict[str, Any] = {}
    found = list(_raw_tests(data, None, options))
    checker = read_checker(options["checker"]) if "checker" in options else None
    any_sequence = options.get("any_sequence", False)
    if not isinstance(any_sequence, bool):
        raise BadValue(f"any_sequence must be true or false, got {short_repr(any_sequence)}")
    functions = {raw.function for raw in found}
    if len(functions) != 1:
        if not found:
            raise BadValue(f"no tests found in {short_repr(data)}")
        names = ", ".join(sorted(map(str, functions)))
        raise BadValue(f"all tests must run the script or call the same function, got {names}: {short_repr(data)}")
    function = functions.pop()
    if function is None:
        scripts = tuple(ProgramTest(Case(stdin=_text(raw.input)), (_text(raw.output),)) for raw in found)
        return Suite(scripts, checker=checker)
    calls = [_call(raw) for raw in found]
    by_line = found[0].by_line
    wrapped = not by_line and checker is None and all(isinstance(v, list) and len(v) == 1 for _, v in calls)
    tests = tuple(
        ProgramTest(
            Case(arguments=dumps(arguments), any_sequence=any_sequence),
            (value, value[0]) if wrapped else (value,),
            LEETCODE_TOLERANCE if by_line else 0.0,
        )
        for arguments, value in calls
    )
    return Suite(tests, function, checker)


def _raw_tests(data: Any, function: str | None, options: dict[str, Any]) -> Iterator[_Raw]:
    """Return the tests, and add the OPTIONS that are next to them to ``options``."""
    data = _decoded(data)
    if isinstance(data, Mapping):
        options.update((name, data[name]) for name in OPTIONS if data.get(name))
        function = _function_of(data) or function
        for inputs, outputs in _COLUMNS:
            if isinstance(data.get(inputs), Sequence) and isinstance(data.get(outputs), Sequence):
                yield from _columns(data[inputs], data[outputs], function)
                return
        for name in _NESTED:
            if data.get(name):
                yield from _raw_tests(data[name], function, options)
    elif isinstance(data, Sequence):
        for item in data:
            yield _one(_decoded(item), function)
    else:
        raise BadValue(f"tests must be a dict, a list of dicts, or JSON text of these, got {short_repr(data)}")


def _columns(inputs: Sequence[Any], outputs: Sequence[Any], function: str | None) -> Iterator[_Raw]:
    if isinstance(inputs, str) or isinstance(outputs, str) or len(inputs) != len(outputs):
        raise BadValue(
            f"inputs and outputs must be lists of the same length, got {short_repr(inputs)} and {short_repr(outputs)}"
        )
    return (_Raw(given, expected, function) for given, expected in zip(inputs, outputs, strict=True))


def _one(test: Any, function: str | None) -> _Raw:
    if not isinstance(test, Mapping) or not {"input", "output"} <= set(test):
        raise BadValue(f"a test must have 'input' and 'output', got {short_repr(test)}")
    kind = test.get("testtype") or test.get("type")
    function = None if kind in ("stdin", "stdin_stdout") else _function_of(test) or function
    if kind in ("functional", "function_call") and function is None:
        raise BadValue(f"a test that calls a function must name it in 'fn_name', got {short_repr(test)}")
    return _Raw(test["input"], test["output"], function, by_line=test.get("testtype") == "functional")


def _function_of(data: Mapping[str, Any]) -> str | None:
    metadata = data.get("metadata")
    if isinstance(metadata, str) and metadata.startswith("{"):
        metadata = _decoded(metadata)
    name = data.get("fn_name") or (metadata.get("func_name") if isinstance(metadata, Mapping) else None)
    if name and not isinstance(name, str):
        raise BadValue(f"the function name must be a string, got {short_repr(name)}")
    return name or None


def _call(raw: _Raw) -> tuple[list[Any], Any]:
    """Return the arguments and the expected return value of a test, as plain data."""
    if not isinstance(raw.input, str):
        arguments, value = _plain(raw.input), _plain(raw.output)
    else:
        lines = [_decoded(line) for line in raw.input.split("\n") if line.strip()] if raw.by_line else None
        arguments = _arguments(raw.input) if lines is None else lines
        value = _value(raw.output)
    if not isinstance(arguments, list):
        raise BadValue(f"the arguments of {raw.function} must be a list, got {short_repr(raw.input)}")
    return arguments, value


def _arguments(text: str) -> Any:
    try:
        parsed = loads(text, "the arguments", long_integers=True)
    except BadInput as e:
        if e.limit is not None:  # JSON, but more than is read
            raise
        return [_decoded(line) for line in text.split("\n") if line.strip()]
    return parsed if isinstance(parsed, list) else [parsed]


def _value(output: Any) -> Any:
    if not isinstance(output, str):
        return _plain(output)
    try:
        return loads(output, "the output", long_integers=True)
    except BadInput as e:
        if e.limit is not None:
            raise
        return output


def _text(data: Any) -> str:
    if isinstance(data, (list, tuple)):
        return "".join(f"{_text(line)}\n" for line in data)
    if isinstance(data, str):
        return data
    if isinstance(data, (int, float, Decimal)) and not isinstance(data, bool):
        return str(data) if isinstance(data, float) else dumps(data)
    raise BadValue(f"input and output must be text or a list of lines, got {short_repr(data)}")


def _decoded(data: Any) -> Any:
    """Decode JSON text, which may be packed. Data that is neither text nor bytes is returned unchanged."""
    if not isinstance(data, (str, bytes)):
        return data
    try:
        text = _unpacked(data) if isinstance(data, str) and data.startswith("e") else data
        return loads(text, "it", long_integers=True)
    except ValueError as e:
        raise BadValue(f"tests contain text that is not valid JSON ({e}): {short_repr(data)}") from e


def _unpacked(text: str) -> str:
    """Return the text in base64 of zlib of a pickled string, which starts with "e", as no JSON text does.

    No object is unpickled: a pickle of anything but one string is an error.

    Raises:
        ValueError: if the text has another format, or more than MAX_PACKED_BYTES when decompressed.
    """
    pickled = inflate(base64.b64decode(text, validate=True), "the text", MAX_PACKED_BYTES)
    found: Any = ""
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name in _PICKLED_TEXT:
            found = argument
        elif opcode.name not in _PICKLE_FRAME:
            raise ValueError(f"a pickled string was expected, got the opcode {opcode.name}")
    return str(found)


def _plain(data: Any) -> Any:
    """Convert to JSON data: tuples become lists, keys become strings."""
    try:
        return loads(dumps(data), "it", long_integers=True)
    except (TypeError, ValueError, RecursionError) as e:
        raise BadValue(f"arguments and return values must be plain data ({e}), got {short_repr(data)}") from e
