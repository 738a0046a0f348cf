"""ROLL: its environment managers hand over the reference episodes, and its own ones play the ids that they name.

ROLL is not at the package index: GEM_ROLL is the folder of a checkout.
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from threading import Lock
from types import ModuleType, SimpleNamespace

import pytest

sys.path += [folder] if (folder := os.environ.get("GEM_ROLL")) else []
os.environ.setdefault("ROLL_LOG_DIR", tempfile.mkdtemp())
pytest.importorskip("roll.pipeline", reason="GEM_ROLL is not set to a checkout of ROLL")

import numpy as np
import torch
import yaml
from roll.distributed.scheduler import router
from roll.distributed.scheduler.protocol import DataProto
from roll.pipeline.agentic import utils
from roll.pipeline.agentic.env_manager import traj_env_manager
from roll.pipeline.agentic.env_manager.step_concat_env_manager import StepConcatEnvManager
from roll.pipeline.agentic.env_manager.traj_env_manager import TrajEnvManager
from roll.utils.functionals import compute_token_reward

import gem.integrations.roll as adapter
from gem.errors import BadValue, InfraError
from gem.integrations.roll import GemStepEnvManager, GemTrajEnvManager
from gem.integrations.shared.sequences import turn_returns
from gem.integrations.shared.tasks import EnvTask
from gem.policies import Reply

from .contract import GAME_TASKS, MATH_TASKS, Held, PromptMismatch, ReplayEngine, check

ROOT = Path(__file__).parents[2]
GAMES = yaml.safe_load((Path(os.environ["GEM_ROLL"]) / "examples/config/traj_envs_gem_games.yaml").read_text())
LIMIT = GAMES["max_actions_per_traj"]


class Engine(router.RouterProxy):
    """What ROLL's client of the engine asks: answers with the recorded replies."""

    def __init__(self, reference) -> None:
        self.engine = ReplayEngine(reference)

    def on_send_request_sync(self, request_id):
        return True

    def on_request_routed_sync(self, request_id):
        pass

    def generate_request_sync(self, payload, request_id, uid):
        reply = self.engine.answer(payload["input_ids"])
        answer = {"finish_reasons": [reply.finish], "output_token_ids": [list(reply.sampled_ids)]}
        return {**answer, "output_logprobs": [list(reply.logprobs)]}


class Queue:
    """ROLL's queue of groups: hands out numbers of episodes and keeps what is put."""

    def __init__(self, episodes: int) -> None:
        self.left, self.rollouts, self.manager = list(range(episodes)), {}, None
        self.get_episode_id = SimpleNamespace(remote=self.next)
        self.put = SimpleNamespace(remote=self.keep)

    def next(self, group_id, env_id):
        if not self.left:
            self.manager.stop()
        return self.left.pop(0) if self.left else None

    def keep(self, group_id, episode_id, start_step, rollout, env_id):
        if rollout is not None:
            self.rollouts[episode_id] = rollout


@pytest.fixture
def rolls(reference, tmp_path, monkeypatch):
    """Plays episodes as ROLL's worker does, with its own configuration and its own loop. Returns them by number."""
    vllm = ModuleType("vllm_strategy")
    vllm.create_sampling_params_for_vllm = lambda settings, unfinished: settings
    monkeypatch.setitem(sys.modules, "roll.distributed.strategy.vllm_strategy", vllm)
    monkeypatch.setattr(traj_env_manager, "ray", SimpleNamespace(get=lambda value: value))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROLL_LOG_DIR", str(tmp_path))
    ids = {"eos_token_id": reference.tokenizer.eos_token_id, "pad_token_id": reference.tokenizer.pad_token_id}
    client = router.RouterClient(Engine(reference), {"strategy_name": "vllm", **ids})
    monkeypatch.setattr(router.RouterManager, "create_client_sync", lambda scheduler: client)

    def play(manager_class, env_type, episodes, *, first_seed, proxy="policy", name="guess_the_number", **entry):
        settings = configured(name, reference.folder)
        settings.sequence_length = entry.pop("sequence_length", settings.sequence_length)
        env = settings.train_env_manager.env_configs[0][0]
        env.update({"env_type": env_type, "group_seed": 0, **entry})
        settings.custom_envs[env.tag].update(entry)
        settings.train_env_manager.llm_proxy.proxy_type = proxy
        queue = Queue(episodes)
        manager = queue.manager = manager_class(
            settings.train_env_manager, settings, env, reference.tokenizer, None, queue, Lock()
        )
        try:
            manager.run_rollout_loop(DataProto(meta_info={"seed": first_seed}))
        finally:
            manager.env.close()
        assert len(queue.rollouts) == episodes
        return [queue.rollouts[number] for number in range(episodes)], settings, manager

    return play


def configured(name, model):
    return runpy.run_path(str(ROOT / "examples/roll/train.py"))["configuration"](name, [f"pretrain={model}"])


