"""Environments with several agents, which observe and act through dicts from agent to value.

One module holds the contract: the environment, the order of play, and the view of one seat with players for the others.

>>> class Count(MultiAgentEnv):
...     possible_agents = ["ann", "bob"]
...     def observe(self, agent):
...         return f"{agent}, say a number"
...     def apply_actions(self, actions):
...         for agent, action in actions.items():
...             self.rewards[agent] = float(action)
...             self.terminations[agent] = True
>>> env = Count()
>>> _ = env.reset(seed=0)
>>> env.step({"ann": "2"})[1]
{'ann': 2.0, 'bob': 0.0}
>>> env.agents, env.get_active_states()["bob"].reward
(['bob'], 0.0)
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, Protocol, cast, get_args

from gem._internal.text import short_repr
from gem.core import Env, EnvWrapper, Info, Step
from gem.errors import BadAction, BadValue, CallerError, EpisodeOver, InfraError, did_you_mean

__all__ = [
    "AgentSelector",
    "EpisodicPlayer",
    "MultiAgentEnv",
    "OneSeat",
    "Player",
    "PlayerPool",
    "as_single_agent",
]

Mode = Literal["sequential", "parallel"]
# Values per agent that a step returns beside the observations, in the order of the five.
_PER_AGENT = ("rewards", "terminations", "truncations", "infos")
_SEQUENTIAL = (
    "; the agents act one after another, unless the constructor sets "
    "self.agent_selector = AgentSelector(possible_agents, mode='parallel')"
)


class AgentSelector:
    """Decides which agents act next: one after another, or all at once.

    Args:
        agents: the agents in their order.
        mode: "sequential" or "parallel".

    Raises:
        BadValue: the mode is unknown, or an agent is named twice.
    """

    def __init__(self, agents: Sequence[str], mode: Mode = "sequential") -> None:
        if mode not in get_args(Mode):
            raise BadValue(f"mode must be 'sequential' or 'parallel', got {mode!r}")
        self.mode: Mode = mode
        self.reinit(agents)

    def reinit(self, agents: Sequence[str]) -> None:
        """Start again with these agents. The first of them acts next."""
        if len(set(agents)) < len(agents):
            raise BadValue(f"each agent must be named once, got {list(agents)!r}")
        self.agents, self.position = list(agents), 0

    def get_active_agents(self) -> list[str]:
        """Return the agents that act next: one, or all in mode "parallel"; none if there are no agents."""
        return list(self.agents) if self.mode == "parallel" else self.agents[self.position : self.position + 1]

    def next(self) -> list[str]:
        """Pass the turn on, and return the agents that act next."""
        self.position = (self.position + 1) % max(len(self.agents), 1)
        return self.get_active_agents()

    def is_first(self) -> bool:
        """Return whether the first agent is among those that act next."""
        return self.mode == "parallel" or self.position == 0

    def is_last(self) -> bool:
        """Return whether the last agent is among those that act next."""
        return self.mode == "parallel" or self.position >= len(self.agents) - 1

    def add_agent(self, agent: str) -> None:
        """Add an agent after the last one, unless it is there already."""
        if agent not in self.agents:
            self.agents.append(agent)

    def remove_agent(self, agent: str) -> None:
        """Remove an agent, if it is there. If it was to act next, its successor is."""
        if agent in self.agents:
            index = self.agents.index(agent)
            self.agents.remove(agent)
            self.position = (self.position - (index < self.position)) % max(len(self.agents), 1)


class MultiAgentEnv(Env):
    """An environment with several agents.

    Subclasses set ``possible_agents``, and ``agent_selector`` if the agents do not act one after another. They define
    ``observe`` and ``apply_actions``, and set up an episode in ``start_episode`` or before they call
    ``super().reset(seed)``. An agent that is terminated or truncated leaves ``agents``. The episode is over when all
    have left.

    Attributes:
        possible_agents: the agents at the start of an episode.
        agents: the agents that are still playing.
        agent_selector: decides which agents act next.
        rewards, terminations, truncations, infos: values of the last step, by agent.
        shared_memory: the messages of this episode in their order, as {"from", "to", "message"}.
        zero_sum: whether the rewards of an episode sum to 0. Tournaments and self-play need that.
    """

    zero_sum: ClassVar[bool] = True
    possible_agents: Sequence[str] = ()
    agent_selector: AgentSelector | None = None
    agents: list[str]
    rewards: dict[str, float]
    terminations: dict[str, bool]
    truncations: dict[str, bool]
    infos: dict[str, Info]
    shared_memory: list[dict[str, Any]]
    _cumulative_rewards: dict[str, float]  # sums of the rewards of the episode

    def __init__(self) -> None:
        super().__init__()
        self._clear([])

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_process_actions" in vars(cls) and "apply_actions" not in vars(cls):  # also below a class with the other
            setattr(cls, "apply_actions", MultiAgentEnv.apply_actions)  # noqa: B010  mypy refuses to assign to a method

    def observe(self, agent: str) -> Any:
        """Return what an agent sees."""
        raise NotImplementedError(f"{type(self).__name__} must define observe(agent)")

    def apply_actions(self, actions: Mapping[str, Any]) -> Any:
        """Apply the actions of the active agents.

        Either changes ``rewards``, ``terminations``, ``truncations`` and ``infos``, which are zero, false and empty at
        the start of each step, or returns five dicts like step(), whose values are stored there.
        """
        return self._process_actions(actions)

    def _process_actions(self, actions: Mapping[str, Any]) -> Any:
        """The published name of apply_actions()."""
        raise NotImplementedError(f"{type(self).__name__} must define apply_actions(actions)")

    def every_move(self) -> list[str]:
        """Return all moves that can be legal in some state, in a fixed order; none if they cannot be listed.

        PettingZoo's discrete actions are numbers of these moves.
        """
        return []

    def legal_moves(self) -> list[str]:
        """Return the moves of every_move() that are legal now for the agent to move."""
        return []

    def start_episode(self) -> None:
        """Draw the first state of an episode from ``self.rng``. Called by reset()."""

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Info]]:
        """Start an episode. Returns the observations and infos of all agents."""
        super().reset(seed)
        self._clear(self.possible_agents)
        if self.agent_selector is None:
            self.agent_selector = AgentSelector(self.agents)
        self.agent_selector.reinit(self.agents)
        self.start_episode()
        return {agent: self.observe(agent) for agent in self.agents}, {a: self.infos[a] for a in self.agents}

    def step(  # type: ignore[override]  # the values are dicts by agent
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]]:
        """Apply one action of each active agent.

        Returns:
            Observations, rewards, terminations, truncations and infos of all agents that were playing.

        Raises:
            EpisodeOver: no agent is playing.
            BadAction: actions is not a dict, or an action has the wrong type. The message names the agents that acted.
            BadValue: an agent is unknown or not active, or an active agent has no action.
        """
        selector = self._check_actions(actions)
        players = list(self.agents)
        self._fill(players)
        try:
            observations = self._store(self.apply_actions(actions))
        except BadAction as e:
            raise BadAction(f"{', '.join(actions)}: {e}") from e
        for agent in players:
            self._cumulative_rewards[agent] += self.rewards[agent]
        selector.next()
        for agent in players:
            if self.terminations[agent] or self.truncations[agent]:
                self.remove_agent(agent)
        seen = {agent: observations[agent] if agent in observations else self.observe(agent) for agent in players}
        rewards, terminations, truncations, infos = (
            {agent: getattr(self, name)[agent] for agent in players} for name in _PER_AGENT
        )
        return seen, rewards, terminations, truncations, infos

    def get_state(self, agent: str | None = None) -> Any:
        """Return an agent's observation, sum of rewards, termination, truncation and info as a Step.

        Without an agent, returns the state of the episode like Env.get_state().
        """
        if agent is None:
            own = {name: getattr(self, name) for name in ("agents", "_cumulative_rewards", *_PER_AGENT)}
            turn = 0 if self.agent_selector is None else self.agent_selector.position
            own |= {"messages": self.shared_memory, "position": turn}
            return {**super().get_state(), "multiagent": copy.deepcopy(own)}
        self._check_agent(agent)
        values = self.terminations[agent], self.truncations[agent], self.infos[agent]
        return Step(self.observe(agent), self._cumulative_rewards[agent], *values)

    def set_state(self, state: Mapping[str, Any]) -> None:
        own = state.get("multiagent") if isinstance(state, Mapping) else None
        if not isinstance(own, Mapping):
            raise BadValue(f"invalid state for {type(self).__name__}: it has no agents")
        super().set_state(state)
        own = copy.deepcopy(dict(own))
        for name in ("agents", "_cumulative_rewards", *_PER_AGENT):
            setattr(self, name, own[name])
        self.shared_memory = own["messages"]
        self.agent_selector = self.agent_selector or AgentSelector(())
        self.agent_selector.reinit(self.agents)
        self.agent_selector.position = own["position"]

    def active_agents(self) -> list[str]:
        """Return the agents that act next; none before reset() and after the end of an episode."""
        return [] if self.agent_selector is None else self.agent_selector.get_active_agents()

    def stream_of(self, purpose: str) -> random.Random:
        """Return a random stream of the running episode that depends on its seed and the purpose alone."""
        return self._stream(purpose)

    def sample_action(self, rng: random.Random) -> str:
        """Return a random legal action drawn from rng, which leaves ``self.action_rng`` as it is."""
        own, self._action_rng = self._action_rng, rng
        try:
            return self.sample_random_action()
        finally:
            self._action_rng = own

    def get_active_states(self) -> dict[str, Step]:
        """Return get_state(agent) of each agent that acts next."""
        return {agent: self.get_state(agent) for agent in self.active_agents()}

    def add_agent(self, agent_id: str) -> None:
        """Add an agent to the running episode. It acts after the others."""
        if agent_id not in self.agents:
            self.agents.append(agent_id)
            self._fill([agent_id])
            self._cumulative_rewards.setdefault(agent_id, 0.0)
            if self.agent_selector is not None:
                self.agent_selector.add_agent(agent_id)

    def remove_agent(self, agent_id: str) -> None:
        """Remove an agent from the running episode."""
        if agent_id in self.agents:
            self.agents.remove(agent_id)
        if self.agent_selector is not None:
            self.agent_selector.remove_agent(agent_id)

    def send_message(self, from_agent: str, to_agent: str, message: Any) -> None:
        """Append a message to one agent to the shared memory."""
        self._check_agent(to_agent)
        self.shared_memory.append({"from": from_agent, "to": to_agent, "message": message})

    def broadcast_message(self, from_agent: str, message: Any) -> None:
        """Append a message to each of the other agents to the shared memory."""
        for agent in self.agents:
            if agent != from_agent:
                self.send_message(from_agent, agent, message)

    def _clear(self, agents: Sequence[str]) -> None:
        self.agents = list(agents)
        self.rewards, self.terminations, self.truncations, self.infos = {}, {}, {}, {}
        self._cumulative_rewards = dict.fromkeys(agents, 0.0)
        self.shared_memory = []
        self._fill(agents)

    def _fill(self, agents: Sequence[str]) -> None:
        for agent in agents:
            self.rewards[agent], self.terminations[agent], self.truncations[agent] = 0.0, False, False
            self.infos[agent] = {}

    def _check_actions(self, actions: Mapping[str, Any]) -> AgentSelector:
        if not self.agents or self.agent_selector is None:
            raise EpisodeOver("no agent is playing; call reset()")
        if not isinstance(actions, Mapping):
            raise BadAction(f"actions must be a dict from agent to action, got {type(actions).__name__}")
        active = self.agent_selector.get_active_agents()
        if set(actions) != set(active):
            hint = "" if self.agent_selector.mode == "parallel" else _SEQUENTIAL
            raise BadValue(f"actions must be those of {active}, got {sorted(map(str, actions))}{hint}")
        return self.agent_selector

    def _store(self, results: Any) -> Mapping[str, Any]:
        """Store the five dicts that apply_actions() returned, if any, and return its observations."""
        if results is None:
            return {}
        observations, *values = results
        for name, own in zip(_PER_AGENT, values, strict=True):
            getattr(self, name).update(own)
        return observations or {}

    def _check_agent(self, agent: str) -> None:
        if agent not in self._cumulative_rewards:
            raise BadValue(f"no agent {agent!r}{did_you_mean(str(agent), self._cumulative_rewards)}")


class Player(Protocol):
    """Plays an agent of an environment with several agents. It keeps nothing from one action to the next."""

    def act(self, env: Any, agent: str, rng: random.Random) -> Any:
        """Return the agent's action. ``env.observe(agent)`` is what it sees; rng is the only source of chance."""
        ...


