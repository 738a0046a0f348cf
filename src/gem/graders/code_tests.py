r"""Tests of programs, as data sets write them, brought to one form.

What a test set looks like is told from the data itself, never from the name of the data set. Any of these, and JSON
text of any of them:

    {"inputs": [...], "outputs": [...]}                       what is read and printed, as in TACO and APPS
    {"input": [...], "output": [...]}                         the same, as in CodeContests
    {"inputs": ..., "outputs": ..., "fn_name": "f"}           arguments and value of calls of f
    [{"input": ..., "output": ..., "fn_name": "f"}, ...]      one dict for each test, as in PrimeIntellect
    {"test_cases": ...}                                       one of those inside, under this name or "tests"; or under
                                                              "public_tests", "private_tests", "generated_tests", all
                                                              of which count

Read and printed texts are texts, or lists of lines. The arguments of a call are a list; or JSON text of that list; or
text with one argument in JSON on each line, as in LiveCodeBench, whose tests say ``"testtype": "functional"`` and have
the function's name in ``"metadata"``. Where the arguments are text, the value is JSON text, too. APPS puts every value
into a list of its own: where all values of a set are lists of one item, the list and the item both pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gem._internal.text import short_repr
from gem.errors import BadValue
from gem.sandbox import Case

_COLUMNS = (("inputs", "outputs"), ("input", "output"))
_NESTED = ("test_cases", "tests", "public_tests", "private_tests", "generated_tests")


@dataclass(frozen=True)
class ProgramTest:
    """One test of a program.

    Args:
        case: what the program is given; all of the test that ever enters a sandbox.
        accepted: what passes, any of them: printed texts, or values of a call as plain data.
    """

    case: Case
    accepted: tuple[Any, ...]

    @property
    def size(self) -> int:
        """Characters or bytes of input."""
        return len(self.case.stdin) if self.case.arguments is None else len(self.case.arguments)


@dataclass(frozen=True)
class Suite:
    """The tests of one task, at least one. function: what they call; None where they run a script."""

    tests: tuple[ProgramTest, ...]
    function: str | None = None

    def longest(self, count: int) -> Suite:
        """The tests with the longest inputs, at most so many; of equally long ones the first. They keep their order."""
        by_size = sorted(range(len(self.tests)), key=lambda index: -self.tests[index].size)
        return Suite(tuple(self.tests[index] for index in sorted(by_size[:count])), self.function)


@dataclass(frozen=True)
class _Raw:
    """A test as it was found. by_line: of LiveCodeBench, whose arguments stand on a line each."""

    given: Any
    wanted: Any
    function: str | None
    by_line: bool = False


def read_tests(data: Any) -> Suite:
    r"""The tests in any of the forms above. Raises BadValue for anything else, and where there are none.

    >>> suite = read_tests('{"inputs": ["1 2\\n"], "outputs": ["3\\n"]}')
    >>> suite.function, suite.tests[0].case.stdin, suite.tests[0].accepted
    (None, '1 2\n', ('3\n',))
    >>> read_tests([{"input": [1, 2], "output": 3, "fn_name": "add"}]).function
    'add'
    """
    found = list(_found(data))
    functions = {raw.function for raw in found}
    if len(functions) != 1:
        what = "none is there" if not found else f"they ask for {', '.join(sorted(map(str, functions)))} at once"
        raise BadValue(f"tests should be for a script or for one function, and {what}: {short_repr(data)}")
    function = functions.pop()
    if function is None:
        return Suite(tuple(ProgramTest(Case(stdin=_text(raw.given)), (_text(raw.wanted),)) for raw in found))
    calls = [_call(raw) for raw in found]
    wrapped = all(isinstance(value, list) and len(value) == 1 for _, value in calls) and not found[0].by_line
    return Suite(
        tuple(
            ProgramTest(Case(arguments=json.dumps(arguments)), (value, value[0]) if wrapped else (value,))
            for arguments, value in calls
        ),
        function,
    )


def _found(data: Any, function: str | None = None) -> Iterator[_Raw]:
    data = _decoded(data)
    if isinstance(data, Mapping):
        function = _function_of(data) or function
        for inputs, outputs in _COLUMNS:
            if isinstance(data.get(inputs), Sequence) and isinstance(data.get(outputs), Sequence):
                yield from _columns(data[inputs], data[outputs], function)
                return
        for name in _NESTED:
            if data.get(name):
                yield from _found(data[name], function)
    elif isinstance(data, Sequence):
        for item in data:
            yield _one(_decoded(item), function)
    else:
        raise BadValue(f"tests are a dict, a list of dicts or JSON text of those, got {short_repr(data)}")


def _columns(inputs: Sequence[Any], outputs: Sequence[Any], function: str | None) -> Iterator[_Raw]:
    if isinstance(inputs, str) or isinstance(outputs, str) or len(inputs) != len(outputs):
        raise BadValue(f"tests need as many outputs as inputs, got {short_repr(inputs)} and {short_repr(outputs)}")
    return (_Raw(given, wanted, function) for given, wanted in zip(inputs, outputs, strict=True))


def _one(test: Any, function: str | None) -> _Raw:
    if not isinstance(test, Mapping) or not {"input", "output"} <= set(test):
        raise BadValue(f"a test needs 'input' and 'output', got {short_repr(test)}")
    kind = test.get("testtype") or test.get("type")
    function = None if kind in ("stdin", "stdin_stdout") else _function_of(test) or function
    if kind in ("functional", "function_call") and function is None:
        raise BadValue(f"a test that calls a function should name it as 'fn_name', got {short_repr(test)}")
    return _Raw(test["input"], test["output"], function, by_line=test.get("testtype") == "functional")


def _function_of(data: Mapping[str, Any]) -> str | None:
    metadata = data.get("metadata")
    if isinstance(metadata, str) and metadata.startswith("{"):
        metadata = _decoded(metadata)
    name = data.get("fn_name") or (metadata.get("func_name") if isinstance(metadata, Mapping) else None)
    if name and not isinstance(name, str):
        raise BadValue(f"the name of a function is text, got {short_repr(name)}")
    return name or None


def _call(raw: _Raw) -> tuple[list[Any], Any]:
    """The arguments and the value of a call, as plain data."""
    if not isinstance(raw.given, str):
        arguments, value = _plain(raw.given), _plain(raw.wanted)
    else:
        lines = [_decoded(line) for line in raw.given.split("\n") if line.strip()] if raw.by_line else None
        arguments = _arguments(raw.given) if lines is None else lines
        value = _value(raw.wanted)
    if not isinstance(arguments, list):
        raise BadValue(f"arguments of {raw.function} should be a list, got {short_repr(raw.given)}")
    return arguments, value


def _arguments(text: str) -> Any:
    try:
        whole = json.loads(text)
    except ValueError:
        return [_decoded(line) for line in text.split("\n") if line.strip()]
    return whole if isinstance(whole, list) else [whole]


def _value(wanted: Any) -> Any:
    if not isinstance(wanted, str):
        return _plain(wanted)
    try:
        return json.loads(wanted)
    except ValueError:
        return wanted


def _text(data: Any) -> str:
    if isinstance(data, (list, tuple)):
        return "".join(f"{_text(line)}\n" for line in data)
    if isinstance(data, str):
        return data
    if isinstance(data, (int, float)) and not isinstance(data, bool):
        return str(data)
    raise BadValue(f"what a program reads and prints is text or a list of lines, got {short_repr(data)}")


def _decoded(data: Any) -> Any:
    """JSON text as the data it stands for; other data as it is."""
    if not isinstance(data, (str, bytes)):
        return data
    try:
        return json.loads(data)
    except ValueError as e:
        raise BadValue(f"tests hold text that is not valid JSON ({e}): {short_repr(data)}") from e


def _plain(data: Any) -> Any:
    """As JSON has it: tuples are lists, keys are text."""
    try:
        return json.loads(json.dumps(data))
    except (TypeError, ValueError) as e:
        raise BadValue(f"arguments and values of a test are plain data ({e}), got {short_repr(data)}") from e
