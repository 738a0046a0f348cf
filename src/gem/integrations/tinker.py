"""Tinker: REINFORCE with an advantage per turn, on the clients of the Tinker SDK.

gem plays the episodes, each of which continues when its own sample arrives. reinforce() is the whole loop; its
parts, sampler() and training_data(), serve other loops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from gem.conversation import History
from gem.conversation.history import FULL_HISTORY
from gem.errors import require
from gem.integrations.shared.sequences import PackedEpisode, count, pack_batch, rebn
from gem.integrations.shared.tasks import EnvTask, EpisodePool
from gem.integrations.shared.versions import check_framework
from gem.policies import Reply, Request

check_framework("tinker")
_tinker: Any = require("tinker", extra="train")


def sampler(client: Any, pool: EpisodePool, *, max_tokens: int = 512, **sampling: Any) -> Callable[[Request], Any]:
    """Return the coroutine function that asks a SamplingClient for one reply.

    Args:
        client: the SamplingClient.
        pool: with the tokenizer of the model.
        max_tokens: of one reply.
        sampling: further fields of SamplingParams. Training needs temperature 1 and top_p 1, because the service scores
            tokens without them.
    """
    chat = pool.chat
    assert chat is not None
    params = _tinker.SamplingParams(max_tokens=max_tokens, stop=sorted(chat.end_ids), **sampling)

    async def reply(request: Request) -> Reply:
        prompt = _tinker.ModelInput.from_ints(list(request.prompt_ids))
        response = await client.sample_async(prompt=prompt, num_samples=1, sampling_params=params)
        sampled = response.sequences[0]
        ids = list(sampled.tokens)
        return Reply(chat.decode(ids), ids, list(sampled.logprobs), str(sampled.stop_reason))

    return reply


def training_data(episodes: Sequence[PackedEpisode], advantages: Sequence[Sequence[float]]) -> list[Any]:
    """Return the datums of episodes, one per sequence, for the loss functions "importance_sampling" and "ppo".

    Args:
        episodes: the episodes.
        advantages: of each episode, one per turn. Tokens that were not sampled get 0, so they are not trained.
    """
    data = []
    for episode, advantages_K in zip(episodes, advantages, strict=True):
        for sequence in episode.sequences:
            shifted: dict[str, list[Any]] = {
                "target_tokens": sequence.ids_T[1:],
                "logprobs": sequence.logprobs_T[1:],
                "advantages": sequence.per_token(advantages_K)[1:],
            }
            kinds = {"target_tokens": "int64"}
            inputs = {
                name: _tinker.TensorData(data=values, dtype=kinds.get(name, "float32"), shape=[len(values)])
                for name, values in shifted.items()
            }
            model_input = _tinker.ModelInput.from_ints(sequence.ids_T[:-1])
            data.append(_tinker.Datum(model_input=model_input, loss_fn_inputs=inputs))
    return data


async def reinforce(
    training_client: Any,
    tasks: Sequence[EnvTask],
    *,
    tokenizer: Any = None,
    groups: int = 16,
    group_size: int = 4,
    gamma: float | Mapping[str, float] = 0.9,
    learning_rate: float = 1e-4,
    loss_fn: str = "importance_sampling",
    max_tokens: int = 512,
    max_prompt_tokens: int | None = None,
    history: History = FULL_HISTORY,
    start: int = 0,
    save_every: int = 0,
) -> AsyncIterator[dict[str, float]]:
    """Train for as many steps as the tasks last, and yield the metrics of each step.

    Args:
        training_client: a TrainingClient.
        tasks: ``groups`` of them are played per step, ``group_size`` times each.
        tokenizer: of the model; None asks the client.
        gamma: discount per turn, or one per environment id.
        loss_fn: see training_data().
        max_tokens, max_prompt_tokens, history: of one reply; see EpisodePool.
        start: first step, to resume a run whose state the client has loaded.
        save_every: steps between calls of save_state("step-N"); 0 saves nothing.
    """
    pool = EpisodePool(
        tokenizer or training_client.get_tokenizer(), max_prompt_tokens=max_prompt_tokens, history=history
    )
    try:
        for step in range(start, len(tasks) // groups):
            client = await _result(training_client.save_weights_and_get_sampling_client_async())
            reply = sampler(client, pool, max_tokens=max_tokens)
            chosen = [task for task in tasks[step * groups : (step + 1) * groups] for _ in range(group_size)]
            played = await asyncio.gather(*(pool.play(task, reply, episode=i) for i, task in enumerate(chosen)))
            batch = pack_batch(played)
            packed = [episode for episode in batch if episode is not None]
            data = training_data(packed, rebn([episode.trajectory for episode in packed], gamma))
            # Both are sent before either is awaited, so that they run in one cycle of the service.
            update = await training_client.forward_backward_async(data, loss_fn)
            optimize = await training_client.optim_step_async(_tinker.AdamParams(learning_rate=learning_rate))
            await update
            await optimize
            if save_every and (step + 1) % save_every == 0:
                await (await training_client.save_state_async(f"step-{step + 1}"))
            yield {
                "step": step,
                "reward": sum(trajectory.total_reward for trajectory in played) / len(played),
                "solved": sum(trajectory.solved for trajectory in played) / len(played),
                "turns": sum(len(trajectory.turns) for trajectory in played) / len(played),
                "failed": pool.failed,
                **count(batch),
            }
    finally:
        pool.close()


async def _result(awaitable: Awaitable[Any]) -> Any:
    """Await a call of the SDK; some return a future of the result."""
    value = await awaitable
    return await value if hasattr(value, "__await__") else value
