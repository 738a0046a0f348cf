"""Compare the speed of this checkout with another one, in interleaved rounds.

  git worktree add ../before v0.1 && python benchmarks/compare.py ../before
  python benchmarks/compare.py ../before --rounds 5 --only vector --only grade

Each workload uses public names only and runs in a process of its own, in one checkout and then in the other. A ratio is
this checkout's rate over the other's in the same round. Exit code 1 if a median ratio is below 0.9 and the two ranges
of rates do not overlap.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.progress import track

HERE = Path(__file__).resolve()
LEAST = 0.9  # of the other checkout's rate
GAMES = [
    "GuessTheNumber-v0",
    "Mastermind-v0-hard",
    "FifteenPuzzle-v0",
    "Game2048-v0",
    "Minesweeper-v0",
    "Sokoban-v0-easy",
]
SLOTS = 64
VERDICTS = HERE.parents[1] / "tests" / "graders" / "math" / "math_cases.jsonl"


def rate(run: Callable[[], int], seconds: float = 1.0) -> float:
    """Units per second of a function that returns how many units it did, called for about that many seconds."""
    run()
    done, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        done += run()
    return done / elapsed


def import_gem() -> float:
    command = [sys.executable, "-c", "import gem; gem.make('game:GuessTheNumber-v0')"]
    return rate(lambda: subprocess.run(command, check=True).returncode + 1)


def game(name: str) -> float:
    import gem

    env = gem.make(f"game:{name}", seed=0)

    def episode() -> int:
        env.reset()
        for turn in range(1, 1000):
            step = env.step(env.sample_random_action())
            if step.terminated or step.truncated:
                return turn
        return 1000

    return rate(episode)


def vector(backend: str) -> float:
    import gem

    vec = gem.make_vec(["game:GuessTheNumber-v0"] * SLOTS, backend=backend)
    vec.reset(seed=0)
    actions = [r"\boxed{25}"] * SLOTS

    def steps() -> int:
        for _ in range(20):
            vec.step(actions)
        return 20 * SLOTS

    try:
        return rate(steps)
    finally:
        vec.close()


def collector() -> float:
    import gem
    from gem.policies import ScriptedPolicy
    from gem.rollout import collect

    vec = gem.make_vec(["game:GuessTheNumber-v0"] * SLOTS, backend="sync", seed=0)
    policy = ScriptedPolicy([r"\boxed{25}"])
    try:
        return rate(lambda: sum(len(t.turns) for t in collect(vec, policy, transitions=2048)))
    finally:
        vec.close()


def grade(kind: str) -> float:
    from gem.graders.math import MathGrader

    rows = [json.loads(line) for line in VERDICTS.read_text().splitlines()]
    simple = {"integers", "decimals", "fractions"}
    rows = [row for row in rows if (row["class"] in simple) == (kind == "plain") and row["equal"]]
    grader = MathGrader()
    for row in rows[:10]:
        grader.grade(row["answer"], row["gold"])
    start = time.perf_counter()  # one pass, because verdicts are cached
    for row in rows[10:]:
        grader.grade(row["answer"], row["gold"])
    return len(rows[10:]) / (time.perf_counter() - start)


def sandbox(kind: str) -> float:
    from gem.sandbox import Case, make_sandbox

    def cells() -> int:
        for _ in range(20):
            assert session.run("print(6 * 7)").stdout == "42\n"
        return 20

    cases = [Case(stdin=str(i)) for i in range(12)]
    with make_sandbox() as box:
        if kind == "cells":
            with box.session() as session:
                return rate(cells)
        if kind == "tests":
            return rate(lambda: len(box.run_tests("print(int(input()) + 1)", cases)))
        return rate(lambda: int(box.run("print(1)").stdout))


def python_tool() -> float:
    import gem
    from gem.tools.python.tool import PythonCodeTool
    from gem.tools.tool_env_wrapper import ToolEnvWrapper

    env = ToolEnvWrapper(gem.make("game:GuessTheNumber-v0"), tools=[PythonCodeTool()], max_tool_uses=100_000)
    env.reset(seed=0)

    def calls() -> int:
        for _ in range(10):
            assert "42" in env.step("<python>print(6 * 7)</python>").observation
        return 10

    return rate(calls)


def search() -> float:
    from gem.tools.search.index import build_index
    from gem.tools.search.tool import SearchTool

    with tempfile.TemporaryDirectory() as folder:
        rows = (
            {"id": str(i), "title": f"t{i}", "text": " ".join(f"w{(i * k) % 997}" for k in range(1, 40))}
            for i in range(5000)
        )
        corpus = Path(folder) / "corpus.jsonl"
        corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with closing(build_index(corpus, Path(folder) / "index")) as index:
            tool = SearchTool(index=index)

            def queries() -> int:
                for i in range(50):
                    assert tool.execute_action(f"<search>w{i} w{i + 1}</search>")[2]
                return 50

            return rate(queries)


def mcp() -> float:
    from gem.messages import ToolCall
    from gem.tools.mcp.tool import MCPTool

    tool = MCPTool([sys.executable, "-m", "gem.tools.mcp.time_server"])
    call = ToolCall("days_in_month", {"date": "2024-02-03"})

    def calls() -> int:
        for _ in range(20):
            assert "29" in str(tool.call(call))
        return 20

    try:
        return rate(calls)
    finally:
        tool.close()


WORKLOADS: dict[str, Callable[[], float]] = {
    "import gem and make a game": import_gem,
    **{f"steps of {name}": (lambda name=name: game(name)) for name in GAMES},
    **{
        f"vector {backend}, {SLOTS} slots": (lambda b=backend: vector(b))
        for backend in ("sync", "async", "thread", "process")
    },
    "collector, turns": collector,
    "grade plain answers": lambda: grade("plain"),
    "grade formulas": lambda: grade("formulas"),
    "sandbox, print": lambda: sandbox("print"),
    "sandbox, tests": lambda: sandbox("tests"),
    "sandbox, session cells": lambda: sandbox("cells"),
    "Python tool, calls": python_tool,
    "search, queries": search,
    "MCP, calls": mcp,
}


def measure(checkout: Path, name: str) -> float:
    """The workload's rate in a fresh process that imports gem from that checkout."""
    command = [sys.executable, str(HERE), str(checkout), "--measure", name]
    env = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name} in {checkout}: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", help="workloads whose name contains this text; may be repeated")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(WORKLOADS[args.measure]())
        return 0
    names = [n for n in WORKLOADS if not args.only or any(text in n for text in args.only)]
    checkouts = {"this": HERE.parents[1], "other": args.other.resolve()}
    rates: dict[str, dict[str, list[float]]] = {name: {"this": [], "other": []} for name in names}
    jobs = [(name, checkout) for _ in range(args.rounds) for name in names for checkout in checkouts]
    for name, checkout in track(jobs, "measuring"):
        rates[name][checkout].append(measure(checkouts[checkout], name))
    return report(rates)


def report(rates: dict[str, Any]) -> int:
    slower = []
    print("| workload | this, median (min to max) per second | other | ratio, median (min to max) |\n|---|---|---|---|")
    for name, by in rates.items():
        ratios = [a / b for a, b in zip(by["this"], by["other"], strict=True)]
        cells = [
            f"{statistics.median(v):,.4g} ({min(v):,.4g} to {max(v):,.4g})" for v in (by["this"], by["other"], ratios)
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")
        if statistics.median(ratios) < LEAST and max(by["this"]) < min(by["other"]):
            slower.append(name)
    print(f"\nslower: {', '.join(slower) or 'none'}")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
