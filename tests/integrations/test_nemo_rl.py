"""NeMo-RL: its loop of turns ends up with the reference episodes, through the actor.

NeMo-RL is not at the package index: GEM_NEMO_RL is the folder of a checkout.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest

sys.path += [folder] if (folder := os.environ.get("GEM_NEMO_RL")) else []
pytest.importorskip("nemo_rl", reason="GEM_NEMO_RL is not set to a checkout of NeMo-RL")
if "nemo_rl.utils.logger" not in sys.modules:
    sys.modules["nemo_rl.utils.logger"] = MagicMock()  # imports the clients of five services

import ray
import torch
from nemo_rl.data.llm_message_utils import add_loss_mask_to_message_log
from nemo_rl.distributed.batched_data_dict import BatchedDataDict
from nemo_rl.experience.rollouts import run_multi_turn_rollout

import gem
import gem.integrations.nemo_rl as adapter
from gem.errors import InfraError
from gem.integrations.nemo_rl import TASK_NAME, GemActor, GemBatchEnvironment, GemDataset
from gem.integrations.shared.tasks import make_tasks

from .contract import GAME_TASKS, MATH_TASKS, Held, PromptMismatch, ReplayEngine, check

ROOT = Path(__file__).parents[2]


class Policy:
    """A stand-in for NeMo-RL's generation with the recorded replies; others end the episode if it forgives."""

    def __init__(self, reference, forgives: bool) -> None:
        self.engine, self.forgives, self.unknown = ReplayEngine(reference), forgives, 0

    def generate(self, data, greedy=False):
        rows = []
        for ids, length in zip(data["input_ids"].tolist(), data["input_lengths"].tolist(), strict=True):
            try:
                reply = self.engine.answer(ids[:length])
                rows.append((ids[:length], list(reply.sampled_ids), list(reply.logprobs), reply.finish))
            except PromptMismatch:
                if not self.forgives:
                    raise
                self.unknown += 1
                sampled = self.engine.chat.encode_reply("I do not know.")
                rows.append((ids[:length], sampled, [0.0] * len(sampled), "stop"))
        width = max(len(prompt) + len(sampled) for prompt, sampled, _, _ in rows)
        lengths = [len(prompt) + len(sampled) for prompt, sampled, _, _ in rows]
        padded = [[*prompt, *sampled] + [0] * (width - len(prompt) - len(sampled)) for prompt, sampled, _, _ in rows]
        scores = [
            [0.0] * len(prompt) + scored + [0.0] * (width - len(prompt) - len(scored)) for prompt, _, scored, _ in rows
        ]
        return BatchedDataDict(
            output_ids=torch.tensor(padded),
            generation_lengths=torch.tensor([len(sampled) for _, sampled, _, _ in rows]),
            unpadded_sequence_lengths=torch.tensor(lengths),
            logprobs=torch.tensor(scores),
            truncated=torch.tensor([finish == "length" for *_, finish in rows]),
        )


class Direct:
    """The actor without its process: `.step.remote(...)` puts the result into Ray's store."""

    def __init__(self, environment) -> None:
        self.environment, self.step = environment, self

    def remote(self, *arguments):
        return ray.put(self.environment.step(*arguments))


@pytest.fixture(scope="module")
def cluster():
    paths = os.pathsep.join([str(ROOT / "src"), os.environ["GEM_NEMO_RL"]])
    workers = {"env_vars": {"PYTHONPATH": paths}}
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, runtime_env=workers)
    yield
    ray.shutdown()


def own(tasks):
    """The tasks without the wrapper that shows the conversation, which NeMo-RL keeps itself."""
    return [replace(task, wrappers=task.wrappers.removesuffix(",concat_chat")) for task in tasks]


def played(reference, tasks, actor, *, forgives=False, turns=99):
    """Play a batch. Returns what the loss is given for each task, and the policy."""
    dataset = GemDataset(own(tasks), reference.tokenizer)
    rows = [dataset[i] for i in range(len(dataset))]
    batch = BatchedDataDict({name: [row[name] for row in rows] for name in rows[0]})
    policy = Policy(reference, forgives)
    batch, _ = run_multi_turn_rollout(policy, batch, reference.tokenizer, {TASK_NAME: actor}, 4096, turns)
    add_loss_mask_to_message_log(batch["message_log"], roles_to_train_on=["assistant"])
    found = {}
    for task, log, total in zip(tasks, batch["message_log"], batch["total_reward"].tolist(), strict=True):
        ids, mask = (torch.cat([m[name] for m in log]).tolist() for name in ("token_ids", "token_loss_mask"))
        scores = [m.get("generation_logprobs", torch.zeros(len(m["token_ids"]))) for m in log]
        found[task] = Held(ids, mask, total, torch.cat(scores).tolist())
    return found, policy


