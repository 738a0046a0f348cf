"""gem play with piped moves and with a simulated terminal."""

from __future__ import annotations

import io
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gem.cli import main
from gem.cli.play import COMMANDS, Game, shown
from gem.core import Env
from gem.errors import BadValue
from gem.registry import ENV_REGISTRY, make, register

EASY = "game:GuessTheNumber-v0-easy"
SEED = 39  # whose secret is 8


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Plays piped lines and returns the output."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)

    def piped(*lines: str, argv: tuple[str, ...] = (EASY, "--seed", str(SEED))) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        assert main(["play", *argv]) == 0
        return capsys.readouterr().out

    return piped


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Plays lines typed at a terminal. Returns the output and the prompts."""

    def typed(*lines: str) -> tuple[str, list[str]]:
        waiting, prompts = list(lines), []

        def answer(prompt: str) -> str:
            prompts.append(prompt)
            if not waiting:
                raise EOFError
            return waiting.pop(0)

        monkeypatch.setattr(sys, "stdin", type("Keyboard", (io.StringIO,), {"isatty": lambda self: True})())
        monkeypatch.setattr("builtins.input", answer)
        assert main(["play", EASY, "--seed", str(SEED)]) == 0
        return capsys.readouterr().out, prompts

    return typed


def test_the_rules_come_first_and_the_result_last(play: Any) -> None:
    lines = play("5", "8").splitlines()
    assert lines[0] == f"{EASY}, seed {SEED}"
    assert lines[2] == "Guess the secret integer between 1 and 10, in at most 4 turns."
    assert lines[-1] == "Game over (solved): total reward 1 in 2 turns."


def test_a_bare_move_is_put_in_a_box_and_a_boxed_one_is_not(play: Any) -> None:
    assert play("5").count("Turn 1: 5 is too low.") == 1
    assert "Turn 1: 5 is too low." in play(r"I say \boxed{5}, not 6")


def test_a_game_shows_as_a_transcript_when_piped(play: Any) -> None:
    assert "> 5\nTurn 1: 5 is too low.\n> 8\nTurn 2: 8 is right.\nreward +1\n" in play("5", "8")


def test_the_end_of_the_input_leaves_the_game(play: Any) -> None:
    assert play("5").endswith("Left after 1 turn.\n")
    assert play().endswith("Left after 0 turns.\n")


def test_quit_leaves_before_the_end(play: Any) -> None:
    out = play(":quit", "8")
    assert out.endswith("> :quit\nLeft after 0 turns.\n")


def test_an_empty_line_is_not_a_move(play: Any) -> None:
    assert "Turn 1: 8 is right." in play("", "  ", "8")


def test_an_unreadable_move_ends_the_game_as_it_does_for_an_agent(play: Any) -> None:
    assert play("what?").endswith("reward -0.1\nGame over (format): total reward -0.1 in 1 turn.\n")


def test_a_truncated_game_says_why(play: Any) -> None:
    assert play("1", "2", "3", "4").endswith("Game over (max_turns): total reward 0 in 4 turns.\n")


def test_piped_lines_after_the_end_are_ignored(play: Any) -> None:
    assert play("8", "5").endswith("Game over (solved): total reward 1 in 1 turn.\n")


def test_undo_takes_the_last_move_back_and_its_turn_too(play: Any) -> None:
    out = play("1", "2", ":undo", "8")
    assert "> :undo\nTurn 1: 1 is too low.\n> 8\nTurn 2: 8 is right.\n" in out


def test_undo_before_the_first_move_is_an_error(play: Any) -> None:
    assert "no move" in play(":undo")


def test_restart_replays_the_same_seed(play: Any) -> None:
    out = play("1", "2", ":restart", "8")
    assert out.count("Guess the secret integer") == 2
    assert out.endswith("Turn 1: 8 is right.\nreward +1\nGame over (solved): total reward 1 in 1 turn.\n")


def test_help_explains_every_command(play: Any) -> None:
    out = play(":help")
    assert all(f"{name:<10}{what}\n" in out for name, what in COMMANDS.items())


def test_an_unknown_command_is_not_a_move(play: Any) -> None:
    out = play(":hnt", "8")
    assert re.search("':hnt'.*':hint'", out) and "Turn 1: 8 is right." in out


def test_following_the_hints_wins_within_the_limit() -> None:
    for seed in range(20):
        game = Game(make(EASY), seed)
        while game.stopped is None:
            game.move(game.hint())
        assert game.stopped == "solved", seed


def test_a_hint_does_not_change_the_game() -> None:
    game = Game(make(EASY), SEED)
    game.move("5")
    before = game.env.get_state()
    assert game.hint() == game.hint() == "8"
    assert game.env.get_state() == before


def test_the_random_seed_is_shown_and_reproduces_the_game(play: Any) -> None:
    moves = ("1", "2", "3", "4")
    first = play(*moves, argv=(EASY,))
    seed = first.splitlines()[0].rpartition("seed ")[2]
    assert play(*moves, argv=(EASY, "--seed", seed)) == first


def test_arguments_of_the_environment_reach_it(play: Any) -> None:
    assert "between 1 and 100, in at most 9 turns" in play(argv=(EASY, "--env-kwargs", "max_number=100", "max_turns=9"))


def test_output_to_a_file_has_no_escape_sequences(play: Any) -> None:
    assert "\x1b" not in play("what?")


def test_a_terminal_gets_colors_and_a_frame_unless_no_color_is_set(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes any output for a terminal then
    colored = play("what?")
    assert "\x1b[31mreward -0.1" in colored and "╭" in colored
    monkeypatch.setenv("NO_COLOR", "1")
    plain = play("what?")
    assert "\x1b" not in plain and "╭" in plain


def test_a_terminal_offers_another_game_with_the_next_seed(terminal: Any) -> None:
    out, prompts = terminal("8", "maybe", "y", ":quit")
    assert prompts == ["> ", "Again? (y, n, :undo) ", "Again? (y, n, :undo) ", "> "]
    assert f"{EASY}, seed {SEED}" in out and f"{EASY}, seed {SEED + 1}" in out


@pytest.mark.parametrize("answer", ["n", "", ":quit"])
def test_no_other_game_is_played_without_confirmation(answer: str, terminal: Any) -> None:
    out, prompts = terminal("8", answer, "5")
    assert prompts == ["> ", "Again? (y, n, :undo) "]
    assert out.endswith("Game over (solved): total reward 1 in 1 turn.\n")


def test_undo_works_after_the_end_of_a_game_at_a_terminal(terminal: Any) -> None:
    out, _ = terminal("1", "2", "3", "4", ":undo", "8", "n")
    assert "Game over (max_turns)" in out and "Game over (solved): total reward 1 in 4 turns." in out


def test_a_typo_at_a_terminal_does_not_end_the_game(terminal: Any) -> None:
    out, prompts = terminal("5", "oops", "8", "n")
    assert "no valid action found" in out and "was taken back" in out and "Game over (format)" not in out
    assert out.endswith("Game over (solved): total reward 1 in 2 turns.\n") and prompts[:3] == ["> "] * 3


def test_an_invalid_move_does_not_use_up_the_last_turn_of_a_person() -> None:
    game = Game(make("game:Wordle-v0", max_turns=1), SEED)
    game.move("zz")
    assert game.stopped == "max_turns" and "ZZ does not have 5 letters" in (game.undo_fatal_typo() or "")
    assert (game.stopped, game.turns) == (None, 0)
    game.move("crane")
    assert game.stopped == "max_turns" and game.undo_fatal_typo() is None


def test_the_rules_can_be_shown_again_with_the_current_board(play: Any) -> None:
    out = play("reveal 3 3", ":rules", argv=("game:Minesweeper-v0", "--seed", "1"))
    first, _, again = out.partition("> :rules\n")
    assert again.count("Minesweeper: open all cells") == first.count("Minesweeper: open all cells") == 1
    board = first[first.rindex("Mines: ") :].splitlines()[: 1 + 1 + 8]
    assert "\n".join(board) in again


@pytest.mark.parametrize(
    ("game", "base"),
    [
        ("Minesweeper", 0),
        ("Crosswords", 0),
        ("WordSearch", 0),
        ("Sudoku", 1),
        ("FifteenPuzzle", None),
        ("Wordle", None),
    ],
)
def test_the_index_base_of_a_game_is_stated_beside_the_board(game: str, base: int | None, play: Any) -> None:
    ids = [i for i in ENV_REGISTRY if i.startswith(f"game:{game}-v0")]
    games = [Game(make(i), SEED) for i in ids]
    assert {g.index_base for g in games} == {base}
    stated = f"(rows and columns count from {base})\n"
    assert play(argv=(ids[0], "--seed", "1")).count(stated) == (base is not None)
    if base is not None:
        actions = [g.env.sample_random_action() for g in games for _ in range(50)]
        assert min(int(number) for action in actions for number in re.findall(r"\d+", action)[:2]) == base


@pytest.mark.parametrize("env_id", [i for i in ENV_REGISTRY if i.startswith("game:")])
def test_boards_fit_a_terminal_of_80_by_24(env_id: str) -> None:
    game = Game(make(env_id), SEED)
    game.act(game.env.sample_random_action())
    assert sum(math.ceil(len(line) / 80) for line in shown(game.now).splitlines()) <= 24 - 4


def test_pictures_are_shown_by_path(play: Any) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs the extra [vision]")
    out = play(argv=("vision:Charts", "--seed", "1"))
    [path] = re.findall(r"\[image: (.*)\]", out)
    with image.open(path) as picture:
        assert picture.format == "PNG" and "[images:" not in out
    shutil.rmtree(Path(path).parent)


@pytest.mark.parametrize(
    ("env_id", "move", "colored"),
    [
        ("game:Wordle-v0", "crane", "\x1b[1;33mY\x1b[0m"),
        ("game:Sokoban-v0-easy", "up", "\x1b[1;36m@\x1b[0m"),
        ("game:Minesweeper-v0", "reveal 3 3", "\x1b[36m1\x1b[0m"),
        ("game:Mastermind-v0", "1 2 3 4", "\x1b[1;33m3 white\x1b[0m"),
    ],
)
def test_colors_mark_what_has_a_meaning(
    env_id: str, move: str, colored: str, play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert colored in play(move, argv=(env_id, "--seed", "1"))


def test_the_end_of_the_input_at_a_terminal_leaves_politely(terminal: Any) -> None:
    out, _ = terminal("5")
    assert out.endswith("Left after 1 turn.\n")


class Echo(Env):
    """Echoes the action. It has no state and no oracle."""

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed)
        return "Say something, [bold]:smile: and all.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return f"heard {action}", 0.0, action == "bye", False, {}


@pytest.fixture
def echo() -> Any:
    register("test:Echo-v0", Echo)
    yield "test:Echo-v0"
    del ENV_REGISTRY["test:Echo-v0"]


def test_a_line_is_sent_as_typed_if_the_rules_ask_for_no_box(echo: str, play: Any) -> None:
    out = play("hello", "bye", argv=(echo,))
    assert "heard hello\n" in out and "Game over (terminated): total reward 0 in 2 turns." in out


def test_a_fenced_block_is_one_move_of_several_lines(echo: str, play: Any) -> None:
    out = play("```python", "if True:", "    pass", "", "```", argv=(echo,))
    assert "heard ```python\nif True:\n    pass\n\n```\n" in out and "Left after 1 turn." in out


def test_a_fenced_block_ended_by_the_end_of_input_is_a_move(echo: str, play: Any) -> None:
    assert "heard ~~~\n  1\n```\n" in play("~~~", "  1", "```", argv=(echo,))


def test_observations_are_not_parsed_as_markup(echo: str, play: Any) -> None:
    assert "Say something, [bold]:smile: and all.\n" in play(argv=(echo,))


def test_unsupported_commands_are_reported_and_the_game_continues(echo: str, play: Any) -> None:
    out = play("a", ":undo", ":hint", "bye", argv=(echo,))
    assert out.count("this environment cannot be saved") == 2 and "heard bye" in out


def test_an_environment_without_an_oracle_has_no_hints() -> None:
    game = Game(make(EASY), SEED)
    game.env.env_id = None
    with pytest.raises(BadValue, match="no oracle is known"):
        game.hint()


def test_an_oracle_that_raises_does_not_end_the_game(monkeypatch: pytest.MonkeyPatch, play: Any) -> None:
    def lost(self: object, observation: str) -> str:
        raise KeyError("move 7")

    monkeypatch.setattr("gem.envs.games.guess_the_number.Oracle.act", lost)
    out = play(":hint", "8")
    assert "(KeyError: 'move 7')" in out and "Turn 1: 8 is right." in out


def test_invalid_utf8_is_an_unreadable_move() -> None:
    command = [sys.executable, "-m", "gem", "play", EASY, "--seed", str(SEED)]
    done = subprocess.run(command, input=b"\xff\xfe\n", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Game over (format)" in done.stdout


def test_the_frame_wraps_long_rules_without_cutting_them(play, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "50")
    rules, _ = make("game:Minesweeper-v0-easy").reset(seed=SEED)
    framed = play(":quit", argv=("game:Minesweeper-v0-easy", "--seed", str(SEED)))
    words = set(re.sub(r"[│╭╮╰╯─]", " ", re.sub(r"\x1b\[[0-9;]*m", "", framed)).split())
    assert set(rules.split()) <= words
