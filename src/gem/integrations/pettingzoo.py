"""Environments with several agents as PettingZoo environments (extra [pettingzoo]).

Observations are dicts with a Text under "text"; actions are Text. For games whose moves can be listed (gem.envs.table),
actions may be Discrete: the number of a move in ``every_move()``, with a mask of the legal ones under "action_mask".
``stop_reason`` and ``invalid`` are in the infos.

>>> import gem
>>> aec = to_pettingzoo(gem.make("board:TicTacToe-v0", opponent=None))
>>> aec.reset(seed=0)
>>> aec.observe(aec.agent_selection)["action_mask"].tolist()
[1, 1, 1, 1, 1, 1, 1, 1, 1]
"""

from __future__ import annotations

import string
from typing import Any, cast

from gem.errors import BadValue, require
from gem.multiagent import MultiAgentEnv

require("pettingzoo", extra="pettingzoo")

import numpy as np  # noqa: E402
from gymnasium import spaces  # noqa: E402
from pettingzoo import AECEnv, ParallelEnv  # noqa: E402

__all__ = [
    "to_pettingzoo",
]

LONGEST = 100_000  # characters of an observation or action in a Text space
_CHARACTERS = frozenset(string.printable + "‹›¦…")  # with those that stand for others in messages of players


def to_pettingzoo(env: MultiAgentEnv, *, parallel: bool = False, discrete: bool = True) -> AECEnv | ParallelEnv:
    """Return an environment as an AECEnv, or as a ParallelEnv.

    Args:
        env: the environment; closed with the result.
        parallel: return a ParallelEnv. Actions of agents whose turn it is not are ignored.
        discrete: use Discrete actions with a mask if the moves of the environment can be listed.

    Raises:
        BadValue: env is not a MultiAgentEnv.
    """
    if not isinstance(env, MultiAgentEnv):
        raise BadValue(f"env must be a MultiAgentEnv, such as gem.make(…, opponent=None), got {type(env).__name__}")
    moves = env.every_move() if discrete else []
    return _Parallel(env, moves) if parallel else _Aec(env, moves)


class _Spaces:
    """What both interfaces share: spaces, observations with masks, and the translation of actions."""

    render_mode = None

    def __init__(self, env: MultiAgentEnv, moves: list[str]) -> None:
        self.env, self.moves = env, moves
        self.metadata = {"name": str(env.env_id or type(env).__name__), "render_modes": [], "is_parallelizable": True}
        self.possible_agents = list(env.possible_agents)
        text = spaces.Text(LONGEST, min_length=0, charset=_CHARACTERS)
        mask = spaces.Box(0, 1, (len(moves),), np.int8)
        seen = spaces.Dict({"text": text, "action_mask": mask} if moves else {"text": text})
        self.observation_spaces = dict.fromkeys(self.possible_agents, seen)
        self.action_spaces = {
            agent: spaces.Discrete(len(moves)) if moves else spaces.Text(LONGEST, min_length=0, charset=_CHARACTERS)
            for agent in self.possible_agents
        }

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    def observe(self, agent: str) -> Any:
        observation: dict[str, Any] = {"text": str(self.env.observe(agent))}
        if self.moves:
            legal = set(cast(Any, self.env).legal_moves()) if agent in self.env.active_agents() else set()
            observation["action_mask"] = np.array([move in legal for move in self.moves], np.int8)
        return observation

    def text_of(self, action: Any) -> str:
        return rf"\boxed{{{self.moves[int(action)]}}}" if self.moves else str(action)

    def close(self) -> None:
        self.env.close()

    def render(self) -> None:
        return None


class _Aec(_Spaces, AECEnv):  # type: ignore[misc]  # PettingZoo has no type hints
    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        _, infos = self.env.reset(seed=seed)
        self.agents = list(self.env.agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = (dict.fromkeys(self.agents, False) for _ in range(2))
        self.infos = infos
        self.agent_selection = self.env.active_agents()[0]

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        _, rewards, terminations, truncations, infos = self.env.step({agent: self.text_of(action)})
        self.rewards, self.terminations, self.truncations, self.infos = rewards, terminations, truncations, infos
        self._accumulate_rewards()
        active = self.env.active_agents()
        self.agent_selection = active[0] if active else self.agents[0]
        self._deads_step_first()


class _Parallel(_Spaces, ParallelEnv):  # type: ignore[misc]
    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        _, infos = self.env.reset(seed=seed)
        self.agents = list(self.env.agents)
        return {agent: self.observe(agent) for agent in self.agents}, infos

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        active = self.env.active_agents()
        _, rewards, terminations, truncations, infos = self.env.step(
            {agent: self.text_of(actions[agent]) for agent in active}
        )
        seen = {agent: self.observe(agent) for agent in self.agents}
        self.agents = list(self.env.agents)
        return seen, rewards, terminations, truncations, infos
