"""The gradient of the learner is compared with the exact one of a small environment; see exact_gradient.py.

The expectation of a batch's gradient is computed by enumeration: every batch of one or of two episodes, weighted by its
probability, through the learner's own functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from exact_gradient import TabularPolicy, all_episodes, all_trees, exact_gradient, gradient
from torch import Tensor

import gem.rl.model.critic
from gem.rl.choices import Choice
from gem.rl.config import TrainConfig
from gem.rl.estimate import advantages
from gem.rl.estimate.batch import Example, collate
from gem.rl.model.critic import Critic, prompt_ends
from gem.rl.run.learner import Learner
from gem.rollout import BranchPlan

pytestmark = pytest.mark.train
EPISODES = all_episodes()
GAMMA = 0.7


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


class AnyValues:
    """A critic whose values depend on the state before the turn and are otherwise arbitrary."""

    def values(self, batch: Sequence[Example], size: int) -> list[list[float]]:
        return [[0.3 - 0.7 * (e.sequence.ids_T[t] - 3) ** 2 for t, _ in prompt_ends(e)] for e in batch]


def expected_gradient(
    policy: TabularPolicy, size: int, *, kl_to: TabularPolicy | None = None, critic: Any = None, **options: Any
) -> Tensor:
    """Return the expectation over all batches of `size` episodes of the descent direction of the learner's loss."""
    settings = {"epochs": 1, "loss": "reinforce", "aggregation": "constant", "kl": 0.0} | options
    if settings.get("advantage") in ("grpo", "rloo", "gigpo"):
        settings["group_size"] = size
    config = TrainConfig(batch=size * 4, minibatch=size, **settings)
    learner = Learner(config, policy)  # type: ignore[arg-type]
    learner.reference = kl_to  # type: ignore[assignment]
    learner.critic = (critic or AnyValues()) if config.advantage == "gae" else None  # type: ignore[assignment]
    played = [
        (policy.probability(e).item(), e.trajectory([x.item() for x in policy.logps(e)], group=0)) for e in EPISODES
    ]
    weighted, divisors = [], set()
    for members in product(played, repeat=size):
        probability = torch.tensor([p for p, _ in members]).prod().item()
        batch, _ = learner.prepare([t for _, t in members])
        divisors.add(learner.divisor(batch, size))
        weighted += [replace(e, weight_T=[probability * m for m in e.sequence.loss_mask_T]) for e in batch]
    (divisor,) = divisors  # the same for all batches, so that their losses can be added
    loss, _ = learner.loss(collate(weighted, policy.pad_id), divisor * size)
    return -gradient(policy, loss * policy.max_new_tokens)  # which the divisor "constant" contains


def assert_equal(found: Tensor, exact: Tensor) -> None:
    assert (found - exact).abs().max().item() <= 1e-9


def test_the_environment_has_episodes_of_unequal_length_and_its_probabilities_sum_to_one():
    policy = TabularPolicy()
    assert len(EPISODES) == 31 and {len(e.states) for e in EPISODES} == {1, 2, 3}
    assert sum(policy.probability(e).item() for e in EPISODES) == pytest.approx(1.0, abs=1e-12)


def test_without_discount_the_exact_gradient_is_that_of_the_expected_return():
    policy = TabularPolicy()
    value = torch.stack([policy.probability(e) * sum(e.rewards) for e in EPISODES]).sum()
    assert_equal(exact_gradient(policy, 1.0), gradient(policy, value))


UNBIASED: dict[str, tuple[int, float, dict[str, Any]]] = {  # batch size, gamma of the objective, options
    "returns": (1, GAMMA, {"advantage": "returns", "gamma": GAMMA}),
    "turn": (
        2,
        GAMMA,
        {
            "advantage": "turn",
            "gamma": GAMMA,
            "advantage_options": {"leave_one_out": True, "batch_scale": "none"},
        },
    ),
    "rloo": (2, 1.0, {"advantage": "rloo"}),
    "gae": (1, GAMMA, {"advantage": "gae", "gamma": GAMMA, "advantage_options": {"gae_lambda": 1.0}}),
    "grpo": (2, 1.0, {"advantage": "grpo", "advantage_options": {"leave_one_out": True, "group_scale": "none"}}),
}


