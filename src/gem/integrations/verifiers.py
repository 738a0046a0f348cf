"""verifiers, and prime-rl, which trains on its environments: a taskset of episodes, and an environment for them.

GemTaskset yields one task per seed; the members of a group are rollouts of one task. GemEnv sends the observations as
user messages, and the agent's replies to the environment. Tool results are user messages as well. Token ids and
log-probabilities are recorded by the client of verifiers. The reward is that of the episode; the rewards of turns are
in ``trace.info["gem"]``. Observations with images are not supported.

verifiers finds an environment by the name of a module: examples/verifiers has one, for ``vf-eval gem_verifiers``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gem.conversation.observations import join_contents, text_messages
from gem.errors import InfraError, require
from gem.integrations.shared.tasks import EnvTask, make_tasks
from gem.integrations.shared.versions import check_framework
from gem.policies import Reply, Request
from gem.rollout import play_episode

check_framework("verifiers")
vf: Any = require("verifiers.v1", extra="train")


class GemTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Options of GemTaskset, as ``--env.taskset.env-ids`` and so on.

    Args:
        env_ids: a registered id, or a mixture {id: weight}.
        num_tasks: number of tasks, each with its own seed.
        seed: of all tasks.
        wrappers, env_kwargs: see gem.integrations.shared.tasks.EnvTask.
    """

    env_ids: str | dict[str, float] = "game:GuessTheNumber-v0-easy"
    num_tasks: int = 256
    seed: int = 0
    wrappers: str = ""
    env_kwargs: dict[str, Any] = {}  # noqa: RUF012  pydantic copies it


class GemTaskData(vf.TaskData):  # type: ignore[misc]
    """A task as data; the text of ``EnvTask.to_json()``."""

    episode: str


class GemTask(vf.Task[GemTaskData, vf.State, vf.TaskConfig]):  # type: ignore[misc]
    """One seed of one environment."""


class GemTaskset(vf.Taskset[GemTask, GemTasksetConfig]):  # type: ignore[misc]
    """Tasks of environments of gem; see GemTasksetConfig."""

    def load(self) -> Iterator[GemTask]:
        config = self.config
        for task in make_tasks(
            config.env_ids, config.num_tasks, seed=config.seed, wrappers=config.wrappers, **config.env_kwargs
        ):
            name = f"{task.env_id}#{task.seed}"
            yield GemTask(GemTaskData(name=name, episode=task.to_json()), config.task)


class GemEnvConfig(vf.EnvConfig):  # type: ignore[misc]
    """The agent that plays, as ``--env.player``."""

    player: vf.AgentConfig = vf.AgentConfig()


class GemEnv(vf.Env[GemEnvConfig]):  # type: ignore[misc]
    """Plays one task. A failure of the environment raises InfraError, which verifiers records or retries."""

    async def run(self, task: Any, agents: Any) -> None:
        episode = EnvTask.from_row(task.data.episode).episode()

        async def reply(request: Request) -> Reply:
            segment = await interaction.turn(join_contents(text_messages(request.observation)))
            if not segment.terminated:
                return Reply(segment.last_reply, finish="stop")
            if interaction.trace.errors:
                return Reply("", failure=str(interaction.trace.errors[-1].message))
            return Reply("", finish="context_overflow")  # a limit of the agent

        try:
            async with agents.player.interaction(task) as interaction:
                played = await play_episode(episode, reply, EnvTask.from_row(task.data.episode).seed)
        finally:
            episode.close()
        trace = interaction.trace
        if played.failure is not None:
            if not trace.errors:
                raise InfraError(played.failure)
            return
        trace.record_reward("gem", played.total_reward)
        trace.record_metric("turns", len(played.turns))
        trace.record_metric("solved", float(played.solved))
        trace.info["gem"] = {"turn_rewards": played.rewards_K, "stop_reason": played.stop_reason}


__all__ = ["GemEnv", "GemEnvConfig", "GemTask", "GemTaskData", "GemTaskset", "GemTasksetConfig"]