def rows(rollout):
    """The sequences of a rollout: ids, mask, log-probabilities and the reward of each."""
    for i in range(len(rollout)):
        fields = {name: values[i] for name, values in rollout.batch.items()}
        held = fields["attention_mask"].bool()
        ids, mask = (fields[name][held].tolist() for name in ("input_ids", "response_mask"))
        logprobs = [0.0, *fields["infer_logprobs"][: len(ids) - 1].tolist()] if "infer_logprobs" in fields else None
        yield ids, list(map(int, mask)), logprobs, float(fields["scores"].sum())


def entry_of(task):
    return {"env_type": task.env_id, "wrappers": task.wrappers, "first_seed": task.seed, "max_steps": 99}


def held_of(rollout):
    ((ids, mask, logprobs, total),) = rows(rollout)
    return Held(ids, mask, total, logprobs)


@pytest.mark.parametrize("tasks", [GAME_TASKS, MATH_TASKS], ids=["game", "math"])
def test_the_sequences_of_episodes_are_the_reference(tasks, rolls, reference):
    rollouts, *_ = rolls(GemTrajEnvManager, episodes=len(tasks), **entry_of(tasks[0]))
    check(reference, {task: held_of(rollout) for task, rollout in zip(tasks, rollouts, strict=True)})
    for task, rollout in zip(tasks, rollouts, strict=True):
        played = reference.trajectory(task)
        assert rollout.non_tensor_batch["step_scores"][0] == pytest.approx(played.rewards_K)
        assert rollout.meta_info["metrics"]["env/Game/success"] == played.solved
        assert rollout.meta_info["metrics"]["env/Game/num_actions"] == len(played.turns)


@pytest.mark.parametrize("tasks", [GAME_TASKS, MATH_TASKS], ids=["game", "math"])
def test_the_sequences_of_turns_are_the_reference(tasks, rolls, reference):
    rollouts, *_ = rolls(GemStepEnvManager, episodes=len(tasks), **entry_of(tasks[0]))
    for task, rollout in zip(tasks, rollouts, strict=True):
        turns = reference.trajectory(task).turns
        for turn, (ids, mask, logprobs, reward) in zip(turns, rows(rollout), strict=True):
            fed = list(turn.context)
            assert ids == fed + turn.sampled_ids and mask == [0] * len(fed) + [1] * len(turn.sampled_ids)
            assert logprobs[len(fed) :] == pytest.approx(turn.logprobs, abs=1e-6)
            assert reward == pytest.approx(turn.reward)


def token(manager, entry):
    entry["prompt_ids"] = [entry["prompt_ids"][0] + 1, *entry["prompt_ids"][1:]]


def mask(manager, entry):
    entry["response_ids"] = [entry["prompt_ids"].pop(), *entry["response_ids"]]
    entry["infer_logprobs"] = [0.0, *entry["infer_logprobs"]]


def drop(manager, entry):
    entry["response_ids"], entry["infer_logprobs"] = entry["response_ids"][:-1], entry["infer_logprobs"][:-1]


@pytest.mark.parametrize("mutation", [token, mask, drop], ids=lambda mutation: mutation.__name__)
def test_a_mutated_adapter_fails_the_contract(mutation, rolls, reference):
    class Mutated(GemTrajEnvManager):
        def formulate_rollouts(self, cache):
            if self.episode_id == 2:
                mutation(self, cache.history[0])
            return super().formulate_rollouts(cache)

    rollouts, *_ = rolls(Mutated, episodes=4, **entry_of(GAME_TASKS[0]))
    with pytest.raises(AssertionError, match=f"{GAME_TASKS[2].env_id} {GAME_TASKS[2].seed}"):
        check(reference, {task: held_of(r) for task, r in zip(GAME_TASKS[:4], rollouts, strict=True)})


def test_the_prompts_of_its_own_manager_lack_what_the_template_writes_after_a_reply(rolls):
    template = {"agent_system_template": None, "agent_template": "{observation}"}
    with pytest.raises(PromptMismatch):
        rolls(TrajEnvManager, episodes=8, **{**entry_of(GAME_TASKS[0]), **template})


def test_its_advantages_of_turns_are_those_of_gem(rolls, reference):
    tasks, gamma = GAME_TASKS[:32], 0.8
    rollouts, settings, _ = rolls(GemStepEnvManager, episodes=len(tasks), **entry_of(GAME_TASKS[0]))
    for number, rollout in enumerate(rollouts):
        rollout.non_tensor_batch["traj_id"] = np.array([str(number)] * len(rollout), dtype=object)
        rollout.meta_info = {}
    batch = utils.compute_discounted_returns(DataProto.concat(rollouts), settings.adv_estimator, gamma)
    batch, _ = utils.compute_response_level_rewards(batch, settings)
    returns = torch.tensor([g for task in tasks for g in turn_returns(reference.trajectory(task), gamma)])
    wanted = (returns - returns.mean()) / (returns.std() + 1e-6)  # ROLL's standard deviation is that of a sample
    assert batch.batch["response_level_rewards"].tolist() == pytest.approx(wanted.tolist(), abs=1e-6)
    batch.batch["final_response_mask"] = batch.batch["response_mask"][:, 1:]
    batch.batch["old_log_probs"] = batch.batch["ref_log_probs"] = batch.batch["infer_logprobs"]
    batch, _ = compute_token_reward(batch, settings, SimpleNamespace(update=lambda **means: None))
    batch = utils.agentic_compute_advantage(batch, 1.0, 1.0, settings.adv_estimator, pipeline_config=settings)
    for row, mask_T, value in zip(batch.batch["advantages"], batch.batch["response_mask"][:, 1:], wanted, strict=True):
        assert row[mask_T.bool()].tolist() == pytest.approx([float(value)] * int(mask_T.sum()), abs=1e-6)


