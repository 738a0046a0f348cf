"""The flags --data and --skip-bad-rows of commands that make environments."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
from pathlib import Path

import pytest

from gem.cli import COMMANDS, main
from gem.cli.data import DataFlags
from gem.datasets.load import GEM_DATA
from gem.datasets.rows import GEM_SKIP_BAD_ROWS

FEW = ("--seeds", "1", "--episodes", "1")


def copy_of(tmp_path: Path) -> Path:
    """A local copy of a hub dataset whose second row is malformed."""
    folder = tmp_path / "axon-rl" / "HotpotQA"
    folder.mkdir(parents=True)
    rows = [{"problem": "1?", "answer": ["b"]}, {"problem": "2?", "answer": None}, {"problem": "3?", "answer": "c"}]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_data_and_skip_bad_rows_apply_to_one_run_and_malformed_rows_are_reported_at_exit(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv(GEM_DATA, raising=False)
    monkeypatch.delenv(GEM_SKIP_BAD_ROWS, raising=False)
    copies = str(copy_of(tmp_path))
    assert main(["info", "qa:HotpotQA", "--data", copies, "--skip-bad-rows"]) == 0
    err = capsys.readouterr().err
    assert "train.jsonl: 1 of 3 rows" in err and "line 2 (row 1): the column 'answer'" in err
    assert GEM_DATA not in os.environ and GEM_SKIP_BAD_ROWS not in os.environ
    assert main(["check", "qa:HotpotQA", "--data", copies, *FEW]) == 1
    assert "train.jsonl, line 2 (row 1): the column 'answer'" in capsys.readouterr().out


def test_a_row_that_cannot_be_opened_does_not_hide_the_other_faulty_rows(tmp_path, capsys):
    path = copy_of(tmp_path) / "axon-rl" / "HotpotQA" / "train.jsonl"
    path.write_text(path.read_text() + '\nnot JSON\n{"problem": "4?", "answer": "3 + 4\\n#### 7"}\n')
    assert main(["check", "qa:HotpotQA", "--data", str(tmp_path), "--rows", "all", "--seeds", "5", "--json"]) == 1
    results = {result["name"]: result for result in json.loads(capsys.readouterr().out)[0]["results"]}
    assert results["protocol"]["status"] == "failed"  # a seed opens a faulty row
    places = [item.partition(":")[0] for item in results["gold-answers"]["items"]]
    assert places[:1] + places[2:] == ["train.jsonl, line 2 (row 1)", "train.jsonl, line 6 (row 4)"]
    assert places[1].startswith("train.jsonl, line 5 (row 3) is not JSON")


def test_data_must_be_a_folder(usage_error):
    assert "--data must be a folder" in usage_error("info", "qa:HotpotQA", "--data", "no-such-folder")


def test_every_command_that_makes_environments_has_the_dataset_flags():
    for name in ("check", "play", "info", "bench", "replay", "train"):
        assert issubclass(importlib.import_module(COMMANDS[name][0]).Config, DataFlags)


@pytest.mark.parametrize(
    "command",
    [
        ("info",),
        ("check", *FEW),
        ("play", "--seed", "0"),
        ("eval", "--policy", "oracle", "--out", "run", "--env"),
    ],
    ids=lambda command: command[0],
)
def test_the_path_of_own_data_is_an_id_for_each_command(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(copy_of(tmp_path))
    (tmp_path / "own.jsonl").write_text('{"question": "Capital of Peru?", "answer": ["Lima"]}\n')
    monkeypatch.setattr("sys.stdin", io.StringIO("<answer>Lima</answer>\n"))
    assert main([*command, "qa:own.jsonl"]) == 0
    assert re.search("qa:own.jsonl|Capital of Peru", capsys.readouterr().out)
