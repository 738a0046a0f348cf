"""TRL: what GRPOTrainer hands to its loss equals the reference, for both extension points; and training learns."""

from __future__ import annotations

import json
import os
import runpy
from pathlib import Path

import pytest

pytest.importorskip("trl")
os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import torch
from trl import GRPOConfig, GRPOTrainer

import gem.integrations.trl as adapter
from gem.errors import BadValue
from gem.integrations.shared.sequences import rebn
from gem.integrations.shared.tasks import EnvTask, make_tasks
from gem.integrations.trl import GemEnvironment, Rollouts, TurnGRPOTrainer, dataset, env_reward
from gem.policies import oracle

from .contract import GAME_TASKS, MATH_TASKS, Held, ReplayEngine, check, cut, mask, token

GROUP = 2


def config(folder, **options) -> GRPOConfig:
    settings = {
        "output_dir": str(folder),
        "num_generations": GROUP,
        "max_completion_length": 2048,
        "max_steps": 1,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "disable_tqdm": True,
        "seed": 3,
        "gradient_checkpointing": False,
    }
    return GRPOConfig(**{**settings, **options})


def held_by_loss(reference, tasks, folder, trainer_class=GRPOTrainer, rollouts=None, **options):
    """Train one step on recorded replies. Returns what the loss was given by task, and the trainer."""
    rollouts = rollouts or Rollouts(policy=ReplayEngine(reference))
    given, rewards = [], []

    class Recording(trainer_class):
        def _compute_loss(self, model, inputs):
            given.append(inputs)
            return super()._compute_loss(model, inputs)

    def reward(**columns):
        rewards.extend(zip(columns["prompts"], env_reward(**columns), strict=True))
        return env_reward(**columns)

    trainer = Recording(
        model=str(reference.folder),
        reward_funcs=reward,
        args=config(folder, per_device_train_batch_size=len(tasks) * GROUP, **options.pop("config", {})),
        train_dataset=dataset(tasks),
        processing_class=reference.tokenizer,
        rollout_func=rollouts,
        **options,
    )
    trainer.train()
    total_of = {EnvTask.from_row(prompt[-1]["content"]): total for prompt, total in rewards}
    by_prompt = {tuple(reference.expected(task).prompt_ids): task for task in tasks}
    held: dict[EnvTask, list[Held]] = {}
    for batch in given:
        for i in range(len(batch["prompt_ids"])):
            prompt = batch["prompt_ids"][i][batch["prompt_mask"][i].bool()].tolist()
            attend = batch["completion_mask"][i].bool()
            mask = (batch["completion_mask"] * batch["tool_mask"])[i][attend].tolist()
            ids = batch["completion_ids"][i][attend].tolist()
            task = by_prompt[tuple(prompt)]
            row = Held(prompt + ids, [0] * len(prompt) + mask, total_of[task])
            if batch["advantages"].dim() == 2:
                row.rewards = [0.0] * len(prompt) + batch["advantages"][i][attend].tolist()
            held.setdefault(task, []).append(row)
    assert {len(rows) for rows in held.values()} == {GROUP} and set(held) == set(tasks)
    return held, trainer


@pytest.mark.parametrize("tasks", [GAME_TASKS, MATH_TASKS], ids=["game", "math"])
def test_the_loss_is_given_the_reference_episodes(tasks, reference, tmp_path):
    held, trainer = held_by_loss(reference, tasks, tmp_path)
    for member in range(GROUP):
        check(reference, {task: rows[member] for task, rows in held.items()})
    assert trainer.rollout_func.counts["fork"] == trainer.rollout_func.counts["failed"] == 0


def test_the_advantage_of_each_turn_is_on_its_tokens(reference, tmp_path):
    held, trainer = held_by_loss(reference, GAME_TASKS, tmp_path, TurnGRPOTrainer, gamma=0.8)
    before, after = (dict(model.named_parameters()) for model in (reference.model, trainer.model))
    assert all(not torch.equal(before[name], after[name]) for name in before), "one update changes every parameter"
    advantages = rebn([reference.trajectory(task) for task in GAME_TASKS for _ in range(GROUP)], 0.8)
    for i, task in enumerate(GAME_TASKS):
        expected = reference.expected(task).per_token(advantages[GROUP * i])
        for row in held[task]:
            assert row.rewards == pytest.approx(expected, abs=1e-6)
            row.rewards = None
    check(reference, {task: rows[0] for task, rows in held.items()})


