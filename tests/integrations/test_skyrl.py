"""SkyRL: what its generators hand to the trainer is the reference, from our agent loop and from theirs.

SkyRL 0.3 cannot be imported on Python 3.11, because pydantic refuses typing.TypedDict there; the tests replace it.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import pickle
import runpy
import sys
import typing
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("skyrl")
if sys.version_info < (3, 12):
    typing.TypedDict = pytest.importorskip("typing_extensions").TypedDict
pytest.importorskip("skyrl_gym")
pytest.importorskip("PIL")

import torch
from PIL import Image
from skyrl.backends.skyrl_train.utils.ppo_utils import compute_advantages_and_returns
from skyrl.train.config import AlgorithmConfig, GeneratorConfig, SamplingParams, SkyRLGymConfig
from skyrl.train.generators.skyrl_gym_generator import SkyRLGymGenerator
from skyrl.train.generators.skyrl_vlm_generator import SkyRLVLMGymGenerator
from skyrl.train.generators.utils import prepare_generator_input
from skyrl.train.utils.trainer_utils import validate_generator_output

import gem
import gem.integrations.skyrl as adapter
from gem.conversation import History
from gem.conversation.observations import images_of
from gem.errors import BadValue, InfraError
from gem.integrations.shared.sequences import pad, rebn
from gem.integrations.shared.tasks import make_tasks
from gem.integrations.skyrl import GemGenerator, GemTextEnv, dataset_rows

from .contract import GAME_TASKS, MATH_TASKS, Held, PromptMismatch, ReplayEngine, check, cut, late, mask, token


class Client:
    """A stand-in for the client of SkyRL's engines with the recorded replies."""

    model_name = "policy"

    def __init__(self, reference) -> None:
        self.engine, self.aborts, self.sessions, self.together, self.most = ReplayEngine(reference), 0, [], 0, 0

    async def generate(self, batch, model=None):
        self.together += 1
        self.most = max(self.most, self.together)
        await asyncio.sleep(0)
        self.together -= 1
        if self.aborts:
            self.aborts -= 1
            return {"responses": [""], "response_ids": [[]], "stop_reasons": ["abort"], "response_logprobs": None}
        (prompt,) = batch["prompt_token_ids"]
        reply = self.engine.answer(prompt)
        return {
            "responses": [reply.text],
            "response_ids": [list(reply.sampled_ids)],
            "stop_reasons": [reply.finish],
            "response_logprobs": [list(reply.logprobs)],
        }

    async def finish_session(self, session):
        self.sessions.append(session)


def config(**options) -> GeneratorConfig:
    options = {"max_input_length": 2048, "max_turns": 99, **options}
    return GeneratorConfig(sampling_params=SamplingParams(max_generate_length=64, logprobs=1), **options)


def rows(tasks) -> list[dict]:
    """The rows as SkyRL's dataset hands them over, from a file."""
    found = []
    for i, row in enumerate(json.loads(json.dumps(dataset_rows(tasks)))):
        prompt, env_class = row.pop("prompt"), row.pop("env_class")
        found.append({"prompt": prompt, "env_class": env_class, "env_extras": row, "uid": str(i)})
    return found


def generate(reference, tasks, kind=GemGenerator, client=None, members=1, **options):
    client = client or Client(reference)
    generator = kind(config(**options), SkyRLGymConfig(max_env_workers=0), client, reference.tokenizer)
    batch, _ = prepare_generator_input(rows(tasks), members, None, "gsm8k", "train", 1)
    output = asyncio.run(generator.generate(batch, disable_tqdm=True))
    validate_generator_output(len(tasks) * members, output, step_wise=options.get("step_wise_trajectories", False))
    return output


def held(output, tasks) -> dict:
    found = {}
    names = ("prompt_token_ids", "response_ids", "loss_masks", "rollout_logprobs", "rewards")
    for task, prompt, ids, trained, logprobs, rewards in zip(tasks, *(output[name] for name in names), strict=True):
        before = [0] * len(prompt)
        found[task] = Held(prompt + ids, before + trained, sum(rewards), before + logprobs, before + rewards)
    return found


