"""Play games of several agents, many at once. Each seat has its own token-exact trajectory.

The requests of all agents that are to act go to their policies, one batch per policy, so that games of local policies
run in lock-step. A policy with submit(), such as an endpoint, gets each request alone, and a game continues when its
replies have arrived, without waiting for the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import NamedTuple, cast

from gem.conversation.history import FULL_HISTORY
from gem.conversation.observations import encodable
from gem.core import StopReason
from gem.errors import InfraError
from gem.multiagent import EpisodicPlayer, MultiAgentEnv, Player, failures_of, start_episode
from gem.policies import Policy, Reply, Request, is_async
from gem.rollout.episode import ActiveEpisode, EnvView
from gem.rollout.scheduler import BATCH_WAIT, ENDINGS
from gem.trajectory import Trajectory


@dataclass(frozen=True)
class Match:
    """A game to play.

    Args:
        number: identifies the game. The sampling streams of policies are derived from it and the seat.
        seed: seed of the reset.
        players: by agent, who plays it: a policy, or a player of gem.multiagent, for which all other games wait.
    """

    number: int
    seed: int
    players: Mapping[str, Policy | Player | EpisodicPlayer]


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
        BadValue: a player raised CallerError.
        Exception: any exception of a policy.
    """
    waiting, free, running = iter(matches), list[MultiAgentEnv](), list[_RunningGame]()
    arrivals, asking, ended = _Arrivals(), list[_RunningGame](), list[_RunningGame]()
    has_local = False  # whether a policy replies in batches
    try:
        while True:
            while len(running) < concurrency and (match := next(waiting, None)) is not None:
                running.append(_RunningGame(free.pop() if free else make_game(), match))
                asking.append(running[-1])
            has_local = _ask(asking, arrivals) or has_local
            yield from (game.played() for game in ended)
            if not running:
                return
            answered = [game for game in asking if not game.awaited]
            answered += arrivals.take(wait=not answered, gather=BATCH_WAIT if has_local else 0.0)
            for game in answered:
                game.step()
            ended, asking = [game for game in answered if game.over], [game for game in answered if not game.over]
            if ended:
                running = [game for game in running if not game.over]
                free += [game.env for game in ended]
    finally:
        for game in running:
            for sent in game.awaited.values():  # if a request raised or the wait was interrupted
                sent.future.cancel()
        for env in (*free, *(game.env for game in running)):
            env.close()


class _Sent(NamedTuple):
    future: Future[Reply]
    sent_at: float


class _RunningGame:
    def __init__(self, env: MultiAgentEnv, match: Match) -> None:
        self.env, self.match = env, match
        env.reset(seed=match.seed)
        self.order = list(env.agents)
        self.scores = dict.fromkeys(self.order, 0.0)
        self.failure: str | None = None
        self.replies: dict[str, Reply] = {}
        self.awaited: dict[str, _Sent] = {}  # requests in flight, by agent
        self.seconds: dict[str, float] = {}  # of the policy, by agent
        self.playing: dict[str, Player] = {}  # by agent, those that are no policies
        self.episodes: dict[str, ActiveEpisode] = {}
        for seat, agent in enumerate(self.order):  # two seats of one policy sample from different streams
            number = match.number * len(self.order) + seat
            trajectory = Trajectory(env.env_id, episode=number, seed=match.seed, agent=agent)
            self.episodes[agent] = ActiveEpisode(trajectory)

    @property
    def over(self) -> bool:
        return self.failure is not None or not self.env.agents

    def request(self, policy: Policy, agent: str) -> Request | None:
        """Return an agent's next request; None if its context is over the policy's limit, which is its reply then."""
        request = next_request(policy, self.episodes[agent], self.env, EnvView(self.env.sample_random_action))
        if request is None:
            self.replies[agent] = Reply("", finish="context_overflow")
        return request

    def ask_player(self, player: Player | EpisodicPlayer, agent: str) -> None:
        episode = self.episodes[agent]
        episode.observe(self.env.observe(agent), self.env.infos[agent])
        rng = self.env.stream_of(f"{agent} {len(episode.turns)}")
        try:
            with failures_of(agent):
                if agent not in self.playing:
                    self.playing[agent] = start_episode(player, self.env, agent)
                self.replies[agent] = Reply(self.playing[agent].act(self.env, agent, rng))
        except InfraError as e:
            self.replies[agent] = Reply("", failure=f"InfraError: {e}")

    def step(self) -> None:
        replies, self.replies = self.replies, {}
        failed = [reply.failure for reply in replies.values() if reply.failure is not None]
        try:
            if failed:
                self.failure = failed[0]
                return
            actions = {agent: action_of(reply) for agent, reply in replies.items()}
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


