"""Which tasks an evaluation asks: rows of a data set, or seeds of an environment that generates its tasks.

A task has an id that is a hash of its environment, its arguments and its content, so that two runs can be compared task
by task and a resumed run notices changed data. The seeds of generated tasks are hashes, which training does not use.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gem._internal.counts import check_count
from gem._internal.json_codec import encode
from gem._internal.typed import Count, check_fields
from gem.core import Env, EnvWrapper, Info
from gem.datasets import HasBaseline, HasRows, MissingData, Rows, Stream
from gem.datasets.load import content_hash, has_splits
from gem.errors import BadValue, UnknownArgument
from gem.evaluation.versions import digest
from gem.policies import Policy, oracle
from gem.registry import ENV_REGISTRY, make
from gem.seeding import derive, permuted
from gem.tools.search.tool import URL_VARIABLE
from gem.wrappers import get_wrapper_fns
from gem.wrappers.wrapper_factory import wrapper_names

Wrap = Callable[[Any], Any]
_STREAMS = frozenset({"seed", "episode", "rng", "action_rng"})  # what differs between equal episodes in get_state()
HELD_OUT_SPLITS = ("test", "validation")  # used instead of the split "train" where they exist


@dataclass(frozen=True, kw_only=True)
class EvalEnv:
    """One environment of an evaluation, in one setting.

    Args:
        id: registered id.
        name: name in reports; None for the id, a ``dataset_name`` of kwargs in parentheses, and the wrappers.
        limit: maximum number of tasks; None for the limit of the evaluation.
        wrappers: comma-separated names of WRAPPER_FACTORY, innermost first.
        kwargs: constructor arguments, as JSON has them.

    Raises:
        BadValue: a value of the wrong type or out of range, or an argument that JSON does not have.
    """

    id: str
    name: str | None = None
    limit: Count | None = None
    wrappers: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)
        for name, value in self.kwargs.items():
            try:
                json.dumps(value)
            except TypeError as e:
                way = "gem.register() gives an id to an environment with such arguments"
                raise BadValue(f"the argument {name!r} of {self.id} must be a value of JSON: {e}; {way}") from e

    @property
    def label(self) -> str:
        source = self.kwargs.get("dataset_name")
        return self.name or with_wrappers(f"{self.id}({source})" if source else self.id, self.wrappers)


def with_wrappers(name: str, wrappers: str) -> str:
    """Return the name of an environment with comma-separated wrappers.

    >>> with_wrappers("qa:Facts", "search_tool, concat")
    'qa:Facts+search_tool+concat'
    """
    return "+".join([name, *wrapper_names(wrappers)])


@dataclass(frozen=True)
class Task:
    """A task: its id, and the seed of the reset that asks it."""

    id: str
    seed: int


@dataclass(frozen=True)
class TaskSet:
    """The tasks of one environment.

    Args:
        kwargs: constructor arguments of the environment that asks them.
        wraps: wrappers, innermost first.
        description: what is asked, for people.
        has_tools: whether wraps has tools besides those of env.
        policy: plays these tasks instead of the policy of the evaluation; None for that one.
        data: file or folder of the rows, and a hash of its content; None for rows of gem, the hub or arguments.
    """

    env: EvalEnv
    tasks: Sequence[Task]
    kwargs: Mapping[str, Any]
    wraps: Sequence[Wrap]
    description: str
    has_tools: bool = False
    policy: Policy | None = None
    data: Mapping[str, str] | None = None

    @property
    def hash(self) -> str:
        """A hash of the tasks."""
        return digest("".join(task.id for task in self.tasks).encode())


def plan_tasks(
    env: EvalEnv,
    limit: int,
    *,
    innermost: Sequence[Wrap] = (),
    tokenizer: Any = None,
    native_tools: bool = False,
) -> TaskSet:
    """Choose the tasks of an environment.

    A data set is asked in a random order that is the same in every run, so that a limit takes a random sample. It is
    its split "test" or "validation" if the environment would take "train" and no split is given.

    Args:
        limit: maximum number of tasks, if env has none of its own.
        innermost: wrappers to put below those of env.
        tokenizer: for wrappers that render a chat template.
        native_tools: see get_wrapper_fns().

    Raises:
        BadValue: for a limit below 1, or a search tool without a search server.
        Exception: any exception of gem.make and get_wrapper_fns.
    """
    limit = limit if env.limit is None else env.limit
    check_count("limit", limit)
    wraps = [*innermost, *get_wrapper_fns(env.wrappers, tokenizer, native_tools=native_tools)]
    searches = {"search_tool", "search_tool_no_int_reward"} & {*wrapper_names(env.wrappers)}
    if searches and not os.environ.get(URL_VARIABLE):  # else the first call would stop the run
        raise BadValue(f"{env.label} needs a search server: set {URL_VARIABLE}, such as http://localhost:8000/retrieve")
    data = _data_of(env)
    made, kwargs = _make_held_out(env)
    with made:
        rows = rows_of(made)
        if rows is None or rows.generated:
            seeds = list(range(limit)) if reads_stream(made) else held_out_seeds(limit)
            description = f"{limit:,} fresh seeds{repetition(made)}"
            return TaskSet(env, generated_tasks(env, made, seeds), kwargs, wraps, description)
        numbers = [permuted(i, len(rows), "evaluation") for i in range(min(limit, len(rows)))]
        baseline = baseline_of(made, numbers)
    tasks = identified(env, [(i, _content(rows[number], number)) for i, number in enumerate(numbers)])
    split = f" of the split {kwargs['split']!r}" if "split" in kwargs and not _is_file(env) else ""
    source = f" of {data['file']} (hash {data['hash']})" if data is not None else ""
    asked = partial(ask_only, numbers=numbers, shuffle=False)
    if ENV_REGISTRY[env.id].runs != "process":  # the slots share the loaded rows
        kwargs = {**kwargs, "dataset": rows}
    description = f"{len(tasks):,} of {len(rows):,} rows{split}{source}{baseline}"
    return TaskSet(env, tasks, kwargs, [asked, *wraps], description, data=data)


def held_out_seeds(count: int) -> list[int]:
    """Return seeds for evaluation, the same in every run."""
    return [derive("held-out", i) for i in range(count)]


def rows_of(env: Any) -> Rows | None:
    """Return the rows of an environment over a data set with random access, or None."""
    inner = env.unwrapped
    return inner.dataset if isinstance(inner, HasRows) and isinstance(inner.dataset, Rows) else None


def reads_stream(env: Any) -> bool:
    """Return whether an environment reads its rows from a stream."""
    inner = env.unwrapped
    return isinstance(inner, HasRows) and isinstance(inner.dataset, Stream)


def baseline_of(env: Any, numbers: Sequence[int]) -> str:
    """Return what an agent that does nothing scores on these rows, if the environment says so."""
    inner = env.unwrapped
    return f"; {inner.baseline_score(numbers)}" if isinstance(inner, HasBaseline) else ""


def repetition(env: Any) -> str:
    """Return why fresh seeds may play what training has played, or nothing."""
    if reads_stream(env):
        return "; rows of a stream cannot be held back, so training may have asked them"
    instances = env.instances()
    return "" if instances is None else f"; there are only {instances:,} different episodes, which training plays too"


def ask_only(env: Any, *, numbers: Sequence[int], shuffle: bool = True) -> Any:
    """Restrict an environment over a data set to these rows, and return it."""
    env.unwrapped.ask_only(numbers, shuffle=shuffle)
    return env


class OracleActions(EnvWrapper):
    """Makes sample_random_action() return the action of the environment's oracle."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._oracle, self._observation = oracle(env), ""

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        self._observation, info = super().reset(seed, **kwargs)
        return self._observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        step = super().step(action)
        self._observation = step[0]
        return step

    def sample_random_action(self) -> str:
        return self._oracle.act(self._observation)


