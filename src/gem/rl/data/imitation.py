"""Warm-up: supervised fine-tuning on random legal actions, which teaches a new model the output format.

The actions come from Env.sample_random_action, so they contain no strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch

from gem.policies import Policy, RandomPolicy, Reply, Request
from gem.rl.estimate.batch import Example, collate, pack
from gem.rl.estimate.losses import BETAS, cross_entropy
from gem.rl.model.policy import CausalLMPolicy
from gem.seeding import derive
from gem.trajectory import Trajectory

EPISODES_PER_ROUND = 32
STEP_TOKENS = 2048  # of a gradient step: 32 episodes of GuessTheNumber-easy have about 1,250
CHECK_TOKENS = 40_000  # between checks whether replies are readable
CHECK_EPISODES, CHECK_REPLIES = 128, 256  # of a check; the replies are at most that many
READABLE = 0.98  # share of readable replies that ends the warm-up
UNREADABLE = frozenset({"no_action", "no_answer"})  # reasons in info["invalid"]; the others name an illegal action
LEARNING_RATE = 3e-3


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
    """What a warm-up did.

    Args:
        tokens: tokens of the sequences that were trained on, prompts included.
        steps: gradient steps.
        readable: share of fresh replies that could be read, at the last check; None without a check.
    """

    tokens: int
    steps: int
    readable: float | None


def imitate_random_play(
    policy: CausalLMPolicy,
    play: Play,
    *,
    tokens: int | None = None,
    steps: int | None = None,
    readable: Callable[[int], float] | None = None,
    on_step: Callable[[int, int], None] = lambda done, total: None,
) -> WarmUp:
    """Train the policy's model on episodes of random legal play, until a budget is spent.

    Args:
        play: plays the episodes; each round has EPISODES_PER_ROUND.
        tokens: budget in tokens of the sequences that are trained on, prompts included; the same work on every machine.
        steps: budget in gradient steps, each on at most STEP_TOKENS tokens or one sequence.
        readable: returns the share of fresh replies that can be read, for the check of this number. The training ends
            when two in a row are at least READABLE, checked each CHECK_TOKENS. None for no early end.
        on_step: called after each gradient step with what is done of the budget, and the budget. An exception raised by
            it ends the training and propagates.
    """
    trained = [p for p in policy.model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE, betas=BETAS, weight_decay=0.0)
    random_text = RandomTextPolicy(policy)
    done = used = rounds = checks = 0
    share: float | None = None
    while True:
        rounds += 1
        for part in _parts(pack(play(random_text, EPISODES_PER_ROUND, rounds))):
            minibatch = collate(part, policy.pad_id).to(policy.model.device)
            scores = policy.score(minibatch.ids_BT, minibatch.attend_BT, minibatch.mask_BT, minibatch.images)
            loss = cross_entropy(scores.logp_BT, minibatch.mask_BT)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            done, used = done + 1, used + sum(len(e.sequence.ids_T) for e in part)
            on_step(done, steps) if steps is not None else on_step(used, tokens or used)
            if done == steps or (tokens is not None and used >= tokens):
                return WarmUp(used, done, share)
        if readable is not None and used >= (checks + 1) * CHECK_TOKENS:
            checks += 1
            before, share = share, readable(checks)
            if min(before or 0.0, share) >= READABLE:
                return WarmUp(used, done, share)


def _parts(batch: Sequence[Example]) -> Iterator[list[Example]]:
    """Divide sequences into parts of at most STEP_TOKENS tokens, or one sequence."""
    part: list[Example] = []
    for example in batch:
        if part and sum(len(e.sequence.ids_T) for e in (*part, example)) > STEP_TOKENS:
            yield part
            part = []
        part.append(example)
    yield part


def readable_share(policy: CausalLMPolicy, play: Play, number: int) -> float:
    """Return the share of sampled replies that the environments can read, in states of random legal play.

    A reply that was cut at its limit is not readable. An illegal move is.

    Args:
        number: of the check; each has its own random stream.
    """
    probe = _Probe(policy.variant(seed=derive(policy.seed, "readable", number)))
    found = [
        turn.finish not in ("length", "context_overflow") and turn.invalid not in UNREADABLE
        for t in play(probe, CHECK_EPISODES, number)
        for k, turn in enumerate(t.turns)
        if (t.slot, t.episode, k) in probe.asked
    ]
    return sum(found) / max(1, len(found))


class _Probe(RandomTextPolicy):
    """Takes random legal actions, and every other turn, up to CHECK_REPLIES, that of a model."""

    def __init__(self, policy: CausalLMPolicy) -> None:
        super().__init__(policy)
        self.policy = policy
        self.asked: set[tuple[int, int, int]] = set()

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        chosen = [i for i, r in enumerate(requests) if sum(r.key) % 2 == 0][: CHECK_REPLIES - len(self.asked)]
        self.asked |= {requests[i].key for i in chosen}
        replies = super().act(requests)
        for i, reply in zip(chosen, self.policy.act([requests[i] for i in chosen]), strict=True):
            replies[i] = reply
        return replies
