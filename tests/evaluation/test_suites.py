"""Suites of environments in TOML files."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from gem.errors import CallerError
from gem.evaluation import evaluate, load_suite
from gem.evaluation.suites import suite_names
from gem.testing.fakes.search import FakeSearchServer

from ..stub_datasets import write_stub_datasets

pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")


@pytest.mark.parametrize("name", suite_names())
def test_the_suites_that_come_with_gem_name_known_environments(name):
    envs = load_suite(name)
    assert len({env.label for env in envs}) == len(envs) >= 5


def test_the_default_suite_needs_no_download():
    report = evaluate("oracle", load_suite("offline"), limit=2)
    assert all(env.done == 2 and env.solved.value == 1.0 for env in report.envs)


MATH = ["AIME24", "AMC", "MATH500", "Minerva", "OlympiadBench"]
QA = ["NaturalQuestions", "TriviaQA", "PopQA", "HotpotQA", "2Wiki", "Musique", "Bamboogle"]


@pytest.mark.parametrize(
    ("suite", "names", "tool"),
    [("math", MATH, "python_tool_no_int_reward"), ("qa", QA, "search_tool_no_int_reward")],
)
def test_the_suites_of_the_paper_ask_its_sets_with_and_without_the_tool(suite, names, tool, tmp_path, monkeypatch):
    pytest.importorskip("sympy" if suite == "math" else "aiohttp")
    write_stub_datasets(tmp_path)
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    envs = load_suite(suite)
    assert [env.label for env in envs] == [f"eval:{name}{end}" for name in names for end in ("", f"+{tool}")]
    assert all(env.limit >= 675 for env in envs)  # the largest of the sets, so that none is cut
    with FakeSearchServer(lambda request: ["found"]) if suite == "qa" else nullcontext() as server:  # calls at random
        monkeypatch.setenv("SEARCH_URL", getattr(server, "url", ""))
        report = evaluate("oracle", [replace(env, limit=2) for env in envs])
    assert all((env.done, env.failed, env.solved.value) == (2, 0, 1.0) for env in report.envs)
    assert {env.description for env in report.envs} == {"2 of 40 rows"}


def test_a_search_tool_without_a_server_is_refused_before_the_run(monkeypatch):
    monkeypatch.delenv("SEARCH_URL", raising=False)
    with pytest.raises(CallerError, match=r"qa:Facts\+search_tool .*SEARCH_URL"):
        evaluate("random", "qa:Facts", limit=2, wrappers="search_tool")


def test_every_environment_is_asked_in_each_variant(tmp_path):
    file = tmp_path / "suite.toml"
    file.write_text(
        'limit = 7\nvariants = ["", "concat"]\n[[env]]\nid = "qa:Facts"\n[[env]]\nid = "logic:Rules"\nlimit = 3'
    )
    envs = load_suite(str(file))
    assert [(env.label, env.limit) for env in envs] == [
        ("qa:Facts", 7),
        ("qa:Facts+concat", 7),
        ("logic:Rules", 3),
        ("logic:Rules+concat", 3),
    ]


def test_the_suite_in_the_documents_is_asked_as_printed(tmp_path):
    document = Path(__file__).parents[2] / "docs" / "evaluation.md"
    (tmp_path / "suite.toml").write_text(re.search("```toml\n(limit.*?)```", document.read_text(), re.DOTALL)[1])
    report = evaluate("oracle", [replace(env, limit=1) for env in load_suite(str(tmp_path / "suite.toml"))])
    game, named = "game:GuessTheNumber-v0", "Wordle with 8 turns"
    assert [env.name for env in report.envs] == [
        game,
        f"{game}+concat_with_action",
        named,
        f"{named}+concat_with_action",
    ]
    assert all(env.solved.value == 1.0 for env in report.envs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[env]]\nid = "qa:Facts"\nwrapers = "concat"', "env 1: .*'wrapers'.*'wrappers'"),
        ('[[envs]]\nid = "qa:Facts"', "key 'envs'.*'env'"),
        ('[[env]]\nid = "qa:Fatcs"', "did you mean 'qa:Facts'"),
        ('[[env]]\nid = "qa:Facts"\nwrappers = "concatt"', "did you mean 'concat'"),
        ('[[env]]\nid = "qa:Facts"\nlimit = "all"', "env 1: limit must be of type int.*got 'all'"),
        ("limit = 3", "needs at least one table"),
        ("[[env]", "is not TOML"),
    ],
)
def test_a_mistake_in_a_suite_is_named_with_the_way_out(text, message, tmp_path):
    file = tmp_path / "suite.toml"
    file.write_text(text)
    with pytest.raises(CallerError, match=message):
        load_suite(str(file))


def test_an_unknown_suite_lists_those_that_exist():
    with pytest.raises(CallerError, match=r"'ofline'.*'offline'.*games, math, offline, qa"):
        load_suite("ofline")
