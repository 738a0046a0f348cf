import base64
import json
import os
import pickle
import zlib
from decimal import Decimal

import pytest

from gem.errors import BadValue
from gem.graders.code import tests as code_tests
from gem.graders.code.tests import LEETCODE_TOLERANCE, ProgramTest, Suite, read_tests
from gem.sandbox import Case

SCRIPT = [("1 2\n", "3\n"), ("4 5\n", "9\n")]
PAIRS = {"inputs": [given for given, _ in SCRIPT], "outputs": [expected for _, expected in SCRIPT]}
DICTS = [{"input": given, "output": expected} for given, expected in SCRIPT]
CALLS = {"fn_name": "add", "inputs": [[1, 2], [4, 5]], "outputs": [3, 9]}


def script(*pairs):
    return Suite(tuple(ProgramTest(Case(stdin=given), (expected,)) for given, expected in pairs))


def calls(*pairs, function="add", tolerance=0.0):
    tests = (ProgramTest(Case(arguments=json.dumps(a)), accepted, tolerance) for a, accepted in pairs)
    return Suite(tuple(tests), function)


@pytest.mark.parametrize(
    "data",
    [
        PAIRS,
        {"input": PAIRS["inputs"], "output": PAIRS["outputs"]},
        {**PAIRS, "fn_name": None},
        DICTS,
        tuple(DICTS),
        [{**test, "type": "stdin_stdout", "fn_name": None} for test in DICTS],
        [{**test, "metadata": "easy"} for test in DICTS],
        [{**test, "testtype": "stdin", "metadata": {"func_name": None}} for test in DICTS],
        [json.dumps(test) for test in DICTS],
        {"language": "python", "test_cases": DICTS},
        {"language": "python", "test_cases": json.dumps(DICTS)},
        {"inputs": [["1 2"], ["4 5"]], "outputs": [["3"], ["9"]]},
        {
            "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
            "private_tests": {"input": [], "output": []},
            "generated_tests": {"input": ["4 5\n"], "output": ["9\n"]},
        },
    ],
)
def test_all_formats_of_script_tests_are_equivalent(data):
    assert read_tests(data) == read_tests(json.dumps(data)) == script(*SCRIPT)


@pytest.mark.parametrize(
    "data",
    [
        CALLS,
        {"input": CALLS["inputs"], "output": CALLS["outputs"], "fn_name": "add"},
        {"fn_name": "add", "inputs": ["[1, 2]", "[4, 5]"], "outputs": ["3", "9"]},
        {"fn_name": "add", "inputs": ["1\n2", "4\n5\n"], "outputs": ["3", "9"]},
        [
            {"type": "function_call", "fn_name": "add", "input": [1, 2], "output": 3},
            {"type": "function_call", "fn_name": "add", "input": [4, 5], "output": 9},
        ],
        {"fn_name": "add", "test_cases": [{"input": [1, 2], "output": 3}, {"input": [4, 5], "output": 9}]},
    ],
)
def test_all_formats_of_function_tests_are_equivalent(data):
    assert read_tests(data) == read_tests(json.dumps(data)) == calls(([1, 2], (3,)), ([4, 5], (9,)))


def test_return_values_wrapped_in_lists_are_accepted_with_and_without_the_list():
    data = {"fn_name": "add", "inputs": [[1, 2], [4, 5]], "outputs": [[3], [9]]}
    assert read_tests(data) == calls(([1, 2], ([3], 3)), ([4, 5], ([9], 9)))


def test_return_values_of_different_lengths_are_not_unwrapped():
    data = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[3], [4, 5]]}
    assert read_tests(data) == calls(([1], ([3],)), ([2], ([4, 5],)), function="f")


@pytest.mark.parametrize("metadata", [{"func_name": "f"}, '{"func_name": "f"}'])
def test_each_line_of_a_live_code_bench_test_is_one_argument(metadata):
    data = [{"testtype": "functional", "metadata": metadata, "input": "[1, 2]\n3\n", "output": "[3]"}]
    assert read_tests(data) == calls(([[1, 2], 3], ([3],)), function="f", tolerance=LEETCODE_TOLERANCE)


@pytest.mark.parametrize("column", ["inputs", "outputs"])
def test_json_that_is_nested_too_deep_is_an_error_and_not_taken_for_text(column):
    data = {"fn_name": "f", "inputs": ["1"], "outputs": ["2"], column: ["[" * 200 + "]" * 200]}
    with pytest.raises(BadValue, match="200 deep; at most 100"):
        read_tests(data)


def packed(value, protocol=4):
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


@pytest.mark.parametrize("protocol", range(6))
def test_private_tests_of_live_code_bench_are_read_as_published(protocol):
    def test(given, expected):
        return {"input": given, "output": expected, "testtype": "functional"}

    private = [test("[4, 5]\n6", "9"), test('[]\n"é"', "0")]
    row = {
        "public_test_cases": json.dumps([test("[1]\n2", "3")]),
        "private_test_cases": packed(json.dumps(private, ensure_ascii=False), protocol),
        "metadata": '{"func_name": "f"}',
    }
    suite = read_tests(row)
    assert suite == read_tests({**row, "private_test_cases": json.dumps(private)}) and suite.function == "f"
    assert [(t.case.arguments, t.accepted) for t in suite.tests] == [
        ("[[1], 2]", (3,)),
        ("[[4, 5], 6]", (9,)),
        ('[[], "\\u00e9"]', (0,)),
    ]


