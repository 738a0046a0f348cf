"""Rows of SWE-bench and SWE-Gym: every column is checked, and errors name it."""

import pytest

from gem.datasets import load_rows
from gem.envs.computers.swe.rows import changed_paths, read_row
from gem.errors import BadValue

DIFF = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-1\n+2\n"
ROW = {
    "instance_id": "owner__name-1",
    "repo": "owner/name",
    "base_commit": "0123abc",
    "problem_statement": "It is wrong.",
    "patch": DIFF,
    "test_patch": DIFF.replace("x.py", "test_x.py"),
    "FAIL_TO_PASS": '["test_x.py::a", "test_x.py::b"]',
    "PASS_TO_PASS": [],
}


def test_a_row_is_read_with_its_optional_columns():
    row = read_row(ROW)
    assert (row.repo, row.fail_to_pass, row.pass_to_pass) == ("owner/name", ("test_x.py::a", "test_x.py::b"), ())
    assert (row.hints_text, row.version, row.environment_setup_commit, row.test_command) == ("", "", "", "")
    more = {"hints_text": None, "version": "1.2", "environment_setup_commit": "0" * 40, "created_at": "2025-01-01"}
    row = read_row(ROW | more)
    assert (row.version, row.environment_setup_commit) == ("1.2", "0" * 40)


def test_the_test_command_is_that_of_the_row_or_of_its_install_config():
    assert read_row(ROW | {"test_cmd": ["cd x", "make test"]}).test_command == "cd x && make test"
    config = {"test_cmd": "pytest -rA", "log_parser": "parse_log_pytest", "python": "3.9", "packages": None}
    row = read_row(ROW | {"install_config": config})
    assert (row.test_command, row.files_follow, row.log_parser) == ("pytest -rA", True, "parse_log_pytest")
    assert read_row(ROW | {"install_config": '{"test_cmd": "pytest"}'}).test_command == "pytest"
    row = read_row(ROW | {"install_config": config, "test_cmd": "make test"})
    assert (row.test_command, row.files_follow) == ("make test", False)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("instance_id", 3, "'instance_id' .*text, got 3"),
        ("instance_id", "../x", "'instance_id' .*name like"),
        ("repo", "a/b/c", "'repo' .*'owner/name'.*'a/b/c'"),
        ("repo", "../x", "'repo' .*'owner/name'"),
        ("base_commit", "main", "'base_commit' must be a commit"),
        ("base_commit", "--output=x", "'base_commit' must be a commit"),
        ("problem_statement", " ", "'problem_statement' must be text"),
        ("patch", "", "'patch' must be text"),
        ("patch", "--- x\n+++ x\n", "'patch' .*diff"),
        ("patch", DIFF.replace("b/x.py", "b/../x.py"), "'patch' .*repository.*'../x.py'"),
        ("test_patch", 1, "'test_patch' .*text, got 1"),
        ("test_patch", "x", "'test_patch' .*diff"),
        ("FAIL_TO_PASS", "[", "'FAIL_TO_PASS' .*list .*JSON.*got '\\['"),
        ("FAIL_TO_PASS", [], "'FAIL_TO_PASS' .*at least one"),
        ("PASS_TO_PASS", ["a", 3], "'PASS_TO_PASS' .*list of tests"),
        ("PASS_TO_PASS", None, "'PASS_TO_PASS' .*list of tests"),
        ("hints_text", 3, "'hints_text' must be text"),
        ("version", 1.0, "'version' .*text, got 1.0"),
        ("environment_setup_commit", [], "'environment_setup_commit' must be text"),
        ("test_cmd", 3, "'test_cmd' .*list of commands.*got 3"),
        ("install_config", "{", "'install_config' .*object"),
        ("install_config", [], "'install_config' .*object"),
        ("install_config", {"test_cmd": {}}, "'install_config.test_cmd' .*command"),
        ("install_config", {"log_parser": 1}, "'log_parser' .*text, got 1"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_its_column(column, value, message):
    with pytest.raises(BadValue, match=message):
        read_row(ROW | {column: value})


@pytest.mark.parametrize("column", list(ROW))
def test_a_missing_column_is_an_error_that_lists_the_others(column):
    with pytest.raises(BadValue, match=f"the column '{column}' is missing; the row has '"):
        read_row({name: value for name, value in ROW.items() if name != column})


def test_rows_of_a_parquet_file_are_read(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.Table.from_pylist([ROW | {"PASS_TO_PASS": ["test_x.py::c"], "hints_text": None}])
    parquet.write_table(table, tmp_path / "rows.parquet")
    row = read_row(load_rows(tmp_path / "rows.parquet")[0])
    assert (row.fail_to_pass, row.pass_to_pass) == (("test_x.py::a", "test_x.py::b"), ("test_x.py::c",))


def test_paths_of_a_diff_are_those_before_and_after():
    assert changed_paths(DIFF + "diff --git a/old name.py b/new.py\n") == ("x.py", "old name.py", "new.py")
