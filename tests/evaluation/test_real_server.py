"""A real model server end to end: `transformers serve` with a tiny model saved to disk. Opt-in.

  python -m venv build/serve && build/serve/bin/pip install 'transformers[serving]>=5' torch accelerate
  GEM_TEST_SERVE='build/serve/bin/transformers serve' pytest tests/evaluation/test_real_server.py

The test starts `$GEM_TEST_SERVE FOLDER --host 127.0.0.1 --port PORT --device cpu` and ends it.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest

from gem.cli import main
from gem.trajectory import read_jsonl

GAME = "game:GuessTheNumber-v0-easy"
START_S = 300  # for the import of PyTorch on a busy machine
pytestmark = [pytest.mark.train, pytest.mark.slow]


@pytest.fixture
def server(tmp_path) -> Iterator[tuple[str, str]]:
    """The folder of the model, which is its name at the server, and the URL of the API."""
    command = os.environ.get("GEM_TEST_SERVE")
    if command is None:
        pytest.skip("GEM_TEST_SERVE names no command like 'transformers serve'; see this file")
    pytest.importorskip("torch")
    pytest.importorskip("aiohttp")
    from gem.rl.config import TrainConfig
    from gem.rl.model.loading import save_pretrained
    from gem.rl.run.build import build_policy

    folder = tmp_path / "model"
    policy = build_policy(TrainConfig(env=GAME))
    save_pretrained(policy.model, policy.tokenizer, folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = [str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*shlex.split(command), *arguments], stdout=log, stderr=log, env={**os.environ, "HF_HUB_OFFLINE": "1"}
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/health", process, tmp_path / "server.log")
        yield str(folder), f"{url}/v1"
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_for(url: str, process: subprocess.Popen[bytes], log) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError(f"the server did not start in {START_S} s: {log.read_text()[-2000:]}")


def test_a_model_behind_a_real_server_is_scored(server, tmp_path, monkeypatch, capsys):
    model, url = server
    monkeypatch.chdir(tmp_path)
    flags = ["--model", model, "--base-url", url, "--env", GAME, "--limit", "4", "--max-tokens", "8", "--out", "run"]
    assert main(["eval", *flags, "--concurrency", "2", "--temperature", "0"]) == 0
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    (scores,) = report["envs"]
    assert (scores["done"], scores["failed"], scores["planned"]) == (4, 0, 4) and scores["tokens_out"] > 0
    played = list(read_jsonl(tmp_path / "run" / "trajectories.jsonl"))
    assert {t.model for t in played} == {model} and all(turn.finish for t in played for turn in t.turns)
    assert main(["eval", "--resume", "run"]) == 0 and "4/4" in capsys.readouterr().out
