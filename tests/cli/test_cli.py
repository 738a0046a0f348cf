"""The dispatcher, flags from dataclasses, gem list and gem info."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Optional

import pytest

import gem.cli
from gem.cli import COMMANDS, flags, main
from gem.cli.flags import REQUIRED, flag, parse
from gem.core import Env
from gem.errors import BadValue, InfraError, UnknownArgument
from gem.registry import ENV_REGISTRY, EnvSpec, register

EASY = "game:GuessTheNumber-v0-easy"


@dataclass(frozen=True, kw_only=True)
class Options:
    """A dataclass as in a library: plain fields without flag()."""

    env: str = field(metadata={"help": "which one"})
    steps: int = field(default=10, metadata={"help": "100 % of them"})
    rate: float = 0.5
    clip: float | None = 0.2
    model: Optional[str] = None  # noqa: UP045  the older spelling must work too
    verbose: bool = False
    mode: Literal["turn", "batch"] = "turn"
    folds: Literal[2, 4] | None = None
    out: Path = Path("runs")
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    sizes: tuple[int, ...] = (8, 9)
    secret: int = field(default=0, init=False)


@dataclass(frozen=True, kw_only=True)
class Positionals:
    first: int = flag(REQUIRED, help="a number", positional=True)
    rest: list[str] = flag([], help="texts", positional=True)
    colour: str = flag("red", help="of it", choices=["red", "green"])
    loud: bool = flag(True, help="shout")


def options(*argv: str) -> Options:
    return parse(Options, ["--env", "e", *argv])


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


def error_of(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("gem: error: ") and captured.err.count("\n") == 1
    return captured.err


def subprocess_gem(*argv: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gem", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **kwargs)


# --- flags ---


def test_omitted_flags_keep_their_defaults() -> None:
    assert options() == Options(env="e")


@pytest.mark.parametrize(
    ("argv", "name", "value"),
    [
        (["--steps", "3"], "steps", 3),
        (["--steps=3"], "steps", 3),
        (["--steps", "-3"], "steps", -3),
        (["--rate", "1e-6"], "rate", 1e-6),
        (["--clip", "none"], "clip", None),
        (["--clip", "1"], "clip", 1.0),
        (["--model", "some/path"], "model", "some/path"),
        (["--model", "none"], "model", None),
        (["--verbose"], "verbose", True),
        (["--verbose", "--no-verbose"], "verbose", False),
        (["--mode", "batch"], "mode", "batch"),
        (["--folds", "4"], "folds", 4),
        (["--out", "a/b"], "out", Path("a/b")),
        (["--sizes", "1", "2", "--sizes", "3"], "sizes", (1, 2, 3)),
        (["--model", "--- a text with a space"], "model", "--- a text with a space"),
    ],
)
def test_a_flag_sets_its_field(argv: list[str], name: str, value: object) -> None:
    assert getattr(options(*argv), name) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("[1, 2]", [1, 2]),
        ("true", True),
        ("True", True),
        ("None", None),
        ('"5"', "5"),
        ("word", "word"),
        ("a=b", "a=b"),
        ("", ""),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_a_dict_value_is_parsed_as_json_or_kept_as_text(text: str, value: object) -> None:
    read = options("--env-kwargs", f"x={text}").env_kwargs["x"]
    assert str(read) == str(value)  # Python 3.10 reads the long number, later versions refuse to
    assert text.startswith("999") or type(read) is type(value)


def test_repeated_dict_flags_accumulate() -> None:
    assert options("--env-kwargs", "a=1", "b=2", "--env-kwargs", "c=3").env_kwargs == {"a": 1, "b": 2, "c": 3}


def test_defaults_are_not_shared_between_configs() -> None:
    one, other = parse(Positionals, ["1"]), parse(Positionals, ["1"])
    assert one.rest == [] and one.rest is not other.rest


@pytest.mark.parametrize(
    "argv", [["7", "a", "b"], ["7", "--no-loud", "a", "b"], ["--no-loud", "7", "a", "b"], ["7", "a", "b", "--no-loud"]]
)
def test_positional_arguments_may_stand_anywhere_among_the_flags(argv: list[str]) -> None:
    config = parse(Positionals, argv)
    assert (config.first, config.rest, config.loud) == (7, ["a", "b"], "--no-loud" not in argv)


def test_arguments_after_two_dashes_are_positional() -> None:
    assert parse(Positionals, ["--", "-7", "--loud", "--"]) == Positionals(first=-7, rest=["--loud", "--"])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--steps", "many"], "--steps must be an integer, got 'many'"),
        (["--rate", "fast"], "--rate must be a number, got 'fast'"),
        (["--clip", "nil"], "--clip must be none or a number, got 'nil'"),
        (["--mode", "batsh"], "--mode must be one of turn, batch, got 'batsh'; did you mean 'batch'?"),
        (["--folds", "3"], "--folds must be none or one of 2, 4, got '3'"),
        (["--env-kwargs", "a=1", "b"], "--env-kwargs takes key=value pairs, got 'b'"),
        (["--env-kwargs", "=1"], "--env-kwargs takes key=value pairs, got '=1'"),
        (["--steps"], "--steps: expected one argument"),
        (["--steps", "--verbose"], "--steps: expected one argument"),
    ],
)
def test_a_bad_value_error_names_the_flag_and_the_expected_type(argv: list[str], message: str) -> None:
    with pytest.raises(BadValue) as caught:
        options(*argv)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--stesp", "3"], "unknown flag --stesp; did you mean '--steps'?"),
        (["--step", "3"], "unknown flag --step; did you mean '--steps'?"),
        (["--no-verbos"], "unknown flag --no-verbos; did you mean '--no-verbose'?"),
        (["-v"], "unknown flag -v"),
        (["--secret", "1"], "unknown flag --secret"),
        (["stray"], "unexpected argument 'stray'"),
    ],
)
def test_unknown_and_abbreviated_flags_are_rejected(argv: list[str], message: str) -> None:
    with pytest.raises(UnknownArgument) as caught:
        options(*argv)
    assert str(caught.value).startswith(message)


def test_every_missing_required_value_is_named() -> None:
    with pytest.raises(BadValue, match=r"^gem x requires --env  \(see `gem x --help`"):
        parse(Options, [], prog="gem x")
    with pytest.raises(BadValue, match="requires FIRST"):
        parse(Positionals, [])


def test_choices_given_to_flag_are_enforced() -> None:
    assert parse(Positionals, ["1", "--colour", "green"]).colour == "green"
    with pytest.raises(BadValue, match="one of red, green, got 'blue'"):
        parse(Positionals, ["1", "--colour", "blue"])


def test_the_help_shows_every_flag_with_its_default() -> None:
    text = flags.help_text(Options, prog="gem x", description="Do it.", width=100)
    assert "usage: gem x [flags]\n\nDo it.\n" in text
    for line in ["--env TEXT", "which one [required]", "100 % of them [default: 10]", "--mode {turn,batch}"]:
        assert line in text
    for name in [
        "--verbose, --no-verbose",
        "--env-kwargs KEY=VALUE",
        "[default: runs]",
        "[default: no]",
        "[default: 8 9]",
    ]:
        assert name in text
    assert "secret" not in text
    assert "usage: gem y FIRST [REST ...] [flags]" in flags.help_text(Positionals, prog="gem y")


def test_an_unsupported_field_type_raises_type_error() -> None:
    bad: Any = dataclass(type("Bad", (), {"__annotations__": {"x": complex}, "x": 0j}))
    with pytest.raises(TypeError, match="unsupported type of the flag x"):
        parse(bad, [])


# --- the dispatcher ---


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
    out = capsys.readouterr().out
    assert all(f"  {name}" in out and summary in out for name, (_, summary) in COMMANDS.items())


def test_gem_without_a_command_prints_the_help_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("usage: gem")


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"gem {gem.__version__}\n"


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        (["lits"], ["unknown command 'lits'; did you mean 'list'?"]),
        (["list", "--jsno"], ["unknown flag --jsno; did you mean '--json'?"]),
        (["info"], ["gem info requires ID"]),
        (["info", "game:GuessTheNumber-v0-eazy"], ["no env", "did you mean 'game:GuessTheNumber-v0-easy'?"]),
        (["info", EASY, "--env-kwargs", "max_turn=3"], ["takes no 'max_turn'; did you mean 'max_turns'?"]),
        (["info", EASY, "--env-kwargs", "max_turns=0"], ["max_turns must be at least 1, got 0"]),
        (["play", EASY, "--seed", "-1"], ["seed must be an integer >= 0 or None, got -1"]),
        (["play", EASY, "--seed", "x"], ["--seed must be none or an integer, got 'x'"]),
    ],
)
def test_a_usage_error_is_one_line_with_a_suggestion(
    argv: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    error = error_of(capsys, *argv)
    assert all(part in error for part in parts), error


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


# --- gem list ---


def test_list_prints_one_line_per_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["ID", "NEEDS", "RUNS", "DESCRIPTION"]
    assert [line.split()[0] for line in lines] == sorted(ENV_REGISTRY)


@pytest.mark.parametrize("pattern", ["game:GuessTheNumber-v0-h", "*Guess*-hard*"])
def test_list_takes_a_prefix_or_a_pattern(pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", pattern]) == 0
    ids = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert ids == ["game:GuessTheNumber-v0-hard", "game:GuessTheNumber-v0-hard-no-max-turn"]


def test_list_json_writes_unbounded_rewards_as_null(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENV_REGISTRY, "test:Any-v0", EnvSpec("test:Any-v0", "m:C", extra="math", runs="process"))
    assert main(["list", "test:Any", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "id": "test:Any-v0",
            "description": "",
            "needs": "math",
            "runs": "process",
            "reward_range": [None, None],
            "oracle": None,
        }
    ]


@pytest.mark.parametrize(
    ("pattern", "closest"),
    [
        ("GuessTheNumber-v0-easy", "game:GuessTheNumber-v0-easy"),
        ("guessthenumber-v0-rand*", "game:GuessTheNumber-v0-random"),
        ("gaem:*", "game:*"),
        ("game:GessTheNumber-v0", "game:GuessTheNumber-v0"),
    ],
)
def test_list_without_matches_suggests_the_closest_name(
    pattern: str, closest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"no env matches {pattern!r}; did you mean {closest!r}?" in error_of(capsys, "list", pattern)


def test_list_cuts_lines_to_the_width_of_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["list"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) == 60


def test_list_runs_as_a_module_without_heavy_imports() -> None:
    done = subprocess_gem("list", env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"})
    assert done.returncode == 0, done.stderr
    assert EASY in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "gem.registry" in imported
    assert not imported & {"torch", "numpy", "rich", "msgspec", "transformers", "gem.cli.play", "gem.envs.game_env"}


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


# --- gem info ---


def test_info_shows_rules_parameters_optimum_oracle_and_a_sample_episode(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", EASY]) == 0
    out = capsys.readouterr().out
    for part in [
        "Guess the secret integer between 1 and 10, in at most 4 turns.",
        "  max_turns      4\n",
        "Episode reward  -0.1 to 1\n",
        "100.0% of episodes solved, in 2.9 turns on average (balanced search)",
        "gem.envs.game_env.guess_the_number:Oracle, reads the observation",
        "Sample episode, seed 0, played by the oracle",
        "> \\boxed{5}\nTurn 1: 5 is",
        "Game over (solved): total reward 1 in ",
    ]:
        assert part in out, part
    assert ">>>" not in out


def test_info_is_the_same_every_time(capsys: pytest.CaptureFixture[str]) -> None:
    main(["info", EASY])
    first = capsys.readouterr().out
    main(["info", EASY])
    assert capsys.readouterr().out == first


def test_info_takes_arguments_of_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", EASY, "--env-kwargs", "max_number=100", "max_turns=7"]) == 0
    out = capsys.readouterr().out
    assert "  max_number     100  (given)\n" in out and "between 1 and 100, in at most 7 turns" in out


class Counter(Env):
    """Ends after a number of steps. It has no oracle and no state."""

    def __init__(self, steps: int, *, samples: bool = True) -> None:
        self.steps, self.samples = steps, samples

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed)
        self.left = self.steps
        return {"text": "Count.", "images": [b"", b""]}, {}

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        return [{"role": "user", "content": f"left: {self.left}"}], 0.5, False, self.left == 0, {}

    def sample_random_action(self) -> str:
        return f"go {self.left}" if self.samples else super().sample_random_action()


@pytest.fixture
def counter() -> Any:
    register("test:Counter-v0", Counter, steps=20)
    yield "test:Counter-v0"
    del ENV_REGISTRY["test:Counter-v0"]


def test_info_samples_actions_without_an_oracle_and_shortens_long_episodes(
    counter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", counter]) == 0
    out = capsys.readouterr().out
    assert "played by random actions\n\nCount.\n[images: 2]\n" in out
    assert "> go 13\nuser: left: 12\n\n… 11 turns omitted …\n\n> go 1\nuser: left: 0\n" in out
    assert "Game over (truncated): total reward 10 in 20 turns." in out
    assert "Episode reward  -inf to inf" in out and "unknown" in out


def test_info_reports_that_no_episode_can_be_sampled(counter: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", counter, "--env-kwargs", "samples=false"]) == 0
    assert capsys.readouterr().out.endswith("(stopped: this environment cannot sample random actions)\n")