class EpisodicPlayer(Protocol):
    """Gives each episode a player of its own, which may keep what happened in the episode.

    That player may have get_state() and set_state(state), with data that ``json.dumps`` accepts. Saved and forked
    environments then continue with what it has kept.
    """

    def start_episode(self, env: Any, agent: str, rng: random.Random) -> Player:
        """Return the player of an agent in the running episode. Called before the agent's first action."""
        ...


class PlayerPool:
    """Draws one of several players for each episode. The draw depends on the seed of the episode and on the agent.

    Args:
        players: at least one; one that is listed twice is drawn twice as often.

    Raises:
        BadValue: players is empty, or an item is not a player.
    """

    def __init__(self, players: Sequence[Player | EpisodicPlayer]) -> None:
        if not players:
            raise BadValue("a pool needs at least one player, got none")
        for number, player in enumerate(players):
            _check_player(player, f"player {number} of the pool")
        self.players = list(players)

    def start_episode(self, env: Any, agent: str, rng: random.Random) -> Player:
        return _start(rng.choice(self.players), env, agent, rng)


def start_episode(player: Player | EpisodicPlayer, env: Any, agent: str) -> Player:
    """Return the player of an agent in the running episode."""
    return _start(player, env, agent, env.stream_of(f"{agent} player"))


