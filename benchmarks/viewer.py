"""Benchmark gem view in headless Chromium: time to write a file, to open it, to filter its list and to open an episode.

  python benchmarks/viewer.py             100 and 2,000 episodes of 20 messages, median of 5
  python benchmarks/viewer.py --quick     one measurement of each

Needs Chromium, its driver and selenium (see `make test-viewer`). Exits with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from gem.trajectory import Trajectory, Turn, write_jsonl
from gem.viewer.page import build_file
from gem.viewer.recordings import Recordings
from gem.viewer.tokens import Vocabulary
from table import Line, report

sys.path.append(str(Path(__file__).parents[1] / "tests" / "viewer"))
from browser import Browser, missing

TURNS = 10  # of two messages each
AIMS_S = {100: 1.0, 2000: 2.0}  # to open a file with so many episodes
WORDS = ["a", "policy", "reads", "each", "observation", "and", "replies", "with", "an", "action", "that", "scores"]

FILTER = """
    const [start, done] = [performance.now(), arguments[0]];
    new MutationObserver(() => done((performance.now() - start) / 1000)).observe(
        document.getElementById("count"), {childList: true});
    document.getElementById("filters").elements.text.value = "observation and replies";
    document.getElementById("filters").dispatchEvent(new Event("input"));"""
CLICK = """
    const [start, done] = [performance.now(), arguments[0]];
    new MutationObserver(() => done((performance.now() - start) / 1000)).observe(
        document.getElementById("detail"), {childList: true});
    document.querySelector("#rows a").click();"""


def episode(number: int) -> Trajectory:
    rng = random.Random(number)
    turns = [Turn(text(rng), text(rng), reward=float(k == TURNS - 1)) for k in range(TURNS)]
    return Trajectory("game:Sample-v0", seed=number, turns=turns, terminated=True, stop_reason="solved")


def text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=60))


def measure(episodes: int, repeats: int) -> list[Line]:
    lines: dict[str, list[float]] = {"write": [], "open": [], "search": [], "show an episode": []}
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        source, page = Path(folder) / "a.jsonl", Path(folder) / "a.html"
        write_jsonl(source, map(episode, range(episodes)))
        for _ in range(repeats):
            start = time.perf_counter()
            page.write_text(build_file(Recordings([source]), Vocabulary()), encoding="utf-8")
            lines["write"].append(time.perf_counter() - start)
            browser.open(page)
            lines["open"].append(browser.run("return performance.getEntriesByName('ready')[0].startTime") / 1000)
            lines["search"].append(browser.run_async(FILTER))
            lines["show an episode"].append(browser.run_async(CLICK))
        size = page.stat().st_size / 1e6
        heap = browser.run("return performance.memory.usedJSHeapSize") / 1e6
    name = f"{episodes:,} × {2 * TURNS} messages"
    aims = {"open": AIMS_S[episodes]}
    timed = [Line(f"{name}: {what}", values, "s", aims.get(what, 0.0), at_most=True) for what, values in lines.items()]
    return [*timed, Line(f"{name}: file", [size], "MB"), Line(f"{name}: JavaScript heap", [heap], "MB")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    repeats = 1 if parser.parse_args().quick else 5
    if why := missing():
        print(why, file=sys.stderr)
        return 2
    return report("gem view", f"{repeats} runs", [line for n in AIMS_S for line in measure(n, repeats)])


if __name__ == "__main__":
    sys.exit(main())
