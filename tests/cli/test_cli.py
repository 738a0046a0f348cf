"""The `gem` command: dispatch, help, errors and exit codes."""

from __future__ import annotations

import gc
import importlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gem.cli
from gem.cli import COMMANDS, main
from gem.errors import BadValue, InfraError

EASY = "game:GuessTheNumber-v0-easy"


def failing(error: BaseException) -> Any:
    def run(config: object) -> int:
        raise error

    return SimpleNamespace(__doc__="Fail.", Config=dataclass(type("Config", (), {})), run=run)


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command that raises the given error; returns the exit code."""

    def with_error(error: BaseException) -> int:
        monkeypatch.setattr(gem.cli, "_module", lambda command: failing(error))
        return main(["list"])

    return with_error


@pytest.mark.parametrize("command", COMMANDS)
def test_the_summary_of_a_command_is_the_first_line_of_its_help(command: str) -> None:
    module, summary = COMMANDS[command]
    assert (importlib.import_module(module).__doc__ or "").strip().splitlines()[0] == summary


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_prints_and_exits_with_zero(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert f"usage: gem {command}" in capsys.readouterr().out


def test_gem_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert all(f" {name} {summary}" in out for name, (_, summary) in COMMANDS.items())


def test_gem_help_is_the_same_as_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    for command, flag in ((["help"], ["--help"]), (["help", "play"], ["play", "--help"])):
        assert main(command) == main(flag) == 0
        out = capsys.readouterr().out
        assert out[: len(out) // 2] == out[len(out) // 2 :]


def test_gem_without_a_command_prints_the_help_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("usage: gem")


def test_only_a_process_of_the_command_line_collects_garbage_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    monkeypatch.setattr(gc, "set_threshold", given.append)
    monkeypatch.setattr(sys, "argv", ["gem", "--version"])
    assert main(["--version"]) == 0 and given == []
    assert main() == 0 and given == [gem.cli.GC_THRESHOLD]


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("--version", "-V"):
        assert main([flag]) == 0
        assert capsys.readouterr().out == f"gem {gem.__version__}\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["lits"], "'lits'.*'list'"),
        (["train", "--lr", "3"], "--lr .*`gem train --help`"),
        (["list", "--jsno"], "--jsno.*'--json'"),
        (["version"], "'version'.*'--version'"),
        (["help", "lits"], "'lits'.*'list'"),
        (["help", "list", "play"], "unexpected argument 'play'"),
        (["serve"], "command 'serve'.*`gem --help`"),
        (["info", "wordle"], "'wordle'.*'game:Wordle-v0'"),
        (["info", "game:Chess-v0"], r"'game:Chess-v0'  \(`gem list`"),
        (["info", "zz"], r"'zz'  \(`gem list`"),
        (["list", "o"], r"'o'  \(`gem list`"),
        (["info"], "gem info requires ID"),
        (["info", EASY, "--env-kwargs", "max_turns=abc"], "max_turns .*integer or None.*'abc'"),
        (["info", EASY, "--env-kwargs", "max_turns=2.5"], r"max_turns .*integer or None.*got 2\.5"),
        (["info", "game:GuessTheNumber-v0-eazy"], "-eazy'.*'game:GuessTheNumber-v0-easy'"),
        (["info", EASY, "--env-kwargs", "max_turn=3"], "'max_turn'.*'max_turns'"),
        (["info", EASY, "--env-kwargs", "max_turns=0"], "max_turns .*at least 1.*got 0"),
        (["play", EASY, "--seed", "-1"], "seed .*>= 0.*got -1"),
        (["play", EASY, "--seed", "x"], "--seed .*integer.*'x'"),
    ],
)
def test_a_usage_error_is_one_line_with_a_suggestion(argv: list[str], message: str, usage_error: Any) -> None:
    error = usage_error(*argv)
    assert re.search(message, error), error


def test_an_infra_error_is_one_line_and_exits_with_1(fail: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert fail(InfraError("the server\n  is down")) == 1
    assert capsys.readouterr().err == "gem: error: the server; is down\n"


def test_a_missing_file_exits_with_2(fail: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "absent.json"
    with pytest.raises(FileNotFoundError) as caught:
        path.read_text()
    assert fail(caught.value) == 2
    assert capsys.readouterr().err == f"gem: error: {path}: No such file or directory\n"


def test_a_full_disk_exits_with_1(fail: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert fail(OSError(28, "No space left on device")) == 1
    assert "No space left" in capsys.readouterr().err


def test_a_broken_pipe_other_than_stdout_is_reported(fail: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert fail(BrokenPipeError(32, "Broken pipe")) == 1
    assert "Broken pipe" in capsys.readouterr().err


def test_ctrl_c_exits_with_130_and_no_traceback(fail: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert fail(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "\n"


def test_gem_traceback_raises_the_error(fail: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEM_TRACEBACK", "1")
    with pytest.raises(BadValue):
        fail(BadValue("no"))


def test_an_unexpected_exception_propagates(fail: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        fail(ZeroDivisionError())


@pytest.mark.parametrize("closed", [1, 2])
def test_a_process_without_a_stream_prints_nothing_there(closed: int) -> None:
    command = f'exec "$0" -m gem info game:Wordle-v0 {closed}>&-'
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"") and bool(done.stdout) == (closed == 2)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("argv", [["list"], ["list", "--help"], ["--help"]], ids=" ".join)
def test_a_closed_stdout_ends_the_output_silently(argv: list[str], unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "gem", *argv],
            stdout=closed,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")
