"""Command-line flags from a dataclass: each field is a flag with the same default.

A field may be a str, int, float or Path; a bool (``--x`` and ``--no-x``); a Literal, or have ``choices``; a list or
tuple (several values); or a dict (``key=value``, where a value that is valid JSON is parsed). ``none`` stands for None
if the type allows None. Underscores in field names become dashes. ``flag()`` is optional: it is short for
``field(metadata={"help": ...})``. A field ``given`` with ``init=False`` gets the names of the flags on the command
line, which tells a flag at its default from one that was left out. docs/design/command_line.md gives the reasons for
not using tyro.

>>> @dataclass(frozen=True, kw_only=True)
... class Config:
...     id: str = flag(REQUIRED, help="environment", positional=True)
...     max_turns: int = flag(10, help="turns per game")
>>> parse(Config, ["game:Wordle-v0", "--max-turns", "3"])
Config(id='game:Wordle-v0', max_turns=3)
"""

from __future__ import annotations

import argparse
import json
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin

from gem.cli.output import wrap
from gem.errors import BadValue, UnknownArgument, did_you_mean

REQUIRED: Any = MISSING
ConfigT = TypeVar("ConfigT")

_SCALARS = {int: ("an integer", "N"), float: ("a number", "X"), str: ("text", "TEXT"), Path: ("a path", "PATH")}
_PYTHON = {"True": True, "False": False, "None": None}  # accepted in addition to true, false and null of JSON


def flag(
    default: Any,
    *,
    help: str,
    positional: bool = False,
    choices: Sequence[Any] | None = None,
    metavar: str | None = None,
    short: str | None = None,
) -> Any:
    """Return a dataclass field with metadata for the command line.

    Args:
        default: the default value; REQUIRED if there is no default. A list or dict is copied for every instance.
        help: short description. The help text appends the default to it.
        positional: whether the field is a positional argument. A list takes all remaining positional arguments.
        choices: the allowed values; None if the type determines them.
        metavar: placeholder for the value in the help text; None for a placeholder derived from the type.
        short: a letter for a second, short name, such as "o" for -o.
    """
    metadata = {"help": help, "positional": positional, "choices": choices, "metavar": metavar, "short": short}
    if isinstance(default, (list, dict)):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def parse(cls: type[ConfigT], argv: Sequence[str], *, prog: str = "gem", description: str = "") -> ConfigT:
    """Build the dataclass from command-line arguments.

    ``-h`` prints the help text and raises SystemExit(0).

    Args:
        cls: the dataclass to build.
        argv: the command-line arguments.
        prog: name of the command in messages.
        description: description of the command in the help text.

    Raises:
        UnknownArgument: a flag does not exist, or there are too many positional arguments.
        BadValue: a value is not allowed for its field, or a required argument is missing.
    """
    flags = _flags(cls)
    given, positionals = _split(_parser(flags, prog, description), flags, argv)
    if given.pop("help", False):
        print(help_text(cls, prog=prog, description=description), end="")
        raise SystemExit(0)
    takes_positionals = any(spec.positional for spec in flags)
    for spec in flags:
        if (
            spec.container is dict and takes_positionals and not positionals
        ):  # a list of pairs may be followed by positional arguments
            words = given.get(spec.name, [])
            positionals = [word for word in words if "=" not in word and "=" in words[0]]
            given |= {spec.name: [word for word in words if "=" in word]} if positionals else {}
    for spec in flags:
        if spec.positional and positionals:
            given[spec.name] = positionals if spec.container else positionals[0]
            positionals = [] if spec.container else positionals[1:]
    if positionals:
        raise UnknownArgument(f"unexpected argument {positionals[0]!r}{_see(prog)}")
    missing = [spec.label for spec in flags if spec.default is REQUIRED and spec.name not in given]
    if missing:
        raise BadValue(f"{prog} requires {' and '.join(missing)}{_see(prog)}")
    config = cls(**{spec.name: spec.read(given[spec.name]) for spec in flags if spec.name in given})
    if any(f.name == "given" and not f.init for f in fields(cls)):  # type: ignore[arg-type]
        object.__setattr__(config, "given", frozenset(given))  # the dataclass may be frozen
    return config


