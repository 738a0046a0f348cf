"""Token losses, compared with plain loops."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gem.rl.estimate.losses import LOSSES, PolicyTokens, cross_entropy, kl_penalty, mean_entropy

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


NO_CLIP = {"clip_low": None, "clip_high": None}


def summed(logp, old, advantage, mask, *, loss="ppo", normalizer=1.0, turn=None, weight=None, **options):
    """The loss of a minibatch, as the learner sums it, and the share of clipped tokens."""
    tokens = PolicyTokens(logp, old, advantage, mask, torch.zeros_like(mask).long() if turn is None else turn)
    loss_BT, clipped_BT = LOSSES[loss](tokens, **options)
    weight = mask if weight is None else weight
    clipped = 0.0 if clipped_BT is None else float((clipped_BT * mask).sum() / mask.sum().clamp(min=1))
    return (loss_BT * weight).sum() / normalizer, clipped


def clipped(ratio, clip_low, clip_high):
    low = -math.inf if clip_low is None else 1 - clip_low
    high = math.inf if clip_high is None else 1 + clip_high
    return min(max(ratio, low), high)


def summed_slowly(rows, loss, normalizer, *, clip_low=None, clip_high=None, dual_clip=None):
    total, outside, tokens = 0.0, 0, 0
    for row in rows:
        trained = [token for token in row if token[3]]
        mean = sum(token[0] - token[1] for token in trained) / max(len(trained), 1)  # each row is one turn
        for logp, logp_old, advantage, _ in trained:
            ratio = math.exp(mean if loss == "gspo" else logp - logp_old)
            bounded = clipped(ratio, clip_low, clip_high)
            if loss == "cispo":
                objective = bounded * advantage * logp
            else:
                objective = min(ratio * advantage, bounded * advantage)
                if dual_clip is not None and advantage < 0:
                    objective = max(objective, dual_clip * advantage)
            outside += bounded != ratio
            total -= objective
            tokens += 1
    return total / normalizer, outside / max(tokens, 1)


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        ("reinforce", {}),
        ("ppo", {"clip_low": 0.2, "clip_high": 0.2}),
        ("ppo", {"clip_low": 0.1, "clip_high": 0.5, "dual_clip": 3.0}),
        ("ppo", NO_CLIP),
        ("gspo", {"clip_low": None, "clip_high": 4.0}),
        ("gspo", {"clip_low": 0.3, "clip_high": None, "dual_clip": 2.0}),
        ("cispo", {"clip_low": None, "clip_high": 4.0}),
        ("cispo", {"clip_low": 0.1, "clip_high": 0.5}),
    ],
    ids=str,
)
@settings(deadline=None, max_examples=25)
@given(rows=RAGGED, normalizer=st.floats(0.5, 100))
def test_each_loss_agrees_with_the_plain_loop(loss, options, rows, normalizer):
    logp, old, advantage, mask = tensors(rows)
    turn = torch.where(mask > 0, 0, -1)
    found, share = summed(logp, old, advantage, mask, loss=loss, normalizer=normalizer, turn=turn, **options)
    expected, outside = summed_slowly(rows, loss, normalizer, **options)
    assert float(found) == pytest.approx(expected, abs=1e-6, rel=1e-6)
    assert share == pytest.approx(outside, abs=1e-6) or loss == "gspo"  # a mean may be on a bound


@settings(deadline=None)
@given(rows=RAGGED)
def test_the_gradient_of_reinforce_is_minus_the_advantage_on_trained_tokens(rows):
    logp, _, advantage, mask = tensors(rows)
    logp.requires_grad_()
    summed(logp, logp.detach(), advantage, mask, loss="reinforce", normalizer=4.0)[0].backward()
    assert torch.allclose(logp.grad, -advantage * mask / 4.0)


def test_without_bounds_the_ratio_is_kept_for_turns_that_an_earlier_policy_sampled():
    logp, old, advantage, mask = tensors([[(math.log(0.6), math.log(0.2), 2.0, 1)]])
    logp.requires_grad_()
    summed(logp, old, advantage, mask, loss="reinforce")[0].backward()
    assert logp.grad.item() == pytest.approx(-3.0 * 2.0)


@pytest.mark.parametrize("loss", ["ppo", "gspo", "cispo"])
def test_where_the_policy_sampled_every_loss_has_the_gradient_of_reinforce(loss):
    logp, _, advantage, mask = tensors([[(-1.0, 0, 2.0, 1), (-2.0, 0, 2.0, 1), (-1.5, 0, -1.0, 1)]])
    logp.requires_grad_()
    turn = torch.tensor([[0, 0, 1]])
    summed(logp, logp.detach(), advantage, mask, loss=loss, turn=turn)[0].backward()
    assert torch.allclose(logp.grad, -advantage)


def test_cispo_keeps_a_gradient_for_clipped_tokens():
    logp, old, advantage, mask = tensors([[(0.0, -3.0, 2.0, 1)]])
    logp.requires_grad_()
    loss, share = summed(logp, old, advantage, mask, loss="cispo")
    loss.backward()
    assert (logp.grad.item(), share) == (-10.0, 1.0)


def test_gspo_takes_the_ratio_of_a_turn_alone():
    logp, old, advantage, mask = tensors([[(-1.0, -1.4, 1.0, 1), (-1.0, -1.0, 1.0, 1), (-2.0, -5.0, 1.0, 1)]])
    loss, _ = summed(logp, old, advantage, mask, loss="gspo", turn=torch.tensor([[0, 0, 1]]), **NO_CLIP)
    assert -float(loss) == pytest.approx(2 * math.exp(0.2) + math.exp(3.0))


def test_the_dual_clip_bounds_the_loss_of_a_negative_advantage():
    logp, old, advantage, mask = tensors([[(0.0, -3.0, -2.0, 1)]])
    logp.requires_grad_()
    loss, _ = summed(logp, old, advantage, mask, dual_clip=3.0)
    loss.backward()
    assert (loss.item(), logp.grad.item()) == (6.0, 0.0)


def test_a_weight_multiplies_the_term_of_its_token_only():
    logp, _, advantage, mask = tensors([[(-1.0, 0, 2.0, 1), (-2.0, 0, 2.0, 1)]])
    logp.requires_grad_()
    weight = torch.tensor([[0.5, 1.0]])
    summed(logp, logp.detach(), advantage, mask, weight=weight)[0].backward()
    assert logp.grad.tolist() == [[-1.0, -2.0]]


@settings(deadline=None)
@given(rows=RAGGED)
def test_on_the_policy_that_sampled_clipping_changes_no_gradient(rows):
    gradients = []
    for loss in ("reinforce", "ppo"):
        logp, _, advantage, mask = tensors(rows)
        logp.requires_grad_()
        summed(logp, logp.detach(), advantage, mask, loss=loss)[0].backward()
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
    result, share = summed(logp, zeros, torch.tensor([[advantage]]), ones)
    result.backward()
    assert result.item() == pytest.approx(loss)
    assert logp.grad.item() == pytest.approx(gradient)
    assert share == float(abs(ratio - 1) > 0.2)


def test_the_weight_of_a_token_does_not_depend_on_the_length_of_its_answer():
    short, long = [(-1.0, -1.0, 1.0, 1)], [(-1.0, -1.0, 1.0, 1)] * 5
    logp, old, advantage, mask = tensors([short, long])
    logp.requires_grad_()
    summed(logp, old, advantage, mask, normalizer=10.0)[0].backward()
    assert logp.grad[0, 0] == logp.grad[1, 0] == logp.grad[1, 4]


def test_a_batch_without_trained_tokens_has_zero_loss():
    loss, share = summed(*tensors([[(-1.0, -2.0, 1.0, 0)]]))
    assert (float(loss), share) == (0.0, 0.0)


@settings(deadline=None)
@given(rows=RAGGED)
def test_means_over_trained_tokens_agree_with_the_plain_loop(rows):
    logp, _, entropy, mask = tensors(rows)
    trained = [token for row in rows for token in row if token[3]]
    count = max(len(trained), 1)
    assert float(cross_entropy(logp, mask)) == pytest.approx(-sum(t[0] for t in trained) / count, abs=1e-6)
    assert float(mean_entropy(entropy, mask)) == pytest.approx(sum(t[2] for t in trained) / count, abs=1e-6)


@settings(deadline=None, max_examples=25)
@given(rows=RAGGED, normalizer=st.floats(0.5, 100))
def test_the_kl_penalty_agrees_with_the_plain_loop(rows, normalizer):
    logp, reference, _, mask = tensors(rows)
    expected = sum(math.exp(r - p) + p - r - 1 for row in rows for p, r, _, trained in row if trained)
    penalty = kl_penalty(logp, logp, reference, mask, normalizer=normalizer).item()
    assert penalty == pytest.approx(expected / normalizer, abs=1e-6)
    assert penalty >= 0


SAMPLER, POLICY, REFERENCE = [0.3, 0.2, 0.4, 0.1], [0.1, 0.6, 0.29, 0.01], [0.25, 0.01, 0.24, 0.5]


@pytest.mark.parametrize("sampler", [POLICY, SAMPLER], ids=["ratio of 1", "away from 1"])
def test_the_expected_gradient_of_the_kl_penalty_is_that_of_the_kl(sampler):
    logits = torch.tensor(POLICY, dtype=torch.float64).log().requires_grad_()
    sampled, reference = (torch.tensor(p, dtype=torch.float64) for p in (sampler, REFERENCE))
    logp = torch.log_softmax(logits, -1)
    (exact,) = torch.autograd.grad((logp.exp() * (logp - reference.log())).sum(), logits, retain_graph=True)
    # Each token once, weighted by the probability that the sampler takes it.
    penalty = kl_penalty(logp[None], sampled.log()[None], reference.log()[None], sampled[None], normalizer=1.0)
    (found,) = torch.autograd.grad(penalty, logits)
    assert torch.allclose(found, exact, atol=1e-12)
    kl = (logp.exp() * (logp - reference.log())).sum()
    assert penalty.item() == pytest.approx(kl.item())


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
