"""Warm-up: supervised fine-tuning on random legal actions, which teaches a model the output format.

The actions come from Env.sample_random_action, so they contain no strategy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

import torch

from gem.errors import BadValue
from gem.policies import Policy, RandomPolicy, Reply, Request
from gem.rl.estimate.batch import Example, collate, pack
from gem.rl.estimate.losses import BETAS, MAX_GRAD_NORM, cross_entropy
from gem.rl.model.policy import CausalLMPolicy
from gem.seeding import derive
from gem.trajectory import Trajectory

EPISODES_PER_ROUND = 32
RAMP_STEPS = 4  # of linear increase of the learning rate, because Adam's first steps are as large as later ones
DIVERGED = 1.0  # nats per token by which the loss may exceed that of the first step
CUT = frozenset({"length", "context_overflow"})  # ends of a reply at its limit
UNREADABLE = frozenset({"no_action", "no_answer"})  # reasons in info["invalid"]; the others name an illegal action


class Schedule(NamedTuple):
    """How long a warm-up is.

    Args:
        tokens: at most, of the sequences that are trained on, prompts included.
        step_tokens: of a gradient step, at most, or one sequence.
        check_tokens: between checks whether replies are readable.
        check_replies: of a check, at most.
        readable: share of readable replies that ends it.
        in_a_row: checks in a row that must have this share.
        first: whether there is a check before the first step.
        counts_cut: whether a reply that was cut at its limit is unreadable; else it does not count.
    """

    tokens: int
    step_tokens: int
    check_tokens: int
    check_replies: int
    readable: float
    in_a_row: int
    first: bool
    counts_cut: bool = True


# 400,000 tokens take the embedded model about 30 s of one core. Of a pretrained model, each further step on random
# actions costs some of what it knows, and 2,000 tokens were enough for SmolLM2-135M-Instruct.
FROM_RANDOM = Schedule(400_000, 2048, 40_000, 256, 0.98, 2, False)
PRETRAINED = Schedule(20_000, 512, 2_000, 64, 0.95, 1, True)
# Random answers to questions teach a model not to think first, so they are for models that hardly ever give an answer.
PRETRAINED_ANSWERS = PRETRAINED._replace(readable=0.5, counts_cut=False)


class RandomTextPolicy:
    """A policy that takes random legal actions and encodes them as replies in the chat format of a model.

    The log-probabilities in its replies are 0.
    """

    version = 0

    def __init__(self, policy: CausalLMPolicy) -> None:
        self.chat, self.max_prompt_tokens = policy.chat, policy.max_prompt_tokens

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        replies = []
        for reply in RandomPolicy().act(requests):
            ids = self.chat.encode_reply(reply.text)
            replies.append(Reply(reply.text, ids, [0.0] * len(ids), "stop"))
        return replies


Play = Callable[[Policy, int, int], list[Trajectory]]
"""Returns that many episodes of a policy in the environments of training, for the round of this number."""


class WarmUp(NamedTuple):
    """How far a warm-up is.

    Args:
        steps: gradient steps.
        tokens: of the sequences that were trained on, prompts included.
        loss: of the last step, in nats per token; None before the first.
        readable: share of fresh replies that could be read, at the last check; None before one.
    """

    steps: int = 0
    tokens: int = 0
    loss: float | None = None
    readable: float | None = None


def imitate_random_play(
    policy: CausalLMPolicy,
    play: Play,
    *,
    rate: float,
    schedule: Schedule = FROM_RANDOM,
    steps: int | None = None,
    readable: Callable[[int], float] | None = None,
    on_step: Callable[[WarmUp], None] = lambda state: None,
) -> WarmUp:
    """Train the policy's model on episodes of random legal play, until it writes readable replies or a budget is spent.

    Args:
        play: plays the episodes; each round has EPISODES_PER_ROUND.
        rate: learning rate of AdamW, after a ramp of RAMP_STEPS.
        schedule: the budget in tokens, the same work on every machine, and when to check.
        steps: budget in gradient steps, instead of that of the schedule; None for no such budget.
        readable: returns the share of fresh replies that can be read, for the check of this number. None for no check.
        on_step: called after each gradient step, and after a check before the first. An exception raised by it ends the
            training and propagates.

    Raises:
        BadValue: if the loss rises, as it does if the learning rate is too high for a pretrained model.
    """
    trained = [p for p in policy.model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, betas=BETAS, weight_decay=0.0)
    state, checks, passed = WarmUp(), 0, 0
    first: float | None = None
    if readable is not None and schedule.first:
        share = readable(0)
        state, passed = WarmUp(readable=share), int(share >= schedule.readable)
        on_step(state)
    random_text = RandomTextPolicy(policy)
    parts = _rounds(policy, lambda number: play(random_text, EPISODES_PER_ROUND, number), schedule.step_tokens)
    while passed < schedule.in_a_row and (state.tokens < schedule.tokens if steps is None else state.steps < steps):
        part = next(parts)
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (state.steps + 1) / RAMP_STEPS)
        minibatch = collate(part, policy.pad_id).to(policy.model.device)
        scores = policy.score(minibatch.ids_BT, minibatch.attend_BT, minibatch.mask_BT, minibatch.images)
        loss = cross_entropy(scores.logp_BT, minibatch.mask_BT)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(trained, MAX_GRAD_NORM)
        optimizer.step()
        tokens, now = state.tokens + sum(len(e.sequence.ids_T) for e in part), float(loss.detach())
        state = WarmUp(state.steps + 1, tokens, now, state.readable)
        first = now if first is None else first
        if not now <= first + DIVERGED:  # written so that NaN is refused too
            raise BadValue(
                f"the loss of the warm-up went from {first:.2f} to {now:.2f} nats per token in {state.steps} steps at "
                f"--imitation-rate {rate:g}; lower it, or leave it out"
            )
        if readable is not None and tokens >= (checks + 1) * schedule.check_tokens:
            checks += 1
            share = readable(checks)
            state, passed = state._replace(readable=share), passed + 1 if share >= schedule.readable else 0
        on_step(state)
    return state


def _rounds(
    policy: CausalLMPolicy, play: Callable[[int], list[Trajectory]], step_tokens: int
) -> Iterator[list[Example]]:
    """Yield the sequences of gradient steps, of one round of episodes after another."""
    number = 0
    while True:
        number += 1
        yield from even_parts(pack(play(number)), step_tokens)


def even_parts(batch: Sequence[Example], tokens: int) -> Iterator[list[Example]]:
    """Divide sequences into parts of nearly equal size, of about that many tokens or fewer."""
    ends = list(accumulate(len(e.sequence.ids_T) for e in batch))
    size = ends[-1] / math.ceil(ends[-1] / tokens)
    for _, part in groupby(zip(ends, batch, strict=True), key=lambda p: (p[0] - len(p[1].sequence.ids_T) / 2) // size):
        yield [example for _, example in part]


def readable_share(policy: CausalLMPolicy, play: Play, schedule: Schedule, number: int) -> float:
    """Return the share of sampled replies that the environments can read, in states of random legal play.

    An illegal move is readable.

    Args:
        schedule: has the number of replies, and whether those that were cut count; 1 if all were cut and none counts.
        number: of the check; each has its own random stream.
    """
    probe = _Probe(policy.variant(seed=derive(policy.seed, "readable", number)), schedule.check_replies)
    turns = [
        turn
        for t in play(probe, max(1, schedule.check_replies // 2), number)
        for k, turn in enumerate(t.turns)
        if (t.slot, t.episode, k) in probe.asked
    ]
    whole = [turn for turn in turns if turn.finish not in CUT]
    if turns and not whole and not schedule.counts_cut:
        return 1.0
    readable = sum(turn.invalid not in UNREADABLE for turn in whole)
    return readable / max(1, len(turns if schedule.counts_cut else whole))  # 0 if all episodes failed


class _Probe(RandomTextPolicy):
    """Takes random legal actions, and every other turn, up to a number of replies, that of a model."""

    def __init__(self, policy: CausalLMPolicy, replies: int) -> None:
        super().__init__(policy)
        self.policy, self.replies = policy, replies
        self.asked: set[tuple[int, int, int]] = set()

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        chosen = [i for i, r in enumerate(requests) if sum(r.key) % 2 == 0][: self.replies - len(self.asked)]
        self.asked |= {requests[i].key for i in chosen}
        replies = super().act(requests)
        for i, reply in zip(chosen, self.policy.act([requests[i] for i in chosen]), strict=True):
            replies[i] = reply
        return replies