@pytest.mark.parametrize("tasks", [GAME_TASKS, MATH_TASKS], ids=["game", "math"])
def test_the_output_of_the_generator_is_the_reference(tasks, reference):
    client = Client(reference)
    output = generate(reference, tasks, client=client)
    check(reference, held(output, tasks))
    turns = [len(reference.trajectory(task).turns) for task in tasks]
    assert [metrics["turns"] for metrics in output["env_metrics"]] == turns
    assert tasks is MATH_TASKS or client.most == len(tasks), "no episode waits for another"
    assert sorted(client.sessions) == sorted(f"{i}_0" for i in range(len(tasks)))


def test_the_members_of_a_group_play_the_same_seed(reference):
    output = generate(reference, GAME_TASKS[:4], members=3)
    member = {name: values[1::3] for name, values in output.items() if isinstance(values, list)}
    check(reference, held(member, GAME_TASKS[:4]))
    assert output["response_ids"][0::3] == output["response_ids"][2::3]


@pytest.mark.parametrize("mutation", [token, mask, late, cut], ids=lambda mutation: mutation.__name__)
def test_a_mutated_adapter_fails_the_contract(mutation, reference, monkeypatch):
    output = GemGenerator._output

    def mutated(self, sequence, *others):
        mutation(sequence := pickle.loads(pickle.dumps(sequence)))
        return output(self, sequence, *others)

    monkeypatch.setattr(GemGenerator, "_output", mutated)
    tasks = [task for task in MATH_TASKS if any(reference.trajectory(task).rewards_K[:-1])][:4]
    with pytest.raises((AssertionError, PromptMismatch)):
        check(reference, held(generate(reference, tasks), tasks))


def test_the_loop_of_skyrl_plays_the_environment_class_the_same_unless_a_reply_is_cut(reference):
    class Forgiving(Client):
        """Ends the episode where the context differs from the recorded ones."""

        async def generate(self, batch, model=None):
            try:
                return await super().generate(batch, model)
            except PromptMismatch:
                differ.append(1)
                return {
                    "responses": ["x"],
                    "response_ids": [[1]],
                    "stop_reasons": ["stop"],
                    "response_logprobs": [[0.0]],
                }

    differ: list[int] = []
    output = generate(reference, GAME_TASKS, SkyRLGymGenerator, Forgiving(reference))
    cuts = {task: any(turn.finish == "length" for turn in reference.trajectory(task).turns[:-1]) for task in GAME_TASKS}
    same = {task: row for task, row in held(output, GAME_TASKS).items() if not cuts[task]}
    check(reference, same)
    assert len(same) > 30 and len(differ) == Counter(cuts.values())[True]


def test_the_environment_class_raises_for_an_episode_that_failed():
    class Broken(gem.Env):
        def reset(self, seed=None):
            return "task", {}

        def step(self, action):
            raise InfraError("the grader is down")

    gem.register("test:SkyRLBroken", entry_point=Broken)
    try:
        env = GemTextEnv(extras=make_tasks("test:SkyRLBroken", 1)[0].to_row())
        assert env.init([])[0] == [{"role": "user", "content": "task"}]
        with pytest.raises(InfraError, match="the grader is down"):
            env.step("x")
        env.close()
    finally:
        gem.ENV_REGISTRY.pop("test:SkyRLBroken")


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_the_estimator_of_turns_agrees_with_rebn(gamma, reference):
    output = generate(reference, GAME_TASKS)
    rewards, trained = (torch.tensor(pad(output[name], 0), dtype=torch.float64) for name in ("rewards", "loss_masks"))
    advantages, _ = compute_advantages_and_returns(
        rewards, trained, [str(i) for i in range(len(GAME_TASKS))], "gem_rebn", AlgorithmConfig(), gamma=gamma
    )
    expected = iter(rebn([reference.trajectory(task) for task in GAME_TASKS], gamma))
    wanted = [reference.expected(task) for task in GAME_TASKS]
    wanted = [sequence.response(sequence.per_token(next(expected))) for sequence in wanted]
    torch.testing.assert_close(advantages, torch.tensor(pad(wanted, 0.0), dtype=torch.float64), atol=1e-6, rtol=0)


