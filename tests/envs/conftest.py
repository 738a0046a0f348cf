"""Fixtures shared by the tests of environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gem.core import Step

Act = Callable[[str], str]


@pytest.fixture(scope="session")
def play() -> Callable[[Any, Act, int], tuple[float, Step]]:
    """A function that plays one episode: (env, act, seed) -> (total reward, last step).

    ``act`` maps the last observation to an action.
    """

    def play_episode(env: Any, act: Act, seed: int) -> tuple[float, Step]:
        observation, _ = env.reset(seed=seed)
        total = 0.0
        while True:
            step = env.step(act(observation))
            observation, total = step.observation, total + step.reward
            if step.terminated or step.truncated:
                return total, step

    return play_episode
