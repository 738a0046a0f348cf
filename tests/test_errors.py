"""Tests of the exception tree, require() and did_you_mean()."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from gem import errors
from gem.errors import CallerError, GemError, InfraError, MissingDependency, did_you_mean, install_command, require

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


def test_require_names_the_module_and_the_libraries_of_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.metadata.requires", lambda name: ['sympy>=1.13; extra == "math"'])
    with pytest.raises(MissingDependency, match=r"no_such_library .*; pip install 'sympy>=1\.13'$"):
        require("no_such_library", extra="math")


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
    assert str(e.value).endswith(install_command("data"))


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


def install(folder: Path, *names: str, requires: Sequence[str] = ()) -> None:
    """Make a folder with the package gem and the metadata of distributions that contain it.

    The folder of the sources will not do: it has metadata of its own after an editable installation.
    """
    for name in names:
        info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        (info / "METADATA").write_text(metadata + "".join(f"Requires-Dist: {line}\n" for line in requires))
        (info / "top_level.txt").write_text("gem\n")
    (folder / "gem").symlink_to(Path(errors.__file__).parent)


def first_error(folder: Path) -> str:
    """Return what a process prints for its first errors, in which only this folder is installed."""
    code = """
import sys
import gem
for _ in range(2):
    try:
        gem.make("math:Algebra")
    except ImportError as e:
        print(e, file=sys.stderr)
"""
    command = [sys.executable, "-S", "-c", code]  # -S: without the packages of this environment
    run = subprocess.run(command, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True)
    return run.stderr


@pytest.mark.parametrize("name", ["gem-gym", "gem-fork"])
def test_the_pip_command_names_the_libraries_in_the_metadata(tmp_path, name):
    install(tmp_path, name, requires=['math-verify>=0.9; extra == "math"', 'sympy>=1.13; extra == "math"'])
    shown = first_error(tmp_path).splitlines()
    assert len(shown) == 2 and shown[0].endswith("; pip install 'math-verify>=0.9' 'sympy>=1.13'")


@pytest.mark.parametrize("name", ["gem-gym", "gem-fork"])
def test_without_requirements_in_the_metadata_the_pip_command_names_the_extra(tmp_path, name):
    install(tmp_path, name)
    assert first_error(tmp_path).splitlines()[0].endswith(f"; pip install '{name}[math]'")


DECLARED = [
    "numpy>=1.26",
    'torch>=2.4; extra == "train"',
    'tomli>=2; python_version < "3.11" and extra == "train"',
    'aiohttp>=3.9; extra == "eval"',
    'tomli>=2; (python_version < "3.11") and extra == "eval"',
    'gem-gym[train]; extra == "lora"',
    "peft>=0.18; extra == 'lora'",
    'mcp<3,>=2.2; extra == "mcp"',
    'gem-gym[eval,lora]; extra == "all"',
]


@pytest.mark.parametrize(
    ("extra", "libraries"),
    [
        ("mcp", "'mcp<3,>=2.2'"),
        ("mcp,eval", "'aiohttp>=3.9' 'mcp<3,>=2.2'"),
        ("lora", "'torch>=2.4' 'peft>=0.18'"),
        ("all", "'aiohttp>=3.9' 'torch>=2.4' 'peft>=0.18'"),
        ("lora,train", "'torch>=2.4' 'peft>=0.18'"),
        ("rain", "'gem-gym[rain]'"),
    ],
)
def test_the_pip_command_has_the_libraries_of_all_extras_once(monkeypatch, extra, libraries):
    monkeypatch.setattr("importlib.metadata.requires", lambda name: DECLARED)
    monkeypatch.setattr(sys, "version_info", (3, 13, 1))
    assert install_command(extra) == f"pip install {libraries}"


def test_the_pip_command_has_the_backports_of_an_old_python(monkeypatch):
    monkeypatch.setattr("importlib.metadata.requires", lambda name: DECLARED)
    monkeypatch.setattr(sys, "version_info", (3, 10, 1))
    assert install_command("lora,eval") == "pip install 'aiohttp>=3.9' 'tomli>=2' 'torch>=2.4' 'peft>=0.18'"


def test_the_pip_command_agrees_with_pyproject():
    path = Path(errors.__file__).parents[2] / "pyproject.toml"
    math = re.search(r"^math = (\[.*\])$", path.read_text(), re.MULTILINE)
    assert math is not None
    known = {"pip install " + " ".join(f"'{each}'" for each in eval(math[1])), "pip install 'gem-gym[math]'"}
    assert install_command("math") in known  # the second if only the sources are there, without metadata


def test_the_pip_command_never_names_the_published_package(tmp_path):
    install(tmp_path, "gem-llm")
    shown = first_error(tmp_path)
    assert "pip install 'gem-gym[math]'" in shown and "both installed" not in shown


def test_two_packages_in_one_folder_are_reported_once_at_the_first_error(tmp_path):
    install(tmp_path, "gem-gym", "gem-llm")
    shown = first_error(tmp_path)
    assert shown.count("gem-gym and gem-llm are both") == 1
    assert "pip uninstall gem-gym gem-llm" in shown and "install gem-gym again" in shown


def test_every_extra_that_the_code_names_is_declared():
    root = Path(errors.__file__).parents[2]
    declared = set(re.findall(r"^(\w+) = \[", (root / "pyproject.toml").read_text(), re.MULTILINE))
    named = {
        extra
        for path in (root / "src").rglob("*.py")
        for extras in re.findall(r"""extra=["']([\w,]+)["']""", path.read_text())
        for extra in extras.split(",")
    }
    assert {"math", "data", "vision"} <= named - {"none"} <= declared


def test_the_extra_all_contains_every_other_extra_for_users():
    text = (Path(errors.__file__).parents[2] / "pyproject.toml").read_text()
    extras = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    everything = re.search(r'^all = \["gem-gym\[(.*)\]"\]$', extras, re.MULTILINE)
    assert everything is not None
    services = {"wandb", "trackio", "swe"}  # large, and only for their users
    others = set(re.findall(r"^(\w+) =", extras, re.MULTILINE)) - {"all", "test", "dev"} - services
    assert set(everything[1].split(",")) == others
