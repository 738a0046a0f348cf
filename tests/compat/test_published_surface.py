"""Every module, name and argument of the published package exists here, or is listed with the reason why not."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
from itertools import zip_longest
from typing import Any

import pytest

from gem.errors import MissingDependency

from .published import (
    ARGUMENTS_DIFFER,
    BY_ID,
    DEFAULTS_DIFFER,
    FORWARDED,
    IGNORED,
    NOT_PROVIDED,
    RECORD,
    defaults_in,
    found,
)

# "module:Class.method(arguments)" for each name, without the parentheses for constants
LINES = RECORD.read_text(encoding="utf-8").splitlines()


def name_of(line: str) -> str:
    return line.partition("(")[0]


def is_listed(line: str, table: dict[str, str]) -> bool:
    module, _, path = name_of(line).partition(":")
    return module in table or f"{module}:{path}" in table or f"{module}:{path.split('.')[0]}" in table


LISTED = {**BY_ID, **NOT_PROVIDED}
EXPECTED = [line for line in LINES if not is_listed(line, LISTED)]


def find(line: str) -> Any:
    module, _, path = name_of(line).partition(":")
    found = importlib.import_module(module)
    for part in path.split("."):
        if dataclasses.is_dataclass(found) and part in {field.name for field in dataclasses.fields(found)}:
            return None
        found = getattr(found, part)
    return found


def is_found(line: str) -> bool:
    try:
        find(line)
    except MissingDependency:  # time_mcp.app is a server of the SDK
        return True
    except (ImportError, AttributeError):
        return False
    return True


def test_published_names_exist_except_those_that_are_listed():
    assert [line for line in EXPECTED if not is_found(line)] == []
    assert [line for line in LINES if is_listed(line, LISTED) and is_found(line)] == []


def test_published_arguments_are_accepted_by_position_and_by_name():
    lines = [line for line in EXPECTED if "(" in line and name_of(line) not in ARGUMENTS_DIFFER]
    assert {line: missing for line in lines if (missing := missing_arguments(line))} == {}


def missing_arguments(line: str) -> list[str]:
    """Return the published arguments that are not at their position."""
    found = find(line)
    function = ast.parse(f"def f({line.partition('(')[2]}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    wanted = [argument.arg for argument in function.args.args]
    parameters = inspect.signature(found.__init__ if inspect.isclass(found) else found).parameters
    by_position = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]
    return [name for name, own in zip_longest(wanted, by_position[: len(wanted)]) if name != own]


def other_defaults(line: str) -> set[str]:
    """Return the arguments whose default is not the published one."""
    function = find(line)
    ours = inspect.signature(function.__init__ if inspect.isclass(function) else function).parameters
    home = vars(importlib.import_module(name_of(line).partition(":")[0]))
    theirs = {name: eval(source, dict(home)) for name, source in defaults_in(line).items()}
    return {
        name for name, value in theirs.items() if value != (ours[name].default if ours[name].default != () else None)
    }


def test_published_defaults_are_kept_or_listed():
    lines = [line for line in EXPECTED if "=" in line and name_of(line) not in ARGUMENTS_DIFFER]
    differ = {name_of(line): names for line in lines if (names := other_defaults(line))}
    assert differ == {name: set(arguments) for name, arguments in DEFAULTS_DIFFER.items()}


def test_listed_names_are_published_ones():
    assert {*NOT_PROVIDED, *ARGUMENTS_DIFFER} - set(map(name_of, LINES)) == set()


@pytest.mark.parametrize(
    "name", ["math_env:MathEnv", "math_visual_env:MathVisualEnv", "qa_env:QaEnv", "code_env:CodeEnv"]
)
def test_keywords_without_effect_are_listed_with_their_reasons(name):
    ignored = found(f"gem.envs.{name}").ignored_kwargs
    for keyword, reason in ignored.items():
        [written] = [why for key, why in IGNORED.items() if f"`{name.partition(':')[2]}({keyword}=…)`" in key]
        assert written.replace("`", "") == reason


def test_few_names_are_not_provided_and_each_has_a_reason():
    assert len(NOT_PROVIDED) <= 44
    assert all(reason for reason in [*NOT_PROVIDED.values(), *ARGUMENTS_DIFFER.values()])


def test_forwarded_modules_and_their_homes_exist():
    undocumented = [module for module in FORWARDED if not importlib.import_module(module).__doc__]
    assert undocumented == []
    assert all(map(importlib.import_module, FORWARDED.values()))
