"""The flags --data and --skip-bad-rows of commands that make environments."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path

from gem.cli import COMMANDS, main
from gem.cli.data import DataFlags
from gem.datasets.load import GEM_DATA
from gem.datasets.rows import GEM_SKIP_BAD_ROWS

FEW = ("--seeds", "1", "--episodes", "1")


def copy_of(tmp_path: Path) -> Path:
    """A local copy of a hub dataset whose second row is malformed."""
    folder = tmp_path / "axon-rl" / "HotpotQA"
    folder.mkdir(parents=True)
    rows = [{"problem": "1?", "answer": ["a"]}, {"problem": "2?", "answer": None}, {"problem": "3?", "answer": "c"}]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_data_and_skip_bad_rows_apply_to_one_run_and_malformed_rows_are_reported_at_exit(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv(GEM_DATA, raising=False)
    monkeypatch.delenv(GEM_SKIP_BAD_ROWS, raising=False)
    copies = str(copy_of(tmp_path))
    assert main(["info", "qa:HotpotQA", "--data", copies, "--skip-bad-rows"]) == 0
    err = capsys.readouterr().err
    assert "train.jsonl: 1 of 3 rows" in err and "row 1: the column 'answer'" in err
    assert GEM_DATA not in os.environ and GEM_SKIP_BAD_ROWS not in os.environ
    assert main(["check", "qa:HotpotQA", "--data", copies, *FEW]) == 1
    assert "row 1: the column 'answer'" in capsys.readouterr().out


def test_data_must_be_a_folder(usage_error):
    assert "--data must be a folder" in usage_error("info", "qa:HotpotQA", "--data", "no-such-folder")


def test_every_command_that_makes_environments_has_the_dataset_flags():
    for name in ("check", "play", "info", "bench", "replay", "train"):
        assert issubclass(importlib.import_module(COMMANDS[name][0]).Config, DataFlags)
