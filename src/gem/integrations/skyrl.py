"""SkyRL: a generator that plays environments of gem, advantages of turns, and an environment for SkyRL's generators.

GemGenerator replaces the agent loop of SkyRLGymGenerator: gem plays the episode of a dataset row, and SkyRL is handed
the sampled tokens with their mask, log-probabilities and a reward per turn. ``trainer.algorithm.advantage_estimator``
may be ``gem_rebn`` or ``gem_turn``, which discount by ``trainer.algorithm.gamma`` per turn.

GemTextEnv is the environment class ``gem`` of skyrl_gym, for SkyRL's own generators; images are for the one with
``generator.vision_language_generator``. They do not end a reply that was cut off, so that its context differs from that
of gem by the token that ends a message.

SkyRL trains one sequence per episode: if contexts fork, the last one, or with ``generator.step_wise_trajectories`` all,
with the reward of the episode. A discount per environment is not supported. An episode that fails three times raises
InfraError, and one whose first prompt is over ``generator.max_input_length`` raises BadValue.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from gem.conversation import History
from gem.conversation.history import FULL_HISTORY
from gem.conversation.observations import as_messages
from gem.errors import BadValue, InfraError, require
from gem.integrations.shared.sequences import TrainingSequence, pack_batch
from gem.integrations.shared.tasks import EnvTask, EpisodePool
from gem.integrations.shared.turns import turn_advantages
from gem.integrations.shared.versions import check_framework
from gem.policies import Reply, Request
from gem.policies.chat_requests import openai_content
from gem.trajectory import Trajectory

check_framework("skyrl")
generators: Any = require("skyrl.train.generators.skyrl_gym_generator", extra="train")
estimators: Any = require("skyrl.backends.skyrl_train.utils.ppo_utils", extra="train")
text_env: Any = require("skyrl_gym.envs.base_text_env", extra="train")
registration: Any = require("skyrl_gym.envs.registration", extra="train")

ENV_CLASS = "gem"  # name of GemTextEnv in skyrl_gym


def dataset_rows(tasks: Sequence[EnvTask]) -> list[dict[str, Any]]:
    """Return the rows of a file for ``data.train_data``. The members of a group are copies of a row."""
    return [
        {"prompt": [{"role": "user", "content": task.env_id}], "env_class": ENV_CLASS, **task.to_row()}
        for task in tasks
    ]


class GemGenerator(generators.SkyRLGymGenerator):  # type: ignore[misc]
    """Plays the task of each dataset row; takes the arguments of SkyRLGymGenerator.

    ``generator.max_turns`` has no effect: the environment limits the turns. Subclass to set history, the limits on the
    part of the episode that the model is shown.
    """

    history: History = FULL_HISTORY

    @cached_property
    def pool(self) -> EpisodePool:
        limit = self.generator_cfg.max_input_length
        return EpisodePool(self.tokenizer, max_prompt_tokens=limit, history=self.history)

    async def agent_loop(
        self,
        prompt: Any,
        env_class: str,
        env_extras: Mapping[str, Any],
        max_tokens: int,
        max_input_length: int,
        sampling_params: dict[str, Any] | None = None,
        trajectory_id: Any = None,
        cache_salt: str | None = None,
    ) -> Any:
        task, started = EnvTask.from_row(env_extras), time.monotonic()
        member = 0 if trajectory_id is None else trajectory_id.repetition_id
        session = f"{task.env_id} {task.seed} {member}" if trajectory_id is None else trajectory_id.to_string()
        asked = {"session_ids": [session], "sampling_params": sampling_params, "cache_salt": cache_salt}

        async def reply(request: Request) -> Reply:
            batch = {"prompt_token_ids": [list(request.prompt_ids)], **asked}
            answer = await self.inference_engine_client.generate(batch, model=self.policy_model_name)
            logprobs = (answer.get("response_logprobs") or [None])[0]
            return self.pool.reply(answer["response_ids"][0], logprobs, answer["stop_reasons"][0])

        try:
            played = await self.pool.play(task, reply, episode=member)
        finally:
            await self.inference_engine_client.finish_session(session)
        (packed,) = pack_batch([played])
        if packed is None:
            raise BadValue(f"{task.env_id}: the first prompt is over generator.max_input_length; raise that")
        several = self.generator_cfg.step_wise_trajectories
        sequences = packed.sequences if several else [packed.last]
        outputs = [self._output(sequence, played, sampling_params) for sequence in sequences]
        seconds = time.monotonic() - started
        if not several:
            outputs[0].e2e_time = seconds
            return outputs[0]
        last = packed.last  # the only one whose reward SkyRL uses
        outputs[-1].reward[last.last_sampled - last.prompt_length] += played.total_reward - sum(outputs[-1].reward)
        return generators.StepWiseOutput(step_outputs=outputs, e2e_time=seconds)

    def _output(self, sequence: TrainingSequence, played: Trajectory, sampling_params: dict[str, Any] | None) -> Any:
        settings = sampling_params or vars(self.generator_cfg.sampling_params)
        scored = settings.get("logprobs") is not None
        return generators.TrajectoryOutput(
            prompt_ids=sequence.prompt_ids,
            response_ids=sequence.response_ids,
            loss_mask=sequence.response(sequence.mask_T),
            reward=sequence.response(sequence.rewards_T),
            rollout_logprobs=sequence.response(sequence.logprobs_T) if scored else None,
            stop_reason=played.turns[-1].finish or "stop",
            env_metrics={"turns": len(played.turns), "solved": float(played.solved)},
        )


class GemTextEnv(text_env.BaseTextEnv):  # type: ignore[misc]
    """The environment class ``gem`` of skyrl_gym. The columns of the dataset row name the task.

    Raises:
        InfraError: at a step of an episode that failed.
    """

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.task = EnvTask.from_row(extras or {})
        self.episode = self.task.episode()

    def init(self, prompt: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        self.episode.reset(self.task.seed, group_id=self.task.seed)
        self._check()
        return _messages(self.episode.request.observation), {}

    def step(self, action: str) -> Any:
        self.episode.step(Reply(action))
        self._check()
        over, turn = self.episode.over, self.episode.trajectory.turns[-1]
        shown = [] if over else _messages(self.episode.request.observation)
        return text_env.BaseTextEnvStepOutput(observations=shown, reward=turn.reward, done=over, metadata={})

    def get_metrics(self) -> dict[str, float]:
        played = self.episode.trajectory
        return {"turns": len(played.turns), "solved": float(played.solved)}

    def close(self) -> None:
        self.episode.close()

    def _check(self) -> None:
        if self.episode.trajectory.failure is not None:
            raise InfraError(f"{self.task.env_id}: {self.episode.trajectory.failure}")


def _messages(observation: Any) -> list[dict[str, Any]]:
    return [
        {"role": message["role"], "content": openai_content(message["content"])} for message in as_messages(observation)
    ]


def _register() -> None:
    """Register GemTextEnv and the estimators, in each process that imports this module."""
    if ENV_CLASS not in registration.registry:
        registration.register(id=ENV_CLASS, entry_point=f"{__name__}:GemTextEnv")

    def estimator(name: Any) -> Any:
        def estimate(token_level_rewards: Any, response_mask: Any, gamma: float = 1.0, **others: Any) -> Any:
            return turn_advantages(name, token_level_rewards, response_mask, gamma)

        return estimate

    for name in ("rebn", "turn"):
        estimators.AdvantageEstimatorRegistry.register(f"gem_{name}", estimator(name))


_register()
