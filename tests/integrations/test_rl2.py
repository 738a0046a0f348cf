"""RL2: its groups of samples hold the reference episodes, and its advantages are computed from their rewards.

RL2 is not at the package index: GEM_RL2 is the folder of a checkout.
"""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

sys.path += [folder] if (folder := os.environ.get("GEM_RL2")) else []
pytest.importorskip("RL2", reason="GEM_RL2 is not set to a checkout of RL2")

import torch
from aiohttp import web
from omegaconf import OmegaConf
from RL2.datasets import SampleGroup, pack_tensor_dicts
from RL2.utils import algorithms
from RL2.utils.communication import with_session

import gem.integrations.rl2 as adapter
from gem.errors import InfraError
from gem.integrations.shared.sequences import rebn
from gem.trajectory import Trajectory

from .contract import GAME_TASKS, MATH_TASKS, Held, ReplayEngine, check, late, mask, mutate_packing, token

ROOT = Path(__file__).parents[2]
GROUP = 2


class Router:
    """SGLang's router: answers with the recorded replies, in two parts if it is paused meanwhile."""

    def __init__(self, reference, pause: bool) -> None:
        self.engine, self.pause, self.cut, self.paused = ReplayEngine(reference), pause, {}, True

    async def answer(self, request):
        body = await request.json()
        assert body["return_logprob"] and body["sampling_params"]["no_stop_trim"]
        ids, first = body["input_ids"], 0
        for length in range(len(ids), 0, -1):  # the prompt, and the part of a reply that was sampled before
            if tuple(ids[:length]) in self.engine.reference.replies:
                first = len(ids) - length
                ids = ids[:length]
                break
        reply = self.engine.answer(ids)
        assert body["sampling_params"]["max_new_tokens"] == 500 - first
        tokens = list(zip(reply.logprobs, reply.sampled_ids, [None] * len(reply.sampled_ids), strict=True))[first:]
        finish = reply.finish
        if self.pause and self.paused and first == 0 and len(tokens) > 2:
            tokens, finish = tokens[:2], "abort"
        meta = {"output_token_logprobs": tokens, "finish_reason": {"type": finish}, "completion_tokens": len(tokens)}
        return web.json_response({"text": "", "meta_info": meta})


def settings():
    return OmegaConf.create(
        {
            "responses_per_prompt": GROUP,
            "sampling_params": {"temperature": 1.0, "max_new_tokens": 500, "stop": None},
            "prompt_key": "prompt",
        }
    )


