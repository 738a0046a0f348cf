"""Play and print an episode, under the published names. New code should use gem.rollout and ``gem play``.

Each function plays an environment, or a vector environment with a policy from the list of observations to the list of
actions, until the episode is over in every slot. It plays max_steps steps with ignore_done, at most so many without.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Callable, Mapping
from pprint import pprint
from typing import Any

import numpy as np

Policy = Callable[[Any], Any]


def ppprint(x: Any) -> None:
    """Pretty-print a value."""
    pprint(x)


def run_and_print_episode(env: Any, policy: Policy, ignore_done: bool = False, max_steps: float = 1e9) -> None:
    observation = _shown(env.reset()[0])
    for _ in range(int(max_steps)):
        observation, over = _printed(action := policy(observation), env.step(action))
        if over and not ignore_done:
            return


async def run_and_print_episode_async(
    env: Any, policy: Policy, ignore_done: bool = False, max_steps: float = 1e9
) -> None:
    """Play with a policy that may be a coroutine function. The environment is called on a thread."""
    observation = _shown((await asyncio.to_thread(env.reset))[0])
    for _ in range(int(max_steps)):
        action = policy(observation)
        action = await action if inspect.isawaitable(action) else action
        observation, over = _printed(action, await asyncio.to_thread(env.step, action))
        if over and not ignore_done:
            return


def run_and_print_episode_with_selective_step(
    env: Any, policy: Policy, ignore_done: bool = False, max_steps: float = 1e9
) -> None:
    """Step a random part of the slots each time, or those of the policy's actions if it returns a dict."""
    observations, ended = list(_shown(env.reset()[0])), np.zeros(env.num_envs, dtype=bool)
    for _ in range(int(max_steps)):
        actions = policy(observations)
        if not isinstance(actions, Mapping):
            slots = random.sample(range(env.num_envs), random.randint(1, env.num_envs))
            actions = {slot: actions[slot] for slot in sorted(slots)}
        step = env.step(actions)
        _printed(actions, step)
        for slot, observation, terminated, truncated in zip(actions, *step[:1], *step[2:4], strict=True):
            observations[slot], ended[slot] = observation, ended[slot] or terminated or truncated
        if ended.all() and not ignore_done:
            return


def _shown(observation: Any) -> Any:
    print(observation)
    return observation


def _printed(action: Any, step: Any) -> tuple[Any, bool]:
    observation, reward, terminated, truncated, info = step
    print(f"--- {action}\n{observation}\nreward {reward}, terminated {terminated}, truncated {truncated}\n{info}")
    return observation, bool(np.all(np.logical_or(terminated, truncated)))
