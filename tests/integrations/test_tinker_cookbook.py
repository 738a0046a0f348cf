"""tinker-cookbook: its rollouts and its packing end up with the reference episodes."""

from __future__ import annotations

import asyncio
import pickle
import runpy
from pathlib import Path

import pytest

pytest.importorskip("tinker_cookbook")

from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.data_processing import assemble_training_data, compute_advantages
from tinker_cookbook.rl.rollouts import do_group_rollout

import gem.integrations.tinker_cookbook as adapter
from gem.conversation import ChatFormat
from gem.integrations.tinker_cookbook import CookbookDatasetBuilder, CookbookEnv, CookbookGroupBuilder

from .contract import GAME_TASKS, MATH_TASKS, Held, PromptMismatch, ReplayEngine, check

GROUP = 2


class Completer(TokenCompleter):
    def __init__(self, reference) -> None:
        self.engine = ReplayEngine(reference)

    async def __call__(self, model_input, stop, *, max_tokens=None):
        assert stop == sorted(self.engine.chat.end_ids)
        reply = self.engine.answer(model_input.to_ints())
        return TokensWithLogprobs(list(reply.sampled_ids), list(reply.logprobs), reply.finish)


def played(reference, tasks):
    """Roll out groups with the cookbook. Returns its groups and what its loss is given, by task and member."""

    async def roll_out():
        builders = [pickle.loads(pickle.dumps(CookbookGroupBuilder(t, str(reference.folder), GROUP))) for t in tasks]
        return await asyncio.gather(*(do_group_rollout(builder, Completer(reference)) for builder in builders))

    groups = asyncio.run(roll_out())
    data, where = assemble_training_data(groups, compute_advantages(groups))
    held = {}
    for datum, place in zip(data, where, strict=True):
        inputs, group = datum.loss_fn_inputs, groups[place["group_idx"]]
        ids = [*datum.model_input.to_ints(), int(inputs["target_tokens"].tolist()[-1])]
        assert ids[1:] == inputs["target_tokens"].tolist()
        key = tasks[place["group_idx"]], place["traj_idx"]
        assert key not in held, "an episode is one datum"
        mask, logprobs = (inputs[name].tolist() for name in ("mask", "logprobs"))
        held[key] = Held(ids, [0, *map(int, mask)], group.get_total_rewards()[place["traj_idx"]], [0.0, *logprobs])
    return groups, held


@pytest.mark.parametrize("tasks", [GAME_TASKS, MATH_TASKS], ids=["game", "math"])
def test_the_loss_is_given_the_reference_episodes(tasks, reference):
    groups, held = played(reference, tasks)
    assert len(held) == len(tasks) * GROUP
    for member in range(GROUP):
        check(reference, {task: row for (task, number), row in held.items() if number == member})
    for task, group in zip(tasks, groups, strict=True):
        for trajectory in group.trajectories_G:
            assert [t.reward for t in trajectory.transitions] == reference.trajectory(task).rewards_K
            assert trajectory.transitions[-1].metrics["solved"] == float(reference.trajectory(task).solved)


class WrongToken(CookbookEnv):
    def _observation(self):
        ids = super()._observation().to_ints()
        ids[-2] += len(self.episode.trajectory.turns) > 0
        return adapter.tinker.ModelInput.from_ints(ids)


class RewardLate(CookbookEnv):
    async def step(self, action, *, extra=None):
        result = await super().step(action, extra=extra)
        result.reward *= result.episode_done
        return result


class WrongReply(CookbookEnv):
    async def step(self, action, *, extra=None):
        return await super().step([*action[:-1]], extra=extra)


@pytest.mark.parametrize("mutation", [WrongToken, RewardLate, WrongReply])
def test_a_mutated_adapter_fails_the_contract(mutation, reference, monkeypatch):
    monkeypatch.setattr(adapter, "CookbookEnv", mutation)
    tasks = [task for task in MATH_TASKS if any(reference.trajectory(task).rewards_K[:-1])]
    with pytest.raises((AssertionError, PromptMismatch)):
        check(reference, {task: row for (task, number), row in played(reference, tasks)[1].items() if number == 0})


def test_the_members_of_a_group_start_alike_and_sets_have_different_seeds(reference):
    builder = CookbookDatasetBuilder(
        env_id="game:GuessTheNumber-v0-easy",
        tokenizer=str(reference.folder),
        num_tasks=7,
        num_test_tasks=3,
        batch_size=2,
        group_size=4,
    )
    train, test = asyncio.run(builder())
    assert (len(train), len(train.get_batch(1)), len(test), len(test.get_batch(0))) == (3, 2, 1, 3)
    seeds = [group.task.seed for group in (*train.builders, *test.builders)]
    assert len(set(seeds)) == 10
    envs = asyncio.run(train.get_batch(0)[0].make_envs())
    first = [asyncio.run(env.initial_observation())[0].to_ints() for env in envs]
    assert len(envs) == 4 and all(ids == first[0] for ids in first)


def test_a_context_over_the_limit_ends_the_episode(reference):
    task = next(task for task in GAME_TASKS if len(reference.trajectory(task).turns) > 1)
    env = CookbookEnv(task, reference.tokenizer, max_prompt_tokens=len(reference.expected(task).prompt_ids) + 1)

    async def play():
        first, _ = await env.initial_observation()
        return await env.step(list(ReplayEngine(reference).answer(first.to_ints()).sampled_ids))

    result = asyncio.run(play())
    assert result.episode_done and result.metrics["stop/context_overflow"] == 1.0
    assert sorted(ChatFormat(reference.tokenizer).end_ids) == result.next_stop_condition


def test_a_first_prompt_over_the_limit_is_reported_to_the_cookbook(reference):
    builder = CookbookGroupBuilder(GAME_TASKS[0], str(reference.folder), GROUP, max_prompt_tokens=8)
    group = asyncio.run(do_group_rollout(builder, Completer(reference)))
    assert [len(trajectory.transitions) for trajectory in group.trajectories_G] == [1] * GROUP
    assert assemble_training_data([group], compute_advantages([group]))[0] == []


@pytest.mark.parametrize("wrappers", ["", "python_tool,concat_chat"])
def test_the_example_configures_the_loop_of_the_cookbook(wrappers, reference, tmp_path):
    build = runpy.run_path(str(Path(__file__).parents[2] / "examples/tinker_cookbook/train.py"))["configuration"]
    small = ["--tokenizer", str(reference.folder), "--output", str(tmp_path), "--wrappers", wrappers]
    env = "math:Arithmetic" if wrappers else "game:GuessTheNumber-v0-easy"
    config = build([*small, "--env", env, "--steps", "3", "--groups", "2", "--group-size", "5"])
    train, test = asyncio.run(config.dataset_builder())
    assert (len(train), len(train.get_batch(0)), test) == (3, 2, None)
    assert train.get_batch(2)[0].task.env_id == env
