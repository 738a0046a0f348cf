"""Tests that `import gem` loads only the standard library and prints nothing, each in a new interpreter."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

STATEMENTS = {
    "importing gem": "import gem",
    "naming its surface but for what needs numpy": (
        "import gem; [getattr(gem, n) for n in gem.__all__ if n not in ('make_vec', 'evaluate')]"
    ),
    "making a game": "import gem; gem.make('game:GuessTheNumber-v0')",
    "playing a game": "import gem; env = gem.make('game:GuessTheNumber-v0', seed=1); env.reset(); env.step('x')",
    "listing the environments": "import gem; gem.list_envs()",
}

REPORT = """
import json, logging, sys
json.dump({
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "handlers": len(logging.getLogger().handlers) + len(logging.getLogger("gem").handlers),
    "level": logging.getLogger().level,
}, sys.stderr)
"""


def in_a_fresh_interpreter(code: str) -> subprocess.CompletedProcess[str]:
    # -S and -E disable site-packages hooks (the loader of an editable install is a module) and PYTHON* variables.
    path = [p for p in sys.path if p]
    return subprocess.run(
        [sys.executable, "-S", "-E", "-W", "error", "-c", f"import sys; sys.path[:] = {path!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.parametrize("code", STATEMENTS.values(), ids=list(STATEMENTS))
def test_only_standard_library_modules_are_loaded(code):
    run = in_a_fresh_interpreter(code + REPORT)
    loaded = set(json.loads(run.stderr)["modules"])
    assert loaded - set(sys.stdlib_module_names) == {"gem", "__main__"}


@pytest.mark.parametrize("code", STATEMENTS.values(), ids=list(STATEMENTS))
def test_nothing_is_printed_and_no_log_handler_is_added(code):
    run = in_a_fresh_interpreter(code + REPORT)
    report = json.loads(run.stderr)
    assert run.stdout == ""
    assert report["handlers"] == 0
    assert report["level"] == 30  # logging.WARNING, Python's own


@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["info", "game:GuessTheNumber-v0-easy"],
        ["eval", "--policy", "random", "--env", "game:GuessTheNumber-v0-easy", "--limit", "2"],
        ["train", "--env", "game:Wordel-v0"],
    ],
    ids=lambda command: command[0],
)
def test_commands_without_a_model_load_no_library_of_models_and_of_data(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = in_a_fresh_interpreter(f"from gem.cli import main\nmain({command!r})" + REPORT)
    loaded = set(json.loads(run.stderr.splitlines()[-1])["modules"])
    assert not loaded & {"torch", "transformers", "peft", "datasets", "pandas", "tensorboard"}


def test_importing_the_catalogue_imports_no_environment():
    run = in_a_fresh_interpreter(
        "import sys, gem.envs.catalog; print([m for m in sys.modules if m.startswith('gem.envs.')])"
    )
    loaded = set(json.loads(run.stdout.replace("'", '"')))
    packages = {"gem.envs.games", "gem.envs.questions", "gem.envs.questions.reasoning_gym"}
    assert loaded - packages == {
        "gem.envs.catalog",
        "gem.envs.spec_defaults",
        *(f"{package}.specs" for package in packages),  # specs, no environment
    }


@pytest.mark.parametrize("package", ["gem.tools", "gem.integrations", "gem.envs", "gem.rl", "gem.policies"])
def test_a_package_imports_its_public_names_on_first_use(package):
    code = f"import sys, {package} as p; before = len(sys.modules); print(all(n in dir(p) for n in p.__all__), before)"
    listed, modules = in_a_fresh_interpreter(code).stdout.split()
    assert listed == "True" and int(modules) < 300
    with pytest.raises(subprocess.CalledProcessError):
        in_a_fresh_interpreter(f"import {package}; {package}.Nothing")


def test_submodules_are_attributes_of_the_package():
    run = in_a_fresh_interpreter("import gem; print(gem.core.Env is gem.Env, gem.errors.GemError.__name__)")
    assert run.stdout.strip() == "True GemError"


def test_an_unknown_name_raises_attribute_error():
    code = "import gem\ntry:\n    gem.mak\nexcept AttributeError as e:\n    print(e)"
    assert "'gem' has no attribute 'mak'" in in_a_fresh_interpreter(code).stdout


def test_a_missing_library_is_not_reported_as_a_missing_name():
    # Without numpy, gem.vector cannot be imported; "gem has no attribute 'vector'" would hide the reason.
    code = (
        "import sys, gem\n"
        "sys.modules['numpy'] = None\n"
        "try:\n    gem.vector\n"
        "except ModuleNotFoundError as e:\n    print(e.name)\n"
    )
    assert in_a_fresh_interpreter(code).stdout.strip() == "numpy"


def test_dir_lists_the_public_names():
    run = in_a_fresh_interpreter("import gem; print(set(gem.__all__) <= set(dir(gem)), gem.__version__ != '')")
    assert run.stdout.strip() == "True True"