def next_request(policy: Policy, episode: ActiveEpisode, env: MultiAgentEnv, view: EnvView) -> Request | None:
    """Return the request for the next action of the agent of an episode, with all that it has seen.

    Returns None if the context is over the limit of the policy.
    """
    trajectory = episode.trajectory
    assert trajectory.agent is not None
    info = env.infos[trajectory.agent]
    episode.observe(encodable(env.observe(trajectory.agent), info), info)
    episode.prepare(policy, FULL_HISTORY, view)
    return None if episode.exceeded else episode.request(policy, view)


def action_of(reply: Reply) -> str:
    """Return the action of a reply: empty after a refusal or an overflow, which a game takes for an unreadable one."""
    return "" if reply.finish in ENDINGS else reply.text


class _Arrivals:
    """The replies that have arrived of requests in flight."""

    def __init__(self) -> None:
        self._in_flight = 0
        self._done: SimpleQueue[tuple[_RunningGame, str]] = SimpleQueue()

    def expect(self, game: _RunningGame, agent: str, future: Future[Reply]) -> None:
        self._in_flight += 1
        game.awaited[agent] = _Sent(future, time.perf_counter())
        future.add_done_callback(lambda _: self._done.put((game, agent)))  # from any thread

    def take(self, *, wait: bool, gather: float) -> list[_RunningGame]:
        """Give games their replies, and return those that have all of them.

        Args:
            wait: whether to wait until a game has all of them.
            gather: seconds to wait for further replies, from the first one if it is waited for, so that the next
                batches for local policies are large.

        Raises:
            Exception: the exception of a request.
        """
        complete: list[_RunningGame] = []
        until = time.perf_counter() + gather
        while self._in_flight:
            left = until - time.perf_counter()
            try:
                if wait and not complete:
                    game, agent = self._done.get()
                else:
                    game, agent = self._done.get(timeout=left) if left > 0 else self._done.get_nowait()
            except Empty:
                break
            if wait and not complete:
                until = time.perf_counter() + gather
            self._in_flight -= 1
            sent = game.awaited.pop(agent)
            game.replies[agent], game.seconds[agent] = sent.future.result(), time.perf_counter() - sent.sent_at
            if not game.awaited:
                complete.append(game)
        return complete


def _ask(games: Sequence[_RunningGame], arrivals: _Arrivals) -> bool:
    """Ask all agents that are to act, and get the replies of players and local policies.

    Returns:
        Whether a local policy was asked.
    """
    batches: dict[int, tuple[Policy, list[tuple[_RunningGame, str]]]] = {}
    for game in games:
        for agent in game.env.active_agents():
            player = game.match.players[agent]
            if not hasattr(player, "max_prompt_tokens"):  # of policies only
                game.ask_player(player, agent)
            elif is_async(policy := cast(Policy, player)):
                if (request := game.request(policy, agent)) is not None:
                    arrivals.expect(game, agent, policy.submit(request))
            else:
                batches.setdefault(id(player), (policy, []))[1].append((game, agent))
    for policy, seats in batches.values():
        _act(policy, seats)
    return bool(batches)


def _act(policy: Policy, seats: Sequence[tuple[_RunningGame, str]]) -> None:
    """Get the replies of a local policy for these seats, in one batch."""
    requests = {(game, agent): game.request(policy, agent) for game, agent in seats}
    asked = {seat: request for seat, request in requests.items() if request is not None}
    started = time.perf_counter()
    replies = policy.act(list(asked.values())) if asked else []
    took = time.perf_counter() - started
    for (game, agent), received in zip(asked, replies, strict=True):
        game.replies[agent], game.seconds[agent] = received, took
