"""Turn-level returns and advantages, in numpy.

ADVANTAGES has one function per algorithm, by the name that `gem train --advantage` takes. Each is given the episodes of
a batch and returns one array per episode, with an advantage per turn; its keyword arguments are what
`--advantage-options` and `--gamma` set. A function of yours works the same way; see docs/algorithms.md.

Axes: P episodes, K turns of one episode, N turns of a whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gem._internal.typed import Count, Share, Weight
from gem.errors import BadValue
from gem.rl.choices import needs

__all__ = ["branch", "gae", "gigpo", "grpo", "rebn", "returns", "rloo", "seat", "turn"]

Floats = npt.NDArray[np.float64]
Scale: TypeAlias = Literal["std", "none"]


class EpisodeRewards(NamedTuple):
    """The data of an episode that its advantages depend on.

    Args:
        rewards_K: finite rewards, one per turn.
        group: identifies the episodes that start from the same state; None outside groups.
        states_K: for each turn, a key that equal states share, such as the observation before the turn; required by
            "gigpo".
        values_K: for each turn, a critic's estimate of the return from it on; required by "gae".
        final_value: estimate of the return after the last turn: 0, unless a limit outside the task cut the episode.
        baseline: for "seat", what is subtracted from the sum of the rewards; see gem.rl.data.self_play.SeatAverages.
        start: for "branch", the turn before which a continuation left the episode of its group, whose earlier turns it
            repeats; None for that episode.
    """

    rewards_K: Sequence[float]
    group: Hashable = None
    states_K: Sequence[Hashable] = ()
    values_K: Sequence[float] = ()
    final_value: float = 0.0
    start: int | None = None
    baseline: float = 0.0


Episodes: TypeAlias = Sequence[EpisodeRewards]


def returns(episodes: Episodes, *, gamma: Share = 0.8, batch_scale: Scale = "none") -> list[Floats]:
    """Return the discounted returns themselves, as in REINFORCE.

    Args:
        gamma: discount per turn, here and in the functions below.
        batch_scale: whether all advantages are divided by their root mean square over the batch ("std"), here and in
            the functions below.

    Raises:
        BadValue: for gamma out of range or a reward that is not finite, as all functions below.
    """
    return _scaled(_returns(episodes, gamma), episodes, batch_scale, gamma)


def rebn(episodes: Episodes, *, gamma: Share = 0.8, batch_scale: Scale = "std") -> list[Floats]:
    """Compute the return minus its mean over the batch, divided by its standard deviation (arXiv 2510.01051, eq. 4)."""
    returns_N = _flat(_returns(episodes, gamma))
    centered_N = center(returns_N, np.zeros(len(returns_N), dtype=np.int64))
    return _scaled(_by_episode(centered_N, episodes), episodes, batch_scale, gamma)


def turn(
    episodes: Episodes, *, gamma: Share = 0.8, leave_one_out: bool = False, batch_scale: Scale = "std"
) -> list[Floats]:
    """Compute the same as rebn(), with the mean over the turns that have the same index.

    Args:
        leave_one_out: whether the mean that is subtracted leaves the episode itself out; without others, nothing is
            subtracted.
    """
    returns_N = _flat(_returns(episodes, gamma))
    index_N = np.array([k for e in episodes for k in range(len(e.rewards_K))], dtype=np.int64)
    return _scaled(_by_episode(center(returns_N, index_N, leave_one_out), episodes), episodes, batch_scale, gamma)


@needs("groups")
def grpo(
    episodes: Episodes, *, group_scale: Scale = "std", leave_one_out: bool = False, batch_scale: Scale = "none"
) -> list[Floats]:
    """Compute the sum of the rewards minus its mean over the group, divided by its standard deviation in the group.

    The advantage is the same for all turns (arXiv 2510.01051, eq. 2). With group_scale="none" and a constant divisor of
    the loss this is Dr. GRPO (arXiv 2503.20783).

    Args:
        group_scale: whether to divide by the standard deviation of each group.
        leave_one_out: as for turn().
    """
    _check_scales(group_scale, batch_scale)
    return _scaled(_of_groups(episodes, group_scale, leave_one_out), episodes, batch_scale)


@needs("groups")
def rloo(episodes: Episodes, *, batch_scale: Scale = "none") -> list[Floats]:
    """Compute the sum of the rewards minus the mean of the others in the group (arXiv 2402.14740)."""
    return _scaled(_of_groups(episodes, "none", leave_one_out=True), episodes, batch_scale)


@needs("groups", "states")
def gigpo(
    episodes: Episodes,
    *,
    gamma: Share = 0.8,
    group_scale: Scale = "std",
    step_weight: Weight = 1.0,
    batch_scale: Scale = "none",
) -> list[Floats]:
    """Compute "grpo", plus step_weight times the return compared in the same way among turns from equal states.

    Only turns of the same group are compared (arXiv 2505.10978, eq. 3 to 8).

    Args:
        group_scale: as for grpo(), in both comparisons.

    Raises:
        BadValue: not one state per turn.
    """
    _check_scales(group_scale, batch_scale)
    for e in episodes:
        if len(e.states_K) != len(e.rewards_K):
            raise BadValue(f"gigpo needs one state per turn, got {len(e.states_K)} for {len(e.rewards_K)} turns")
    states_N = _numbered([(e.group, state) for e in episodes for state in e.states_K])
    steps_N = _compare(_flat(_returns(episodes, gamma)), states_N, group_scale)
    advantages_N = _flat(_of_groups(episodes, group_scale)) + step_weight * steps_N
    return _scaled(_by_episode(advantages_N, episodes), episodes, batch_scale, gamma)


@needs("values")
def gae(
    episodes: Episodes, *, gamma: Share = 0.8, gae_lambda: Share = 0.95, batch_scale: Scale = "none"
) -> list[Floats]:
    """Compute generalized advantage estimates over turns, with a critic's values (arXiv 1506.02438, eq. 16).

    Args:
        gae_lambda: 1 trusts the rewards, 0 the critic.
    """
    advantages = [generalized_advantages(e.rewards_K, e.values_K, gamma, gae_lambda, e.final_value) for e in episodes]
    return _scaled(advantages, episodes, batch_scale, gamma)


@needs("branches")
def branch(
    episodes: Episodes,
    *,
    gamma: Share = 0.8,
    batch_scale: Scale = "none",
    width: Count = 4,
    turns: Count | None = None,
    every: Count = 1,
    train: bool = False,
) -> list[Floats]:
    """Compute r_k + gamma V(s_{k+1}) - V(s_k), where V is the mean return of continuations from the state.

    None of these contains the scored turn (arXiv 2410.01679, at turns); see branch_advantages(). The training loop
    plays the continuations, which the batch of episodes does not count, by the other options:

    Args:
        width: continuations that estimate the value of a state.
        turns: maximum number of states of an episode with continuations; None for all.
        every: distance in turns between states with continuations; the first state has some.
        train: whether to train on the continuations as well, weighted so that each state keeps its share under the
            policy.
    """
    return _scaled(branch_advantages(episodes, gamma), episodes, batch_scale, gamma)


@needs("seats")
def seat(episodes: Episodes, *, batch_scale: Scale = "none") -> list[Floats]:
    """Compute the sum of the rewards minus its moving average for this seat of the game, the same for all turns.

    These are the role-conditioned advantages of arXiv 2506.24119. EpisodeRewards.baseline has the average.
    """
    advantages = [
        np.full(len(r), sum(e.rewards_K) - e.baseline) for e, r in zip(episodes, _returns(episodes), strict=True)
    ]
    return _scaled(advantages, episodes, batch_scale)


# The advantages of `gem train --advantage`, by name; see gem.rl.estimate.advantages.
ADVANTAGES: dict[str, Callable[..., list[Floats]]] = {
    function.__name__: function for function in (returns, rebn, turn, grpo, rloo, gigpo, gae, branch, seat)
}


def discounted_returns(rewards_K: Sequence[float], gamma: float) -> Floats:
    """Compute discounted returns, one per turn: returns_K[k] = Σ_{j≥k} gamma^(j-k) rewards_K[j].

    Args:
        rewards_K: finite rewards, one per turn.
        gamma: discount per turn, in [0, 1].

    Raises:
        BadValue: for gamma out of range or a reward that is not finite.

    Source: arXiv 2510.01051, eq. 1.

    >>> discounted_returns([0, 0, 1], gamma=0.5).tolist()
    [0.25, 0.5, 1.0]
    """
    if not 0.0 <= gamma <= 1.0:
        raise BadValue(f"gamma must be in [0, 1], got {gamma}")
    returns_K = np.array(rewards_K, dtype=np.float64)
    if not np.isfinite(returns_K).all():
        raise BadValue(f"rewards must be finite, got {list(rewards_K)}; leave out failed episodes, which have none")
    for k in range(len(returns_K) - 2, -1, -1):
        returns_K[k] += gamma * returns_K[k + 1]
    return returns_K


def generalized_advantages(
    rewards_K: Sequence[float], values_K: Sequence[float], gamma: float, gae_lambda: float, final_value: float = 0.0
) -> Floats:
    """Compute generalized advantage estimates, one per turn.

    A_k = δ_k + gamma gae_lambda A_{k+1}, with δ_k = r_k + gamma V_{k+1} - V_k.

    Args:
        values_K: estimates of the return from each turn on.
        final_value: V_K, the estimate after the last turn; 0 if the task is over.

    Raises:
        BadValue: for a value that is not finite, or not one value per turn.

    Source: arXiv 1506.02438, eq. 16.

    >>> generalized_advantages([0, 0, 1], [0.1, 0.2, 0.3], gamma=0.9, gae_lambda=0.95).round(5).tolist()
    [0.65157, 0.6685, 0.7]
    """
    values = np.array([*values_K, final_value], dtype=np.float64)
    if len(values) != len(rewards_K) + 1 or not np.isfinite(values).all():
        raise BadValue(
            f"gae needs one finite value per turn, got {list(values_K)} and {final_value} after the last turn"
        )
    errors_K = np.asarray(rewards_K, dtype=np.float64) + gamma * values[1:] - values[:-1]
    return discounted_returns(errors_K.tolist(), gamma * gae_lambda)


def branch_advantages(episodes: Episodes, gamma: float) -> list[Floats]:
    """Compute the advantages of episodes and of the continuations from their states.

    The advantage of turn k is r_k + … + gamma^(n-k) V(s_n) minus a baseline, where n is the next turn with
    continuations, and V(s_n) is the mean of their returns; without such a turn, it is the return. V of a state in which
    the episode ended is 0. The baseline is the mean of the returns from turn k on of the others that left from the same
    state, the last one with continuations, and have a turn k; without others it is 0. If all states have
    continuations, this is r_k + gamma V(s_{k+1}) - V(s_k).

    A continuation is compared with the other continuations and with its episode. No baseline contains the
    scored turn, so the gradient is unbiased.

    Args:
        episodes: in each group, one with start None, and its continuations.
        gamma: discount per turn, 0 to 1.

    Returns:
        For each episode, one advantage per turn, 0 for the turns that it repeats.

    Raises:
        BadValue: a group does not have one episode.

    >>> episodes = [EpisodeRewards([0, 1]), EpisodeRewards([0, 0], start=0), EpisodeRewards([0, 0.5], start=1)]
    >>> [advantages_K.tolist() for advantages_K in branch_advantages(episodes, gamma=1.0)]
    [[0.5, 0.5], [-1.0, -1.0], [0.0, -0.5]]
    """
    returns = [discounted_returns(e.rewards_K, gamma) for e in episodes]
    groups: dict[Hashable, list[int]] = {}
    for i, episode in enumerate(episodes):
        groups.setdefault(episode.group, []).append(i)
    advantages = [np.zeros_like(returns_K) for returns_K in returns]
    for group, members in groups.items():
        played = [i for i in members if episodes[i].start is None]
        if len(played) != 1:
            raise BadValue(f"branch needs one episode per group, got {len(played)} in the group {group!r}")
        branches: dict[int, list[int]] = {}
        for i in members:
            if (start := episodes[i].start) is not None:
                branches.setdefault(start, []).append(i)
        values = {
            k: float(np.mean([returns[i][k] if len(returns[i]) > k else 0.0 for i in branches[k]])) for k in branches
        }
        for i in members:
            start = episodes[i].start
            for k in range(start or 0, len(returns[i])):
                left = max((turn for turn in branches if turn <= k), default=None) if start is None else start
                others = [] if left is None else [*played, *branches[left]]
                baseline = [returns[j][k] for j in others if j != i and len(returns[j]) > k]
                later = min((n for n in branches if k < n < len(returns[i])), default=None) if start is None else None
                target = returns[i][k]
                if later is not None:
                    target += gamma ** (later - k) * (values[later] - returns[i][later])
                advantages[i][k] = target - (np.mean(baseline) if baseline else 0.0)
    return advantages


def normalize_batch(
    returns_N: Sequence[float] | Floats, groups_N: Sequence[int] | npt.NDArray[np.int64] | None = None
) -> Floats:
    """Normalize returns over all turns of a batch (ReBN): (return - mean) / std.

    The population standard deviation is computed in float64 and two passes: the one-pass formula sqrt(E[x²] - E[x]²) in
    float32 gave NaN for constant batches. If the standard deviation is at most 1e-12 of the
    largest absolute return, all advantages are 0.

    Args:
        returns_N: one return per turn of the batch.
        groups_N: group of each turn. The mean of the group is subtracted instead of the mean of the batch; the divisor
            is the root mean square of the results over the whole batch. With turn indices as groups,
            early turns are not penalized for their smaller discounted returns. None treats the batch as one group.

    Returns:
        One advantage per turn.

    Source: arXiv 2510.01051, eq. 4.

    >>> normalize_batch([0.0, 1.0]).tolist(), normalize_batch([0.1, 0.1, 0.1]).tolist()
    ([-1.0, 1.0], [0.0, 0.0, 0.0])
    """
    returns = np.asarray(returns_N, dtype=np.float64)
    groups = np.zeros(returns.size, dtype=np.int64) if groups_N is None else np.asarray(groups_N)
    return _divide_by_rms(center(returns, groups), np.abs(returns).max(initial=0.0))


def center(values_N: Floats, groups_N: npt.NDArray[np.int64], leave_one_out: bool = False) -> Floats:
    """Subtract from each value the mean of its group.

    Args:
        leave_one_out: subtract the mean of the others in the group, or nothing from the only member of a group. The
            baseline of an episode then does not depend on it, so the gradient stays unbiased.

    >>> center(np.array([1.0, 2.0, 6.0]), np.array([0, 0, 0]), leave_one_out=True).tolist()
    [-3.0, -1.5, 4.5]
    """
    centered_N = np.empty_like(values_N)
    for group in np.unique(groups_N):
        members = groups_N == group
        count = np.count_nonzero(members)
        if leave_one_out and count == 1:
            centered_N[members] = values_N[members]
        else:
            centered_N[members] = values_N[members] - values_N[members].mean()
            if leave_one_out:
                centered_N[members] *= count / (count - 1)
    return centered_N


def _returns(episodes: Episodes, gamma: float = 1.0) -> list[Floats]:
    return [discounted_returns(e.rewards_K, gamma) for e in episodes]


def _flat(parts: Sequence[Floats]) -> Floats:
    """Return the values of all turns of a batch, which may be empty."""
    return np.concatenate([np.empty(0), *parts])


def _by_episode(values_N: Floats, episodes: Episodes) -> list[Floats]:
    ends = np.cumsum([0, *(len(e.rewards_K) for e in episodes)])
    return [values_N[start:end] for start, end in pairwise(ends)]


def _of_groups(episodes: Episodes, group_scale: Scale, leave_one_out: bool = False) -> list[Floats]:
    """Compare the sums of the rewards within groups; all turns of an episode get the same."""
    lengths = [len(returns_K) for returns_K in _returns(episodes)]  # which refuses rewards that are not finite
    totals_P = np.array([sum(e.rewards_K) for e in episodes], dtype=np.float64)
    compared_P = _compare(totals_P, _numbered([e.group for e in episodes]), group_scale, leave_one_out)
    return [np.full(length, compared) for length, compared in zip(lengths, compared_P, strict=True)]


def _compare(
    values_N: Floats, groups_N: npt.NDArray[np.int64], group_scale: Scale, leave_one_out: bool = False
) -> Floats:
    centered_N = center(values_N, groups_N, leave_one_out)
    return centered_N if group_scale == "none" else _divide_by_std(centered_N, values_N, groups_N)


def _check_scales(group_scale: Scale, batch_scale: Scale) -> None:
    if group_scale == batch_scale == "std":
        raise BadValue("group_scale='std' and batch_scale='std' would normalize twice; set one of them to 'none'")


def _scaled(advantages: list[Floats], episodes: Episodes, batch_scale: Scale, gamma: float = 1.0) -> list[Floats]:
    """Divide advantages by their root mean square over the scored turns of the batch, if batch_scale is "std"."""
    if batch_scale == "none":
        return advantages
    scored_N = np.array([k >= (e.start or 0) for e in episodes for k in range(len(e.rewards_K))], dtype=bool)
    advantages_N = _flat(advantages)
    largest = np.abs(_flat(_returns(episodes, gamma))).max(initial=0.0)
    advantages_N[scored_N] = _divide_by_rms(advantages_N[scored_N], largest)
    return _by_episode(advantages_N, episodes)


def _divide_by_rms(values_N: Floats, largest: float) -> Floats:
    """Divide by the root mean square; return zeros if it is at most 1e-12 of the largest absolute return."""
    rms = np.sqrt(np.mean(values_N**2)) if values_N.size else 0.0
    return np.zeros_like(values_N) if rms <= 1e-12 * largest else values_N / rms


def _divide_by_std(centered_N: Floats, values_N: Floats, groups_N: npt.NDArray[np.int64]) -> Floats:
    """Divide by the population standard deviation of each group; a group of equal values gets zeros."""
    scaled_N = np.zeros_like(centered_N)
    for group in np.unique(groups_N):
        members = groups_N == group
        std = values_N[members].std()
        if std > 1e-12 * np.abs(values_N[members]).max():
            scaled_N[members] = centered_N[members] / std
    return scaled_N


def _numbered(keys: Sequence[Hashable]) -> npt.NDArray[np.int64]:
    """Number the distinct keys in the order in which they appear first."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