def cut_off(reference, task) -> bool:
    return any(turn.finish == "length" for turn in reference.trajectory(task).turns[:-1])


@pytest.fixture
def environment(reference):
    made = GemBatchEnvironment({"tokenizer": str(reference.folder)})
    yield made
    made.shutdown()


def check_all_but_cut(reference, tasks, actor):
    held, policy = played(reference, tasks, actor, forgives=True)
    cuts = {task: cut_off(reference, task) for task in tasks}
    check(reference, {task: row for task, row in held.items() if not cuts[task]})
    assert policy.unknown == Counter(cuts.values())[True] < len(tasks) / 2


def test_episodes_without_a_cut_reply_are_the_reference(reference, cluster, environment):
    check_all_but_cut(reference, GAME_TASKS, Direct(environment))


def test_the_actor_plays_episodes_with_a_tool(reference, cluster):
    actor = GemActor.options(num_cpus=0).remote({"tokenizer": str(reference.folder)})
    check_all_but_cut(reference, MATH_TASKS, actor)
    ray.kill(actor)


def shorter(environment, monkeypatch):
    shown = environment._shown
    monkeypatch.setattr(environment, "_shown", lambda request: shown(request)[:-1])


def other_reward(environment, monkeypatch):
    turn = environment._turn

    def changed(*given):
        text, kept, _, over = turn(*given)
        return text, kept, 0.5, over

    monkeypatch.setattr(environment, "_turn", changed)


def other_prompt(environment, monkeypatch):
    prompt = adapter.ChatFormat.prompt
    monkeypatch.setattr(adapter.ChatFormat, "prompt", lambda chat, messages: prompt(chat, messages)[1:])


@pytest.mark.parametrize("mutation", [shorter, other_reward, other_prompt], ids=lambda mutation: mutation.__name__)
def test_a_mutated_adapter_fails_the_contract(mutation, reference, cluster, environment, monkeypatch):
    tasks = [task for task in GAME_TASKS if not cut_off(reference, task)]
    tasks = [task for task in tasks if len(reference.trajectory(task).turns) > 1][:4]
    check(reference, played(reference, tasks, Direct(environment))[0])
    mutation(environment, monkeypatch)
    with pytest.raises((AssertionError, PromptMismatch)):
        check(reference, played(reference, tasks, Direct(environment))[0])


def test_an_episode_that_the_actor_does_not_have_is_played_again(reference, cluster, environment):
    class Forgetful(Direct):
        def remote(self, *arguments):
            while self.environment.open:
                self.environment.open.popitem()[1].close()
            return super().remote(*arguments)

    tasks = [task for task in GAME_TASKS if not cut_off(reference, task)][:6]
    check(reference, played(reference, tasks, Forgetful(environment))[0])


def test_only_so_many_episodes_stay_open(reference, cluster):
    environment = GemBatchEnvironment({"tokenizer": str(reference.folder), "max_open": 2})
    tasks = [task for task in GAME_TASKS if len(reference.trajectory(task).turns) > 1][:5]
    played(reference, tasks, Direct(environment), turns=1)
    assert len(environment.open) == 2
    environment.shutdown()


def test_a_failed_step_is_played_again_and_then_raises(reference, environment):
    class Failing(gem.Env):
        failures = 2

        def reset(self, seed=None):
            return "task", {}

        def step(self, action):
            if Failing.failures:
                Failing.failures -= 1
                raise InfraError("the grader is down")
            return gem.core.Step("right", 1.0, terminated=True)

    gem.register("test:NemoFailing", entry_point=Failing)
    try:
        (task,) = make_tasks("test:NemoFailing", 1)
        log = [{"role": "user", "content": "task"}, {"role": "assistant", "content": "x"}]
        answer = environment.step([log], [{"task": task.to_json()}])
        assert answer.rewards.tolist() == [1.0] and answer.terminateds.tolist() == [True]
        assert answer.observations == [{"role": "environment", "content": ""}]
        Failing.failures = 3
        with pytest.raises(InfraError, match=r"failed 3 times: .*the grader is down"):
            environment.step([log], [{"task": task.to_json()}])
    finally:
        gem.ENV_REGISTRY.pop("test:NemoFailing")


def test_the_example_makes_tasks_and_leaves_other_arguments_to_nemo_rl():
    example = runpy.run_path(str(ROOT / "examples/nemo_rl/train.py"))
    given = ["--env", GAME_TASKS[0].env_id, "--num-tasks", "4", "--config", "c.yaml", "grpo.seed=9"]
    options, others = example["parse"](given)
    assert others == ["grpo.seed=9"] and options.config == "c.yaml"
    train, validation = example["tasks"](options)
    assert train == make_tasks(GAME_TASKS[0].env_id, 4) and len(validation) == 256
