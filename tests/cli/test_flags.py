"""gem.cli.flags: command-line flags from dataclasses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Optional

import pytest

from gem.cli import flags
from gem.cli.flags import REQUIRED, flag, parse
from gem.errors import BadValue, UnknownArgument


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
    scale: Literal["std", "none"] | None = None
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


def test_omitted_flags_keep_their_defaults() -> None:
    assert options() == Options(env="e")


def test_a_dataclass_can_ask_which_flags_were_given() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Asking(Options):
        given: frozenset[str] = field(default=frozenset(), init=False)

    assert parse(Asking, ["--env", "e", "--steps", "10"]).given == {"env", "steps"}


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
        (["--scale", "none"], "scale", "none"),
        (["--scale", "std"], "scale", "std"),
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
        (".7", 0.7),
        (".", "."),
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


def test_a_positional_argument_may_follow_pairs() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Named:
        id: str = flag(REQUIRED, help="which one", positional=True)
        pairs: dict[str, Any] = flag({}, help="its settings")

    with_id_last = parse(Named, ["--pairs", "a=1", "b=x", "game"])
    assert with_id_last == Named(id="game", pairs={"a": 1, "b": "x"}) == parse(Named, ["game", "--pairs", "a=1", "b=x"])
    with pytest.raises(BadValue, match=r"--pairs .*KEY=VALUE.*'other'"):
        parse(Named, ["game", "--pairs", "a=1", "other"])


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
        (["--steps", "many"], "--steps .*integer.*'many'"),
        (["--rate", "fast"], "--rate .*number.*'fast'"),
        (["--clip", "nil"], "--clip .*none or a number.*'nil'"),
        (["--mode", "batsh"], "--mode .*turn, batch.*'batsh'.*'batch'"),
        (["--folds", "3"], "--folds .*none or .*2, 4.*'3'"),
        (["--scale", "maybe"], "--scale .*std, none.*'maybe'"),
        (["--env-kwargs", "a=1", "b"], "--env-kwargs .*KEY=VALUE.*'b'"),
        (["--env-kwargs", "=1"], "--env-kwargs .*KEY=VALUE.*'=1'"),
        (["--steps"], "--steps: expected one argument"),
        (["--steps", "--verbose"], "--steps: expected one argument"),
    ],
)
def test_a_bad_value_error_names_the_flag_and_the_expected_type(argv: list[str], message: str) -> None:
    with pytest.raises(BadValue) as caught:
        options(*argv)
    assert re.match(message, str(caught.value))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--stesp", "3"], "unknown flag --stesp.*'--steps'"),
        (["--step", "3"], "unknown flag --step;.*'--steps'"),
        (["--no-verbos"], "unknown flag --no-verbos;.*'--no-verbose'"),
        (["-v"], "unknown flag -v"),
        (["--secret", "1"], "unknown flag --secret"),
        (["stray"], "unexpected argument 'stray'"),
    ],
)
def test_unknown_and_abbreviated_flags_are_rejected(argv: list[str], message: str) -> None:
    with pytest.raises(UnknownArgument) as caught:
        options(*argv)
    assert re.match(message, str(caught.value))


def test_every_missing_required_value_is_named() -> None:
    with pytest.raises(BadValue, match=r"^gem x requires --env  \(see `gem x --help`"):
        parse(Options, [], prog="gem x")
    with pytest.raises(BadValue, match="requires FIRST"):
        parse(Positionals, [])


def test_choices_given_to_flag_are_enforced() -> None:
    assert parse(Positionals, ["1", "--colour", "green"]).colour == "green"
    with pytest.raises(BadValue, match=r"--colour .*red, green.*'blue'"):
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
