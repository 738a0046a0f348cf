"""slime: a ``generate`` function that plays environments of gem, and advantages of turns.

``--custom-generate-function-path gem.integrations.slime.generate`` plays the task in the ``metadata`` of a sample: a
row of EnvTask, the same for all samples of a group. gem plays the episode and hands over the sampled tokens. A context
that does not extend the one before becomes a further sample with the same ``rollout_id``.

The reward of a sample is that of the episode. To train on advantages of turns (ReBN, with ``--gamma`` as the discount
per turn), set ``--custom-reward-post-process-path gem.integrations.slime.turn_rewards`` and
``--custom-advantage-function-path gem.integrations.slime.turn_advantages``; not with context parallelism.

A request that slime interrupts aborts the sample, and its episode starts again. slime cannot drop a sample: an episode
that fails three times raises InfraError. The metadata of slime does not reach its trainer, so the advantages take the
place of the rewards there. Environments are text only.

slime is installed from its repository; the package of this name at the index is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from gem.errors import require
from gem.integrations.shared.sequences import TrainingSequence, pack_episode, turn_returns
from gem.integrations.shared.tasks import EnvTask, shared_pool
from gem.integrations.shared.versions import check_framework
from gem.policies import Reply, Request
from gem.rl.estimate.advantages import normalize_batch
from gem.trajectory import Trajectory

check_framework("slime")
torch: Any = require("torch", extra="train")
rollout: Any = require("slime.rollout.sglang_rollout", extra="train")
Status: Any = rollout.Sample.Status


async def generate(args: Any, sample: Any, sampling_params: dict[str, Any]) -> Any:
    """Play the episode of a sample. Returns the sample, or one per sequence; its status is ABORTED if interrupted."""
    state = rollout.GenerateState(args)
    url = f"http://{args.sglang_router_ip}:{args.sglang_router_port}/generate"

    async def reply(request: Request) -> Reply:
        body = {"input_ids": list(request.prompt_ids), "sampling_params": sampling_params, "return_logprob": True}
        meta = (await rollout.post(url, body))["meta_info"]
        finish = meta["finish_reason"]["type"]
        if finish == "abort":
            raise _Interrupted
        logprobs, sampled = [], []
        for logprob, token, *_ in meta.get("output_token_logprobs") or ():
            logprobs.append(logprob)
            sampled.append(token)
        return Reply(chat.decode(sampled), sampled, logprobs, finish)

    pool = shared_pool(state.tokenizer)
    chat: Any = pool.chat
    try:
        played = await pool.play(EnvTask.from_row(sample.metadata), reply)
    except _Interrupted:
        sample.status = Status.ABORTED
        return sample
    sequences = pack_episode(played).sequences
    filled = [_fill(deepcopy(sample), sequence, played, chat, args.gamma) for sequence in sequences]
    return filled if len(filled) > 1 else filled[0]


def turn_rewards(args: Any, samples: Sequence[Any]) -> tuple[list[float], list[list[float]]]:
    """Return the reward of each episode, and an advantage per token: that of its turn, normalized over all turns."""
    returns = {sample.rollout_id: sample.train_metadata["returns"] for sample in samples}  # by episode
    values = iter(normalize_batch([value for returns_K in returns.values() for value in returns_K]).tolist())
    advantages = {id: [next(values) for _ in returns_K] for id, returns_K in returns.items()}
    rows = [
        [advantages[sample.rollout_id][turn] if turn >= 0 else 0.0 for turn in sample.train_metadata["turns"]]
        for sample in samples
    ]
    return [sample.reward for sample in samples], rows


def turn_advantages(args: Any, rollout_data: Any) -> None:
    """Set ``advantages`` and ``returns`` to the advantages of turn_rewards()."""
    device = rollout_data["loss_masks"][0].device
    rows = [torch.tensor(row, dtype=torch.float32, device=device) for row in rollout_data["rewards"]]
    rollout_data["advantages"], rollout_data["returns"] = rows, rows


class _Interrupted(Exception):
    """The engine interrupted a request."""


def _fill(sample: Any, sequence: TrainingSequence, played: Trajectory, chat: Any, gamma: float) -> Any:
    sample.tokens, sample.response_length = sequence.ids_T, len(sequence.response_ids)
    sample.response = chat.decode(sequence.response_ids)
    sample.loss_mask = sequence.response(sequence.mask_T)
    sample.rollout_log_probs = sequence.response(sequence.logprobs_T)
    sample.reward = played.total_reward
    turns_T = [turn if trained else -1 for turn, trained in zip(sequence.turn_T, sequence.mask_T, strict=True)]
    sample.train_metadata = {"turns": sequence.response(turns_T), "returns": turn_returns(played, gamma).tolist()}
    sample.rollout_id = sample.index if sample.rollout_id is None else sample.rollout_id
    sample.status = Status.TRUNCATED if played.truncated else Status.COMPLETED
    return sample
