"""Which episodes an evaluation plays, so that none of them is also trained on where that can be had.

A data set is split by row. Environments that generate their tasks have only seeds, which may give an episode that
training has played as well; the description says so where that is likely.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gem.datasets.rows import Without, hold_back
from gem.errors import BadValue
from gem.evaluation.tasks import (
    EvalEnv,
    TaskSet,
    Wrap,
    ask_only,
    generated_tasks,
    held_out_seeds,
    identified,
    plan_tasks,
    reads_stream,
    repetition,
    rows_of,
)
from gem.registry import ENV_REGISTRY, make
from gem.rl.config import TrainConfig
from gem.rl.environments import EvalSetting, TrainEnv, wrapper_fns
from gem.seeding import derive, permuted

HELD_BACK = 0.1  # share of the rows of a data set that is held back from training for the evaluation
POOL = 64  # seeds of a curriculum over seeds


@dataclass(frozen=True)
class EvalSet:
    """The episodes of one set of an evaluation.

    Args:
        env: the environment and its setting.
        seeds: one seed per episode, the same in every run.
        description: what is played, for people.
        kwargs: constructor arguments of the environment.
        rows: wraps each environment; seed i then asks the i-th row of the set.
    """

    env: EvalSetting
    seeds: Sequence[int]
    description: str
    kwargs: Mapping[str, Any]
    rows: Sequence[Wrap] = ()


@dataclass(frozen=True, kw_only=True)
class TrainingRows:
    """The rows that an environment asks in training.

    Args:
        numbers: numbers of the rows; None if tasks are generated or read from a stream.
        wraps: wraps each environment; restricts it to these rows.
    """

    numbers: Sequence[int] | None = None
    wraps: Sequence[Wrap] = ()


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The sets of an evaluation, and the rows that are left for each of the environments of training."""

    sets: Sequence[EvalSet]
    training: Sequence[TrainingRows]

    @property
    def description(self) -> str:
        """What is played, for people."""
        if len(self.sets) == 1:
            return self.sets[0].description
        return "; ".join(f"{part.env.label}: {part.description}" for part in self.sets)


def plan_evaluation(config: TrainConfig) -> Evaluation:
    """Choose the episodes of the evaluations of a run: another split, rows that are held back, or fresh seeds.

    Raises:
        BadValue: a split does not fit its environment, or no row can be held back.
    """
    held_back = {env.id for env in config.eval_sets if env.split is None}
    training = [_training_rows(config, env, env.id in held_back) for env in config.envs]
    return Evaluation(sets=[_eval_set(config, env) for env in config.eval_sets], training=training)


def evaluation_tasks(config: TrainConfig, tokenizer: Any = None) -> list[TaskSet]:
    """Return the episodes that the evaluations of a run play, for gem.evaluate.

    Args:
        tokenizer: for wrappers that render a chat template.

    Raises:
        BadValue: as plan_evaluation().
    """
    return [_task_set(part, tokenizer) for part in plan_evaluation(config).sets]


def _task_set(part: EvalSet, tokenizer: Any) -> TaskSet:
    split = {} if part.env.split is None else {"split": part.env.split}
    env = EvalEnv(
        id=part.env.id, name=part.env.label, wrappers=part.env.wrappers or "", kwargs={**part.env.kwargs, **split}
    )
    if part.rows:
        tasks = identified(env, [(seed, {"row": seed, "of": part.description}) for seed in part.seeds])
    else:
        with make(env.id, **part.kwargs) as made:
            tasks = generated_tasks(env, made, part.seeds)
    wraps = [*part.rows, *wrapper_fns(part.env, tokenizer)]
    return TaskSet(env, tasks, part.kwargs, wraps, f"the evaluation of the run: {part.description}")


