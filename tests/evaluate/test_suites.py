"""Suites of environments in TOML files."""

from __future__ import annotations

import sys

import pytest

from gem.errors import CallerError
from gem.evaluate import evaluate, load_suite
from gem.evaluate.suites import suite_names

pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")


@pytest.mark.parametrize("name", suite_names())
def test_the_suites_that_come_with_gem_name_known_environments(name):
    envs = load_suite(name)
    assert len({env.label for env in envs}) == len(envs) >= 5


def test_the_default_suite_needs_no_download():
    report = evaluate("oracle", load_suite("offline"), limit=2)
    assert all(env.done == 2 and env.solved.value == 1.0 for env in report.envs)


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[env]]\nid = "qa:Facts"\nwrapers = "concat"', "env 1: unknown key 'wrapers'; did you mean 'wrappers'"),
        ('[[envs]]\nid = "qa:Facts"', "unknown key 'envs'; did you mean 'env'"),
        ('[[env]]\nid = "qa:Fatcs"', "did you mean 'qa:Facts'"),
        ('[[env]]\nid = "qa:Facts"\nwrappers = "concatt"', "did you mean 'concat'"),
        ('[[env]]\nid = "qa:Facts"\nlimit = "all"', "env 1: Expected"),
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
    with pytest.raises(CallerError, match=r"no suite 'ofline'; did you mean 'offline'.*games, math, offline, qa"):
        load_suite("ofline")