@pytest.mark.parametrize("name", UNBIASED)
def test_an_unbiased_estimator_has_the_exact_gradient_in_expectation(name):
    policy = TabularPolicy()
    size, gamma, options = UNBIASED[name]
    assert_equal(expected_gradient(policy, size, **options), exact_gradient(policy, gamma))


class Tokens(torch.nn.Module):
    """A model whose hidden state at a position is an arbitrary vector for the token there."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(8, 4)
        torch.nn.init.normal_(self.embedding.weight, generator=torch.Generator().manual_seed(0))

    def get_input_embeddings(self) -> torch.nn.Embedding:
        return self.embedding

    @property
    def base_model(self) -> Tokens:
        return self

    def forward(self, input_ids: Tensor, **options: Any) -> Any:
        return SimpleNamespace(last_hidden_state=self.embedding(input_ids))


def shared_critic() -> Critic:
    """Return a shared critic with arbitrary values, which depend on the token that they are read at."""
    critic = Critic(Tokens(), 0, learning_rate=0.1, max_norm=1.0, shared=True)
    torch.nn.init.ones_(critic.network["head"].weight)
    return critic


def test_the_values_of_a_shared_critic_leave_the_gradient_exact():
    options = UNBIASED["gae"][2]
    assert_equal(
        expected_gradient(TabularPolicy(), 1, critic=shared_critic(), **options), exact_gradient(TabularPolicy(), GAMMA)
    )


def test_values_that_are_read_one_token_later_are_found(monkeypatch):
    ends = gem.rl.model.critic.prompt_ends
    monkeypatch.setattr(gem.rl.model.critic, "prompt_ends", lambda example: [(t + 1, k) for t, k in ends(example)])
    options = UNBIASED["gae"][2]
    found = expected_gradient(TabularPolicy(), 1, critic=shared_critic(), **options)
    assert (found - exact_gradient(TabularPolicy(), GAMMA)).abs().max() > 1e-3


def late_turns(batch: list[Any]) -> list[Any]:
    return [a * [1.03 if k == 1 else 1.0 for k in range(len(a))] for a in batch]


@pytest.mark.parametrize("name", ["rloo", "gae"])
def test_an_error_of_3_percent_in_the_advantage_of_one_turn_is_found(name, monkeypatch):
    compute: Callable[..., Any] = Choice.__call__

    def wrong(self: Choice, given: Any) -> Any:
        return late_turns(compute(self, given)) if self.name == name else compute(self, given)

    monkeypatch.setattr(Choice, "__call__", wrong)
    policy = TabularPolicy()
    size, gamma, options = UNBIASED[name]
    with pytest.raises(AssertionError):
        assert_equal(expected_gradient(policy, size, **options), exact_gradient(policy, gamma))


def test_an_error_of_3_percent_in_the_weight_of_first_tokens_is_found(monkeypatch):
    policy, collated = TabularPolicy(), collate

    def wrong(chosen: Any, pad_id: int) -> Any:
        found = collated(chosen, pad_id)
        first = (found.turn_BT >= 0) & (found.turn_BT.roll(1, 1) < 0)
        return replace(found, weight_BT=found.weight_BT * torch.where(first, 1.03, 1.0))

    monkeypatch.setitem(globals(), "collate", wrong)
    with pytest.raises(AssertionError):
        assert_equal(expected_gradient(policy, 1, **UNBIASED["returns"][2]), exact_gradient(policy, GAMMA))


def test_a_baseline_that_contains_3_percent_of_the_own_return_is_found(monkeypatch):
    center = advantages.center

    def wrong(values: Any, groups: Any, leave_one_out: bool = False) -> Any:
        return center(values, groups, leave_one_out) - 0.03 * values

    monkeypatch.setattr(advantages, "center", wrong)
    policy = TabularPolicy()
    size, gamma, options = UNBIASED["turn"]
    with pytest.raises(AssertionError):
        assert_equal(expected_gradient(policy, size, **options), exact_gradient(policy, gamma))


BRANCHES: dict[str, tuple[int, dict[str, Any]]] = {  # first state, options
    "all states": (1, {"width": 1}),
    "two continuations of the first state": (1, {"width": 2, "turns": 1}),
    "the first of three states": (0, {"width": 1, "turns": 1}),
    "every second state": (0, {"width": 1, "every": 2}),
}


def branch_error(name: str, train: bool = False) -> float:
    """Return the largest error of the expected gradient over all episodes with all their continuations."""
    policy = TabularPolicy()
    first, options = BRANCHES[name]
    settings = {"loss": "reinforce", "aggregation": "constant", "kl": 0.0, "gamma": GAMMA}
    options = options | {"train": train}
    config = TrainConfig(batch=4, minibatch=4, advantage="branch", advantage_options=options, **settings)
    learner = Learner(config, policy)  # type: ignore[arg-type]
    trees = list(all_trees(policy, config.branch_plan, first))
    assert sum(p for p, _ in trees) == pytest.approx(1.0, abs=1e-12)
    batch, _ = learner.prepare([t for _, played in trees for t in played])  # their groups are separate
    chances = [p for p, played in trees for _ in played]
    weighted = [replace(e, weight_T=[chances[e.episode] * n for n in e.counts_T]) for e in batch]
    loss, _ = learner.loss(collate(weighted, policy.pad_id), 1.0)
    return (-gradient(policy, loss) - exact_gradient(policy, GAMMA, first)).abs().max().item()


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", BRANCHES)
def test_branching_advantages_have_the_exact_gradient_in_expectation(name, train):
    assert branch_error(name, train) <= 1e-9


def test_an_error_of_3_percent_in_a_branching_advantage_is_found(monkeypatch):
    compute = advantages.branch_advantages
    monkeypatch.setattr(advantages, "branch_advantages", lambda *args: late_turns(compute(*args)))
    assert branch_error("two continuations of the first state") > 1e-5


def test_continuations_that_contain_3_percent_of_the_scored_turn_are_found(monkeypatch):
    compute = advantages.branch_advantages

    def wrong(episodes: Sequence[Any], gamma: float) -> list[Any]:
        returns = [advantages.discounted_returns(e.rewards_K, gamma) for e in episodes]
        return [a - 0.03 * own for a, own in zip(compute(episodes, gamma), returns, strict=True)]

    monkeypatch.setattr(advantages, "branch_advantages", wrong)
    assert branch_error("all states") > 1e-5


def test_an_error_of_3_percent_in_the_weight_of_continuations_is_found(monkeypatch):
    weight = BranchPlan.weight
    monkeypatch.setattr(BranchPlan, "weight", lambda plan, turn: weight(plan, turn) * (1.03 if turn == 1 else 1.0))
    assert branch_error("all states", train=True) > 1e-5


def test_dr_grpo_has_the_direction_of_the_exact_gradient_and_a_known_scale():
    policy = TabularPolicy()
    found = expected_gradient(policy, 2, advantage="grpo", advantage_options={"group_scale": "none"})
    assert_equal(2 * found, exact_gradient(policy, 1.0))  # n / (n - 1) for groups of n = 2


@pytest.mark.parametrize("loss", ["ppo", "gspo", "cispo"])
def test_every_loss_has_the_exact_gradient_where_the_policy_sampled(loss):
    policy = TabularPolicy()
    options = UNBIASED["returns"][2] | {"loss": loss, "loss_options": {"clip_high": 0.2}}
    assert_equal(expected_gradient(policy, 1, **options), exact_gradient(policy, GAMMA))


def test_the_kl_in_the_reward_has_the_gradient_of_the_kl_between_episodes():
    policy, start = TabularPolicy(), TabularPolicy(seed=1)
    value = torch.zeros(())
    for e in EPISODES:
        ratios = torch.stack(policy.logps(e)) - torch.stack(start.logps(e)).detach()
        value = value + policy.probability(e) * (sum(e.rewards) - 0.3 * ratios.sum())
    found = expected_gradient(policy, 1, advantage="returns", gamma=1.0, kl=0.3, kl_in="reward", kl_to=start)
    assert_equal(found, gradient(policy, value))


def test_the_kl_in_the_loss_has_the_gradient_of_the_kl_of_each_token():
    policy, start = TabularPolicy(), TabularPolicy(seed=1)
    kl = torch.zeros(())
    for e in EPISODES:
        probability = policy.probability(e).detach()
        for _, state, beginning, _ in e.tokens():
            for token in (1, 2):
                logp, reference = (p.model.logp(state, beginning, token) for p in (policy, start))
                kl = kl + probability * logp.exp() * (logp - reference.detach())
    options = {"advantage": "returns", "gamma": GAMMA, "kl": 0.3, "kl_to": start}
    assert_equal(expected_gradient(policy, 1, **options), exact_gradient(policy, GAMMA) - 0.3 * gradient(policy, kl))
