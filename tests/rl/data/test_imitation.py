"""The warm-up: its budget, its early end, and the limit of replies."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")


import gem
from gem.errors import BadValue
from gem.policies import oracle
from gem.rl.config import TrainConfig
from gem.rl.data.imitation import (
    FROM_RANDOM,
    PRETRAINED,
    PRETRAINED_ANSWERS,
    even_parts,
    imitate_random_play,
    readable_share,
)
from gem.rl.estimate.batch import pack
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
    short = FROM_RANDOM._replace(tokens=5_000)
    done = imitate_random_play(policy, play, rate=3e-3, schedule=short)
    assert 5_000 <= done.tokens < 5_000 + short.step_tokens
    assert done.readable is None
    steps = imitate_random_play(policy, play, rate=3e-3, steps=3)
    assert steps.steps == 3 and steps.tokens <= 3 * short.step_tokens


def test_the_warm_up_ends_when_replies_are_readable_and_not_before(policy):
    asked: list[int] = []
    shares = iter([0.98, 0.97, 0.98, 0.99])

    def readable(number: int) -> float:
        asked.append(number)
        return next(shares)

    often = FROM_RANDOM._replace(check_tokens=4_000)
    done = imitate_random_play(policy, play, rate=3e-3, schedule=often, readable=readable)
    assert asked == [1, 2, 3, 4] and done.readable == 0.99
    assert 16_000 <= done.tokens < 16_000 + 2 * often.step_tokens


def test_a_pretrained_model_is_checked_before_the_first_step_and_after_every_two_thousand_tokens(policy):
    shares, seen = iter([0.5, 0.6, 0.96]), []
    done = imitate_random_play(
        policy, play, rate=3e-5, schedule=PRETRAINED, readable=lambda n: next(shares), on_step=seen.append
    )
    assert seen[0] == (0, 0, None, 0.5) and done == seen[-1] and done.readable == 0.96
    assert 4_000 <= done.tokens < 4_000 + PRETRAINED.step_tokens and done.steps >= 8
    assert all(state.loss > 0 for state in seen[1:])


def test_a_model_whose_replies_are_readable_is_not_trained(policy):
    before = policy.model.get_input_embeddings().weight.clone()
    done = imitate_random_play(policy, play, rate=3e-5, schedule=PRETRAINED, readable=lambda n: 0.95)
    assert done == (0, 0, None, 0.95)
    assert policy.model.get_input_embeddings().weight.equal(before)


def test_a_warm_up_that_diverges_is_refused(policy):
    imitate_random_play(policy, play, rate=3e-3, steps=60)
    with pytest.raises(BadValue, match=r"loss of the warm-up went from \d\.\d\d to .* --imitation-rate 1; lower it"):
        imitate_random_play(policy, play, rate=1.0, steps=60)


def test_the_first_steps_of_a_warm_up_are_smaller(policy):
    def moved(steps: int) -> float:
        fresh = policy.copy()
        fresh.model.requires_grad_(True)
        imitate_random_play(fresh, play, rate=1e-3, steps=steps)
        pairs = zip(fresh.model.parameters(), policy.model.parameters(), strict=True)
        return max(float((new - old).detach().abs().max()) for new, old in pairs)

    assert moved(1) == pytest.approx(1e-3 / 4, rel=0.01)  # Adam's first step moves each weight by the rate


def test_the_sequences_of_a_round_are_divided_evenly():
    examples = pack(play_random(32))
    parts = list(even_parts(examples, 512))
    sizes = [sum(len(e.sequence.ids_T) for e in part) for part in parts]
    assert [e for part in parts for e in part] == examples
    assert min(sizes) > 0.7 * max(sizes) and max(sizes) < 600


def play_random(episodes):
    corpus = collect_corpus(EASY, seed=0)
    tokenizer = build_tokenizer([*corpus.observations, *corpus.actions], vocabulary=320)
    model = build_model(tokenizer, seed=0, hidden=32, layers=1)
    return play(CausalLMPolicy(model, tokenizer, max_new_tokens=8), episodes, 1)


def test_a_model_that_knows_nothing_is_unreadable_and_random_play_is_not_counted(policy):
    assert readable_share(policy, play, FROM_RANDOM, 1) < 0.2
    assert readable_share(policy, play, FROM_RANDOM, 1) == readable_share(policy, play, FROM_RANDOM, 1)


def test_replies_that_were_cut_count_only_where_an_action_is_a_move(policy):
    policy.max_new_tokens = 1
    assert readable_share(policy, play, PRETRAINED, 1) < 0.2
    assert readable_share(policy, play, PRETRAINED_ANSWERS, 1) == 1.0  # they may be thoughts


def test_a_check_in_which_all_episodes_fail_finds_nothing_readable(policy):
    def failing(player, episodes, number):
        played = play(player, episodes, number)
        for trajectory in played:
            trajectory.turns.clear()
        return played

    for schedule in (FROM_RANDOM, PRETRAINED, PRETRAINED_ANSWERS):
        assert readable_share(policy, failing, schedule, 1) == 0.0


def test_zero_steps_skip_the_warm_up(tmp_path: Path):
    few = {"steps": 1, "batch": 8, "minibatch": 8, "eval_episodes": 4}
    with Trainer.start(TrainConfig(out=str(tmp_path), name="none", imitation_steps=0, **few)) as trainer:
        before = trainer.policy.model.get_input_embeddings().weight.clone()
        trainer._warm_up(lambda state: None, lambda scores: None, lambda: False)
        assert trainer.policy.model.get_input_embeddings().weight.equal(before)


@pytest.mark.parametrize("env_id", ["math:Arithmetic", "game:GuessTheNumber-v0-hard"])
def test_every_right_answer_fits_a_reply(env_id):
    policy = build_policy(TrainConfig(env=env_id))
    with gem.make(env_id) as env:
        player = oracle(env)
        for seed in range(50):
            action = player.act(str(env.reset(seed=seed)[0]))
            assert len(policy.chat.encode_reply(action)) <= policy.max_new_tokens
