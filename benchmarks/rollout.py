"""The cost of collecting episodes, as a multiple of a hand-written loop over the same environments.

  python benchmarks/rollout.py             60 rounds, less than a minute
  python benchmarks/rollout.py --quick     10 rounds

Each round times, in turn: a loop that steps the environments and resets those that ended; a loop that also queries a
policy and records its turns; the vector environment alone; and the collector. All play the same script on 64 slots.
Times are CPU times, and ratios are paired by round, so that other load on the machine affects both sides alike. Exit
code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import gem
from gem.policies import Request, ScriptedPolicy
from gem.rollout import Collector
from gem.trajectory import Turn
from gem.wrappers import get_wrapper_fns
from table import Line, ratios, report

SLOTS, STEPS = 64, 28  # steps per slot and measurement, which is a batch of the collector
GUESSES = [rf"\boxed{{{n}}}" for n in (25, 12, 37, 6, 44, 18, 31)]
CODES = [rf"\boxed{{{code}}}" for code in ("1234", "2345", "3456", "4561", "5612", "6123")]
WORDS = [rf"\boxed{{{word}}}" for word in ("crane", "slate", "pound", "might", "jumpy", "black")]
CASES = {  # name: environment, wrappers, script
    "GuessTheNumber": ("game:GuessTheNumber-v0", "", GUESSES),
    "GuessTheNumber, concat": ("game:GuessTheNumber-v0", "concat", GUESSES),
    "Mastermind": ("game:Mastermind-v0", "", CODES),
    "Wordle": ("game:Wordle-v0", "", WORDS),
}


def make_envs(env_id: str, wrappers: str) -> list[Any]:
    envs: list[Any] = []
    for seed in range(SLOTS):
        env: Any = gem.make(env_id, seed=seed)
        for wrap in get_wrapper_fns(wrappers):
            env = wrap(env)
        env.reset()
        envs.append(env)
    return envs


def raw_loop(env_id: str, wrappers: str, script: list[str]) -> Callable[[], int]:
    envs, turns, last = make_envs(env_id, wrappers), [0] * SLOTS, len(script) - 1

    def step() -> int:
        for slot, env in enumerate(envs):
            _, _, terminated, truncated, _ = env.step(script[min(turns[slot], last)])
            turns[slot] += 1
            if terminated or truncated:
                turns[slot] = 0
                env.reset()
        return SLOTS

    return step


def recording_loop(env_id: str, wrappers: str, script: list[str]) -> Callable[[], int]:
    """A loop that does by hand what the collector does for a text policy: one act() per step, and one Turn per slot."""
    envs, policy = make_envs(env_id, wrappers), ScriptedPolicy(script)
    observations: list[Any] = [env.reset()[0] for env in envs]
    episodes: list[list[Turn]] = [[] for _ in envs]

    def step() -> int:
        replies = policy.act(
            [
                Request(o, [], (i, 0, len(t)), str, t)
                for i, (o, t) in enumerate(zip(observations, episodes, strict=True))
            ]
        )
        for slot, (env, reply) in enumerate(zip(envs, replies, strict=True)):
            observation, reward, terminated, truncated, _ = env.step(reply.text)
            episodes[slot].append(Turn(observations[slot], reply.text, reward=reward))
            observations[slot] = observation
            if terminated or truncated:
                observations[slot], _ = env.reset()
                episodes[slot] = []
        return SLOTS

    return step


def vector_loop(env_id: str, wrappers: str, script: list[str]) -> Callable[[], int]:
    vec_env = gem.make_vec(env_id, get_wrapper_fns(wrappers), [{"seed": seed} for seed in range(SLOTS)], backend="sync")
    vec_env.reset()
    turns, last = [0] * SLOTS, len(script) - 1

    def step() -> int:
        result = vec_env.step([script[min(turn, last)] for turn in turns])
        for slot, ended in enumerate((result.terminated_B | result.truncated_B).tolist()):
            turns[slot] = 0 if ended else turns[slot] + 1
        return SLOTS

    return step


def collector_loop(env_id: str, wrappers: str, script: list[str]) -> Callable[[], int]:
    vec_env = gem.make_vec(env_id, get_wrapper_fns(wrappers), [{"seed": seed} for seed in range(SLOTS)], backend="sync")
    collector, policy = Collector(vec_env), ScriptedPolicy(script)

    def step() -> int:
        return sum(len(episode.turns) for episode in collector.collect(policy, transitions=SLOTS * STEPS))

    return step


def measure(case: str, rounds: int) -> list[Line]:
    loops = {
        "raw loop": raw_loop,
        "recording loop": recording_loop,
        "vector": vector_loop,
        "collector": collector_loop,
    }
    steps = {name: make(*CASES[case]) for name, make in loops.items()}
    seconds: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(rounds):
        for name, step in steps.items():
            start, done = time.process_time(), 0
            while done < STEPS * SLOTS:
                done += step()
            seconds[name].append(1e6 * (time.process_time() - start) / done)
    raw = seconds["raw loop"]
    return [
        Line(f"{case}: raw loop", raw, "µs of CPU per step"),
        Line(f"{case}: vector / raw loop", ratios(seconds["vector"], raw), "×"),
        Line(f"{case}: collector / raw loop", ratios(seconds["collector"], raw), "×", 2.0, True),
        Line(f"{case}: collector / recording loop", ratios(seconds["collector"], seconds["recording loop"]), "×"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10 rounds instead of 60")
    rounds = 10 if parser.parse_args().quick else 60
    return report("Rollout", f"{rounds} rounds", [line for case in CASES for line in measure(case, rounds)])


if __name__ == "__main__":
    sys.exit(main())
