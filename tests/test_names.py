"""Names under src/gem: standard terms instead of metaphors, and one meaning for each public class name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src"
PATHS = sorted(path for path in (SRC / "gem").rglob("*.py") if "repositories" not in path.parts)

# Names that the project does not use, and the terms that it uses. Case and leading underscores do not count.
REPLACED = {
    "crew": "WorkerPool",
    "hire": "start",
    "dismiss": "stop",
    "share": "Shard",
    "suspects": "quarantined",
    "doomed": "pending_failure",
    "facts": "SlotMetadata",
    "glance": "POLL_INTERVAL",
    "patience": "poll_timeout",
    "places": "execution modes",
    "flight": "RolloutScheduler",
    "land": "drain",
    "spokenpolicy": "a policy of random text",
    "listen": "collect_corpus",
    "heard": "Corpus",
    "drift": "retokenization mismatch",
    "whole": "FULL_HISTORY",
    "subject": "target",
    "lab": "harness",
    "scene": "case",
    "promise": "Check",
    "judge": "run_checks",
    "plays": "recorded rollouts",
    "floors": "baseline scores",
    "spoiled": "corrupted",
    "fault": "ToolErrorType",
    "openings": "TagScanner",
    "is_mention": "is_quoted",
    "dressed": "format",
    "offer": "tool list",
    "tail": "StderrBuffer",
    "portable": "to_picklable",
    "passing": "retryable",
}

# (module, name) → why the name is right there.
ALLOWED = {
    ("gem.envs.facts", "facts"): "the module of the environment qa:Facts",
    ("gem.envs.logic_rules", "facts"): "the given facts of a theory",
    ("gem.graders.judge", "judge"): "a language model as judge",
}

# Public classes of one name in several modules → why.
SAME_NAME: dict[str, str] = {
    "State": "each game's own state: get_state() names the field, not the class",
    "Oracle": "each game's own oracle, beside the game",
    "Config": "each command's flags, in the command's module",
}


# Modules of the compatibility layer define classes of ours again, with the published arguments.
PUBLISHED = {"gem.vector.sync_vector_env", "gem.vector.async_vector_env", "gem.wrappers.observation_wrapper"}


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


def defined(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names of classes, functions and attributes that a file defines, and where."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        if isinstance(node, (ast.ClassDef, ast.Module)):
            for statement in node.body:
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
                yield from ((target.id, target.lineno) for target in targets if isinstance(target, ast.Name))


def names_of(path: Path) -> Iterator[tuple[str, int]]:
    yield module_of(path).rpartition(".")[2], 0
    yield from defined(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", PATHS, ids=module_of)
def test_a_module_uses_none_of_the_replaced_names(path):
    module = module_of(path)
    wrong = [
        f"line {line}: {name}; use {REPLACED[plain]}"
        for name, line in names_of(path)
        for plain in [name.lstrip("_").lower()]
        if plain in REPLACED and (module, plain) not in ALLOWED
    ]
    assert wrong == []


def test_a_public_class_name_is_defined_once():
    modules = defaultdict(set)
    for path in PATHS:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and module_of(path) not in PUBLISHED:
                modules[node.name].add(module_of(path))
    twice = {name: sorted(where) for name, where in modules.items() if len(where) > 1 and name not in SAME_NAME}
    assert twice == {}


def test_the_walk_sees_classes_functions_modules_and_attributes(tmp_path):
    path = tmp_path / "crew.py"
    path.write_text("GLANCE = 1\nclass Share:\n    facts: int = 0\n    def hire(self):\n        self._doomed = []\n")
    names = {name for name, _ in defined(ast.parse(path.read_text()))}
    assert names == {"GLANCE", "Share", "facts", "hire", "_doomed"}
