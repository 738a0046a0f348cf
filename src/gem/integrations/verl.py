"""verl: an agent loop that plays environments of gem, and advantage estimators over turns.

``gem`` is the name of the agent loop; gem plays the episodes, and verl is handed the sampled tokens with their mask,
log-probabilities and a reward per turn. ``algorithm.adv_estimator`` is ``gem_rebn`` or ``gem_turn``; see
gem.rl.estimate.advantages. verl imports this module in all of its processes if the environment has
``VERL_USE_EXTERNAL_MODULES=gem.integrations.verl``.

Estimators of verl see token rewards and a mask, not the environment: a discount per environment is an argument of the
agent loop. The legacy trainer (``trainer.use_v1=false``) takes one sequence per episode, with one reward at its end. An
episode that fails three times raises InfraError. One whose first prompt is over the limit of tokens is dropped; under
the legacy trainer it raises BadValue. Environments are text only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import uuid4

from gem.conversation import History
from gem.conversation.history import FULL_HISTORY
from gem.errors import BadValue, require
from gem.integrations.shared.sequences import pack_episode, turn_returns
from gem.integrations.shared.tasks import EnvTask, shared_pool
from gem.integrations.shared.turns import turn_advantages
from gem.integrations.shared.versions import check_framework
from gem.policies import Reply, Request
from gem.trajectory import Trajectory

check_framework("verl")
agent_loop: Any = require("verl.experimental.agent_loop.agent_loop", extra="train")
core_algos: Any = require("verl.trainer.ppo.core_algos", extra="train")
torch: Any = require("torch", extra="train")


def dataset_rows(tasks: Sequence[EnvTask]) -> list[dict[str, Any]]:
    """Return the rows of a parquet file for ``data.train_files``. The columns of a task are in ``extra_info``."""
    return [
        {
            "data_source": "gem",
            "agent_name": "gem",
            "prompt": [{"role": "user", "content": task.to_json()}],
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": i, **task.to_row()},
        }
        for i, task in enumerate(tasks)
    ]


class TurnOutput(agent_loop.AgentLoopOutput):  # type: ignore[misc]
    """An output with the reward of each turn on its last token, instead of one reward on the last token of all."""

    token_rewards: list[float]

    def as_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().as_dict()
        fields["rm_scores"] = torch.tensor(fields.pop("token_rewards"), dtype=torch.float32)
        return fields


@agent_loop.register("gem")
class GemAgentLoop(agent_loop.AgentLoopBase):  # type: ignore[misc]
    """Plays one episode of the task in ``extra_info``. Further arguments can be set in ``agent_loop_config_path``.

    Contexts longer than ``prompt_length + response_length`` end the episode; tokens after ``response_length`` are cut.

    Args:
        max_new_tokens: maximum tokens of one reply; None for what is left of ``response_length``.
        gamma: discounts per environment id. The rewards handed over are then such that their sum from a turn on is the
            discounted return of that turn, and ``algorithm.gamma`` has to be 1. None to hand over the rewards as they
            are, which the estimators discount by ``algorithm.gamma``.
        history: arguments of gem.conversation.History; None for no limits.
    """

    def __init__(
        self,
        *args: Any,
        max_new_tokens: int | None = None,
        gamma: Mapping[str, float] | None = None,
        history: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.max_new_tokens, self.gamma = max_new_tokens, gamma
        if gamma is not None and self.config.algorithm.gamma != 1.0:
            raise BadValue(f"gamma of the agent loop needs algorithm.gamma=1, got {self.config.algorithm.gamma}")
        limit = self.rollout_config.prompt_length + self.rollout_config.response_length
        self.pool = shared_pool(self.tokenizer, limit, FULL_HISTORY if history is None else History(**history))

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> Any:
        request_id, answers = uuid4().hex, list[Any]()
        chat: Any = self.pool.chat
        limit = {} if self.max_new_tokens is None else {"max_tokens": self.max_new_tokens}

        async def reply(request: Request) -> Reply:
            ids = list(request.prompt_ids)
            answer = await self.server_manager.generate(
                request_id=request_id, prompt_ids=ids, sampling_params={**sampling_params, **limit}
            )
            answers.append(answer)
            finish = answer.stop_reason
            if finish != "aborted":  # verl has one word for the others
                finish = "stop" if chat.has_ended(answer.token_ids) else "length"
            return self.pool.reply(answer.token_ids, answer.log_probs, finish)

        played = await self.pool.play(EnvTask.from_row(row["extra_info"]), reply)
        several = self.config.trainer.get("use_v1", True)
        if several and not answers:  # the first prompt is over the limit
            return []
        outputs = self._outputs(played, answers)
        return outputs if several else outputs[-1]

    def _outputs(self, played: Trajectory, answers: Sequence[Any]) -> list[TurnOutput]:
        discount, credited = self.config.algorithm.gamma, played
        if self.gamma is not None:
            returns_K = [*turn_returns(played, self.gamma).tolist(), 0.0]
            rewards = (now - after for now, after in pairwise(returns_K))
            credited = replace(played, turns=[replace(t, reward=r) for t, r in zip(played.turns, rewards, strict=True)])
        sequences = pack_episode(credited, max_response=self.rollout_config.response_length).sequences
        returns_K = turn_returns(credited, discount).tolist()
        for sequence, after in pairwise(sequences):  # verl does not add up rewards over sequences
            first = after.turn_T[after.prompt_length]
            sequence.rewards_T[sequence.last_sampled] += discount * returns_K[first]
        steps = [step for a in answers if (step := a.extra_fields.get("global_steps")) is not None]
        seconds = {name: sum(turn.seconds[name] for turn in played.turns) for name in ("policy", "env")}
        common = {
            "reward_score": played.total_reward,
            "num_turns": 2 * len(played.turns),
            "metrics": {"generate_sequences": seconds["policy"], "tool_calls": seconds["env"]},
            "extra_fields": {
                "turn_scores": played.rewards_K,
                "tool_rewards": [],
                "min_global_steps": min(steps, default=None),
                "max_global_steps": max(steps, default=None),
                "reward_extra_info": {"return": played.total_reward, "solved": float(played.solved)},
            },
        }
        return [
            TurnOutput(
                prompt_ids=s.prompt_ids,
                response_ids=s.response_ids,
                response_mask=s.response(s.mask_T),
                response_logprobs=s.response(s.logprobs_T) if answers[0].log_probs else None,
                token_rewards=s.response(s.rewards_T),
                **deepcopy(common),
            )
            for s in sequences
        ]


@core_algos.register_adv_est("gem_rebn")  # type: ignore[untyped-decorator]
def rebn_advantage(token_level_rewards: Any, response_mask: Any, config: Any = None, **others: Any) -> tuple[Any, Any]:
    """Discounted returns of turns, normalized over all turns of the batch; see turn_advantages()."""
    return turn_advantages("rebn", token_level_rewards, response_mask, 1.0 if config is None else config.gamma)


@core_algos.register_adv_est("gem_turn")  # type: ignore[untyped-decorator]
def turn_advantage(token_level_rewards: Any, response_mask: Any, config: Any = None, **others: Any) -> tuple[Any, Any]:
    """The same with the mean over the turns that have the same index; see turn_advantages()."""
    return turn_advantages("turn", token_level_rewards, response_mask, 1.0 if config is None else config.gamma)
