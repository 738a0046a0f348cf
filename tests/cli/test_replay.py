"""gem replay."""

import json
import re

import pytest

from gem.cli import main
from gem.registry import ENV_REGISTRY
from gem.testing.env.playthroughs import file_name

EASY = "game:GuessTheNumber-v0-easy"


@pytest.fixture
def folder(tmp_path):
    assert main(["replay", str(tmp_path), "--update", "--ids", "game:GuessTheNumber-v0-*"]) == 0
    return tmp_path


def test_one_command_records_every_id(folder):
    names = {file_name(i) for i in ENV_REGISTRY if i.startswith("game:GuessTheNumber-v0-")}
    assert {file.name for file in folder.iterdir()} == names and len(names) == 4


def test_gem_replay_of_an_unchanged_folder_exits_with_0(folder, capsys):
    assert main(["replay", str(folder)]) == 0
    assert capsys.readouterr().out.count("unchanged ") >= 4


def test_gem_replay_shows_changes_and_update_records_them(folder, capsys):
    file = folder / file_name(EASY)
    recorded = file.read_text()
    file.write_text(recorded.replace("Guess the secret", "Find a secret"))
    assert main(["replay", str(file)]) == 1
    assert "line 6\n  - < Find a secret" in capsys.readouterr().out
    assert main(["replay", str(file), "--update"]) == 0
    assert file.read_text() == recorded


@pytest.mark.parametrize(
    "flags", [["no_such_file.txt"], ["."], [".", "--ids", "game:*"], [".", "--update", "--ids", "x"]]
)
def test_a_command_line_error_exits_with_2(flags, usage_error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    usage_error("replay", *flags)


def test_json_has_the_differences_of_each_file(folder, capsys):
    file = folder / file_name(EASY)
    file.write_text(file.read_text().replace("Guess the secret", "Find a secret"))
    capsys.readouterr()
    assert main(["replay", str(folder), "--json"]) == 1
    results = {result.pop("file"): result for result in json.loads(capsys.readouterr().out)}
    [difference] = results.pop(str(file))["differences"]
    assert difference["line"] == 6 and difference["recorded"].startswith("< Find a secret")
    assert list(results.values()) == [{"differences": [], "recorded": False, "skipped": ""}] * 3


def test_an_environment_whose_dependencies_are_missing_is_skipped(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("GEM_MCP_FILESYSTEM", raising=False)
    (tmp_path / "files.txt").write_text("playthrough of mcpmark:Files\nseed 0\nactions by the oracle\n")
    assert main(["replay", str(tmp_path)]) == 0
    assert re.match("skipped    .*files.txt: .*install", capsys.readouterr().out)


def test_a_file_that_is_no_playthrough_is_named(usage_error, tmp_path):
    (tmp_path / "notes.txt").write_text("notes")
    assert f"{tmp_path / 'notes.txt'}: not a playthrough" in usage_error("replay", str(tmp_path))
