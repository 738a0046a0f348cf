"""Log-probabilities of chosen tokens: in chunks, in micro-batches, under models with unusual output layers."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers

from gem.errors import BadValue
from gem.rl.model import scoring
from gem.rl.model.scoring import enable_checkpointing, rows_at_once, score_tokens

pytestmark = pytest.mark.train

VOCABULARY = 300


def gemma() -> Any:
    """Return a model that caps its logits, has a sliding window and a tied output layer."""
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    shape |= {"head_dim": 16, "num_key_value_heads": 1, "sliding_window": 4}
    config = transformers.Gemma2Config(vocab_size=VOCABULARY, final_logit_softcapping=2.0, **shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return transformers.Gemma2ForCausalLM(config).eval()


def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return ids, attention mask and loss mask of three sequences of different lengths."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, VOCABULARY, (3, 20), generator=generator)
    attend = (torch.arange(20)[None] < torch.tensor([20, 13, 7])[:, None]).long()
    mask = (torch.rand(3, 20, generator=generator) < 0.4).float() * attend
    return ids, attend, mask


def plain(model: Any, ids: torch.Tensor, attend: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    logits = model(input_ids=ids, attention_mask=attend).logits[:, :-1] / temperature
    logp = logits.log_softmax(-1)
    return logp.gather(2, ids[:, 1:, None])[..., 0], -(logp.exp() * logp).sum(-1)


@pytest.mark.parametrize("chunk", [1, 5 * VOCABULARY, 10**9])
def test_chosen_tokens_get_the_scores_and_gradient_of_the_whole_computation(chunk):
    model, (ids, attend, mask) = gemma(), batch()
    logp, entropy = plain(model, ids, attend, 0.7)
    expected = torch.autograd.grad(((logp + 0.1 * entropy) * mask[:, 1:]).sum(), list(model.parameters()))
    scores = score_tokens(model, ids, attend, mask, 0.7, chunk=chunk)
    assert torch.allclose(scores.logp_BT[:, 1:], logp * mask[:, 1:], atol=1e-5)
    assert torch.allclose(scores.entropy_BT[:, 1:], entropy * mask[:, 1:], atol=1e-5)
    found = torch.autograd.grad((scores.logp_BT + 0.1 * scores.entropy_BT).sum(), list(model.parameters()))
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_the_output_layer_sees_only_scored_tokens_and_one_chunk_at_a_time():
    model, (ids, attend, mask) = gemma(), batch()
    rows: list[int] = []
    model.get_output_embeddings().register_forward_hook(lambda module, args, out: rows.append(out[..., 0].numel()))
    score_tokens(model, ids, attend, mask, 1.0, chunk=4 * VOCABULARY)
    wanted = int(mask[:, 1:].sum())
    assert sum(rows) == wanted and max(rows) == 4


def model_of(kind: str, layers: int = 2, **more: Any) -> Any:
    """Return a small model of an architecture, with random weights."""
    shape = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 2}
    config = getattr(transformers, f"{kind}Config")(
        num_hidden_layers=layers, bos_token_id=1, eos_token_id=2, **shape, **more
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return transformers.AutoModelForCausalLM.from_config(config).eval()


def scored_with_prefix(model: Any, monkeypatch: Any, work: int) -> tuple[int, torch.Tensor, list[torch.Tensor]]:
    """Score sequences whose first ten tokens are the same. Returns the tokens that were fed, the scores, the gradient.

    Args:
        work: see scoring.PREFIX_WORK.
    """
    monkeypatch.setattr(scoring, "PREFIX_WORK", {"cpu": work, "cuda": 0})
    ids, attend, mask = batch()
    attend[2, :12] = 1  # so that each row has tokens after the beginning
    ids[:, :10], mask[:, :10], mask[0, 10] = ids[0, :10], 0.0, 1.0
    fed: list[int] = []
    hook = model.get_input_embeddings().register_forward_hook(lambda module, args, out: fed.append(args[0].numel()))
    scores = score_tokens(model, ids, attend, mask * attend, 0.7)
    hook.remove()
    loss = (scores.logp_BT + 0.1 * scores.entropy_BT).sum()
    return sum(fed), scores.logp_BT.detach(), list(torch.autograd.grad(loss, list(model.parameters())))


@pytest.mark.parametrize("kind", ["Llama", "GPT2", "Bloom"])  # with rotary, learned and no positions
def test_a_common_beginning_is_computed_once_with_the_same_scores_and_gradient(kind, monkeypatch):
    model = model_of(kind)
    plain_fed, expected, gradient = scored_with_prefix(model, monkeypatch, work=2**60)
    fed, found, again = scored_with_prefix(model, monkeypatch, work=0)
    assert plain_fed == 3 * 20
    assert fed == 9 + 3 * 11  # the hidden state of the tenth predicts a scored token
    assert torch.allclose(found, expected, rtol=1e-5, atol=1e-6)
    off = sum(((a - b) ** 2).sum() for a, b in zip(again, gradient, strict=True))
    assert off**0.5 < 1e-5 * sum((b**2).sum() for b in gradient) ** 0.5


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Mistral", {"sliding_window": 4, "num_key_value_heads": 2}),
        ("Llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}}),
    ],
    ids=["sliding window", "rotary angles that depend on the longest sequence"],
)
def test_a_common_beginning_is_not_shared_if_later_tokens_could_change_it(kind, more, monkeypatch):
    assert scored_with_prefix(model_of(kind, **more), monkeypatch, work=0)[0] == 3 * 20


def test_a_common_beginning_is_not_shared_with_gradient_checkpointing(monkeypatch):
    model = model_of("Llama")
    enable_checkpointing(model)
    assert scored_with_prefix(model, monkeypatch, work=0)[0] == 3 * 20


def test_gradient_checkpointing_changes_neither_scores_nor_gradient():
    model, (ids, attend, mask) = gemma(), batch()
    parameters = list(model.parameters())
    expected = score_tokens(model, ids, attend, mask, 1.0).logp_BT
    gradient = torch.autograd.grad(expected.sum(), parameters)
    enable_checkpointing(model)
    calls: list[int] = []
    model.model.layers[0].mlp.register_forward_hook(lambda *args: calls.append(1))
    found = score_tokens(model, ids, attend, mask, 1.0).logp_BT
    again = torch.autograd.grad(found.sum(), parameters)
    assert torch.equal(found, expected)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(again, gradient, strict=True))
    assert len(calls) == 2  # in the forward pass, and again in the backward pass
    assert not any(module.training for module in model.modules())


def test_large_models_and_long_sequences_take_fewer_sequences_at_once():
    small, large = model_of("Llama"), model_of("GPT2", layers=8)
    assert rows_at_once(small, 200, "cpu") == 2**25 // (200 * 2 * 32)
    assert rows_at_once(small, 400, "cpu") == rows_at_once(large, 100, "cpu") == rows_at_once(small, 200, "cpu") // 2
    assert rows_at_once(small, 2**30, "cpu") == 1
    assert rows_at_once(small, 200, "cuda") > rows_at_once(small, 200, "cpu")


def test_sequences_without_a_scored_token_have_scores_of_zero():
    model, (ids, attend, mask) = gemma(), batch()
    assert not score_tokens(model, ids, attend, torch.zeros_like(mask), 1.0).logp_BT.any()


def test_a_model_whose_output_layer_cannot_be_computed_by_itself_is_refused(monkeypatch):
    model, other = gemma(), gemma()
    monkeypatch.setattr(scoring, "body", lambda _: other.model)  # not what the model calls
    with pytest.raises(BadValue, match=r"Gemma2ForCausalLM: .*output layer"):
        score_tokens(model, *batch(), 1.0)
