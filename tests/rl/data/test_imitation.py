"""The warm-up: its budget, its early end, and the limit of replies."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")


import gem
from gem.policies import oracle
from gem.rl.config import TrainConfig
from gem.rl.data import imitation
from gem.rl.data.imitation import STEP_TOKENS, imitate_random_play, readable_share
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.tiny import build_model, build_tokenizer, collect_corpus
from gem.rl.run.build import build_policy
from gem.rl.run.trainer import Trainer
from gem.rollout import collect
from gem.vector import make_vec

pytestmark = pytest.mark.train

EASY = "game:GuessTheNumber-v0-easy"


@pytest.fixture
def policy() -> CausalLMPolicy:
    corpus = collect_corpus(EASY, seed=0)
    tokenizer = build_tokenizer([*corpus.observations, *corpus.actions], vocabulary=320)
    return CausalLMPolicy(build_model(tokenizer, seed=0, hidden=32), tokenizer, max_new_tokens=8)


def play(policy, episodes, number):
    with make_vec(EASY, num_envs=8, seed=number) as vec_env:
        return collect(vec_env, policy, episodes=episodes)


def test_the_budget_is_spent_to_within_one_step(policy):
    done = imitate_random_play(policy, play, tokens=5_000)
    assert 5_000 <= done.tokens < 5_000 + STEP_TOKENS
    assert done.readable is None
    steps = imitate_random_play(policy, play, steps=3)
    assert steps.steps == 3 and steps.tokens <= 3 * STEP_TOKENS


def test_the_warm_up_ends_when_replies_are_readable_and_not_before(policy, monkeypatch):
    monkeypatch.setattr(imitation, "CHECK_TOKENS", 4_000)
    asked: list[int] = []
    shares = iter([0.98, 0.97, 0.98, 0.99])

    def readable(number: int) -> float:
        asked.append(number)
        return next(shares)

    done = imitate_random_play(policy, play, tokens=10**9, readable=readable)
    assert asked == [1, 2, 3, 4] and done.readable == 0.99
    assert 16_000 <= done.tokens < 16_000 + 2 * STEP_TOKENS


def test_a_model_that_knows_nothing_is_unreadable_and_random_play_is_not_counted(policy):
    assert readable_share(policy, play, 1) < 0.2
    assert readable_share(policy, play, 1) == readable_share(policy, play, 1)


def test_zero_steps_skip_the_warm_up(tmp_path: Path):
    few = {"steps": 1, "batch": 8, "minibatch": 8, "eval_episodes": 4}
    with Trainer.start(TrainConfig(out=str(tmp_path), name="none", imitation_steps=0, **few)) as trainer:
        before = trainer.policy.model.get_input_embeddings().weight.clone()
        trainer._warm_up(lambda done, total: None, lambda: False)
        assert trainer.policy.model.get_input_embeddings().weight.equal(before)


@pytest.mark.parametrize("env_id", ["math:Arithmetic", "game:GuessTheNumber-v0-hard"])
def test_every_right_answer_fits_a_reply(env_id):
    policy = build_policy(TrainConfig(env=env_id))
    with gem.make(env_id) as env:
        player = oracle(env)
        for seed in range(50):
            action = player.act(str(env.reset(seed=seed)[0]))
            assert len(policy.chat.encode_reply(action)) <= policy.max_new_tokens