def _start(player: Any, env: Any, agent: str, rng: random.Random) -> Player:
    started = player.start_episode(env, agent, rng) if hasattr(player, "start_episode") else player
    return cast(Player, started)


@contextmanager
def failures_of(agent: str) -> Iterator[None]:
    """Raise exceptions of an agent's player as InfraError, and a CallerError as BadValue, that name the agent."""
    try:
        yield
    except Exception as e:
        kind = BadValue if isinstance(e, CallerError) else InfraError
        cause = str(e) if type(e) is kind else f"{type(e).__name__}: {e}"
        raise kind(f"the player of {agent} failed: {cause}") from e


def _check_player(player: Any, name: str) -> None:
    if hasattr(player, "max_prompt_tokens"):  # of policies only
        kind = type(player).__name__
        raise BadValue(f"{name} is a policy, {kind}; gem.rollout.PolicyPlayer(policy) makes a player of it")
    if not (hasattr(player, "act") or hasattr(player, "start_episode")):
        raise BadValue(f"{name} needs act(env, agent, rng), see gem.multiagent.Player; got {short_repr(player)}")


class OneSeat(EnvWrapper):
    """One agent's view of an environment with several agents, as an ordinary environment.

    The other agents are played whenever they are to act. Their random choices depend on the seed and on how many
    actions they have taken, so an episode is determined by the seed and the actions. A reward that comes while others
    act belongs to the step before. A player that raises makes step() or reset() raise InfraError, or BadValue if it
    raised CallerError.

    Args:
        env: the environment.
        agent: the agent that reset() and step() are for; None stands for the first possible agent.
        others: a player for each other agent. Several environments may share them, also on threads.

    Raises:
        BadValue: the agent is unknown, others does not have a player for each of the other agents, or one is a policy,
            which gem.rollout.PolicyPlayer makes a player.
    """

    env: MultiAgentEnv

    def __init__(
        self,
        env: MultiAgentEnv,
        agent: str | None = None,
        others: Mapping[str, Player | EpisodicPlayer] | None = None,
    ) -> None:
        super().__init__(env)
        agents, others = list(env.possible_agents), dict(others or {})
        self.agent = agents[0] if agent is None else agent
        if self.agent not in agents:
            raise BadValue(f"no agent {self.agent!r}{did_you_mean(self.agent, agents)}")
        if set(others) != (needed := set(agents) - {self.agent}):
            raise BadValue(f"others must have a player for each of {sorted(needed)}, got {sorted(others)}")
        for other, player in others.items():
            _check_player(player, f"the player of {other}")
        self.others = others
        self._actions, self._before, self._over = 0, 0.0, True
        self._playing: dict[str, Player] = {}  # by agent, in the running episode
        self._saved: dict[str, Any] = {}  # states of players that have not acted since set_state()

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        self.env.reset(seed=seed, **kwargs)
        self._actions, self._over = 0, False
        self._playing, self._saved = {}, {}
        self._before, info = self._continue({})
        return self.env.observe(self.agent), info

    def step(self, action: Any) -> Step:
        if self._over:
            raise EpisodeOver(f"{self!r} has no running episode; call reset()")
        reward, info = self._continue({self.agent: action})
        reward, self._before = reward + self._before, 0.0
        over, cut = self.env.terminations[self.agent], self.env.truncations[self.agent]
        self._over = over or cut
        return Step(self.env.observe(self.agent), reward, over, cut, info)

    def sample_random_action(self) -> str:
        """Return a random legal action; "" if the others have ended the game before the agent's first action."""
        return super().sample_random_action() if self._over or self.agent in self.env.agents else ""

    def own_state(self) -> Any:
        saved = {other: player.get_state() for other, player in self._playing.items() if hasattr(player, "get_state")}
        players = {**self._saved, **saved}
        return {"actions": self._actions, "before": self._before, "over": self._over, "players": players}

    def set_own_state(self, state: Any) -> None:
        self._actions, self._before, self._over = int(state["actions"]), float(state["before"]), bool(state["over"])
        self._playing, self._saved = {}, {other: state["players"][other] for other in state["players"]}

    def _continue(self, own: dict[str, Any]) -> tuple[float, Info]:
        """Play on with the agent's action, if any, until the agent is to act or has left. Returns its reward and info.

        Others may end the game before the agent's first action, which then has no effect.
        """
        env, agent, total = self.env, self.agent, 0.0
        info: Info = dict(env.infos[agent])
        while agent in env.agents:
            active = env.active_agents()
            if agent in active and not own:
                break
            actions = {other: own.get(other) if other == agent else self._act(other) for other in active}
            total += env.step(actions)[1][agent]
            info.update(env.infos[agent])
            own = {} if agent in active else own
        return total, info

    def _act(self, other: str) -> Any:
        rng = self.env.stream_of(f"{other} {self._actions}")
        self._actions += 1
        with failures_of(other):
            return self._player(other).act(self.env, other, rng)

    def _player(self, other: str) -> Player:
        """Return the player of an agent in the running episode, with the state that set_state() left for it."""
        if (player := self._playing.get(other)) is None:
            player = start_episode(self.others[other], self.env, other)
            if other in self._saved:
                if not hasattr(player, "set_state"):
                    raise BadValue("the state of the environment is from an episode with another player")
                player.set_state(self._saved[other])
                del self._saved[other]
            self._playing[other] = player
        return player


def as_single_agent(
    env: MultiAgentEnv, agent: str | None = None, others: Mapping[str, Player | EpisodicPlayer] | None = None
) -> OneSeat:
    """Return one agent's view of an environment with several agents as an ordinary Env. See OneSeat."""
    return OneSeat(env, agent, others)
