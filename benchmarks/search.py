"""Benchmark search over synthetic passages: build time, memory, throughput and latency, in the process and over HTTP.

The baselines are bm25s (with numpy) and a loop over all passages.

  python benchmarks/search.py             200,000 passages, median of 3, about ten minutes
  python benchmarks/search.py --quick     20,000 passages, one measurement of each
  python benchmarks/search.py --only tantivy --only http

The words of the passages follow Zipf's law. A query is five distinct words of one passage without the 50 most common
words, and the passage must be among the first three results. Each measurement runs in a process of its own, to measure
peak memory, and the engines take turns, so that load on the machine affects all of them. Exits with 1 if a target is
missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.progress import Progress

from gem.messages import ToolCall
from gem.tools.search.corpus import words
from gem.tools.search.index import build_index, open_index
from gem.tools.search.tool import SearchTool
from table import Line, ratios, report

ENGINES = ("tantivy", "numpy", "bm25s", "loop")
CLIENTS, TOPK, QUERY_WORDS = 32, 3, 5
COMMON = 50  # most common words, which queries leave out, as people leave out "the" and "of"
VOCABULARY, SKEW = 200_000, 1.05  # number of words, and exponent of their frequencies


@dataclass(frozen=True)
class Scale:
    """passages: of the corpus. queries: per measurement. loop_queries: per measurement of the slow loop."""

    passages: int = 200_000
    repeats: int = 3
    queries: int = 4_000
    loop_queries: int = 5


def make_corpus(folder: Path, passages: int) -> None:
    """Write corpus.jsonl and queries.json, pairs of a query and the id of its passage. Both are deterministic."""
    rng, chooser = np.random.default_rng(0), random.Random(0)
    vocabulary = np.array([f"{syllables(number)}" for number in range(VOCABULARY)])
    weights = 1.0 / np.arange(1, VOCABULARY + 1) ** SKEW
    cumulative = np.cumsum(weights / weights.sum())
    common = set(vocabulary[:COMMON].tolist())
    queries = []
    with (folder / "corpus.jsonl").open("w") as file:
        for first in range(0, passages, 1000):
            lengths = rng.integers(60, 140, size=min(1000, passages - first))
            drawn = vocabulary[np.minimum(np.searchsorted(cumulative, rng.random(lengths.sum())), VOCABULARY - 1)]
            for number, text in enumerate(np.split(drawn, np.cumsum(lengths)[:-1]), start=first):
                row = {"id": f"p{number}", "title": f"{text[0]} {text[1]}", "text": " ".join(text)}
                file.write(json.dumps(row) + "\n")
                if chooser.random() < 20_000 / passages:
                    asked = chooser.sample(sorted(set(text.tolist()) - common), QUERY_WORDS)
                    queries.append([" ".join(asked), row["id"]])
    chooser.shuffle(queries)
    (folder / "queries.json").write_text(json.dumps(queries))


def syllables(number: int) -> str:
    """Return a unique word for a number."""
    parts = []
    while number or not parts:
        number, rest = divmod(number, 70)
        parts.append("bdfgklmnprstvz"[rest % 14] + "aeiou"[rest // 14])
    return "".join(parts)


def read_queries(folder: Path) -> list[tuple[str, str]]:
    return [(query, wanted) for query, wanted in json.loads((folder / "queries.json").read_text())]


# --- measurements, each in a process of its own ----------------------------------------------------------------------


def build(engine: str, folder: Path, into: Path) -> dict[str, float]:
    start = time.perf_counter()
    if engine in ("tantivy", "numpy"):
        build_index(folder / "corpus.jsonl", into, engine=engine).close()  # type: ignore[arg-type]
    else:
        import bm25s

        index = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
        texts = (row["title"] + "\n" + row["text"] for row in read_rows(folder))
        index.index(bm25s.tokenize([*texts], stopwords=None, show_progress=False), show_progress=False)
        index.save(into, show_progress=False)
    return {"seconds": time.perf_counter() - start, "mib": peak_mib(), "disk": disk_mib(into)}


def read_rows(folder: Path) -> list[dict[str, str]]:
    decoder = msgspec.json.Decoder(dict[str, str])
    with (folder / "corpus.jsonl").open("rb") as file:
        return [decoder.decode(line) for line in file]


Searcher = Callable[[str], list[str]]  # query → ids


def opened(engine: str, folder: Path) -> Searcher:
    if engine in ("tantivy", "numpy"):
        index = open_index(folder / engine)
        return lambda query: [hit.document["id"] for hit in index.search([query], TOPK)[0]]
    if engine == "bm25s":
        return opened_bm25s(folder / engine)
    return opened_loop(folder)


def opened_bm25s(folder: Path) -> Searcher:
    import bm25s

    index = bm25s.BM25.load(folder, mmap=True)

    def search(query: str) -> list[str]:
        numbers, _ = index.retrieve([words(query)], k=TOPK, show_progress=False)
        return [f"p{number}" for number in numbers[0]]

    return search


def opened_loop(folder: Path) -> Searcher:
    """Compute a score for every passage in a loop."""
    rows = read_rows(folder)
    texts = [f" {' '.join(words(row['title'] + ' ' + row['text']))} " for row in rows]
    lengths = [text.count(" ") - 1 for text in texts]
    mean = statistics.fmean(lengths)

    def search(query: str) -> list[str]:
        scores = [0.0] * len(texts)
        for word in words(query):
            counts = [text.count(f" {word} ") for text in texts]
            holding = sum(map(bool, counts))
            idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            for number, count in enumerate(counts):
                if count:
                    scores[number] += idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * lengths[number] / mean))
        best = sorted(range(len(texts)), key=lambda number: (-scores[number], number))[:TOPK]
        return [rows[number]["id"] for number in best]

    return search


def query(engine: str, folder: Path, count: int) -> dict[str, Any]:
    """Time queries one after another, then in CLIENTS threads."""
    start = time.perf_counter()
    search = opened(engine, folder)
    opening = time.perf_counter() - start
    queries = read_queries(folder)[:count]
    search(queries[0][0])
    alone, found = timed_each(search, queries)
    result = {"opening": opening, "alone": len(queries) / sum(alone), "recall": found, "mib": 0.0}
    if engine != "loop":
        start = time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as pool:
            times = list(pool.map(lambda asked: timed(search, asked[0]), queries))
        result |= {"together": len(queries) / (time.perf_counter() - start), **percentiles(times)}
    return {**result, "mib": peak_mib()}


def timed_each(search: Searcher, queries: Sequence[tuple[str, str]]) -> tuple[list[float], float]:
    """Return the seconds per query, and the share of queries that found their passage."""
    times, right = [], 0
    for asked, wanted in queries:
        start = time.perf_counter()
        right += wanted in search(asked)
        times.append(time.perf_counter() - start)
    return times, right / len(queries)


def timed(search: Searcher, asked: str) -> float:
    start = time.perf_counter()
    search(asked)
    return time.perf_counter() - start


def percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50": 1e3 * ordered[len(ordered) // 2], "p99": 1e3 * ordered[int(len(ordered) * 0.99)]}


def over_http(folder: Path, count: int) -> dict[str, Any]:
    """Time concurrent SearchTool calls of one event loop to a retrieval server in another process."""
    module = "gem.tools.search.retrieval_server"
    command = [sys.executable, "-m", module, "--index", str(folder / "tantivy"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().split()[-1]
            result = asyncio.run(_ask(SearchTool(search_url=url, topk=TOPK, cache=0), read_queries(folder)[:count]))
            return {**result, "mib": peak_mib(process.pid)}
        finally:
            process.terminate()


async def _ask(tool: SearchTool, queries: list[tuple[str, str]]) -> dict[str, Any]:
    waiting = iter(queries[1:])
    times: list[float] = []

    async def client() -> None:
        for asked, _ in waiting:
            start = time.perf_counter()
            result = await tool.acall(ToolCall("search", {"query": asked}))
            times.append(time.perf_counter() - start)
            assert result.ok

    await tool.acall(ToolCall("search", {"query": queries[0][0]}))
    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return {"together": len(times) / (time.perf_counter() - start), **percentiles(times)}


def peak_mib(process: int | str = "self") -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def disk_mib(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20


# --- report ----------------------------------------------------------------------------------------------------------


def measured(part: str, folder: Path, *options: object) -> dict[str, Any]:
    command = [sys.executable, __file__, "--part", part, "--folder", str(folder), *map(str, options)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def run(scale: Scale, folder: Path, only: Sequence[str], advance: Callable[[], None]) -> list[Line]:
    engines = [engine for engine in ENGINES if not only or engine in only]
    make_corpus(folder, scale.passages)
    advance()
    built: dict[str, list[dict[str, Any]]] = {engine: [] for engine in engines if engine != "loop"}
    queried: dict[str, list[dict[str, Any]]] = {engine: [] for engine in engines}
    served: list[dict[str, Any]] = []
    for number in range(scale.repeats):
        for engine in built:
            # The first build of each engine is the one that is searched.
            with tempfile.TemporaryDirectory(dir=folder) as spare:
                into = folder / engine if number == 0 else Path(spare) / engine
                built[engine].append(measured(f"build {engine}", folder, "--into", into))
            advance()
    for _ in range(scale.repeats):
        for engine in engines:
            count = scale.loop_queries if engine == "loop" else scale.queries
            queried[engine].append(measured(f"query {engine}", folder, "--count", count))
            advance()
        if "tantivy" in engines and (not only or "http" in only):
            served.append(measured("http", folder, "--count", scale.queries))
            advance()
    return [*build_lines(built), *query_lines(queried), *http_lines(served, queried)]


def of(results: list[dict[str, Any]], key: str) -> list[float]:
    return [result[key] for result in results]


def build_lines(built: dict[str, list[dict[str, Any]]]) -> list[Line]:
    lines = []
    for engine, results in built.items():
        lines += [
            Line(f"build, {engine}", of(results, "seconds"), "s"),
            Line(f"build, {engine}: peak memory", of(results, "mib"), "MiB"),
            Line(f"build, {engine}: on disk", of(results, "disk"), "MiB"),
        ]
    if "bm25s" in built:
        base = of(built["bm25s"], "seconds")
        for engine in ("tantivy", "numpy"):
            if engine in built:
                gains = ratios(base, of(built[engine], "seconds"))
                lines.append(Line(f"build, {engine}: times as fast as bm25s", gains, "×"))
    return lines


def query_lines(queried: dict[str, list[dict[str, Any]]]) -> list[Line]:
    lines = []
    for engine, results in queried.items():
        name = f"search, {engine}"
        lines += [
            Line(f"{name}: passage among the first {TOPK}", of(results, "recall"), "", 0.99),
            Line(f"{name}: to open", of(results, "opening"), "s"),
            Line(f"{name}: peak memory", of(results, "mib"), "MiB"),
            Line(f"{name}: one after the other", of(results, "alone"), "queries/s"),
        ]
        if engine != "loop":
            lines += [
                Line(f"{name}: {CLIENTS} threads", of(results, "together"), "queries/s"),
                Line(f"{name}: {CLIENTS} threads, p50", of(results, "p50"), "ms"),
                Line(f"{name}: {CLIENTS} threads, p99", of(results, "p99"), "ms"),
            ]
    for engine, base, key, aim in [
        ("tantivy", "bm25s", "together", 5.0),
        ("numpy", "bm25s", "alone", 2.0),
        ("tantivy", "loop", "alone", 100.0),
        ("numpy", "loop", "alone", 100.0),
    ]:
        if engine in queried and base in queried:
            how = f"{CLIENTS} threads" if key == "together" else "one after the other"
            gains = ratios(of(queried[engine], key), of(queried[base], key))
            lines.append(Line(f"search, {engine} of {base}, {how}", gains, "×", aim))
    return lines


def http_lines(served: list[dict[str, Any]], queried: dict[str, list[dict[str, Any]]]) -> list[Line]:
    if not served:
        return []
    name = f"HTTP, tantivy, {CLIENTS} clients"
    lines = [
        Line(name, of(served, "together"), "queries/s"),
        Line(f"{name}: p50", of(served, "p50"), "ms"),
        Line(f"{name}: p99", of(served, "p99"), "ms"),
        Line(f"{name}: peak memory of the server", of(served, "mib"), "MiB"),
        Line(
            f"{name}, of those within the process",
            ratios(of(served, "together"), of(queried["tantivy"], "together")),
            "×",
        ),
    ]
    if "bm25s" in queried:
        gains = ratios(of(served, "together"), of(queried["bm25s"], "together"))
        lines.append(Line(f"{name}, of bm25s within the process", gains, "×"))
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", default=[], choices=[*ENGINES, "http"], help="may be repeated")
    parser.add_argument("--passages", type=int, help="another size of the corpus")
    for name, kind in [("--part", str), ("--folder", Path), ("--into", Path), ("--count", int)]:
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        print(json.dumps(part(args)))
        return 0
    if "http" in args.only and "tantivy" not in args.only:
        args.only.append("tantivy")
    scale = Scale(passages=20_000, repeats=1, queries=1_000) if args.quick else Scale()
    if args.passages:
        scale = Scale(args.passages, scale.repeats, scale.queries, scale.loop_queries)
    console = Console(stderr=True)
    with (
        tempfile.TemporaryDirectory(prefix="gem-search-") as folder,
        Progress(console=console, transient=True, disable=not console.is_terminal) as bar,
    ):
        engines = len(args.only) or len(ENGINES) + 1
        task = bar.add_task("measuring", total=1 + 2 * engines * scale.repeats)
        lines = run(scale, Path(folder), args.only, lambda: bar.advance(task))
    return report("Search", f"{scale.passages:,} passages, {scale.repeats} runs", lines)


def part(args: argparse.Namespace) -> dict[str, Any]:
    what, _, engine = args.part.partition(" ")
    if what == "build":
        return build(engine, args.folder, args.into)
    if what == "query":
        return query(engine, args.folder, args.count)
    return over_http(args.folder, args.count)


if __name__ == "__main__":
    sys.exit(main())
