"""Score simple players of the Wikipedia game and simple readers of qa:Encyclopedia, and measure what a world costs.

python benchmarks/wiki.py                  everything, in about a minute
python benchmarks/wiki.py --seeds 50       fewer games and questions
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "envs" / "wiki"))
import reader

from gem.envs.games.words.wikigame import LEVELS, Oracle, WikiGameEnv, WordOverlap
from gem.envs.questions.encyclopedia_qa import search_index
from gem.envs.web.wiki.articles import Articles
from gem.envs.web.wiki.generate import build_world
from gem.envs.web.wiki.questions import Questions
from gem.graders.exact import exact_match
from gem.tools.search.tool import format_hits

PLAYERS: dict[str, Callable[[WikiGameEnv], Callable[[str], str]]] = {
    "random link": lambda env: lambda observation: env.sample_random_action(),
    "word overlap": lambda env: WordOverlap(env).act,
    "oracle": lambda env: Oracle(env).act,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200, help="games per level and player; questions per 4 of these")
    args = parser.parse_args()
    print_worlds()
    print_game(args.seeds)
    print_questions(args.seeds * 4)


def print_worlds() -> None:
    build_world(0)  # imports
    start = time.process_time()
    articles = Articles(11)
    built = time.process_time()
    assert articles.graph and articles.linked_from
    linked = time.process_time()
    tracemalloc.start()
    kept = Articles(12)
    assert kept.graph and kept.linked_from
    size = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    facts, links = 1e3 * (built - start), 1e3 * (linked - built)
    print(
        f"A world of {len(kept.graph):,} articles: {facts:.0f} ms for the facts, {links:.0f} ms for the graph, ", end=""
    )
    print(f"{size:.1f} MiB.")
    env, resets = WikiGameEnv(level=3, max_turns=15), []
    play_at_random(env)  # builds the worlds, and writes the pages that are read again
    for seed in range(100):
        start = time.process_time()
        env.reset(seed=seed)
        resets.append(time.process_time() - start)
    start = time.process_time()
    steps = play_at_random(env)
    step = (time.process_time() - start - sum(resets)) / steps
    print(f"A game of level 3: reset {1e3 * statistics.median(resets):.1f} ms, step {1e6 * step:.0f} us.\n")


def play_at_random(env: WikiGameEnv) -> int:
    """Play 100 games. Returns the number of steps."""
    steps = 0
    for seed in range(100):
        env.reset(seed=seed)
        while not env.over:
            env.step(env.sample_random_action())
            steps += 1
    return steps


def print_game(seeds: int) -> None:
    print("| level | distance | " + " | ".join(PLAYERS) + " |\n|---|---|" + "---|" * len(PLAYERS))
    for level, (distance, _) in LEVELS.items():
        env = WikiGameEnv(max_turns=30 if level == 1 else 15, level=level)
        wins = [sum(won(env, player, seed) for seed in range(seeds)) / seeds for player in PLAYERS.values()]
        rates = " | ".join(f"{rate:.3f}" for rate in wins)
        print(f"| {level} | {distance[0]}-{distance[1]} | {rates} |", flush=True)


def won(env: WikiGameEnv, player: Callable[[WikiGameEnv], Callable[[str], str]], seed: int) -> bool:
    observation, _ = env.reset(seed=seed)
    act, reward = player(env), 0.0
    while not env.over:
        observation, reward, *_ = env.step(act(str(observation)))
    return reward == 1.0


def print_questions(count: int) -> None:
    rows = Questions(split="test")
    frequent: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows[count : 6 * count]:
        frequent[row["kind"], row["query"][1]][row["answer"][0]] += 1
    right: dict[str, Counter[int]] = defaultdict(Counter)
    for row in rows[:count]:
        index, hops = search_index(row["world"]), row["hops"]

        def search(query: str, index: object = index) -> list[tuple[str, str]]:
            return reader.documents(format_hits(index.search([query], 3)[0]))  # type: ignore[attr-defined]

        first = search(row["question"])
        guess = frequent[row["kind"], row["query"][1]].most_common(1)
        answers = {
            "reader with search": answered(row["question"], search),
            "first three pages": answered(row["question"], lambda query, first=first: first),
            "without search": answered(row["question"], lambda query: []),
            "most frequent answer": guess[0][0] if guess else "?",
        }
        right["questions"][hops] += 1
        for name, answer in answers.items():
            right[name][hops] += exact_match(answer, row["answer"]).correct
    print("\n| hops | questions | " + " | ".join(list(right)[1:]) + " |\n|---|---|" + "---|" * (len(right) - 1))
    for hops, number in sorted(right["questions"].items()):
        rates = " | ".join(f"{found[hops] / number:.3f}" for found in list(right.values())[1:])
        print(f"| {hops} | {number} | {rates} |")


def answered(question: str, search: Callable[[str], list[tuple[str, str]]]) -> str:
    try:
        return str(reader.answer(question, search))
    except reader.Unknown:
        return "?"


if __name__ == "__main__":
    main()