def help_text(cls: type[Any], *, prog: str, description: str = "", width: int | None = None) -> str:
    """Return the help text. ``width`` is the line length in characters; None for the width of the terminal."""
    flags = _flags(cls)
    parser = _parser(flags, prog, description, width)
    for spec in flags:
        if spec.positional:
            parser.add_argument(spec.name, metavar=spec.metavar, help=spec.help.replace("%", "%%"))
    return parser.format_help()


@dataclass(frozen=True)
class _Flag:
    """The command-line form of one field.

    Args:
        kinds: the allowed types, tried in order. For a list or tuple, the allowed types of the items.
        container: list, tuple or dict if the field has such a type; otherwise None.
    """

    name: str
    kinds: tuple[Any, ...]
    container: type[Any] | None
    default: Any
    help: str
    positional: bool
    metavar: str
    short: str | None

    @property
    def label(self) -> str:
        return self.metavar if self.positional else f"--{self.name.replace('_', '-')}"

    @property
    def usage(self) -> str:
        name = self.metavar + (" ..." if self.container else "")
        return name if self.default is REQUIRED else f"[{name}]"

    @property
    def switch(self) -> bool:
        return bool in self.kinds and self.container is None

    def read(self, raw: Any) -> Any:
        """Convert the parsed argument (a bool, a str or a list of str) to the field's value."""
        if isinstance(raw, bool):
            return raw
        if self.container is dict:
            return dict(self._pair(text) for text in raw)
        if self.container is not None:
            return self.container(self._value(text) for text in raw)
        return self._value(raw)

    def _value(self, text: str) -> Any:
        for kind in self.kinds:
            try:
                return _convert(text, kind)
            except ValueError:
                continue
        expected = " or ".join(_expected(kind) for kind in self.kinds)
        words = [word for kind in self.kinds for word in _words(kind)]
        raise BadValue(f"{self.label} must be {expected}, got {text!r}{did_you_mean(text, words)}")

    def _pair(self, text: str) -> tuple[str, Any]:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise BadValue(f"{self.label} takes KEY=VALUE pairs, got {text!r}")
        if value.startswith("."):  # JSON has no .5
            value = f"0{value}" if value[1:].isdecimal() else value
        try:
            return key, _PYTHON[value] if value in _PYTHON else json.loads(value)
        except (ValueError, RecursionError):
            return key, value


def _flags(cls: type[Any]) -> list[_Flag]:
    hints = typing.get_type_hints(cls)
    return [_flag_of(f, hints[f.name]) for f in fields(cls) if f.init]


