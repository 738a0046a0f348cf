"""The choice of an advantage or a loss by name, function or module:function. Needs no extra."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from gem.errors import BadValue, CallerError
from gem.rl import EpisodeRewards, TrainConfig, needs
from gem.rl.choices import choose, options_of
from gem.rl.estimate.advantages import ADVANTAGES
from gem.rl.estimate.losses import LOSSES
from gem.rl.run.folder import RunFolder

PAGE = Path(__file__).parents[2] / "docs" / "algorithms.md"


@needs("groups")
def first_reward(
    episodes: Sequence[EpisodeRewards], *, scale: float = 2.0, names: str | None = None
) -> list[list[float]]:
    return [[scale * e.rewards_K[0]] * len(e.rewards_K) for e in episodes]


def test_a_function_is_saved_by_its_name_and_found_again():
    config = TrainConfig(advantage=first_reward, advantage_options={"scale": 3})
    assert config.advantage == f"{__name__}:first_reward" and config.group_size == 8
    again = TrainConfig(**asdict(config))
    assert again == config
    assert again.estimator([EpisodeRewards([1.0, 0.0])]) == [[3.0, 3.0]]


def test_a_built_in_function_is_saved_by_its_short_name():
    assert TrainConfig(advantage=ADVANTAGES["rebn"], loss=LOSSES["cispo"]) == TrainConfig(
        advantage="rebn", loss="cispo"
    )


def test_the_options_of_a_function_are_its_keyword_arguments_with_their_types():
    chosen = choose("advantage", first_reward, ADVANTAGES, {"names": "none"})
    assert chosen.options == {"names": None}
    assert (chosen.value("scale"), chosen.value("other", 7)) == (2.0, 7)
    with pytest.raises(BadValue, match="scale must be of type float, got 'large'"):
        choose("advantage", first_reward, ADVANTAGES, {"scale": "large"})
    with pytest.raises(CallerError, match="'scal'; did you mean 'scale'"):
        choose("advantage", first_reward, ADVANTAGES, {"scal": 1.0})


def test_a_function_that_no_other_process_finds_is_refused():
    def local(episodes: Sequence[EpisodeRewards]) -> list[list[float]]:
        return []

    for function in (local, lambda episodes: []):
        with pytest.raises(BadValue, match="advantage must be a function at the top level of a module"):
            TrainConfig(advantage=function)


def test_the_page_on_algorithms_lists_all_options():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    listed = {cells[1].strip(" `"): cells[2].strip() for line in rows if len(cells := line.split("|")) == 4}
    for name, function in (ADVANTAGES | LOSSES).items():
        options = [f"`{option}={str(value).lower()}`" for option, value in options_of(function).items()]
        assert listed[name] == ", ".join(options), name


def test_a_word_that_needs_does_not_know_is_refused():
    with pytest.raises(BadValue, match="'group'; did you mean 'groups'"):
        needs("group")  # type: ignore[arg-type]


def two_arguments(episodes: Sequence[EpisodeRewards], scale: float = 1.0, *, other: float) -> list[list[float]]:
    return []


def test_a_signature_that_the_training_loop_cannot_call_is_refused():
    with pytest.raises(BadValue, match=r"two_arguments.*after a \*.*'other'"):
        TrainConfig(advantage=two_arguments)
    with pytest.raises(CallerError, match=r"'scale'.*options: other"):
        TrainConfig(advantage=two_arguments, advantage_options={"scale": 2.0})


def test_options_that_a_run_cannot_store_are_refused():
    for value in (object(), [float("nan")], {1, 2}):
        with pytest.raises(BadValue, match=r"names.*JSON|names must be"):
            TrainConfig(advantage=first_reward, advantage_options={"names": value})


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("def f(:", "f", "SyntaxError"),
        ("raise RuntimeError('no licence')", "f", "RuntimeError: no licence"),
        ("import sys; sys.exit(3)", "f", "SystemExit: 3"),
        ("f = 3", "f", "is not a function, got 3"),
        ("", "g", "AttributeError.*current one or on PYTHONPATH"),
    ],
    ids=str,
)
def test_a_module_that_cannot_be_imported_is_an_error_with_the_reason(
    text: str, name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    module = f"odd_{abs(hash((text, name)))}"
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadValue, match=message):
        TrainConfig(loss=f"{module}:{name}")


@pytest.mark.parametrize("name", ["./mine.py:f", ".mine:f", "mine:", ":f", "", "mine"])
def test_what_is_no_module_and_function_is_refused(name: str):
    with pytest.raises(BadValue, match="loss must be one of ppo, gspo, cispo, reinforce, or module:function"):
        TrainConfig(loss=name)


def test_a_function_of_a_script_says_where_it_must_be():
    with pytest.raises(BadValue, match="script or a notebook; move it to a module"):
        TrainConfig(loss="__main__:mine")


def test_the_long_name_of_a_built_in_function_is_its_short_one():
    assert TrainConfig(advantage="gem.rl.estimate.advantages:rebn").advantage == "rebn"
    with pytest.raises(BadValue, match="epochs=3 needs a clip range"):
        TrainConfig(loss="gem.rl.estimate.losses:reinforce", epochs=3)


def test_a_run_whose_functions_are_missing_can_be_played_and_not_trained(tmp_path: Path):
    saved = asdict(TrainConfig()) | {"advantage": "no_such_module:a", "loss": "no_such_module:b", "group_size": 8}
    (tmp_path / "config.json").write_text(json.dumps(saved))
    assert RunFolder.open(tmp_path, plays=True)[1].advantage == "turn"
    with pytest.raises(BadValue, match=r"cannot use the settings of .*no_such_module"):
        RunFolder.open(tmp_path, trust=True)


@needs("groups")
def discounted(episodes: Sequence[EpisodeRewards], *, gamma: float) -> list[list[float]]:
    return []


def test_a_discount_without_a_default_must_be_given():
    assert TrainConfig(advantage=discounted, gamma=0.5).estimator.options == {"gamma": 0.5}
    with pytest.raises(BadValue, match="no default of gamma"):
        TrainConfig(advantage=discounted)


def test_a_run_stores_the_options_that_it_has_by_default():
    saved = TrainConfig(advantage="gae", loss="cispo", loss_options={"clip_low": 0.5}).saved()
    assert (saved["gamma"], saved["advantage_options"]) == (0.8, {"gae_lambda": 0.95, "batch_scale": "none"})
    assert saved["loss_options"] == {"clip_low": 0.5, "clip_high": 4.0}
    again = TrainConfig(**saved)
    assert again.saved() == saved and again.estimator.value("gamma") == 0.8
    assert TrainConfig(**TrainConfig(advantage="rloo").saved()).gamma is None


def test_a_module_of_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "loss_of_mine.py").write_text("def f(tokens): return None")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [entry for entry in sys.path if entry])
    assert TrainConfig(loss="loss_of_mine:f").loss == "loss_of_mine:f"
