"""A small environment whose policy gradient is computed exactly, and the biases of the estimators on it.

Replies have one to three tokens: "x", "yx", "yyx" or "yyy". There are 31 episodes of one to three turns. A policy is a
table: one logit for each state and each beginning of a reply.

``python -m exact_gradient`` in this folder prints the table of docs/design/training.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gem.rl.estimate.advantages import ADVANTAGES, EpisodeRewards
from gem.rl.model.scoring import TokenScores
from gem.rollout import BranchPlan
from gem.trajectory import Trajectory, Turn

PAD, X, Y = 0, 1, 2
FIRST_STATE = 3  # state s is fed as the token FIRST_STATE + s
STATES, BEGINNINGS = 5, 3
REPLIES = ([X], [Y, X], [Y, Y, X], [Y, Y, Y])
# (state, reply) → (reward, next state); None ends the episode. Both states of the third turn have two predecessors.
STEPS: dict[tuple[int, int], tuple[float, int | None]] = {
    **{(0, 0): (0.3, None), (0, 1): (0.0, 1), (0, 2): (0.2, 2), (0, 3): (-0.1, 1)},
    **{(1, 0): (1.0, None), (1, 1): (0.0, 3), (1, 2): (-0.5, None), (1, 3): (0.1, 4)},
    **{(2, 0): (0.0, 4), (2, 1): (0.4, None), (2, 2): (0.0, 3), (2, 3): (-0.2, None)},
    **{(3, 0): (0.0, None), (3, 1): (1.0, None), (3, 2): (0.5, None), (3, 3): (-1.0, None)},
    **{(4, 0): (0.7, None), (4, 1): (0.0, None), (4, 2): (-0.3, None), (4, 3): (2.0, None)},
}


@dataclass
class Episode:
    """One of the possible episodes: its states, replies (indices into REPLIES) and rewards."""

    states: list[int] = field(default_factory=list)
    replies: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def tokens(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (turn, state, beginning, token) of each sampled token."""
        for turn, (state, reply) in enumerate(zip(self.states, self.replies, strict=True)):
            for beginning, token in enumerate(REPLIES[reply]):
                yield turn, state, beginning, token

    def trajectory(
        self, logps: Sequence[float], group: Any = None, branch: tuple[int, int] | None = None
    ) -> Trajectory:
        """Return the episode as a rollout records it, sampled with these log-probabilities of its tokens."""
        turns, context, left = [], [], list(logps)
        for state, reply, reward in zip(self.states, self.replies, self.rewards, strict=True):
            context = [*context, FIRST_STATE + state]
            ids = REPLIES[reply]
            logprobs, left = left[: len(ids)], left[len(ids) :]
            turns.append(Turn(f"state {state}", str(reply), context, ids, logprobs, [1] * len(ids), reward=reward))
            context = [*context, *ids]
        return Trajectory(turns=turns, terminated=True, group_id=group, branch=branch)


def all_episodes(before: Episode | None = None, state: int = 0) -> list[Episode]:
    """Return every possible episode, or every continuation of one that has reached a state."""

    def continued(before: Episode, state: int) -> Iterator[Episode]:
        for reply in range(len(REPLIES)):
            reward, after = STEPS[state, reply]
            now = Episode([*before.states, state], [*before.replies, reply], [*before.rewards, reward])
            yield from [now] if after is None else continued(now, after)

    return list(continued(before or Episode(), state))


