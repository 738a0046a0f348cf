"""OpenRLHF: an agent executor that plays environments of gem, and an advantage per turn.

A file with ``AgentExecutor = GemExecutor`` is the ``--train.agent_func_path``. The task is the label of a prompt, as
text, so that the samples of a prompt start from the same state; the prompt itself is not used. gem plays the episode
and hands over the sampled tokens, so that feedback is not encoded again from text.

OpenRLHF has one reward per episode, on the last sampled token, and discounts per token. The rewards of turns are in the
label of the result; use_turn_advantages() makes the trainer use them. Its asynchronous trainer is not covered. OpenRLHF
takes one sequence per episode: the last one. An episode that fails three times raises InfraError, and one whose first
prompt is over the limit of tokens raises BadValue. Environments are text only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Literal

from gem.conversation import History
from gem.conversation.history import FULL_HISTORY
from gem.errors import require
from gem.integrations.shared.sequences import TrainingSequence, pack_episode
from gem.integrations.shared.tasks import EnvTask, EpisodePool
from gem.integrations.shared.turns import turn_advantages
from gem.integrations.shared.versions import check_framework
from gem.policies import Reply, Request

check_framework("openrlhf")
agent: Any = require("openrlhf.utils.agent", extra="train")
torch: Any = require("torch", extra="train")


def dataset_rows(tasks: Sequence[EnvTask]) -> list[dict[str, str]]:
    """Return the rows of a dataset, for ``--data.input_key input --data.label_key label``."""
    return [{"input": f"{task.env_id} {task.seed}", "label": task.to_json()} for task in tasks]


class GemExecutor(agent.AgentExecutorBase):  # type: ignore[misc]
    """Plays one episode of the task in the label.

    ``--rollout.max_new_tokens`` limits each reply, and ``--data.max_len`` the whole episode. Subclass to set history,
    the limits on the part of the episode that the model is shown.
    """

    history: History = FULL_HISTORY

    def __init__(self) -> None:
        self.pool: EpisodePool | None = None

    async def execute(
        self,
        prompt: str,
        label: str,
        sampling_params: Any,
        max_length: int,
        hf_tokenizer: Any,
        llm_engine: Any,
        images: Any = None,
    ) -> dict[str, Any]:
        pool = self.pool = self.pool or EpisodePool(
            hf_tokenizer, max_prompt_tokens=max_length - 1, history=self.history
        )

        async def reply(request: Request) -> Reply:
            ids, settings = list(request.prompt_ids), deepcopy(sampling_params)
            room = max_length - len(ids)
            settings.max_tokens = min(room, settings.max_tokens or room)
            answer = (await llm_engine.generate(ids, settings)).outputs[0]
            scored = zip(answer.logprobs, answer.token_ids, strict=False) if answer.logprobs else None
            scores = None if scored is None else [entry[token].logprob for entry, token in scored]
            return pool.reply(answer.token_ids, scores, answer.finish_reason)

        task = EnvTask.from_row(label)
        played = await pool.play(task, reply)
        sequence = pack_episode(played, max_tokens=max_length).last
        ranges = _ranges(sequence.mask_T)
        return {
            "prompt": prompt,
            "label": json.dumps({**json.loads(task.to_json()), "turn_rewards": _rewards(sequence, ranges)}),
            "images": images,
            "mm_train_inputs": None,
            "reward": played.total_reward,
            "scores": played.total_reward,
            "observation_tokens": sequence.ids_T,
            "action_ranges": ranges,
            "rollout_log_probs": None if sampling_params.logprobs is None else sequence.logprobs_T,
            "truncated": sequence.truncated or played.turns[-1].finish == "length",
            "extra_logs": {"turns": float(len(played.turns)), "solved": float(played.solved)},
        }


class TurnAdvantages:
    """Advantages of turns for OpenRLHF's experience maker, in place of those of ``algo.advantage.estimator``.

    ``algo.advantage.gamma`` discounts per turn. KL penalties on rewards are included; ``reward.clip_range`` and length
    penalties are not.
    """

    estimator: Literal["rebn", "turn"] = "rebn"

    def compute_advantages_and_returns(self: Any, experiences: list[Any]) -> list[Any]:
        kl = [experience.kl for experience in experiences]
        experiences = super().compute_advantages_and_returns(experiences)  # type: ignore[misc]
        width = max(experience.action_mask.shape[1] for experience in experiences)
        masks, rewards = list[Any](), list[Any]()
        for experience, kl_BT in zip(experiences, kl, strict=True):
            mask_BT = experience.action_mask
            rewards_BT = -max(0.0, self.kl_ctl.value) * kl_BT.double() * mask_BT
            for row, label in enumerate(experience.labels):
                for (_, end), reward in zip(
                    _ranges(mask_BT[row].tolist()), json.loads(label)["turn_rewards"], strict=True
                ):
                    rewards_BT[row, end - 1] += reward
            for values, table in ((masks, mask_BT), (rewards, rewards_BT)):
                values.append(torch.nn.functional.pad(table, (0, width - table.shape[1])))
        gamma = self.strategy.args.algo.advantage.gamma
        advantages, returns = turn_advantages(self.estimator, torch.cat(rewards), torch.cat(masks), gamma)
        first = 0
        for experience in experiences:
            rows, length = len(experience.labels), experience.action_mask.shape[1]
            experience.advantages = advantages[first : first + rows, :length].float()
            experience.returns = returns[first : first + rows, :length].float()
            first += rows
        return experiences


def use_turn_advantages(name: Literal["rebn", "turn"] = "rebn") -> None:
    """Make the trainer that ``openrlhf.cli.train_ppo_ray`` starts after this call use advantages of turns."""
    module: Any = require("openrlhf.trainer.ppo_trainer", extra="train")
    trainer: Any = module.PPOTrainer.__ray_metadata__.modified_class

    class TurnPPOTrainer(trainer):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            with_turn_advantages(self.experience_maker, name)

    module.PPOTrainer = require("ray", extra="ray").remote(TurnPPOTrainer)


def with_turn_advantages(maker: Any, name: Literal["rebn", "turn"]) -> None:
    """Make an experience maker use TurnAdvantages."""
    maker.__class__ = type("TurnExperienceMaker", (TurnAdvantages, type(maker)), {"estimator": name})


def _ranges(mask_T: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last + 1 token of each turn, a run of ones."""
    edges = [t for t, (a, b) in enumerate(zip([0, *mask_T], [*mask_T, 0], strict=True)) if a != b]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _rewards(sequence: TrainingSequence, ranges: Sequence[tuple[int, int]]) -> list[float]:
    return [sum(sequence.rewards_T[start:end]) for start, end in ranges]
