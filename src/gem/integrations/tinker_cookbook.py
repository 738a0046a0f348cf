"""tinker-cookbook: groups of environments for its training loop, ``tinker_cookbook.rl.train``.

The cookbook samples, gem writes the contexts: each observation is the previous one, the sampled tokens and the new
messages, so that the cookbook packs an episode into one datum. The reward of each step is handed over, and its loop
adds them up: one advantage per episode, the total reward minus the mean of the group. gem.integrations.tinker trains on
an advantage per turn instead. Environments are text only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from gem.conversation import ChatFormat
from gem.errors import InfraError, require
from gem.integrations.shared.tasks import EnvTask, make_tasks
from gem.integrations.shared.versions import check_framework
from gem.policies import Reply

check_framework("tinker_cookbook")
chz: Any = require("chz", extra="train")
tinker: Any = require("tinker", extra="train")
types: Any = require("tinker_cookbook.rl.types", extra="train")
# How gem ends episodes, in the words of the cookbook's metrics stop/…
_STOPS = {"max_turns": "max_turns", "max_tokens": "context_overflow", "format": "parse_error"}


class CookbookEnv(types.Env):  # type: ignore[misc]
    """One episode of a task.

    Args:
        task: the task.
        tokenizer: the tokenizer of the model.
        max_prompt_tokens: maximum length of a context; a longer one ends the episode. None for no limit.
    """

    def __init__(self, task: EnvTask, tokenizer: Any, max_prompt_tokens: int | None = None) -> None:
        self.task, self.chat = task, ChatFormat(tokenizer)
        self.episode = task.episode(tokenizer, chat=self.chat, max_prompt_tokens=max_prompt_tokens)

    async def initial_observation(self) -> Any:
        await self._call(partial(self.episode.reset, self.task.seed, group_id=self.task.seed))
        if self.episode.trajectory.failure is not None:
            raise InfraError(f"{self.task.env_id} failed on reset: {self.episode.trajectory.failure}")
        if self.episode.over:
            return types.InitialObservationOverflow(0.0, {"stop/context_overflow": 1.0})
        return self._observation(), sorted(self.chat.end_ids)

    async def step(self, action: list[int], *, extra: Any = None) -> Any:
        reply = Reply(self.chat.decode(action), action, finish=(extra or {}).get("stop_reason"))
        await self._call(partial(self.episode.step, reply))
        trajectory = self.episode.trajectory
        if trajectory.failure is not None:
            raise InfraError(f"{self.task.env_id} failed: {trajectory.failure}")
        metrics = {}
        if self.episode.over:
            reason = str(trajectory.stop_reason)
            metrics = {f"stop/{_STOPS.get(reason, 'completed')}": 1.0, "solved": float(trajectory.solved)}
            self.episode.close()
        next_observation = tinker.ModelInput.from_ints([]) if self.episode.over else self._observation()
        return types.StepResult(
            reward=trajectory.turns[-1].reward,
            episode_done=self.episode.over,
            next_observation=next_observation,
            next_stop_condition=sorted(self.chat.end_ids),
            metrics=metrics,
        )

    def _observation(self) -> Any:
        return tinker.ModelInput.from_ints(list(self.episode.request.prompt_ids))

    async def _call(self, function: Callable[[], None]) -> None:
        if self.episode.inline:
            function()
        else:
            await asyncio.to_thread(function)


@dataclass(frozen=True)
class CookbookGroupBuilder(types.EnvGroupBuilder):  # type: ignore[misc]
    """Builds the members of a group, which start from the same state. Can be pickled.

    Args:
        task: the task of all members.
        tokenizer: name or folder of the tokenizer.
        group_size: number of members.
        max_prompt_tokens: see CookbookEnv.
    """

    task: EnvTask
    tokenizer: str
    group_size: int
    max_prompt_tokens: int | None = None

    async def make_envs(self) -> Sequence[Any]:
        tokenizer = _load_tokenizer(self.tokenizer)
        return [CookbookEnv(self.task, tokenizer, self.max_prompt_tokens) for _ in range(self.group_size)]

    def logging_tags(self) -> list[str]:
        return [self.task.env_id]


class CookbookDataset(types.RLDataset):  # type: ignore[misc]
    """Batches of groups.

    Args:
        builders: the groups, in the order in which they are played.
        batch_size: groups of a batch; a rest smaller than a batch is not played.
    """

    def __init__(self, builders: Sequence[CookbookGroupBuilder], batch_size: int) -> None:
        self.builders, self.batch_size = builders, batch_size

    def get_batch(self, index: int) -> Sequence[CookbookGroupBuilder]:
        return self.builders[index * self.batch_size : (index + 1) * self.batch_size]

    def __len__(self) -> int:
        return len(self.builders) // self.batch_size


@chz.chz
class CookbookDatasetBuilder(types.RLDatasetBuilder):  # type: ignore[misc]
    """The ``dataset_builder`` of ``tinker_cookbook.rl.train.Config``.

    Args:
        env_id: a registered id.
        tokenizer: name or folder of the tokenizer.
        num_tasks, num_test_tasks: numbers of seeds for training and for tests; no seed is in both.
        batch_size, group_size: groups of a batch, and members of a group.
        seed: of all tasks.
        wrappers: see gem.integrations.shared.tasks.EnvTask.
        max_prompt_tokens: see CookbookEnv.
    """

    env_id: str
    tokenizer: str
    num_tasks: int = 1024
    num_test_tasks: int = 0
    batch_size: int = 32
    group_size: int = 8
    seed: int = 0
    wrappers: str = ""
    max_prompt_tokens: int | None = None

    async def __call__(self) -> tuple[Any, Any]:
        tasks = make_tasks(self.env_id, self.num_tasks + self.num_test_tasks, seed=self.seed, wrappers=self.wrappers)
        train, test = tasks[: self.num_tasks], tasks[self.num_tasks :]
        tests = CookbookDataset(self._groups(test, 1), len(test)) if test else None
        return CookbookDataset(self._groups(train, self.group_size), self.batch_size), tests

    def _groups(self, tasks: Sequence[EnvTask], size: int) -> list[CookbookGroupBuilder]:
        return [CookbookGroupBuilder(task, self.tokenizer, size, self.max_prompt_tokens) for task in tasks]


@lru_cache(maxsize=4)
def _load_tokenizer(name: str) -> Any:
    return require("transformers", extra="train").AutoTokenizer.from_pretrained(name)
