"""verl: its agent loop workers hand over the reference episodes, and its trainer's advantages are those of gem."""

from __future__ import annotations

import asyncio
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("verl")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import torch
import verl
from hydra import compose, initialize_config_dir
from hydra.errors import InstantiationException
from omegaconf import OmegaConf
from tensordict import TensorDict
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
from verl.protocol import DataProto
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.trainer.ppo.v1 import agent_loop_tq
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn
from verl.utils.tensordict_utils import list_of_dict_to_tensordict
from verl.workers.rollout.replica import TokenOutput

import gem.integrations.verl as adapter
from gem.errors import InfraError
from gem.integrations.shared.sequences import rebn, turn_returns
from gem.integrations.shared.tasks import EnvTask
from gem.rl.estimate.advantages import ADVANTAGES, EpisodeRewards

from .contract import GAME_TASKS, MATH_TASKS, Held, ReplayEngine, check, late, mask, mutate_packing, token

ROOT = Path(__file__).parents[2]
ROLLOUT = "actor_rollout_ref.rollout"


class Client:
    """The client of verl's engine, with one method. Answers with the recorded replies."""

    def __init__(self, reference) -> None:
        self.engine, self.sessions, self.tokenizer = ReplayEngine(reference), set(), None

    async def generate(self, request_id, *, prompt_ids, sampling_params, **options):
        assert sampling_params["logprobs"] and sampling_params["temperature"] == 1.0
        self.sessions.add(request_id)
        reply = self.engine.answer(prompt_ids)
        steps = {"global_steps": 3 + len(prompt_ids) % 2}
        return TokenOutput(
            token_ids=list(reply.sampled_ids),
            log_probs=list(reply.logprobs),
            stop_reason="completed",
            extra_fields=steps,
        )


def settings(folder, *overrides):
    """verl's own configuration with the adapter."""
    with initialize_config_dir(str(Path(verl.__file__).parent / "trainer/config"), version_base=None):
        return compose(
            "ppo_trainer",
            overrides=[
                f"actor_rollout_ref.model.path={folder}",
                f"{ROLLOUT}.name=vllm",
                f"{ROLLOUT}.prompt_length=1024",
                f"{ROLLOUT}.response_length=1024",
                f"{ROLLOUT}.calculate_log_probs=true",
                f"{ROLLOUT}.agent.default_agent_loop=gem",
                "algorithm.adv_estimator=gem_rebn",
                "algorithm.gamma=0.8",
                "data.max_prompt_length=1024",
                *overrides,
            ],
        )


def rows_of(config, tokenizer, tasks, folder):
    """The rows that verl's dataset reads from a file."""
    import datasets

    file = str(folder / "tasks.parquet")
    datasets.Dataset.from_list(adapter.dataset_rows(tasks)).to_parquet(file)
    data = RLHFDataset(data_files=file, tokenizer=tokenizer, config=config.data)
    return [data[i] for i in range(len(data))]


def legacy(reference, tasks, folder, client=None, *overrides):
    """Play tasks with the worker of the legacy trainer. Returns its batch."""
    config = settings(reference.folder, "trainer.use_v1=false", *overrides)
    batch = DataProto.from_single_dict(collate_fn(rows_of(config, reference.tokenizer, tasks, folder)))
    worker = AgentLoopWorker(config, client or Client(reference))
    return asyncio.run(worker.generate_sequences(batch))


def v1(reference, tasks, folder, monkeypatch, client=None, *overrides):
    """Play tasks with the worker of the default trainer. Returns the keys and the batch that its trainer reads."""
    keys, fields = [], []

    class Store:
        async def async_kv_put(self, **options):
            assert options["tag"]["status"] != "failure"

        async def async_kv_batch_put(self, keys, fields, tags, partition_id):
            put(keys, fields, tags)

    def put(new_keys, table, tags):
        for i, key in enumerate(new_keys):
            names = ("prompts", "responses", "input_ids", "response_mask", "rm_scores", "rollout_log_probs")
            keys.append(key)
            fields.append({name: table[name][i].clone() for name in names})
            assert tags[i]["min_global_steps"] in (3, 4) and table["extra_fields"][i]["turn_scores"]

    monkeypatch.setattr(agent_loop_tq, "tq", Store())
    config = settings(reference.folder, *overrides)
    kind = agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__.modified_class
    worker = kind.__new__(kind)
    AgentLoopWorker.__init__(worker, config, client or Client(reference))
    worker.background_tasks = set()

    async def play():
        rows = rows_of(config, reference.tokenizer, tasks, folder)
        await asyncio.gather(
            *(
                worker._run_prompt(
                    {**row, "uid": f"task{i}", "global_steps": 3, "agent_name": "gem"},
                    {"temperature": 1.0, "logprobs": True},
                    {"step": 3, "sample_index": i, "rollout_n": 0, "validate": False},
                )
                for i, row in enumerate(rows)
            )
        )

    asyncio.run(play())
    order = sorted(range(len(keys)), key=lambda i: [int(n) for n in keys[i].removeprefix("task").split("_")])
    table = list_of_dict_to_tensordict([fields[i] for i in order])
    return [keys[i] for i in order], table, config


