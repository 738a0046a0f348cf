"""gem.cli.output: wrapped text and JSON."""

from __future__ import annotations

import importlib
import io
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gem._internal.text import escape_output
from gem.cli import COMMANDS, help_text, main
from gem.cli.output import console, print_json, progress, wrap
from gem.core import Env
from gem.errors import BadValue, InfraError
from gem.registry import ENV_REGISTRY, EnvSpec, register

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


HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b1m\u202ecba\u200b\rfake [link=http://evil]x[/link] [bold red] :smile: \ud800\b"
COMMANDS_TO_A_TERMINAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\ud800-\udfff]")
OF_RICH = re.compile(r"\x1b\[(?:\d+;)*\d*m|\x1b\[\?25[lh]|\x1b\[[12]?[AK]|\r(?!fake)")  # styles and the lines of bars
CHECK = ["check", "test:Hostile-v0", "--seeds", "1", "--episodes", "1", "--rows", "1"]
EVAL = ["eval", "--env", "test:Hostile-v0", "--limit", "1", "--retries", "0", "--out", "run", "--policy"]


class Hostile(Env):
    """An environment whose texts and errors have commands for the terminal.

    Args:
        end: what a step does: "error", "caller" (an error of the caller), "infra" (an outage) or "solved".
        size: number of characters that each text has in addition.
    """

    def __init__(self, end: str = "solved", size: int = 0) -> None:
        self.end, self.text = end, HOSTILE + "x" * size

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        print("printed", self.text)
        print("printed", self.text, file=sys.stderr)
        return self.text, {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.end != "solved":
            raise {"caller": BadValue, "infra": InfraError}.get(self.end, RuntimeError)(self.text)
        return self.text, 1.0, True, False, {"stop_reason": self.text, self.text: self.text}

    def sample_random_action(self) -> str:
        return self.text


@pytest.fixture
def hostile() -> Iterator[str]:
    register(EnvSpec("test:Hostile-v0", Hostile, description=HOSTILE))
    yield "test:Hostile-v0"
    del ENV_REGISTRY["test:Hostile-v0"]


@pytest.mark.parametrize("terminal", [False, True], ids=["piped", "terminal"])
@pytest.mark.parametrize(
    "argv",
    [
        ["list", "test:*"],
        ["info", "test:Hostile-v0"],
        ["play", "test:Hostile-v0"],
        ["play", "test:Hostile-v0", "--env-kwargs", "end=caller"],
        ["play", "test:Hostile-v0", "--env-kwargs", "end=infra"],
        CHECK,
        [*CHECK, "--json"],
        [*EVAL, f"constant:{HOSTILE}"],
        [*EVAL, "random", "--env-kwargs", "end=error"],
        ["replay", "recorded.txt"],
        ["plot", "run", "--list"],
        ["eval", "compare", f"no{HOSTILE}"],
        [HOSTILE],
        ["info", HOSTILE],
        ["eval", f"--{HOSTILE}"],
    ],
    ids=lambda argv: " ".join(word for word in argv if word.isprintable())[:60],
)
def test_no_text_from_outside_gives_commands_to_the_terminal(
    argv: list[str],
    terminal: bool,
    hostile: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("x\n:rules\n:\x1b[2J\n"))
    Path("recorded.txt").write_text(f"playthrough of {hostile}\nseed 0\nactions at random\n\nturn 1\n> \x1b[2J\n")
    if argv[0] == "plot":
        write_run(Path("run"))
    if terminal:
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    main(argv)
    out, err = capfd.readouterr()
    assert out + err and COMMANDS_TO_A_TERMINAL.findall(OF_RICH.sub("", out + err) if terminal else out + err) == []
    assert "\x1b]8" not in out + err and "😄" not in out + err
    for file in Path("run").glob("report.*"):
        assert COMMANDS_TO_A_TERMINAL.findall(file.read_text()) == []


def write_run(folder: Path) -> None:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"envs": [{"id": HOSTILE}], "seed": 0, "steps": 1}))
    row = {"update": 1, "success": 0.5, "warnings": [HOSTILE]}
    (folder / "metrics.jsonl").write_text(json.dumps(row) + "\n")