class Flaky:
    """An environment whose step fails a number of times."""

    left = 0

    def __init__(self, env) -> None:
        self.env = env

    def __getattr__(self, name):
        return getattr(self.env, name)

    def step(self, action):
        if Flaky.left:
            Flaky.left -= 1
            raise InfraError("down")
        return self.env.step(action)


@pytest.mark.parametrize("failures", [1, 3])
def test_an_episode_that_fails_is_played_again_and_is_no_reward(failures, rolls, reference, monkeypatch):
    monkeypatch.setattr(EnvTask, "build", lambda task, tokenizer: Flaky(build(task, tokenizer)))
    Flaky.left = failures
    if failures == 3:
        with pytest.raises(InfraError, match=r"failed 3 times: .*down"):
            rolls(GemTrajEnvManager, episodes=2, **entry_of(GAME_TASKS[0]))
        return
    rollouts, *_ = rolls(GemTrajEnvManager, episodes=2, **entry_of(GAME_TASKS[0]))
    check(reference, {task: held_of(r) for task, r in zip(GAME_TASKS[:2], rollouts, strict=True)})


build = EnvTask.build


def test_what_it_cannot_express_is_refused(rolls):
    options = {"timeout": 5, "sandbox_type": "none", "keep_error_last_line": False}
    tool = {"wrapper_args": {}, "tool_configs": [{"tool_id": "python_code", "tool_args": options}]}
    with pytest.raises(BadValue, match="write wrappers: python_tool"):
        rolls(GemTrajEnvManager, episodes=1, **entry_of(GAME_TASKS[0]), tool_wrapper=tool)
    with pytest.raises(BadValue, match="tokens, and sequence_length is 20"):
        rolls(GemTrajEnvManager, episodes=1, **entry_of(GAME_TASKS[0]), sequence_length=20)


def actions_of(rollout, tokenizer):
    """The replies in the sequences of an episode, which are the runs of trained tokens."""
    texts = []
    for ids, mask, *_ in rows(rollout):
        for trained, group in groupby(zip(mask, ids, strict=True), key=lambda pair: pair[0]):
            texts += [tokenizer.decode([token for _, token in group])] if trained else []
    return texts


@pytest.mark.parametrize("name", sorted(GAMES["gem_games"]))
@pytest.mark.parametrize("manager_class", [TrajEnvManager, StepConcatEnvManager])
def test_its_own_managers_play_the_games_that_it_names(manager_class, name, rolls, reference):
    game = GAMES["gem_games"][name]
    config = {key: LIMIT if value == "${max_actions_per_traj}" else value for key, value in game["env_config"].items()}
    options = {"config": {**config, "end_on_truncation": True}, "max_steps": 2 * LIMIT, "history_length": 9}
    options |= {"agent_system_template": None, "agent_template": "{observation}"}
    if manager_class is StepConcatEnvManager:
        options["agent_template"] = "{history}{current_observation}"
    rollouts, *_ = rolls(manager_class, game["env_type"], 2, first_seed=3, proxy="random", **options)
    episode = EnvTask(env_id=game["env_type"], seed=3, env_kwargs=config).episode()
    for seed, rollout in enumerate(rollouts, 3):
        episode.reset(seed)
        for action in actions_of(rollout, reference.tokenizer):
            episode.step(Reply(action))
        assert episode.over
        scores = np.concatenate([np.atleast_1d(scores) for scores in rollout.non_tensor_batch["step_scores"]])
        assert scores.tolist() == pytest.approx(episode.trajectory.rewards_K)
        assert rollout.non_tensor_batch["episode_scores"][0] == pytest.approx(episode.trajectory.total_reward)


@pytest.mark.parametrize("name", ["guess_the_number", "math_python"])
def test_the_examples_play(name, rolls, reference):
    settings = configured(name, reference.folder)
    env = settings.train_env_manager.env_configs[0][0]
    manager_class = getattr(adapter, env.env_manager_cls.rpartition(".")[2])
    rollouts, *_ = rolls(manager_class, env.env_type, 2, first_seed=1, proxy="random", name=name)
    assert len(settings.train_env_manager.env_configs[0]) == 128
    assert all(rollout.batch["response_mask"].any() for rollout in rollouts)
