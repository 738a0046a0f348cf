"""WebShop: speed and memory of webshop:Mini, and the scores of simple players per level.

    python benchmarks/webshop.py            # prints the rows of benchmarks/results/web.md
    python benchmarks/webshop.py --scores   # also plays all players, and writes the scores that `gem info` shows
    python benchmarks/webshop.py --convert 500   # converts a generated file of 500 MB in the published format instead

Times are CPU seconds of one process, so that other programs on the machine do not change them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "envs" / "web" / "webshop"))
from shoppers import FirstHit, RightKind, Shopper

from gem.envs.web.webshop import mini
from gem.envs.web.webshop.env import MiniWebshopEnv
from gem.envs.web.webshop.players import Oracle
from gem.envs.web.webshop.published import published_catalogue

STORED = Path(__file__).parent.parent / "src/gem/envs/data/webshop/baselines.json"
SEEDS = 500
PLAYERS: dict[str, Callable[[Any], Any]] = {
    "instruction as query, first hit": FirstHit,
    "any product of the right kind": RightKind,
    "instruction as query, first hit with the named options": partial(FirstHit, choose=True),
    "reads pages (Shopper)": Shopper,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scores", action="store_true")
    parser.add_argument("--convert", type=int, metavar="MB", help="convert a generated file of this size instead")
    config = parser.parse_args()
    if config.convert:
        conversion(config.convert)
        return
    print("| measurement | median | 90 % | unit |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        mini.build(Path(folder), products=20_000, seed=0)
        print(f"| build the catalogue of 20,000 products | {time.process_time() - start:.1f} | | s |")
    speeds()
    memory()
    goals()
    if config.scores:
        scores()


def conversion(megabytes: int) -> None:
    """Convert a generated file of products, and print the time and the peak memory of this process."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(GEM_DATA=folder, GEM_CACHE=f"{folder}/cache")
        count = write_published(Path(folder, "webshop"), megabytes * 10**6)
        start = time.process_time()
        assert len(published_catalogue().products) == count
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"| convert {megabytes} MB of {count:,} products | {time.process_time() - start:.0f} | | s |")
        print(f"| its peak memory | {peak:.0f} | | MiB |")


def write_published(folder: Path, size: int) -> int:
    """Write files in the published format, that of products with this many bytes. Returns the number of products."""
    rng, asins, written = random.Random(0), [], 0
    words = [f"{one}{two}{n}" for one in ("ba", "lo", "mi", "ta") for two in ("na", "ri", "so") for n in range(2500)]

    def text(count: int) -> str:
        return " ".join(rng.choices(words, k=count))

    folder.mkdir()
    with (folder / "items_shuffle.json").open("w") as file:
        while written < size:
            color = [{"value": text(1), "image": f"http://example.com/{text(6)}"} for _ in range(6)]
            item = {"asin": f"B{len(asins):09d}", "name": text(14), "category": "garden", "query": text(2)}
            item |= {"product_category": f"Office › {text(1)}", "full_description": text(350), "pricing": "$9.50"}
            item |= {"small_description": [text(25) for _ in range(5)], "customization_options": {"Color": color}}
            written += file.write(f"{',' if asins else '['}{json.dumps(item)}\n")
            asins.append(item["asin"])
        file.write("]")
    wish = {"instruction": "buy it.", "instruction_attributes": ["bright"], "instruction_options": []}
    (folder / "items_ins_v2.json").write_text(json.dumps({asin: {"attributes": ["bright"]} for asin in asins}))
    (folder / "items_human_ins.json").write_text(json.dumps({asin: [wish] for asin in asins[:12000]}))
    return len(asins)


def speeds() -> None:
    env = MiniWebshopEnv(level=3)
    resets, searches, others = [], [], []
    for seed in range(300):
        took(resets, partial(env.reset, seed=seed))
        took(searches, partial(env.step, f"search[{env.goal().instruction}]"))
        product = env.catalogue.product(env.state.results[0])
        option = next(iter(product.options.values()))[0]
        clicks = ["Next >", "< Prev", product.asin, option, "Features", "< Prev", "Description", "< Prev", "Buy Now"]
        for value in clicks:
            took(others, partial(env.step, f"click[{value}]"))
    for name, times in (("reset", resets), ("search step", searches), ("other steps", others)):
        deciles = statistics.quantiles(times, n=10)
        print(f"| {name} | {statistics.median(times) * 1e6:.0f} | {deciles[-1] * 1e6:.0f} | µs |")


def took(times: list[float], call: Callable[[], Any]) -> None:
    start = time.process_time()
    call()
    times.append(time.process_time() - start)


def memory() -> None:
    env = MiniWebshopEnv(level=3)
    env.reset(seed=0)
    env.step(f"search[{env.goal().instruction}]")
    before = resident()
    envs = [MiniWebshopEnv(level=3) for _ in range(1000)]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
        env.step(f"search[{env.goal().instruction}]")
    print(f"| 1,000 environments after a search, more than one | {(resident() - before) / 2**20:.0f} | | MiB |")


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def goals() -> None:
    shop = MiniWebshopEnv().catalogue
    print(f"\n| level, split | goals | right products |\n|---|---|---|   ({len(shop.products):,} products)")
    for group, (start, end) in sorted(shop.groups.items(), key=lambda item: item[0].split("-")[::-1]):
        right = [len(shop.goal(number).perfect) for number in range(start, end)]
        split, level = group.split("-")
        print(
            f"| {level}, {split} | {len(right):,} | {min(right)} to {max(right)}, mean {statistics.mean(right):.1f} |"
        )


def scores() -> None:
    stored: dict[str, dict[str, float]] = {}
    print(f"\n| level, split | player | success | mean reward | turns |\n|---|---|---|---|---|   ({SEEDS} seeds)")
    for level in mini.LEVELS:
        for split in ("train", "test"):
            env = MiniWebshopEnv(level=level, split=split)
            for name, make in {**PLAYERS, "oracle (reads the state)": Oracle}.items():
                success, reward, turns = score(env, make)
                print(f"| {level}, {split} | {name} | {success:.3f} | {reward:.3f} | {turns:.1f} |")
                if split == "train":
                    stored[f"level {level}: {name}"] = {"success": success, "reward": round(reward, 4)}
    STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="ascii")


def score(env: MiniWebshopEnv, make: Callable[[Any], Any]) -> tuple[float, float, float]:
    won, total, turns = 0, 0.0, 0
    for seed in range(SEEDS):
        player = make(env)
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            observation, reward, terminated, truncated, info = env.step(player.act(observation))
            total += reward
            turns += 1
            over = terminated or truncated
        won += info.get("success", False)
    return won / SEEDS, total / SEEDS, turns / SEEDS


if __name__ == "__main__":
    main()
