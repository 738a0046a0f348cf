"""The public API: its names in order of use, where they are defined, and their signatures.

docs/reference/api.md and tests/public_api.txt are generated from the __all__ of the modules in PUBLIC. Names of the
published package that are kept for compatibility are tested in tests/compat. Definitions are read from the sources and
not imported, so that the result depends neither on installed extras nor on the Python version.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src"

# title → (one sentence, modules in the order in which their names are documented). The public names of a module are
# those of its __all__. A name that several modules have is documented where it is first.
PUBLIC: dict[str, tuple[str, list[str]]] = {
    "Environments": (
        "Make, step and define environments.",
        ["gem", "gem.registry", "gem.core", "gem.envs", "gem.multiagent", "gem.wrappers", "gem.parsing"],
    ),
    "Vector environments": ("Step many environments at once.", ["gem.vector"]),
    "Tools": (
        "Give an agent functions that it can call.",
        ["gem.tools", "gem.messages", "gem.tools.search.index", "gem.tools.search.ranking"],
    ),
    "Policies": ("Choose actions: models behind an endpoint, scripts, oracles.", ["gem.policies"]),
    "Rollouts": (
        "Collect trajectories by running a policy in vector environments.",
        ["gem.rollout", "gem.trajectory", "gem.conversation"],
    ),
    "Training frameworks": (
        "Rows of datasets, and episodes as token sequences, for adapters; see docs/frameworks.md.",
        ["gem.integrations", "gem.integrations.pettingzoo"],
    ),
    "Evaluation": ("Score a policy, with intervals.", ["gem.evaluation", "gem.evaluation.metrics"]),
    "Training": (
        "Train a policy from trajectories.",
        [
            "gem.rl",
            "gem.rl.estimate.advantages",
            "gem.rl.estimate.losses",
            "gem.envs.table.poker_solver",
        ],
    ),
    "Sandboxes": ("Run untrusted programs.", ["gem.sandbox"]),
    "Graders and datasets": (
        "Score answers, and read the rows that questions come from.",
        ["gem.graders", "gem.graders.exact", "gem.graders.math", "gem.graders.judge", "gem.datasets"],
    ),
    "Testing": (
        "Check environments, tools and sandboxes, and replace services in tests.",
        ["gem.testing", "gem.testing.sandbox", "gem.testing.check_judge", "gem.testing.fakes"],
    ),
    "Errors": (
        "CallerError is the caller's mistake, InfraError a failure of infrastructure.",
        ["gem.errors"],
    ),
}

# Names of the published package that the documents use. tests/compat tests all published names.
PUBLISHED = {"gem.wrappers.wrapper_factory.WRAPPER_FACTORY"}
# Modules that the documents use for special purposes, and that may change without notice.
UNSTABLE = {
    *("gem.conversation", "gem.envs.questions.facts", "gem.envs.web.wiki.articles", "gem.rl.model.tiny"),
    *("gem.tools.search.dense", "gem.rl.minimal"),
}


@dataclass(frozen=True)
class Definition:
    """A public name: the module it is imported from, the module that defines it, and the defining statement."""

    module: str
    name: str
    home: str
    node: ast.stmt

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


def definitions(section: str) -> list[Definition]:
    """The definitions of a section in order."""
    return [definition for title, definition in _all_definitions() if title == section]


@cache
def _all_definitions() -> list[tuple[str, Definition]]:
    found: dict[tuple[str, str], tuple[str, Definition]] = {}
    for section, (_, modules) in PUBLIC.items():
        for module in modules:
            for name in exported(module):
                definition = find(module, name)
                found.setdefault((definition.home, definition.name), (section, definition))
    return list(found.values())


def find(module: str, name: str) -> Definition:
    """Find a name in a module, following imports from other modules of gem."""
    home = module
    while True:
        node = _defined(home).get(name)
        if node is None:
            raise LookupError(f"{module} has no public name {name!r}; see PUBLIC in scripts/public_api.py")
        if not isinstance(node, ast.ImportFrom):
            return Definition(module, name, home, node)
        assert node.module is not None
        home = node.module


def signature(definition: Definition, *, annotations: bool) -> str:
    """The parameters of a function or constructor in parentheses; empty for constants, protocols and exceptions."""
    node = definition.node
    if isinstance(node, ast.FunctionDef):
        return _parameters(node, definition.home, annotations, method=False)
    if isinstance(node, ast.ClassDef) and not _is_exception(definition):
        return _constructor(definition, annotations)
    return ""


def methods(definition: Definition, *, annotations: bool) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Public methods and properties of a class that it defines itself, with their signatures."""
    if not isinstance(definition.node, ast.ClassDef):
        return
    for child in definition.node.body:
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and (
            child.name == "__call__" or child.name[0] != "_"
        ):
            function = child if isinstance(child, ast.FunctionDef) else _as_function(child)
            if _decorators(function) & {"property", "cached_property"}:
                yield function.name, function
            elif not any(name.endswith(".setter") for name in _decorators(function)):
                yield f"{function.name}{_parameters(function, definition.home, annotations, method=True)}", function


def enum_members(definition: Definition) -> list[str]:
    """Assignments ``NAME = value`` for each member of an enum; empty for other definitions."""
    node = definition.node
    if not isinstance(node, ast.ClassDef) or not any("Enum" in ast.unparse(base) for base in node.bases):
        return []
    assignments = [child for child in node.body if isinstance(child, ast.Assign)]
    return [ast.unparse(child) for child in assignments if not ast.unparse(child).startswith("_")]


