"""Play games of several agents, many at once. Each seat has its own token-exact trajectory.

The games run in lock-step: in each round, the requests of all agents that are to act go to their policies, one batch
per policy. Policies with submit(), such as endpoints, get all requests of a round before any reply is awaited.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import cast

from gem.conversation.history import FULL_HISTORY
from gem.core import StopReason
from gem.errors import CallerError, InfraError
from gem.multiagent import MultiAgentEnv, Player
from gem.policies import Policy, Reply, Request, is_async
from gem.rollout.episode import ActiveEpisode
from gem.rollout.scheduler import ENDINGS
from gem.trajectory import Trajectory


@dataclass(frozen=True)
class Match:
    """A game to play.

    Args:
        number: identifies the game. The sampling streams of policies are derived from it and the seat.
        seed: seed of the reset.
        players: by agent, who plays it: a policy, or a gem.multiagent.Player.
    """

    number: int
    seed: int
    players: Mapping[str, Policy | Player]


@dataclass(frozen=True)
class PlayedGame:
    """A game that has ended.

    Args:
        order: the agents in the order of play; the first moved first.
        scores: the sums of rewards by agent; not to be used if the game failed.
        trajectories: by agent, its episode: ``episode`` differs for each seat of each game. A seat that was never to
            act has no turns.
        failure: why the game failed; None for a game that ended by its rules. A player that raises an exception and a
            request that fails make a failure, never a win of the others.
    """

    match: Match
    order: Sequence[str]
    scores: Mapping[str, float]
    trajectories: Mapping[str, Trajectory]
    failure: str | None


def play_games(
    make_game: Callable[[], MultiAgentEnv], matches: Iterable[Match], *, concurrency: int = 128
) -> Iterator[PlayedGame]:
    """Play each match once and yield the games as they end.

    A reply cut off by a refusal, and a context over the limit of a policy, are what the model did: the game gets an
    empty action, which it takes for an unreadable one.

    Args:
        make_game: makes an environment; called at most once per game that runs at the same time.
        concurrency: maximum number of games at once.

    Raises:
        Exception: any exception of a policy, and CallerError of a player.
    """
    waiting, free, running = iter(matches), list[MultiAgentEnv](), list[_RunningGame]()
    try:
        while True:
            while len(running) < concurrency and (match := next(waiting, None)) is not None:
                running.append(_RunningGame(free.pop() if free else make_game(), match))
            if not running:
                return
            _ask(running)
            for game in running:
                game.step()
            ended = [game for game in running if game.over]
            running = [game for game in running if not game.over]
            free += [game.env for game in ended]
            yield from (game.played() for game in ended)
    finally:
        for env in (*free, *(game.env for game in running)):
            env.close()


class _RunningGame:
    def __init__(self, env: MultiAgentEnv, match: Match) -> None:
        self.env, self.match = env, match
        env.reset(seed=match.seed)
        self.order = list(env.agents)
        self.scores = dict.fromkeys(self.order, 0.0)
        self.failure: str | None = None
        self.replies: dict[str, Reply] = {}
        self.seconds: dict[str, float] = {}  # of the policy, by agent
        self.episodes: dict[str, ActiveEpisode] = {}
        for seat, agent in enumerate(self.order):  # two seats of one policy sample from different streams
            number = match.number * len(self.order) + seat
            trajectory = Trajectory(env.env_id, episode=number, seed=match.seed, agent=agent)
            self.episodes[agent] = ActiveEpisode(trajectory, "", None)

    @property
    def over(self) -> bool:
        return self.failure is not None or not self.env.agents

    def request(self, policy: Policy, agent: str) -> Request | None:
        """Return the next request of an agent; None if its context is over the limit of the policy."""
        episode = self.episodes[agent]
        episode.observe(self.env.observe(agent), self.env.infos[agent])
        if not episode.turns:
            trajectory = episode.trajectory
            trajectory.model, trajectory.sampling = getattr(policy, "model_name", None), getattr(policy, "settings", {})
        episode.prepare(policy, FULL_HISTORY, is_prompt=False, is_history=False)
        return None if episode.exceeded else episode.request(self.env.sample_random_action, False)

    def ask_player(self, player: Player, agent: str) -> None:
        episode = self.episodes[agent]
        episode.observe(self.env.observe(agent), self.env.infos[agent])
        rng = self.env.stream_of(f"{agent} {len(episode.turns)}")
        try:
            self.replies[agent] = Reply(player.act(self.env, agent, rng))
        except CallerError:
            raise
        except Exception as e:
            kind = type(e).__name__
            self.replies[agent] = Reply("", failure=f"InfraError: the player of {agent} failed: {kind}: {e}")

    def step(self) -> None:
        replies, self.replies = self.replies, {}
        failed = [reply.failure for reply in replies.values() if reply.failure is not None]
        try:
            if failed:
                self.failure = failed[0]
                return
            actions = {agent: "" if reply.finish in ENDINGS else reply.text for agent, reply in replies.items()}
            observations, rewards, terminations, truncations, infos = self.env.step(actions)
        except InfraError as e:
            self.failure = f"{type(e).__name__}: {e}"
            return
        for agent, reward in rewards.items():
            episode = self.episodes[agent]
            self.scores[agent] += reward
            if agent in replies:
                version = getattr(self.match.players[agent], "version", 0)
                seconds = {"policy": self.seconds.get(agent, 0.0), "env": 0.0}
                episode.record(replies[agent], version, reward, infos[agent], seconds)
            elif episode.turns and reward:  # it belongs to what the agent did last
                episode.turns[-1].reward = (episode.turns[-1].reward or 0.0) + reward
            if terminations[agent] or truncations[agent]:
                episode.finish(observations[agent], infos[agent], terminations[agent], truncations[agent])

    def played(self) -> PlayedGame:
        if self.failure is not None:
            for episode in self.episodes.values():
                episode.truncate(StopReason.FAILED, self.failure)
        trajectories = {agent: episode.trajectory for agent, episode in self.episodes.items()}
        return PlayedGame(self.match, self.order, self.scores, trajectories, self.failure)


def _ask(games: Sequence[_RunningGame]) -> None:
    """Get the replies of all agents that are to act."""
    batches: dict[int, tuple[Policy, list[tuple[_RunningGame, str]]]] = {}
    for game in games:
        for agent in game.env.active_agents():
            player = game.match.players[agent]
            if hasattr(player, "max_prompt_tokens"):  # of policies only
                batches.setdefault(id(player), (cast(Policy, player), []))[1].append((game, agent))
            else:
                game.ask_player(player, agent)
    awaited = [_send(policy, seats) for policy, seats in batches.values()]
    for receive in awaited:
        receive()


def _send(policy: Policy, seats: Sequence[tuple[_RunningGame, str]]) -> Callable[[], None]:
    """Send the requests of these seats. Returns a function that takes the replies."""
    asked, requests = [], []
    for game, agent in seats:
        request = game.request(policy, agent)
        if request is None:
            game.replies[agent] = Reply("", finish="context_overflow")
        else:
            asked.append((game, agent))
            requests.append(request)
    started = time.perf_counter()
    reply: Callable[[], Sequence[Reply]] = partial(policy.act, requests)
    if is_async(policy):
        reply = partial(_results, [policy.submit(request) for request in requests])

    def receive() -> None:
        replies = reply() if requests else []
        took = time.perf_counter() - started
        for (game, agent), received in zip(asked, replies, strict=True):
            game.replies[agent], game.seconds[agent] = received, took

    return receive


def _results(futures: Sequence[Future[Reply]]) -> list[Reply]:
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:  # abort the requests if one raised or the wait was interrupted
            future.cancel()
