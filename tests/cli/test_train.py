"""gem train."""

import json
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch")

from gem.cli import main

pytestmark = pytest.mark.train

SMALL = ["--steps=2", "--batch=8", "--minibatch=8", "--imitation-steps=5", "--eval-episodes=8"]


def test_a_run_prints_scores_and_two_games_and_writes_its_files(tmp_path, capsys):
    assert main(["train", "--out", str(tmp_path), "--name", "r", *SMALL]) == 0
    out = capsys.readouterr().out
    assert "format only" in out and "balanced search" in out and "untrained" in out and "trained" in out
    names = {p.name for p in (tmp_path / "r").iterdir()}
    assert names == {"config.json", "metrics.jsonl", "trajectories.jsonl", "curve.png", "checkpoints"}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--steps", "-1"], "steps must be at least 1, got -1"),
        (["--env", "game:GuessTheNumber-v0-esy"], "did you mean 'game:GuessTheNumber-v0-easy'"),
        (["--env-kwargs", "max_turn=3"], "did you mean 'max_turns'"),
        (["--model", "/no/such/model"], "no model folder '/no/such/model'"),
        (["--stepz", "3"], "did you mean '--steps'"),
        (["--steps", "many"], "many"),
        (["--resume", "/no/such/run"], "is not a training run"),
        (["--resume", "/no/such/run", "--steps", "3"], "drop --steps"),
        (["--out", "/dev/null/runs"], "cannot write the run"),
    ],
)
def test_a_usage_error_is_one_line_and_exits_with_2(flags, message, tmp_path, capsys):
    out = [] if "--out" in flags or "--resume" in flags else ["--out", str(tmp_path)]
    assert main(["train", *out, *flags]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and message in captured.err


def test_ctrl_c_finishes_the_update_saves_and_prints_how_to_resume(tmp_path):
    flags = [*SMALL, "--steps=500"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gem", "train", "--out", str(tmp_path), "--name", "r", *flags],
        stdout=subprocess.PIPE,
        text=True,
    )
    metrics = tmp_path / "r" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not metrics.exists() or not metrics.read_text():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "gem train --resume" in out
    updates = [json.loads(line)["update"] for line in metrics.read_text().splitlines()]
    saved = sorted(p.name for p in (tmp_path / "r" / "checkpoints").iterdir())[-1]
    assert saved == f"update-{updates[-1]:06d}"
