"""Adapters of frameworks that are not at the package index fit the signatures that were read in their sources.

signatures.json is the record. The source is compared with it if a variable such as GEM_RL2 names a checkout.
"""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADAPTERS = ROOT / "src/gem/integrations"
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
RECORD = json.loads((Path(__file__).parent / "signatures.json").read_text())


def used(module: Path, name: str) -> set[str]:
    """The attributes of a variable that a module reads or sets."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            found.add(node.attr)
    return found


def signature(module: Path, path: str) -> list[str]:
    """The arguments of a function, the fields of a class, or the values of an enumeration."""
    node: ast.AST = ast.parse(module.read_text(encoding="utf-8"))
    for name in path.split("."):
        node = next(n for n in ast.walk(node) if isinstance(n, DEFINITIONS) and n.name == name)
    if isinstance(node, ast.ClassDef):
        fields = [n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
        return fields or [n.targets[0].id for n in node.body if isinstance(n, ast.Assign)]
    extra = [node.args.kwarg.arg] if node.args.kwarg else []
    return [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)] + extra


def recorded(name: str) -> dict[str, list[str]]:
    return {path: wanted for path, wanted in RECORD[name].items() if ":" in path and path != "source"}


@pytest.mark.parametrize("name", sorted(RECORD))
def test_the_source_has_the_recorded_signatures(name):
    variable = f"GEM_{name.upper()}"
    if variable not in os.environ:
        pytest.skip(f"{variable} is not set to a checkout of {RECORD[name]['source']}")
    for path, wanted in recorded(name).items():
        module, _, member = path.partition(":")
        found = signature(Path(os.environ[variable], *module.split(".")).with_suffix(".py"), member)
        assert found == wanted, f"{path} has changed"


def test_the_rl2_adapter_uses_recorded_names_only():
    record, adapter = recorded("rl2"), ADAPTERS / "rl2.py"
    assert used(adapter, "sample") <= set(record["RL2.datasets.rl:Sample"])
    assert used(adapter, "Status") <= set(record["RL2.datasets.rl:Sample.Status"])
    assert used(adapter, "communication") == {"async_request"}
    assert signature(adapter, "generate") == record["RL2.datasets.rl:base_generate"][:-1]


def test_the_roll_adapter_uses_recorded_names_only():
    record, adapter = recorded("roll"), ADAPTERS / "roll.py"
    managers = "roll.pipeline.agentic.env_manager"
    assert used(adapter, "cache") <= set(record[f"{managers}.base_env_manager:RolloutCache"])
    for name in ("step", "format_messages"):
        assert signature(adapter, f"_GemManager.{name}") == record[f"{managers}.traj_env_manager:TrajEnvManager.{name}"]


def test_the_slime_adapter_uses_recorded_names_only():
    record, adapter = recorded("slime"), ADAPTERS / "slime.py"
    assert used(adapter, "sample") <= set(record["slime.utils.types:Sample"])
    assert used(adapter, "Status") <= set(record["slime.utils.types:Sample.Status"])
    assert used(adapter, "rollout") == {"GenerateState", "post", "Sample"}
    assert signature(adapter, "generate") == record["slime.rollout.sglang_rollout:generate"]


def test_the_nemo_rl_adapter_uses_recorded_names_only():
    record, adapter = recorded("nemo_rl"), ADAPTERS / "nemo_rl.py"
    interfaces = "nemo_rl.environments.interfaces"
    assert used(adapter, "interfaces") == {"EnvironmentInterface", "EnvironmentReturn"}
    for name in ("step", "global_post_process_and_metrics"):
        assert signature(adapter, f"GemBatchEnvironment.{name}") == record[f"{interfaces}:EnvironmentInterface.{name}"]
    source = adapter.read_text(encoding="utf-8")
    assert all(f"{name}=" in source for name in record[f"{interfaces}:EnvironmentReturn"])


def test_the_skyrl_adapter_uses_recorded_names_only():
    record, adapter = recorded("skyrl"), ADAPTERS / "skyrl.py"
    base = "skyrl-gym.skyrl_gym.envs.base_text_env"
    for name in ("init", "step"):
        assert signature(adapter, f"GemTextEnv.{name}") == record[f"{base}:BaseTextEnv.{name}"]
    generator = "skyrl.train.generators.skyrl_gym_generator:SkyRLGymGenerator"
    assert signature(adapter, "GemGenerator.agent_loop") == record[f"{generator}.agent_loop"]
