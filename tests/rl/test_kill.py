"""A run that is killed with SIGKILL resumes to the metrics of an uninterrupted one, with all its parts."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

import transformers

from gem.rl.config import TrainConfig
from gem.rl.config_file import config_to_toml
from gem.rl.tiny import build_tokenizer, collect_corpus

pytestmark = [pytest.mark.train, pytest.mark.slow]

GAMES = ["game:GuessTheNumber-v0-easy", "game:GuessTheNumber-v0"]
LIMIT = 900  # seconds for a few updates, also on a busy machine


def model_folder(folder: Path) -> str:
    """Write a tokenizer and a model without weights, which the seed of a run initializes."""
    corpora = [collect_corpus(game, seed=0) for game in GAMES]
    tokenizer = build_tokenizer([text for corpus in corpora for texts in corpus for text in texts], vocabulary=320)
    tokens = {"vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
        pad_token_id=tokenizer.pad_token_id,
        **tokens,
    ).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def gem(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "gem", "train", *arguments], stdout=subprocess.DEVNULL)


def kill_after(process: subprocess.Popen[bytes], run: Path, updates: int) -> None:
    """Kill a run with SIGKILL once it has written the metrics of some updates."""
    metrics, deadline = run / "metrics.jsonl", time.monotonic() + LIMIT
    while not metrics.exists() or metrics.read_text().count("\n") < updates:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def records(run: Path) -> dict[str, list[object]]:
    """Return all that a run has recorded, without durations."""
    found = {}
    for name in ("metrics", "trajectories", "evaluations"):
        rows = [json.loads(line) for line in (run / f"{name}.jsonl").read_text().splitlines()]
        for row in rows:
            row.pop("time", None)
            for turn in row.get("turns", ()) if name == "trajectories" else ():
                turn.pop("seconds", None)
        found[name] = rows
    return found


def test_killed_twice_with_mixture_curriculum_lora_and_shared_critic(tmp_path: Path):
    config = TrainConfig(
        out=str(tmp_path),
        env=[f"{GAMES[0]}=2", GAMES[1]],
        curriculum="learnability",
        model=model_folder(tmp_path / "model"),
        lora_rank=4,
        advantage="gae",
        critic="shared",
        imitation_steps=5,
        max_new_tokens=12,
        steps=9,
        batch=12,
        minibatch=6,
        slots=8,
        eval_episodes=4,
        eval_every=3,
        checkpoint_every=2,
        learning_rate=1e-2,
    )
    (tmp_path / "run.toml").write_text(config_to_toml(config))
    start = ("--config", str(tmp_path / "run.toml"), "--name")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert gem(*start, "whole").wait(LIMIT) == 0
    kill_after(gem(*start, "killed"), killed, 3)
    kill_after(gem("--resume", str(killed)), killed, 6)
    assert gem("--resume", str(killed)).wait(LIMIT) == 0
    ours, expected = records(killed), records(whole)
    assert len(expected["metrics"]) == 9 and {"value_loss", "levels"} <= expected["metrics"][0].keys()
    for name, rows in expected.items():
        assert ours[name] == rows, name