def played(reference, tasks, *, pause=False):
    """Generate groups as RL2's rollout does. Returns them, and how often a group had to be continued."""
    router = Router(reference, pause)

    @with_session
    async def generate():
        app = web.Application()
        app.router.add_post("/generate", router.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
        groups = [SampleGroup(settings(), reference.tokenizer, task.to_row()) for task in tasks]
        calls = 0
        waiting = groups
        try:
            while waiting and calls < 12:
                await asyncio.gather(*(group.generate(url, adapter.generate) for group in waiting))
                waiting = [g for g in groups if any(s.status is not adapter.Status.DONE for s in g.samples)]
                calls += 1
        finally:
            await runner.cleanup()
        assert not waiting
        return groups, calls

    return asyncio.run(generate())


def held_of(sample, tensors) -> Held:
    (fields,) = tensors
    ids = [*fields["states"].tolist(), sample.state_dicts[0]["states"][-1]]
    mask, logprobs, rewards = (fields[name].tolist() for name in ("action_mask", "llm_logps", "rewards"))
    assert [a for a, m in zip(fields["actions"].tolist(), mask, strict=True) if m] == [
        token for token, m in zip(ids[1:], mask, strict=True) if m
    ]
    return Held(ids, [0, *mask], sum(rewards), [0.0, *logprobs], [0.0, *rewards])


@pytest.mark.parametrize("pause", [False, True], ids=["whole", "interrupted"])
@pytest.mark.parametrize("tasks", [GAME_TASKS, MATH_TASKS], ids=["game", "math"])
def test_the_tensors_are_the_reference_episodes(tasks, pause, reference, tmp_path):
    groups, calls = played(reference, tasks, pause=pause)
    assert (calls > 1) == pause and not adapter._interrupted
    for member in range(GROUP):
        held = {}
        for task, group in zip(tasks, groups, strict=True):
            tensors, metrics = group.to_all_tensor_dicts_and_metrics()
            held[task] = held_of(group.samples[member], tensors[member])
            assert metrics["rewards"] == pytest.approx([reference.trajectory(task).total_reward] * GROUP)
            assert metrics["turns"] == [len(reference.trajectory(task).turns)] * GROUP
        check(reference, held)
    groups[0].config["save_dir"] = str(tmp_path)
    groups[0].print()
    groups[0].save(1)
    assert len(json.loads((tmp_path / "step1.jsonl").read_text())) == GROUP


def test_its_advantages_of_episodes_are_those_of_the_totals(reference, monkeypatch):
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    groups, _ = played(reference, GAME_TASKS[:16])
    rows = [t for group in groups for tensors in group.to_all_tensor_dicts_and_metrics()[0] for t in tensors]
    table = pack_tensor_dicts(rows)
    config = OmegaConf.create(
        {
            "actor": {"kl": {"coef": 0}},
            "adv": {"estimator": "reinforce", "responses_per_prompt": GROUP, "global_norm": True, "norm_var": True},
        }
    )
    algorithms.compute_advantages(config, table, torch.arange(len(rows) + 1), 0)
    totals = [reference.trajectory(task).total_reward for task in GAME_TASKS[:16] for _ in range(GROUP)]
    wanted = torch.tensor([values_K[0] for values_K in rebn([_one_turn(total) for total in totals], 1.0)])
    wanted *= ((len(totals) - 1) / len(totals)) ** 0.5  # RL2's standard deviation is that of a sample
    for advantages, trained, value in zip(table["advantages"], table["action_mask"], wanted, strict=True):
        assert advantages[trained.bool()].tolist() == pytest.approx([float(value)] * int(trained.sum()), abs=1e-6)


def _one_turn(total):
    from gem.trajectory import Turn

    return Trajectory(turns=[Turn("", "", reward=total)])


@pytest.mark.parametrize("mutation", [token, mask, late], ids=lambda mutation: mutation.__name__)
def test_a_mutated_adapter_fails_the_contract(mutation, reference, monkeypatch):
    tasks = [task for task in MATH_TASKS if any(reference.trajectory(task).rewards_K[:-1])][:4]
    mutate_packing(monkeypatch, adapter, tasks[2].seed, mutation)
    groups, _ = played(reference, tasks)
    tensors = [group.to_all_tensor_dicts_and_metrics()[0][0] for group in groups]
    with pytest.raises(AssertionError):
        check(reference, {t: held_of(g.samples[0], x) for t, g, x in zip(tasks, groups, tensors, strict=True)})


def test_an_environment_that_fails_is_no_reward(reference, monkeypatch):
    sample = SampleGroup(settings(), reference.tokenizer, GAME_TASKS[0].to_row()).samples[0]

    class Pool:
        async def play(self, task, reply):
            raise InfraError("down")

    monkeypatch.setattr(adapter, "shared_pool", lambda tokenizer: Pool())
    with pytest.raises(InfraError, match="down"):
        asyncio.run(adapter.generate(settings(), reference.tokenizer, "", sample))
    assert not sample.state_dicts


def test_the_example_writes_tasks_and_has_the_function_that_rl2_loads(tmp_path):
    assert runpy.run_path(str(ROOT / "examples/rl2/env.py"))["generate"] is adapter.generate
    command = [sys.executable, str(ROOT / "examples/rl2/tasks.py"), str(tmp_path / "tasks.jsonl"), "--tasks", "4"]
    for environment in (["game:GuessTheNumber-v0-easy"], ["math:Arithmetic", "--wrappers", "python_tool,concat_chat"]):
        subprocess.run([*command, "--env", *environment], check=True, timeout=120)
        rows = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
        assert len(rows) == 4 and rows[0]["env_id"] == environment[0]
