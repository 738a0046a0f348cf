"""The table of `make attack-all`: an interrupted run continues."""

from concurrent.futures import Future

import pytest
from envelope import programs, runner, table
from envelope.setting import Setting


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


def test_a_setting_is_not_run_again_until_the_code_changes(started, tmp_path, monkeypatch):
    arguments = ["--table", str(tmp_path / "attacks.md")]
    runner.main(["ns-root", *arguments])
    assert {name for name, _ in started} == {path.stem for path in programs.paths()}
    started.clear()
    runner.main(["ns-root", "lsm", *arguments])
    assert {setting.level for _, setting in started} == {"lsm"}
    started.clear()
    assert runner.main(["ns-root", "lsm", *arguments]) == 0
    assert not started
    assert (tmp_path / "attacks.md").read_text().count("| abc1234 | 20") == 2
    monkeypatch.setattr(table, "current_commit", lambda: "")  # uncommitted changes
    assert not table.Record(tmp_path / "attacks.md").has(Setting("lsm"))