def advantages(keys, table, config):
    """What the default trainer computes from a batch: one padded row per key."""
    data = DataProto(batch=TensorDict({n: table[n] for n in ("response_mask", "rm_scores")}, table.batch_size))
    data = DataProto(batch=data.batch.to_padded_tensor() if table["rm_scores"].is_nested else data.batch)
    data.batch["token_level_rewards"] = data.batch["rm_scores"]
    algorithm = config.algorithm
    name, gamma = algorithm.adv_estimator, algorithm.gamma
    return compute_advantage_for_multi_trajectories(data, keys, name, gamma=gamma, config=algorithm).batch


def held_of(table, i, total):
    prompt, ids = table["prompts"][i].tolist(), table["responses"][i].tolist()
    assert table["input_ids"][i].tolist() == prompt + ids
    rest = [table[name][i].tolist() for name in ("response_mask", "rollout_log_probs", "rm_scores")]
    assert [len(values) for values in rest] == [len(ids)] * 3
    before = [0] * len(prompt)
    return Held(prompt + ids, before + rest[0], total, before + rest[1], before + rest[2])


@pytest.mark.parametrize("tasks", [GAME_TASKS, MATH_TASKS], ids=["game", "math"])
def test_the_default_trainer_is_given_the_reference_episodes(tasks, reference, tmp_path, monkeypatch):
    client = Client(reference)
    keys, table, config = v1(reference, tasks, tmp_path, monkeypatch, client, f"{ROLLOUT}.n=2")
    assert keys == [f"task{i}_{member}_0" for i in range(len(tasks)) for member in range(2)]
    assert len(client.sessions) == len(keys), "an episode stays with one server"
    for member in range(2):
        totals = [float(table["rm_scores"][2 * i + member].sum()) for i in range(len(tasks))]
        held = {task: held_of(table, 2 * i + member, totals[i]) for i, task in enumerate(tasks)}
        check(reference, held)
    computed = advantages(keys, table, config)
    wanted = rebn([reference.trajectory(task) for task in tasks for _ in range(2)], 0.8)
    for i, task in enumerate(task for task in tasks for _ in range(2)):
        sequence = reference.expected(task)
        expected = sequence.response(sequence.per_token(wanted[i]))
        assert computed["advantages"][i, : len(expected)].tolist() == pytest.approx(expected, abs=1e-6)
        returns = sequence.response(sequence.per_token(turn_returns(reference.trajectory(task), 0.8).tolist()))
        assert computed["returns"][i, : len(returns)].tolist() == pytest.approx(returns, abs=1e-6)
        assert not computed["advantages"][i, len(expected) :].any()


@pytest.mark.parametrize("tasks", [GAME_TASKS, MATH_TASKS], ids=["game", "math"])
def test_the_legacy_trainer_is_given_the_reference_episodes_with_one_reward(tasks, reference, tmp_path):
    data = legacy(reference, tasks, tmp_path)
    held = {}
    for i, task in enumerate(tasks):
        attend = data.batch["attention_mask"][i].bool()
        ids, length = data.batch["input_ids"][i][attend].tolist(), len(data.batch["responses"][i])
        kept = attend[-length:]
        prompt = [0] * (len(ids) - int(kept.sum()))
        mask, logprobs = (data.batch[name][i][kept].tolist() for name in ("response_mask", "rollout_log_probs"))
        total = float(data.batch["rm_scores"][i].sum())
        held[task] = Held(ids, prompt + mask, total, prompt + logprobs)
        assert data.non_tensor_batch["turn_scores"][i] == reference.trajectory(task).rewards_K
        assert data.non_tensor_batch["solved"][i] == float(reference.trajectory(task).solved)
    check(reference, held)


