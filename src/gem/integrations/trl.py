"""TRL: GRPOTrainer over environments of gem, in two ways.

Rollouts are a ``rollout_func``: gem plays the episodes and hands over the sampled tokens, with their mask and
log-probabilities. TurnGRPOTrainer then trains on an advantage per turn. GemEnvironment is made for
``environment_factory``: TRL samples, and the model acts by calling a tool.

The reward that TRL sees is that of the episode. TRL takes one sequence per episode: if the context of a turn does not
extend that of the turn before, only the last sequence is trained, and ``counts`` tells how many were not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from gem.conversation import History
from gem.conversation.history import FULL_HISTORY
from gem.errors import BadValue, require
from gem.integrations.shared.sequences import PackedEpisode, count, pack_batch, pad, rebn
from gem.integrations.shared.tasks import EnvTask, play_tasks
from gem.integrations.shared.versions import check_framework
from gem.policies import Policy, Reply
from gem.rl.model.policy import CausalLMPolicy
from gem.rollout import StepwiseEpisode
from gem.seeding import derive

check_framework("trl")
GRPOTrainer: Any = require("trl", extra="train").GRPOTrainer


def dataset(tasks: Sequence[EnvTask]) -> Any:
    """Return tasks as a dataset. The prompt carries the task, because rollout_func is given nothing else."""
    rows = [{"prompt": [{"role": "user", "content": task.to_json()}], **task.to_row()} for task in tasks]
    return require("datasets", extra="data").Dataset.from_list(rows)


def env_reward(prompts: Any, completions: Any, env_reward: list[float | None], **columns: Any) -> list[float | None]:
    """The reward function for Rollouts: the reward of each episode; None for a failed one, which TRL leaves out."""
    return env_reward


class Rollouts:
    """A ``rollout_func`` that plays one episode per prompt, all of them in one batch.

    Temperature and top_p are those of the GRPOConfig; its max_completion_length limits all tokens after the first
    prompt. An episode that fails is played again; if it fails ATTEMPTS times, its tokens are not trained. Nor is an
    episode trained whose first prompt is over the limit of the policy.

    Args:
        max_new_tokens: maximum tokens of one reply.
        max_slots: maximum number of environments.
        history: limits on the part of the episode that the model is shown.
        policy: plays instead of the trainer's model. None samples from the model in this process.

    Attributes:
        episodes: the episodes of the last call, in the order of its prompts; None for one that is not trained.
        counts: see gem.integrations.shared.sequences.count(), for the last call; and "failed" attempts.

    Raises:
        BadValue: at the first call, for other sampling settings in GRPOConfig.
    """

    def __init__(
        self,
        *,
        max_new_tokens: int = 256,
        max_slots: int = 256,
        history: History = FULL_HISTORY,
        policy: Policy | None = None,
    ) -> None:
        self.max_new_tokens, self.max_slots, self.history, self.policy = max_new_tokens, max_slots, history, policy
        self.episodes: list[PackedEpisode | None] = []
        self.counts: dict[str, int] = {}
        self._calls = 0

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        model = trainer.accelerator.unwrap_model(trainer.model)
        was_training = model.training
        policy = self.policy or self._sampler(model, trainer)
        self._calls += 1
        tasks = [EnvTask.from_row(_text(prompt)) for prompt in prompts]
        played, failed = play_tasks(
            tasks, policy, trainer.processing_class, max_slots=self.max_slots, history=self.history
        )
        model.train(was_training)
        limit = trainer.args.max_completion_length
        self.episodes = pack_batch(played, max_response=limit)
        self.counts = {**count(self.episodes), "failed": failed}
        ends = [policy.chat.eos_id if policy.chat is not None else 0] * len(prompts)
        return _columns(self.episodes, ends)

    def _sampler(self, model: Any, trainer: Any) -> CausalLMPolicy:
        args = trainer.args
        others = {"top_k": (None, 0, -1), "min_p": (None,), "repetition_penalty": (None, 1.0)}
        if wrong := [name for name, off in others.items() if getattr(args, name, None) not in off]:
            raise BadValue(f"Rollouts samples with temperature and top_p only; remove {', '.join(wrong)} of GRPOConfig")
        seed = derive(args.seed, "trl", trainer.accelerator.process_index, self._calls)
        return CausalLMPolicy(
            model,
            trainer.processing_class,
            temperature=args.temperature,
            top_p=args.top_p,
            max_new_tokens=self.max_new_tokens,
            seed=seed,
        )


class TurnGRPOTrainer(GRPOTrainer):  # type: ignore[misc]
    """A GRPOTrainer with an advantage per turn (ReBN) instead of per episode. Needs Rollouts as its rollout_func.

    Args:
        gamma: discount per turn; or one per environment id.

    The advantages are normalized over the turns of the batch of this process. scale_rewards has no effect.
    """

    def __init__(self, *args: Any, gamma: float | Mapping[str, float] = 0.9, **options: Any) -> None:
        super().__init__(*args, **options)
        if not isinstance(self.rollout_func, Rollouts):
            raise BadValue("TurnGRPOTrainer needs rollout_func=Rollouts(...), which records the rewards of turns")
        self.gamma = gamma

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        batch = super()._generate_and_score_completions(inputs)
        episodes = self.rollout_func.episodes
        advantages = iter(rebn([e.trajectory for e in episodes if e is not None], self.gamma))
        rows = [[0.0] if e is None else e.last.response(e.last.per_token(next(advantages))) for e in episodes]
        padded = pad(rows, 0.0, length=batch["completion_ids"].shape[1])
        batch["advantages"] = batch["advantages"].new_tensor(padded)
        return batch


class GemEnvironment:
    """An environment for ``environment_factory``, as in ``environment_factory=GemEnvironment``.

    The columns of its dataset row name the task. The model acts by calling the tool ``act``; TRL decides when the
    episode ends, so actions after its end are answered with a remark. Needs a chat template with tool calls.
    """

    def __init__(self) -> None:
        self._episodes: dict[str, StepwiseEpisode] = {}
        self._episode: StepwiseEpisode | None = None

    def reset(self, **row: Any) -> str:
        """Start the episode of a dataset row."""
        task = EnvTask.from_row(row)
        if task.key() not in self._episodes:
            self._episodes[task.key()] = task.episode()
        self._episode = self._episodes[task.key()]
        self._episode.reset(task.seed, group_id=task.seed)
        return "" if self._episode.over else str(self._episode.request.observation)

    def act(self, action: str) -> str:
        """Take one action in the environment and return what it shows next.

        Args:
            action: The action, written as the environment asks for it.

        Returns:
            The next observation.
        """
        episode = self._episode
        if episode is None or episode.over:
            return "The episode is over."
        episode.step(Reply(action))
        return str(episode.trajectory.final_observation if episode.over else episode.request.observation)

    def get_reward(self) -> float | None:
        """Return the reward of the episode so far; None, which TRL leaves out, if it failed."""
        if self._episode is None or self._episode.trajectory.failure is not None:
            return None
        return self._episode.trajectory.total_reward


def _text(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else str(prompt[-1]["content"])


def _columns(episodes: Sequence[PackedEpisode | None], ends: Sequence[int]) -> dict[str, list[Any]]:
    """Return what a rollout_func returns. An episode that is None is one token without a reward, not trained."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for episode, end in zip(episodes, ends, strict=True):
        if episode is None:
            row: dict[str, Any] = {"prompt_ids": [end], "completion_ids": [end], "logprobs": [0.0], "env_mask": [0]}
            reward = None
        else:
            s = episode.last
            row = {"prompt_ids": s.prompt_ids, "completion_ids": s.response_ids, "logprobs": s.response(s.logprobs_T)}
            row["env_mask"], reward = s.response(s.mask_T), episode.trajectory.total_reward
        for name, value in {**row, "env_reward": reward}.items():
            columns[name].append(value)
    return dict(columns)
