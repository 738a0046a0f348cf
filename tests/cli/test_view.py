"""gem view."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import gem.cli.view
from gem.cli import main
from gem.trajectory import Trajectory, Turn, write_jsonl


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_jsonl(tmp_path / "a.jsonl", [Trajectory(turns=[Turn("Hello", "answer")], terminated=True)])
    return tmp_path / "a.jsonl"


def test_view_writes_a_page_beside_the_file_and_says_where(file: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["view", str(file)]) == 0
    assert re.fullmatch(re.escape(str(file.with_suffix(".html"))) + r": 1 episode, 0\.\d MB\n", capsys.readouterr().out)
    assert file.with_suffix(".html").read_text().startswith("<!doctype html>")


def test_view_of_a_folder_writes_into_it_and_out_names_another_file(file: Path, tmp_path: Path):
    assert main(["view", str(tmp_path)]) == 0
    assert main(["view", str(file), "-o", str(tmp_path / "b.html")]) == 0
    assert sorted(page.name for page in tmp_path.glob("*.html")) == ["b.html", "view.html"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no complete episode in"),
        ('{"turns": [', "no complete episode in"),
        ("hello\n", "line 1: not a trajectory: it is not JSON"),
        ('{"update": 1}\n', "line 1: not a trajectory"),
        ('{"turns": [{"observation": 1}]}\n', "line 1: it is not a trajectory"),
    ],
)
def test_view_of_another_file_is_one_clear_line(content: str, message: str, tmp_path: Path, usage_error: Any):
    file = tmp_path / "a.jsonl"
    file.write_text(content)
    assert message in usage_error("view", str(file))
    assert not list(tmp_path.glob("*.html"))


def test_view_refuses_arguments_that_do_not_fit(file: Path, tmp_path: Path, usage_error: Any):
    (tmp_path / "empty").mkdir()
    assert "does not exist" in usage_error("view", str(tmp_path / "none.jsonl"))
    assert "has no JSON Lines file" in usage_error("view", str(tmp_path / "empty"))
    assert "must end in .html" in usage_error("view", str(file), "-o", str(file))
    assert "its folder does not exist" in usage_error("view", str(file), "--out", str(tmp_path / "no" / "a.html"))
    assert "leave out --out" in usage_error("view", str(file), "--serve", "--out", "a.html")
    assert "requires PATHS" in usage_error("view")
    assert "the port must be below" in usage_error("view", str(file), "--serve", "--port", "70000")


def test_view_of_a_wrong_tokenizer_is_one_clear_line(file: Path, usage_error: Any):
    pytest.importorskip("tokenizers")
    assert "is not the tokenizer.json" in usage_error("view", str(file), "--tokenizer", str(file))


def test_too_many_episodes_for_a_file_are_served(file: Path, usage_error: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gem.cli.view, "MAX_EPISODES", 0)
    assert re.search("1 episode.*at most 0.*--serve", usage_error("view", str(file)))
