"""gem tournament."""

from __future__ import annotations

import importlib.util
import json
import re

import pytest

from gem.cli import main

NIM = ["--env", "board:Nim-v0", "--games", "20"]


@pytest.fixture(autouse=True)
def in_an_empty_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_a_tournament_prints_its_crosstable_and_writes_its_records(capsys, tmp_path):
    assert main(["tournament", "random", "strength:.5", "oracle", *NIM]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["rating", "points", "oracle", "strength:.5", "random"]
    assert [line.split()[0] for line in lines[1:4]] == ["oracle", "strength:.5", "random"]
    folder = tmp_path / "tournaments" / "board-Nim-v0"
    assert {"trajectories.jsonl", "report.md", "report.json", "eval.json"} <= {f.name for f in folder.iterdir()}
    assert (folder / "ratings.png").exists() == (importlib.util.find_spec("matplotlib") is not None)


def test_a_tournament_is_resumed_with_its_own_settings(capsys, tmp_path):
    assert main(["tournament", "random", "oracle", *NIM, "--out", "t"]) == 0
    file = tmp_path / "t" / "trajectories.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:5]))
    capsys.readouterr()
    assert main(["tournament", "--resume", "t", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [player["name"] for player in report["players"]] == ["oracle", "random"]
    assert len(file.read_text().splitlines()) == report["planned"] == 20


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["random", "oracle"], "needs --env"),
        (["random", *NIM], "two players, got 1"),
        (["random", "random", *NIM], "'random' twice"),
        (["random", "orcale", *NIM], "'orcale'.*'oracle'"),
        (["random", "strength:much", *NIM], "takes a number between 0 and 1"),
        (["random", "strength:2", *NIM], "strength .*between 0 and 1"),
        (["random", "oracle", "--env", "game:Wordle-v0"], "game:Wordle-v0 .*`gem list`"),
        (["random", "oracle", "--env", "board:Nim-v0", "--games", "3"], "games .*even"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(flags, message, capsys):
    assert main(["tournament", *flags]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert len(error.splitlines()) == 1
