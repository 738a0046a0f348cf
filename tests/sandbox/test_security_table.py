"""The table in docs/design/sandbox.md that names the tests of each security-relevant file."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src/gem"
ROW = re.compile(r"^\| `([\w/]+\.py)` \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)


def rows():
    """Maps each file of the table to its tests."""
    text = (ROOT / "docs/design/sandbox.md").read_text(encoding="utf-8")
    return {file: re.findall(r"`([\w/]+\.py)`", tests) for file, tests in ROW.findall(text)}


def test_every_file_and_test_in_the_table_exists():
    table = rows()
    assert [file for file in table if not (SOURCES / file).is_file()] == []
    assert [test for tests in table.values() for test in tests if not (ROOT / "tests" / test).is_file()] == []
    assert [file for file, tests in table.items() if not tests] == []


def test_every_module_of_the_sandbox_is_in_the_table():
    modules = {path.relative_to(SOURCES).as_posix() for path in (SOURCES / "sandbox").rglob("*.py")}
    assert {module for module in modules if not module.endswith("__init__.py")} - set(rows()) == set()


def test_attack_programs_that_comments_name_exist():
    """A comment beside a rule names the program that it stops, such as 01_fork_bomb."""
    programs = {path.stem for path in (ROOT / "tests/sandbox/attacks").iterdir()}
    named = {
        name
        for path in (SOURCES / "sandbox").rglob("*.py")
        for name in re.findall(r"(?<![\w.])\d\d\d?_[a-z_]+[a-z]\b", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 50
    assert named - programs == set()
