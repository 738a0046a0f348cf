"""Measure the games: time and memory, the scores of simple players, and the order of the levels.

  python benchmarks/games.py                               all games, on 400 seeds
  python benchmarks/games.py 'game:Sokoban*' --seeds 100 --part scores
  python benchmarks/games.py --part scores --store         also write the scores that `gem info` prints
  python benchmarks/games.py --part stored                 print the stored scores

Speed is that of `step` alone on random legal actions, on one core; ratios are to GuessTheNumber in the same run.
The players are described in gem.envs.games.players. Exits with 1 if a level is won less often than a harder one, by
more than the 95 % interval and not because of published parameters (INVERTED).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import gem
from gem.envs.games import players
from gem.envs.games.baselines import EPSILONS, INVERTED, Baselines, families, inversions, stored
from gem.evaluation.metrics import wilson_interval

BASELINE = "game:GuessTheNumber-v0"
LEAST_STEPS = {"game:GuessTheNumber": 100_000}  # steps/s; 20,000 for the other families
AIMS = "All reach 20,000 steps/s, GuessTheNumber 100,000, and 10,000 live environments of any game fit in 1 GiB."
LIVE = 200  # environments alive while memory is measured
# Slow oracles play fewer games.
ORACLE_SEEDS = {
    "game:Rooms-v0": 60,
    "game:Rooms-v0-hard": 20,
    "game:Game2048-v0-hard": 20,
    "game:Game2048-v0-extreme-hard": 12,
    "game:Sokoban-v0-hard": 100,
    "game:Sokoban-v0-random": 50,
}
ENOUGH = 400  # games above which a win rate is printed without its interval
MOST_RANDOM = 0.25  # of the oracle's mean: limit of the mean of random legal play in the episodes that it does not win
STORED = Path(__file__).parent.parent / "src" / "gem" / "envs" / "games" / "data" / "baselines.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="game:*")
    parser.add_argument("--seeds", type=int, default=400, help="number of games that each player plays")
    parser.add_argument("--part", choices=["all", "speed", "scores", "stored"], default="all")
    parser.add_argument("--store", action="store_true", help=f"write the scores to {STORED.name}")
    args = parser.parse_args()
    ids = [spec.id for spec in gem.list_envs(args.pattern)]
    if not ids:
        print(f"no environment matches {args.pattern!r}", file=sys.stderr)
        return 2
    if args.part in ("all", "speed"):
        print_speed(ids)
    if args.part == "speed":
        return 0
    if args.part == "stored":
        rows = {env_id: stored()[env_id] for env_id in ids}
    else:
        rows = {env_id: measure(env_id, args.seeds) for env_id in ids}
    if args.store:
        kept = json.loads(STORED.read_text()) | {env_id: asdict(row) for env_id, row in rows.items()}
        STORED.write_text(json.dumps(dict(sorted(kept.items())), indent=0) + "\n")
    print_scores(rows)
    return print_ladders(rows)


def print_speed(ids: Sequence[str]) -> None:
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


def print_scores(rows: Mapping[str, Baselines]) -> None:
    print("\n# Scores\n")
    columns = [
        "id",
        "games",
        "oracle's games",
        "oracle sees",
        "oracle",
        "wins",
        "its turns",
        "random legal",
        "wins",
        "not won",
    ]
    table(*columns, "of the oracle's", "fixed order", "wins", "best sequence", "wins")
    too_much = []
    for env_id, scores in rows.items():
        ratio = scores.random.not_won / scores.oracle.mean
        if ratio > MOST_RANDOM:
            too_much.append(env_id)
        row(
            env_id,
            scores.episodes,
            scores.oracle_episodes,
            gem.ENV_REGISTRY[env_id].oracle_sees,
            f"{scores.oracle.mean:.3f}",
            win_rate(scores.oracle.wins, scores.oracle_episodes),
            f"{scores.oracle.turns:.2f}",
            f"{scores.random.mean:.3f}",
            f"{scores.random.wins:.3f}",
            f"{scores.random.not_won:.3f}",
            f"{ratio:.2f}",
            f"{scores.ordered.mean:.3f}",
            f"{scores.ordered.wins:.3f}",
            f"{scores.open_loop.mean:.3f}",
            f"{scores.open_loop.wins:.3f}",
        )
    print(f"\nRandom legal play earns over {MOST_RANDOM} of the oracle's mean in games that it does not win:")
    print(", ".join(too_much) or "none")


def measure(env_id: str, seeds: int) -> Baselines:
    sequence, played = players.search_open_loop(env_id), range(seeds)
    few = range(min(seeds, ORACLE_SEEDS.get(env_id, seeds)))
    return Baselines(
        episodes=len(played),
        oracle_episodes=len(few),
        oracle=players.score(env_id, players.oracle_player(), few),
        random=players.score(env_id, players.random_player, played),
        ordered=players.score(env_id, players.ordered_player, played),
        open_loop=players.score(env_id, players.open_loop_player(sequence), played),
        sequence=sequence,
        noisy_wins=tuple(players.score(env_id, players.oracle_player(e), few).wins for e in EPSILONS),
    )


def print_ladders(rows: Mapping[str, Baselines]) -> int:
    """Print the win rates of the oracle with random moves by level. Returns the exit status."""
    print("\n# Levels: games won by the oracle if each action is a random legal one with probability ε\n")
    table("id", *(f"ε = {epsilon:g}" for epsilon in (0, *EPSILONS, 1)), "oracle's games")
    for levels in families(rows).values():
        for env_id in levels:
            scores = rows[env_id]
            games = {epsilon: scores.episodes if epsilon == 1 else scores.oracle_episodes for epsilon in scores.ladder}
            wins = (win_rate(wins, games[epsilon]) for epsilon, wins in scores.ladder.items())
            row(env_id, *wins, scores.oracle_episodes)
    print("\nLevels won less often than the next harder one, beyond the 95 % interval:\n")
    unexplained = 0
    for inversion in inversions(rows):
        reason = INVERTED.get((inversion.easier, inversion.harder))
        unexplained += reason is None
        print(f"- {inversion.easier} before {inversion.harder}, ε = {inversion.epsilon:g}: {reason or 'UNEXPLAINED'}")
    return 1 if unexplained else 0


def win_rate(wins: float, games: int) -> str:
    """Return a win rate, with its 95 % interval if there are fewer than 400 games."""
    if games >= ENOUGH:
        return f"{wins:.3f}"
    interval = wilson_interval(round(wins * games), games)
    return f"{wins:.3f} [{interval.low:.2f}, {interval.high:.2f}]"


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


def table(*columns: str) -> None:
    row(*columns)
    print("|" + "---|" * len(columns))


def row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
