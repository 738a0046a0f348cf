"""A large evaluation of a faulty endpoint, killed eight times and resumed: is every sample there exactly once?

  nice -n 19 python benchmarks/resume.py                   20,000 samples, several minutes
  nice -n 19 python benchmarks/resume.py --samples 1000    fewer

The endpoint is an imitation in a process of its own, with random latencies (median 20 ms) and faults: 2 % status 500,
2 % time-outs (no reply), 1 % cut bodies, 1 % status 429 with Retry-After. The evaluation is `gem eval` in a process of
its own, which is killed with SIGKILL after each ninth of the samples and then resumed. Exit code 1 unless every sample
is recorded exactly once, no recorded sample has changed, and each was scored from a reply.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from gem.testing.fakes.endpoint import Answer, FakeEndpoint, ReceivedRequest
from gem.trajectory import read_jsonl

ENV, ROLLOUTS, KILLS, CONCURRENCY, TIMEOUT_S = "logic:Rules", 4, 8, 128, 3.0
REPLY = "<answer>True</answer>"
FAULTS = [
    (0.02, {"status": 500, "body": "overloaded"}),
    (0.02, {"delay": 3600.0}),
    (0.01, {"cut": True, "text": REPLY}),
    (0.01, {"status": 429, "headers": {"Retry-After": "0.2"}}),
]


def answer(rng: random.Random, lock: threading.Lock, request: ReceivedRequest) -> Answer:
    with lock:
        draw, delay = rng.random(), 0.02 * rng.lognormvariate(0.0, 1.0)
    for probability, fault in FAULTS:
        draw -= probability
        if draw < 0:
            return Answer(**{"delay": delay, **fault})
    return Answer(text=REPLY, delay=delay)


def serve(connection: Any) -> None:
    rng, lock = random.Random(0), threading.Lock()
    with FakeEndpoint(lambda request: answer(rng, lock, request)) as server:
        connection.send(server.url)
        connection.recv()
        connection.send(len(server.requests))


def lines_of(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True) if file.exists() else []


def play(command: list[str], records: Path, until: int) -> int | None:
    """Run a command, and kill it when the file has so many lines. Return its exit code, or None if it was killed."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    lines = read = 0
    while process.poll() is None:
        time.sleep(0.1)
        if records.exists():
            with records.open("rb") as file:
                file.seek(read)
                new = file.read()
            lines, read = lines + new.count(b"\n"), read + len(new)
        if lines >= until:
            process.kill()
            process.wait()
            return None
    return process.returncode


def digests(lines: list[bytes]) -> set[str]:
    return {hashlib.sha256(line).hexdigest() for line in lines if line.endswith(b"\n")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20_000)
    samples = parser.parse_args().samples // ROLLOUTS * ROLLOUTS
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url, started = ours.recv(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        records = run / "trajectories.jsonl"
        gem_eval = [sys.executable, "-m", "gem", "eval"]
        first = [*gem_eval, "--model", "m", "--base-url", url, "--env", ENV, "--out", str(run)]
        first += ["--limit", str(samples // ROLLOUTS), "--rollouts", str(ROLLOUTS)]
        first += ["--concurrency", str(CONCURRENCY), "--timeout", str(TIMEOUT_S)]
        kept: set[str] = set()
        killed = torn = 0
        code = None
        for number in range(1, KILLS + 2):
            more = samples * number // (KILLS + 1) if number <= KILLS else samples * 2
            until = max(more, len(lines_of(records)) + 1)
            code = play(first if number == 1 else [*gem_eval, "--resume", str(run)], records, until)
            lines = lines_of(records)
            killed += code is None
            torn += bool(lines) and not lines[-1].endswith(b"\n")
            lost = kept - digests(lines)
            kept |= digests(lines)
            print(f"{number}: {len(lines):,} records, exit code {code}, {len(lost)} lost", file=sys.stderr, flush=True)
            if lost:
                return 1
        played = list(read_jsonl(records))
        failures = len(lines_of(run / "failures.jsonl"))
    ours.send(None)
    requests = ours.recv()
    numbers = Counter(trajectory.episode for trajectory in played)
    from_replies = all(t.failure is None and [turn.action for turn in t.turns] == [REPLY] for t in played)
    exact = sorted(numbers) == list(range(samples)) and set(numbers.values()) == {1}
    print(f"<!-- Written by `python benchmarks/{' '.join(['resume.py', *sys.argv[1:]])}` -->\n")
    print(f"# An evaluation of {samples:,} samples, killed {killed} times and resumed\n")
    print("| what | |\n|---|---|")
    rows = {
        "samples recorded": f"{len(played):,}",
        "each exactly once": "yes" if exact else "NO",
        "each scored from a reply": "yes" if from_replies else "NO",
        "exit code of the last run": str(code),
        "records torn by a kill, and cut": str(torn),
        "requests that the endpoint received": f"{requests:,}",
        "failed attempts at samples": f"{failures:,}",
        "seconds": f"{time.monotonic() - started:.0f}",
    }
    for name, value in rows.items():
        print(f"| {name} | {value} |")
    return 0 if exact and from_replies and code == 0 and killed == KILLS else 1


if __name__ == "__main__":
    sys.exit(main())
