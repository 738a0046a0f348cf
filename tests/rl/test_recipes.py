"""Recipes: each is a valid configuration and trains a tiny model on stub rows."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

if sys.version_info < (3, 11):
    pytest.importorskip("tomli")

from gem._internal.inbound import read_toml
from gem.errors import BadValue
from gem.rl.checks import check_names
from gem.rl.config import TrainConfig
from gem.rl.config_file import RECIPES as FOLDER
from gem.rl.config_file import read_config, recipe_names

from ..stub_datasets import write_stub_datasets

ROOT = Path(__file__).parents[2]
RECIPES = [FOLDER / f"{name}.toml" for name in recipe_names()]
OF_THE_PAPER = [path for path in RECIPES if path.stem != "smollm2-guess"]
QUICK = (
    "smollm2-guess",
    "game-GuessTheNumber",
    "code-CodeContest",
    "math-Orz57K-tool",
    "qa-HotpotQA-tool",
    "rg-letter_counting",
)
TINY = {"steps": 2, "batch": 4, "minibatch": 4, "eval_episodes": 2, "imitation_steps": 0, "eval_every": 2}
GAMMA = {"game": 0.9, "qa": 0.9, "rg": 1.0, "code": 1.0, "math": 1.0}


def configuration(recipe: Path, **given: object) -> TrainConfig:
    return TrainConfig(**{**read_config(str(recipe)), **given})


def test_there_is_one_recipe_per_environment_of_the_paper():
    families = [recipe.stem.partition("-")[0] for recipe in OF_THE_PAPER]
    assert {family: families.count(family) for family in families} == {
        "code": 2,
        "game": 8,
        "math": 2,
        "qa": 2,
        "rg": 10,
    }


def test_every_recipe_is_a_valid_configuration_with_the_settings_of_the_paper():
    found, expected = {}, {}
    for recipe in OF_THE_PAPER:
        config = configuration(recipe)
        check_names(config)
        (env,) = config.envs
        family = env.id.partition(":")[0]
        limits = (500, 5120) if family == "qa" else (4096, 12800)
        model = "Qwen/Qwen3-1.7B-Base" if family in ("game", "rg") else "Qwen/Qwen3-4B-Base"
        expected[recipe.stem] = ("rebn", 2, 1e-6, 0.0, GAMMA[family], *limits, model)
        settings = (config.advantage, config.epochs, config.learning_rate, config.kl)
        found[recipe.stem] = (*settings, env.gamma, env.max_new_tokens, env.max_context, config.model)
    assert found == expected


def test_a_recipe_is_found_by_its_name_and_a_file_by_its_path(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = read_config("smollm2-guess")
    assert recipe == read_config(str(FOLDER / "smollm2-guess.toml"))
    assert TrainConfig(**recipe).title == "game:GuessTheNumber-v0-easy"
    Path("mine.toml").write_text("steps = 3")
    assert read_config("mine.toml") == {"steps": 3}
    with pytest.raises(BadValue, match=r"--config smolm2-guess: .*did you mean 'smollm2-guess'.*rg-acre, .*smollm2"):
        read_config("smolm2-guess")


def test_recipes_are_part_of_the_package():
    patterns = read_toml(ROOT / "pyproject.toml", extra="train")["tool"]["setuptools"]["package-data"]["gem"]
    package = ROOT / "src" / "gem"
    shipped = {path for pattern in patterns for path in package.glob(pattern)}
    assert set(RECIPES) <= shipped


def test_the_folder_of_another_model_is_not_taken_for_the_fetched_one(tmp_path: Path):
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    command = [sys.executable, str(ROOT / "scripts" / "fetch-smollm2"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and re.search(r"expected the SHA-256 7ef915.*got [0-9a-f]{64}; remove", done.stderr)


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("torch")
    from gem.rl.model.tiny import build_model, build_tokenizer

    folder = tmp_path_factory.mktemp("model")
    tokenizer = build_tokenizer([path.read_text() for path in RECIPES], vocabulary=400)
    build_model(tokenizer, seed=0, hidden=16, layers=1, context=40_000).config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.train
@pytest.mark.parametrize(
    "recipe",
    [pytest.param(r, marks=() if r.stem in QUICK else pytest.mark.exhaustive) for r in RECIPES],
    ids=lambda path: path.stem,
)
def test_a_recipe_trains_a_tiny_model_on_stub_rows(recipe: Path, tiny_model: str, stub_data: Path, tmp_path: Path):
    if recipe.stem.startswith("rg-"):
        pytest.importorskip("reasoning_gym")
    from gem.rl.run.trainer import Trainer

    config = configuration(recipe, model=tiny_model, out=str(tmp_path), name="r", device="cpu", **TINY)
    (env,) = config.envs
    config = replace(config, env=[replace(env, max_new_tokens=4, max_context=None)])
    with Trainer.start(config) as trainer:
        trainer.run()
    assert [row["update"] for row in trainer.folder.read_metrics()] == [1, 2]


@pytest.fixture
def stub_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_stub_datasets(tmp_path / "data")
    monkeypatch.setenv("GEM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SEARCH_URL", "http://127.0.0.1:9/retrieve")
    return tmp_path / "data"