def group_order(config: TrainConfig, env: TrainEnv, rows: TrainingRows) -> tuple[Sequence[Wrap], Callable[[int], int]]:
    """Return what wraps an environment of training if groups are compared, and a function from a group to its seed.

    Each row of a data set is asked by one group per epoch, in a random order.

    Raises:
        BadValue: the rows are read from a stream, which cannot ask a row again.
    """
    numbers = rows.numbers
    if numbers is not None:
        count = len(numbers)
        wrap = partial(ask_only, numbers=numbers, shuffle=False)
        return [wrap], lambda group: permuted(group % count, count, config.seed, "groups", group // count)
    with make(env.id, **env.kwargs) as made:
        if reads_stream(made):
            option = f"advantage={config.advantage!r}" if config.groups == 1 else f"group_size={config.groups}"
            raise BadValue(f"{option} needs rows with random access; {env.id} reads a stream")
    return (), lambda group: derive(config.seed, "group", group)


def curriculum_items(config: TrainConfig, env: TrainEnv, rows: TrainingRows) -> tuple[Sequence[Wrap], Sequence[int]]:
    """Return what wraps an environment of training under a curriculum over rows or seeds, and the seed of each item.

    Raises:
        BadValue: rows are asked for and the environment has none with random access.
    """
    if config.curriculum == "seeds":
        return rows.wraps, [derive(config.seed, "pool", item) for item in range(POOL)]
    if rows.numbers is None:
        raise BadValue(f"curriculum='rows' needs a data set with random access; {env.id} has none")
    return [partial(ask_only, numbers=rows.numbers, shuffle=False)], range(len(rows.numbers))


def _training_rows(config: TrainConfig, env: TrainEnv, hold: bool) -> TrainingRows:
    with make(env.id, **env.kwargs) as made:
        rows = rows_of(made)
    if rows is None or rows.generated:
        return TrainingRows()
    if not hold:
        return TrainingRows(numbers=range(len(rows)))
    numbers = Without(len(rows), hold_back(rows, HELD_BACK))
    return TrainingRows(numbers=numbers, wraps=[partial(ask_only, numbers=numbers)])


def _eval_set(config: TrainConfig, env: EvalSetting) -> EvalSet:
    assert env.episodes is not None
    trained = [other for other in config.envs if other.id == env.id]
    if env.split is not None or not trained:
        return _rows_or_seeds(env, trained)
    with make(env.id, **env.kwargs) as made:
        rows = rows_of(made)
        if rows is None or rows.generated:
            description = f"{env.episodes:,} fresh seeds{repetition(made)}"
            return EvalSet(env, held_out_seeds(env.episodes), description, env.kwargs)
    asked = hold_back(rows, HELD_BACK)[: env.episodes]
    description = f"{len(asked):,} of {len(rows):,} rows, held back from training"
    return EvalSet(env, range(len(asked)), description, env.kwargs, [partial(ask_only, numbers=asked, shuffle=False)])


def _rows_or_seeds(env: EvalSetting, trained: Sequence[TrainEnv]) -> EvalSet:
    """Choose the episodes of a split, or of an environment that is not trained on."""
    for other in trained:
        if other.kwargs.get("split", ENV_REGISTRY[env.id].kwargs.get("split")) == env.split:
            raise BadValue(f"eval_split must differ from the split that is trained on, got {env.split!r}")
    split = {} if env.split is None else {"split": env.split}
    assert env.episodes is not None
    tasks = plan_tasks(EvalEnv(id=env.id, kwargs={**env.kwargs, **split}), env.episodes)
    if split and not tasks.wraps:
        raise BadValue(f"eval_split={env.split!r} needs a data set with random access; {env.id} has none")
    if split and not _has_splits(env):
        raise BadValue(f"eval_split={env.split!r}: {env.id} has no splits; without a split, rows are held back")
    return EvalSet(env, [task.seed for task in tasks.tasks], tasks.description, tasks.kwargs, tasks.wraps)


def _has_splits(env: EvalSetting) -> bool:
    """Return whether the data set refuses an unknown split. A single file returns all its rows for any split."""
    try:
        with make(env.id, **{**env.kwargs, "split": "no such split"}):
            return False
    except BadValue:
        return True
