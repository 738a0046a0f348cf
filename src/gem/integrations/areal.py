"""AReaL: a RolloutWorkflow that plays environments of gem, for its asynchronous rollout engines.

A dataset row names the task (``EnvTask.to_row()``); the members of a group are workflows of one row. Each episode
continues when its own reply arrives, and keeps the versions of the weights that sampled its tokens.

AReaL cannot express: a reward per turn (``rewards`` is that of the episode), several sequences of an episode (if its
contexts fork, the last one is trained; ``counts`` tells how many). Images are not supported. An episode that failed
ATTEMPTS times, or whose first prompt is over the limit, is None, which AReaL rejects.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from gem.conversation import History
from gem.conversation.history import FULL_HISTORY
from gem.errors import InfraError, require
from gem.integrations.shared.sequences import TrainingSequence, count, pack_batch
from gem.integrations.shared.tasks import EnvTask, EpisodePool
from gem.integrations.shared.versions import check_framework
from gem.policies import Reply, Request

check_framework("areal")
_torch: Any = require("torch", extra="train")
_workflow: Any = require("areal.api.workflow_api", extra="train")
_struct: Any = require("areal.api.io_struct", extra="train")


class GemWorkflow(_workflow.RolloutWorkflow):  # type: ignore[misc]
    """Plays the task of a dataset row.

    Args:
        gconfig: AReaL's GenerationHyperparameters. max_new_tokens limits a reply, and max_tokens an episode.
        tokenizer: of the model, or its name or folder.
        history: limits on the part of the episode that the model is shown.

    Attributes:
        counts: see gem.integrations.shared.sequences.count(), for all episodes so far; and "rejected" ones.
    """

    def __init__(self, gconfig: Any, tokenizer: Any, *, history: History = FULL_HISTORY) -> None:
        if isinstance(tokenizer, str):
            tokenizer = require("transformers", extra="train").AutoTokenizer.from_pretrained(tokenizer)
        self.gconfig = gconfig.new_with_stop_and_pad_token_ids(tokenizer).new(n_samples=1)
        longest = self.gconfig.max_tokens - self.gconfig.max_new_tokens
        self.pool = EpisodePool(tokenizer, max_prompt_tokens=longest, history=history)
        self.tokenizer, self.counts = tokenizer, Counter[str]()

    async def arun_episode(self, engine: Any, data: dict[str, Any]) -> dict[str, Any] | None:
        versions: list[list[int]] = []  # of the sampled tokens of each turn

        async def reply(request: Request) -> Reply:
            sent = _struct.ModelRequest(
                input_ids=list(request.prompt_ids), gconfig=self.gconfig, tokenizer=self.tokenizer
            )
            response = await engine.agenerate(sent)
            del versions[request.key[2] :]
            versions.append(list(response.output_versions))
            return self.pool.reply(response.output_tokens, response.output_logprobs, response.stop_reason)

        try:
            played = [await self.pool.play(EnvTask.from_row(data), reply)]
        except InfraError:
            self.counts["rejected"] += 1
            return None
        batch = pack_batch(played, max_tokens=self.gconfig.max_tokens)
        self.counts.update(count(batch))
        if batch[0] is None:
            self.counts["rejected"] += 1
            return None
        return _tensors(batch[0].last, versions, played[0].total_reward)


def _tensors(sequence: TrainingSequence, versions: list[list[int]], reward: float) -> dict[str, Any]:
    """Return a sequence as AReaL's tensors, of shape [1, T]; the version of a token that was not sampled is -1."""
    left = [iter(versions_K) for versions_K in versions]
    versions_T = [-1 if turn < 0 else next(left[turn]) for turn in sequence.turn_T]
    columns = {
        "input_ids": (sequence.ids_T, _torch.int32),
        "loss_mask": (sequence.mask_T, _torch.int32),
        "logprobs": (sequence.logprobs_T, _torch.float32),
        "versions": (versions_T, _torch.int32),
        "attention_mask": ([1] * len(versions_T), _torch.bool),
    }
    tensors = {name: _torch.tensor([values], dtype=dtype) for name, (values, dtype) in columns.items()}
    return {**tensors, "rewards": _torch.tensor([reward], dtype=_torch.float32)}
