"""PolicyPlayer: a policy as the player of another agent, for gem.multiagent.as_single_agent."""

from __future__ import annotations

import random
import threading
from typing import Any

from gem._internal.text import short_repr
from gem.errors import BadValue, InfraError
from gem.policies import Policy, Reply, Request, is_async
from gem.rollout.episode import NO_PARTS, ActiveEpisode, EnvView
from gem.rollout.games import action_of, next_request
from gem.trajectory import Trajectory

_local_policies = threading.Lock()  # which compute one batch at a time


class PolicyPlayer:
    """Plays an agent with a policy, such as a model behind an endpoint. Implements gem.multiagent.EpisodicPlayer.

    The policy sees the whole conversation of its agent, token-exactly, as in play_games(). Its sampling stream depends
    on the seed of the episode and the agent. A refusal, and a context over the limit of the policy, give an empty
    action. A request that fails, and an exception of the policy, are failures (InfraError).

    Any number of environments may share a player. Requests of different threads wait for each other only if the policy
    has no submit(), like a model in this process.

    Raises:
        BadValue: ``policy`` is not a policy.
    """

    def __init__(self, policy: Policy) -> None:
        if not hasattr(policy, "max_prompt_tokens"):
            raise BadValue(f"PolicyPlayer needs a policy, see gem.policies.Policy; got {short_repr(policy)}")
        self.policy = policy

    def start_episode(self, env: Any, agent: str, rng: random.Random) -> _PlayedEpisode:
        return _PlayedEpisode(self.policy, Trajectory(env.env_id, episode=rng.getrandbits(62), agent=agent))


class _PlayedEpisode:
    """The player of one episode, with its conversation."""

    def __init__(self, policy: Policy, trajectory: Trajectory) -> None:
        self.policy, self.episode = policy, ActiveEpisode(trajectory)

    def act(self, env: Any, agent: str, rng: random.Random) -> str:
        request = next_request(self.policy, self.episode, env, EnvView(lambda: env.sample_action(rng)))
        reply = Reply("", finish="context_overflow") if request is None else self._reply(request)
        if reply.failure is not None:
            raise InfraError(reply.failure)
        self.episode.record(reply, self.policy.version, 0.0, {}, NO_PARTS)
        return action_of(reply)

    def get_state(self) -> dict[str, Any]:
        self.episode.trajectory.tools = list(self.episode.tools)
        return self.episode.trajectory.to_json()

    def set_state(self, state: dict[str, Any]) -> None:
        trajectory = Trajectory.from_json(state)
        self.episode = ActiveEpisode(trajectory, tools=trajectory.tools)

    def _reply(self, request: Request) -> Reply:
        if not is_async(self.policy):
            with _local_policies:
                return self.policy.act([request])[0]
        future = self.policy.submit(request)
        try:
            return future.result()
        finally:
            future.cancel()  # if the wait was interrupted
