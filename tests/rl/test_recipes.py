"""recipes/: each is a valid configuration and trains a tiny model on stub rows."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

if sys.version_info < (3, 11):
    pytest.importorskip("tomli")

from gem.rl.checks import check_names
from gem.rl.config import TrainConfig
from gem.rl.config_file import read_config

from ..stub_datasets import write_stub_datasets

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*.toml"))
QUICK = ("game-GuessTheNumber", "code-CodeContest", "math-Orz57K-tool", "qa-HotpotQA-tool", "rg-letter_counting")
TINY = {"steps": 2, "batch": 4, "minibatch": 4, "eval_episodes": 2, "imitation_steps": 0, "eval_every": 2}
GAMMA = {"game": 0.9, "qa": 0.9, "rg": 1.0, "code": 1.0, "math": 1.0}


def configuration(recipe: Path, **given: object) -> TrainConfig:
    return TrainConfig(**{**read_config(str(recipe)), **given})


def test_there_is_one_recipe_per_environment_of_the_paper():
    families = [recipe.stem.partition("-")[0] for recipe in RECIPES]
    assert {family: families.count(family) for family in families} == {
        "code": 2,
        "game": 8,
        "math": 2,
        "qa": 2,
        "rg": 10,
    }


def test_every_recipe_is_a_valid_configuration_with_the_settings_of_the_paper():
    found, expected = {}, {}
    for recipe in RECIPES:
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
    (env,) = config.env
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
