"""Compare speed with the published package, gem-llm, in interleaved rounds of one run.

  python3 -m venv /tmp/peer && /tmp/peer/bin/pip install gem-llm==0.1.0
  python benchmarks/peers.py --peer-python /tmp/peer/bin/python > benchmarks/results/peers.md
  python benchmarks/peers.py --peer-python /tmp/peer/bin/python --only step --rounds 3
  python benchmarks/peers.py --before ../old-checkout/src

Each package runs in a child process under its own interpreter, and both children run this file. In every round each
workload runs in one child after the other, never in two at once, so that other work on the machine affects both.
Ratios are taken within a round. Both packages get the same ids, arguments, seeds and action strings.

`step` measures `env.step` alone, `reset` measures `env.reset` alone, and the vector workloads measure `vec_env.step`
including the resets that it makes. Rates are per second of CPU time, which other work on the machine affects least.
The async vector uses threads and is measured in wall time. The observation of our games contains the board; the
published games put it in `info["suffix"]`, which their `step` also fills.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

DIRECTIONS = ("up", "down", "left", "right")
VECTOR_ENVS = 64


class Game(NamedTuple):
    """A game that both packages have: arguments valid in both, and a generator of the random actions of an episode."""

    env_id: str
    kwargs: dict[str, Any]
    actions: Callable[[random.Random], list[str]]


def direction_actions(rng: random.Random) -> list[str]:
    return [rf"\boxed{{{rng.choice(DIRECTIONS)}}}" for _ in range(50)]


def reveal_actions(rng: random.Random) -> list[str]:
    """Every cell of an 8x8 board once, in random order."""
    return [rf"\boxed{{reveal {cell // 8} {cell % 8}}}" for cell in rng.sample(range(64), 64)]


GAMES = {
    "GuessTheNumber": Game(
        "game:GuessTheNumber-v0-hard",
        {"min_number": 1, "max_number": 50, "max_turns": 7},
        lambda rng: [rf"\boxed{{{rng.randint(1, 50)}}}" for _ in range(7)],
    ),
    "Mastermind": Game(
        "game:Mastermind-v0-hard",
        {"code_length": 4, "num_numbers": 8, "max_turns": 30},
        lambda rng: [rf"\boxed{{{' '.join(map(str, rng.sample(range(1, 9), 4)))}}}" for _ in range(30)],
    ),
    "FifteenPuzzle": Game("game:FifteenPuzzle-v0-hard", {"num_rows": 4, "max_turns": 50}, direction_actions),
    "2048": Game("game:Game2048-v0-easy", {"target_tile": 2048, "max_turns": 50}, direction_actions),
    "Minesweeper": Game(
        "game:Minesweeper-v0-easy", {"rows": 8, "cols": 8, "num_mines": 10, "max_turns": 64}, reveal_actions
    ),
    "Sokoban": Game("game:Sokoban-v0-easy", {"dim_room": (6, 6), "num_boxes": 2, "max_turns": 50}, direction_actions),
}


def step_rate(game: Game, seconds: float) -> float:
    """Return steps per second of `env.step` alone, over episodes of random actions."""
    import gem

    env = gem.make(game.env_id, **game.kwargs)
    spent, steps, seed, started = 0.0, 0, 0, time.process_time()
    while spent < seconds and time.process_time() - started < 4 * seconds:
        env.reset(seed=seed)
        actions = game.actions(random.Random(seed))
        before = time.process_time()
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            steps += 1
            if terminated or truncated:
                break
        spent += time.process_time() - before
        seed += 1
    return steps / spent


def reset_rate(game: Game, seconds: float) -> float:
    """Return resets per second."""
    import gem

    env = gem.make(game.env_id, **game.kwargs)
    env.reset(seed=0)  # load tables that are read once
    seed, started = 0, time.process_time()
    while (spent := time.process_time() - started) < seconds:
        seed += 1
        env.reset(seed=seed)
    return seed / spent


def vector_rate(seconds: float, async_mode: bool) -> float:
    """Return environment steps per second of 64 games of GuessTheNumber in lock-step, resets included."""
    import gem

    game = GAMES["GuessTheNumber"]
    vec_env = gem.make_vec(
        [game.env_id] * VECTOR_ENVS, vec_kwargs=[dict(game.kwargs) for _ in range(VECTOR_ENVS)], async_mode=async_mode
    )
    vec_env.reset(seed=0)
    rounds = list(zip(*(game.actions(random.Random(slot)) for slot in range(VECTOR_ENVS)), strict=True))
    clock = time.perf_counter if async_mode else time.process_time
    steps, started = 0, clock()
    while (spent := clock() - started) < seconds:
        for actions in rounds:
            vec_env.step(list(actions))
        steps += len(rounds) * VECTOR_ENVS
    if hasattr(vec_env, "close"):
        vec_env.close()
    return steps / spent


WORKLOADS: dict[str, tuple[str, Callable[[float], float]]] = {
    **{f"{name}: step": ("steps/s", lambda s, game=game: step_rate(game, s)) for name, game in GAMES.items()},
    **{f"{name}: reset": ("resets/s", lambda s, game=game: reset_rate(game, s)) for name, game in GAMES.items()},
    "vector of 64: sync step": ("env-steps/s", lambda s: vector_rate(s, async_mode=False)),
    "vector of 64: async step": ("env-steps/s", lambda s: vector_rate(s, async_mode=True)),
}
AIMS = {"vector of 64: async step": 3.0}  # of the published rate; 1.0 for other steps


class Child:
    """An interpreter that runs workloads of this file on request, one at a time."""

    def __init__(self, python: str, source: str | None = None) -> None:
        env = {**os.environ, **({"PYTHONPATH": source} if source else {})}
        self._process = subprocess.Popen(
            [python, __file__, "--child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate()

    def measure(self, workload: str, seconds: float) -> float | None:
        """The workload's rate; None, with the reason on stderr, where this package cannot run it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([workload, seconds]) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            print(f"{workload}: skipped: {answer['error']}", file=sys.stderr)
        return answer.get("rate")


