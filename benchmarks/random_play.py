"""How games between two random players end: wins by seat, and draws, in shares of games.

  nice -n 19 python benchmarks/random_play.py                  40,000 games of each id, some minutes
  nice -n 19 python benchmarks/random_play.py --games 2000

A win is a higher reward than that of the other players; in Mafia, a side wins.
"""

from __future__ import annotations

import argparse
import sys

import gem
from gem.envs.table.random_play import OUTCOMES, SEATS, SIDES
from gem.seeding import stream

GAMES = 40_000


def outcomes(env_id: str, games: int) -> list[int]:
    """Return the numbers of wins by seat or side, and of draws. Plays by the rules alone."""
    game = gem.make(env_id, opponent=None)
    counts = [0] * (len(SIDES.get(env_id, game.seats)) + 1)
    for number in range(games):
        rng = stream("random play", number)
        position = game.deal(rng)
        while game.to_move(position) is not None:
            position = game.after(position, rng.choice(game.moves(position)))
        winner = game.winner(position)
        counts[-1 if winner is None else winner] += 1
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=GAMES)
    parser.add_argument("ids", nargs="*", help="all games if there is none")
    args = parser.parse_args()
    games = args.games
    print(f"<!-- Written by `python benchmarks/{' '.join(['random_play.py', *sys.argv[1:]])}` -->\n")
    print(f"# Random against random, in shares of {games:,} games\n")
    every = [env_id for env_id in gem.ENV_REGISTRY if env_id.startswith(("board:", "cards:", "talk:"))]
    header: tuple[str, ...] = ()
    for env_id in sorted(args.ids or every, key=lambda env_id: (env_id in SIDES, len(OUTCOMES.get(env_id, "")))):
        shares = [count / games for count in outcomes(env_id, games)]
        names = (*SIDES.get(env_id, SEATS)[: len(shares) - 1], "draws")
        if names != header:
            header = names
            print(f"\n| id | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
        print(f"| `{env_id}` | {' | '.join(f'{share:.3f}' for share in shares)} |", flush=True)
    print(f"\nStandard errors are at most {0.5 / games**0.5:.4f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
