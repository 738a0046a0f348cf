import json

import pytest

from gem.errors import BadValue
from gem.graders.code.tests import ProgramTest, Suite, read_tests
from gem.sandbox import Case

SCRIPT = [("1 2\n", "3\n"), ("4 5\n", "9\n")]
PAIRS = {"inputs": [given for given, _ in SCRIPT], "outputs": [expected for _, expected in SCRIPT]}
DICTS = [{"input": given, "output": expected} for given, expected in SCRIPT]
CALLS = {"fn_name": "add", "inputs": [[1, 2], [4, 5]], "outputs": [3, 9]}


def script(*pairs):
    return Suite(tuple(ProgramTest(Case(stdin=given), (expected,)) for given, expected in pairs))


def calls(*pairs, function="add"):
    return Suite(tuple(ProgramTest(Case(arguments=json.dumps(a)), accepted) for a, accepted in pairs), function)


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
        [
            {"testtype": "functional", "metadata": {"func_name": "add"}, "input": "1\n2", "output": "3"},
            {"testtype": "functional", "metadata": '{"func_name": "add"}', "input": "4\n5\n", "output": "9"},
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


def test_each_line_of_a_live_code_bench_test_is_one_argument():
    data = [{"testtype": "functional", "metadata": {"func_name": "f"}, "input": "[1, 2]", "output": "[3]"}]
    assert read_tests(data) == calls(([[1, 2]], ([3],)), function="f")


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
