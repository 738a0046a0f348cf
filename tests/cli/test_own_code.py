"""Code of the user that a command line names: environments as module:Class or in a file, functions as policies."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from dataclasses import fields

import pytest

from gem.cli import COMMANDS, main
from gem.cli.data import DataFlags
from gem.registry import ENV_REGISTRY
from gem.trajectory import read_jsonl

ENVS = """
import pathlib, gem
from gem import Env, Step, StopReason

pathlib.Path(__file__).with_name("ran").write_text("the code ran")

class Parity(Env):
    def reset(self, seed=None):
        super().reset(seed)
        self.state = self.rng.randint(0, 99)
        return f"{self.state}: even or odd?", {}

    def step(self, action):
        right = action == ("odd" if self.state % 2 else "even")
        reason = StopReason.SOLVED if right else StopReason.LOST
        return Step("", float(right), True, info={"stop_reason": reason, "explanation": f"{self.state} is {right}"})

    def sample_random_action(self):
        return self.action_rng.choice(["even", "odd"])

gem.register("own:Parity", Parity)
"""
AGENT = """
def reply(messages):
    return "odd" if int(messages[-1]["content"].split(":")[0]) % 2 else "even"

async def slow(messages):
    return {"role": "assistant", "content": reply(messages)}

def broken(messages):
    raise LookupError("no such city")

class Number:
    pass

seven = 7
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder, with own_envs.py and own_agent.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "own_envs.py").write_text(ENVS)
    (tmp_path / "own_agent.py").write_text(AGENT)
    yield tmp_path
    for name in ("own:Parity", "own_envs:Parity"):
        ENV_REGISTRY._specs.pop(name, None)
    for module in ("own_envs", "own_agent"):
        sys.modules.pop(module, None)


@pytest.mark.parametrize("policy", ["own_agent:reply", "own_agent:slow"])
def test_a_function_and_an_environment_are_named_by_their_modules(policy, folder, capsys):
    command = ["eval", "--policy", policy, "--env", "own_envs:Parity", "--limit", "20", "--out", "run", "--json"]
    assert main(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["model"] == policy and report["envs"][0]["score"]["value"] == 1.0
    episodes = list(read_jsonl("run/trajectories.jsonl"))
    assert {episode.env_id for episode in episodes} == {"own_envs:Parity"}
    assert all(episode.turns[-1].explanation.endswith(" is True") for episode in episodes)
    # A run is resumed and graded again with what it was started with.
    (folder / "run" / "trajectories.jsonl").write_bytes(b"")
    del ENV_REGISTRY["own_envs:Parity"]
    assert main(["eval", "--resume", "run"]) == 0
    del ENV_REGISTRY["own_envs:Parity"]
    assert main(["eval", "rescore", "run"]) == 0


COMMAND_LINES = [
    ["info", "ID"],
    ["check", "ID", "--seeds", "2", "--episodes", "2"],
    ["bench", "vec", "--env", "ID", "--num-envs", "2", "--steps", "8", "--repeats", "1", "--backends", "process"],
    ["eval", "--policy", "random", "--env", "ID", "--limit", "2", "--out", "run"],
    ["replay", "--update", "--ids", "ID", "plays"],
]


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMAND_LINES, ids=lambda words: words[0])
@pytest.mark.parametrize("how", ["module", "file"])
def test_every_command_takes_environments_of_the_user(words, how, folder, capsys):
    (folder / "plays").mkdir()
    env_id = {"module": "own_envs:Parity", "file": "own:Parity"}[how]
    if how == "file":
        (folder / "elsewhere").mkdir()
        shutil.move("own_envs.py", "elsewhere/own_envs.py")
        words = [*words, "--env-path", "elsewhere/own_envs.py"]
    code = main([word.replace("ID", env_id) for word in words])
    assert code == (1 if words[0] == "check" else 0), capsys.readouterr()  # this environment steps after the end
    assert "own" in capsys.readouterr().out


def test_every_command_that_makes_environments_has_the_flags():
    for name in ("check", "play", "info", "bench", "replay", "train", "export", "eval", "tournament"):
        config = importlib.import_module(COMMANDS[name][0]).Config
        assert issubclass(config, DataFlags) and {*config.env_fields} <= {f.name for f in fields(config)}


def test_a_name_of_a_file_of_records_is_imported_only_with_trust(folder, usage_error, capsys):
    assert (
        main(["eval", "--policy", "own_agent:reply", "--env", "own_envs:Parity", "--limit", "2", "--out", "run"]) == 0
    )
    shutil.copytree("run", "theirs")
    for module in ("own_envs", "own_agent"):
        sys.modules.pop(module)
    del ENV_REGISTRY["own_envs:Parity"], ENV_REGISTRY["own:Parity"]
    (folder / "ran").unlink()
    capsys.readouterr()
    for command in (["eval", "--resume", "theirs"], ["eval", "rescore", "theirs"]):
        error = usage_error(*command)
        assert "own_envs:Parity" in error and "--trust" in error
    assert not (folder / "ran").exists() and "own_envs" not in sys.modules
    assert main(["eval", "rescore", "theirs", "--trust"]) == 0 and (folder / "ran").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--policy", "own_agent:repy"], "own_agent:repy cannot be loaded: .*no attribute 'repy'"),
        (["--policy", "no_agent:reply"], "no_agent:reply cannot be loaded: No module named 'no_agent'"),
        (["--policy", "own_agent.py:reply"], "name the module and not its file: own_agent:reply"),
        (["--policy", "own_agent"], "--policy also takes module:name of a function.* got 'own_agent'"),
        (["--policy", "own_agent:seven"], "must name a function .* got 7"),
        (["--policy", "random", "--env", "qa:capitals"], "with its suffix, such as qa:capitals.jsonl"),
        (["--policy", "own_agent:Number"], "must name a function"),
        (["--policy", "random", "--env", "own_envs:Party"], "no env matches 'own_envs:Party'.*cannot be loaded"),
        (["--policy", "random", "--env", "own_agent:seven"], "cannot be loaded: it is a int"),
        (["--policy", "random", "--env-path", "no.py"], "--env-path no.py: .*no Python file"),
        (["--policy", "random", "--env-path", "json.py"], "has the name of another module"),
        (["--policy", "own_agent:reply", "--temperature", "1"], "--temperature has no effect with a function"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(flags, message, folder, usage_error):
    (folder / "json.py").write_text("")
    assert re.search(message, usage_error("eval", *flags))


def test_a_function_that_fails_stops_the_run_with_its_text(folder, capsys):
    assert main(["eval", "--policy", "own_agent:broken", "--env", "own_envs:Parity", "--retries", "0"]) == 1
    error = capsys.readouterr().err
    assert "own_agent:broken: LookupError: no such city (own_agent.py, line" in error