def _flag_of(f: Field[Any], hint: Any) -> _Flag:
    kinds = _members(hint)
    container = get_origin(kinds[-1]) if get_origin(kinds[-1]) in (list, tuple, dict) else None
    if container is not None:
        kinds = _members(get_args(kinds[-1])[0])
    if f.metadata.get("choices") is not None:
        kinds = (*(kind for kind in kinds if kind is types.NoneType), Literal[tuple(f.metadata["choices"])])
    if not all(kind in _SCALARS or _words(kind) for kind in kinds):
        raise TypeError(f"unsupported type of the flag {f.name}: {hint}")
    default = f.default if f.default_factory is MISSING else f.default_factory()
    positional = f.metadata.get("positional", False)
    metavar = f.metadata.get("metavar") or (f.name.upper() if positional else _metavar(kinds[-1], container))
    help = _with_default(f.metadata.get("help", ""), default)
    return _Flag(f.name, kinds, container, default, help, positional, metavar, f.metadata.get("short"))


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the member types of a union, or (hint,).

    NoneType is first, so that "none" is not parsed as a str, and left out where "none" is one of the choices.
    """
    members = get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    members = tuple(member for member in members if get_origin(member) is not Callable)  # which has a name as well
    if any("none" in _words(member) for member in members if get_origin(member) is Literal):
        members = tuple(member for member in members if member is not types.NoneType)
    return tuple(sorted(members, key=lambda member: member is not types.NoneType))


def _words(kind: Any) -> dict[str, Any]:
    """Return word → value for the types None, bool and Literal, and an empty dict for other types."""
    if get_origin(kind) is Literal:
        return {str(choice): choice for choice in get_args(kind)}
    named: dict[Any, dict[str, Any]] = {types.NoneType: {"none": None}, bool: {"true": True, "false": False}}
    return named.get(kind, {})


def _convert(text: str, kind: Any) -> Any:
    """Convert text to a value of this type. Raises ValueError if the text is not a valid value."""
    if kind in _SCALARS:
        return kind(text)
    words = _words(kind)
    if text not in words:
        raise ValueError(text)
    return words[text]


def _expected(kind: Any) -> str:
    words = _words(kind)
    return ("one of " if len(words) > 1 else "") + ", ".join(words) if words else _SCALARS[kind][0]


def _metavar(kind: Any, container: type[Any] | None) -> str:
    if container is dict:
        return "KEY=VALUE"
    return "{" + ",".join(_words(kind)) + "}" if _words(kind) else _SCALARS[kind][1]


def _with_default(help: str, default: Any) -> str:
    if default is REQUIRED:
        return f"{help} [required]"
    if default is None or default in ("", [], {}, ()):  # each flag's own help describes its empty default
        return help
    if isinstance(default, bool):
        default = "yes" if default else "no"
    elif isinstance(default, (list, tuple)):
        default = " ".join(map(str, default))
    return f"{help} [default: {default}]"


class _Parser(argparse.ArgumentParser):
    """An argument parser that raises BadValue instead of exiting. _Flag converts the values."""

    def error(self, message: str) -> NoReturn:
        raise BadValue(f"{message.removeprefix('argument ')}{_see(self.prog)}")


def _parser(flags: Sequence[_Flag], prog: str, description: str, width: int | None = None) -> _Parser:
    """Build a parser for the flags only. argparse cannot mix positional arguments with flags, so parse() reads them."""
    positionals = [spec.usage for spec in flags if spec.positional]
    parser = _Parser(
        prog=prog,
        usage=" ".join([prog, *positionals, "[flags]"]),
        description=wrap(description, width),
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=width, max_help_position=30),
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this help and exit")
    for spec in flags:
        how: dict[str, Any] = {"metavar": spec.metavar}
        if spec.switch:
            how = {"action": argparse.BooleanOptionalAction}
        elif spec.container is not None:
            how |= {"nargs": "+", "action": "extend"}
        if not spec.positional:
            names = [f"-{spec.short}", spec.label] if spec.short else [spec.label]
            parser.add_argument(*names, dest=spec.name, help=spec.help.replace("%", "%%"), **how)
    return parser


def _split(parser: _Parser, flags: Sequence[_Flag], argv: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Split the arguments into flags and positional arguments. Raises UnknownArgument for an unknown flag."""
    cut = argv.index("--") if "--" in argv else len(argv)
    known = ["--help", *(spec.label for spec in flags if not spec.positional)]
    known += [f"--no-{spec.label[2:]}" for spec in flags if spec.switch]
    for word in argv[:cut]:
        name = word.partition("=")[0]
        if name.startswith("--") and " " not in name and name not in known:
            raise UnknownArgument(f"unknown flag {name}{did_you_mean(name, known)}{_see(parser.prog)}")
    namespace, positionals = parser.parse_known_args(argv[:cut])
    for word in positionals:
        if word.startswith("-") and word != "-":
            raise UnknownArgument(f"unknown flag {word}{_see(parser.prog)}")
    return vars(namespace), positionals + list(argv[cut + 1 :])


def _see(prog: str) -> str:
    return f"  (see `{prog} --help`)"
