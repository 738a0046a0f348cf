"""Drawing tokens, rows that leave the batch, shared beginnings, and memory of keys and values that grows."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gem.messages import user
from gem.policies import Reply, Request
from gem.rl.model import cuda_graphs
from gem.rl.model.cuda_graphs import DecodeGraphs
from gem.rl.model.kv_cache import BLOCK, KeyValues, shared_beginnings
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.sampling import DRAW_BLOCK, draw
from gem.rl.model.tiny import build_model, build_tokenizer, collect_corpus

pytestmark = pytest.mark.train

EASY = "game:GuessTheNumber-v0-easy"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    corpus = collect_corpus(EASY, seed=0)
    return build_tokenizer([*corpus.observations, *corpus.actions], vocabulary=320)


@pytest.fixture(scope="module")
def model(tokenizer) -> Any:
    return build_model(tokenizer, seed=0, hidden=32, context=512)


def policy(model: Any, tokenizer: Any, ends: int = 1, **options: Any) -> CausalLMPolicy:
    """Return a policy whose replies end with any of some tokens."""
    player = CausalLMPolicy(model, tokenizer, seed=3, **options)
    player.stop_ids = list(range(tokenizer.eos_token_id, tokenizer.eos_token_id + ends))
    return player


def requests(player: CausalLMPolicy, count: int) -> list[Request]:
    """Return requests that begin alike and have different lengths."""
    texts = [f"Guess a number between 1 and 10. The hints are {'too low, ' * (i % 4)}{i}." for i in range(count)]
    return [Request("", player.chat.prompt([user(text)]), (i, 0, 0), str) for i, text in enumerate(texts)]


def fed(player: CausalLMPolicy, run: Callable[[], Any]) -> list[tuple[int, int]]:
    """Return the rows and tokens of each forward pass."""
    shapes: list[tuple[int, int]] = []
    hook = player.model.register_forward_pre_hook(
        lambda module, args, kwargs: shapes.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    run()
    hook.remove()
    return shapes


def assert_equal(mine: list[Reply], theirs: list[Reply]) -> None:
    assert [reply.sampled_ids for reply in mine] == [reply.sampled_ids for reply in theirs]
    for reply, other in zip(mine, theirs, strict=True):
        assert reply.logprobs == pytest.approx(other.logprobs, abs=1e-5)


# Drawing


@settings(deadline=None)
@given(
    st.sampled_from([1, 5, DRAW_BLOCK, DRAW_BLOCK + 1, 3 * DRAW_BLOCK]), st.integers(0, 99), st.floats(0, 1 - 2**-53)
)
def test_a_token_is_where_the_cumulative_distribution_exceeds_the_uniform_number(vocabulary, seed, uniform):
    logits = torch.randn(vocabulary, generator=torch.Generator().manual_seed(seed)) * 5
    ((token,), (logp,)) = draw(logits[None], torch.tensor([uniform], dtype=torch.float64), temperature=1.0, top_p=1.0)
    p = logits.double().softmax(-1).tolist()
    ends = [0.0, *accumulate(p)]
    assert ends[token] - 1e-6 <= uniform <= ends[token + 1] + 1e-6
    assert float(logp) == pytest.approx(math.log(p[token]), abs=1e-5)


def test_the_tail_of_a_large_vocabulary_is_not_lost():
    logits = torch.zeros(1, 150_000)
    logits[0, 0] = 20.0  # the others have 2e-9 each; in float32, the cumulative distribution ends in steps of 6e-8
    head = float(logits.double().softmax(-1)[0, 0])
    uniforms = head + (1 - head) * (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000
    token, logp = draw(logits.expand(2000, -1), uniforms, temperature=1.0, top_p=1.0)
    expected = 1 + (torch.arange(2000) + 0.5) / 2000 * 149_999
    assert (token - expected).abs().max() < 5
    assert logp.tolist() == pytest.approx([-20 - math.log(1 + 149_999 * math.exp(-20))] * 2000, abs=1e-4)


def test_a_token_does_not_depend_on_the_other_rows():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(9, 1000, generator=generator) * 3
    uniforms = torch.rand(9, generator=generator, dtype=torch.float64)
    together = draw(logits, uniforms, temperature=0.7, top_p=1.0)
    for i in range(9):
        alone = draw(logits[i : i + 1], uniforms[i : i + 1], temperature=0.7, top_p=1.0)
        assert [x.tolist() for x in alone] == [x[i : i + 1].tolist() for x in together]


@pytest.mark.parametrize("temperature", [1.0, 0.0])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_finite_give_a_log_probability_of_nan(temperature, bad):
    logits = torch.zeros(2, 300)
    logits[1, 7] = bad
    _, logp = draw(logits, torch.tensor([0.5, 0.5], dtype=torch.float64), temperature=temperature, top_p=1.0)
    assert math.isfinite(logp[0]) and math.isnan(logp[1])


# Batches


def test_rows_that_have_ended_leave_the_batch(model, tokenizer):
    player = policy(model, tokenizer, ends=60, max_new_tokens=12)
    asked = requests(player, 16)
    replies: list[Reply] = []
    passes = fed(player, lambda: replies.extend(player.act(asked)))
    steps = [rows for rows, tokens in passes if tokens == 1][1:]  # the first feeds a token to see what the cache holds
    lengths = [len(reply.sampled_ids) for reply in replies]
    assert len(set(lengths)) > 3
    running = [sum(length > t for length in lengths) for t in range(1, max(lengths))]
    assert len(steps) == len(running)
    for rows, needed in zip(steps, running, strict=True):
        assert needed <= rows <= needed / 0.75 + 1
    assert_equal(
        replies,
        [reply for request in asked for reply in policy(model, tokenizer, 60, max_new_tokens=12).act([request])],
    )


def test_a_beginning_that_prompts_share_is_fed_once(model, tokenizer):
    player = policy(model, tokenizer, max_new_tokens=1)
    asked = requests(player, 8)
    prompts = [list(request.prompt_ids) for request in asked]
    shared = next(t for t, ids in enumerate(zip(*prompts, strict=False)) if len(set(ids)) > 1)
    assert shared > 20
    assert fed(player, lambda: player.act(asked))[1:] == [(1, shared), (8, max(map(len, prompts)) - shared)]
    new = [Request("", ids, (slot + 8, 0, 0), str) for slot, ids in enumerate(prompts)]
    assert fed(player, lambda: player.act(new[:1])) == [(1, len(prompts[0]) - shared)]  # it is kept
    assert_equal(player.act(new), policy(model, tokenizer, max_new_tokens=1, max_batch=1).act(new))


def test_prompts_are_grouped_by_their_beginnings():
    groups = shared_beginnings([[1, 2, 3, 4], [7, 8, 9], [1, 2, 3, 5, 6], [1, 2], [7, 9], [5]], least=1)
    assert groups == [([3, 0, 2], [1]), ([5], []), ([1, 4], [7])]
    assert shared_beginnings([[1, 2, 3, 4], [1, 2, 4]], least=3) == [([0], [1, 2, 3]), ([1], [1, 2])]


def test_replies_longer_than_a_block_of_memory_match_teacher_forcing(model, tokenizer):
    player = policy(model, tokenizer, max_new_tokens=2 * BLOCK + 5)
    asked = requests(player, 5)
    replies = player.act(asked)
    assert max(len(reply.sampled_ids) for reply in replies) == 2 * BLOCK + 5
    for request, reply in zip(asked, replies, strict=True):
        ids = torch.tensor([[*request.prompt_ids, *reply.sampled_ids]])
        with torch.no_grad():
            scores = player.score(ids, torch.ones_like(ids)).logp_BT[0, len(request.prompt_ids) :]
        assert list(reply.logprobs) == pytest.approx(scores.tolist(), abs=1e-4)


def with_graphs(player: CausalLMPolicy) -> CausalLMPolicy:
    """Let a policy compute decode steps on fixed tensors. On a CPU, they are computed each time instead of captured."""
    graphs = DecodeGraphs(player.model)
    player._decode_graphs = lambda: graphs
    return player


@pytest.mark.parametrize("ends", [1, 60])
def test_decode_steps_on_fixed_tensors_give_the_same_replies(model, tokenizer, ends):
    options = {"ends": ends, "max_new_tokens": 3 * BLOCK, "kv_cache_mib": 0}
    plain, graphs = policy(model, tokenizer, **options), with_graphs(policy(model, tokenizer, **options))
    asked = requests(graphs, 11)
    for batch in (asked, asked[:3], asked[3:]):
        mine: list[Reply] = []
        passes = fed(graphs, lambda batch=batch, mine=mine: mine.extend(graphs.act(batch)))
        assert_equal(mine, plain.act(batch))
        others = [rows for rows, tokens in passes if tokens == 1 and rows not in (8, 16)]
        assert len(others) <= 2 * (batch is asked)  # to learn the shapes, and to check the first step


@pytest.mark.parametrize("prepare", [lambda player: player, with_graphs], ids=["in place", "fixed tensors"])
def test_memory_that_was_not_set_does_not_reach_the_replies(model, tokenizer, monkeypatch, prepare):
    options = {"ends": 60, "max_new_tokens": 9, "kv_cache_mib": 0}
    plain = policy(model, tokenizer, **options)
    asked = requests(plain, 11)
    expected, empty = plain.act(asked), KeyValues.empty

    def with_nan(*args: Any) -> KeyValues:
        memory = empty(*args)
        for block in memory._blocks.values():
            block.fill_(math.nan)
        return memory

    monkeypatch.setattr(KeyValues, "empty", with_nan)
    assert_equal(prepare(policy(model, tokenizer, **options)).act(asked), expected)


def test_a_model_that_cannot_be_captured_goes_on_without(model, tokenizer, monkeypatch, caplog):
    options = {"max_new_tokens": 10, "kv_cache_mib": 0}
    graphs, steps = with_graphs(policy(model, tokenizer, **options)), []

    def run(step: Any, pool: Any) -> None:
        steps.append(step)
        if len(steps) == 4:
            raise RuntimeError("operation not permitted when stream is capturing")
        step._compute()

    monkeypatch.setattr(cuda_graphs._Step, "run", run)
    asked = requests(graphs, 3)
    assert_equal(graphs.act(asked), policy(model, tokenizer, **options).act(asked))
    assert len(steps) == 4
    assert "Qwen3ForCausalLM is sampled without CUDA graphs: operation not permitted" in caplog.text


def test_a_model_that_computes_something_else_on_fixed_tensors_goes_on_without(model, tokenizer, monkeypatch, caplog):
    options = {"max_new_tokens": 10, "kv_cache_mib": 0}
    graphs = with_graphs(policy(model, tokenizer, **options))
    compute = cuda_graphs._Step._compute

    def without_mask(step: Any) -> None:
        step.attend_B11T.fill_(True)
        compute(step)
        step.logits_BV = 3 * step.logits_BV

    monkeypatch.setattr(cuda_graphs._Step, "_compute", without_mask)
    asked = requests(graphs, 3)
    assert_equal(graphs.act(asked), policy(model, tokenizer, **options).act(asked))
    assert "probabilities differ by up to" in caplog.text
