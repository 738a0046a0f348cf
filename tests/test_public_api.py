"""The public surface, names and signatures, compared with public_api.txt.

A change here is a change for everybody's code: make it on purpose, and write it down with

    python tests/test_public_api.py --update
"""

from __future__ import annotations

import enum
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, get_origin

RECORD = Path(__file__).with_name("public_api.txt")

# Modules whose public names callers import. Those that need an extra are not here: they are no core promise yet.
MODULES = [
    "gem",
    "gem.errors",
    "gem.messages",
    "gem.seeding",
    "gem.parsing",
    "gem.core",
    "gem.registry",
    "gem.trajectory",
    "gem.conversation",
    "gem.vector",
    "gem.policies",
    "gem.envs.registration",
    "gem.wrappers",
    "gem.wrappers.wrapper_factory",
    "gem.rollout",
    "gem.rl.advantages",
    "gem.sandbox",
    "gem.tools.base_tool",
    "gem.tools.formats",
    "gem.tools.function_tool",
    "gem.tools.mcp_tool",
    "gem.tools.python_code_tool",
    "gem.tools.search_tool",
    "gem.tools.tool_env_wrapper",
]


def public_names(module: ModuleType) -> list[str]:
    """What __all__ lists or, without one, what the module defines itself and does not mark as private."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not isinstance(value, (ModuleType, TypeVar))
        and (getattr(value, "__module__", None) == module.__name__ or (name.isupper() and name != "TYPE_CHECKING"))
    )


def signature(value: Any) -> str:
    """Parameters and their defaults, without annotations: those are mypy's business."""
    parameters = inspect.signature(value).parameters.values()
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return str(inspect.Signature(bare))


def members(cls: type) -> Iterator[str]:
    """One line per public method and property that a class defines itself."""
    if issubclass(cls, enum.Enum):
        yield from (f"{member.name} = {member.value!r}" for member in cls)
        return
    for name, value in sorted(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, property):
            yield name
        elif isinstance(value, (classmethod, staticmethod)) or inspect.isfunction(value):
            yield f"{name}{signature(getattr(cls, name))}"


def describe(name: str, value: Any) -> Iterator[str]:
    if not inspect.isclass(value) or get_origin(value) is not None:  # list[int] is a class to Python 3.10
        yield f"{name}{signature(value)}" if inspect.isroutine(value) else name
        return
    bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
    yield f"class {name}({bases})"
    is_shape = getattr(value, "_is_protocol", False) or "TypedDict" in type(value).__name__
    if not is_shape and not issubclass(value, (BaseException, enum.Enum)):
        yield f"    {signature(value)}"
    yield from (f"    .{line}" for line in members(value))


def surface() -> str:
    lines: list[str] = []
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        lines.append(f"# {module_name}")
        for name in public_names(module):
            value = getattr(module, name)
            home = getattr(value, "__module__", None)
            shown_elsewhere = home in MODULES and home != module_name and "__all__" not in vars(sys.modules[home])
            lines += [f"{name}  ({home})"] if shown_elsewhere else describe(name, value)
        lines.append("")
    return "\n".join(lines)


def test_the_public_surface_is_the_recorded_one():
    assert surface() == RECORD.read_text(encoding="utf-8"), "on purpose? then: python tests/test_public_api.py --update"


def test_every_name_of_gem_is_in_all_and_can_be_had():
    import gem

    assert gem.__all__ == sorted(gem.__all__)
    assert all(getattr(gem, name) is not None for name in gem.__all__)


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        RECORD.write_text(surface(), encoding="utf-8")
    else:
        print(surface())
