"""gem.rl.minimal: its tokens, advantages and gradient are those of the trainer, and it learns."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from gem.rl import minimal
from gem.rl.config import TrainConfig
from gem.rl.estimate.advantages import EpisodeRewards, rebn
from gem.rl.estimate.batch import pack
from gem.rl.minimal import (
    ENV,
    GAMMA,
    MAX_NORM,
    MINIBATCH,
    REPLY_TOKENS,
    Transcript,
    advantages,
    build,
    evaluate,
    log_probs,
    loss,
    main,
    play,
    sampler,
    update,
    warm_up,
)
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.run.learner import Learner
from gem.rollout import play_seeds
from gem.trajectory import Trajectory
from gem.vector import make_vec

pytestmark = [pytest.mark.train, pytest.mark.slow]
SEEDS = range(MINIBATCH)


@pytest.fixture(scope="module")
def warm() -> tuple[Any, Any]:
    """A model that writes legal actions in most turns, and its tokenizer."""
    model, tokenizer = build(seed=0)
    warm_up(model, tokenizer, make_vec(ENV, num_envs=64, seed=0, autoreset="disabled"), rounds=16)
    return model, tokenizer


def sampled_games(model: Any, tokenizer: Any, seed: int = 0) -> list[Transcript]:
    vec = make_vec(ENV, num_envs=len(SEEDS), seed=0, autoreset="disabled")
    return play(vec, tokenizer, sampler(model, tokenizer, torch.Generator().manual_seed(seed)))


def trajectories(policy: CausalLMPolicy) -> list[Trajectory]:
    vec = make_vec(ENV, num_envs=len(SEEDS), seed=0, autoreset="disabled")
    return play_seeds(vec, policy, SEEDS)


def transcripts(played: Sequence[Trajectory]) -> list[Transcript]:
    """Return games of gem.rollout as those of gem.rl.minimal."""
    games = []
    for example in pack(played):
        s, trajectory = example.sequence, played[example.episode]
        games.append(Transcript(s.ids_T, s.logprobs_T, s.turn_T, list(trajectory.rewards_K), trajectory.solved))
    return games


def moved(model: Any, distance: float) -> Any:
    """Return a copy of a model with other weights."""
    other = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in other.parameters():
            p += distance * torch.randn(p.shape, generator=generator)
    return other


def test_a_game_has_the_tokens_and_rewards_that_gem_collects(warm):
    model, tokenizer = warm
    vec = make_vec(ENV, num_envs=len(SEEDS), seed=0, autoreset="disabled")
    ours = play(vec, tokenizer, sampler(model, tokenizer, None))
    policy = CausalLMPolicy(model, tokenizer, max_new_tokens=REPLY_TOKENS, temperature=0.0)
    for game, other in zip(ours, transcripts(trajectories(policy)), strict=True):
        assert (game.ids_T, game.turn_T) == (other.ids_T, other.turn_T)
        assert (game.rewards_K, game.won) == (other.rewards_K, other.won)
    assert len({len(game.rewards_K) for game in ours}) > 1


def test_the_kept_log_probabilities_are_those_of_the_kept_tokens(warm):
    model, tokenizer = warm
    games = sampled_games(model, tokenizer)
    logp_BT, sampled_BT = log_probs(model, games)
    for game, logp_T, sampled_T in zip(games, logp_BT, sampled_BT, strict=True):
        assert [k >= 0 for k in game.turn_T] == sampled_T[: len(game.ids_T)].tolist()
        assert not sampled_T[len(game.ids_T) :].any()
        assert max(game.turn_T) == len(game.rewards_K) - 1
        scored = logp_T[: len(game.ids_T)][sampled_T[: len(game.ids_T)]].tolist()
        assert [p for p, k in zip(game.logps_T, game.turn_T, strict=True) if k >= 0] == pytest.approx(scored, abs=1e-4)


def test_games_depend_on_the_seed_alone(warm):
    assert sampled_games(*warm) == sampled_games(*warm)
    assert sampled_games(*warm) != sampled_games(*warm, seed=1)


def test_the_advantages_are_those_of_rebn():
    rewards = [[0.0, 0.0, 1.0], [-0.1], [0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]
    expected = rebn([EpisodeRewards(rewards_K) for rewards_K in rewards], gamma=GAMMA)
    found = advantages([Transcript(rewards_K=rewards_K) for rewards_K in rewards])
    for values_K, other_K in zip(found, expected, strict=True):
        assert values_K == pytest.approx(list(other_K))


def test_equal_rewards_have_no_advantages():
    assert advantages([Transcript(rewards_K=[0.0, 0.0]), Transcript(rewards_K=[0.0])]) == [[0.0, 0.0], [0.0]]
    assert advantages([Transcript(rewards_K=[-0.1]) for _ in range(3)]) == [[0.0]] * 3  # their mean is rounded


@pytest.mark.parametrize(
    "distance", [0.0, 0.02], ids=["the policy that sampled", "another policy, with clipped ratios"]
)
def test_the_gradient_of_the_loss_is_that_of_the_learner(distance: float, warm):
    model, tokenizer = warm
    played = trajectories(CausalLMPolicy(model, tokenizer, max_new_tokens=REPLY_TOKENS))
    policy = CausalLMPolicy(moved(model, distance), tokenizer, max_new_tokens=REPLY_TOKENS)
    config = TrainConfig(env=ENV, advantage="rebn", batch=MINIBATCH, minibatch=MINIBATCH)
    learner = Learner(config, policy)
    learner.begin()
    assert learner.reference is not None
    learner.reference.model.load_state_dict(moved(model, 0.01).state_dict())
    ours = copy.deepcopy(policy.model)

    metrics = learner.learn(played, update=0)  # one minibatch, so its gradient stays
    games = transcripts(played)
    loss(ours, learner.reference.model, games, advantages(games)).backward()
    torch.nn.utils.clip_grad_norm_(ours.parameters(), MAX_NORM)

    assert (metrics["clipped"] > 0.1) == (distance > 0)
    pairs = list(zip(ours.parameters(), policy.model.parameters(), strict=True))
    largest = max(float(p.grad.abs().max()) for p, _ in pairs)
    assert largest > 0.01
    for mine, theirs in pairs:
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=0, atol=1e-4 * largest)


def test_an_update_makes_replies_with_rewards_more_likely(warm):
    model, tokenizer = copy.deepcopy(warm[0]), warm[1]
    games = sampled_games(model, tokenizer)
    scores = advantages(games)
    initial = copy.deepcopy(model)
    before = loss(model, initial, games, scores).item()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for seed in range(3):
        update(model, initial, optimizer, games, torch.Generator().manual_seed(seed))
    assert loss(model, initial, games, scores).item() < before - 0.01


def test_evaluation_plays_the_same_games_each_time(warm, monkeypatch):
    monkeypatch.setattr(minimal, "GAMES", 64)
    assert evaluate(*warm, None) == evaluate(*warm, None)
    assert 0.05 < evaluate(*warm, torch.Generator().manual_seed(0)) < 0.6  # random legal play wins a third


def test_main_prints_a_table_and_returns_its_last_row(capsys, monkeypatch):
    monkeypatch.setattr(minimal, "GAMES", 32)
    rates = main(seed=0, updates=1, warm_up_rounds=1)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["updates", "games", "greedy", "sampled", "CPU", "s"]
    assert [row.split()[:2] for row in rows] == [["0", "0"], ["1", "32"]]
    assert rows[-1].split()[2:4] == [f"{rate:.3f}" for rate in rates]


@pytest.mark.exhaustive
def test_it_learns_to_win_all_games():
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(root / "src")}
    command = [sys.executable, "-m", "gem.rl.minimal"]
    printed = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1800, check=True).stdout
    updates, _, greedy, sampled, _ = (float(value) for value in printed.splitlines()[-1].split())
    assert updates == 100 and greedy >= 0.99 and sampled >= 0.9


def test_the_guide_names_all_functions_of_the_module():
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    section = page.partition("## Read it first")[2].partition("\n## ")[0]
    for name in ("build", "play", "advantages", "loss", "update", "evaluate", "warm_up", "main"):
        assert re.search(rf"\b{name}\b", section), name
