"""Tasks as rows of a framework's dataset, and the environments that play them.

A row holds the id of an environment and the seed of its reset. The members of a group are copies of one row, so that
they start from the same state. EpisodePool plays rows in the event loop of a framework.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache, partial
from typing import Any, cast

from gem._internal.inbound import loads
from gem._internal.text import short_repr
from gem.conversation import ChatFormat, History
from gem.conversation.history import FULL_HISTORY
from gem.core import waits
from gem.errors import BadValue, InfraError, did_you_mean
from gem.policies import AsyncPolicy, Policy, Reply, Request, is_async
from gem.registry import ENV_REGISTRY, make
from gem.rollout import StepwiseEpisode, play_episode, play_seeds
from gem.seeding import check_seed, derive, permuted
from gem.trajectory import Trajectory
from gem.vector import VectorEnv
from gem.wrappers.wrapper_factory import get_wrapper_fns

ATTEMPTS = 3  # how often an episode that fails is played before InfraError is raised


@dataclass(frozen=True, kw_only=True)
class EnvTask:
    """An environment and the seed of one of its episodes.

    Args:
        env_id: a registered id.
        seed: of the reset. Rows with the same seed start from the same state.
        wrappers: names for get_wrapper_fns(), innermost first; those that render a chat template use the tokenizer of
            the framework.
        env_kwargs: constructor arguments; plain data.
    """

    env_id: str
    seed: int
    wrappers: str = ""
    env_kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def from_row(cls, row: Mapping[str, Any] | str) -> EnvTask:
        """Read a task from a row of a dataset, which may have other columns; or from the text of to_json().

        Datasets fill in missing values of nested columns with None, so None counts as absent.

        Raises:
            BadValue: a column is missing or has another type.
        """
        data = _parsed(row) if isinstance(row, str) else row
        given = {name: data[name] for name in _COLUMNS if data.get(name) is not None}
        if missing := sorted({"env_id", "seed"} - set(given)):
            raise BadValue(f"a row needs env_id and seed, {' and '.join(missing)} missing in {sorted(data)}")
        arguments = given.get("env_kwargs", {})
        arguments = _parsed(arguments) if isinstance(arguments, str) else arguments
        kinds = {type(given["env_id"]), type(given.get("wrappers", ""))}
        if not isinstance(arguments, Mapping) or kinds != {str}:
            raise BadValue(f"env_id and wrappers are text, env_kwargs is an object, got {short_repr(given, 200)}")
        given["env_kwargs"] = {name: value for name, value in arguments.items() if value is not None}
        if given["env_id"] not in ENV_REGISTRY:
            hint = did_you_mean(given["env_id"], ENV_REGISTRY)
            raise BadValue(f"no env {given['env_id']!r}{hint}; `gem list` shows all")
        return cls(**{**given, "seed": check_seed(given["seed"])})

    def to_row(self) -> dict[str, Any]:
        """Return the columns of a dataset. env_kwargs is JSON, because datasets need one type per column."""
        return {**asdict(self), "env_kwargs": json.dumps(dict(self.env_kwargs))}

    def to_json(self) -> str:
        """Return the task as text, for frameworks that pass one column of text, such as OpenRLHF's label."""
        return json.dumps(asdict(self))

    def build(self, tokenizer: Any = None) -> Any:
        """Build the environment, without its seed."""
        env = make(self.env_id, **self.env_kwargs)
        for wrap in get_wrapper_fns(self.wrappers, tokenizer=tokenizer):
            env = wrap(env)
        return env

    def episode(self, tokenizer: Any = None, **options: Any) -> StepwiseEpisode:
        """Build the environment as an episode that is advanced from outside; see StepwiseEpisode for the options."""
        episode = StepwiseEpisode(lambda: self.build(tokenizer), **options)
        episode.inline = ENV_REGISTRY[self.env_id].runs == "inline" and not waits(episode.env) and not self.wrappers
        return episode

    def key(self) -> str:
        """Return the environment as text, without the seed. Tasks with the same key can share an environment."""
        return json.dumps([self.env_id, self.wrappers, dict(self.env_kwargs)], sort_keys=True)


