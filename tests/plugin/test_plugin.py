"""A package outside gem adds everything that a plug-in can add, with documented names alone."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
QUESTIONS = [{"question": f"What is {n} cubed?", "answer": str(n**3)} for n in range(11, 31)]


def gem_command(*arguments: str) -> str:
    """Run the gem command where the plug-in is found. Returns what it printed."""
    path = os.pathsep.join(map(str, [HERE, ROOT / "src"]))
    command = [sys.executable, "-m", "gem", *arguments]
    run = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "plug-in" not in run.stderr
    return run.stdout


@pytest.fixture
def questions(tmp_path: Path) -> str:
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in QUESTIONS))
    return f"estimate:{file}"


def test_the_plug_in_uses_documented_names_alone():
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        public_api = importlib.import_module("public_api")
    finally:
        sys.path.pop(0)
    public = {definition.path for section in public_api.PUBLIC for definition in public_api.definitions(section)}
    tree = ast.parse((HERE / "ledger_gym.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{name.name}" for node in imports for name in node.names if node.module.startswith("gem")}
    assert names and names - public == set()
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    used = {f"gem.{node.attr}" for node in attributes if getattr(node.value, "id", None) == "gem"}
    assert used and used - public == set()


@pytest.mark.slow
def test_its_environment_is_listed_and_passes_the_check(machines):
    assert "ledger:Sum" in gem_command("list", "ledger:*")
    assert "ledger:Sum" in gem_command("check", "ledger:Sum")


@pytest.mark.slow
def test_its_ids_with_a_path_pass_the_check_and_are_evaluated_with_its_grader(questions, tmp_path):
    gem_command("check", questions)
    for policy, score in (("oracle", 1.0), ("constant:<answer>1</answer>", 0.0)):
        out = tmp_path / str(score)
        gem_command("eval", "--env", questions, "--policy", policy, "--limit", "5", "--out", str(out))
        assert json.loads((out / "report.json").read_text())["envs"][0]["solved"]["value"] == score


@pytest.mark.slow
def test_its_exporter_writes_tasks_and_is_named_if_another_is_asked_for(machines, tmp_path):
    gem_command("export", "ledger-jsonl", "ledger:Sum", "--seeds", "0-2", "--output", str(tmp_path))
    rows = [json.loads(file.read_text()) for file in sorted(tmp_path.glob("*.jsonl"))]
    assert [sum(row["amounts"]) == row["sum"] for row in rows] == [True] * 3
    with pytest.raises(AssertionError, match="ledger-jsonl"):
        gem_command("export", "ledger-json", "ledger:Sum")


@pytest.mark.slow
def test_its_tool_and_the_shell_work_in_its_environment(machines):
    code = (
        "import gem\nfrom gem.wrappers import get_wrapper_fns\n"
        "env = gem.make('ledger:Sum', seed=1)\n"
        "for wrap in get_wrapper_fns('roman_tool, shell_tool'): env = wrap(env)\n"
        "env.reset()\n"
        "print(env.step('<roman>1994</roman>')[0])\n"
        "print(env.step('<bash>wc -l < ledger.txt</bash>')[0])\n"
    )
    path = os.pathsep.join(map(str, [HERE, ROOT / "src"]))
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert "MCMXCIV" in run.stdout and "3\n" in run.stdout, run.stdout + run.stderr


@pytest.mark.train
@pytest.mark.slow
def test_its_environment_trains_two_steps_with_its_advantage_and_its_loss_which_a_resumed_run_keeps(machines, tmp_path):
    sizes = ("--steps", "2", "--batch", "8", "--minibatch", "4", "--eval-episodes", "2", "--imitation-steps", "20")
    own = ("--advantage", "ledger_gym:best_of_group", "--loss", "ledger_gym:imitate_the_best")
    options = ("--advantage-options", "scale=2", "--loss-options", "above=-0.5")
    where = ("--out", str(tmp_path), "--name", "plugged")
    gem_command("train", "--env", "ledger:Sum", *sizes, *own, *options, *where)
    folder = tmp_path / "plugged"
    gem_command("train", "--resume", str(folder), "--steps", "3")
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in rows] == [1, 2, 3]
    assert all("clipped" not in row and "groups_equal" in row for row in rows), "groups, and no loss with a clip range"
    kept = json.loads((folder / "config.json").read_text())
    assert (kept["advantage"], kept["loss"]) == (own[1], own[3])
    assert (kept["advantage_options"], kept["loss_options"], kept["group_size"]) == ({"scale": 2.0}, {"above": -0.5}, 8)
