"""Self-play: batches of episodes of a game of two players, against the policy itself or an opponent of a pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gem.evaluation.tournament import make_game, sparring_player
from gem.multiagent import Player
from gem.policies import Policy
from gem.rl.config import LATEST, PAST, TrainConfig, opponent_value
from gem.rl.environments import TrainEnv
from gem.rl.model.policy import CausalLMPolicy
from gem.rollout import Batch, Match, PlayedGame, play_games
from gem.seeding import derive, stream
from gem.trajectory import Trajectory

LEARNER, OTHER = "player_0", "player_1"  # agents; which of them moves first is drawn from the seed of a game
PAST_EVERY = 10  # updates between the versions that the opponent past chooses from
PAST_KEPT = 8  # number of these versions; each holds a copy of the trained weights in memory
_LEAST_WEIGHT = 0.1  # of a past policy that loses all games, where 1 is one that wins all
_DECAY = 0.98  # of the points of a past policy, per game: a memory of about 50 games


class PastPolicies:
    """Copies of the policy of a run after earlier updates, the oldest first. PAST_KEPT are kept."""

    def __init__(self) -> None:
        self.policies: dict[int, CausalLMPolicy] = {}  # by number of updates

    def add(self, policy: CausalLMPolicy, update: int) -> None:
        """Copy a policy. Frozen weights are shared."""
        self.policies[update] = policy.copy()
        for old in sorted(self.policies)[:-PAST_KEPT]:
            del self.policies[old]

    def save(self, folder: Path, trained: Sequence[str]) -> None:
        """Write the weights of these names of all policies to a folder."""
        states = {
            update: {name: p for name, p in policy.model.state_dict().items() if name in trained}
            for update, policy in self.policies.items()
        }
        torch.save(states, folder / "past_policies.pt")

    def load(self, folder: Path, policy: CausalLMPolicy) -> None:
        """Restore what save() wrote. ``policy`` has the weights that are the same in all policies."""
        for update, state in torch.load(folder / "past_policies.pt", weights_only=True).items():
            self.add(policy, update)
            self.policies[update].model.load_state_dict(state, strict=False)


class SeatAverages:
    """Moving averages of the returns of each seat of a game, over batches.

    An average does not contain the batch that it is the baseline of, so that the gradient stays unbiased. It is 0
    before the first batch.

    Args:
        decay: weight of the earlier batches when a batch is added.
    """

    def __init__(self, decay: float = 0.9) -> None:
        self.decay = decay
        self._sums: dict[str, tuple[float, float]] = {}  # weight and weighted sum of returns, by seat

    def value(self, seat: str) -> float:
        weight, total = self._sums.get(seat, (0.0, 0.0))
        return total / weight if weight else 0.0

    def add(self, seats: Sequence[str], returns: Sequence[float]) -> None:
        """Add a batch: the return of each episode, and its seat."""
        for seat in sorted(set(seats)):
            own = [value for other, value in zip(seats, returns, strict=True) if other == seat]
            weight, total = self._sums.get(seat, (0.0, 0.0))
            self._sums[seat] = self.decay * weight + len(own), self.decay * total + sum(own)

    def get_state(self) -> dict[str, list[float]]:
        return {seat: list(sums) for seat, sums in self._sums.items()}

    def set_state(self, state: Mapping[str, Sequence[float]]) -> None:
        self._sums = {seat: (weight, total) for seat, (weight, total) in state.items()}


class _Game(NamedTuple):
    """A game of a batch: its match, and who the opponent is, by name and, for a past policy, by its update."""

    match: Match
    opponent: str
    update: int | None


class SelfPlayCollector:
    """Plays whole games of a batch, all of them by the policy with which the batch began.

    A game against the policy itself gives two episodes, one per seat, and a game against another opponent gives one.
    ``group_id`` of an episode is its seat: "seat 0" moved first. Which opponent a game has depends on the seed of the
    run, the number of the game and, for past policies, the results so far.

    Args:
        env: the game; ``index`` is its number in the run.
        past: policies of the run after earlier updates.
    """

    def __init__(self, config: TrainConfig, env: TrainEnv, index: int, past: PastPolicies) -> None:
        self.config, self.env, self.index, self.past = config, env, index, past
        self.games = 0  # so far
        self.points: dict[int, float] = {}  # recent points of each past policy against the learner, by its update
        fixed = [name for name in config.opponent_weights if name not in (LATEST, PAST)]
        self.fixed: dict[str, Player] = {
            name: sparring_player(env.id, opponent_value(name), env.kwargs) for name in fixed
        }

    def collect(self, policy: Policy, *, episodes: int) -> Batch:
        """Play games until there are that many episodes, or one more. Returns them in the order of the games.

        A seat that was never to act gives no episode, unless the game failed. Points are those against opponents of the
        pool.
        """
        games: list[_Game] = []
        count = 0
        while count < episodes:
            games.append(self._game(self.games, policy))
            self.games += 1
            count += 2 if games[-1].opponent == LATEST else 1
        make = partial(make_game, self.env.id, self.env.kwargs)
        ended = play_games(make, [game.match for game in games], concurrency=self.config.slots or self.config.batch)
        played = {each.match.number: each for each in ended}
        trajectories: list[Trajectory] = []
        points: dict[str, list[float]] = {}
        for game in games:
            result = played[game.match.number]
            trajectories += _episodes(result, both=game.opponent == LATEST)
            if result.failure is None and game.opponent != LATEST:
                own = (1 + result.scores[LEARNER]) / 2
                points.setdefault(game.opponent, []).append(own)
                if game.update is not None:
                    before = self.points.get(game.update, 0.5)
                    self.points[game.update] = _DECAY * before + (1 - _DECAY) * (1 - own)
        return Batch(trajectories, points=points)

    def get_state(self) -> dict[str, Any]:
        """Return the number of games and the results against past policies, as plain data."""
        return {"games": self.games, "points": [[update, points] for update, points in self.points.items()]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.games, self.points = int(state["games"]), {int(update): points for update, points in state["points"]}

    def _game(self, number: int, policy: Policy) -> _Game:
        rng = stream(self.config.seed, "self-play", self.index, number)
        weights = self.config.opponent_weights
        name = rng.choices(list(weights), list(weights.values()))[0]
        update, opponent = None, self.fixed.get(name, policy)
        if name == PAST and self.past.policies:
            chances = [max(_LEAST_WEIGHT, self.points.get(each, 0.5)) for each in self.past.policies]
            update = rng.choices(list(self.past.policies), chances)[0]
            opponent = self.past.policies[update]
        elif name == PAST:  # there are none yet
            name = LATEST
        seed = derive(self.config.seed, "self-play", self.index, number, "deal")
        return _Game(Match(number, seed, {LEARNER: policy, OTHER: opponent}), name, update)


def _episodes(played: PlayedGame, *, both: bool) -> list[Trajectory]:
    episodes = []
    for seat, agent in enumerate(played.order):
        trajectory = played.trajectories[agent]
        trajectory.group_id = f"seat {seat}"
        if (trajectory.turns or trajectory.failure) and (both or agent == LEARNER):
            episodes.append(trajectory)
    return episodes
