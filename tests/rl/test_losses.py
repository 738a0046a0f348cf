"""Token losses, compared with plain loops."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gem.rl.losses import cross_entropy, kl_penalty, mean_entropy, policy_gradient

pytestmark = pytest.mark.train


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


TOKEN = st.tuples(
    st.floats(-5, 0),  # logp
    st.floats(-5, 0),  # logp_old
    st.floats(-3, 3),  # advantage
    st.integers(0, 1),  # mask
)
RAGGED = st.lists(st.lists(TOKEN, min_size=1, max_size=6), min_size=1, max_size=5)


def tensors(rows):
    """Right-padded (B, T) float64 tensors of logp, logp_old, advantage and mask; padding has mask 0."""
    width = max(map(len, rows))
    padded = [[*row, *[(-7.0, -1.0, 5.0, 0)] * (width - len(row))] for row in rows]
    return [torch.tensor([[token[i] for token in row] for row in padded], dtype=torch.float64) for i in range(4)]


def policy_gradient_slowly(rows, clip, normalizer):
    total, clipped, drift, tokens = 0.0, 0, 0.0, 0
    for row in rows:
        for logp, logp_old, advantage, mask in row:
            if not mask:
                continue
            ratio = math.exp(logp - logp_old)
            if clip is None:
                objective = logp * advantage
            else:
                bounded = min(max(ratio, 1 - clip), 1 + clip)
                objective = min(ratio * advantage, bounded * advantage)
                clipped += abs(ratio - 1) > clip
            total -= objective
            drift += logp_old - logp
            tokens += 1
    return total / normalizer, clipped / max(tokens, 1), drift / max(tokens, 1)


@pytest.mark.parametrize("clip", [None, 0.2, 0.5])
@settings(deadline=None)
@given(rows=RAGGED, normalizer=st.floats(0.5, 100))
def test_the_policy_gradient_agrees_with_the_plain_loop(clip, rows, normalizer):
    loss = policy_gradient(*tensors(rows), clip=clip, normalizer=normalizer)
    expected = policy_gradient_slowly(rows, clip, normalizer)
    assert (float(loss.loss), loss.clipped, loss.kl) == pytest.approx(expected, abs=1e-6, rel=1e-6)


@settings(deadline=None)
@given(rows=RAGGED)
def test_the_gradient_of_reinforce_is_minus_the_advantage_on_trained_tokens(rows):
    logp, old, advantage, mask = tensors(rows)
    logp.requires_grad_()
    policy_gradient(logp, old, advantage, mask, clip=None, normalizer=4.0).loss.backward()
    assert torch.allclose(logp.grad, -advantage * mask / 4.0)


@settings(deadline=None)
@given(rows=RAGGED)
def test_on_the_policy_that_sampled_clipping_changes_no_gradient(rows):
    gradients = []
    for clip in (None, 0.2):
        logp, _, advantage, mask = tensors(rows)
        logp.requires_grad_()
        policy_gradient(logp, logp.detach(), advantage, mask, clip=clip, normalizer=1.0).loss.backward()
        gradients.append(logp.grad)
    assert torch.allclose(*gradients)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient"),
    [
        (1.0, 2.0, -2.0, -2.0),
        (1.5, 2.0, -2.4, 0.0),  # already likelier than the clip allows: no more reason to go on
        (0.5, 2.0, -1.0, -1.0),
        (1.5, -2.0, 3.0, 3.0),
        (0.5, -2.0, 1.6, 0.0),
    ],
)
def test_golden_clipped_losses(ratio, advantage, loss, gradient):
    logp = torch.tensor([[math.log(ratio)]], dtype=torch.float64, requires_grad=True)
    zeros, ones = torch.zeros(1, 1), torch.ones(1, 1)
    result = policy_gradient(logp, zeros, torch.tensor([[advantage]]), ones, clip=0.2, normalizer=1.0)
    result.loss.backward()
    assert result.loss.item() == pytest.approx(loss)
    assert logp.grad.item() == pytest.approx(gradient)
    assert result.clipped == float(abs(ratio - 1) > 0.2)


def test_the_weight_of_a_token_does_not_depend_on_the_length_of_its_answer():
    short, long = [(-1.0, -1.0, 1.0, 1)], [(-1.0, -1.0, 1.0, 1)] * 5
    logp, old, advantage, mask = tensors([short, long])
    logp.requires_grad_()
    policy_gradient(logp, old, advantage, mask, clip=None, normalizer=10.0).loss.backward()
    assert logp.grad[0, 0] == logp.grad[1, 0] == logp.grad[1, 4]


def test_a_batch_without_trained_tokens_has_zero_loss():
    loss = policy_gradient(*tensors([[(-1.0, -2.0, 1.0, 0)]]), clip=0.2, normalizer=1.0)
    assert (float(loss.loss), loss.clipped, loss.kl) == (0.0, 0.0, 0.0)


def test_logged_values_carry_no_gradient():
    logp, old, advantage, mask = tensors([[(-1.0, -2.0, 1.0, 1)]])
    logp.requires_grad_()
    loss = policy_gradient(logp, old, advantage, mask, clip=0.2, normalizer=1.0)
    assert loss.loss.requires_grad
    assert type(loss.clipped) is type(loss.kl) is float


@settings(deadline=None)
@given(rows=RAGGED)
def test_means_over_trained_tokens_agree_with_the_plain_loop(rows):
    logp, _, entropy, mask = tensors(rows)
    trained = [token for row in rows for token in row if token[3]]
    count = max(len(trained), 1)
    assert float(cross_entropy(logp, mask)) == pytest.approx(-sum(t[0] for t in trained) / count, abs=1e-6)
    assert float(mean_entropy(entropy, mask)) == pytest.approx(sum(t[2] for t in trained) / count, abs=1e-6)


@settings(deadline=None)
@given(rows=RAGGED, normalizer=st.floats(0.5, 100))
def test_the_kl_penalty_agrees_with_the_plain_loop_and_is_never_negative(rows, normalizer):
    logp, reference, _, mask = tensors(rows)
    expected = sum(math.exp(r - p) - (r - p) - 1 for row in rows for p, r, _, trained in row if trained)
    penalty = kl_penalty(logp, reference, mask, normalizer=normalizer).item()
    assert penalty == pytest.approx(expected / normalizer, abs=1e-6)
    assert penalty >= 0


def test_the_kl_penalty_pulls_towards_the_reference():
    logp, reference, _, mask = tensors([[(-1.0, -2.0, 0.0, 1), (-2.0, -1.0, 0.0, 1), (-1.0, -1.0, 0.0, 1)]])
    logp.requires_grad_()
    kl_penalty(logp, reference, mask, normalizer=1.0).backward()
    assert logp.grad[0, 0] > 0 > logp.grad[0, 1]  # a descent makes the first less likely, the second likelier
    assert logp.grad[0, 2] == 0


def test_a_token_impossible_for_the_reference_has_a_finite_penalty():
    one = torch.ones(1, 1)
    assert 0 < kl_penalty(-1.0 * one, -500.0 * one, one, normalizer=1.0).item() < 100
    assert math.isfinite(kl_penalty(-500.0 * one, -1.0 * one, one, normalizer=1.0).item())
