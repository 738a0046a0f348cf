"""Token losses, compared with plain loops."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gem.rl.estimate.losses import ClipRange, cross_entropy, kl_penalty, mean_entropy, policy_gradient

pytestmark = pytest.mark.train


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


NO_CLIP = ClipRange(None, None)


def clipped(ratio, clip):
    low = -math.inf if clip.low is None else 1 - clip.low
    high = math.inf if clip.high is None else 1 + clip.high
    return min(max(ratio, low), high)


def policy_gradient_slowly(rows, loss, clip, normalizer):
    total, outside, drift, tokens = 0.0, 0, 0.0, 0
    for row in rows:
        trained = [token for token in row if token[3]]
        mean = sum(token[0] - token[1] for token in trained) / max(len(trained), 1)  # each row is one turn
        for logp, logp_old, advantage, _ in trained:
            ratio = math.exp(mean if loss == "gspo" else logp - logp_old)
            bounded = clipped(ratio, clip)
            if loss == "cispo":
                objective = bounded * advantage * logp
            else:
                objective = min(ratio * advantage, bounded * advantage)
                if clip.dual is not None and advantage < 0:
                    objective = max(objective, clip.dual * advantage)
            outside += bounded != ratio
            total -= objective
            drift += logp_old - logp
            tokens += 1
    return total / normalizer, outside / max(tokens, 1), drift / max(tokens, 1)


@pytest.mark.parametrize("loss", ["ppo", "gspo", "cispo"])
@pytest.mark.parametrize(
    "clip",
    [NO_CLIP, ClipRange(0.2, 0.2), ClipRange(0.1, 0.5, 3.0), ClipRange(None, 4.0), ClipRange(0.3, None)],
    ids=str,
)
@settings(deadline=None, max_examples=25)
@given(rows=RAGGED, normalizer=st.floats(0.5, 100))
def test_the_policy_gradient_agrees_with_the_plain_loop(loss, clip, rows, normalizer):
    logp, old, advantage, mask = tensors(rows)
    turn = torch.where(mask > 0, 0, -1)
    found = policy_gradient(logp, old, advantage, mask, loss=loss, clip=clip, normalizer=normalizer, turn_BT=turn)
    expected = policy_gradient_slowly(rows, loss, clip, normalizer)
    assert (float(found.loss), found.kl) == pytest.approx((expected[0], expected[2]), abs=1e-6, rel=1e-6)
    assert found.clipped == pytest.approx(expected[1], abs=1e-6) or loss == "gspo"  # a mean may be on a bound


@settings(deadline=None)
@given(rows=RAGGED)
def test_the_gradient_of_reinforce_is_minus_the_advantage_on_trained_tokens(rows):
    logp, _, advantage, mask = tensors(rows)
    logp.requires_grad_()
    policy_gradient(logp, logp.detach(), advantage, mask, clip=NO_CLIP, normalizer=4.0).loss.backward()
    assert torch.allclose(logp.grad, -advantage * mask / 4.0)


def test_without_bounds_the_ratio_is_kept_for_turns_that_an_earlier_policy_sampled():
    logp, old, advantage, mask = tensors([[(math.log(0.6), math.log(0.2), 2.0, 1)]])
    logp.requires_grad_()
    policy_gradient(logp, old, advantage, mask, clip=NO_CLIP, normalizer=1.0).loss.backward()
    assert logp.grad.item() == pytest.approx(-3.0 * 2.0)


@pytest.mark.parametrize("loss", ["ppo", "gspo", "cispo"])
def test_where_the_policy_sampled_every_loss_has_the_gradient_of_reinforce(loss):
    logp, _, advantage, mask = tensors([[(-1.0, 0, 2.0, 1), (-2.0, 0, 2.0, 1), (-1.5, 0, -1.0, 1)]])
    logp.requires_grad_()
    turn, clip = torch.tensor([[0, 0, 1]]), ClipRange(0.1, 0.1)
    policy_gradient(
        logp, logp.detach(), advantage, mask, loss=loss, clip=clip, normalizer=1.0, turn_BT=turn
    ).loss.backward()
    assert torch.allclose(logp.grad, -advantage)


def test_cispo_keeps_a_gradient_for_clipped_tokens():
    logp, old, advantage, mask = tensors([[(0.0, -3.0, 2.0, 1)]])
    logp.requires_grad_()
    result = policy_gradient(logp, old, advantage, mask, loss="cispo", clip=ClipRange(None, 4.0), normalizer=1.0)
    result.loss.backward()
    assert (logp.grad.item(), result.clipped) == (-10.0, 1.0)


def test_gspo_takes_the_ratio_of_a_turn_alone():
    logp, old, advantage, mask = tensors([[(-1.0, -1.4, 1.0, 1), (-1.0, -1.0, 1.0, 1), (-2.0, -5.0, 1.0, 1)]])
    loss = policy_gradient(
        logp, old, advantage, mask, loss="gspo", clip=NO_CLIP, normalizer=1.0, turn_BT=torch.tensor([[0, 0, 1]])
    ).loss
    assert -float(loss) == pytest.approx(2 * math.exp(0.2) + math.exp(3.0))


def test_the_dual_clip_bounds_the_loss_of_a_negative_advantage():
    logp, old, advantage, mask = tensors([[(0.0, -3.0, -2.0, 1)]])
    logp.requires_grad_()
    loss = policy_gradient(logp, old, advantage, mask, clip=ClipRange(0.2, 0.2, 3.0), normalizer=1.0).loss
    loss.backward()
    assert (loss.item(), logp.grad.item()) == (6.0, 0.0)


def test_a_weight_multiplies_the_term_of_its_token_only():
    logp, _, advantage, mask = tensors([[(-1.0, 0, 2.0, 1), (-2.0, 0, 2.0, 1)]])
    logp.requires_grad_()
    weight = torch.tensor([[0.5, 1.0]])
    policy_gradient(
        logp, logp.detach(), advantage, mask, clip=NO_CLIP, normalizer=1.0, weight_BT=weight
    ).loss.backward()
    assert logp.grad.tolist() == [[-1.0, -2.0]]


@settings(deadline=None)
@given(rows=RAGGED)
def test_on_the_policy_that_sampled_clipping_changes_no_gradient(rows):
    gradients = []
    for clip in (NO_CLIP, ClipRange(0.2, 0.2)):
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
    result = policy_gradient(logp, zeros, torch.tensor([[advantage]]), ones, clip=ClipRange(0.2, 0.2), normalizer=1.0)
    result.loss.backward()
    assert result.loss.item() == pytest.approx(loss)
    assert logp.grad.item() == pytest.approx(gradient)
    assert result.clipped == float(abs(ratio - 1) > 0.2)


def test_the_weight_of_a_token_does_not_depend_on_the_length_of_its_answer():
    short, long = [(-1.0, -1.0, 1.0, 1)], [(-1.0, -1.0, 1.0, 1)] * 5
    logp, old, advantage, mask = tensors([short, long])
    logp.requires_grad_()
    policy_gradient(logp, old, advantage, mask, clip=NO_CLIP, normalizer=10.0).loss.backward()
    assert logp.grad[0, 0] == logp.grad[1, 0] == logp.grad[1, 4]


def test_a_batch_without_trained_tokens_has_zero_loss():
    loss = policy_gradient(*tensors([[(-1.0, -2.0, 1.0, 0)]]), clip=ClipRange(0.2, 0.2), normalizer=1.0)
    assert (float(loss.loss), loss.clipped, loss.kl) == (0.0, 0.0, 0.0)


def test_logged_values_carry_no_gradient():
    logp, old, advantage, mask = tensors([[(-1.0, -2.0, 1.0, 1)]])
    logp.requires_grad_()
    loss = policy_gradient(logp, old, advantage, mask, clip=ClipRange(0.2, 0.2), normalizer=1.0)
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


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
@settings(deadline=None, max_examples=25)
@given(rows=RAGGED, normalizer=st.floats(0.5, 100))
def test_the_kl_penalty_agrees_with_the_plain_loop(estimator, rows, normalizer):
    logp, reference, _, mask = tensors(rows)
    value = {"k1": lambda d: d, "k2": lambda d: d * d / 2, "k3": lambda d: math.exp(-d) + d - 1}[estimator]
    expected = sum(value(p - r) for row in rows for p, r, _, trained in row if trained)
    penalty = kl_penalty(logp, logp, reference, mask, normalizer=normalizer, estimator=estimator).item()
    assert penalty == pytest.approx(expected / normalizer, abs=1e-6)
    assert penalty >= 0 or estimator == "k1"


SAMPLER, POLICY, REFERENCE = [0.3, 0.2, 0.4, 0.1], [0.1, 0.6, 0.29, 0.01], [0.25, 0.01, 0.24, 0.5]


@pytest.mark.parametrize("sampler", [POLICY, SAMPLER], ids=["ratio of 1", "away from 1"])
@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_the_expected_gradient_of_the_kl_penalty_is_that_of_the_kl(estimator, sampler):
    logits = torch.tensor(POLICY, dtype=torch.float64).log().requires_grad_()
    sampled, reference = (torch.tensor(p, dtype=torch.float64) for p in (sampler, REFERENCE))
    logp = torch.log_softmax(logits, -1)
    (exact,) = torch.autograd.grad((logp.exp() * (logp - reference.log())).sum(), logits, retain_graph=True)
    # Each token once, weighted by the probability that the sampler takes it.
    penalty = kl_penalty(
        logp[None], sampled.log()[None], reference.log()[None], sampled[None], normalizer=1.0, estimator=estimator
    )
    (found,) = torch.autograd.grad(penalty, logits)
    assert torch.allclose(found, exact, atol=1e-12)
    kl = (logp.exp() * (logp - reference.log())).sum()
    assert penalty.item() == pytest.approx(kl.item()) or estimator == "k2"


def test_the_kl_penalty_pulls_towards_the_reference():
    logp, reference, _, mask = tensors([[(-1.0, -2.0, 0.0, 1), (-2.0, -1.0, 0.0, 1), (-1.0, -1.0, 0.0, 1)]])
    logp.requires_grad_()
    kl_penalty(logp, logp.detach(), reference, mask, normalizer=1.0).backward()
    assert logp.grad[0, 0] > 0 > logp.grad[0, 1]  # a descent makes the first less likely, the second likelier
    assert logp.grad[0, 2] == 0


def test_a_token_impossible_for_the_reference_has_a_finite_penalty_and_a_strong_pull():
    logp = torch.tensor([[-1.0]], requires_grad=True)
    one = torch.ones(1, 1)
    penalty = kl_penalty(logp, logp.detach(), -500.0 * one, one, normalizer=1.0)
    penalty.backward()
    assert 0 < penalty.item() < 100 and logp.grad.item() == pytest.approx(20.0)
    assert math.isfinite(kl_penalty(-500.0 * one, -500.0 * one, -1.0 * one, one, normalizer=1.0).item())
