"""The choice of an advantage or a loss by name, function or module:function. Needs no extra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from gem.errors import BadValue, CallerError
from gem.rl import EpisodeRewards, TrainConfig, needs
from gem.rl.choices import choose, options_of
from gem.rl.estimate.advantages import ADVANTAGES
from gem.rl.estimate.losses import LOSSES

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
