"""AReaL: the tensors of its workflow are the reference episodes, and pass its own check."""

from __future__ import annotations

import asyncio
import pickle
import runpy
from pathlib import Path

import pytest

pytest.importorskip("areal")

from areal.api.cli_args import GenerationHyperparameters
from areal.api.io_struct import ModelRequest, ModelResponse
from areal.infra.workflow_executor import check_trajectory_format

import gem.integrations.areal as adapter
from gem.integrations.areal import GemWorkflow

from .contract import GAME_TASKS, MATH_TASKS, Held, PromptMismatch, ReplayEngine, check


class Engine:
    """A stand-in for an InferenceEngine with the recorded replies. The weights change with each request."""

    def __init__(self, reference) -> None:
        self.engine, self.aborts, self.together = ReplayEngine(reference), 0, 0

    async def agenerate(self, request: ModelRequest) -> ModelResponse:
        assert request.gconfig.n_samples == 1
        self.together += 1
        await asyncio.sleep(0)
        if self.aborts:
            self.aborts -= 1
            return ModelResponse(stop_reason="abort")
        reply = self.engine.answer(request.input_ids)
        return ModelResponse(
            input_tokens=request.input_ids,
            output_tokens=list(reply.sampled_ids),
            output_logprobs=list(reply.logprobs),
            output_versions=[len(request.input_ids)] * len(reply.sampled_ids),
            stop_reason=reply.finish,
        )


def workflow(reference, **options) -> GemWorkflow:
    return GemWorkflow(GenerationHyperparameters(max_new_tokens=64, max_tokens=2048, n_samples=4), **options)


def played(reference, tasks, made=None, engine=None):
    made, engine = made or workflow(reference, tokenizer=str(reference.folder)), engine or Engine(reference)

    async def play():
        return await asyncio.gather(*(made.arun_episode(engine, {**task.to_row(), "other": 1}) for task in tasks))

    return asyncio.run(play())


def held(rows, tasks):
    found = {}
    for task, row in zip(tasks, rows, strict=True):
        assert check_trajectory_format(row, batch_size=1)
        assert row["attention_mask"].all() and row["rewards"].shape == (1,)
        ids, mask, logprobs = (row[name][0].tolist() for name in ("input_ids", "loss_mask", "logprobs"))
        found[task] = Held(ids, mask, float(row["rewards"]), logprobs)
    return found


@pytest.mark.parametrize("tasks", [GAME_TASKS, MATH_TASKS], ids=["game", "math"])
def test_the_tensors_are_the_reference_episodes(tasks, reference):
    rows = played(reference, tasks)
    check(reference, held(rows, tasks))
    for row, task in zip(rows, tasks, strict=True):
        turns = reference.trajectory(task).turns
        versions = [-1 if turn < 0 else len(turns[turn].context) for turn in reference.expected(task).turn_T]
        assert row["versions"][0].tolist() == versions, "each token has the version that sampled it"


def wrong_token(sequence):
    sequence.ids_T[sequence.prompt_length - 1] += 1


def wrong_mask(sequence):
    sequence.mask_T[sequence.prompt_length] ^= 1


def wrong_logprobs(sequence):
    sequence.logprobs_T.insert(0, sequence.logprobs_T.pop())


@pytest.mark.parametrize("mutation", [wrong_token, wrong_mask, wrong_logprobs], ids=lambda mutation: mutation.__name__)
def test_a_mutated_adapter_fails_the_contract(mutation, reference, monkeypatch):
    tensors = adapter._tensors

    def mutated(sequence, *others):
        mutation(sequence := pickle.loads(pickle.dumps(sequence)))
        return tensors(sequence, *others)

    monkeypatch.setattr(adapter, "_tensors", mutated)
    with pytest.raises((AssertionError, PromptMismatch)):
        check(reference, held(played(reference, GAME_TASKS[:4]), GAME_TASKS[:4]))


def test_an_aborted_request_is_played_again_and_then_rejected(reference):
    made, engine = workflow(reference, tokenizer=reference.tokenizer), Engine(reference)
    engine.aborts = 2
    check(reference, held(played(reference, GAME_TASKS[:1], made, engine), GAME_TASKS[:1]))
    engine.aborts = 3
    assert played(reference, GAME_TASKS[:1], made, engine) == [None] and made.counts["rejected"] == 1
    assert made.pool.failed == 5


def test_a_first_prompt_over_the_limit_is_rejected(reference):
    made = GemWorkflow(GenerationHyperparameters(max_new_tokens=64, max_tokens=72), reference.tokenizer)
    assert played(reference, GAME_TASKS[:1], made) == [None]
    assert made.counts["dropped"] == made.counts["rejected"] == 1


def test_the_example_makes_rows_and_leaves_other_arguments_to_areal(reference):
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples/areal/train.py"))
    given = ["--env", GAME_TASKS[0].env_id, "--num-tasks", "4", "--config", "c.yaml", "gconfig.max_tokens=9"]
    options, others = example["parse"](given)
    assert others == ["--config", "c.yaml", "gconfig.max_tokens=9"]
    assert [row["seed"] for row in example["dataset"](options)] == [task.seed for task in GAME_TASKS[:4]]
