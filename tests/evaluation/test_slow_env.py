"""Evaluations of an environment that takes seconds per step and sometimes crashes, and Ctrl-C while it is at work."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import gem
from gem.cli import main
from gem.evaluation import EvalEnv, evaluate
from gem.registry import ENV_REGISTRY, EnvSpec
from gem.trajectory import read_jsonl

from .slow_env import ID

HANG_S = 120.0  # seconds after which a test counts as hanging
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("runs", "kill"), [("thread", False), ("process", True)])
def test_crashes_of_a_slow_environment_are_played_again_and_each_sample_is_scored_once(
    runs, kill, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    gem.register(EnvSpec(ID, "slow_env:Slow", runs=runs))
    try:
        env = EvalEnv(id=ID, kwargs={"folder": str(tmp_path), "seconds": 0.05, "kill": kill})
        report = evaluate("constant:x", env, limit=6, concurrency=6, backoff=0.0, out=str(tmp_path / "run"))
    finally:
        del ENV_REGISTRY[ID]
    scores = report[ID]
    assert (scores.done, scores.failed, scores.score.value) == (6, 0, 1.0)
    assert sorted(t.episode for t in read_jsonl(tmp_path / "run" / "trajectories.jsonl")) == list(range(6))
    crashes, failures = list(tmp_path.glob("crash-*")), list(read_jsonl(tmp_path / "run" / "failures.jsonl"))
    assert 1 <= len(crashes) <= len(failures)
    assert kill or all("the container died" in t.failure for t in failures)


@pytest.mark.parametrize("runs", ["inline", "thread", "process"])
def test_ctrl_c_does_not_wait_for_a_step_and_leaves_a_run_that_can_be_resumed(runs, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setenv("SLOW_ENV_S", "0")
    gem.register(EnvSpec(ID, "slow_env:Slow", {"folder": str(tmp_path)}, runs=runs))
    run, records = ["eval", "--env", ID, "--resume", str(tmp_path / "run")], tmp_path / "run" / "trajectories.jsonl"
    try:
        flags = ["--env", ID, "--limit", "8", "--concurrency", "2", "--retries", "0", "--allow-failures"]
        assert main(["eval", "--policy", "constant:x", *flags, "--out", str(tmp_path / "run")]) == 0
        records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:2]))
        (tmp_path / "steps").unlink()
        script = [sys.executable, str(Path(__file__).with_name("slow_env.py")), str(tmp_path), runs, "3600"]
        stopped = interrupt([*script, *run[3:]], (tmp_path / "steps").exists)
        assert stopped.returncode == 130 and "Continue with: gem eval --resume" in stopped.stdout
        assert len(records.read_bytes().splitlines()) == 2
        assert main(run) == 0
    finally:
        del ENV_REGISTRY[ID]
    assert sorted(t.episode for t in read_jsonl(records)) == list(range(8))


def test_ctrl_c_does_not_wait_for_replies(tmp_path):
    pytest.importorskip("aiohttp")
    from gem.testing.fakes.endpoint import FakeEndpoint

    released = threading.Event()

    def stalled(request):
        released.wait(HANG_S)
        return "too late"

    command = [sys.executable, "-m", "gem", "eval", "--model", "m", "--env", "qa:Facts", "--out", str(tmp_path / "run")]
    with FakeEndpoint(stalled) as server:
        try:
            stopped = interrupt([*command, "--base-url", server.url], lambda: bool(server.requests))
        finally:
            released.set()
    assert stopped.returncode == 130 and "Stopped. Nothing was kept." in stopped.stdout
    assert not (tmp_path / "run").exists()


def interrupt(command, is_at_work) -> subprocess.CompletedProcess[str]:
    """Run a command, press Ctrl-C when it is at work, and return its end."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        end = time.monotonic() + HANG_S
        while not is_at_work() and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=HANG_S)
    finally:
        process.kill()
    return subprocess.CompletedProcess(command, process.returncode, out)
