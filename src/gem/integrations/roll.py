"""ROLL: environment managers that play environments of gem.

A tag of ``custom_envs`` names one as its ``env_manager_cls``, an id of gem as its ``env_type``, arguments of the
environment in ``env_config``, and names for get_wrapper_fns() in ``wrappers``. GemTrajEnvManager hands over one
sequence per episode; GemStepEnvManager one per turn, which ``step_reinforce`` and ``gigpo`` need. ROLL runs the
episodes and chooses their seeds, so that the members of a group start from the same state.

Contexts are those of gem, and an episode also ends when it is truncated. ROLL's own managers play the ids of gem as
well, with ``end_on_truncation: true`` in ``env_config``; their contexts lack what the chat template writes after a
reply, and StepEnvManager needs ``env_instruction`` and ``metrics`` in info. The templates of prompts are null here.

The reward of an episode is on its last token, and the rewards of turns are in ``step_scores``. ROLL cannot drop an
episode: one that fails is played again, and InfraError is raised for the third time. Environments are text only.

ROLL is used from a checkout of its repository.
"""

from __future__ import annotations

from typing import Any

from gem.conversation import ChatFormat
from gem.errors import BadValue, InfraError, require
from gem.integrations.shared.tasks import ATTEMPTS, EnvTask
from gem.integrations.shared.versions import check_framework
from gem.policies import Reply
from gem.rollout import StepwiseEpisode
from gem.seeding import derive

check_framework("roll")
torch: Any = require("torch", extra="train")
protocol: Any = require("roll.distributed.scheduler.protocol", extra="train")
base: Any = require("roll.pipeline.agentic.env_manager.base_env_manager", extra="train")
traj_manager: Any = require("roll.pipeline.agentic.env_manager.traj_env_manager", extra="train")
step_manager: Any = require("roll.pipeline.agentic.env_manager.step_env_manager", extra="train")


class _GemManager:
    """What both managers share. The attributes without a definition here are those of ROLL's managers."""

    env_config: Any
    pipeline_config: Any
    rollout_cache: Any
    group_seed: int
    episode_id: int
    tokenizer: Any
    llm_proxy: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "tool_wrapper" in self.env_config:
            raise BadValue("tool_wrapper is not used by gem's managers; write wrappers: python_tool,concat_chat")
        arguments = {name: value for name, value in self.env_config["config"].items() if name != "seed"}
        wrappers = self.env_config.get("wrappers", "")
        task = EnvTask(env_id=self.env_config["env_type"], seed=0, wrappers=wrappers, env_kwargs=arguments)
        self.env: Any
        self.env.close()  # ROLL has built one without wrappers
        self.chat = ChatFormat(self.tokenizer)
        self.env = self.llm_proxy.env = _Environment(task.episode(self.tokenizer, chat=self.chat))

    def format_messages(self, history: Any) -> Any:
        """Return the next context as tensors, and keep what belongs to this turn in the last entry of the history."""
        entry, request = self.rollout_cache.history[-1], self.env.episode.request
        context = list(request.prompt_ids)
        limit = self.pipeline_config.sequence_length
        if len(self.rollout_cache.history) == 1 and len(context) >= limit:
            raise BadValue(f"the first prompt has {len(context)} tokens, and sequence_length is {limit}")
        entry["messages"] = [{"role": request.role, "content": str(request.observation)}]
        entry["prompt_ids"] = self.kept_ids(context)
        entry["state_hash"] = str(derive("state", str(request.observation)))
        ids = torch.tensor([context])
        tensors = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        tensors["position_ids"] = torch.arange(len(context))[None]
        return protocol.DataProto.from_dict(tensors)

    def kept_ids(self, context: list[int]) -> list[int]:
        """Return the ids of a context that are kept with its turn."""
        return context

    def step(self, llm_output: Any) -> Any:
        """Send the reply to the environment. An episode that fails is started again with its seed."""
        entry = self.rollout_cache.history[-1]
        sampled = entry["response_ids"]
        finish = "stop" if self.chat.has_ended(sampled) else "length"
        self.env.reply = Reply(self.chat.decode(sampled), sampled, entry.get("infer_logprobs", []), finish)
        cache = super().step(llm_output)  # type: ignore[misc]
        if not self.env.failed:
            return cache
        observation, info = self.env.reset(self.group_seed + self.episode_id)
        self.rollout_cache = base.RolloutCache(env_id=cache.env_id, group_id=cache.group_id, tag=cache.tag)
        first = {"observation": observation, "actions_left": self.env_config.max_steps, "messages": None, **info}
        self.rollout_cache.history.append(first)
        return self.rollout_cache


class GemTrajEnvManager(_GemManager, traj_manager.TrajEnvManager):  # type: ignore[misc]
    """Hands over one sequence per episode. Raises BadValue if a context does not extend the one before."""

    def kept_ids(self, context: list[int]) -> list[int]:
        fed = [id for e in self.rollout_cache.history[:-1] for id in (*e["prompt_ids"], *e["response_ids"])]
        if context[: len(fed)] != fed:
            raise BadValue("this chat template changes earlier turns; use gem.integrations.roll.GemStepEnvManager")
        return context[len(fed) :]


class GemStepEnvManager(_GemManager, step_manager.StepEnvManager):  # type: ignore[misc]
    """Hands over one sequence per turn, with the reward of the turn on its last token."""


class _Environment:
    """An episode of gem in the form in which ROLL's managers call an environment. ``reply`` is set before step()."""

    def __init__(self, episode: StepwiseEpisode) -> None:
        self.episode, self.reply, self.failures = episode, Reply(""), 0

    @property
    def failed(self) -> bool:
        return self.episode.trajectory.failure is not None

    def reset(self, seed: int) -> tuple[str, dict[str, Any]]:
        while True:
            self.episode.reset(seed, group_id=seed)
            self._count(seed)
            if not self.failed:
                return str(self.episode.request.observation), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.episode.step(self.reply)
        played, over = self.episode.trajectory, self.episode.over
        self._count(played.seed)
        if self.failed:
            return "", 0.0, False, False, {}
        observation = played.final_observation if over else self.episode.request.observation
        metrics = {"metrics": {"success": bool(played.solved)}, "metrics_agg_mode": {"success": "last"}}
        return str(observation), played.rewards_K[-1], over, played.truncated, metrics if over else {}

    def sample_random_action(self) -> str:
        return str(self.episode.env.sample_random_action())

    def close(self) -> None:
        self.episode.close()

    def _count(self, seed: int | None) -> None:
        """Count failures in a row. Raises InfraError for the one number ATTEMPTS."""
        if self.failed:
            self.failures += 1
        elif self.episode.over:
            self.failures = 0
        if self.failures == ATTEMPTS:
            trajectory = self.episode.trajectory
            raise InfraError(f"{trajectory.env_id} with seed {seed} failed {ATTEMPTS} times: {trajectory.failure}")
