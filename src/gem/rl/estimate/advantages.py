"""Turn-level returns and advantages, in numpy.

``Estimator`` computes the advantages of a batch of episodes, as `gem train --advantage` does. The functions are its
parts.

Axes: P episodes, K turns of one episode, N turns of a whole batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from gem.errors import BadValue, did_you_mean

Floats = npt.NDArray[np.float64]
Advantage = Literal["returns", "rebn", "turn", "grpo", "rloo", "gigpo", "gae", "branch", "seat"]
Scale = Literal["std", "none"]
UNDISCOUNTED = ("grpo", "rloo", "seat")  # compare sums of rewards
GROUPED = ("grpo", "rloo", "gigpo")  # compare episodes that start from the same state
_GAMMA = 0.8  # default of the estimators that discount


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


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """Computes one advantage per turn.

    With G the discounted return from a turn on, and R the sum of the rewards of an episode:

    - "returns": G, as in REINFORCE.
    - "rebn": G minus its mean over the batch, divided by its standard deviation (arXiv 2510.01051, eq. 4).
    - "turn": the same with the mean over the turns that have the same index.
    - "grpo": R minus its mean over the group, divided by its standard deviation in the group; the same for all turns
      (arXiv 2510.01051, eq. 2). With group_scale="none" and a constant divisor of the loss this is Dr. GRPO
      (arXiv 2503.20783).
    - "rloo": R minus the mean of the others in the group (arXiv 2402.14740).
    - "gigpo": "grpo", plus step_weight times G compared in the same way among the turns of the group that start from
      equal states (arXiv 2505.10978, eq. 3 to 8).
    - "gae": generalized advantage estimation over turns, with the values of a critic (arXiv 1506.02438, eq. 16).
    - "branch": r_k + gamma V(s_{k+1}) - V(s_k), where V is the mean return of continuations from the state, none of
      which contains the scored turn (arXiv 2410.01679, at turns); see branch_advantages().
    - "seat": R minus the moving average of R of this seat of the game; the same for all turns (role-conditioned
      advantages, arXiv 2506.24119). The average is EpisodeRewards.baseline; see gem.rl.data.self_play.SeatAverages.

    Args:
        gamma: discount per turn, 0 to 1. None for 0.8, or 1 for "grpo", "rloo" and "seat", which do not discount.
        group_scale: whether "grpo" and "gigpo" divide by the standard deviation of each group; None for "std".
        leave_one_out: whether "turn" and "grpo" leave the episode itself out of the mean that is subtracted. Without
            others, nothing is subtracted.
        batch_scale: whether all advantages are divided by their root mean square over the batch. None for "std" with
            "rebn" and "turn", else "none".
        step_weight: weight of the comparison of turns in "gigpo"; None for 1.
        gae_lambda: of "gae", 0 to 1: 1 trusts the rewards, 0 the critic; None for 0.95.

    Raises:
        BadValue: for a value out of range, an option that has no effect, or two that normalize the same twice.
    """

    name: Advantage = "turn"
    gamma: float | None = None
    group_scale: Scale | None = None
    leave_one_out: bool = False
    batch_scale: Scale | None = None
    step_weight: float | None = None
    gae_lambda: float | None = None

    def __post_init__(self) -> None:
        name = self.name
        _check_choice("advantage", name, get_args(Advantage))
        for option in ("group_scale", "batch_scale"):
            if getattr(self, option) is not None:
                _check_choice(option, getattr(self, option), get_args(Scale))
        if self.gamma is not None and not 0.0 <= self.gamma <= 1.0:
            raise BadValue(f"gamma must be in [0, 1], got {self.gamma}")
        if name in UNDISCOUNTED and self.gamma not in (None, 1.0):
            raise BadValue(f"gamma={self.gamma} has no effect with advantage={name!r}, which compares sums of rewards")
        if self.group_scale is not None and name not in ("grpo", "gigpo"):
            raise BadValue(f"group_scale needs advantage='grpo' or 'gigpo', got {name!r}")
        if self.leave_one_out and name == "rloo":
            raise BadValue("advantage='rloo' and leave_one_out would leave the episode out twice; drop one of them")
        if self.leave_one_out and name not in ("turn", "grpo"):
            raise BadValue(f"leave_one_out needs advantage='turn' or 'grpo', got {name!r}")
        if name in ("grpo", "gigpo") and self.group_scale != "none" and self.batch_scale == "std":
            raise BadValue("group_scale='std' and batch_scale='std' would normalize twice; set one of them to 'none'")
        if self.step_weight is not None and name != "gigpo":
            raise BadValue(f"step_weight needs advantage='gigpo', got {name!r}")
        if self.step_weight is not None and not (np.isfinite(self.step_weight) and self.step_weight >= 0):
            raise BadValue(f"step_weight must be finite and at least 0, got {self.step_weight}")

        if self.gae_lambda is not None and (name != "gae" or not 0.0 <= self.gae_lambda <= 1.0):
            raise BadValue(
                f"gae_lambda needs advantage='gae' and a value in [0, 1], got {self.gae_lambda} with {name!r}"
            )

    @property
    def discount(self) -> float:
        """The discount per turn that is used."""
        return self.gamma if self.gamma is not None else 1.0 if self.name in UNDISCOUNTED else _GAMMA

    @property
    def mix(self) -> float:
        """The lambda of "gae" that is used."""
        return 0.95 if self.gae_lambda is None else self.gae_lambda

    def __call__(self, episodes: Sequence[EpisodeRewards]) -> list[Floats]:
        """Compute the advantages of a batch: for each episode, one per turn.

        Raises:
            BadValue: for a reward that is not finite, or for "gigpo" without one state per turn.
        """
        if not episodes:
            return []
        returns = [discounted_returns(e.rewards_K, self.discount) for e in episodes]
        ends = np.cumsum([len(returns_K) for returns_K in returns])[:-1]
        advantages_N = self._of_turns(episodes, returns)
        scale = self.batch_scale or ("std" if self.name in ("rebn", "turn") else "none")
        if scale == "std":
            scored_N = np.concatenate(
                [np.arange(len(r)) >= (e.start or 0) for e, r in zip(episodes, returns, strict=True)]
            )
            largest = np.abs(np.concatenate(returns)).max(initial=0.0)
            advantages_N[scored_N] = _divide_by_rms(advantages_N[scored_N], largest)
        return np.split(advantages_N, ends)

    def _of_turns(self, episodes: Sequence[EpisodeRewards], returns: Sequence[Floats]) -> Floats:
        """Compute the advantages of all turns before division by their scale over the batch."""
        returns_N = np.concatenate(returns)
        if self.name == "returns":
            return returns_N
        if self.name == "gae":
            return np.concatenate(
                [gae(e.rewards_K, e.values_K, self.discount, self.mix, e.final_value) for e in episodes]
            )
        if self.name == "seat":
            return np.concatenate([np.full(len(e.rewards_K), sum(e.rewards_K) - e.baseline) for e in episodes])
        if self.name == "branch":
            return np.concatenate(branch_advantages(episodes, self.discount))
        if self.name == "rebn":
            return center(returns_N, np.zeros(len(returns_N), dtype=np.int64))
        if self.name == "turn":
            return center(returns_N, np.concatenate([np.arange(len(r)) for r in returns]), self.leave_one_out)
        totals_P = np.array([sum(e.rewards_K) for e in episodes], dtype=np.float64)
        groups_P = _numbered([e.group for e in episodes])
        compared_P = self._within(totals_P, groups_P, leave_one_out=self.leave_one_out or self.name == "rloo")
        advantages_N = np.repeat(compared_P, [len(r) for r in returns])
        if self.name == "gigpo":
            for e in episodes:
                if len(e.states_K) != len(e.rewards_K):
                    raise BadValue(
                        f"gigpo needs one state per turn, got {len(e.states_K)} for {len(e.rewards_K)} turns"
                    )
            states_N = _numbered([(e.group, state) for e in episodes for state in e.states_K])
            weight = 1.0 if self.step_weight is None else self.step_weight
            advantages_N = advantages_N + weight * self._within(returns_N, states_N, leave_one_out=False)
        return advantages_N

    def _within(self, values_N: Floats, groups_N: npt.NDArray[np.int64], *, leave_one_out: bool) -> Floats:
        centered_N = center(values_N, groups_N, leave_one_out)
        if self.name == "rloo" or self.group_scale == "none":
            return centered_N
        return _divide_by_std(centered_N, values_N, groups_N)


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


def gae(
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

    >>> gae([0, 0, 1], [0.1, 0.2, 0.3], gamma=0.9, gae_lambda=0.95).round(5).tolist()
    [0.65157, 0.6685, 0.7]
    """
    values = np.array([*values_K, final_value], dtype=np.float64)
    if len(values) != len(rewards_K) + 1 or not np.isfinite(values).all():
        raise BadValue(
            f"gae needs one finite value per turn, got {list(values_K)} and {final_value} after the last turn"
        )
    errors_K = np.asarray(rewards_K, dtype=np.float64) + gamma * values[1:] - values[:-1]
    return discounted_returns(errors_K.tolist(), gamma * gae_lambda)


def branch_advantages(episodes: Sequence[EpisodeRewards], gamma: float) -> list[Floats]:
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


def _check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise BadValue(f"{option} must be one of {', '.join(choices)}, got {value!r}{did_you_mean(value, choices)}")
