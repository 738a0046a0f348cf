"""Episodes as the token sequences that training frameworks take: masks, log-probabilities and a reward per turn.

Every adapter that hands over token ids uses pack_episode(). Axes: K turns of an episode, T tokens of a sequence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

from gem.errors import BadValue
from gem.rl.estimate.advantages import Floats, discounted_returns, normalize_batch
from gem.trajectory import Continuation, TokenSequence, Trajectory, continuation

Value = TypeVar("Value", int, float)


@dataclass
class TrainingSequence:
    """A packed sequence of T tokens with a reward per token.

    Args:
        ids_T, mask_T, logprobs_T, turn_T: see gem.trajectory.TokenSequence; mask_T is its loss mask.
        rewards_T: the reward of a turn on its last sampled token; 0.0 on all others.
        truncated: whether tokens at the end were cut off.
    """

    ids_T: list[int]
    mask_T: list[int]
    logprobs_T: list[float]
    turn_T: list[int]
    rewards_T: list[float]
    truncated: bool = False

    @property
    def prompt_length(self) -> int:
        """The number of tokens before the first sampled token. The others are the response."""
        return next((t for t, turn in enumerate(self.turn_T) if turn >= 0), len(self.turn_T))

    @property
    def last_sampled(self) -> int:
        """The position of the last sampled token; -1 if there is none."""
        return max((t for t, turn in enumerate(self.turn_T) if turn >= 0), default=-1)

    @property
    def prompt_ids(self) -> list[int]:
        return self.ids_T[: self.prompt_length]

    @property
    def response_ids(self) -> list[int]:
        return self.ids_T[self.prompt_length :]

    def response(self, values_T: Sequence[Value]) -> list[Value]:
        """Return the values of the response tokens of values_T, one of the fields, or a result of per_token()."""
        return list(values_T[self.prompt_length :])

    def per_token(self, values_K: Sequence[float]) -> list[float]:
        """Give each trained token the value of its turn, for example its advantage. Other tokens get 0.0."""
        return [
            float(values_K[turn]) if trained else 0.0 for turn, trained in zip(self.turn_T, self.mask_T, strict=True)
        ]


@dataclass
class PackedEpisode:
    """An episode as sequences. There is one, unless the context of a turn did not extend that of the turn before.

    Args:
        trajectory: the episode.
        sequences: at least one. Each turn is trained in one of them, unless it was cut off.
        counts: number of contexts of each kind, the first one excluded; and of "truncated" sequences and "lost" turns,
            of which no token is left.
    """

    trajectory: Trajectory
    sequences: list[TrainingSequence]
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def last(self) -> TrainingSequence:
        """The last sequence, for frameworks that take one sequence per episode. It contains the outcome."""
        return self.sequences[-1]


def pack_episode(
    trajectory: Trajectory, *, realign_tokens: int = 0, max_tokens: int | None = None, max_response: int | None = None
) -> PackedEpisode:
    """Pack an episode for training.

    The reward of a turn without sampled tokens is added to that of the turn before. A sequence over a limit loses its
    last tokens; the rewards on them move to the last sampled token that is left, so that the return of the episode is
    the same. Sequences that lose all their sampled tokens are left out; if all do, the last one is kept.

    Args:
        realign_tokens: see gem.trajectory.continuation().
        max_tokens: maximum length of a sequence; None for no limit.
        max_response: maximum number of tokens after its prompt; None for no limit.

    Raises:
        BadValue: for a failed episode, one without turns, or one without token ids and log-probabilities.
    """
    rewards_K = trajectory.rewards_K
    if not rewards_K:
        raise BadValue("an episode without turns cannot be packed; its first prompt was over the limit of tokens")
    pairs = pairwise(trajectory.turns)
    counts = Counter(continuation(before, turn, realign_tokens)[0].value for before, turn in pairs)
    sequences = _with_rewards(trajectory.sequences(realign_tokens), rewards_K)
    for sequence in sequences:
        whole = len(sequence.ids_T)
        _cut(sequence, min(max_tokens or whole, sequence.prompt_length + (max_response or whole)))
    kept = [s for s in sequences if s.last_sampled >= 0] or sequences[-1:]
    counts["truncated"] = sum(sequence.truncated for sequence in sequences)
    left = {turn for sequence in kept for turn in sequence.turn_T}
    counts["lost"] = sum(bool(turn.sampled_ids) and k not in left for k, turn in enumerate(trajectory.turns))
    return PackedEpisode(trajectory, kept, counts)


def pack_batch(trajectories: Sequence[Trajectory], **limits: Any) -> list[PackedEpisode | None]:
    """Pack the episodes of a batch.

    Args:
        limits: see pack_episode().

    Returns:
        None for an episode that cannot be trained: a failed one, and one without a sampled token, such as one whose
        first prompt was over the limit of tokens. count() counts them as "dropped".
    """
    return [pack_episode(trajectory, **limits) if _trainable(trajectory) else None for trajectory in trajectories]


def count(episodes: Sequence[PackedEpisode | None]) -> dict[str, int]:
    """Add up the counts of episodes, for the metrics of a batch. All names are present."""
    total = sum((episode.counts for episode in episodes if episode is not None), Counter[str]())
    total["dropped"] = sum(episode is None for episode in episodes)
    return {name: total[name] for name in (*(kind.value for kind in Continuation), "truncated", "lost", "dropped")}


def pad(
    rows: Sequence[Sequence[Value]], fill: Value, *, length: int | None = None, left: bool = False
) -> list[list[Value]]:
    """Pad rows to one length: that of the longest row, or a given one.

    Raises:
        BadValue: for a row longer than the given length.
    """
    longest = max(map(len, rows), default=0)
    width = longest if length is None else length
    if longest > width:
        raise BadValue(f"a row of {longest} tokens does not fit in {width}; pack_episode() cuts with max_tokens")
    if left:
        return [[fill] * (width - len(row)) + list(row) for row in rows]
    return [list(row) + [fill] * (width - len(row)) for row in rows]


def turn_returns(trajectory: Trajectory, gamma: float | Mapping[str, float]) -> Floats:
    """Return the discounted return from each turn of an episode on.

    Args:
        gamma: discount per turn; or one per environment id, for mixtures of environments.

    Raises:
        BadValue: for a failed episode, or an environment without a discount.
    """
    if isinstance(gamma, Mapping):
        env_id = str(trajectory.env_id)
        if env_id not in gamma:
            raise BadValue(f"no gamma for {env_id!r}; there are: {', '.join(gamma)}")
        gamma = gamma[env_id]
    return discounted_returns(trajectory.rewards_K, gamma)


def rebn(trajectories: Sequence[Trajectory], gamma: float | Mapping[str, float]) -> list[list[float]]:
    """Return one advantage per turn of each episode: its discounted return, normalized over all turns (ReBN).

    For the arguments and errors, see turn_returns(); for the normalization, normalize_batch() of gem.rl.
    """
    returns = [turn_returns(trajectory, gamma).tolist() for trajectory in trajectories]
    advantages = iter(normalize_batch([value for returns_K in returns for value in returns_K]).tolist())
    return [[next(advantages) for _ in returns_K] for returns_K in returns]


def _trainable(trajectory: Trajectory) -> bool:
    """Return whether an episode has a sampled token. True for one played as text, which pack_episode() refuses."""
    played = [turn for turn in trajectory.turns if turn.sampled_ids or not turn.context]
    return trajectory.failure is None and bool(played)


def _with_rewards(sequences: Sequence[TokenSequence], rewards_K: Sequence[float]) -> list[TrainingSequence]:
    """Place each reward on the last sampled token of its turn, or of the closest turn before that has one."""
    packed = [TrainingSequence(s.ids_T, s.loss_mask_T, s.logprobs_T, s.turn_T, [0.0] * len(s.ids_T)) for s in sequences]
    ends = {turn: (s, t) for s in packed for t, turn in enumerate(s.turn_T) if turn >= 0}
    for k, reward in enumerate(rewards_K):
        placed = [turn for turn in ends if turn <= k] or sorted(ends)[:1]
        if not placed:
            raise BadValue("an episode without sampled tokens cannot be packed")
        sequence, t = ends[max(placed)]
        sequence.rewards_T[t] += reward
    return packed


def _cut(sequence: TrainingSequence, length: int) -> None:
    """Cut a sequence in place; see pack_episode()."""
    if length >= len(sequence.ids_T):
        return
    moved = sum(sequence.rewards_T[length:])
    for field_T in (sequence.ids_T, sequence.mask_T, sequence.logprobs_T, sequence.turn_T, sequence.rewards_T):
        del field_T[length:]
    sequence.truncated = True
    if sequence.last_sampled >= 0:
        sequence.rewards_T[sequence.last_sampled] += moved