def field_helps(definition: Definition) -> list[tuple[str, str]]:
    """(name, help text) of fields that are command-line options, whose help replaces the docstring."""
    if not isinstance(definition.node, ast.ClassDef):
        return []
    calls = [(ast.unparse(field.target), field.value) for field in fields(definition)]
    return [
        (name, str(ast.literal_eval(call.args[-1])))
        for name, call in calls
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("_option", "_options")
    ]


def is_class_or_function(definition: Definition) -> bool:
    return isinstance(definition.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def docstring(definition: Definition) -> str:
    """The docstring of a function or class, or the comment above or behind a constant."""
    node = definition.node
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return ast.get_docstring(node) or ""
    lines = _file(definition.home).read_text(encoding="utf-8").splitlines()
    first = node.lineno - 1
    while lines[first - 1].startswith("# "):
        first -= 1
    above = " ".join(line[2:] for line in lines[first : node.lineno - 1])
    return above or lines[node.lineno - 1].partition("  # ")[2]


def exported(module: str) -> list[str]:
    """The names in the __all__ of a module."""
    assignment = _defined(module)["__all__"]
    assert isinstance(assignment, ast.Assign)
    return list(ast.literal_eval(assignment.value))


def _file(module: str) -> Path:
    path = SOURCES / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _defined(module: str) -> dict[str, ast.stmt]:
    """Name → the statement that defines or imports it, for the top level of a module."""
    found: dict[str, ast.stmt] = {}
    for node in _statements(ast.parse(_file(module).read_text(encoding="utf-8")).body):
        for name in _names(node):
            found[name] = node
    return found


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If):  # if TYPE_CHECKING
            yield from _statements(node.body)
        else:
            yield node


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names] if (node.module or "").startswith("gem") else []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _decorators(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    return {ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list}


def _as_function(node: ast.AsyncFunctionDef) -> ast.FunctionDef:
    return ast.FunctionDef(**{name: getattr(node, name) for name in node._fields})


def _parameters(node: ast.FunctionDef, home: str, annotations: bool, *, method: bool) -> str:
    arguments = copy.deepcopy(node.args)
    arguments.defaults = [_literal(default, home) for default in arguments.defaults]
    arguments.kw_defaults = [default and _literal(default, home) for default in arguments.kw_defaults]
    if method and "staticmethod" not in _decorators(node):
        first = arguments.posonlyargs or arguments.args
        del first[0]
    if not annotations:
        for argument in ast.walk(arguments):
            if isinstance(argument, ast.arg):
                argument.annotation = None
    returns = f" -> {ast.unparse(node.returns)}" if annotations and node.returns is not None else ""
    written = ast.unparse(arguments).replace("lambda :", "lambda:")  # Python 3.10 writes the space
    return f"({written}){returns}"


def _constructor(definition: Definition, annotations: bool) -> str:
    """Parameters of a class: those of its own __init__ or __new__, its fields, or those of its first gem base."""
    node = definition.node
    assert isinstance(node, ast.ClassDef)
    for child in node.body:
        if isinstance(child, ast.FunctionDef) and child.name in ("__init__", "__new__"):
            return _parameters(child, definition.home, annotations, method=True).partition(" -> ")[0]
    bases = [ast.unparse(base) for base in node.bases]
    if any("Enum" in base or "Protocol" in base for base in bases):
        return ""
    own = (
        _fields(definition, annotations)
        if "dataclass" in _decorators(node) or bases in (["NamedTuple"], ["TypedDict"])
        else []
    )
    for base in bases:
        if base in _defined(definition.home) and not own:
            return _constructor(find(definition.home, base), annotations)
    keyword_only = ["*"] if any("kw_only=True" in ast.unparse(d) for d in node.decorator_list) and own else []
    return f"({', '.join(keyword_only + own)})"


def fields(definition: Definition) -> Iterator[ast.AnnAssign]:
    """The fields of a dataclass, NamedTuple or TypedDict that its constructor takes."""
    assert isinstance(definition.node, ast.ClassDef)
    for child in definition.node.body:
        if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name) and child.target.id[0] != "_":
            excluded = child.value is not None and "init=False" in ast.unparse(child.value)
            if "ClassVar" not in ast.unparse(child.annotation) and not excluded:
                yield child


def _fields(definition: Definition, annotations: bool) -> list[str]:
    found = []
    for field in fields(definition):
        kind = f": {ast.unparse(field.annotation)}" if annotations else ""
        equals = " = " if annotations else "="
        default = "" if field.value is None else equals + _default(field.value, definition.home)
        found.append(f"{ast.unparse(field.target)}{kind}{default}")
    return found


def _default(value: ast.expr, home: str) -> str:
    """The default of a field; <factory> for a field(...) call with a default_factory."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("field", "flag", "_option", "_options"):
        keywords = {keyword.arg: keyword.value for keyword in value.keywords}
        if ast.unparse(value.func) == "_options":
            return "{}"
        if "default_factory" in keywords:
            return "<factory>"
        value = keywords["default"] if "default" in keywords else value.args[0]
    return ast.unparse(_literal(value, home))


def _literal(value: ast.expr, home: str) -> ast.expr:
    """The value of a constant that is defined in the module as a literal; other expressions unchanged."""
    assigned = _defined(home).get(value.id) if isinstance(value, ast.Name) else None
    if isinstance(assigned, (ast.Assign, ast.AnnAssign)) and isinstance(assigned.value, ast.Constant):
        return assigned.value
    return value


def _is_exception(definition: Definition) -> bool:
    node = definition.node
    assert isinstance(node, ast.ClassDef)
    for base in map(ast.unparse, node.bases):
        if base.endswith(("Error", "Exception")):
            return True
        if base in _defined(definition.home):
            found = find(definition.home, base)
            if isinstance(found.node, ast.ClassDef) and _is_exception(found):
                return True
    return False