class Table(torch.nn.Module):
    """The parameters of a policy: the logit of y against x."""

    device = torch.device("cpu")
    config = SimpleNamespace(get_text_config=lambda: SimpleNamespace(num_hidden_layers=1, hidden_size=1))

    def __init__(self, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.logits = torch.nn.Parameter(torch.randn(STATES, BEGINNINGS, generator=generator, dtype=torch.float64))

    def logp(self, state: int, beginning: int, token: int) -> Tensor:
        logit = self.logits[state, beginning]
        return torch.nn.functional.logsigmoid(logit if token == Y else -logit)


class TabularPolicy:
    """A policy with the members that the learner uses."""

    pad_id, max_new_tokens, max_batch, tokenizer, version = PAD, 3, 10**9, None, 0

    def __init__(self, seed: int = 0) -> None:
        self.model = Table(seed)

    def score(
        self, ids_BT: Tensor, attend_BT: Tensor, mask_BT: Tensor | None = None, images: object = ()
    ) -> TokenScores:
        state_BT, beginning_BT = torch.zeros_like(ids_BT), torch.zeros_like(ids_BT)
        for t in range(1, ids_BT.shape[1]):
            fed = ids_BT[:, t - 1] >= FIRST_STATE
            state_BT[:, t] = torch.where(fed, ids_BT[:, t - 1] - FIRST_STATE, state_BT[:, t - 1])
            beginning_BT[:, t] = torch.where(fed, 0, beginning_BT[:, t - 1] + 1).clamp(max=BEGINNINGS - 1)
        logit_BT = self.model.logits[state_BT, beginning_BT]
        logp_BT = torch.nn.functional.logsigmoid(torch.where(ids_BT == Y, logit_BT, -logit_BT))
        return TokenScores(logp_BT, torch.zeros_like(logp_BT))

    def logps(self, episode: Episode) -> list[Tensor]:
        """Return the log-probability of each sampled token of an episode."""
        return [self.model.logp(state, beginning, token) for _, state, beginning, token in episode.tokens()]

    def probability(self, episode: Episode, start: int = 0) -> Tensor:
        """Return the probability of an episode, given its turns before start."""
        tokens = zip(episode.tokens(), self.logps(episode), strict=True)
        return torch.stack([logp for (turn, *_), logp in tokens if turn >= start]).sum().exp()


def all_trees(policy: TabularPolicy, plan: BranchPlan, first: int = 0) -> Iterator[tuple[float, list[Trajectory]]]:
    """Yield every possible episode from a state, with its continuations, and the probability."""
    count = 0
    for episode in all_episodes(state=first):
        choices: list[list[tuple[float, Episode, tuple[int, int]]]] = []
        for turn, state in enumerate(episode.states):
            before = Episode(episode.states[:turn], episode.replies[:turn], episode.rewards[:turn])
            for number in range(plan.width if plan.forks_at(turn) else 0):
                others = all_episodes(before, state)
                choices.append([(policy.probability(e, turn).item(), e, (turn, number)) for e in others])
        logps = {id(e): [x.item() for x in policy.logps(e)] for c in choices for _, e, _ in c}
        own = policy.probability(episode).item(), [x.item() for x in policy.logps(episode)]
        for chosen in product(*choices):
            played = [episode.trajectory(own[1], count)]
            played += [e.trajectory(logps[id(e)], count, branch) for _, e, branch in chosen]
            yield own[0] * math.prod(p for p, _, _ in chosen), played
            count += 1


def gradient(policy: TabularPolicy, objective: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(objective, policy.model.logits)
    return found


def exact_gradient(policy: TabularPolicy, gamma: float, first: int = 0) -> Tensor:
    """Return Σ_t E[G_t ∇ log π(a_t | s_t)] of episodes from a state, by enumeration."""
    objective = torch.zeros((), dtype=torch.float64)
    for episode in all_episodes(state=first):
        probability = policy.probability(episode).detach()
        for (turn, *_), logp in zip(episode.tokens(), policy.logps(episode), strict=True):
            objective = objective + probability * logp * discounted(episode.rewards[turn:], gamma)
    return gradient(policy, objective)


def discounted(rewards: Sequence[float], gamma: float) -> float:
    return sum(gamma**j * reward for j, reward in enumerate(rewards))


GAMMA, GROUP, BLOCKS = 0.8, 4, 20
BIASED: dict[str, tuple[dict[str, Any], str]] = {
    "returns, constant (unbiased)": ({"name": "returns"}, "constant"),
    "turn, leave-one-out, not scaled (unbiased)": (
        {"name": "turn", "leave_one_out": True, "batch_scale": "none"},
        "constant",
    ),
    "rloo (unbiased)": ({"name": "rloo"}, "constant"),
    "branch, 4 continuations (unbiased)": ({"name": "branch"}, "constant"),
    "branch, 4 continuations, trained on (unbiased)": ({"name": "branch"}, "constant"),
    "returns, token-mean": ({"name": "returns"}, "token-mean"),
    "returns, sequence-mean": ({"name": "returns"}, "sequence-mean"),
    "turn, not scaled": ({"name": "turn", "batch_scale": "none"}, "constant"),
    "turn": ({"name": "turn"}, "constant"),
    "turn, token-mean (default)": ({"name": "turn"}, "token-mean"),
    "rebn": ({"name": "rebn"}, "constant"),
    "grpo, not scaled (Dr. GRPO)": ({"name": "grpo", "group_scale": "none"}, "constant"),
    "grpo": ({"name": "grpo"}, "constant"),
    "gigpo, not scaled": ({"name": "gigpo", "group_scale": "none"}, "constant"),
    "gigpo": ({"name": "gigpo"}, "constant"),
}


def estimates(
    policy: TabularPolicy, options: dict[str, Any], aggregation: str, batch: int, count: int, train: bool = False
) -> np.ndarray:
    """Return the gradients of many sampled batches, one per row. With train, "branch" also uses continuations."""
    episodes = all_episodes()
    chances = np.array([policy.probability(e).item() for e in episodes])
    # gradients[e][k]: the gradient of the log-probability of the reply of turn k, and its length
    gradients = []
    for e in episodes:
        by_turn = [torch.zeros((), dtype=torch.float64) for _ in e.states]
        for (turn, *_), logp in zip(e.tokens(), policy.logps(e), strict=True):
            by_turn[turn] = by_turn[turn] + logp
        gradients.append(np.stack([gradient(policy, logp).flatten().numpy() for logp in by_turn]))
    lengths = [np.array([len(REPLIES[r]) for r in e.replies], dtype=float) for e in episodes]
    name = options["name"]
    estimator = partial(ADVANTAGES[name], **{option: value for option, value in options.items() if option != "name"})
    rng, rows = np.random.default_rng(batch), []
    plan = BranchPlan(width=GROUP)
    same_until = {  # the episodes that start with the first turns of an episode
        (e, turn): [i for i, other in enumerate(episodes) if other.replies[:turn] == episode.replies[:turn]]
        for e, episode in enumerate(episodes)
        for turn in range(len(episode.states))
    }
    for _ in range(count):
        chosen = [int(e) for e in rng.choice(len(episodes), size=batch, p=chances)]
        starts: list[int | None] = [None] * batch
        groups = [i // GROUP for i in range(batch)]
        if name == "branch":
            groups = list(range(batch))
            for group, e in enumerate(chosen[:batch]):
                for turn in range(len(episodes[e].states)):
                    others = same_until[e, turn]
                    found = rng.choice(others, size=plan.width, p=chances[others] / chances[others].sum())
                    chosen, starts = [*chosen, *map(int, found)], starts + [turn] * plan.width
                    groups += [group] * plan.width
        data = [
            EpisodeRewards(episodes[e].rewards, group, episodes[e].states, start=start)
            for e, group, start in zip(chosen, groups, starts, strict=True)
        ]
        total, tokens, turns = np.zeros(STATES * BEGINNINGS), 0.0, 0
        for e, advantage_K, start in zip(chosen, estimator(data), starts, strict=True):
            if train:
                advantage_K = advantage_K * [plan.weight(k) for k in range(len(advantage_K))]
            elif start is not None:
                continue
            share_K = advantage_K / lengths[e] if aggregation == "sequence-mean" else advantage_K
            total += share_K @ gradients[e]
            tokens, turns = tokens + lengths[e].sum(), turns + len(lengths[e])
        rows.append(total / {"constant": batch, "token-mean": tokens, "sequence-mean": turns}[aggregation])
    return np.stack(rows)


def bias(rows: np.ndarray, exact: np.ndarray) -> tuple[float, float, float, float, float]:
    """Return scale, cosine, their standard errors over BLOCKS blocks, and the variance relative to |exact|²."""

    def of(mean: np.ndarray) -> tuple[float, float]:
        along = float(mean @ exact)
        return along / float(exact @ exact), along / float(np.linalg.norm(mean) * np.linalg.norm(exact))

    # Jackknife over blocks, because the cosine of a noisy mean is not linear.
    parts = np.array_split(rows, BLOCKS)
    sums = [part.sum(0) for part in parts]
    left_out = np.array([of((sum(sums) - s) / (len(rows) - len(p))) for s, p in zip(sums, parts, strict=True)])
    errors = np.sqrt((BLOCKS - 1) / BLOCKS * ((left_out - left_out.mean(0)) ** 2).sum(0))
    scale, cosine = of(rows.mean(0))
    variance = float(((rows - rows.mean(0)) ** 2).sum(1).mean() / (exact @ exact))
    return scale, cosine, float(errors[0]), float(errors[1]), variance


def main() -> None:
    policy = TabularPolicy()
    print("| advantage and aggregation | batch | scale | cosine | variance |\n|---|---|---|---|---|")
    for label, (options, aggregation) in BIASED.items():
        exact = exact_gradient(policy, 1.0 if options["name"] in ("grpo", "rloo") else GAMMA).flatten().numpy()
        # A batch of "branch" has 12 times as many trajectories.
        for batch, count in ((8, 10000), (256, 150 if options["name"] == "branch" else 600)):
            rows = estimates(policy, options, aggregation, batch, count, "trained on" in label)
            scale, cosine, scale_error, cosine_error, variance = bias(rows, exact)
            cells = (label, batch, f"{scale:.3f} ± {scale_error:.3f}", f"{cosine:.4f} ± {cosine_error:.4f}")
            print("| " + " | ".join(map(str, cells)) + f" | {variance:.3f} |", flush=True)


if __name__ == "__main__":
    main()
