"""Curricula: half-solved items are favored, all keep a minimum share, and runs are reproducible."""

import json
from collections import Counter
from pathlib import Path

import pytest

import gem.rl.data.evaluation
from gem.errors import BadValue
from gem.rl.config import TrainConfig
from gem.rl.data.curriculum import ItemSampler, Learnability
from gem.rl.data.evaluation import curriculum_items, plan_evaluation

EASY, SUMS = "game:GuessTheNumber-v0-easy", "math:Arithmetic"


def play(sampler: ItemSampler, rates: list[float], groups: range) -> Counter[int]:
    """Play groups whose episodes succeed at the rate of their item, and return how often each item was chosen."""
    chosen: Counter[int] = Counter()
    for group in groups:
        seed = sampler.seed_of(group)
        item = sampler.seeds.index(seed)
        chosen[item] += 1
        sampler.add(seed, chosen[item] * rates[item] % 1.0 < rates[item])
    return chosen


def test_half_solved_items_are_chosen_most_and_all_keep_the_minimum_share():
    sampler = ItemSampler([100, 101, 102, 103], 0, "test")
    play(sampler, [0.0, 0.5, 1.0, 0.5], range(400))
    shares = sampler.learnability.shares()
    assert sum(shares) == pytest.approx(1.0) and min(shares) >= 0.05
    assert min(shares[1], shares[3]) > 1.5 * max(shares[0], shares[2])
    chosen = play(sampler, [0.0, 0.5, 1.0, 0.5], range(400, 1400))
    assert min(chosen[1], chosen[3]) > 1.4 * max(chosen[0], chosen[2]) and min(chosen.values()) > 50


def test_an_item_that_was_not_tried_is_taken_for_half_solved():
    items = Learnability(2)
    for _ in range(50):
        items.add(0, True)
    assert items.success(1) == 0.5 and items.shares()[1] > 0.6


def test_an_item_that_becomes_learnable_is_found():
    sampler = ItemSampler([0, 1], 0, "test")
    play(sampler, [0.0, 0.5], range(200))
    before = sampler.learnability.shares()[0]
    play(sampler, [0.5, 1.0], range(200, 400))
    assert sampler.learnability.shares()[0] > 0.5 > before


def test_members_of_a_group_have_one_seed_also_after_a_restart_and_other_outcomes():
    sampler = ItemSampler(list(range(50)), 0, "test")
    seeds = [sampler.seed_of(group) for group in range(20)]
    for seed in seeds:
        sampler.add(seed, True)
    again = ItemSampler(list(range(50)), 0, "test")
    again.set_state(json.loads(json.dumps(sampler.get_state())))
    assert [s.seed_of(group) for s in (sampler, again) for group in range(20)] == seeds * 2
    assert sampler.seed_of(99) == again.seed_of(99)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"curriculum": "levels"}, "needs several environments"),
        ({"curriculum": "easy"}, "curriculum must be one of levels, rows, seeds, got 'easy'"),
        ({"curriculum": "seeds", "refill_groups": True, "group_size": 2}, "refill_groups would hide"),
    ],
)
def test_settings_without_a_meaning_are_refused(given: dict[str, object], message: str):
    with pytest.raises(BadValue, match=message):
        TrainConfig(**given)


def test_rows_are_refused_where_there_are_none():
    config = TrainConfig(env=EASY, curriculum="rows")
    rows = plan_evaluation(config).training[0]
    with pytest.raises(BadValue, match="curriculum='rows' needs a data set"):
        curriculum_items(config, config.envs[0], rows)


TINY = {"steps": 2, "batch": 8, "minibatch": 8, "imitation_steps": 2, "eval_episodes": 4, "checkpoint_every": 1}
LEVELS = {"env": [EASY, SUMS], "curriculum": "levels", "max_new_tokens": 12}
ROWS = {"env": "qa:Facts", "curriculum": "rows", "group_size": 2, "advantage": "grpo", "max_new_tokens": 12}
SEEDS = {"env": EASY, "curriculum": "seeds"}


@pytest.mark.train
@pytest.mark.parametrize("given", [LEVELS, ROWS, SEEDS], ids=["levels", "rows", "seeds"])
def test_a_run_with_a_curriculum_resumes_identically(given: dict[str, object], tmp_path: Path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(gem.rl.data.evaluation, "POOL", 3)
    from gem.rl.run.trainer import Trainer
    from training_runs import resumed_copy, timeless

    with Trainer.start(TrainConfig(name="whole", out=str(tmp_path), **TINY, **given)) as trainer:
        trainer.run()
        seeds = set(trainer.mixture.items[0].seeds) if trainer.mixture.items else set()
    rows = timeless(trainer.folder.path)
    assert timeless(resumed_copy(trainer.folder.path)) == rows
    if given is LEVELS:
        assert all(sum(row["levels"].values()) == pytest.approx(1.0) for row in rows)
    else:
        kept = (tmp_path / "whole" / "trajectories.jsonl").read_text().splitlines()
        assert {json.loads(line)["seed"] for line in kept} <= seeds
