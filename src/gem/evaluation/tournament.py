"""A tournament of players in a game of two: every pair plays every deal with both seats.

Games are numbered by pairing, then deal, then who has the first agent. The records are those of an evaluation (see
records.py): one trajectory per game, that of the seat that moved first, named by ``model``. So a game occurs exactly
once in trajectories.jsonl, and failed games are in failures.jsonl.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any, cast

from gem._internal.counts import check_count
from gem._internal.text import clip, one_line
from gem.core import Env
from gem.errors import BadValue, InfraError
from gem.evaluation.metrics import Estimate
from gem.evaluation.ratings import rate
from gem.evaluation.records import EvalFolder
from gem.evaluation.report import MARKDOWN, MAX_NOTE, REPORT, markdown_row
from gem.evaluation.versions import versions_of
from gem.multiagent import EpisodicPlayer, MultiAgentEnv, OneSeat, Player
from gem.policies import Policy
from gem.registry import ENV_REGISTRY, describe_parameters, make
from gem.rollout import Match, PlayedGame, play_games
from gem.seeding import derive
from gem.trajectory import Trajectory

_AGENTS = ("player_0", "player_1")
OUTAGE = 8  # the tournament stops after so many failed games in a row, or twice the concurrency if that is more


@dataclass(frozen=True)
class TournamentReport:
    """The result of a tournament.

    Args:
        env_id: id of the game.
        names: the players.
        planned: number of games.
        deals: for a pair of players, by index, the points of the first and the number of games, for each deal with a
            result. A game has one point: (1 + reward) / 2 for each player, so that a draw is half.
        failures: number of games without a result, and why the last of them failed.
    """

    env_id: str
    names: Sequence[str]
    planned: int
    deals: Mapping[tuple[int, int], Sequence[tuple[float, int]]]
    failures: int = 0
    last_failure: str | None = None
    ratings: Sequence[Estimate] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        pairs = combinations(range(len(self.names)), 2)
        if all(self.deals.get(pair) for pair in pairs):  # the ratings of an unfinished tournament are unknown
            object.__setattr__(self, "ratings", rate(self.deals, len(self.names)))

    @property
    def ranking(self) -> list[str]:
        """The names by rating, the best first; by points while ratings are unknown."""
        order = range(len(self.names))
        values = [self.points(i)[0] for i in order] if self.ratings is None else [e.value for e in self.ratings]
        return [self.names[i] for i in sorted(order, key=values.__getitem__, reverse=True)]

    def points(self, player: int, other: int | None = None) -> tuple[float, int]:
        """Return the points and the number of games of a player, against all others or one of them."""
        total, count = 0.0, 0
        for (i, j), deals in self.deals.items():
            if player in (i, j) and (other is None or other in (i, j)):
                games = sum(n for _, n in deals)
                points = sum(p for p, _ in deals)
                total, count = total + (points if player == i else games - points), count + games
        return total, count

    def crosstable(self) -> list[list[str]]:
        """Return rows of text: a heading, then each player with rating, share of points, and points against each."""
        order = [self.names.index(name) for name in self.ranking]
        rows = [["", "rating", "points", *(self.names[i] for i in order)]]
        for i in order:
            rating = "-"
            if self.ratings is not None:
                r = self.ratings[i]
                rating = f"{r.value:+.0f} [{r.low:+.0f}, {r.high:+.0f}]"
            shares = ["" if i == j else _points_per_game(*self.points(i, j)) for j in order]
            rows.append([self.names[i], rating, _points_per_game(*self.points(i)), *shares])
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON data; players are in the order of the ranking."""
        players = []
        for name in self.ranking:
            i = self.names.index(name)
            rating = (None, None, None) if self.ratings is None else self.ratings[i][:3]
            values = dict(zip(("rating", "low", "high"), rating, strict=True)) | _points(*self.points(i))
            others = {other: _points(*self.points(i, j)) for j, other in enumerate(self.names) if i != j}
            players.append({"name": name, **values, "against": others})
        return {
            "env": self.env_id,
            "players": players,
            "planned": self.planned,
            "failures": self.failures,
            "last_failure": self.last_failure,
        }

    def to_markdown(self) -> str:
        """Return the crosstable as a Markdown document."""
        heading, *rows = self.crosstable()
        table = "\n".join(map(markdown_row, (heading, ["---"] * len(heading), *rows)))
        return f"# Tournament in {one_line(self.env_id)}\n\n{table}\n\n" + "\n".join(self.notes()) + "\n"

    def notes(self) -> list[str]:
        """Return what the table leaves out, one line each."""
        lines = ["Ratings: Bradley-Terry on the scale of Elo, mean 0, with 95 % bootstrap intervals over deals."]
        lines.append("Points: share of wins, draws half.")
        if self.failures:
            lines.append(f"{self.failures} of {self.planned} games failed and are not scored: {self.last_failure}")
        return [clip(one_line(line), MAX_NOTE) for line in lines]  # the failure may quote a server


