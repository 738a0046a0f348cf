"""The reference contract itself: its record covers the cases that matter, and one wrong token fails the check."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from gem.integrations.shared.tasks import EpisodePool  # noqa: E402

from .contract import GAME_TASKS, MATH_TASKS, Held, PromptMismatch, ReplayEngine, check  # noqa: E402

pytestmark = pytest.mark.train
TASKS = [*GAME_TASKS, *MATH_TASKS]


def held(reference) -> dict:
    rows = {}
    for task in TASKS:
        s = reference.expected(task)
        rows[task] = Held(list(s.ids_T), list(s.mask_T), sum(s.rewards_T), list(s.logprobs_T), list(s.rewards_T))
    return rows


def test_the_record_has_the_cases_that_adapters_get_wrong(reference):
    finishes, turns, canonical = Counter(), Counter(), 0
    for task in TASKS:
        trajectory = reference.trajectory(task)
        turns[len(trajectory.turns)] += 1
        for turn in trajectory.turns[:-1]:
            finishes[turn.finish] += 1
            canonical += (
                reference.tokenizer.encode(turn.action) == turn.sampled_ids[: -1 if turn.finish == "stop" else None]
            )
    assert finishes["stop"] > 20 and finishes["length"] > 5, finishes
    assert set(turns) >= {1, 2, 3, 4}, turns
    assert 10 < canonical < sum(finishes.values()) - 10
    dense = [t for task in MATH_TASKS if (t := reference.trajectory(task)) and any(t.rewards_K[:-1])]
    assert len(dense) > 10, "rewards before the last turn"
    assert 5 < sum(reference.trajectory(task).solved for task in GAME_TASKS) < 60


def test_the_pool_of_the_adapters_plays_the_reference_episodes(reference):
    engine, pool = ReplayEngine(reference), EpisodePool(reference.tokenizer)

    async def reply(request):
        return engine.answer(request.prompt_ids)

    async def play():
        return await asyncio.gather(*(pool.play(task, reply) for task in TASKS))

    for task, played in zip(TASKS, asyncio.run(play()), strict=True):
        assert played.sequences() == reference.trajectory(task).sequences()
        assert played.rewards_K == reference.trajectory(task).rewards_K


def test_the_reference_passes_its_own_check(reference):
    check(reference, held(reference))


def test_a_prompt_with_one_wrong_token_is_refused(reference):
    prompt = list(max(reference.replies, key=len))
    prompt[-3] += 1
    with pytest.raises(PromptMismatch, match=f"token {len(prompt) - 3} of"):
        reference.reply(prompt)


def changed(row: Held, change: str) -> Held:
    end = max(t for t, mask in enumerate(row.mask) if mask)
    if change == "id":
        return replace(row, ids=[*row.ids[:5], row.ids[5] ^ 1, *row.ids[6:]])
    if change == "mask":
        return replace(row, mask=[*row.mask[1:], 0])
    if change == "reward":
        return replace(row, rewards=[*row.rewards[1:], 0.0], total=row.total) if any(row.rewards) else row
    if change == "total":
        return replace(row, total=row.total + 0.01)
    return replace(row, logprobs=[*row.logprobs[:end], row.logprobs[end] + 0.001, *row.logprobs[end + 1 :]])


@pytest.mark.parametrize("change", ["id", "mask", "reward", "total", "logprob"])
def test_one_wrong_value_fails_the_check(change, reference):
    rows = held(reference)
    task = next(task for task in TASKS if any(rows[task].rewards))
    rows[task] = changed(rows[task], change)
    with pytest.raises(AssertionError):
        check(reference, rows)


def test_the_model_disagrees_about_a_wrong_token_even_if_the_framework_is_consistent(reference):
    """The teacher-forced check alone finds one wrong token of the context."""
    task = next(task for task in GAME_TASKS if len(reference.trajectory(task).turns) > 2)
    want = reference.expected(task)
    fed = max(t for t, turn in enumerate(want.turn_T) if turn < 0)
    ids = [*want.ids_T[:fed], (want.ids_T[fed] + 1) % 500, *want.ids_T[fed + 1 :]]
    right, wrong = reference.score([want.ids_T, ids])
    gap = max(abs(a - b) for a, b, mask in zip(right, wrong, want.mask_T, strict=True) if mask)
    assert gap > 1e-3


def test_a_first_prompt_over_the_limit_ends_the_episode_without_a_turn(reference):
    pool = EpisodePool(reference.tokenizer, max_prompt_tokens=8)
    for task in (GAME_TASKS[0], MATH_TASKS[0]):
        played = asyncio.run(pool.play(task, None))
        assert played.truncated and played.stop_reason == "max_tokens" and played.turns == []
