import json

import pytest

from gem.errors import BadValue
from gem.graders.code_tests import ProgramTest, Suite, read_tests
from gem.sandbox import Case

SCRIPT = [("1 2\n", "3\n"), ("4 5\n", "9\n")]
PAIRS = {"inputs": [given for given, _ in SCRIPT], "outputs": [wanted for _, wanted in SCRIPT]}
DICTS = [{"input": given, "output": wanted} for given, wanted in SCRIPT]
CALLS = {"fn_name": "add", "inputs": [[1, 2], [4, 5]], "outputs": [3, 9]}


def script(*pairs):
    return Suite(tuple(ProgramTest(Case(stdin=given), (wanted,)) for given, wanted in pairs))


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
def test_scripts_are_tested_alike_in_every_form(data):
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
def test_functions_are_tested_alike_in_every_form(data):
    assert read_tests(data) == read_tests(json.dumps(data)) == calls(([1, 2], (3,)), ([4, 5], (9,)))


def test_a_value_that_apps_put_into_a_list_passes_in_and_out_of_it():
    data = {"fn_name": "add", "inputs": [[1, 2], [4, 5]], "outputs": [[3], [9]]}
    assert read_tests(data) == calls(([1, 2], ([3], 3)), ([4, 5], ([9], 9)))


def test_values_that_are_lists_now_and_then_are_meant():
    data = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[3], [4, 5]]}
    assert read_tests(data) == calls(([1], ([3],)), ([2], ([4, 5],)), function="f")


def test_a_line_of_live_code_bench_is_one_argument_though_it_is_a_list():
    data = [{"testtype": "functional", "metadata": {"func_name": "f"}, "input": "[1, 2]", "output": "[3]"}]
    assert read_tests(data) == calls(([[1, 2]], ([3],)), function="f")


def test_text_that_is_no_json_is_the_value():
    data = {"fn_name": "f", "inputs": ['["a"]'], "outputs": ["abc def"]}
    assert read_tests(data) == calls((["a"], ("abc def",)), function="f")
    assert read_tests({"fn_name": "f", "inputs": [["a"]], "outputs": ["3"]}) == calls((["a"], ("3",)), function="f")


def test_tuples_become_lists_and_keys_text():
    data = {"fn_name": "f", "inputs": [((1, 2),)], "outputs": [{1: (2,)}]}
    assert read_tests(data) == calls(([[1, 2]], ({"1": [2]},)), function="f")


def test_numbers_are_read_and_printed_as_text():
    assert read_tests({"inputs": [5], "outputs": [2.5]}) == script(("5", "2.5"))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "tests are a dict, a list of dicts or JSON text"),
        (7, "tests are a dict, a list of dicts or JSON text"),
        ("assert f(1) == 2", "not valid JSON"),
        (["assert f(1) == 2"], "not valid JSON"),
        ([], "none is there"),
        ({}, "none is there"),
        ({"inputs": [], "outputs": []}, "none is there"),
        ({"inputs": ["1"], "outputs": []}, "as many outputs as inputs"),
        ({"inputs": "1", "outputs": "1"}, "as many outputs as inputs"),
        ([{"input": "1"}], "needs 'input' and 'output'"),
        ([3], "needs 'input' and 'output'"),
        ([{"input": [1], "output": 1, "type": "function_call"}], "should name it as 'fn_name'"),
        ([{"input": [1], "output": 1, "fn_name": "f"}, {"input": "1", "output": "1"}], "ask for None, f at once"),
        ({"inputs": [{"a": 1}], "outputs": ["1"]}, "text or a list of lines"),
        ({"fn_name": "f", "inputs": [{"a": 1}], "outputs": [1]}, "arguments of f should be a list"),
        ({"fn_name": "f", "inputs": [[1]], "outputs": [{1, 2}]}, "plain data"),
        ({"fn_name": ["f"], "inputs": [[1]], "outputs": [1]}, "the name of a function is text"),
    ],
)
def test_what_is_no_test_is_the_callers_mistake(data, says):
    with pytest.raises(BadValue, match=says):
        read_tests(data)


def test_of_a_large_suite_the_longest_inputs_are_taken_in_their_order():
    data = {"inputs": ["22", "1", "333", "44", "4444"], "outputs": ["a", "b", "c", "d", "e"]}
    suite = read_tests(data)
    assert [test.case.stdin for test in suite.longest(3).tests] == ["22", "333", "4444"]
    assert suite.longest(99) == suite
