"""Write envs/data/table_games/solved.json, the strategies of the best players of games with hidden information.

python scripts/solve_games.py                 all games, about ten minutes
python scripts/solve_games.py LiarsDiceEnv    only these; the others are kept
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gem.envs.table.liars_dice import LiarsDiceEnv
from gem.envs.table.poker import KuhnPokerEnv, LeducHoldemEnv, PokerEnv
from gem.envs.table.poker_solver import exploitability, solve

ITERATIONS = {KuhnPokerEnv: 2000, LeducHoldemEnv: 2000, LiarsDiceEnv: 400}


def main() -> int:
    path = Path(__file__).parents[1] / "src/gem/envs/data/table_games/solved.json"
    found = json.loads(path.read_text())
    for kind, iterations in ITERATIONS.items():
        if sys.argv[1:] and kind.__name__ not in sys.argv[1:]:
            continue
        game = kind()
        strategy = {
            key: {move: round(p, 5) for move, p in moves.items()} for key, moves in solve(game, iterations).items()
        }
        stake = game.stake if isinstance(game, PokerEnv) else 1
        print(f"{kind.__name__}: exploitability {exploitability(game, strategy) * stake:.5f}", flush=True)
        found[kind.__name__] = strategy
    path.write_text(json.dumps(found, indent=0, separators=(",", ":")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