_COLUMNS = tuple(f.name for f in fields(EnvTask))


def make_tasks(
    env_ids: str | Mapping[str, float], number: int, *, seed: int = 0, wrappers: str = "", **env_kwargs: Any
) -> list[EnvTask]:
    """Return the tasks of a training set, all with different seeds, which fit in 31 bits.

    Args:
        env_ids: one id, or a mixture {id: weight}. The order of the environments is shuffled.
        number: number of tasks.
        seed: another seed gives other tasks.
        wrappers, env_kwargs: for all tasks; see EnvTask.

    Raises:
        BadValue: for no task, or a mixture without positive weights.
    """
    weights = {env_ids: 1.0} if isinstance(env_ids, str) else dict(env_ids)
    if number < 1 or not weights or min(weights.values()) <= 0:
        raise BadValue(f"make_tasks needs at least one task and positive weights, got {number} and {weights}")
    total, counted, ids = sum(weights.values()), 0.0, list[str]()
    for env_id, weight in weights.items():
        counted += weight
        ids += [env_id] * (round(number * counted / total) - len(ids))
    first = derive(seed, "tasks") % 2**30
    return [
        EnvTask(
            env_id=ids[permuted(i, number, seed, "mixture")], seed=first + i, wrappers=wrappers, env_kwargs=env_kwargs
        )
        for i in range(number)
    ]


def play_tasks(
    tasks: Sequence[EnvTask],
    policy: Policy,
    tokenizer: Any = None,
    *,
    max_slots: int = 256,
    history: History = FULL_HISTORY,
) -> tuple[list[Trajectory], int]:
    """Play one episode per task, all of an environment in one batch, for frameworks whose engine takes batches.

    An episode that fails is played again, up to ATTEMPTS times. One whose first prompt is over the limit of the policy
    ends as truncated, without a sampled token.

    Args:
        tokenizer: for wrappers that render a chat template.
        max_slots: maximum number of environments.

    Returns:
        The episodes in the order of the tasks, and the number of failed attempts.
    """
    fitting, failed = policy, 0
    if policy.max_prompt_tokens is not None:
        fitting = (_AsyncWithinLimit if is_async(policy) else _WithinLimit)(policy)
    same: dict[str, list[int]] = defaultdict(list)  # the tasks that use the same environment
    for i, task in enumerate(tasks):
        same[task.key()].append(i)
    played: dict[int, Trajectory] = {}
    for rows in same.values():
        first = tasks[rows[0]]
        build = [partial(first.build, tokenizer)] * min(len(rows), max_slots)
        probe = first.episode(tokenizer)
        probe.close()
        backend = "sync" if probe.inline else "thread"
        vec_env = VectorEnv.of(build, "disabled", backend=backend, on_failure="restart")
        episodes: list[Trajectory] = []
        try:
            for _ in range(ATTEMPTS):
                seeds = [tasks[i].seed for i in rows]
                episodes = play_seeds(vec_env, fitting, seeds, history=history, previous=episodes)
                down = sum(episode.failure is not None for episode in episodes)
                failed += down
                if not down:
                    break
        finally:
            vec_env.close()
        played |= zip(rows, episodes, strict=True)
    return [played[i] for i in range(len(tasks))], failed


