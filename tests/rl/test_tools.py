"""Training with tools: their output is fed and not trained on, their rewards are parts of their own."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from gem.cli import main
from gem.rl.config import TrainConfig
from gem.rl.model.tiny import build_model, build_tokenizer
from gem.rl.run.trainer import Trainer
from gem.trajectory import read_jsonl

pytestmark = pytest.mark.train

SERVER = Path(__file__).parent.parent / "tools" / "helpers" / "plain_mcp_server.py"
FEW = {"steps": 2, "batch": 12, "minibatch": 6, "slots": 4, "eval_episodes": 4, "keep_trajectories": 12}
FEW |= {"imitation_steps": 0, "max_new_tokens": 4}
CALL = "<tool_call><tool_name>count</tool_name><arguments>{}</arguments></tool_call>"


def with_servers(folder: Path, *arguments: str) -> str:
    """Write an MCP configuration with the stub server, and return its path."""
    command = {"command": sys.executable, "args": [str(SERVER), "--tools", "count", *arguments]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"plain": command}}))
    return str(folder / "mcp.json")


def tiny_model(folder: Path, call: str = "") -> str:
    """Write a model without weights and its tokenizer, in which a call is one token."""
    tokenizer = build_tokenizer([call or "Turn 1: too low."] * 20, vocabulary=400)
    build_model(tokenizer, seed=0, hidden=32, context=2048).config.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return str(folder / "model")


def trained(folder: Path, call: str, **options: object) -> tuple[list[dict], list[str]]:
    """Train a model that often calls a tool and check that its replies are what is trained on.

    Returns the metrics and the texts that are only fed.
    """
    config = TrainConfig(out=str(folder), name="run", model=tiny_model(folder, call), **FEW | options)
    with Trainer.start(config) as trainer:
        (token,) = trainer.policy.tokenizer.encode(call)
        bias = torch.zeros(len(trainer.policy.tokenizer))
        bias[token] = bias[trainer.policy.tokenizer.eos_token_id] = 6.0
        trainer.policy.model.lm_head.register_forward_hook(lambda module, args, out: out + bias)
        trainer.run()
    tokenizer, fed = trainer.policy.tokenizer, []
    for trajectory in read_jsonl(trainer.folder.path / "trajectories.jsonl"):
        if any(turn.tool_calls for turn in trajectory.turns):
            sequences = trajectory.sequences()
            masked = [(i, m) for s in sequences for i, m in zip(s.ids_T, s.loss_mask_T, strict=True)]
            assert [i for i, m in masked if m] == [i for turn in trajectory.turns for i in turn.sampled_ids]
            fed.append(tokenizer.decode([i for i, m in masked if not m]))
    return trainer.folder.read_metrics(), fed


def test_the_tools_of_mcp_servers_are_called_and_their_output_is_not_trained_on(tmp_path: Path):
    pytest.importorskip("mcp")
    options = {"env_kwargs": {"on_unreadable": "continue"}, "mcp": with_servers(tmp_path, "--log", f"{tmp_path}/log")}
    rows, fed = trained(tmp_path, CALL, **options)
    assert [row["update"] for row in rows] == [1, 2] and all(row["tool_calls"] > 0 for row in rows)
    assert len((tmp_path / "log.calls").read_text().split()) > sum(12 * row["tool_calls"] for row in rows)
    assert fed and any("<tool_response>" in text for text in fed)


def test_evaluation_sets_have_the_tools_unless_they_say_otherwise(tmp_path: Path):
    pytest.importorskip("mcp")
    path, easy = with_servers(tmp_path), "game:GuessTheNumber-v0-easy"
    sets = [{"id": easy, "name": "with"}, {"id": easy, "name": "without", "mcp": ""}]
    config = TrainConfig(out=str(tmp_path), model=tiny_model(tmp_path), mcp=path, eval_env=sets, **FEW)
    with Trainer.start(config) as trainer:
        shown = [vec_env.reset(seed=1)[0][0] for vec_env in trainer.evaluator.envs]
    assert ["count" in text for text in shown] == [True, False]


def test_a_bad_mcp_configuration_is_one_line_before_the_first_step(tmp_path: Path, capsys):
    pytest.importorskip("mcp")
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    out = ["--out", str(tmp_path / "runs")]
    for path, says in (("no.json", "MCP configuration no.json"), (str(bad), str(bad))):
        assert main(["train", "--mcp", path, *out]) == 2
        assert says in capsys.readouterr().err
    assert main(["train", "--mcp", with_servers(tmp_path, "--refuse"), *out]) == 1
    assert "it has no wish to start" in capsys.readouterr().err
    branch = ["--advantage", "branch", "--mcp", with_servers(tmp_path)]
    assert main(["train", *branch, *out]) == 2
    assert "fork" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_the_python_tool_is_trained_with_a_rendered_chat_and_its_rewards_are_parts(tmp_path: Path):
    options = {"env": "math:Arithmetic", "wrappers": "python_tool,concat_chat"}
    rows, fed = trained(tmp_path, "<python>print(len('ab'))</python>", **options)
    assert [row["update"] for row in rows] == [1, 2]
    for row in rows:
        parts = row["reward_parts"]
        assert 0 < parts["tool"] <= 0.05 * row["tool_calls"] + 1e-9 and set(parts) <= {"tool", "tool_success"}
    for trajectory in read_jsonl(tmp_path / "run" / "trajectories.jsonl"):
        for turn in (turn for turn in trajectory.turns if turn.reward_parts):
            assert turn.tool_calls and turn.reward == pytest.approx(sum(turn.reward_parts.values()))
    assert fed and any("Code execution result" in text for text in fed)