def _points(points: float, games: int) -> dict[str, float]:
    return {"points": points, "games": games}


def make_game(env_id: str, env_kwargs: Mapping[str, Any], purpose: str = "a tournament") -> MultiAgentEnv:
    """Make a zero-sum game for two players.

    Raises:
        BadValue: the environment is none; the message says that the purpose needs one.
    """
    env = _with_opponent(env_id, None, env_kwargs)
    if not isinstance(env, MultiAgentEnv) or tuple(env.possible_agents) != _AGENTS:
        raise BadValue(f"{env_id} is not a game of two players; `gem list` shows them: board:… and cards:…")
    if not env.zero_sum:
        seat = "; gem eval and gem train without self-play play a seat of it"
        raise BadValue(f"{purpose} needs a zero-sum game, but the rewards of {env_id} do not sum to 0{seat}")
    return env


def _with_opponent(env_id: str, opponent: str | float | None, env_kwargs: Mapping[str, Any]) -> Env | None:
    if "opponent" not in describe_parameters(ENV_REGISTRY[env_id]):
        return None
    return make(env_id, **{**env_kwargs, "opponent": opponent})


def sparring_player(env_id: str, opponent: str | float, env_kwargs: Mapping[str, Any] | None = None) -> Player:
    """Return a player of a game that comes with it: a value of its argument ``opponent``, such as "best" or 0.5.

    Raises:
        BadValue: the environment has no such argument, or not this value.
    """
    env = _with_opponent(env_id, opponent, env_kwargs or {})
    if not isinstance(env, OneSeat):
        raise BadValue(f"{env_id} is not a game between players; `gem list` shows them: board:… and cards:…")
    return cast(Player, next(iter(env.others.values())))


def play_tournament(
    players: Mapping[str, Policy | Player | EpisodicPlayer],
    env_id: str,
    *,
    games: int = 40,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
    concurrency: int = 128,
    retries: int = 2,
    out: str | None = None,
    resume: bool = False,
    notes: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] = lambda done, planned: None,
) -> TournamentReport:
    """Let every pair of players play a game of two players.

    Args:
        players: by name, policies, or players as of gem.multiagent.
        env_id: a game between players. It is made with ``opponent=None``.
        games: games per pair, an even number: each deal is played twice, with exchanged seats.
        concurrency: maximum number of games at once.
        retries: how often a failed game is played again. Games that fail every time are not scored.
        out: folder for the records and the report; None keeps nothing.
        resume: continue the tournament in ``out``, and play only what it lacks.
        notes: further facts to record, as JSON data, which a resumed tournament may change.
        progress: called with the number of games with a result and that of all games.

    Raises:
        BadValue: for arguments out of range, an environment that is not a game of two players, an occupied folder, or a
            resumed tournament with other settings.
        InfraError: too many games failed in a row. The tournament can be resumed.
        Exception: any exception of gem.make, and of a policy.
    """
    if len(players) < 2:
        raise BadValue(f"a tournament needs at least two players, got {', '.join(players) or 'none'}")
    check_count("games", games, 2)
    if games % 2:
        raise BadValue(
            f"games must be an even number of at least 2, as each deal is played with both seats; got {games}"
        )
    check_count("concurrency", concurrency)
    check_count("retries", retries, 0)
    if resume and out is None:
        raise BadValue("resume needs the folder of the tournament as out=")
    make_env = partial(make_game, env_id, dict(env_kwargs or {}))
    make_env().close()  # checks the id and the arguments before anything is written
    table = _Table(list(players), env_id, games)
    settings = {
        "gem": sys.modules["gem"].__version__,
        "env": env_id,
        "env_kwargs": dict(env_kwargs or {}),
        "versions": versions_of(env_id),
        "players": {name: dict(getattr(player, "settings", {})) for name, player in players.items()},
        "games": games,
        "seed": seed,
    }
    folder = None if out is None else EvalFolder(out, {**settings, "notes": dict(notes or {})}, resume=resume)
    with folder or nullcontext():
        if folder is not None and resume:
            for trajectory in folder.finished():
                table.restore(trajectory)
        try:
            for _ in range(retries + 1):
                matches = (table.match(number, players, seed) for number in table.missing())
                for played in play_games(make_env, matches, concurrency=concurrency):
                    record = table.take(played)
                    if folder is not None:
                        folder.append(record)
                    progress(len(table.scores), table.planned)
                    if table.outages >= max(OUTAGE, 2 * concurrency):
                        raise InfraError(f"stopped, because the last {table.outages} games failed: {played.failure}")
        finally:
            report = table.report()
            if folder is not None:
                folder.write(REPORT, json.dumps(report.to_json(), indent=1) + "\n")
                folder.write(MARKDOWN, report.to_markdown())
    return report


