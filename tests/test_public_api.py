"""The public API: names and signatures, compared with public_api.txt.

Public names are listed in scripts/public_api.py. Any change breaks users' code, so make it on purpose and record it:

    python tests/test_public_api.py --update
"""

from __future__ import annotations

import importlib
import re
import sys
from functools import cache
from pathlib import Path

from gem.registry import ENV_REGISTRY

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_name("public_api.txt")

sys.path.insert(0, str(ROOT / "scripts"))
public_api = importlib.import_module("public_api")
sys.path.pop(0)

ENV_SPECS = [spec for spec in ENV_REGISTRY.values() if isinstance(spec.entry_point, str)]


@cache
def definitions():
    return [definition for section in public_api.PUBLIC for definition in public_api.definitions(section)]


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
    names = [definition.path for definition in definitions()]
    assert sorted(names) == sorted(set(names))


def test_every_public_name_can_be_imported():
    for definition in definitions():
        try:
            getattr(importlib.import_module(definition.module), definition.name)
        except ImportError as e:
            assert not (e.name or "").startswith("gem"), e  # a library of an extra may be missing


def test_every_public_class_and_function_has_a_docstring():
    # The module docstring of gem.errors describes all exceptions.
    missing = [d.path for d in definitions() if public_api.is_class_or_function(d) and not public_api.docstring(d)]
    assert [path for path in missing if not path.startswith("gem.errors.")] == []


# Public modules that are tested in a file with another path, and why.
TESTED_IN = {
    "gem.conversation.retokenization": "tests/conversation/test_history.py",
    "gem.sandbox.machine": "tests/sandbox/forkserver/test_machine.py",  # tested with the machines of fork servers
    "gem.sandbox.machine_protocol": "tests/sandbox/forkserver/test_machine.py",  # tested from both sides by machines
    "gem.tools.formats.base": "tests/tools/test_formats.py",  # the base of the formats, tested with every format
}
# The classes of the environments are public by their ids.
ENVS = {spec.entry_point.partition(":")[0] for spec in ENV_SPECS}


def test_every_public_module_has_its_own_test_file():
    missing = []
    for module in sorted({definition.home for definition in definitions()} | ENVS):
        _, *folders, name = module.split(".")
        path = TESTED_IN.get(module, "/".join(["tests", *folders, f"test_{name}.py"]))
        missing += [] if (ROOT / path).is_file() else [path]
    assert missing == []


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
    homes = {f"{definition.home}.{definition.name}" for definition in definitions()}
    public = {definition.path for definition in definitions()} | homes
    modules = [module for _, modules in public_api.PUBLIC.values() for module in modules]
    public |= {f"{module}.{name}" for module in modules for name in public_api.exported(module)}
    assert sorted(imported - public - public_api.PUBLISHED) == []


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        RECORD.write_text(surface(), encoding="utf-8")
    else:
        print(surface())
