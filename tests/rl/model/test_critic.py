"""The critic: where it reads, that it learns, and which limits it bootstraps at."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from gem.conversation import History
from gem.core import Env, Step, StopReason
from gem.errors import InfraError
from gem.policies import ScriptedPolicy
from gem.registry import ENV_REGISTRY, EnvSpec
from gem.rl.estimate.advantages import EpisodeRewards, gae
from gem.rl.estimate.batch import pack
from gem.rl.model.critic import Critic, explained_variance, final_value, prompt_ends
from gem.rl.model.tiny import build_model, build_tokenizer
from gem.rollout import Collector
from gem.rollout.episode import ActiveEpisode
from gem.trajectory import Trajectory, Turn
from gem.vector import make_vec
from gem.wrappers import TurnLimit

pytestmark = pytest.mark.train


class LastToken(torch.nn.Module):
    """A model whose hidden state at a position is an embedding of the token there."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(8, 8)
        torch.nn.init.eye_(self.embedding.weight)

    def get_input_embeddings(self):
        return self.embedding

    @property
    def base_model(self):
        return self

    def forward(self, input_ids, attention_mask, use_cache):
        return SimpleNamespace(last_hidden_state=self.embedding(input_ids))


def chain(stop_reason: StopReason) -> Trajectory:
    """A chain of two states, 5 and 6, each shown after the same two tokens; replies are token 1."""
    turns = [Turn("", "", [2, 3, 5], [1], [0.0], [1], reward=0.0)]
    turns.append(Turn("", "", [2, 3, 5, 1, 2, 3, 6], [1, 1], [0.0, 0.0], [1, 1], reward=1.0))
    return Trajectory(turns=turns, truncated=True, stop_reason=stop_reason)


def test_values_are_read_at_the_last_prompt_token_of_each_turn():
    (example,) = pack([chain(StopReason.MAX_TURNS)])
    assert prompt_ends(example) == [(2, 0), (6, 1)]
    assert [example.sequence.ids_T[t] for t, _ in prompt_ends(example)] == [5, 6]


def test_the_critic_starts_at_0_and_learns_the_value_of_each_state():
    critic = Critic(LastToken(), 0, learning_rate=0.03, max_norm=1.0)
    batch = pack([chain(StopReason.MAX_TURNS)] * 3)
    assert critic.values(batch, 2) == [[0.0, 0.0]] * 3
    targets = [np.array([0.5, 1.0])] * 3
    losses = [critic.fit(batch, targets, 2, random.Random(i)) for i in range(60)]
    assert np.array(critic.values(batch, 2)) == pytest.approx(np.array(targets), abs=0.05)
    assert losses[-1][0] < 0.01 * losses[0][0]


def test_a_shared_critic_learns_on_the_model_of_the_policy():
    model = LastToken()
    critic = Critic(model, 0, learning_rate=0.03, max_norm=1.0, shared=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.03)
    batch = pack([chain(StopReason.MAX_TURNS)] * 3)
    targets = [np.array([0.5, 1.0])] * 3
    assert critic.values(batch, 2) == [[0.0, 0.0]] * 3
    assert [name for name, _ in critic.network.named_parameters()] == ["head.weight", "head.bias"]
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        critic.optimizer.zero_grad()
        losses.append(critic.accumulate(batch, targets, 0.5, size=2))
        optimizer.step()
        critic.step()
    assert np.array(critic.values(batch, 2)) == pytest.approx(np.array(targets), abs=0.05)
    assert losses[-1] < 0.01 * losses[0]
    assert not torch.equal(model.embedding.weight, torch.eye(8))


def test_the_gradient_of_a_minibatch_does_not_depend_on_its_parts():
    batch, targets = pack([chain(StopReason.MAX_TURNS)] * 3), [np.array([0.5, 1.0])] * 3
    gradients = []
    for size in (None, 1, 2):
        critic = Critic(LastToken(), 0, learning_rate=0.03, max_norm=1.0, shared=True)
        critic.accumulate(batch, targets, size=size)
        gradients.append(critic.network["head"].weight.grad)
    assert all(torch.allclose(g, gradients[0]) for g in gradients)


def test_a_separate_critic_respects_the_micro_batch_and_trains_float32_weights():
    widths = []

    class Watched(LastToken):
        def forward(self, input_ids, **more):
            widths.append(len(input_ids))
            return super().forward(input_ids, **more)

    critic = Critic(Watched().to(torch.bfloat16), 0, learning_rate=0.03, max_norm=1.0)
    batch, targets = pack([chain(StopReason.MAX_TURNS)] * 5), [np.array([0.5, 1.0])] * 5
    assert len(critic.fit(batch, targets, 5, random.Random(0), micro_batch=2)) == 1
    assert widths == [2, 2, 1]
    assert {p.dtype for p in critic.network.parameters()} == {torch.float32}


