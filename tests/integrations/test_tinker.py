"""Tinker: the loop on the SDK sends the reference episodes, with an advantage per turn, to the training client."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path

import pytest

pytest.importorskip("tinker")

import tinker

import gem.integrations.tinker as adapter
from gem.integrations.shared.sequences import pack_batch, pack_episode, rebn
from gem.integrations.shared.tasks import EpisodePool
from gem.integrations.tinker import reinforce, sampler, training_data

from .contract import GAME, GAME_TASKS, MATH_TASKS, Held, ReplayEngine, check


class SamplingClient:
    """Returns the recorded replies through the types of the SDK."""

    def __init__(self, reference) -> None:
        self.engine = ReplayEngine(reference)

    async def sample_async(self, prompt, num_samples, sampling_params):
        assert num_samples == 1 and sampling_params.stop == sorted(self.engine.chat.end_ids)
        reply = self.engine.answer(prompt.to_ints())
        sampled = tinker.SampledSequence(
            stop_reason=reply.finish,
            sequence_id="0",
            _tokens_list=list(reply.sampled_ids),
            _logprobs_list=list(reply.logprobs),
        )
        return tinker.SampleResponse(sequences=[sampled])


class TrainingClient:
    """Records the calls of the loop."""

    def __init__(self, reference) -> None:
        self.reference, self.calls, self.data = reference, [], []

    def get_tokenizer(self):
        return self.reference.tokenizer

    async def save_weights_and_get_sampling_client_async(self):
        self.calls.append("sampling client")
        return SamplingClient(self.reference)

    async def forward_backward_async(self, data, loss_fn):
        self.calls.append(loss_fn)
        self.data.append(data)
        return asyncio.sleep(0)

    async def optim_step_async(self, params):
        self.calls.append(params.learning_rate)
        return asyncio.sleep(0)

    async def save_state_async(self, name):
        self.calls.append(name)
        return asyncio.sleep(0)


def values(datum, name):
    return datum.loss_fn_inputs[name].tolist()


def held(reference, data, tasks, advantages):
    """What the loss is given. The mask is where the advantage is not 0, which is where the expected one is not."""
    rows = {}
    for datum, task, advantages_K in zip(data, tasks, advantages, strict=True):
        ids = [*datum.model_input.to_ints(), values(datum, "target_tokens")[-1]]
        assert values(datum, "target_tokens") == ids[1:]
        want = reference.expected(task)
        assert [0.0, *values(datum, "advantages")] == pytest.approx(want.per_token(advantages_K), abs=1e-6)
        total = reference.trajectory(task).total_reward
        rows[task] = Held(ids, want.mask_T, total, [0.0, *values(datum, "logprobs")])
    return rows


@pytest.mark.parametrize("tasks", [GAME_TASKS, MATH_TASKS], ids=["game", "math"])
def test_the_loop_sends_the_reference_episodes(tasks, reference):
    client = TrainingClient(reference)

    async def train():
        return [
            metrics
            async for metrics in reinforce(client, tasks, groups=16, group_size=2, gamma=0.8, save_every=2, start=1)
        ]

    metrics = asyncio.run(train())
    assert [m["step"] for m in metrics] == list(range(1, len(tasks) // 16))
    assert client.calls[:4] == ["sampling client", "importance_sampling", 1e-4, "step-2"]
    for step, data in enumerate(client.data, start=1):
        chosen = tasks[16 * step : 16 * step + 16]
        doubled = [task for task in chosen for _ in range(2)]
        advantages = rebn([reference.trajectory(task) for task in doubled], 0.8)
        check(reference, held(reference, data[::2], chosen, advantages[::2]))
        check(reference, held(reference, data[1::2], chosen, advantages[1::2]))
        total = sum(reference.trajectory(task).total_reward for task in chosen)
        assert metrics[step - 1]["reward"] == pytest.approx(total / 16)


def wrong_id(s):
    s.ids_T[s.prompt_length] ^= 1


def wrong_mask(s):
    s.mask_T[s.prompt_length] = 0


def wrong_logprobs(s):
    s.logprobs_T.insert(0, s.logprobs_T.pop())


@pytest.mark.parametrize("mutation", [wrong_id, wrong_mask, wrong_logprobs])
def test_a_mutated_adapter_fails_the_contract(mutation, reference, monkeypatch):
    client = TrainingClient(reference)

    def mutated(trajectories):
        packed = pack_batch(trajectories)
        for episode in packed:
            mutation(episode.last)
        return packed

    monkeypatch.setattr(adapter, "pack_batch", mutated)

    async def train():
        return [metrics async for metrics in reinforce(client, GAME_TASKS[:16], group_size=1)]

    asyncio.run(train())
    advantages = rebn([reference.trajectory(task) for task in GAME_TASKS[:16]], 0.9)
    with pytest.raises(AssertionError):
        check(reference, held(reference, client.data[0], GAME_TASKS[:16], advantages))


def test_an_episode_whose_first_prompt_is_too_long_is_dropped_and_counted(reference):
    client, tasks = TrainingClient(reference), [*GAME_TASKS[:6], *MATH_TASKS[:10]]

    async def train():
        limit = len(reference.expected(GAME_TASKS[0]).prompt_ids)
        return [m async for m in reinforce(client, tasks, group_size=1, max_prompt_tokens=limit)]

    (metrics,) = asyncio.run(train())
    assert metrics["dropped"] == 10 and len(client.data[0]) == 6


def test_an_episode_that_forks_is_one_datum_per_sequence(reference):
    task = next(task for task in GAME_TASKS if len(reference.trajectory(task).turns) > 1)
    trajectory = reference.trajectory(task)
    packed = pack_episode(trajectory)
    packed.sequences = packed.sequences * 2
    assert len(training_data([packed], [[1.0] * len(trajectory.turns)])) == 2


def test_the_samples_of_all_episodes_are_in_flight_together(reference):
    pool, client = EpisodePool(reference.tokenizer), SamplingClient(reference)
    waiting, gate = [], asyncio.Event()
    answer = client.sample_async

    async def held_back(**request):
        waiting.append(1)
        if len(waiting) == len(GAME_TASKS):
            gate.set()
        await asyncio.wait_for(gate.wait(), 60)
        return await answer(**request)

    client.sample_async = held_back

    async def play():
        reply = sampler(client, pool)
        return await asyncio.gather(*(pool.play(task, reply) for task in GAME_TASKS))

    assert len(asyncio.run(play())) == len(GAME_TASKS)


def test_the_example_trains(reference, capsys):
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples/tinker/train.py"))
    client = TrainingClient(reference)
    options = example["parser"]().parse_args(["--env", GAME, "--steps", "2", "--groups", "4", "--group-size", "2"])
    asyncio.run(example["train"](client, options))
    assert capsys.readouterr().out.count("'reward'") == 2 and [len(data) for data in client.data] == [8, 8]
