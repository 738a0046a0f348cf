"""Measure the games: time and memory, the oracle's win rate, and the score of policies that ignore observations.

  python benchmarks/games.py                      all games, with the oracle on 1,000 seeds
  python benchmarks/games.py 'game:Sokoban*' --seeds 100

Speed is that of `step` alone on random legal actions, on one core; ratios are to GuessTheNumber in the same run.
Blind policies ignore observations: the best constant action among those sampled at random, and the best fixed sequence
of actions among replays of the oracle's games on other seeds and cycles of good constants. Both are selected on some
seeds and measured on others.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import gem
from gem.core import StopReason
from gem.policies import oracle

BASELINE = "game:GuessTheNumber-v0"
LEAST_STEPS = {"game:GuessTheNumber": 100_000}  # steps/s; 20,000 for the other families
AIMS = "All reach 20,000 steps/s, GuessTheNumber 100,000, and 10,000 live environments of any game fit in 1 GiB."
LIVE = 200  # environments alive while memory is measured
BLIND_CHOICE, BLIND_TEST = range(10_000, 10_040), range(20_000, 20_300)  # seeds
Act = Callable[[str], str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="game:*")
    parser.add_argument("--seeds", type=int, default=1000, help="number of games that the oracle plays")
    args = parser.parse_args()
    ids = [spec.id for spec in gem.list_envs(args.pattern)]
    if not ids:
        print(f"no environment matches {args.pattern!r}", file=sys.stderr)
        return 2
    base = steps_per_second(BASELINE)
    print(f"# Speed and memory (Python {sys.version.split()[0]}, one core)\n")
    table(
        "id",
        "make ms",
        "reset ms, median",
        "worst of 1,000",
        "step µs",
        "steps/s",
        f"of {BASELINE}",
        "KiB per live env",
    )
    missed = []
    for env_id in ids:
        resets, rate, size = reset_seconds(env_id, 1000), steps_per_second(env_id), bytes_per_env(env_id)
        if rate < LEAST_STEPS.get(env_id.split("-v0")[0], 20_000) or size * 10_000 > 2**30:
            missed.append(env_id)
        row(
            env_id,
            f"{1e3 * statistics.median(make_seconds(env_id) for _ in range(9)):.2f}",
            f"{1e3 * statistics.median(resets):.3f}",
            f"{1e3 * max(resets):.2f}",
            f"{1e6 / rate:.1f}",
            f"{rate:,.0f}",
            f"{rate / base:.2f}",
            f"{size / 1024:.1f}",
        )
    print("\nBelow the targets: " + ", ".join(missed) if missed else f"\n{AIMS}")
    print(f"\n# Scores ({args.seeds} games of the oracle, {len(BLIND_TEST)} of each blind policy)\n")
    columns = ["id", "oracle sees", "oracle wins", "its mean reward", "its turns"]
    table(*columns, "best constant", "of the oracle's", "best open-loop")
    for env_id in ids:
        games = [play(env_id, s) for s in range(args.seeds)]
        won = [turns for _, turns, solved, _ in games if solved]
        constant, sequence = blind(env_id, games)
        best, mean = mean_of(env_id, [constant], BLIND_TEST), statistics.fmean(total for total, *_ in games)
        row(
            env_id,
            gem.ENV_REGISTRY[env_id].oracle_sees,
            f"{len(won) / len(games):.3f}",
            f"{mean:.3f}",
            f"{statistics.fmean(won):.2f}" if won else "-",
            f"{best:.3f}",
            f"{best / mean:.2f}",
            f"{mean_of(env_id, sequence, BLIND_TEST):.3f}",
        )
    return 0


def make_seconds(env_id: str) -> float:
    start = time.perf_counter()
    gem.make(env_id)
    return time.perf_counter() - start


def reset_seconds(env_id: str, seeds: int) -> list[float]:
    env = gem.make(env_id)
    env.reset(seed=0)  # load tables that are read once
    seconds = []
    for seed in range(seeds):
        start = time.perf_counter()
        env.reset(seed=seed)
        seconds.append(time.perf_counter() - start)
    return seconds


def steps_per_second(env_id: str, steps: int = 3000) -> float:
    """Return the best of three runs, since other work on the machine can only slow a run down."""
    rates = []
    for run in range(3):
        env, spent, done, seed = gem.make(env_id), 0.0, 0, 1000 * run
        while done < steps:
            env.reset(seed=seed)
            seed, over = seed + 1, False
            while not over and done < steps:
                action = env.sample_random_action()
                start = time.perf_counter()
                _, _, terminated, truncated, _ = env.step(action)
                spent += time.perf_counter() - start
                done, over = done + 1, terminated or truncated
        rates.append(done / spent)
    return max(rates)


def bytes_per_env(env_id: str) -> float:
    gem.make(env_id).reset(seed=0)
    tracemalloc.start()
    alive = [gem.make(env_id) for _ in range(LIVE)]
    for seed, env in enumerate(alive):
        env.reset(seed=seed)
        env.step(env.sample_random_action())
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return size / len(alive)


def play(env_id: str, seed: int, act: Act | None = None) -> tuple[float, int, bool, list[str]]:
    """Play one game, by default with the oracle. Returns total reward, turns, whether it was won, and the actions."""
    env: Any = gem.make(env_id)
    observation, _ = env.reset(seed=seed)
    if act is None:
        act = oracle(env).act
    rewards: list[float] = []
    actions: list[str] = []
    over, info = False, {}
    while not over:
        actions.append(act(observation))
        observation, reward, terminated, truncated, info = env.step(actions[-1])
        rewards.append(reward)
        over = terminated or truncated
    return math.fsum(rewards), len(rewards), info["stop_reason"] == StopReason.SOLVED, actions


def mean_of(env_id: str, sequence: Sequence[str], seeds: Sequence[int]) -> float:
    """Return the mean reward of repeating the same sequence of actions in every game."""
    totals = []
    for seed in seeds:
        turn = iter(range(1_000_000))
        totals.append(play(env_id, seed, lambda _, turn=turn: sequence[next(turn) % len(sequence)])[0])
    return statistics.fmean(totals)


def blind(env_id: str, games: Sequence[tuple[float, int, bool, list[str]]]) -> tuple[str, list[str]]:
    """Return the best constant action and the best fixed sequence among the candidates."""
    env = gem.make(env_id)
    candidates: dict[str, None] = {}
    for seed in range(40):
        env.reset(seed=seed)
        candidates.update(dict.fromkeys(env.sample_random_action() for _ in range(3)))
    candidates.update(dict.fromkeys(actions[0] for *_, actions in games[:20]))
    quick = BLIND_CHOICE[:10]
    ranked = sorted(list(candidates)[:120], key=lambda action: -mean_of(env_id, [action], quick))[:6]
    constant = max(ranked, key=lambda action: mean_of(env_id, [action], BLIND_CHOICE))
    cycles = [[a, b] for a in ranked[:4] for b in ranked[:4]] + [ranked]
    replays = [actions for *_, actions in games[:12]]
    return constant, max(cycles + replays, key=lambda sequence: mean_of(env_id, sequence, BLIND_CHOICE[:20]))


def table(*columns: str) -> None:
    row(*columns)
    print("|" + "---|" * len(columns))


def row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
