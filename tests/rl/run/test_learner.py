"""One policy update: the weights of tokens, and the divisor of their loss."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

from exact_gradient import Episode, TabularPolicy, all_episodes

from gem.errors import BadValue
from gem.rl.config import TrainConfig
from gem.rl.estimate.advantages import ADVANTAGES
from gem.rl.estimate.losses import LOSSES, TokenLoss
from gem.rl.model import scoring
from gem.rl.run.learner import Learner, rate_factor

pytestmark = pytest.mark.train


def learner(policy: TabularPolicy, **options: object) -> Learner:
    settings = {"advantage": "returns", "kl": 0.0, "batch": 8, "minibatch": 8} | options
    return Learner(TrainConfig(**settings), policy)  # type: ignore[arg-type]


def long_and_short() -> tuple[Episode, Episode]:
    """Return an episode with one reply of 1 token, and one with replies of 3 and 1 tokens."""
    by_replies = {tuple(e.replies): e for e in all_episodes()}
    return by_replies[0,], by_replies[3, 0]


def test_truncated_importance_sampling_weights_tokens_by_the_ratio_of_scorer_to_sampler():
    policy = TabularPolicy()
    episode = long_and_short()[1]
    scored = [x.item() for x in policy.logps(episode)]
    shifts = [0.0, 1.0, -1.0, 0.2]  # log-probabilities of the scorer minus those of the sampler
    sampled = [p - shift for p, shift in zip(scored, shifts, strict=True)]
    batch, _ = learner(policy, truncated_is=2.0).prepare([episode.trajectory(sampled)])
    example = batch[0]
    trained = [t for t, mask in enumerate(example.sequence.loss_mask_T) if mask]
    assert [example.old_T[t] for t in trained] == pytest.approx(scored)
    assert [example.weight_T[t] for t in trained] == pytest.approx([1.0, 2.0, math.exp(-1.0), math.exp(0.2)])
    assert sum(example.weight_T) == pytest.approx(sum(example.weight_T[t] for t in trained))


@pytest.mark.parametrize(
    ("options", "divisor", "weights"),
    [
        ({"aggregation": "token-mean"}, 5 / 2, None),
        ({"aggregation": "constant"}, 3.0, None),  # the limit of a reply
        ({"aggregation": "sequence-mean"}, 3 / 2, [1.0, 1 / 3, 1 / 3, 1 / 3, 1.0]),
    ],
    ids=str,
)
def test_the_aggregation_determines_the_divisor_and_the_weights(options, divisor, weights):
    policy = TabularPolicy()
    trajectories = [e.trajectory([x.item() for x in policy.logps(e)]) for e in long_and_short()]
    made = learner(policy, **options)
    batch, _ = made.prepare(trajectories)
    assert made.divisor(batch, len(batch)) == pytest.approx(divisor)
    if weights is None:
        assert [e.weight_T for e in batch] == [None, None]
    else:
        assert [w for e in batch for w in e.weight_T if w] == pytest.approx(weights)


def test_the_penalty_in_the_reward_is_charged_to_the_turn_that_sampled_the_tokens():
    policy, start = TabularPolicy(), TabularPolicy(seed=1)
    episode = long_and_short()[1]
    logps = [x.item() for x in policy.logps(episode)]
    made = learner(policy, kl=0.5, kl_in="reward")
    made.reference = start  # type: ignore[assignment]
    _, (data,) = made.prepare([episode.trajectory(logps)])
    ratios = [own - other.item() for own, other in zip(logps, start.logps(episode), strict=True)]
    expected = [episode.rewards[0] - 0.5 * sum(ratios[:3]), episode.rewards[1] - 0.5 * ratios[3]]
    assert data.rewards_K == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("updates, ramp", [(1, 1), (10, 1), (20, 2), (100, 10), (1000, 10)])
def test_the_learning_rate_rises_to_its_peak_and_decays_to_a_tenth(updates, ramp):
    factors = [rate_factor(update, updates) for update in range(updates)]
    assert factors[0] == pytest.approx(1 / ramp)
    assert max(factors) == factors[ramp - 1] == 1.0
    assert factors[-1] == pytest.approx(0.1 if updates > 1 else 1.0)


@pytest.mark.parametrize("aggregation", ["token-mean", "constant", "sequence-mean"])
def test_micro_batches_have_the_gradient_and_the_metrics_of_the_minibatch(aggregation, monkeypatch):
    policy, start = TabularPolicy(), TabularPolicy(seed=1)
    trajectories = [e.trajectory([x.item() - 0.3 for x in policy.logps(e)]) for e in all_episodes()[:15]]
    found = []
    for micro_batch, pass_size in ((None, 2**20), (None, 30), (1, 0), (4, 0)):  # 30 hold two of the longest
        monkeypatch.setattr(scoring, "PASS_SIZE", {"cpu": pass_size})
        made = learner(policy, aggregation=aggregation, kl=0.1, entropy=0.1, micro_batch=micro_batch)
        made.reference = start  # type: ignore[assignment]
        batch, _ = made.prepare(trajectories)
        policy.model.zero_grad()
        metrics = made.accumulate(batch, made.divisor(batch, len(trajectories)))
        found.append((policy.model.logits.grad.flatten().tolist(), metrics))
    for gradient, metrics in found[1:]:
        assert gradient == pytest.approx(found[0][0], abs=1e-6)
        assert metrics == pytest.approx(found[0][1], abs=1e-6)


def test_the_gap_between_sampler_and_scorer_is_measured_on_turns_of_the_current_policy():
    policy = TabularPolicy()
    policy.version = 1
    made = learner(policy)
    episode = long_and_short()[1]
    scored = [x.item() for x in policy.logps(episode)]
    trajectory = episode.trajectory([scored[0] - 0.5, scored[1], scored[2], scored[3] - 0.1])

    def gap() -> float | None:
        made.policy.model.load_state_dict(TabularPolicy().model.state_dict())
        return made.learn([trajectory], 0)["sampler_gap"]

    assert gap() is None  # an older policy sampled it
    trajectory.turns[-1].policy_version = 1
    assert gap() == pytest.approx(0.1)
    trajectory.turns[0].policy_version = 1
    assert gap() == pytest.approx(0.15)


def test_the_gap_is_that_of_the_weights_before_the_first_step():
    policy = TabularPolicy()
    trajectories = [e.trajectory([x.item() for x in policy.logps(e)]) for e in all_episodes()[:4]]
    assert learner(policy, minibatch=1, epochs=3, learning_rate=1.0).learn(trajectories, 0)["sampler_gap"] < 1e-6


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (lambda t: -t.logp_BT, "must return a TokenLoss of tensors of the shape"),
        (lambda t: TokenLoss(-t.logp_BT.sum()), "shape"),
        (lambda t: TokenLoss(-t.logp_BT[:, :1]), "shape"),
        (lambda t: TokenLoss(-t.logp_BT, t.mask_BT[0]), "shape"),
        (lambda t: None, "got None"),
        (lambda t: TokenLoss(-t.logp_BT.detach()), "no gradient"),
        (lambda t: TokenLoss(t.logp_BT / 0.0), "not finite"),
    ],
    ids=["tensor", "scalar", "column", "clipped", "None", "detached", "infinite"],
)
def test_what_is_no_loss_of_tokens_is_refused_by_the_name_of_the_loss(of, message, monkeypatch):
    monkeypatch.setitem(LOSSES, "ppo", of)
    policy = TabularPolicy()
    made = learner(policy)
    batch, _ = made.prepare([e.trajectory([x.item() for x in policy.logps(e)]) for e in long_and_short()])
    with pytest.raises(BadValue, match=f"loss='ppo' .*{message}"):
        made.accumulate(batch, 1.0)


@pytest.mark.parametrize(
    "of", [lambda e: None, lambda e: [["x"] * len(e)], lambda e: [], lambda e: [[math.nan] * 9] * len(e)]
)
def test_what_is_no_advantage_is_refused_by_the_name_of_the_advantage(of, monkeypatch):
    monkeypatch.setitem(ADVANTAGES, "returns", lambda episodes: of(episodes) if episodes else [])
    policy = TabularPolicy()
    with pytest.raises(BadValue, match="advantage='returns' must return one array per episode"):
        learner(policy).prepare([e.trajectory([x.item() for x in policy.logps(e)]) for e in long_and_short()])
