"""Tests of the exception tree, require() and did_you_mean()."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from gem import errors
from gem.errors import CallerError, GemError, InfraError, MissingDependency, did_you_mean, require

BUILTIN_BASE = {
    "UnknownEnv": KeyError,
    "DuplicateEnv": ValueError,
    "UnknownArgument": TypeError,
    "BadValue": ValueError,
    "BadAction": TypeError,
    "EpisodeOver": RuntimeError,
    "MissingDependency": ImportError,
}


def all_exceptions() -> list[type[GemError]]:
    return [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, GemError)]


@pytest.mark.parametrize("cls", all_exceptions(), ids=lambda c: c.__name__)
def test_every_exception_is_in_the_tree_of_the_module_docstring(cls):
    assert f"── {cls.__name__} " in f"{errors.__doc__} " or cls is GemError


@pytest.mark.parametrize("name", BUILTIN_BASE)
def test_a_caller_error_is_also_the_builtin_exception_it_specialises(name):
    cls = getattr(errors, name)
    assert issubclass(cls, CallerError)
    assert issubclass(cls, BUILTIN_BASE[name])


def test_infrastructure_errors_are_not_caller_errors():
    assert issubclass(InfraError, GemError)
    assert not issubclass(InfraError, CallerError)


@pytest.mark.parametrize("cls", all_exceptions(), ids=lambda c: c.__name__)
def test_the_message_is_shown_as_written(cls):
    assert str(cls("no env 'x'; did you mean 'y'?")) == "no env 'x'; did you mean 'y'?"


def test_require_returns_the_module():
    assert require("json", extra="none") is sys.modules["json"]


def test_require_names_the_library_and_the_pip_command():
    with pytest.raises(MissingDependency) as e:
        require("no_such_library", extra="math")
    assert "no_such_library" in str(e.value)
    assert "pip install 'gem-llm[math]'" in str(e.value)


def test_require_names_the_missing_dependency_of_a_library(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import its_own_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingDependency, match="its_own_dependency"):
        require("half_installed", extra="math")


def test_require_keeps_the_pip_command_of_a_module_that_requires_another_extra(tmp_path, monkeypatch):
    (tmp_path / "needs_data.py").write_text(
        "from gem.errors import require\nrequire('no_such_library', extra='data')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingDependency) as e:
        require("needs_data", extra="math")
    assert "gem-llm[data]" in str(e.value)
    assert "gem-llm[math]" not in str(e.value)


def test_require_does_not_hide_a_bug_in_the_library(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError):
        require("broken_library", extra="math")


def test_require_returns_a_module_that_is_already_loaded(monkeypatch):
    fake = ModuleType("a_fake_library")
    monkeypatch.setitem(sys.modules, "a_fake_library", fake)
    assert require("a_fake_library", extra="math") is fake


def test_the_closest_word_is_suggested():
    assert did_you_mean("max_turn", ["max_turns", "min_number"]) == "; did you mean 'max_turns'?"


def test_nothing_is_suggested_when_nothing_is_close():
    assert did_you_mean("zzz", ["max_turns"]) == ""
    assert did_you_mean("zzz", []) == ""
