"""Every id of the published package plays an episode: the right answers earn 1.0, and wrong ones less.

published_ids.txt lists the ids of version 0.1.0. The datasets of the Hub are replaced by small copies in their columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gem
from gem.errors import MissingDependency
from gem.policies import oracle

from ..stub_datasets import PROGRAM, write_stub_datasets

RELEASED = Path(__file__).with_name("published_ids.txt").read_text(encoding="utf-8").split()
IDS = [*RELEASED, "game:WikiGame-v0-easy", "game:WikiGame-v0-hard"]  # the last two are later than the release

WRONG = "\\boxed{no such answer} <answer>no such answer</answer>\n```python\nprint('no such answer')\n```"
UNREADABLE = "no answer"
# reasoning-gym's scorer of this generator accepts every answer; see docs/design/reasoning_gym.md.
ACCEPTS_ANYTHING = "rg:game_of_life_halting"
# Right answers to the questions of seed 0, where reasoning-gym has no gold answer: from its metadata, or by hand.
SOLUTIONS = {
    "rg:boxnet": lambda metadata: (
        '[{"Agent[0.5, 1.5]": "move(box_red, square[0.5, 0.5])", "Agent[0.5, 2.5]": "move(box_blue, target_blue)",'
        ' "Agent[0.5, 3.5]": "move(box_green, square[0.5, 2.5])"},'
        ' {"Agent[0.5, 0.5]": "move(box_red, target_red)", "Agent[0.5, 2.5]": "move(box_green, target_green)"}]'
    ),
    "rg:graph_color": lambda metadata: json.dumps(metadata["possible_answer"]),
    "rg:propositional_logic": lambda metadata: metadata["example_answer"],
    "rg:rubiks_cube": lambda metadata: metadata["example_correct_answer"],
    "rg:rush_hour": lambda metadata: "C-1 D-1 B-1 E-2 A+4",
}


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("datasets")
    write_stub_datasets(folder)
    return folder


def right_answers(env: Any) -> Callable[[Any], str]:
    """Return a policy that wins the open episode."""
    if env.env_id in SOLUTIONS:
        return lambda observation: env.format.write(SOLUTIONS[env.env_id](env.entry["metadata"]))
    if gem.ENV_REGISTRY[env.env_id].oracle is None:
        return lambda observation: PROGRAM
    return oracle(env).act


def total_reward(env: Any, policy: Callable[[Any], Callable[[Any], str]]) -> float:
    """Play the episode of seed 0 to its end."""
    observation, _ = env.reset(seed=0)
    act, total, over = policy(env), 0.0, False
    while not over:
        observation, reward, terminated, truncated, info = env.step(act(observation))
        total, over = total + reward, terminated or truncated
    assert info["stop_reason"]
    return total


@pytest.mark.parametrize("env_id", IDS)
def test_a_published_id_plays_to_its_end_and_right_answers_earn_one(env_id, copies, monkeypatch):
    monkeypatch.setenv("GEM_DATA", str(copies))
    try:
        env = gem.make(env_id, seed=0)
    except MissingDependency as e:
        pytest.skip(str(e))
    wrong = UNREADABLE if env_id == ACCEPTS_ANYTHING else WRONG
    with env:
        assert total_reward(env, right_answers) == pytest.approx(1.0)
        assert total_reward(env, lambda env: lambda observation: wrong) < 1.0


def test_the_published_ids_are_complete():
    families = [env_id.partition(":")[0] for env_id in RELEASED]
    counts = {"rg": 104, "game": 37, "eval": 14, "math": 7, "logic": 5, "code": 3, "qa": 2}
    assert {family: families.count(family) for family in families} == counts
    assert len(set(RELEASED)) == 172
