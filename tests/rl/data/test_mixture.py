"""Mixtures of environments: shares, settings of each environment, metrics, and reproducible runs."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from gem.errors import CallerError
from gem.rl.config import TrainConfig
from gem.rl.data.mixture import players, split_by_weight
from gem.rl.run.learner import Learner
from gem.rl.run.trainer import Trainer
from gem.trajectory import read_jsonl
from training_runs import resumed_copy, run_of, timeless

pytestmark = pytest.mark.train

EASY, ROWS = "game:GuessTheNumber-v0-easy", "math:Arithmetic"
TINY = {"steps": 2, "batch": 8, "minibatch": 8, "imitation_steps": 6, "eval_episodes": 4, "eval_every": 2}
TINY |= {"checkpoint_every": 1, "max_new_tokens": 12}
MIXED = {"env": [f"{EASY}=3", ROWS]}


def test_parts_are_proportional_to_the_weights_and_their_mean_is_exact():
    offsets = [(i + 0.5) / 1000 for i in range(1000)]
    parts = [split_by_weight([3, 1, 0, 2.5], 10, offset) for offset in offsets]
    assert {sum(part) for part in parts} == {10}
    means = [sum(part[i] for part in parts) / 1000 for i in range(4)]
    assert means == pytest.approx([10 * weight / 6.5 for weight in (3, 1, 0, 2.5)], abs=2e-3)
    assert all(max(part[i] for part in parts) - min(part[i] for part in parts) <= 1 for i in range(4))


def test_a_mixture_has_metrics_of_each_environment_and_together(tmp_path: Path):
    rows = timeless(run_of(TrainConfig(out=str(tmp_path), name="mixed", **TINY, **MIXED)))
    for row in rows:
        parts = row["envs"]
        assert list(parts) == [EASY, ROWS] and sum(part["episodes"] for part in parts.values()) == 8
        total = sum(part["reward"] * part["episodes"] for part in parts.values())
        assert row["reward"] == pytest.approx(total / 8)
    assert sum(row["envs"][EASY]["episodes"] for row in rows) == 12
    evaluated = rows[-1]["eval"]
    assert set(evaluated["sets"]) == {EASY, ROWS} and set(evaluated["sets"][ROWS]) == {"greedy", "sampled"}
    kept = list(read_jsonl(tmp_path / "mixed" / "trajectories.jsonl"))
    assert {t.env_id for t in kept[:2]} == {EASY, ROWS}, "the kept episodes are of all environments"


def test_a_mixture_resumes_bit_identically(tmp_path: Path):
    more = {"advantage": "grpo", "group_size": 2, "slots": 3}
    whole = run_of(TrainConfig(out=str(tmp_path), name="whole", **TINY, **MIXED, **more))
    assert timeless(resumed_copy(whole)) == timeless(whole)


def test_the_settings_of_each_environment_apply_to_its_episodes(tmp_path: Path):
    envs = [
        {"id": EASY, "name": "short", "max_turns": 1, "max_new_tokens": 3, "kwargs": {"on_unreadable": "continue"}},
        {"id": EASY, "name": "shown", "wrappers": "concat_chat", "max_new_tokens": 5, "max_context": 200},
    ]
    config = TrainConfig(out=str(tmp_path), name="r", **TINY | {"env": envs, "imitation_steps": 0})
    with Trainer.start(config) as trainer:
        batch = trainer.mixture.collect(players(config, trainer.policy), 40, 0)
    parts = [[t for t, env in zip(batch.trajectories, batch.envs, strict=True) if env == i] for i in (0, 1)]
    assert [len(part) for part in parts] == [20, 20]
    short, shown = ([turn for t in part for turn in t.turns] for part in parts)
    assert len(short) == 20 and max(len(turn.sampled_ids) for turn in short) <= 3 < len(shown[0].sampled_ids) <= 5
    assert {t.stop_reason for t in parts[0]} <= {"max_turns", "solved"}
    assert "<|user|>" in shown[0].observation


def test_advantages_use_the_discount_and_the_statistics_of_each_environment(tmp_path: Path):
    envs = [{"id": EASY, "gamma": 0.5}, {"id": ROWS, "gamma": 1.0}]
    config = TrainConfig(out=str(tmp_path), name="r", advantage="returns", **TINY | {"env": envs, "imitation_steps": 0})
    with Trainer.start(config) as trainer:
        batch = trainer.mixture.collect(players(config, trainer.policy), 8, 0)
        for trajectory in batch.trajectories:
            trajectory.turns = [trajectory.turns[0]] * 2
            trajectory.turns[0].reward = 1.0
        _, episodes = trainer.learner.prepare(batch.trajectories, batch.envs)
        advantages = trainer.learner._advantages(episodes, batch.envs)
        assert [a.tolist() for a in advantages] == [[1.5, 1.0]] * 4 + [[2.0, 1.0]] * 4
        centered = Learner(TrainConfig(**TINY | {"env": envs, "advantage": "rebn"}), trainer.policy)
        for episode, env in zip(episodes, batch.envs, strict=True):
            episode.rewards_K[:] = [float(env), float(env)]
        assert sum(abs(a).sum() for a in centered._advantages(episodes[4:], batch.envs[4:])) > 0
        twins = centered._advantages(episodes, batch.envs)
        assert sum(abs(a).sum() for a in twins[:4]) == 0.0, "equal rewards, whatever the other environment pays"


def test_the_tokenizer_and_the_warm_up_cover_all_environments(tmp_path: Path):
    config = TrainConfig(out=str(tmp_path), name="r", **TINY | MIXED | {"max_new_tokens": None})
    with Trainer.start(config) as trainer:
        batch = trainer._mixture("imitation", 4, 1).collect(players(config, trainer.policy), 8, 0)
        assert {t.env_id for t in batch.trajectories} == {EASY, ROWS}
        observation = trainer.mixture.collectors[1].vec_env.reset()[0][0]
        assert len(trainer.policy.tokenizer.encode(observation)) < len(observation) / 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"env": [f"{EASY}=0", f"{ROWS}=0"]}, f"weights of env .*{EASY}=0"),
        ({"env": [f"{EASY}=-1", ROWS]}, "at least 0.*got -1.0"),
        ({"env": [EASY, EASY]}, f"env has '{EASY}' 2 times; give each a name"),
        ({"env": [f"{EASY}=many"]}, f"ID or ID=WEIGHT.*'{EASY}=many'"),
        ({"env": [{"id": EASY, "wieght": 1}]}, "env 1: .*'wieght'.*'weight'"),
        ({"env": [{"id": EASY, "max_turns": "2"}]}, "env 1: max_turns .*int.*'2'"),
        ({"env": [{"id": EASY, "gamma": 1.5}]}, "gamma .*at most 1.*got 1.5"),
        ({"env": [EASY, {"id": ROWS, "wrappers": "concat,concat_chat"}]}, "concat and concat_chat .*history"),
        ({"env": [EASY, {"id": ROWS, "wrappers": "concat, python_tool"}]}, "python_tool .*before concat"),
        ({"env": [EASY, "math:Arithmatic"]}, "did you mean 'math:Arithmetic'"),
        ({"env": [EASY, "vision:Charts"]}, "cannot train on vision:Charts"),
        ({"env": [EASY, ROWS], "batch": 1, "minibatch": 1}, "batch=1 .*2 environments"),
    ],
)
def test_a_bad_mixture_is_refused_before_anything_is_written(given: dict[str, object], message: str, tmp_path: Path):
    with pytest.raises(CallerError, match=message):
        Trainer.start(TrainConfig(out=str(tmp_path / "runs"), **TINY | given))
    assert not (tmp_path / "runs").exists()


def test_the_results_of_a_mixture_name_each_set(tmp_path: Path, capsys):
    from gem.cli import main

    flags = [f"--{name.replace('_', '-')}={value}" for name, value in (TINY | {"steps": 1}).items()]
    flags += ["--env", EASY, f"{ROWS}=0.5", "--eval-env", "qa:Facts", EASY, "--eval-temperature", "0.5"]
    assert main(["train", "--out", str(tmp_path), "--name", "r", *flags, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["trained"]) == {"temperature 0.5", "sampled", "sets"}
    assert result["evaluation"].startswith(f"qa:Facts: 4 of 450 rows; {EASY}: 4 fresh seeds; ")
    assert " 10 different episodes" in result["evaluation"]
