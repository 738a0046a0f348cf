"""gem list."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from gem.cli import main
from gem.registry import ENV_REGISTRY, EnvSpec

EASY = "game:GuessTheNumber-v0-easy"


PATH_FAMILIES = ("code", "harbor", "math", "mcpmark", "qa", "swebench", "swegym", "terminalbench")


def test_list_prints_one_line_per_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["ID", "NEEDS", "RUNS", "DESCRIPTION"]
    families = [f"{family}:PATH" for family in PATH_FAMILIES]
    assert [line.split()[0] for line in lines] == sorted([*ENV_REGISTRY, *families])


def test_list_shows_ids_that_end_in_a_path_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "swe*", "--json"]) == 0
    paths = {spec["id"]: spec["path"] for spec in json.loads(capsys.readouterr().out)}
    assert paths == {"swe:Mini": None, "swebench:PATH": "dataset_name", "swegym:PATH": "dataset_name"}


@pytest.mark.parametrize("pattern", ["game:GuessTheNumber-v0-h", "*Guess*-hard*"])
def test_list_takes_a_prefix_or_a_pattern(pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", pattern]) == 0
    ids = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert ids == ["game:GuessTheNumber-v0-hard", "game:GuessTheNumber-v0-hard-no-max-turn"]


@pytest.mark.parametrize(
    ("env_id", "extras"), [("vision:Charts", "math,vision"), ("math:GSM8K", "data,math"), ("qa:Facts", "-")]
)
def test_list_names_all_extras_of_an_environment(env_id: str, extras: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["list", env_id])
    assert capsys.readouterr().out.splitlines()[1].split()[1] == extras


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
            "path": None,
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
def test_list_without_matches_suggests_the_closest_name(pattern: str, closest: str, usage_error: Any) -> None:
    assert f"no env matches {pattern!r}; did you mean {closest!r}?" in usage_error("list", pattern)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_list_wraps_descriptions_to_the_width_of_the_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["list", "game:*"]) == 0
    whole = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["list", "game:*"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    assert out.split() == whole.split()


def test_list_runs_as_a_module_without_heavy_imports() -> None:
    env = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    command = [sys.executable, "-m", "gem", "list"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert done.returncode == 0, done.stderr
    assert EASY in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "gem.registry" in imported
    assert not imported & {"torch", "numpy", "rich", "msgspec", "transformers", "gem.cli.play", "gem.envs.game"}
