"""OpenRLHF: its samples and advantages are those of the reference, from the executor on; engines are stand-ins."""

from __future__ import annotations

import asyncio
import importlib.abc
import importlib.machinery
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

pytest.importorskip("openrlhf")

import torch

ROOT = Path(__file__).parents[2]
ENGINES = ("deepspeed", "vllm", "flash_attn", "ring_flash_attn")  # need CUDA to be installed


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes the modules of engines that are not installed importable. Nothing in them is called by the tests."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in ENGINES else None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__version__ = [], spec, "0.99"
        return module

    def exec_module(self, module):
        pass


import peft  # noqa: E402, F401  before the stand-ins, which it would take for installed engines
import transformers.integrations.deepspeed  # noqa: E402, F401
from transformers import AutoModelForCausalLM, BitsAndBytesConfig  # noqa: E402, F401

sys.meta_path.append(StandIns())

from openrlhf.trainer.ppo_utils.experience import Experience  # noqa: E402
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker  # noqa: E402
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator  # noqa: E402
from openrlhf.trainer.ray.vllm_engine import _load_agent_executor  # noqa: E402

import gem.integrations.openrlhf as adapter  # noqa: E402
from gem.errors import InfraError  # noqa: E402
from gem.integrations.shared.sequences import rebn, turn_returns  # noqa: E402

from .contract import GAME_TASKS, MATH_TASKS, Held, ReplayEngine, check, mask, mutate_packing, token  # noqa: E402

LIMIT = 2048


class Engine:
    """The actor of vLLM, with the method that executors call."""

    def __init__(self, reference) -> None:
        self.engine = ReplayEngine(reference)

    async def generate(self, prompt_token_ids, sampling_params, multi_modal_data=None):
        assert sampling_params.max_tokens == min(500, LIMIT - len(prompt_token_ids))
        reply = self.engine.answer(prompt_token_ids)
        scores = [
            {token: SimpleNamespace(logprob=p)} for token, p in zip(reply.sampled_ids, reply.logprobs, strict=True)
        ]
        output = SimpleNamespace(token_ids=list(reply.sampled_ids), logprobs=scores, finish_reason=reply.finish)
        return SimpleNamespace(outputs=[output])


def samples(reference, tasks, engine=None):
    """Play tasks with the executor that OpenRLHF loads from the example. Returns its samples, in order."""
    executor = _load_agent_executor(str(ROOT / "examples/openrlhf/agent.py"))
    settings = SimpleNamespace(max_tokens=500, logprobs=1)
    engine = engine or Engine(reference)

    async def play():
        rows = adapter.dataset_rows(tasks)
        return await asyncio.gather(
            *(
                executor.execute(row["input"], row["label"], settings, LIMIT, reference.tokenizer, engine)
                for row in rows
            )
        )

    return [
        SamplesGenerator._process_response_into_experience(None, response, max_len=LIMIT)
        for response in asyncio.run(play())
    ]


def held_of(sample) -> Held:
    mask, logprobs = ([0, *values[0].tolist()] for values in (sample.action_mask, sample.rollout_log_probs))
    return Held(sample.sequences[0].tolist(), mask, float(sample.rewards[0]), logprobs)


@pytest.mark.parametrize("tasks", [GAME_TASKS, MATH_TASKS], ids=["game", "math"])
def test_the_samples_are_the_reference_episodes(tasks, reference):
    played = samples(reference, tasks)
    check(reference, {task: held_of(sample) for task, sample in zip(tasks, played, strict=True)})
    for task, sample in zip(tasks, played, strict=True):
        assert float(sample.info["turns"]) == len(reference.trajectory(task).turns)
        assert json.loads(sample.labels[0])["turn_rewards"] == pytest.approx(reference.trajectory(task).rewards_K)


def maker(gamma, kl=0.0):
    """OpenRLHF's experience maker, without its models."""
    space = SimpleNamespace
    args = space(
        algo=space(advantage=space(estimator="reinforce", gamma=gamma, no_std_norm=False, lambd=1.0)),
        rollout=space(n_samples_per_prompt=2),
        reward=space(clip_range=None, overlong_buffer_len=None, stop_properly_penalty_coef=None),
    )
    return RemoteExperienceMaker(None, None, None, None, space(value=kl), space(args=args), None)


