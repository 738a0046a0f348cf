"""How often the intervals of tournament ratings cover the true rating, in simulated tournaments.

  nice -n 19 python benchmarks/tournament.py            500 tournaments per row, some minutes
  nice -n 19 python benchmarks/tournament.py --quick    50 tournaments per row

Players have given Bradley-Terry ratings; each pair plays a number of deals of two games. "independent": both games of a
deal have their own luck. "shared": both have the same result, as when the cards decide. "draws": a third of the games
are drawn at equal ratings, and the expected points are those of the model. Nominal coverage is 95 %. A row outside 92
to 98 % is marked and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import itertools
import sys

import numpy as np

from gem.evaluation.ratings import rate

LEAST, MOST = 0.92, 0.98
FIELDS = {
    "5 players, 100 apart": np.linspace(-200, 200, 5),
    "5 players, equal": np.zeros(5),
    "3 players, 150 apart": np.linspace(-150, 150, 3),
    "8 players, 50 apart": np.linspace(-175, 175, 8),
}
KINDS, DRAWS = ("independent", "shared", "draws"), 300
ROWS = [*itertools.product(FIELDS, [20], KINDS), *itertools.product([next(iter(FIELDS))], [50], KINDS)]


def tournament(rng: np.random.Generator, true, deals: int, kind: str) -> dict[tuple[int, int], list[tuple[float, int]]]:
    found = {}
    for i, j in itertools.combinations(range(len(true)), 2):
        chance = 1 / (1 + 10 ** ((true[j] - true[i]) / 400))
        drawn = 2 * min(chance, 1 - chance) / 3 if kind == "draws" else 0.0  # half of it comes from wins and losses
        luck = rng.random((deals, 2))
        if kind == "shared":
            luck[:, 1] = luck[:, 0]
        points = np.where(luck < chance - drawn / 2, 1.0, np.where(luck < chance + drawn / 2, 0.5, 0.0))
        found[i, j] = [(float(total), 2) for total in points.sum(1)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    repeats = 50 if parser.parse_args().quick else 500
    print(f"<!-- Written by `python benchmarks/{' '.join(['tournament.py', *sys.argv[1:]])}` -->\n")
    print(f"# Coverage of nominal 95 % intervals of ratings, in % of {repeats:,} simulated tournaments per row\n")
    print(f"Each interval of each player counts once, from {DRAWS} draws. **Bold**: outside 92 to 98 %.\n")
    print("| true ratings | deals per pair | games of a deal | coverage | mean half width |\n|---|---|---|---|---|")
    outside = 0
    for cell, (name, deals, kind) in enumerate(ROWS):
        true, covered, widths = FIELDS[name], [], []
        for repeat in range(repeats):
            rng = np.random.default_rng([cell, repeat])
            found = rate(tournament(rng, true, deals, kind), len(true), draws=DRAWS, seed=repeat)
            covered += [e.low <= t <= e.high for e, t in zip(found, true, strict=True)]
            widths += [e.half_width for e in found]
        share = float(np.mean(covered))
        text = f"{100 * share:.1f}"
        if not LEAST <= share <= MOST:
            text, outside = f"**{text}**", outside + 1
        print(f"| {name} | {deals} | {kind} | {text} | {np.mean(widths):.0f} |", flush=True)
    print(f"\nRows outside: {outside}.")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
