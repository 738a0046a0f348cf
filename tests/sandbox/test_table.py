"""The table of `make attack-all`: an interrupted run continues."""

from concurrent.futures import Future

import pytest
from envelope import programs, runner, table
from envelope.setting import Setting


@pytest.fixture
def started(monkeypatch):
    """The programs and settings that a command starts."""
    pairs = []

    class Runner:
        def __init__(self, at_once):
            pass

        def start(self, path, setting):
            pairs.append((path.stem, setting))
            future = Future()
            future.set_result(table.Outcome(path.stem, setting))
            return future

    monkeypatch.setattr(runner, "Runner", Runner)
    monkeypatch.setattr(runner, "cannot_run", lambda: "")
    monkeypatch.setattr(table, "current_commit", lambda: "abc1234")
    return pairs


def test_a_setting_is_not_run_again_until_the_code_changes(started, tmp_path):
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
    for commit in ("def5678", ""):  # "": uncommitted changes
        assert not table.Record(tmp_path / "attacks.md", commit).has(Setting("lsm"))


@pytest.mark.parametrize("found", [{"unavailable": "no Landlock"}, {"misses": ["memory: it peaked at 3000 MiB"]}])
def test_a_setting_that_is_not_available_or_has_a_new_miss_is_run_again(tmp_path, found):
    record = table.Record(tmp_path / "attacks.md", "abc1234")
    record.add(Setting("ns"), [table.Outcome("100_bind_and_chroot", Setting("ns"), **found)])
    assert not record.has(Setting("ns"))