@pytest.mark.parametrize("name", ["rebn", "turn"])
def test_the_hook_agrees_with_the_estimators_of_gem(name, reference):
    episodes = [reference.trajectory(task) for task in [*GAME_TASKS, *MATH_TASKS]]
    rows = [reference.expected(task) for task in [*GAME_TASKS, *MATH_TASKS]]
    fields = [
        {
            "response_mask": torch.tensor(row.response(row.mask_T)),
            "token_level_rewards": torch.tensor(row.response(row.rewards_T)),
        }
        for row in rows
    ]
    fields.append({"response_mask": torch.zeros(3, dtype=torch.int64), "token_level_rewards": torch.zeros(3)})
    data = DataProto(batch=list_of_dict_to_tensordict(fields).to_padded_tensor())
    config = settings(reference.folder, "algorithm.gamma=0.7").algorithm
    computed = compute_advantage(data, f"gem_{name}", gamma=config.gamma, config=config).batch["advantages"]
    wanted = ADVANTAGES[name]([EpisodeRewards(episode.rewards_K) for episode in episodes], gamma=0.7)
    if name == "rebn":
        assert [values.tolist() for values in wanted] == rebn(episodes, 0.7)
    for row, values_K, got in zip(rows, wanted, computed, strict=False):
        expected = row.response(row.per_token(values_K.tolist()))
        assert got[: len(expected)].tolist() == pytest.approx(expected, abs=1e-6)
    assert not computed[-1].any(), "a row without trained tokens"


def test_each_environment_of_a_mixture_has_its_own_discount(reference, tmp_path, monkeypatch):
    tasks = [*GAME_TASKS[:6], *MATH_TASKS[:6]]
    gamma = {GAME_TASKS[0].env_id: 0.5, MATH_TASKS[0].env_id: 0.9}
    loops = tmp_path / "loops.yaml"
    OmegaConf.save([{"name": "gem", "_target_": "gem.integrations.verl.GemAgentLoop", "gamma": gamma}], loops)
    path = f"{ROLLOUT}.agent.agent_loop_config_path={loops}"
    registry = adapter.agent_loop._agent_loop_registry
    monkeypatch.setitem(registry, "gem", registry["gem"])
    keys, table, config = v1(reference, tasks, tmp_path, monkeypatch, None, path, "algorithm.gamma=1")
    computed = advantages(keys, table, config)["advantages"]
    wanted = rebn([reference.trajectory(task) for task in tasks], gamma)
    for i, task in enumerate(tasks):
        sequence = reference.expected(task)
        expected = sequence.response(sequence.per_token(wanted[i]))
        assert computed[i, : len(expected)].tolist() == pytest.approx(expected, abs=1e-6)
    with pytest.raises(InstantiationException, match=r"needs algorithm.gamma=1, got 0.8"):
        legacy(reference, tasks[:1], tmp_path, None, path)


class Guesses(Client):
    """Guesses 1, 2, 3, 4, whatever the context."""

    async def generate(self, request_id, *, prompt_ids, sampling_params, **options):
        self.sessions.add(request_id)
        self.counts = getattr(self, "counts", {})
        guess = self.counts[request_id] = self.counts.get(request_id, 0) + 1
        ids = self.engine.chat.encode_reply(rf"\boxed{{{guess}}}")
        return TokenOutput(token_ids=ids, log_probs=[-1.0] * len(ids), extra_fields={"global_steps": 3})


