"""gem.cli.output: wrapped text and JSON."""

from __future__ import annotations

import importlib
import json
import math
import sys

import pytest

from gem.cli import COMMANDS, help_text, main
from gem.cli.output import print_json, wrap

EASY = "game:GuessTheNumber-v0-easy"


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_fits_the_width_and_keeps_every_word(command: str | None, width: int) -> None:
    text = help_text(command, width=width)
    # argparse does not wrap the placeholders of a flag
    whole = ("--", "[KEY=VALUE ...]", "[compare RUN ...]", "[PLAYER ...]")
    assert [line for line in text.splitlines() if len(line) > width and not any(map(line.__contains__, whole))] == []
    if command is not None:
        description = importlib.import_module(COMMANDS[command][0]).__doc__ or ""
        assert (
            description.split()
            == text.split()[text.split().index(description.split()[0]) :][: len(description.split())]
        )


def test_paragraphs_are_joined_and_columns_are_aligned() -> None:
    text = "One two\nthree.\n\n  run x    does this and that\n  a_long_command_line    explains it"
    assert wrap(text, 34) == (
        "One two three.\n\n  run x    does this and that\n  a_long_command_line\n      explains it"
    )
    assert wrap("  run x    does this and that", 30).splitlines() == ["  run x    does this and that"]
    assert wrap("  run    does this and that and more", 30) == "  run    does this and that\n         and more"


def test_a_word_longer_than_the_line_stays_whole() -> None:
    assert wrap("see " + "x" * 50, 20) == "see\n" + "x" * 50


def test_json_has_null_for_numbers_that_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"range": (-math.inf, 1.0), 3: [math.nan], "object": object})
    assert json.loads(capsys.readouterr().out) == {"range": [None, 1.0], "3": [None], "object": "<class 'object'>"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv",
    [
        ["list", EASY],
        ["info", EASY],
        ["info", "game:Wordle-v0"],
        ["check", EASY, "--seeds", "1", "--episodes", "1"],
        ["bench", "vec", "--num-envs", "1", "--steps", "2", "--repeats", "1", "--backends", "sync"],
        ["sandbox", "report", "--backend", "subprocess"],
    ],
    ids=" ".join,
)
def test_every_command_that_prints_a_table_prints_json_on_request(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*argv, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    for item in data if isinstance(data, list) else [data]:
        assert isinstance(item, dict) and all(key == key.lower() for key in item)


def test_errors_wrap_at_spaces_on_a_terminal_and_are_one_line_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["info", "game:Wordel-v0"]) == 2
    line = capsys.readouterr().err
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["info", "game:Wordel-v0"]) == 2
    wrapped = capsys.readouterr().err
    assert line.count("\n") == 1 and max(map(len, wrapped.splitlines())) <= 40 and wrapped.split() == line.split()
