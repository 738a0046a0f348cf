"""The table of `make attack-all`: interrupted runs continue, and it says which code each setting was run with."""

from concurrent.futures import Future

import pytest
from envelope import programs, runner, table
from envelope.setting import Setting

LSM, NS = Setting("lsm"), Setting("ns", root=True)


@pytest.fixture
def started(monkeypatch):
    """The programs and settings that a command starts; the program with "01" in its name misses something."""
    pairs = []

    class Runner:
        def __init__(self, at_once):
            pass

        def start(self, path, setting):
            pairs.append((path.stem, setting))
            future = Future()
            found = ["output: too much"] if path.stem.startswith("01_") else []
            future.set_result(table.Outcome(path.stem, setting, misses=found, output="x"))
            return future

    monkeypatch.setattr(runner, "Runner", Runner)
    monkeypatch.setattr(runner, "cannot_run", lambda: "")
    monkeypatch.setattr(table, "current_commit", lambda: "abc1234")
    return pairs


def test_a_setting_that_is_complete_is_not_run_again(started, tmp_path):
    arguments = ["--table", str(tmp_path / "attacks.md")]
    runner.main(["ns-root", *arguments])
    assert {name for name, _ in started} == {path.stem for path in programs.paths()}
    started.clear()
    runner.main(["ns-root", "lsm", *arguments])
    assert {setting.level for _, setting in started} == {"lsm"}
    started.clear()
    assert runner.main(["ns-root", "lsm", *arguments]) == 0
    assert not started
    text = (tmp_path / "attacks.md").read_text()
    assert text.count("| abc1234 | 20") == 2
    assert "| 01_fork_bomb | output | ns-root" in text


@pytest.mark.parametrize("commit", ["", "def5678"])
def test_a_setting_is_run_again_with_changed_code(started, tmp_path, monkeypatch, commit):
    table.Record(tmp_path / "attacks.md").add(NS, [])
    monkeypatch.setattr(table, "current_commit", lambda: commit)
    record = table.Record(tmp_path / "attacks.md")
    assert not record.has(NS)
    record.add(LSM, [])
    text = (tmp_path / "attacks.md").read_text()
    assert "| ns-root | 0 | abc1234 |" in text
    assert f"| lsm | 0 | {commit or 'uncommitted'} |" in text
    assert table.Record(tmp_path / "attacks.md").has(LSM) == bool(commit)


def test_a_setting_that_was_not_available_is_run_again(started, tmp_path):
    record = table.Record(tmp_path / "attacks.md")
    record.add(LSM, [table.Outcome("01_fork_bomb", LSM, unavailable="no Landlock")])
    assert not record.has(LSM)