def test_each_environment_of_a_mixture_has_its_own_discount(reference, tmp_path):
    tasks = [*GAME_TASKS[:4], *MATH_TASKS[:4]]
    gamma = {GAME_TASKS[0].env_id: 0.5, MATH_TASKS[0].env_id: 1.0}
    held, _ = held_by_loss(reference, tasks, tmp_path, TurnGRPOTrainer, gamma=gamma)
    advantages = rebn([reference.trajectory(task) for task in tasks for _ in range(GROUP)], gamma)
    for i, task in enumerate(tasks):
        assert held[task][1].rewards == pytest.approx(
            reference.expected(task).per_token(advantages[GROUP * i]), abs=1e-6
        )


@pytest.mark.parametrize("mutation", [token, mask, cut], ids=lambda mutation: mutation.__name__)
def test_a_mutated_adapter_fails_the_contract(mutation, reference, tmp_path, monkeypatch):
    tasks = [task for task in GAME_TASKS if len(reference.trajectory(task).turns) > 1][:4]
    pack = adapter.pack_batch

    def mutated(trajectories, **options):
        packed = pack(trajectories, **options)
        for episode in packed:
            if episode.trajectory.seed == tasks[2].seed:
                mutation(episode.last)
        return packed

    monkeypatch.setattr(adapter, "pack_batch", mutated)
    held, _ = held_by_loss(reference, tasks, tmp_path)
    with pytest.raises(AssertionError, match=f"{tasks[2].env_id} {tasks[2].seed}"):
        check(reference, {task: rows[0] for task, rows in held.items()})


def test_an_episode_that_fails_is_not_trained(reference, tmp_path):
    class Down(ReplayEngine):
        def act(self, requests):
            replies = super().act(requests)
            for request, reply in zip(requests, replies, strict=True):
                if f"Episode {GAME_TASKS[1].seed}." in str(request.observation):
                    reply.failure = "engine down"
            return replies

    rollouts = Rollouts(policy=Down(reference))
    trainer = GRPOTrainer(
        model=str(reference.folder),
        reward_funcs=env_reward,
        args=config(tmp_path, per_device_train_batch_size=8),
        train_dataset=dataset(GAME_TASKS[:4]),
        processing_class=reference.tokenizer,
        rollout_func=rollouts,
    )
    columns = rollouts([row["prompt"] for row in trainer.train_dataset for _ in range(GROUP)], trainer)
    assert [reward is None for reward in columns["env_reward"]] == [False, False, True, True, *[False] * 4]
    assert [sum(mask) == 0 for mask in columns["env_mask"]] == [reward is None for reward in columns["env_reward"]]
    assert rollouts.counts["failed"] == 3 * GROUP
    trainer.train()


def test_an_episode_whose_first_prompt_is_too_long_is_not_trained(reference, tmp_path):
    engine = ReplayEngine(reference)
    engine.max_prompt_tokens = len(reference.expected(GAME_TASKS[0]).prompt_ids)
    rollouts, tasks = Rollouts(policy=engine), [*GAME_TASKS[:3], *MATH_TASKS[:5]]
    trainer = GRPOTrainer(
        model=str(reference.folder),
        reward_funcs=env_reward,
        args=config(tmp_path, per_device_train_batch_size=8),
        train_dataset=dataset(tasks),
        processing_class=reference.tokenizer,
        rollout_func=rollouts,
    )
    columns = rollouts([row["prompt"] for row in trainer.train_dataset], trainer)
    assert [reward is None for reward in columns["env_reward"]] == [False] * 3 + [True] * 5
    assert rollouts.counts["dropped"] == 5 and rollouts.counts["failed"] == 0


def test_sampling_settings_that_would_be_ignored_are_refused(reference, tmp_path):
    with pytest.raises(BadValue, match="remove top_k of GRPOConfig"):
        held_by_loss(reference, GAME_TASKS[:2], tmp_path, rollouts=Rollouts(), config={"top_k": 5})