def test_an_episode_in_several_sequences_has_the_returns_of_one(reference, tmp_path, monkeypatch):
    loops, history = tmp_path / "loops.yaml", {"max_turns": 1, "overflow": "drop_oldest"}
    OmegaConf.save([{"name": "gem", "_target_": "gem.integrations.verl.GemAgentLoop", "history": history}], loops)
    registry = adapter.agent_loop._agent_loop_registry
    monkeypatch.setitem(registry, "gem", registry["gem"])
    path = f"{ROLLOUT}.agent.agent_loop_config_path={loops}"
    tasks, won = GAME_TASKS[:12], 0
    keys, table, config = v1(reference, tasks, tmp_path, monkeypatch, Guesses(reference), path)
    computed = advantages(keys, table, config)["returns"]
    for i, _ in enumerate(tasks):
        rows = [row for row, key in enumerate(keys) if key.startswith(f"task{i}_")]
        values = []  # of each turn, in order
        for row in rows:
            mask = table["response_mask"][row].bool().tolist()
            starts = [t for t, one in enumerate(mask) if one and not (t and mask[t - 1])]
            values += [float(computed[row, t]) for t in starts]
        total = float(table["rm_scores"][rows[-1]].sum())
        won += total > 0
        assert values == pytest.approx([total * 0.8**k for k in reversed(range(len(values)))], abs=1e-6)
    assert won > 2 and len(keys) > len(tasks)


@pytest.mark.parametrize("mutation", [token, mask, late], ids=lambda mutation: mutation.__name__)
def test_a_mutated_adapter_fails_the_contract(mutation, reference, tmp_path, monkeypatch):
    tasks = [task for task in MATH_TASKS if any(reference.trajectory(task).rewards_K[:-1])][:4]
    mutate_packing(monkeypatch, adapter, tasks[2].seed, mutation)
    _, table, _ = v1(reference, tasks, tmp_path, monkeypatch)
    held = {task: held_of(table, i, float(table["rm_scores"][i].sum())) for i, task in enumerate(tasks)}
    with pytest.raises(AssertionError, match=f"{tasks[2].env_id} {tasks[2].seed}"):
        check(reference, held)


def test_an_engine_that_aborts_is_no_reward(reference, tmp_path):
    class Down(Client):
        async def generate(self, *args, **options):
            return TokenOutput(token_ids=[], stop_reason="aborted")

    with pytest.raises(InfraError, match=r"3 times: .*aborted"):
        legacy(reference, GAME_TASKS[:1], tmp_path, Down(reference))


def test_a_response_over_the_limit_is_cut(reference, tmp_path):
    task = next(task for task in GAME_TASKS if len(reference.trajectory(task).turns) > 2)
    length = len(reference.expected(task).response_ids) - 3
    data = legacy(reference, [task], tmp_path, None, f"{ROLLOUT}.response_length={length}")
    assert data.batch["responses"].shape[1] == length and data.batch["attention_mask"][0, -length:].all()


def test_an_episode_whose_first_prompt_is_too_long_is_dropped(reference):
    limits = (f"{ROLLOUT}.prompt_length=1", f"{ROLLOUT}.response_length=1")
    config = settings(reference.folder, *limits)
    loop = adapter.GemAgentLoop.__new__(adapter.GemAgentLoop)
    loop.config, loop.max_new_tokens, loop.gamma = config, None, None
    loop.pool = adapter.shared_pool(reference.tokenizer, 2, adapter.FULL_HISTORY)
    assert asyncio.run(loop.run({}, extra_info=GAME_TASKS[0].to_row())) == []


def test_verl_imports_the_adapter_in_its_processes():
    code = "import verl; from verl.trainer.ppo.core_algos import get_adv_estimator_fn as f; print(f('gem_turn'))"
    environment = {**os.environ, "VERL_USE_EXTERNAL_MODULES": "gem.integrations.verl"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert "turn_advantage" in done.stdout, done.stderr[-2000:]


def test_the_example_writes_tasks_and_a_command_that_verl_accepts(reference, tmp_path):
    main = runpy.run_path(str(ROOT / "examples/verl/train.py"))["main"]
    for environment in (["game:GuessTheNumber-v0-easy"], ["math:Arithmetic", "--wrappers", "python_tool,concat_chat"]):
        small = ["--model", str(reference.folder), "--tasks", "8", "--output", str(tmp_path), "--dry-run"]
        overrides = main([*small, "--env", *environment])
        config = settings(reference.folder, *overrides)
        data = RLHFDataset(data_files=config.data.train_files, tokenizer=reference.tokenizer, config=config.data)
        assert len(data) == 8 and EnvTask.from_row(data[0]["extra_info"]).env_id == environment[0]
        assert (config.algorithm.adv_estimator, data[0]["agent_name"]) == ("gem_rebn", "gem")
