"""Warm-up: supervised fine-tuning on random legal actions, which teaches a new model the output format.

The actions come from Env.sample_random_action, so they contain no strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from gem.policies import Policy, RandomPolicy, Reply, Request
from gem.rl.batch import collate, pack
from gem.rl.losses import cross_entropy
from gem.rl.policy import CausalLMPolicy
from gem.trajectory import Trajectory

EPISODES_PER_STEP = 32
LEARNING_RATE = 3e-3
BETAS = (0.9, 0.99)  # for AdamW, here and in the trainer


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


def imitate_random_play(
    policy: CausalLMPolicy,
    play: Callable[[Policy, int, int], list[Trajectory]],
    steps: int,
    on_step: Callable[[int], None] = lambda done: None,
) -> None:
    """Train the policy's model on episodes of random legal play.

    Args:
        play: returns that many episodes of a policy in the environments of training, for the step of this number.
        steps: gradient steps, each on EPISODES_PER_STEP episodes.
        on_step: called after each gradient step with the number of steps done. An exception raised by it ends the
            training and propagates.
    """
    trained = [p for p in policy.model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE, betas=BETAS, weight_decay=0.0)
    random_text = RandomTextPolicy(policy)
    for step in range(1, steps + 1):
        trajectories = play(random_text, EPISODES_PER_STEP, step)
        minibatch = collate(pack(trajectories), policy.pad_id)
        device = policy.model.device
        scores = policy.score(minibatch.ids_BT.to(device), minibatch.attend_BT.to(device))
        loss = cross_entropy(scores.logp_BT, minibatch.mask_BT.to(device))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        on_step(step)