def test_the_model_of_the_trainer_samples_in_the_rollout(reference, tmp_path):
    trainer = TurnGRPOTrainer(
        model=str(reference.folder),
        reward_funcs=env_reward,
        args=config(tmp_path, per_device_train_batch_size=8, num_generations=4, max_steps=2, temperature=0.9),
        train_dataset=dataset(GAME_TASKS[:8]),
        processing_class=reference.tokenizer,
        rollout_func=Rollouts(max_new_tokens=8),
    )
    trainer.train()
    rows = {}
    for episode in trainer.rollout_func.episodes:
        turn = episode.trajectory.turns[0]
        rows.setdefault(episode.trajectory.seed, set()).add(tuple(turn.sampled_ids))
    assert all(len(replies) > 1 for replies in rows.values()), "the members of a group sample differently"


def test_the_oracle_scores_1_through_the_tool_of_the_environment_factory():
    environment = GemEnvironment()
    for task in make_tasks("game:GuessTheNumber-v0-easy", 5):
        observation = environment.reset(**task.to_row(), prompt=[{"role": "user", "content": ""}])
        player = oracle(environment._episode.env)
        for _ in range(4):
            observation = environment.act(player.act(observation))
        assert environment.get_reward() == 1.0
        assert environment.act("more") == "The episode is over."


def test_the_environment_shows_one_tool_and_its_arguments():
    from transformers.utils import get_json_schema

    public = [name for name in vars(GemEnvironment) if not name.startswith("_")]
    assert public == ["reset", "act", "get_reward"]
    assert get_json_schema(GemEnvironment().act)["function"]["parameters"]["required"] == ["action"]


def test_training_through_the_environment_factory_changes_the_parameters(reference, tmp_path):
    """TRL's own loop of tool calls plays the oracle's first action, or gives no action, and updates twice."""
    import trl

    templates = Path(trl.__file__).parent / "chat_templates"
    tokenizer = type(reference.tokenizer).from_pretrained(reference.folder)
    tokenizer.chat_template = (templates / "qwen3.jinja").read_text()
    written = iter([rf"\boxed{{{number}}}" for _ in range(50) for number in range(1, 11)])

    class Scripted(GRPOTrainer):
        def _generate_single_turn(self, prompt_ids, images, multimodal_fields, *args, **options):
            replies = []
            for ids in prompt_ids:
                text = "Done."
                if "<tool_response>" not in tokenizer.decode(ids).split("</tools>")[-1]:
                    call = json.dumps({"name": "act", "arguments": {"action": next(written)}})
                    text = f"<tool_call>\n{call}\n</tool_call>"
                replies.append([*tokenizer.encode(text), tokenizer.eos_token_id])
            return replies, [[0.0] * len(ids) for ids in replies]

    tasks = make_tasks("game:GuessTheNumber-v0-easy", 2)
    trainer = Scripted(
        model=str(reference.folder),
        args=config(tmp_path, per_device_train_batch_size=20, num_generations=10, max_steps=2, learning_rate=1e-3),
        train_dataset=dataset([EnvTask(env_id=t.env_id, seed=t.seed) for t in tasks]),
        processing_class=tokenizer,
        environment_factory=GemEnvironment,
    )
    trainer.train()
    rewards = [entry["rewards/GemEnvironment/mean"] for entry in trainer.state.log_history if "reward" in entry]
    assert rewards == pytest.approx([0.1, 0.1]), "one of the ten guesses of each group is right"
    before, after = (dict(model.named_parameters()) for model in (reference.model, trainer.model))
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_the_example_trains_on_both_environments(reference, tmp_path):
    main = runpy.run_path(str(Path(__file__).parents[2] / "examples/trl/train.py"))["main"]
    small = ["--model", str(reference.folder), "--cpu", "--steps", "1", "--num-envs", "4", "--group-size", "2"]
    small += ["--max-new-tokens", "8", "--output", str(tmp_path)]
    for environment in (["game:GuessTheNumber-v0-easy"], ["math:Arithmetic", "--wrappers", "python_tool,concat_chat"]):
        trainer = main([*small, "--env", *environment])
        assert len(trainer.rollout_func.episodes) == 4
        assert trainer.rollout_func.episodes[0].trajectory.env_id == environment[0]


@pytest.mark.slow
def test_the_example_of_learning_starts_after_the_warm_up_and_evaluates_twice(tmp_path):
    main = runpy.run_path(str(Path(__file__).parents[2] / "examples/trl/learn.py"))["main"]
    before, after = main(["--steps", "1", "--num-envs", "32", "--output", str(tmp_path)])
    assert 0.2 < before < 0.5 and 0.2 < after < 0.6, "random legal play solves about a third"
