"""web:Forms: success of simple players per kind and level, and speed.

    python benchmarks/forms.py              # prints the rows of benchmarks/results/web.md
    python benchmarks/forms.py --seeds 100

Times are CPU seconds of one process, so that other programs on the machine do not change them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "envs" / "web" / "forms"))
from forms_reader import Reader

from gem.envs.web.forms.env import SITES, FormsEnv


class StopsAtOnce:
    def __init__(self, env: FormsEnv) -> None: ...

    def act(self, observation: str) -> str:
        return "stop []"


class ClicksAtRandom:
    """Plays random elements that the page has, and stops after some of them."""

    def __init__(self, env: FormsEnv) -> None:
        self.env = env

    def act(self, observation: str) -> str:
        return self.env.sample_random_action()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    config = parser.parse_args()
    print("| kind | level | reads pages (Reader) | turns | stops at once | random elements | step |")
    print("|---|---|---|---|---|---|---|")
    for kind in SITES:
        for level in (1, 2, 3):
            env = FormsEnv(kind=kind, level=level)
            start = time.process_time()
            won, turns = rate(env, Reader, config.seeds)
            step_us = 1e6 * (time.process_time() - start) / (turns * config.seeds)
            others = [rate(env, player, config.seeds // 5)[0] for player in (StopsAtOnce, ClicksAtRandom)]
            print(
                f"| {kind} | {level} | {won:.3f} | {turns:.1f} | {others[0]:.3f} | {others[1]:.3f} | {step_us:.0f} µs |"
            )


def rate(env: FormsEnv, player: Callable[[Any], Any], seeds: int) -> tuple[float, float]:
    """Return the success rate of a player and its mean number of turns."""
    won = turns = 0
    for seed in range(seeds):
        observation, _ = env.reset(seed=seed)
        agent = player(env)
        while True:
            step = env.step(agent.act(observation))
            observation = step.observation
            if step.terminated or step.truncated:
                break
        won, turns = won + (step.reward == 1.0), turns + env.turn
    return won / seeds, turns / seeds


if __name__ == "__main__":
    main()
