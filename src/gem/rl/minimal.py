"""Reinforcement learning of an agent in one file without options, to be read from top to bottom.

`python -m gem.rl.minimal` trains a randomly initialized transformer of 120,000 parameters on
game:GuessTheNumber-v0-easy, in about two minutes on one CPU core: find a number from 1 to 10 in four turns, from the
hints "too low" and "too high". In the order of the file:

    build()       a tiny language model and its tokenizer
    play()        a game in each slot of a vector environment; the sampled token ids and log-probabilities are kept
    advantages()  one number per turn: how much better the game went from there than an average one
    loss()        the clipped policy gradient on the sampled tokens, with a penalty for leaving the initial policy
    update()      one pass of gradient steps over a batch of games
    evaluate()    the share of games that are won
    warm_up()     imitation of random legal actions, which teaches how an action is written, and no strategy
    main()        the training run

The algorithm is that of `gem train --advantage rebn`, which adds all the rest; see docs/training.md.

Axes: B games, T tokens, V vocabulary, K turns of one game, N turns of all games.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gem.core import StopReason
from gem.rl.model.tiny import ASSISTANT, END, USER, build_model, build_tokenizer, collect_corpus
from gem.vector import VectorEnv, make_vec

ENV = "game:GuessTheNumber-v0-easy"
GAMES = 256  # per update and per evaluation; each of the ten numbers is the secret of about 26
MINIBATCH = 64  # games per gradient step, so 4 steps per update
UPDATES = 120  # of the policy; three seeds of three win all games greedily after 100
REPLY_TOKENS = 8  # maximum per reply; r"\boxed{10}" and the end token have 4
WARM_UP_ROUNDS = 20  # of GAMES games, 4 steps each; then 99 % of the replies can be read
WARM_UP_RATE = 3e-3  # learning rate; higher than RATE, because the targets of imitation have little noise
RATE = 2e-3  # peak learning rate, large because the model is small; it falls linearly to a tenth
RISE = 10  # updates in which the learning rate rises to RATE, because the first steps of Adam are as large as others
BETAS = (0.9, 0.99)  # of Adam; 0.999 would average over more steps than a run has
MAX_NORM = 1.0  # of the gradient; larger ones are scaled down
GAMMA = 0.8  # discount per turn; with 0.6 a win in turn 4 counts too little, and some numbers are never guessed
CLIP = 0.2  # beyond 1 ± CLIP, a ratio of probabilities gets no further gradient (arXiv 1707.06347, section 6.1)
KL = 0.05  # weight of the distance from the initial policy, in nats; with 0, seed 0 stayed at 0.89 greedily
EXAM_SEED = 1_000_000  # of the first game of evaluations; training has seeds of its own
REPORT_EVERY = 20  # updates


# The model. Numbers up to 10 are one token each, and so are phrases of the environment: a game of four turns has 48.


def build(seed: int) -> tuple[Any, Any]:
    """Return a new Qwen3 of two layers, and a tokenizer that is trained on text of the environment."""
    corpus = collect_corpus(ENV, seed)
    tokenizer = build_tokenizer([*corpus.observations, *corpus.actions])
    return build_model(tokenizer, seed), tokenizer


# Rollout.

ReplyTokens = tuple[list[int], list[float]]  # token ids, and the log-probability of each
Respond = Callable[[Sequence[int], Sequence[list[int]]], list[ReplyTokens]]  # slots, and the tokens of each → replies


@dataclass
class Transcript:
    """The tokens of a game in the order in which the model saw them, and the rewards of its turns.

    logps_T and turn_T are 0.0 and -1 for a token of the environment, and the log-probability and the index of the turn
    for a token of a reply.
    """

    ids_T: list[int] = field(default_factory=list)
    logps_T: list[float] = field(default_factory=list)
    turn_T: list[int] = field(default_factory=list)
    rewards_K: list[float] = field(default_factory=list)
    won: bool = False

    def append(self, ids: list[int], logps: list[float], turn: int) -> None:
        self.ids_T += ids
        self.logps_T += logps
        self.turn_T += [turn] * len(ids)


def play(vec: VectorEnv, tokenizer: Any, respond: Respond) -> list[Transcript]:
    """Play one game in each slot.

    Tokens are only appended. Decoding a reply and encoding it again, as a list of chat messages would, could give other
    tokens than those that were sampled, and the gradient would be of another reply.
    """
    games = [Transcript() for _ in range(vec.num_envs)]
    observations = dict(enumerate(vec.reset()[0]))  # of the slots whose game is not over
    while observations:
        for slot, text in observations.items():
            ids = tokenizer.encode(USER + text + ASSISTANT)
            games[slot].append(ids, [0.0] * len(ids), -1)
        slots = list(observations)
        replies = respond(slots, [games[slot].ids_T for slot in slots])
        for slot, (ids, logps) in zip(slots, replies, strict=True):
            games[slot].append(ids, logps, len(games[slot].rewards_K))
        texts = tokenizer.batch_decode([ids for ids, _ in replies], skip_special_tokens=True)
        step = vec.step(dict(zip(slots, texts, strict=True)))
        for i, slot in enumerate(slots):
            games[slot].rewards_K.append(float(step.rewards_B[i]))
            observations[slot] = step.observations_B[i]
            if step.terminated_B[i] or step.truncated_B[i]:
                games[slot].won = step.infos_B[i]["stop_reason"] == StopReason.SOLVED
                del observations[slot]
    return games


def sampler(model: Any, tokenizer: Any, generator: torch.Generator | None) -> Respond:
    """Let the model reply: it samples at temperature 1, or takes the most likely tokens if generator is None."""
    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id

    @torch.no_grad()
    def respond(slots: Sequence[int], contexts: Sequence[list[int]]) -> list[ReplyTokens]:
        ids_BT = padded(contexts, pad, left=True)  # on the left, so that all replies begin in the same column
        attend_BT = padded([[1] * len(ids) for ids in contexts], 0, left=True)
        position_BT = (attend_BT.cumsum(1) - 1).clamp(min=0)
        tokens: list[Tensor] = []
        scores: list[Tensor] = []
        cache = None  # the keys and values of the tokens so far
        ended_B1 = torch.zeros(len(contexts), 1, dtype=torch.bool)
        while len(tokens) < REPLY_TOKENS and not ended_B1.all():
            out = model(ids_BT, attend_BT, position_BT, past_key_values=cache, use_cache=True, logits_to_keep=1)
            logp_BV = out.logits[:, -1].log_softmax(-1)
            best_B1 = logp_BV.argmax(1, keepdim=True)
            ids_BT = best_B1 if generator is None else logp_BV.exp().multinomial(1, generator=generator)
            tokens.append(ids_BT)
            scores.append(logp_BV.gather(1, ids_BT))
            ended_B1 |= ids_BT == end
            attend_BT = torch.cat([attend_BT, torch.ones_like(ids_BT)], 1)
            cache, position_BT = out.past_key_values, position_BT[:, -1:] + 1
        replies = []
        for ids, logps in zip(torch.cat(tokens, 1).tolist(), torch.cat(scores, 1).tolist(), strict=True):
            length = ids.index(end) + 1 if end in ids else len(ids)  # others of the batch may have gone on
            replies.append((ids[:length], logps[:length]))
        return replies

    return respond


def padded(rows: Sequence[Sequence[float]], fill: float, *, left: bool = False) -> Tensor:
    """Return rows as a tensor, filled up to the length of the longest."""
    width = max(len(row) for row in rows)
    fills = [[fill] * (width - len(row)) for row in rows]
    return torch.tensor([[*more, *row] if left else [*row, *more] for row, more in zip(rows, fills, strict=True)])


# Advantages, loss and update.


def advantages(games: Sequence[Transcript]) -> list[list[float]]:
    """Compute one advantage per turn: its discounted return, normalized over the turns of all games.

    This is ReBN, arXiv 2510.01051, eq. 4. A turn is judged by the rewards from it on, and not by those before it.
    """
    returns = []
    for game in games:
        backward = itertools.accumulate(reversed(game.rewards_K), lambda after, reward: reward + GAMMA * after)
        returns.append(list(backward)[::-1])
    returns_N = torch.tensor(list(itertools.chain(*returns)), dtype=torch.float64)
    mean, std = returns_N.mean().item(), returns_N.std(correction=0).item()
    return [[(value - mean) / std if std > 1e-12 else 0.0 for value in returns_K] for returns_K in returns]


def log_probs(model: Any, games: Sequence[Transcript]) -> tuple[Tensor, Tensor]:
    """Return the log-probability of each token given those before it, and whether it was sampled; both (B, T)."""
    ids_BT = padded([game.ids_T for game in games], 0)
    attend_BT = padded([[1] * len(game.ids_T) for game in games], 0)
    logp_BTV = model(ids_BT, attend_BT, use_cache=False).logits.log_softmax(-1)
    logp_BT = logp_BTV[:, :-1].gather(2, ids_BT[:, 1:, None])[:, :, 0]  # the logits at t are of token t + 1
    return torch.nn.functional.pad(logp_BT, (1, 0)), padded([game.turn_T for game in games], -1) >= 0


def loss(model: Any, initial: Any, games: Sequence[Transcript], scores: Sequence[Sequence[float]]) -> Tensor:
    """Compute the clipped loss of PPO (arXiv 1707.06347, eq. 7) and a KL penalty, as a mean over the sampled tokens.

    Args:
        initial: the model from which the policy should not move far.
        scores: the advantages of each game's turns.
    """
    logp_BT, sampled_BT = log_probs(model, games)
    old_BT = padded([game.logps_T for game in games], 0.0)
    rows = [[scores_K[k] if k >= 0 else 0.0 for k in game.turn_T] for game, scores_K in zip(games, scores, strict=True)]
    advantage_BT = padded(rows, 0.0)  # each token has the advantage of its turn
    ratio_BT = ((logp_BT - old_BT) * sampled_BT).exp()
    gain_BT = torch.minimum(ratio_BT * advantage_BT, ratio_BT.clamp(1 - CLIP, 1 + CLIP) * advantage_BT)
    with torch.no_grad():
        distance_BT = logp_BT - log_probs(initial, games)[0]
    # The gradient of ratio * distance, with distance as a constant, is that of KL(policy, initial) in expectation.
    return -((gain_BT - KL * ratio_BT * distance_BT) * sampled_BT).sum() / sampled_BT.sum()


def update(
    model: Any, initial: Any, optimizer: torch.optim.Optimizer, games: list[Transcript], generator: torch.Generator
) -> None:
    """Make one gradient step for each minibatch of the games."""
    scores = advantages(games)
    for chosen in torch.split(torch.randperm(len(games), generator=generator), MINIBATCH):
        value = loss(model, initial, [games[i] for i in chosen], [scores[i] for i in chosen])
        gradient_step(model, optimizer, value)


def gradient_step(model: Any, optimizer: torch.optim.Optimizer, value: Tensor) -> None:
    """Move the parameters of the model against the gradient of a loss."""
    optimizer.zero_grad()
    value.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
    optimizer.step()


# Evaluation, warm-up and the run.


def evaluate(model: Any, tokenizer: Any, generator: torch.Generator | None) -> float:
    """Return the share of GAMES games that the model wins, the same games in each call. See sampler()."""
    vec = make_vec(ENV, num_envs=GAMES, seed=EXAM_SEED, autoreset="disabled")
    games = play(vec, tokenizer, sampler(model, tokenizer, generator))
    return sum(game.won for game in games) / len(games)


def warm_up(model: Any, tokenizer: Any, vec: VectorEnv, rounds: int) -> None:
    """Imitate random legal actions. Afterwards the model writes actions that can be read, at random."""

    def act_randomly(slots: Sequence[int], contexts: Sequence[list[int]]) -> list[ReplyTokens]:
        replies = [tokenizer.encode(vec.sample_random_action(slot) + END) for slot in slots]
        return [(ids, [0.0] * len(ids)) for ids in replies]

    optimizer = torch.optim.Adam(model.parameters(), lr=WARM_UP_RATE, betas=BETAS)
    for _ in range(rounds):
        games = play(vec, tokenizer, act_randomly)
        for start in range(0, len(games), MINIBATCH):
            logp_BT, sampled_BT = log_probs(model, games[start : start + MINIBATCH])
            gradient_step(model, optimizer, -(logp_BT * sampled_BT).sum() / sampled_BT.sum())


def main(seed: int = 0, *, updates: int = UPDATES, warm_up_rounds: int = WARM_UP_ROUNDS) -> tuple[float, float]:
    """Train a model and print a table. Returns the last shares of games won: greedy and sampled."""
    torch.set_num_threads(1)  # more threads only wait for each other in a model this small
    generator = torch.Generator().manual_seed(seed)  # of sampling and minibatches
    model, tokenizer = build(seed)
    vec = make_vec(ENV, num_envs=GAMES, seed=seed * GAMES, autoreset="disabled")  # slot i has this seed + i
    warm_up(model, tokenizer, vec, warm_up_rounds)
    initial = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), betas=BETAS)
    print("updates   games  greedy  sampled  CPU s")
    for done in range(updates + 1):
        if done % REPORT_EVERY == 0 or done == updates:
            rates = evaluate(model, tokenizer, None), evaluate(model, tokenizer, generator)
            print(f"{done:7}{done * GAMES:8}{rates[0]:8.3f}{rates[1]:9.3f}{time.process_time():7.0f}", flush=True)
        if done < updates:
            games = play(vec, tokenizer, sampler(model, tokenizer, generator))
            optimizer.param_groups[0]["lr"] = RATE * min(1.0, (done + 1) / RISE) * (1.0 - 0.9 * done / updates)
            update(model, initial, optimizer, games, generator)
    return rates


if __name__ == "__main__":
    main()
