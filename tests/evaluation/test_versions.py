"""Versions that evaluations record."""

from __future__ import annotations

import json

import pytest

import gem
from gem.errors import BadValue
from gem.evaluation import evaluate, rescore
from gem.evaluation.versions import versions_of
from gem.registry import ENV_REGISTRY, EnvSpec
from gem.trajectory import read_jsonl

ENV = """
from gem.core import Env, Step
from .rules import SECRET

class Secret(Env):
    def reset(self, seed=None):
        super().reset(seed)
        return "guess", {}

    def step(self, action):
        return Step("", float(action == SECRET), True)
"""


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """Three packages with the same environment, the last with other rules."""
    monkeypatch.syspath_prepend(tmp_path)
    names = [f"secret_env_{name}" for name in ("a", "b", "c")]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "env.py").write_text(ENV)
        (tmp_path / name / "rules.py").write_text(f"SECRET = {name == names[2]!r}")
        gem.register(EnvSpec(f"test:{name}", f"{name}.env:Secret", version=3))
    yield names
    for name in names:
        del ENV_REGISTRY[f"test:{name}"]


def test_the_code_of_an_environment_includes_the_modules_that_it_imports(plugins):
    a, b, c = (versions_of(f"test:{name}") for name in plugins)
    assert a == b and a["environment"] != c["environment"]
    assert a["version"] == 3 and a["grader"] is None and a["libraries"] == {}


def test_the_code_of_a_grader_in_another_package_is_hashed_and_no_other_text_with_a_colon(plugins):
    def grader(**kwargs):
        gem.register("test:Graded", f"{plugins[0]}.env:Secret", **kwargs)
        try:
            return versions_of("test:Graded")["grader"]
        finally:
            del ENV_REGISTRY["test:Graded"]

    assert None not in (ours := [grader(reward=f"{name}.rules:SECRET") for name in (plugins[0], plugins[2])])
    assert ours[0] != ours[1]
    others = ("gem.envs.table.poker:KuhnPokerEnv", "http://localhost:8000/retrieve", "json: text")
    assert [grader(reward=text) for text in others] == [None] * 3


def test_the_arguments_of_a_spec_are_recorded_and_other_data_by_its_hash():
    rows = [{"question": "q", "answer": "a"}]
    gem.register("test:Args", "gem.envs.questions.qa_env:QaEnv", dataset=rows, split=None, ask=len)
    try:
        arguments = versions_of("test:Args")["arguments"]
    finally:
        del ENV_REGISTRY["test:Args"]
    assert (arguments["split"], arguments["ask"]) == (None, "builtin_function_or_method")
    assert len(arguments["dataset"]) == 16
    assert versions_of("game:GuessTheNumber-v0-easy")["arguments"]["max_number"] == 10


def test_environments_with_other_graders_have_other_hashes():
    facts, game = versions_of("qa:Facts"), versions_of("game:GuessTheNumber-v0")
    assert facts["grader"] != game["grader"] and facts["environment"] != game["environment"]
    assert versions_of("game:Wordle-v0")["grader"] == game["grader"]  # both only read the action


def test_the_version_of_a_library_that_makes_the_tasks_is_recorded():
    library = pytest.importorskip("reasoning_gym")
    found = versions_of("rg:leg_counting")["libraries"]
    assert list(found) == ["reasoning-gym"] and found["reasoning-gym"].startswith(library.__version__[:3])


def test_a_run_is_not_resumed_with_another_grader_but_its_copy_that_was_graded_again_is(tmp_path):
    run, copy = str(tmp_path / "run"), str(tmp_path / "copy")
    settings = {"policy": "constant:True", "envs": "logic:Rules", "limit": 4}
    evaluate(**settings, out=run)
    recorded = tmp_path / "run" / "eval.json"
    data = json.loads(recorded.read_text())
    data["envs"][0]["versions"]["grader"] = "old"
    recorded.write_text(json.dumps(data))
    with pytest.raises(BadValue, match=r'envs\[0\].versions.grader was "old", now .*`gem eval rescore .*run`'):
        evaluate(**settings, out=run, resume=True)
    rescore(run, out=copy, trust=True)  # its settings were edited
    records = tmp_path / "copy" / "trajectories.jsonl"
    records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:2]))
    assert evaluate(**settings, out=copy, resume=True).complete
    assert len(list(read_jsonl(records))) == 4