class _WithinLimit:
    """A policy that answers "context_overflow" to a prompt over its limit, instead of refusing the whole batch."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.chat, self.max_prompt_tokens = policy, policy.chat, policy.max_prompt_tokens
        self.version = policy.version
        self.model_name, self.settings = getattr(policy, "model_name", None), getattr(policy, "settings", {})

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        fits = list(map(self.fits, requests))
        asked = [request for request, fit in zip(requests, fits, strict=True) if fit]
        replies = iter(self.policy.act(asked) if asked else [])
        return [next(replies) if fit else Reply("", finish="context_overflow") for fit in fits]

    def fits(self, request: Request) -> bool:
        return len(request.prompt_ids) <= cast(int, self.max_prompt_tokens)


class _AsyncWithinLimit(_WithinLimit):
    """The same for an AsyncPolicy, so that no episode waits for the replies of others."""

    def submit(self, request: Request) -> Future[Reply]:
        if self.fits(request):
            return cast(AsyncPolicy, self.policy).submit(request)
        refused = Future[Reply]()
        refused.set_result(Reply("", finish="context_overflow"))
        return refused


class EpisodePool:
    """Plays tasks in the event loop of a framework. Environments are built once and reset for each task.

    Args:
        tokenizer: the tokenizer of the model, to send token ids; None for engines that take messages.
        max_prompt_tokens, history: see StepwiseEpisode.
    """

    def __init__(
        self, tokenizer: Any = None, *, max_prompt_tokens: int | None = None, history: History = FULL_HISTORY
    ) -> None:
        self.tokenizer, self.chat = tokenizer, None if tokenizer is None else ChatFormat(tokenizer)
        self.max_prompt_tokens, self.history = max_prompt_tokens, history
        self.failed = 0  # episodes that failed and were played again
        self._free: dict[str, list[StepwiseEpisode]] = defaultdict(list)

    async def play(
        self, task: EnvTask, reply: Callable[[Request], Awaitable[Reply]], *, episode: int = 0
    ) -> Trajectory:
        """Play a task, and again if it fails.

        Args:
            reply: asks the engine.
            episode: number that differs between the members of a group; see StepwiseEpisode.reset().

        Raises:
            InfraError: the task failed ATTEMPTS times.
        """
        stepwise = self.take(task)
        try:
            for _ in range(ATTEMPTS):
                played = await play_episode(stepwise, reply, task.seed, group_id=task.seed, episode=episode)
                if played.failure is None:
                    return played
                self.failed += 1
            raise InfraError(f"{task.env_id} with seed {task.seed} failed {ATTEMPTS} times: {played.failure}")
        finally:
            self.give_back(task, stepwise)

    def reply(self, ids: Sequence[int], logprobs: Sequence[float] | None, finish: str | None) -> Reply:
        """Return what an engine sampled as a Reply; a failure if it aborted the request or sampled nothing.

        Args:
            logprobs: None for an engine that was not asked for them; they are 0.0 then.
        """
        ids = list(ids)
        if finish in ("abort", "aborted"):
            return Reply("", failure=f"the engine aborted the request ({finish})")
        if not ids:
            return Reply("", failure=f"the engine sampled nothing ({finish})")
        scores = [0.0] * len(ids) if logprobs is None else list(logprobs)
        return Reply(cast(ChatFormat, self.chat).decode(ids), ids, scores, finish)

    def take(self, task: EnvTask) -> StepwiseEpisode:
        """Return an environment for a task, for callers that advance it themselves. It is not reset."""
        free = self._free[task.key()]
        return free.pop() if free else self._build(task)

    def give_back(self, task: EnvTask, episode: StepwiseEpisode) -> None:
        """Keep an environment for other seeds of the task."""
        self._free[task.key()].append(episode)

    def close(self) -> None:
        """Close all environments that are not in use."""
        for episodes in self._free.values():
            while episodes:
                episodes.pop().close()

    def _build(self, task: EnvTask) -> StepwiseEpisode:
        limits = {"max_prompt_tokens": self.max_prompt_tokens, "history": self.history}
        return task.episode(self.tokenizer, chat=self.chat, **limits)


@lru_cache(maxsize=8)
def shared_pool(tokenizer: Any, max_prompt_tokens: int | None = None, history: History = FULL_HISTORY) -> EpisodePool:
    """Return one pool for all calls with these arguments, for frameworks that call a function for each episode."""
    return EpisodePool(tokenizer, max_prompt_tokens=max_prompt_tokens, history=history)


def _parsed(text: str) -> dict[str, Any]:
    try:
        data = loads(text, "a task")
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise BadValue(f"a task as text is a JSON object with env_id and seed, got {text[:80]!r}")
    return data