class Hostile:
    def __reduce__(self):
        return os.mkdir, ("unpickled",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (packed(Hostile()), "pickled string was expected"),
        (packed([1]), "pickled string was expected"),
        (packed("[]")[:-8], "cut off"),
        (packed("x" * 2000), "1,001 bytes; at most 1,000"),
        (base64.b64encode(zlib.compress(b"\x80\x04nothing")).decode(), "not valid JSON"),
        ("eJx", "not valid JSON"),
        ("echo hello", "not valid JSON"),
    ],
)
def test_packed_tests_hold_one_string_of_limited_size(text, says, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(code_tests, "MAX_PACKED_BYTES", 1000)
    with pytest.raises(BadValue, match=says):
        read_tests({"private_test_cases": text})
    assert not list(tmp_path.iterdir())


LONG = "7" * 6000


@pytest.mark.parametrize(
    "data",
    [
        f'{{"fn_name": "add", "inputs": [[1, {LONG}]], "outputs": [{LONG}]}}',
        {"fn_name": "add", "inputs": [f"[1, {LONG}]"], "outputs": [LONG]},
        {"fn_name": "add", "inputs": [f"1\n{LONG}"], "outputs": [LONG]},
        {"fn_name": "add", "inputs": [[1, int(Decimal(LONG))]], "outputs": [int(Decimal(LONG))]},
        {"fn_name": "add", "inputs": [[1, Decimal(LONG)]], "outputs": [Decimal(LONG)]},
    ],
    ids=["text", "JSON arguments", "lines", "int", "Decimal"],
)
def test_arguments_and_values_are_integers_of_any_length(data):
    [test] = read_tests(data).tests
    assert (test.case.arguments, test.accepted) == (f"[1, {LONG}]", (Decimal(LONG),))


def test_inputs_and_outputs_are_integers_of_any_length():
    assert read_tests({"inputs": [int(Decimal(LONG))], "outputs": [Decimal(LONG)]}) == script((LONG, LONG))


CHECKER = "def check(input, output, answer): return output == answer"


@pytest.mark.parametrize(
    "data",
    [
        {**CALLS, "checker": CHECKER, "any_sequence": True},
        json.dumps({**CALLS, "checker": CHECKER, "any_sequence": True}),
        {"tests": CALLS, "checker": CHECKER, "any_sequence": True},
        {"tests": json.dumps({**CALLS, "checker": CHECKER}), "any_sequence": True},
    ],
)
def test_options_stand_next_to_the_tests(data):
    suite = read_tests(data)
    assert suite.checker.source == CHECKER and all(test.case.any_sequence for test in suite.tests)


def test_values_for_a_checker_are_not_unwrapped():
    data = {"fn_name": "add", "inputs": [[1, 2]], "outputs": [[3]], "checker": CHECKER}
    assert read_tests(data).tests == calls(([1, 2], ([3],))).tests


def test_an_output_that_is_not_json_is_a_string_value():
    data = {"fn_name": "f", "inputs": ['["a"]'], "outputs": ["abc def"]}
    assert read_tests(data) == calls((["a"], ("abc def",)), function="f")
    assert read_tests({"fn_name": "f", "inputs": [["a"]], "outputs": ["3"]}) == calls((["a"], ("3",)), function="f")


def test_tuples_become_lists_and_keys_become_strings():
    data = {"fn_name": "f", "inputs": [((1, 2),)], "outputs": [{1: (2,)}]}
    assert read_tests(data) == calls(([[1, 2]], ({"1": [2]},)), function="f")


def test_numbers_are_read_and_printed_as_text():
    assert read_tests({"inputs": [5], "outputs": [2.5]}) == script(("5", "2.5"))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "dict, .*JSON text.*got None"),
        (7, "dict, .*JSON text.*got 7"),
        ("assert f(1) == 2", "not valid JSON"),
        (["assert f(1) == 2"], "not valid JSON"),
        ([], "no tests found"),
        ({}, "no tests found"),
        ({"inputs": [], "outputs": []}, "no tests found"),
        ({"inputs": ["1"], "outputs": []}, "lists of the same length"),
        ({"inputs": "1", "outputs": "1"}, "lists of the same length"),
        ([{"input": "1"}], "'input' and 'output'"),
        ([3], "'input' and 'output'"),
        ([{"input": [1], "output": 1, "type": "function_call"}], "must name it in 'fn_name'"),
        (
            [{"input": [1], "output": 1, "fn_name": "f"}, {"input": "1", "output": "1"}],
            "function, got None, f",
        ),
        ({"inputs": [{"a": 1}], "outputs": ["1"]}, "text or a list of lines"),
        ({"fn_name": "f", "inputs": [{"a": 1}], "outputs": [1]}, "arguments of f must be a list"),
        ({"fn_name": "f", "inputs": [[1]], "outputs": [{1, 2}]}, "plain data"),
        ({**CALLS, "any_sequence": "yes"}, "any_sequence must be .* got 'yes'"),
        ({**PAIRS, "checker": "#include <testlib.h>\nint main() {}"}, "must be Python source"),
        ({**PAIRS, "checker": ["import sys"]}, "must be Python source"),
        ({**PAIRS, "checker": "print(input())"}, "sys.argv.*check\\(input, output, answer\\)"),
        ({**PAIRS, "outputs": [int(Decimal("7" * 6000))]}, "very long integer"),
        ({"fn_name": ["f"], "inputs": [[1]], "outputs": [1]}, "function name .*string"),
    ],
)
def test_malformed_tests_raise_bad_value(data, says):
    with pytest.raises(BadValue, match=says):
        read_tests(data)


def test_longest_keeps_the_tests_with_the_longest_inputs_in_order():
    data = {"inputs": ["22", "1", "333", "44", "4444"], "outputs": ["a", "b", "c", "d", "e"]}
    suite = read_tests(data)
    assert [test.case.stdin for test in suite.longest(3).tests] == ["22", "333", "4444"]
    assert suite.longest(99) == suite