class _Table:
    """The games of a tournament and their scores."""

    def __init__(self, names: Sequence[str], env_id: str, games: int) -> None:
        self.names, self.env_id, self.games = names, env_id, games
        self.pairs = list(combinations(range(len(names)), 2))
        self.planned = len(self.pairs) * games
        self.scores: dict[int, float] = {}  # points of the first of a pair, by number of the game
        self.failures: dict[int, str] = {}  # why a game failed that has no result yet
        self.outages = 0  # failed games in a row

    def missing(self) -> Iterator[int]:
        return (number for number in range(self.planned) if number not in self.scores)

    def match(self, number: int, players: Mapping[str, Policy | Player | EpisodicPlayer], seed: int) -> Match:
        pair, game = divmod(number, self.games)
        by_agent = {agent: players[name] for agent, name in self.seats(number).items()}
        return Match(number, derive(seed, "tournament", pair, game // 2), by_agent)

    def seats(self, number: int) -> dict[str, str]:
        """Return the name of the player of each agent."""
        pair, game = divmod(number, self.games)
        first, second = (self.names[i] for i in self.pairs[pair])
        return dict(zip(_AGENTS, (first, second) if game % 2 == 0 else (second, first), strict=True))

    def take(self, played: PlayedGame) -> Trajectory:
        """Count a game, and return its record: the trajectory of the seat that moved first."""
        number, mover = played.match.number, played.order[0]
        record = played.trajectories[mover]
        name = self.seats(number)[mover]
        record.episode, record.model, record.group_id = number, name, self._title(number)
        if played.failure is None:
            self._score(number, name, played.scores[mover])
            self.failures.pop(number, None)
            self.outages = 0
        else:
            self.failures[number] = played.failure
            self.outages += 1
        return record

    def restore(self, record: Trajectory) -> None:
        """Count a recorded game. Raises BadValue if it is not one of this tournament."""
        number = record.episode
        if not 0 <= number < self.planned or record.group_id != self._title(number) or number in self.scores:
            raise BadValue(f"the record of game {number} is not of this tournament, or occurs twice")
        self._score(number, str(record.model), record.total_reward)

    def _score(self, number: int, name: str, reward: float) -> None:
        """Count the reward of a player; that of the other is its opposite."""
        first = self.names[self.pairs[number // self.games][0]]
        self.scores[number] = (1 + (reward if name == first else -reward)) / 2

    def _title(self, number: int) -> str:
        return " - ".join(self.names[i] for i in self.pairs[number // self.games])

    def report(self) -> TournamentReport:
        deals: dict[tuple[int, int], list[tuple[float, int]]] = {}
        for k, pair in enumerate(self.pairs):
            for deal in range(k * self.games, (k + 1) * self.games, 2):
                found = [self.scores[number] for number in (deal, deal + 1) if number in self.scores]
                if found:
                    deals.setdefault(pair, []).append((sum(found), len(found)))
        last = next(reversed(self.failures.values()), None)
        return TournamentReport(self.env_id, self.names, self.planned, deals, len(self.failures), last)


def _points_per_game(points: float, games: int) -> str:
    return "-" if not games else f"{points / games:.3f}"
