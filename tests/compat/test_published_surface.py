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


@pytest.mark.parametrize("line", EXPECTED, ids=name_of)
def test_a_published_name_exists(line):
    try:
        find(line)
    except MissingDependency as e:  # time_mcp.app is a server of the SDK
        pytest.skip(str(e))


@pytest.mark.parametrize("line", [line for line in EXPECTED if "(" in line], ids=name_of)
def test_published_arguments_are_accepted_by_position_and_by_name(line):
    if name_of(line) not in ARGUMENTS_DIFFER:
        assert missing_arguments(line) == []


def missing_arguments(line: str) -> list[str]:
    """Return the published arguments that are not at their position."""
    found = find(line)
    function = ast.parse(f"def f({line.partition('(')[2]}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    wanted = [argument.arg for argument in function.args.args]
    parameters = inspect.signature(found.__init__ if inspect.isclass(found) else found).parameters
    by_position = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]
    return [name for name, own in zip_longest(wanted, by_position[: len(wanted)]) if name != own]


@pytest.mark.parametrize("line", [line for line in EXPECTED if "=" in line], ids=name_of)
def test_a_published_default_is_kept_or_listed(line):
    if name_of(line) in ARGUMENTS_DIFFER:
        return
    function = find(line)
    ours = inspect.signature(function.__init__ if inspect.isclass(function) else function).parameters
    home = vars(importlib.import_module(name_of(line).partition(":")[0]))
    theirs = {name: eval(source, dict(home)) for name, source in defaults_in(line).items()}
    differ = {
        name for name, value in theirs.items() if value != (ours[name].default if ours[name].default != () else None)
    }
    assert differ == set(DEFAULTS_DIFFER.get(name_of(line), {}))


@pytest.mark.parametrize("name", [*NOT_PROVIDED, *ARGUMENTS_DIFFER])
def test_a_listed_name_is_a_published_one_and_the_list_is_not_stale(name):
    lines = [line for line in LINES if name_of(line) == name]
    assert lines, "not in the record"
    if name in NOT_PROVIDED:
        with pytest.raises(AttributeError):
            find(name)


@pytest.mark.parametrize("line", [line for line in LINES if is_listed(line, BY_ID)])
def test_environments_that_are_made_from_ids_have_no_published_class(line):
    with pytest.raises((ImportError, AttributeError)):
        find(line)


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


@pytest.mark.parametrize("module", FORWARDED)
def test_a_forwarded_module_and_its_home_exist(module):
    assert importlib.import_module(module).__doc__
    assert importlib.import_module(FORWARDED[module])
