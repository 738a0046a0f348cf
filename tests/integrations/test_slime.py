"""slime: its groups of samples, and the data that it makes of them for its trainer, hold the reference episodes.

slime is not at the package index: GEM_SLIME is the folder of a checkout.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import pytest

sys.path += [folder] if (folder := os.environ.get("GEM_SLIME")) else []
pytest.importorskip("slime.utils.types", reason="GEM_SLIME is not set to a checkout of slime")

import torch
from aiohttp import web
from slime.observability.rollout_data_utils import tensorize_rollout_data_for_training, validate_rollout_id_annotated
from slime.rollout.sglang_rollout import GenerateState, generate_and_rm_group
from slime.utils import http_utils
from slime.utils.data import Dataset
from slime.utils.misc import SingletonMeta
from slime.utils.types import Sample

import gem.integrations.slime as adapter
from gem.errors import InfraError
from gem.integrations.shared.sequences import rebn
from gem.integrations.shared.tasks import EnvTask, EpisodePool

from .contract import GAME_TASKS, MATH_TASKS, Held, ReplayEngine, check, cut, mask, mutate_packing, token

ROOT = Path(__file__).parents[2]
GROUP = 2
SERVERS = [f"slime.backends.sglang_utils.{name}" for name in ("external", "sglang_config", "sglang_engine")]
STAND_INS = ("sglang", "sglang.srt", "sglang.srt.constants", "slime.observability.logging_utils", *SERVERS)


class StandIn(ModuleType):
    """A module that the file of slime's RolloutManager imports for its servers and its logs."""

    def __getattr__(self, name):
        return None if name.startswith("__") else type(name, (), {})


def rollout_manager():
    """slime's RolloutManager, without its servers."""
    for name in STAND_INS:
        sys.modules.setdefault(name, StandIn(name))
    from slime.ray.rollout import RolloutManager

    return object.__new__(RolloutManager.__ray_metadata__.modified_class)


class Router:
    """SGLang's router: answers with the recorded replies, and interrupts the first requests."""

    def __init__(self, reference, interrupted: int) -> None:
        self.engine, self.interrupted = ReplayEngine(reference), interrupted

    async def answer(self, request):
        body = await request.json()
        assert body["return_logprob"] and body["sampling_params"]["no_stop_trim"]
        reply = self.engine.answer(body["input_ids"])
        finish, self.interrupted = ("abort" if self.interrupted > 0 else reply.finish), self.interrupted - 1
        tokens = list(zip(reply.logprobs, reply.sampled_ids, [None] * len(reply.sampled_ids), strict=True))
        meta = {"output_token_logprobs": tokens, "finish_reason": {"type": finish}}
        return web.json_response({"text": "", "meta_info": meta})


def settings(reference, **options):
    return Namespace(
        hf_checkpoint=str(reference.folder),
        custom_generate_function_path="gem.integrations.slime.generate",
        custom_reward_post_process_path=None,
        custom_convert_samples_to_train_data_func=None,
        advantage_estimator="grpo",
        rewards_normalization=True,
        grpo_std_normalization=False,
        gamma=0.8,
        n_samples_per_prompt=GROUP,
        rollout_batch_size=0,
        rollout_temperature=1.0,
        rollout_top_p=1.0,
        rollout_top_k=-1,
        rollout_max_response_len=500,
        rollout_stop=None,
        rollout_stop_token_ids=None,
        rollout_skip_special_tokens=False,
        rollout_num_engines=1,
        rollout_sample_hook_path=None,
        sglang_server_concurrency=512,
        sglang_dp_size=1,
        sglang_router_ip="127.0.0.1",
        use_distributed_post=False,
        partial_rollout=False,
        group_rm=False,
        reward_key=None,
        ci_test=False,
        **options,
    )


def played(reference, tasks, folder, *, interrupted=0, **options):
    """Generate groups as slime's rollout does, from a file of tasks. Returns its data for training and its settings."""
    router, args = Router(reference, interrupted), settings(reference, **options)
    file = folder / "tasks.jsonl"
    file.write_text("\n".join(json.dumps({"prompt": "", "metadata": task.to_row()}) for task in tasks))
    rows = Dataset(str(file), reference.tokenizer, None, None, prompt_key="prompt", metadata_key="metadata").samples
    groups = []
    for i, row in enumerate(rows):
        members = [Sample(prompt=row.prompt, metadata=row.metadata, group_index=i) for _ in range(GROUP)]
        for k, sample in enumerate(members):
            sample.index = i * GROUP + k
        groups.append(members)

    async def generate():
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/generate", router.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        args.sglang_router_port = site._server.sockets[0].getsockname()[1]
        SingletonMeta._instances.pop(GenerateState, None)
        http_utils._http_client = None
        http_utils.init_http_client(args)
        parameters, waiting = GenerateState(args).sampling_params, groups
        try:
            for _ in range(1 + bool(interrupted)):
                waiting = await asyncio.gather(*(generate_and_rm_group(args, g, parameters.copy()) for g in waiting))
            return waiting
        finally:
            await http_utils._http_client.aclose()
            await runner.cleanup()

    groups = asyncio.run(generate())
    validate_rollout_id_annotated(groups)
    manager = rollout_manager()
    manager.args, manager.custom_convert_samples_to_train_data_func = args, None
    manager.custom_reward_post_process_func = options.get("post_process")
    args.rollout_batch_size = len(tasks)
    samples = [sample for group in groups for sample in group]
    data = manager._convert_samples_to_train_data(samples)
    tensorize_rollout_data_for_training(data)
    return data, args