def batches(played, size):
    """The samples as OpenRLHF batches them, each batch padded on its own."""
    for i, sample in enumerate(played):
        sample.index = [i]
    made = [Experience.concat_experiences(played[i : i + size], 0) for i in range(0, len(played), size)]
    for batch in made:
        batch.kl = torch.full(batch.action_mask.shape, 0.5)
    return made


def test_the_trainer_uses_advantages_of_turns(reference):
    tasks = [task for task in MATH_TASKS for _ in range(2)]
    own = maker(0.8)
    adapter.with_turn_advantages(own, "rebn")
    made = own.compute_advantages_and_returns(batches(samples(reference, tasks), 8))
    got = [(a, r) for batch in made for a, r in zip(batch.advantages, batch.returns, strict=True)]
    wanted = rebn([reference.trajectory(task) for task in tasks], 0.8)
    for task, (advantages, returns), values_K in zip(tasks, got, wanted, strict=True):
        sequence = reference.expected(task)
        expected = sequence.per_token(values_K)[1:]
        assert advantages[: len(expected)].tolist() == pytest.approx(expected, abs=1e-6)
        expected = sequence.per_token(turn_returns(reference.trajectory(task), 0.8).tolist())[1:]
        assert returns[: len(expected)].tolist() == pytest.approx(expected, abs=1e-6)
    assert all("return" in batch.info and batch.kl is None for batch in made)


def test_a_penalty_on_the_reward_is_part_of_the_return_of_its_turn(reference):
    task = next(task for task in GAME_TASKS if len(reference.trajectory(task).turns) == 1)
    own = maker(0.8, kl=0.1)
    adapter.with_turn_advantages(own, "turn")
    (made,) = own.compute_advantages_and_returns(batches(samples(reference, [task, task]), 2))
    sampled = int(made.action_mask[0].sum())
    total = reference.trajectory(task).total_reward
    assert float(made.returns[0][made.action_mask[0].bool()][0]) == pytest.approx(total - 0.05 * sampled)


def test_the_trainer_that_openrlhf_starts_has_the_experience_maker(monkeypatch):
    from openrlhf.trainer import ppo_trainer

    original = ppo_trainer.PPOTrainer
    monkeypatch.setattr(ppo_trainer, "PPOTrainer", original)
    adapter.use_turn_advantages("turn")
    started = ppo_trainer.PPOTrainer.__ray_metadata__.modified_class
    base = original.__ray_metadata__.modified_class
    monkeypatch.setattr(base, "__init__", lambda self: setattr(self, "experience_maker", maker(0.9)))
    assert isinstance(started().experience_maker, adapter.TurnAdvantages)
    assert started().experience_maker.estimator == "turn"


def shifted(sequence):
    sequence.logprobs_T[:] = [*sequence.logprobs_T[1:], 0.0]


@pytest.mark.parametrize("mutation", [token, mask, shifted], ids=lambda mutation: mutation.__name__)
def test_a_mutated_adapter_fails_the_contract(mutation, reference, monkeypatch):
    tasks = [task for task in GAME_TASKS if len(reference.trajectory(task).turns) > 1][:4]
    mutate_packing(monkeypatch, adapter, tasks[2].seed, mutation)
    held = {task: held_of(sample) for task, sample in zip(tasks, samples(reference, tasks), strict=True)}
    with pytest.raises(AssertionError, match=f"{tasks[2].env_id} {tasks[2].seed}"):
        check(reference, held)


def test_an_engine_that_aborts_is_no_reward(reference):
    class Down(Engine):
        async def generate(self, *args, **options):
            output = SimpleNamespace(token_ids=[], logprobs=None, finish_reason="abort")
            return SimpleNamespace(outputs=[output])

    with pytest.raises(InfraError, match=r"3 times: .*aborted"):
        samples(reference, GAME_TASKS[:1], Down(reference))


def test_the_example_writes_tasks_and_a_command(tmp_path):
    main = runpy.run_path(str(ROOT / "examples/openrlhf/train.py"))["main"]
    for environment in (["game:GuessTheNumber-v0-easy"], ["math:Arithmetic", "--wrappers", "python_tool,concat_chat"]):
        arguments = main(["--tasks", "4", "--output", str(tmp_path), "--dry-run", "--env", *environment])
        rows = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
        assert json.loads(rows[0]["label"])["env_id"] == environment[0] and len(rows) == 4
        assert Path(arguments[arguments.index("--train.agent_func_path") + 1]).is_file()