def serve_measurements() -> None:
    """The child's side: one request per line of stdin, one answer per line of stdout."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a package prints must not mix with the answers
    for line in sys.stdin:
        workload, seconds = json.loads(line)
        try:
            answer: dict[str, Any] = {"rate": WORKLOADS[workload][1](seconds)}
        except Exception as e:  # a game may need data that is not installed
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), file=answers, flush=True)


def measure(children: dict[str, Child], workloads: Sequence[str], rounds: int, seconds: float) -> dict[str, Any]:
    """Rates by workload and child, one per round. Workloads that some child cannot run are left out."""
    rates: dict[str, dict[str, list[float]]] = {}
    runnable = list(workloads)
    for done in range(rounds):
        for workload in list(runnable):
            order = list(children)[:: 1 if done % 2 else -1]
            measured = {name: children[name].measure(workload, seconds) for name in order}
            if None in measured.values():
                runnable.remove(workload)
                rates.pop(workload, None)
                continue
            for name in children:
                rates.setdefault(workload, {}).setdefault(name, []).append(measured[name] or 0.0)
    return rates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", metavar="PATH", help="interpreter that has the published package")
    parser.add_argument("--before", metavar="SRC", help="also compare with the gem package in this folder")
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads whose name contains TEXT")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="measured time per workload and round")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        serve_measurements()
        return 0
    if args.peer_python is None and args.before is None:
        parser.error("give --peer-python, --before, or both")

    from table import Line, ratios, report  # not needed, and not imported, by the children

    workloads = [name for name in WORKLOADS if args.only in name]
    with ExitStack() as stack:
        children = {"gem": stack.enter_context(Child(sys.executable))}
        if args.peer_python:
            children["gem-llm"] = stack.enter_context(Child(args.peer_python))
        if args.before:
            children["before"] = stack.enter_context(Child(sys.executable, str(Path(args.before).resolve())))
        rates = measure(children, workloads, args.rounds, args.seconds)
    lines = []
    for workload, by_child in rates.items():
        lines += [Line(f"{workload}, {name}", values, WORKLOADS[workload][0]) for name, values in by_child.items()]
        if args.peer_python:
            aim = AIMS.get(workload, 1.0 if workload.endswith("step") else 0.0)
            lines.append(Line(f"{workload}: gem / gem-llm", ratios(by_child["gem"], by_child["gem-llm"]), "×", aim))
        if args.before:
            lines.append(Line(f"{workload}: gem / before", ratios(by_child["gem"], by_child["before"]), "×", 0.9))
    return report("Speed against the published package", f"{args.rounds} interleaved rounds", lines)


if __name__ == "__main__":
    sys.exit(main())
