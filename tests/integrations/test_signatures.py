"""Adapters of frameworks that are not at the package index fit the signatures that were read in their sources.

signatures.json is the record. The source itself is compared with it if GEM_RL2 is the folder of a checkout.
"""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORD = json.loads((Path(__file__).parent / "signatures.json").read_text())


def used(module: Path, name: str) -> set[str]:
    """The attributes of a variable that a module reads or sets."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            found.add(node.attr)
    return found


def arguments(module: Path, function: str) -> list[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function:
            extra = [node.args.kwarg.arg] if node.args.kwarg else []
            return [argument.arg for argument in node.args.args] + extra
    raise AssertionError(f"{module} has no function {function}")


def members(module: Path, path: list[str]) -> list[str]:
    """The fields of a dataclass, or the values of an enumeration inside it."""
    body = ast.parse(module.read_text(encoding="utf-8")).body
    for name in path:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == name)
    fields = [node.target.id for node in body if isinstance(node, ast.AnnAssign)]
    return fields or [node.targets[0].id for node in body if isinstance(node, ast.Assign)]


def test_the_rl2_adapter_uses_recorded_names_only():
    record, adapter = RECORD["rl2"], ROOT / "src/gem/integrations/rl2.py"
    assert used(adapter, "sample") <= set(record["RL2.datasets.rl.Sample"])
    assert used(adapter, "Status") <= set(record["RL2.datasets.rl.Sample.Status"])
    assert used(adapter, "communication") == {"async_request"}
    assert arguments(adapter, "generate") == record["RL2.datasets.rl.base_generate"][:-1]


def test_the_source_of_rl2_has_the_recorded_signatures():
    if "GEM_RL2" not in os.environ:
        pytest.skip("GEM_RL2 is not set to a checkout of RL2")
    for name, wanted in RECORD["rl2"].items():
        if name == "source":
            continue
        parts = name.split(".")
        module = Path(os.environ["GEM_RL2"], *parts[:3]).with_suffix(".py")
        found = members(module, parts[3:]) if parts[3] == "Sample" else arguments(module, parts[3])
        assert found == wanted, f"{name} has changed"
