"""The rows of DESIGN.md §2 as data: a module imports only from rows above its own, wherever the import stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src"
MODULES = {
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((SRC / "gem").rglob("*.py"))
}

# Each name is a row; a package is one row, and within it anything goes.
ROWS = [
    *("errors", "messages", "seeding", "parsing", "_internal"),
    *("core", "registry"),
    *("trajectory", "conversation", "datasets", "sandbox", "vector"),
    *("policies", "tools"),
    "graders",
    *("envs", "wrappers"),
    "rollout",
    *("evaluate", "rl", "serve", "testing"),
    *("integrations", "utils", "cli"),
]

# Reached by id, entry point, published name or command; nothing imports them.
LEAVES = {"envs", "integrations", "utils", "cli"}

# Doors that forward what others import; __main__ is `python -m gem`, the command line under another name.
DOORS = {"gem", "gem.envs.registration"}
MAIN = "gem.__main__"

# Where each heavy library may be imported, directly or by require(): its packages and modules under gem.
HOMES = {
    "torch": ["rl"],
    "transformers": ["rl", "conversation"],
    "tokenizers": ["rl", "conversation"],
    "safetensors": ["rl"],
    "datasets": ["datasets"],
    "pyarrow": ["datasets"],
    "ray": ["vector.ray"],
    "reasoning_gym": ["envs"],
    "sympy": ["graders", "envs"],
    "latex2sympy2_extended": ["graders"],
    "PIL": ["envs"],
    "aiohttp": ["_internal", "policies", "tools", "testing", "sandbox.remote"],
    "starlette": ["serve", "tools.search_engine", "sandbox.remote_server"],
    "uvicorn": ["serve", "tools.search_engine", "sandbox.remote_server"],
    "tantivy": ["tools.search_engine"],
    "prometheus_client": ["tools.search_engine"],
    "selectolax": ["tools.search_engine"],
    "mcp": ["tools", "serve"],
    "jsonschema": ["tools"],
    "matplotlib": ["rl", "evaluate"],
}


def row_of(module: str) -> str:
    return "cli" if module == MAIN else module.removeprefix("gem.").split(".")[0]


def package_of(module: str, path: Path) -> str:
    return module if path.name == "__init__.py" else module.rpartition(".")[0]


def statements(module: str, path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file's import statements name, and on which line: in functions, under TYPE_CHECKING too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package_of(module, path).split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [base])])
            for alias in node.names:
                name = f"{base}.{alias.name}"
                yield (name if name in MODULES else base), node.lineno


def calls(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports by calling require("…") or import_module("…"), and on which line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("require", "import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.args[0].value, node.lineno


STATEMENTS = {module: set(statements(module, path)) for module, path in MODULES.items()}
IMPORTS = {module: sorted(STATEMENTS[module] | set(calls(path))) for module, path in MODULES.items()}
INSIDE = sorted(set(MODULES) - DOORS)


def test_every_module_stands_in_a_row():
    assert {row_of(module) for module in INSIDE} <= set(ROWS)


@pytest.mark.parametrize("module", INSIDE)
def test_a_module_imports_only_from_rows_above_its_own(module):
    mine = ROWS.index(row_of(module))
    wrong = [
        f"{MODULES[module].name}:{line} imports {name}"
        for name, line in IMPORTS[module]
        if name.startswith("gem.") and row_of(name) != row_of(module) and ROWS.index(row_of(name)) > mine
    ]
    assert wrong == []


@pytest.mark.parametrize("module", INSIDE)
def test_nothing_imports_a_leaf_from_outside(module):
    wrong = [
        f"{MODULES[module].name}:{line} imports {name}"
        for name, line in IMPORTS[module]
        if name.startswith("gem.") and row_of(name) in LEAVES and row_of(name) != row_of(module)
    ]
    assert wrong == []


@pytest.mark.parametrize("module", INSIDE)
def test_nothing_inside_imports_the_door_in_front(module):
    # `import gem` inside gem would hide what is really used; the command line asks it for the version alone.
    wrong = [line for name, line in STATEMENTS[module] if name == "gem" and row_of(module) not in LEAVES]
    assert wrong == []


@pytest.mark.parametrize("module", MODULES)
def test_a_heavy_library_is_imported_in_its_homes_alone(module):
    wrong = [
        f"{MODULES[module].name}:{line} imports {name}"
        for name, line in IMPORTS[module]
        for home in [HOMES.get(name.split(".")[0])]
        if home is not None and not any(f"{module}.".startswith(f"gem.{place}.") for place in home)
    ]
    assert wrong == []


def test_the_walk_sees_imports_wherever_they_stand(tmp_path):
    path = tmp_path / "sample.py"
    path.write_text(
        "import gem.core\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from gem import registry\n"
        "def f():\n"
        "    from gem.rl.tiny import build_model\n"
        "    from . import config\n"
        "    require('torch.nn', extra='train')\n"
        "    importlib.import_module('datasets')\n"
    )
    stated = {name for name, _ in statements("gem.rl.sample", path)}
    assert stated == {"gem.core", "typing", "gem.registry", "gem.rl.tiny", "gem.rl.config"}
    assert {name for name, _ in calls(path)} == {"torch.nn", "datasets"}
