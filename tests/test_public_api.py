"""The public API: names and signatures, compared with public_api.txt.

Public names are listed in scripts/public_api.py. Any change breaks users' code, so make it on purpose and record it:

    python tests/test_public_api.py --update
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

from gem.registry import ENV_REGISTRY

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_name("public_api.txt")

sys.path.insert(0, str(ROOT / "scripts"))
public_api = importlib.import_module("public_api")
sys.path.pop(0)

ENV_SPECS = [spec for spec in ENV_REGISTRY.values() if isinstance(spec.entry_point, str)]
DEFINITIONS = [definition for section in public_api.PUBLIC for definition in public_api.definitions(section)]


def surface() -> str:
    lines: list[str] = []
    for section in public_api.PUBLIC:
        lines += ["", f"# {section}"]
        for definition in public_api.definitions(section):
            lines.append(definition.path + public_api.signature(definition, annotations=False))
            lines += [f"    .{member}" for member in public_api.enum_members(definition)]
            lines += sorted(f"    .{method}" for method, _ in public_api.methods(definition, annotations=False))
    return "\n".join(lines[1:]) + "\n"


def test_the_public_api_is_the_recorded_one():
    assert surface() == RECORD.read_text(encoding="utf-8"), "on purpose? then: python tests/test_public_api.py --update"


def test_no_name_is_listed_twice():
    names = [definition.path for definition in DEFINITIONS]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.path)
def test_every_public_name_can_be_imported(definition):
    try:
        module = importlib.import_module(definition.module)
    except ImportError as e:
        pytest.skip(f"needs an extra: {e}")
    assert getattr(module, definition.name) is not None


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.path)
def test_every_public_class_and_function_has_a_docstring(definition):
    if (
        public_api.is_class_or_function(definition) and definition.home != "gem.errors"
    ):  # its module docstring lists all
        assert public_api.docstring(definition), definition.home


# Public modules that are tested in a file with another path, and why.
TESTED_IN = {
    "gem.sandbox.machine_protocol": "tests/sandbox/test_machine.py",  # tested from both sides by machines
    "gem.tools.formats.base": "tests/tools/test_formats.py",  # the base of the formats, tested with every format
}
# The classes of the environments are public by their ids; games are one file each beside the other environments.
ENVS = sorted({spec.entry_point.partition(":")[0] for spec in ENV_SPECS})


@pytest.mark.parametrize("module", sorted({definition.home for definition in DEFINITIONS} | set(ENVS)))
def test_every_public_module_has_its_own_test_file(module):
    _, *folders, name = module.replace(".envs.game_env.", ".envs.").split(".")
    mirror = "/".join(["tests", *folders, f"test_{name}.py"])
    assert (ROOT / TESTED_IN.get(module, mirror)).is_file(), f"write {mirror}"


def test_the_names_of_gem_are_sorted_and_can_be_imported():
    import gem

    assert gem.__all__ == sorted(gem.__all__)
    assert all(getattr(gem, name) is not None for name in gem.__all__)


def test_every_name_imported_by_the_documents_is_public_or_published():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    imports = [
        match for page in pages for match in re.findall(r"^from (gem[\w.]*) import (.+)$", page.read_text(), re.M)
    ]
    stable = [(module, names) for module, names in imports if module not in public_api.UNSTABLE]
    imported = {f"{module}.{name}" for module, names in stable for name in names.split(", ")}
    homes = {f"{definition.home}.{definition.name}" for definition in DEFINITIONS}
    public = {definition.path for definition in DEFINITIONS} | homes
    assert sorted(imported - public - public_api.PUBLISHED) == []


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        RECORD.write_text(surface(), encoding="utf-8")
    else:
        print(surface())
