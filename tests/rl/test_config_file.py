"""The configuration of a training run as a TOML file."""

import sys
from pathlib import Path

import pytest

if sys.version_info < (3, 11):
    pytest.importorskip("tomli")

from gem.errors import CallerError
from gem.rl.config import TrainConfig
from gem.rl.config_file import config_to_toml, read_config
from gem.rl.environments import EvalSetting, TrainEnv

FILE = """
description = "two environments"
steps = 7
learning_rate = 1
loss_options = {clip_high = "none"}
epochs = 1
advantage_options = {batch_scale = "none"}

[[env]]
id = "game:GuessTheNumber-v0-easy"
weight = 2
kwargs = {max_number = 12}

[[env]]
id = "math:Arithmetic"
wrappers = "concat"
gamma = 1.0
max_turns = 3

[[eval_env]]
id = "qa:Facts"
split = "test"
temperature = 0.5
"""


def written(folder: Path, text: str) -> str:
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_gives_the_settings_of_the_run_and_of_each_environment(tmp_path: Path):
    config = TrainConfig(**read_config(written(tmp_path, FILE)))
    assert (config.steps, config.learning_rate) == (7, 1.0)
    assert config.objective.options == {"clip_high": None} and config.estimator.options == {"batch_scale": "none"}
    assert config.env == (
        TrainEnv(id="game:GuessTheNumber-v0-easy", weight=2.0, kwargs={"max_number": 12}),
        TrainEnv(id="math:Arithmetic", wrappers="concat", gamma=1.0, max_turns=3),
    )
    assert config.eval_env == (EvalSetting(id="qa:Facts", split="test", temperature=0.5),)


@pytest.mark.parametrize(
    "text", ["", FILE, 'env = "math:Arithmetic"\nname = "a \\"b\\" \\u007f é"', 'env = ["a=2", "b"]']
)
def test_a_configuration_written_as_toml_is_read_back(text: str, tmp_path: Path):
    config = TrainConfig(**read_config(written(tmp_path, text)))
    assert TrainConfig(**read_config(written(tmp_path, config_to_toml(config)))) == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stepz = 3", "run.toml: .*'stepz'.*'steps'"),
        ("[[env]]\nid = 'a'\nwieght = 2", "run.toml, env 1: .*'wieght'.*'weight'"),
        ("[[eval_env]]\nid = 'a'\nweight = 2", "run.toml, eval_env 1: .*'weight'"),
        ("[[env]]\nweight = 2", "run.toml, env 1 needs the id"),
        ("env = 3", r"run.toml, env .*\[\[env\]\].*got 3"),
        ("steps = 'many'", "run.toml: steps must be of type int.*'many'"),
        ("backend = 'forks'", "run.toml: backend .*'forks'"),
        ("steps = ", "run.toml is not TOML"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_place(text: str, message: str, tmp_path: Path):
    with pytest.raises(CallerError, match=message):
        read_config(written(tmp_path, text))


def test_a_file_that_does_not_exist_is_named():
    with pytest.raises(CallerError, match="cannot read --config nowhere"):
        read_config("nowhere.toml")


def test_an_argument_that_toml_does_not_have_is_named():
    with pytest.raises(CallerError, match=r"max_turns=None .*TOML"):
        config_to_toml(TrainConfig(env_kwargs={"max_turns": None}))
