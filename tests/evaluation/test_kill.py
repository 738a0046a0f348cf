"""A killed and resumed evaluation of a faulty endpoint: every sample exactly once, none scored by an outage."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from pathlib import Path
from typing import ClassVar

import pytest

pytest.importorskip("aiohttp")

from gem.cli import main
from gem.testing.fakes.endpoint import Answer, FakeEndpoint, ReceivedRequest
from gem.trajectory import read_jsonl

GAME = "game:GuessTheNumber-v0-easy"
pytestmark = pytest.mark.slow


class FaultyServer:
    """Mixes faults with replies, and blocks from the request number ``stop_at`` on until ``released``."""

    FAULTS: ClassVar = [
        Answer(status=500),
        Answer(text="\\boxed{5}", cut=True),
        Answer(status=429, headers={"Retry-After": "0.01"}),
        Answer(drop=True),
    ]

    def __init__(self, stop_at: int) -> None:
        self.count, self.stop_at = itertools.count(1), stop_at
        self.reached, self.released = threading.Event(), threading.Event()

    def __call__(self, request: ReceivedRequest) -> str | Answer:
        number = next(self.count)
        if number >= self.stop_at:
            self.reached.set()
            self.released.wait(60)
        return self.FAULTS[number // 12 % 4] if number % 12 == 0 else "\\boxed{5}"


def test_a_killed_run_asks_every_sample_exactly_once(tmp_path):
    folder, model = tmp_path / "run", FaultyServer(stop_at=60)
    first = ["--model", "m", "--env", GAME, "--limit", "15", "--rollouts", "2", "--concurrency", "5"]
    with FakeEndpoint(model) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "gem", "eval", *first, "--base-url", server.url, "--out", str(folder)],
            stdout=subprocess.DEVNULL,
        )
        assert model.reached.wait(60)
        process.kill()
        process.wait()
        before = Path(folder / "trajectories.jsonl").read_bytes()
        model.released.set()
        assert main(["eval", "--resume", str(folder)]) == 0
    after = Path(folder / "trajectories.jsonl").read_bytes()
    assert before and after.startswith(before[: before.rfind(b"\n") + 1])  # what was recorded was not asked again
    played = list(read_jsonl(folder / "trajectories.jsonl"))
    assert sorted(t.episode for t in played) == list(range(30))
    assert all(t.failure is None and t.turns for t in played)
