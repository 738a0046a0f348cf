"""Write envs/data/table_games/poker.json, the strategies of the best players of poker. Takes about five minutes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gem.envs.table.poker import KuhnPokerEnv, LeducHoldemEnv
from gem.envs.table.poker_solver import exploitability, solve

ITERATIONS = {KuhnPokerEnv: 2000, LeducHoldemEnv: 2000}


def main() -> int:
    found = {}
    for kind, iterations in ITERATIONS.items():
        game = kind()
        strategy = {
            key: {move: round(p, 5) for move, p in moves.items()} for key, moves in solve(game, iterations).items()
        }
        print(f"{kind.__name__}: exploitability {exploitability(game, strategy) * game.stake:.5f} antes", flush=True)
        found[kind.__name__] = strategy
    path = Path(__file__).parents[1] / "src/gem/envs/data/table_games/poker.json"
    path.write_text(json.dumps(found, indent=0, separators=(",", ":")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