def shown_live(print_text: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a terminal gets while progress is shown and a text is printed."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    with escape_output(), progress(redirect_stdout=True) as bars:
        bars.add_task(f"[red]{HOSTILE}", total=1)
        print_text()
        sys.stdout.flush()
    return terminal.getvalue()


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_live_display_reads_no_colors_links_or_markup_in_what_is_printed_above_it(stream, end, monkeypatch):
    text = "\x1b[31mred\x1b]8;;http://evil\x1b\\link [bold]b[/bold] [link=http://evil]x[/link]"
    out = shown_live(lambda: print(text, end=end, file=getattr(sys, stream), flush=True), monkeypatch)
    assert r"\x1b[31mred\x1b]8;;http://evil\x1b" in out and "[bold]b[/bold]" in out and "[link=http://evil]" in out
    assert "\x1b]8" not in out and "\x1b[31mred" not in out and r"[red]\x1b[2J" in out


def test_the_styles_of_a_console_that_rich_made_by_itself_are_shown_and_not_obeyed(capsys):
    with escape_output():
        Console(force_terminal=True, color_system="standard").print("text", style="bold")
        console(force_terminal=True, color_system="standard", highlight=False).print("text\x1b[5m", style="bold")
    assert capsys.readouterr().out == "\\x1b[1mtext\\x1b[0m\n\x1b[1mtext\\x1b[5m\x1b[0m\n"


def test_a_long_error_is_cut_with_the_number_of_characters_left_out(hostile, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("x\n"))
    assert main(["play", hostile, "--env-kwargs", "end=infra", "size=100000"]) == 1
    error = capsys.readouterr().err.split("gem: error: ")[1]
    assert len(error) < 5_000 and error.endswith(" characters left out)\n")


def test_a_long_observation_is_cut_with_the_number_of_characters_left_out(hostile, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    for argv in (["play", hostile], ["info", hostile]):
        assert main([*argv, "--env-kwargs", "size=3000000"]) == 0
        shown = capsys.readouterr().out.replace("printed", "")
        assert re.search(r"… \([\d,]+ characters left out\)", shown)


def test_what_an_environment_prints_while_it_is_checked_is_cut(hostile, capsys):
    main([*CHECK, "--seeds", "5"])
    out, err = capsys.readouterr()
    assert len(err) < 20_000 and re.search(r"\n… [\d,]+ characters that test:Hostile-v0 printed left out\n", err)
    assert "printed" in err and len(out) < 100_000


WORKER = f"""
import gem, logging, sys, warnings
TEXT = {HOSTILE!r}
class Hostile(gem.Env):
    def __init__(self):
        print("built", TEXT, file=sys.stderr)
        logging.getLogger("hostile").warning("logged %s", TEXT)
        warnings.warn("warned " + TEXT)
    def reset(self, seed=None):
        super().reset(seed=seed)
        return TEXT, {{}}
    def step(self, action):
        raise RuntimeError(TEXT)
    def sample_random_action(self):
        return "x"
if __name__ == "__main__":
    gem.register(gem.registry.EnvSpec("test:Hostile-v0", "hostile:Hostile", runs="process"))
    from gem.cli import main
    sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("argv", [["play", "test:Hostile-v0"], [*EVAL, "random"]], ids=["traceback", "worker"])
def test_a_traceback_after_main_and_the_output_of_a_worker_process_are_escaped(argv, tmp_path):
    (tmp_path / "hostile.py").write_text(WORKER)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "hostile.py", *argv]
    done = subprocess.run(command, input=b"x\n", capture_output=True, cwd=tmp_path, env=environ, timeout=60)
    shown = (done.stdout + done.stderr).decode()
    assert done.returncode == 1 and r"built \x1b[2J" in shown and COMMANDS_TO_A_TERMINAL.findall(shown) == []
    assert all(rf"{how} \x1b[2J" in shown for how in ("logged", "warned", "RuntimeError:"))
