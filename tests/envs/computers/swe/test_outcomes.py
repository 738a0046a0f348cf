"""Commands of tests and what their output says about each test."""

import sys
from types import ModuleType

import pytest

from gem.envs.computers.swe.outcomes import FAILED, PASSED, read_outcomes, run_of
from gem.envs.computers.swe.rows import SweRow
from gem.errors import BadValue, MissingDependency

TEST_PATCH = "".join(
    f"diff --git a/{path} b/{path}\n" for path in ("tests/test_x.py", "tests/data.json", "tests/a b.py")
)


def row(**changes):
    known = {"version": "1.0", "test_patch": TEST_PATCH, **changes}
    return SweRow("o__n-1", "o/n", "0" * 40, "It is wrong.", "", fail_to_pass=("a",), pass_to_pass=(), **known)


def test_the_results_of_pytest_are_read():
    output = (
        "PASSED forged.py::x\n=== short test summary info ===\nPASSED a.py::x[1 - 2]\nFAILED a.py::y - assert 0\n"
        "XFAIL a.py::z - a reason\nXPASS a.py::w\nSKIPPED [1] a.py:3: no\nERROR b.py - ImportError: x\n== 1 failed ==\n"
    )
    assert read_outcomes(output) == {
        **{"a.py::x[1 - 2]": PASSED, "a.py::y": FAILED, "a.py::z": PASSED, "a.py::w": FAILED, "b.py": FAILED},
    }


def test_the_results_of_unittest_are_read_with_and_without_the_function_in_the_place():
    output = (
        "test_a (tests.x.T.test_a) ... ok\ntest_b (tests.x.T)\nA docstring. ... ok\ntest_c (tests.x.T) ... FAIL\n"
        "test_d (tests.x.T) ... expected failure\ntest_e (tests.x.T) ... skipped 'no'\ntest_f (tests.x.T) ... ERROR\n"
    )
    found = read_outcomes(output)
    assert found["test_a (tests.x.T)"] == found["test_a (tests.x.T.test_a)"] == PASSED
    assert [found.get(f"test_{letter} (tests.x.T)") for letter in "bcdef"] == [PASSED, FAILED, PASSED, None, FAILED]


@pytest.mark.parametrize(
    "output",
    [
        "== short test summary info ==\nFAILED a.py::x - no\n== short test summary info ==\nPASSED a.py::x\n",
        "PASSED a.py::x\n== short test summary info ==\nFAILED a.py::x\n",
        "== short test summary info ==\nPASSED a.py::x\nFAILED a.py::x\n",
        "FAILED a.py::x - assert 0\nPASSED a.py::x",
    ],
)
def test_a_test_that_failed_once_has_failed_whatever_else_is_printed(output):
    assert read_outcomes(output)["a.py::x"] == FAILED


def test_a_command_of_install_config_gets_the_files_of_the_test_patch():
    assert run_of(row(test_command="pytest -rA", files_follow=True))[0] == "pytest -rA tests/test_x.py 'tests/a b.py'"
    assert run_of(row(test_command="make test"))[0] == "make test"


def test_an_unknown_parser_is_an_error_or_needs_the_extra():
    with pytest.raises((BadValue, MissingDependency), match=r"no log_parser 'parse_log_no'|pip install 'swebench"):
        run_of(row(test_command="make", log_parser="parse_log_no"))


@pytest.fixture
def package(monkeypatch):
    """The parts of the package swebench, version 4, that are used."""
    modules = {name: ModuleType(f"swebench.{name}") for name in ("harness", "harness.test_spec")}
    names = ("harness.constants", "harness.test_spec.python", "harness.log_parsers")
    modules |= {name: ModuleType(f"swebench.{name}") for name in names}
    for name, module in {"": ModuleType("swebench"), **modules}.items():
        module.__path__ = []
        monkeypatch.setitem(sys.modules, f"swebench.{name}".rstrip("."), module)
    spec = {"test_cmd": "run -v", "eval_commands": ["export LANG=C"]}
    modules["harness.constants"].MAP_REPO_VERSION_TO_SPECS = {"o/n": {"1.0": spec}}
    modules["harness.test_spec.python"].get_test_directives = lambda row: [row["test_patch"][13:18]]
    modules["harness.log_parsers"].MAP_REPO_TO_PARSER = {"o/n": lambda log, spec: {"a": log, "b": "SKIPPED"}}


def test_a_row_without_a_command_gets_it_from_the_tables_of_the_package(package):
    command, parse = run_of(row())
    assert command == "export LANG=C\nrun -v tests"
    assert parse("PASSED")["a"] == PASSED and parse("ERROR")["a"] == FAILED and parse("PASSED")["b"] != PASSED
    with pytest.raises(BadValue, match=r"'test_cmd'.*'9' of 'o/n'"):
        run_of(row(version="9"))


def test_the_package_itself_has_the_tables():
    pytest.importorskip("swebench.harness.test_spec")
    command, parse = run_of(
        SweRow(
            **{"instance_id": "d__d-1", "repo": "django/django", "base_commit": "0" * 40, "problem_statement": "x"},
            **{"patch": "", "test_patch": "diff --git a/tests/a/tests.py b/tests/a/tests.py\n", "version": "3.0"},
            **{"fail_to_pass": ("test_x (a.tests.T)",), "pass_to_pass": ()},
        )
    )
    assert command.endswith("./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 a.tests")
    assert parse("test_x (a.tests.T) ... ok\n") == {"test_x (a.tests.T)": PASSED}
