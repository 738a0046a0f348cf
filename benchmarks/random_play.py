"""How games between two random players end: wins of the first and of the second player, and draws, in shares of games.

  nice -n 19 python benchmarks/random_play.py                  40,000 games of each id, some minutes
  nice -n 19 python benchmarks/random_play.py --games 2000

In poker, a win is a positive reward.
"""

from __future__ import annotations

import argparse
import sys

import gem
from gem.seeding import stream

GAMES = 40_000


def outcomes(env_id: str, games: int) -> list[int]:
    """Return the numbers of wins of the first player, of the second player, and of draws. Plays by the rules alone."""
    game, counts = gem.make(env_id, opponent=None), [0, 0, 0]
    for number in range(games):
        rng = stream("random play", number)
        position = game.deal(rng)
        while game.to_move(position) is not None:
            position = game.after(position, rng.choice(game.moves(position)))
        first = game.scores(position)[0]
        counts[0 if first > 0 else 1 if first < 0 else 2] += 1
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=GAMES)
    games = parser.parse_args().games
    print(f"<!-- Written by `python benchmarks/{' '.join(['random_play.py', *sys.argv[1:]])}` -->\n")
    print(f"# Random against random, in shares of {games:,} games\n")
    print("| id | first player wins | second player wins | draws |\n|---|---|---|---|")
    for env_id in (spec for spec in gem.ENV_REGISTRY if spec.startswith(("board:", "cards:"))):
        shares = [count / games for count in outcomes(env_id, games)]
        print(f"| `{env_id}` | {' | '.join(f'{share:.3f}' for share in shares)} |", flush=True)
    print(f"\nStandard errors are at most {0.5 / games**0.5:.4f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
