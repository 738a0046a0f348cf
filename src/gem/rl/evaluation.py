"""Which episodes an evaluation plays, so that none of them is also trained on where that can be had.

A data set is split by row. Environments that generate their tasks have only seeds, which may give an episode that
training has played as well; the description says so where that is likely.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gem.datasets import Stream, Without, hold_back
from gem.errors import BadValue
from gem.evaluate.tasks import (
    EvalEnv,
    TaskSet,
    ask_only,
    generated_tasks,
    held_out_seeds,
    identified,
    repetition,
    rows_of,
)
from gem.registry import ENV_REGISTRY, make
from gem.rl.config import TrainConfig
from gem.seeding import derive, permuted
from gem.wrappers import get_wrapper_fns

Wrap = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The episodes of an evaluation.

    Args:
        seeds: one seed per episode, the same in every run.
        description: what is played, for people.
        env_kwargs: arguments of the environment, in addition to those of training.
        training_rows: wraps each training environment; restricts it to the rows that are not held back.
        trained: numbers of the rows that training asks; None if tasks are generated or read from a stream.
        held_out_rows: wraps each evaluation environment; seed i then asks the i-th row of the evaluation.
    """

    seeds: Sequence[int]
    description: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    training_rows: Sequence[Wrap] = ()
    trained: Sequence[int] | None = None
    held_out_rows: Sequence[Wrap] = ()


def plan_evaluation(config: TrainConfig) -> Evaluation:
    """Choose the episodes of the evaluations of a run: another split, rows that are held back, or fresh seeds.

    Raises:
        BadValue: eval_split does not fit the environment, or no row can be held back.
    """
    if config.eval_split is not None:
        return _other_split(config, config.eval_split)
    with make(config.env, **config.env_kwargs) as env:
        rows = rows_of(env)
        if rows is None or rows.generated:
            return _fresh_seeds(config.eval_episodes, repetition(env))
    held_back = hold_back(rows, config.eval_share)
    asked, trained = held_back[: config.eval_episodes], Without(len(rows), held_back)
    return Evaluation(
        seeds=range(len(asked)),
        description=f"{len(asked):,} of {len(rows):,} rows, held back from training",
        training_rows=[partial(ask_only, numbers=trained)],
        trained=trained,
        held_out_rows=[partial(ask_only, numbers=asked, shuffle=False)],
    )


def _other_split(config: TrainConfig, split: str) -> Evaluation:
    if config.env_kwargs.get("split", ENV_REGISTRY[config.env].kwargs.get("split")) == split:
        raise BadValue(f"eval_split must differ from the split that is trained on, got {split!r}")
    with make(config.env, **{**config.env_kwargs, "split": split}) as env:
        rows = rows_of(env)
    with make(config.env, **config.env_kwargs) as env:
        trained = None if (training := rows_of(env)) is None or training.generated else range(len(training))
    if rows is None:
        raise BadValue(f"eval_split={split!r} needs a data set with random access; {config.env} has none")
    asked = [permuted(i, len(rows), "evaluation") for i in range(min(config.eval_episodes, len(rows)))]
    return Evaluation(
        seeds=range(len(asked)),
        description=f"{len(asked):,} of {len(rows):,} rows of the split {split!r}",
        env_kwargs={"split": split},
        trained=trained,
        held_out_rows=[partial(ask_only, numbers=asked, shuffle=False)],
    )


def evaluation_tasks(config: TrainConfig, tokenizer: Any = None) -> TaskSet:
    """Return the episodes that the evaluations of a run play, for gem.evaluate.

    Args:
        tokenizer: for wrappers that render a chat template.

    Raises:
        BadValue: as plan_evaluation().
    """
    evaluation = plan_evaluation(config)
    kwargs = {**config.env_kwargs, **evaluation.env_kwargs}
    env = EvalEnv(id=config.env, wrappers=config.wrappers, kwargs=kwargs)
    if evaluation.held_out_rows:
        tasks = identified(env, [(seed, {"row": seed, "of": evaluation.description}) for seed in evaluation.seeds])
    else:
        with make(config.env, **kwargs) as made:
            tasks = generated_tasks(env, made, evaluation.seeds)
    wraps = [*evaluation.held_out_rows, *get_wrapper_fns(config.wrappers, tokenizer)]
    return TaskSet(env, tasks, kwargs, wraps, f"the evaluation of the run: {evaluation.description}")


def group_order(config: TrainConfig, evaluation: Evaluation) -> tuple[Sequence[Wrap], Callable[[int], int]]:
    """Return what wraps the training environments if groups are compared, and a function from a group to its seed.

    Each row of a data set is asked by one group per epoch, in a random order.

    Raises:
        BadValue: the rows are read from a stream, which cannot ask a row again.
    """
    numbers = evaluation.trained
    if numbers is not None:
        count = len(numbers)
        wrap = partial(ask_only, numbers=numbers, shuffle=False)
        return [wrap], lambda group: permuted(group % count, count, config.seed, "groups", group // count)
    with make(config.env, **config.env_kwargs) as env:
        if isinstance(getattr(env.unwrapped, "dataset", None), Stream):
            raise BadValue(f"group_size={config.group_size} needs rows with random access; {config.env} reads a stream")
    return (), lambda group: derive(config.seed, "group", group)


def _fresh_seeds(episodes: int, caution: str) -> Evaluation:
    return Evaluation(seeds=held_out_seeds(episodes), description=f"{episodes:,} fresh seeds{caution}")