def _make_held_out(env: EvalEnv) -> tuple[Env, dict[str, Any]]:
    """Make an environment, with a held-out split instead of "train" if there is one; return it and its arguments."""
    kwargs, spec = dict(env.kwargs), ENV_REGISTRY[env.id]
    taken = spec.kwargs.get("split", "train" if has_splits(_source(env)) else None)
    if taken == "train" and "split" not in kwargs and not _is_file(env):
        for split in HELD_OUT_SPLITS:
            try:
                return make(env.id, **kwargs, split=split), {**kwargs, "split": split}
            except MissingData:
                break  # the whole data set is missing; make() without a split says so
            except (BadValue, UnknownArgument):
                continue
    return make(env.id, **kwargs), kwargs


def _source(env: EvalEnv) -> str:
    """Return the name of an environment's data set; "" if it has none, or its rows are an argument."""
    given = {**ENV_REGISTRY[env.id].kwargs, **env.kwargs}
    return str(given.get("dataset_name") or "") if given.get("dataset") is None else ""


def _is_file(env: EvalEnv) -> bool:
    """Return whether an environment's data set is a file, which has no splits."""
    return bool(_source(env)) and not has_splits(_source(env))


def _data_of(env: EvalEnv) -> dict[str, str] | None:
    found = content_hash(source) if (source := _source(env)) else None
    return None if found is None else {"file": source, "hash": found}


def identified(env: EvalEnv, contents: Sequence[tuple[int, Any]]) -> list[Task]:
    """Return tasks with ids from pairs of a seed and its content. Equal contents get different ids by their count."""
    tasks, seen = [], Counter[str]()
    for seed, content in contents:
        text = json.dumps([env.id, dict(env.kwargs), content], sort_keys=True)
        seen[text] += 1
        tasks.append(Task(digest(f"{text}{seen[text]}".encode()), seed))
    return tasks


def generated_tasks(env: EvalEnv, made: Any, seeds: Sequence[int]) -> list[Task]:
    """Return tasks with ids. Equal episodes have the same id if the environment says that they are few."""
    if made.instances() is None:
        return identified(env, [(seed, {"seed": seed}) for seed in seeds])
    return [task for seed in seeds for task in identified(env, [(seed, _episode(made, seed))])]


def _episode(made: Any, seed: int) -> Any:
    """Return the state that a reset with this seed starts in, without the random streams."""
    made.reset(seed=seed)
    try:
        state = made.unwrapped.get_state()
    except NotImplementedError:
        return {"seed": seed}
    return encode({name: value for name, value in state.items() if name not in _STREAMS})


def _content(row: Any, number: int) -> Any:
    try:
        return encode(dict(row))
    except BadValue:  # a value that is no plain data
        return {"row": number}
