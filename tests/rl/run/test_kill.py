"""A run that is killed with SIGKILL resumes to the metrics of an uninterrupted one, with all its parts."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

import transformers

from gem.rl.config import TrainConfig
from gem.rl.config_file import config_to_toml
from gem.rl.model.tiny import build_tokenizer, collect_corpus
from gem.rl.run.trainer import Trainer
from training_runs import run_of

pytestmark = pytest.mark.train

GAMES = ["game:GuessTheNumber-v0-easy", "game:GuessTheNumber-v0"]
RUN = """
import os, signal, sys
from gem.rl.config import TrainConfig
from gem.rl.config_file import read_config
from gem.rl.run.trainer import Trainer
trainer = Trainer.start(TrainConfig(**read_config(sys.argv[1]) | {"name": "killed"}))
trainer.run(on_update=lambda row: row["update"] == 3 and os.kill(os.getpid(), signal.SIGKILL))
"""


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
        name="whole",
        env=[f"{GAMES[0]}=2", GAMES[1]],
        curriculum="levels",
        model=model_folder(tmp_path / "model"),
        lora_rank=4,
        advantage="gae",
        critic_options={"shared": True},
        imitation_steps=5,
        max_new_tokens=12,
        steps=6,
        batch=12,
        minibatch=6,
        slots=8,
        eval_episodes=4,
        eval_every=3,
        checkpoint_every=2,
        learning_rate=1e-2,
    )
    (tmp_path / "run.toml").write_text(config_to_toml(config))
    killed = tmp_path / "killed"
    process = subprocess.run([sys.executable, "-c", RUN, str(tmp_path / "run.toml")], check=False)
    assert process.returncode == -signal.SIGKILL and len(records(killed)["metrics"]) == 3
    with Trainer.resume(str(killed)) as trainer:  # from update 2; it ends as if it were killed
        assert [trainer.step()["update"] for _ in range(3)] == [3, 4, 5]
    with Trainer.resume(str(killed)) as trainer:
        trainer.run()
    whole = run_of(config)
    ours, expected = records(killed), records(whole)
    assert len(expected["metrics"]) == 6 and {"value_loss", "levels"} <= expected["metrics"][0].keys()
    for name, rows in expected.items():
        assert ours[name] == rows, name