def held_of(data, i) -> Held:
    ids, mask, logprobs = (data[name][i].tolist() for name in ("tokens", "loss_masks", "rollout_log_probs"))
    start = [0] * (len(ids) - len(mask))
    return Held(ids, start + mask, data["raw_reward"][i], [0.0] * len(start) + logprobs)


@pytest.mark.parametrize("tasks", [GAME_TASKS, MATH_TASKS], ids=["game", "math"])
def test_the_training_data_are_the_reference_episodes(tasks, reference, tmp_path):
    data, _ = played(reference, tasks, tmp_path)
    for member in range(GROUP):
        check(reference, {task: held_of(data, i * GROUP + member) for i, task in enumerate(tasks)})
    truncated = [reference.trajectory(task).truncated for task in tasks for _ in range(GROUP)]
    assert data["truncated"] == [int(cut) for cut in truncated]
    assert data["rewards"] == pytest.approx([0.0] * len(truncated), abs=1e-6), "the members of a group play alike"


def test_an_episode_that_is_interrupted_starts_again(reference, tmp_path):
    data, _ = played(reference, GAME_TASKS[:8], tmp_path, interrupted=5)
    check(reference, {task: held_of(data, i * GROUP) for i, task in enumerate(GAME_TASKS[:8])})


def test_the_advantage_of_each_turn_is_on_its_tokens(reference, tmp_path):
    tasks = GAME_TASKS[:16]
    data, args = played(reference, tasks, tmp_path, post_process=adapter.turn_rewards)
    adapter.turn_advantages(args, data)
    advantages = rebn([reference.trajectory(task) for task in tasks for _ in range(GROUP)], 0.8)
    for i, values_K in enumerate(advantages):
        sequence = reference.expected(tasks[i // GROUP])
        wanted = torch.tensor(sequence.response(sequence.per_token(values_K)))
        assert torch.allclose(data["advantages"][i], wanted, atol=1e-6)


@pytest.mark.parametrize("mutation", [token, mask, cut], ids=lambda mutation: mutation.__name__)
def test_a_mutated_adapter_fails_the_contract(mutation, reference, tmp_path, monkeypatch):
    tasks = [task for task in GAME_TASKS if len(reference.trajectory(task).turns) > 1][:4]
    mutate_packing(monkeypatch, adapter, tasks[2].seed, mutation)
    data, _ = played(reference, tasks, tmp_path)
    with pytest.raises(AssertionError, match=f"{tasks[2].env_id} {tasks[2].seed}"):
        check(reference, {task: held_of(data, i * GROUP) for i, task in enumerate(tasks)})


def test_a_context_that_is_not_an_extension_is_a_further_sample_of_the_episode(reference, tmp_path, monkeypatch):
    tasks = [task for task in GAME_TASKS if len(reference.trajectory(task).turns) > 1][:2]
    pack = adapter.pack_episode

    def forked(trajectory):
        packed = pack(trajectory)
        packed.sequences.append(packed.sequences[0])
        return packed

    monkeypatch.setattr(adapter, "pack_episode", forked)
    sample = Sample(metadata=tasks[0].to_row(), index=7)

    async def play(self, task, reply):
        return reference.trajectory(tasks[0])

    monkeypatch.setattr(EpisodePool, "play", play)
    args = settings(reference, sglang_router_port=1)
    parts = asyncio.run(adapter.generate(args, sample, {}))
    assert [part.rollout_id for part in parts] == [7, 7] and parts[0] is not parts[1]
    totals, rows = adapter.turn_rewards(args, parts)
    assert totals == [reference.trajectory(tasks[0]).total_reward] * 2 and rows[0] == rows[1]


def test_an_environment_that_fails_is_no_reward(reference, monkeypatch):
    async def play(self, task, reply):
        raise InfraError("down")

    monkeypatch.setattr(EpisodePool, "play", play)
    sample = Sample(metadata=GAME_TASKS[0].to_row())
    with pytest.raises(InfraError, match="down"):
        asyncio.run(adapter.generate(settings(reference, sglang_router_port=1), sample, {}))
    assert sample.reward is None


def test_the_example_writes_the_tasks_that_slime_reads(tmp_path):
    command = [sys.executable, str(ROOT / "examples/slime/tasks.py"), str(tmp_path / "tasks.jsonl"), "--tasks", "4"]
    for environment in (["game:GuessTheNumber-v0-easy"], ["math:Arithmetic", "--wrappers", "python_tool,concat_chat"]):
        subprocess.run([*command, "--env", *environment], check=True, timeout=120)
        rows = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
        assert [EnvTask.from_row(row["metadata"]).env_id for row in rows] == [environment[0]] * 4
