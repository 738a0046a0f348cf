"""How often the intervals of evaluations cover the true value, in simulated evaluations.

  nice -n 19 python benchmarks/coverage.py            2,000 evaluations per cell, a few minutes
  nice -n 19 python benchmarks/coverage.py --quick    200 evaluations per cell

The success rate of each task is drawn from Beta(.5, .5) or Beta(2, 2), and its rollouts succeed independently with
that rate. Nominal coverage is 95 %. A cell outside 92 to 98 % is marked and makes the exit code 1. "i.i.d." is the
interval that takes all rollouts for independent samples, for comparison. The paired difference is between two runs of
one model, whose true difference is 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gem.evaluation.metrics import (
    Estimate,
    bootstrap_interval,
    mean_interval,
    paired_difference,
    pass_at_k,
    pass_hat_k,
    wilson_interval,
)

TASKS, ROLLOUTS, SHAPES = (30, 100, 500), (1, 4, 16), (0.5, 2.0)
LEAST, MOST = 0.92, 0.98
K = 4
BOOTSTRAPS = 1000  # evaluations per cell for the bootstrap, which is slower


def evaluation(rng: np.random.Generator, rates: Any, rollouts: int) -> list[list[int]]:
    return rng.binomial(1, rates[:, None], size=(len(rates), rollouts)).tolist()


def per_task(estimate: Callable[[int, int, int], float], runs: list[list[int]]) -> list[list[float]]:
    return [[estimate(len(rollouts), sum(rollouts), K)] for rollouts in runs]


def moments(shape: float) -> tuple[float, float]:
    """The true pass@K and pass^K over tasks whose rate is Beta(shape, shape): 1 - E[(1-p)^K] and E[p^K]."""
    power = float(np.prod([(shape + i) / (2 * shape + i) for i in range(K)]))
    return 1 - power, power


def cell(tasks: int, rollouts: int, shape: float, repeats: int, seed: int) -> dict[str, tuple[float, int]]:
    """Return the coverage of each interval and the number of evaluations that it is from."""
    rng = np.random.default_rng(seed)
    at_k, hat_k = moments(shape)
    covered: dict[str, list[bool]] = {}

    def count(name: str, interval: Estimate, true: float) -> None:
        covered.setdefault(name, []).append(interval.low <= true <= interval.high)

    for repeat in range(repeats):
        rates = rng.beta(shape, shape, size=tasks)
        runs = evaluation(rng, rates, rollouts)
        count("mean", mean_interval(runs), 0.5)
        count("i.i.d.", wilson_interval(sum(map(sum, runs)), tasks * rollouts), 0.5)
        count("paired difference", paired_difference(runs, evaluation(rng, rates, rollouts)).difference, 0.0)
        if rollouts >= K:
            count(f"pass@{K}", mean_interval(per_task(pass_at_k, runs), bounds=(0, 1)), at_k)
            count(f"pass^{K}", mean_interval(per_task(pass_hat_k, runs), bounds=(0, 1)), hat_k)
        if repeat < min(BOOTSTRAPS, repeats):
            means = np.array(runs).mean(axis=1).tolist()
            count("bootstrap", bootstrap_interval(means, lambda m: sum(m) / len(m), draws=400, seed=repeat), 0.5)
    return {name: (sum(hits) / len(hits), len(hits)) for name, hits in covered.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    repeats = 200 if parser.parse_args().quick else 2000
    names = ["mean", f"pass@{K}", f"pass^{K}", "paired difference", "bootstrap", "i.i.d."]
    print(f"<!-- Written by `python benchmarks/{' '.join(['coverage.py', *sys.argv[1:]])}` -->\n")
    print(f"# Coverage of nominal 95 % intervals, in % of {repeats:,} simulated evaluations per cell\n")
    print(f"The bootstrap is from {min(BOOTSTRAPS, repeats):,} evaluations per cell. **Bold**: outside 92 to 98 %.\n")
    print("| success rates of tasks | tasks | rollouts | " + " | ".join(names) + " |")
    print("|---" * (3 + len(names)) + "|")
    outside = []
    for seed, (shape, tasks, rollouts) in enumerate((s, t, r) for s in SHAPES for t in TASKS for r in ROLLOUTS):
        found = cell(tasks, rollouts, shape, repeats, seed)
        cells = []
        for name in names:
            share, count = found.get(name, (None, 0))
            bad = share is not None and not LEAST <= share <= MOST
            text = "" if share is None else f"{100 * share:.1f}"
            cells.append(f"**{text}**" if bad else text)
            if bad and name != "i.i.d.":
                outside.append(f"{name}, Beta({shape:g}, {shape:g}), {tasks} tasks, {rollouts} rollouts ({count} runs)")
        print(f"| Beta({shape:g}, {shape:g}) | {tasks} | {rollouts} | " + " | ".join(cells) + " |", flush=True)
    print("\nExceptions: " + ("; ".join(outside) or "none") + ".")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