class Forgetful(GemGenerator):
    """Shows only the last turn, so that contexts fork."""

    history = History(max_turns=1, overflow="drop_oldest")


class Guesses(Client):
    """Answers every prompt."""

    async def generate(self, batch, model=None):
        ids = self.engine.chat.encode_reply(r"I guess \boxed{11}")
        logprobs = [[-1.0] * len(ids)]
        return {"responses": ["x"], "response_ids": [ids], "stop_reasons": ["stop"], "response_logprobs": logprobs}


def test_sequences_of_forked_contexts_are_trained_with_the_reward_of_the_episode(reference):
    tasks = GAME_TASKS[:2]
    client = Guesses(reference)
    whole = generate(reference, tasks, Forgetful, client, step_wise_trajectories=True)
    assert len(whole["response_ids"]) > len(tasks) and sum(whole["is_last_step"]) == len(tasks)
    last = generate(reference, tasks, Forgetful, client)
    ends = [i for i, end in enumerate(whole["is_last_step"]) if end]
    assert [whole["response_ids"][i] for i in ends] == last["response_ids"]


def test_aborted_requests_are_played_again_and_then_raise(reference):
    client = Client(reference)
    client.aborts = 2
    check(reference, held(generate(reference, GAME_TASKS[:1], client=client), GAME_TASKS[:1]))
    client.aborts = 3
    with pytest.raises(InfraError, match="aborted"):
        generate(reference, GAME_TASKS[:1], client=client)


def test_a_first_prompt_over_the_limit_raises(reference):
    with pytest.raises(BadValue, match="max_input_length"):
        generate(reference, GAME_TASKS[:1], max_input_length=8)


def test_images_reach_the_engine_through_the_vision_generator(reference):
    """The example of a vision environment: SkyRL renders the messages, whose images are those of the environment."""
    tasks, seen = make_tasks("vision:Charts", 4), []

    class Vision(Client):
        async def render_chat_completion(self, request):
            messages = request["json"]["messages"]
            images = [part for m in messages for part in m["content"] if not isinstance(part, str)]
            urls = [part["image_url"]["url"] for part in images if part["type"] == "image_url"]
            seen.append([Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) for url in urls])
            text = "".join(part["text"] for part in images if part["type"] == "text")
            return {"token_ids": reference.tokenizer.encode(text), "features": {"kwargs_data": None}}

        async def generate(self, batch, model=None):
            assert batch["mm_features"] == [{"kwargs_data": None}]
            ids = self.engine.chat.encode_reply(r"\boxed{1}")
            reply = {"responses": [r"\boxed{1}"], "response_ids": [ids], "stop_reasons": ["stop"]}
            return {**reply, "response_logprobs": [[0.0] * len(ids)]}

    options = {"max_input_length": 4096, "vision_language_generator": True}
    output = generate(reference, tasks, SkyRLVLMGymGenerator, Vision(reference), **options)
    assert all(len(images) == 1 for images in seen)
    for task, rewards in zip(tasks, output["rewards"], strict=True):
        episode = task.episode()
        episode.reset(task.seed)
        (image,) = images_of(episode.request.observation)
        assert any(image.tobytes() == shown.tobytes() for (shown,) in seen)
        assert sum(rewards) == episode.env.step(r"\boxed{1}").reward
        episode.close()


def test_the_example_writes_the_tasks_and_leaves_other_arguments_to_skyrl(tmp_path):
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples/skyrl/train.py"))
    given = ["--env", GAME_TASKS[0].env_id, "--num-tasks", "4", "--data", str(tmp_path), "generator.max_turns=9"]
    options, others = example["parse"](given)
    assert others == ["generator.max_turns=9"]
    named = example["write_dataset"](options)
    assert named == [f"data.train_data=['{tmp_path}/train.jsonl']", f"data.val_data=['{tmp_path}/val.jsonl']"]
    lines = (tmp_path / "train.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == dataset_rows(make_tasks(GAME_TASKS[0].env_id, 4))
    assert adapter.registration.registry["gem"].entry_point == "gem.integrations.skyrl:GemTextEnv"