def test_the_steps_of_an_epoch_have_nearly_equal_numbers_of_sequences():
    sizes = []

    class Watched(Critic):
        def accumulate(self, minibatch, *args, **more):
            sizes.append(len(minibatch))
            return super().accumulate(minibatch, *args, **more)

    batch, targets = pack([chain(StopReason.MAX_TURNS)] * 9), [np.array([0.5, 1.0])] * 9
    Watched(LastToken(), 0, learning_rate=0.03, max_norm=1.0).fit(batch, targets, 4, random.Random(0))
    assert sizes == [3, 3, 3]


def test_a_critic_whose_gradient_is_not_finite_names_its_learning_rate():
    critic = Critic(LastToken(), 0, learning_rate=0.03, max_norm=1.0)
    batch = pack([chain(StopReason.MAX_TURNS)])
    with pytest.raises(InfraError, match=r"critic is nan.*learning_rate in --critic-options"):
        critic.fit(batch, [np.array([np.nan, 1.0])], 1, random.Random(0))


class TwoStates(Env):
    """A chain of two states. The first pays nothing, and the second pays 1 in each turn, up to the turn limit."""

    def __init__(self, max_turns: int | None = None) -> None:
        self.max_turns, self.turn = max_turns, 0

    def reset(self, seed=None):
        super().reset(seed)
        self.turn = 0
        return "first", {}

    def step(self, action):
        self.turn += 1
        cut = self.turn == self.max_turns
        info = {"stop_reason": StopReason.MAX_TURNS} if cut else {}
        return Step("second", float(self.turn > 1), truncated=cut, info=info)


@pytest.fixture(params=["rule", "spec", "wrapper", "history", "tokens"])
def limited(request, monkeypatch):
    """An episode of two turns on the chain, and whether its limit is outside the task."""
    limit = request.param
    kwargs = {"max_turns": 2} if limit in ("rule", "spec") else {}
    spec = EnvSpec("test:TwoStates", TwoStates, kwargs, turn_limit="outside" if limit == "spec" else "rule")
    monkeypatch.setitem(ENV_REGISTRY._specs, spec.id, spec)
    wrappers = [lambda env: TurnLimit(env, 2)] if limit in ("wrapper", "tokens") else []
    history = History(max_turns=1) if limit == "history" else History()
    with make_vec(spec.id, wrappers) as vec_env:
        (trajectory,) = Collector(vec_env, history=history).collect(ScriptedPolicy(["go"]), episodes=1)
    if limit == "tokens":
        trajectory = ActiveEpisode(trajectory, "second", {}).truncate(StopReason.MAX_TOKENS)
    assert trajectory.truncated and trajectory.rewards_K == [0.0, 1.0]
    assert trajectory.stop_reason == (StopReason.MAX_TOKENS if limit == "tokens" else StopReason.MAX_TURNS)
    return trajectory, limit != "rule"


def test_values_are_bootstrapped_only_at_limits_outside_the_task(limited):
    trajectory, outside = limited
    assert Trajectory.from_json(trajectory.to_json()).outside_limit == outside
    values = np.zeros(2)
    for _ in range(50):  # the values that a critic converges to
        final = final_value(trajectory, values.tolist())
        episode = EpisodeRewards(trajectory.rewards_K, values_K=values.tolist(), final_value=final)
        values = values + gae([episode], gamma=0.5, gae_lambda=0.0)[0]
    assert values == pytest.approx([1.0, 2.0] if outside else [0.5, 1.0]), "without the limit: 1 + .5 + .25 + …"


def test_explained_variance():
    returns = np.array([0.0, 1.0, 2.0])
    assert explained_variance(returns, returns) == 1.0
    assert explained_variance(np.zeros(3), returns) == 0.0
    assert explained_variance(returns, np.ones(3)) is None


@pytest.mark.parametrize("shared", [False, True])
def test_the_critic_reads_hidden_states_and_computes_no_logits(shared):
    tokenizer = build_tokenizer(["a b c"] * 5, vocabulary=300)
    model = build_model(tokenizer, seed=0, hidden=32)
    critic = Critic(model, 0, learning_rate=0.1, max_norm=1.0, shared=shared)
    torch.nn.init.ones_(critic._head.weight)
    batch = pack([chain(StopReason.MAX_TURNS)])
    ids = torch.tensor([batch[0].sequence.ids_T])
    with torch.no_grad():
        hidden = model(input_ids=ids, output_hidden_states=True).hidden_states[-1][0]
    expected = [float(hidden[t].sum()) for t, _ in prompt_ends(batch[0])]

    def computed(*_: object) -> None:
        raise AssertionError("the output layer was computed")

    critic._model.get_output_embeddings().register_forward_hook(computed)
    assert critic.values(batch, 1)[0] == pytest.approx(expected, abs=1e-4)
    assert critic.accumulate(batch, [np.array([0.5, 1.0])]) > 0.0
