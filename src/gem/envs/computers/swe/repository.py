r"""Small repositories with hidden tests, and faults in them.

A folder of repositories has the package of the same name, README.md, visible tests in tests, and in hidden:

- probes.py: functions probe_* without arguments that return plain values.
- expected.json: what they return in the repository without a fault.
- mutations.json: faults made by scripts/swe_faults.py, each with a probe that it changes.
- faults.txt: faults written by hand. A paragraph is one fault: a line with the issue, then its edits, each a path, the
  lines that it replaces after "-", and the new ones after "+". A line "\" takes the line break off the line before it.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import indent
from typing import Any

from gem.envs.computers.task import CANARY

FOLDER = Path(__file__).parents[1] / "repositories" / "swe"
NAMES = ("calc", "kvlog", "markup", "routes", "spans", "tabular")


@dataclass(frozen=True)
class Edit:
    """A part of a file that a fault replaces. ``old`` is in the file once, and ``new`` once in the changed file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Defect:
    """A fault of a repository. The issue describes what a user sees, not where the fault is."""

    issue: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Mutation:
    """A fault made by a program, a probe that it changes, and the result of this probe with the fault."""

    edit: Edit
    probe: str
    found: str


@dataclass(frozen=True)
class Repository:
    """A repository without a fault.

    Args:
        name: of the repository and its package.
        files: visible files by path, without the canary.
        probes: source of the hidden tests.
        expected: repr of the result of each probe, by name.
        mutations: faults made by a program.
        written: faults written by hand.
    """

    name: str
    files: Mapping[str, str]
    probes: str
    expected: Mapping[str, str]
    mutations: tuple[Mutation, ...]
    written: tuple[Defect, ...]

    def broken(self, edits: Iterable[Edit]) -> dict[str, str]:
        """Return the files with a fault. Raises ValueError if an edit does not fit."""
        files = dict(self.files)
        for edit in edits:
            changed = files[edit.path].replace(edit.old, edit.new)
            if files[edit.path].count(edit.old) != 1 or changed.count(edit.new) != 1:
                raise ValueError(f"an edit does not fit {edit.path}: {edit.old!r}")
            files[edit.path] = changed
        return files

    def defect(self, mutation: Mutation) -> Defect:
        """Return a fault whose issue is a script, what it should print, and what it prints now."""
        probe = mutation.probe
        source = f"{reproduction(self.probes, probe)}\n\nprint({probe.removeprefix('probe_')}())\n"
        issue = (
            f"A script of mine that uses {self.name} gives another result than before.\n\n{indent(source, '    ')}\n"
            f"It should {_outcome(self.expected[probe])}\n\nNow it {_outcome(mutation.found, 's')}"
        )
        return Defect(issue, (mutation.edit,))


@cache
def load(name: str) -> Repository:
    """Return a repository by its name."""
    folder = FOLDER / name
    paths = [folder / "README.md", *sorted(folder.glob(f"{name}/*.py")), *sorted(folder.glob("tests/*.py"))]
    probes = _text(folder / "hidden" / "probes.py")
    expected = _data(folder / "hidden" / "expected.json", "results")
    rows = _data(folder / "hidden" / "mutations.json", "faults")
    mutations = tuple(Mutation(Edit(*row["edit"]), row["probe"], row["found"]) for row in rows)
    files = {path.relative_to(folder).as_posix(): _text(path) for path in paths}
    written = tuple(_defect(*part.split("\n")) for part in _text(folder / "hidden" / "faults.txt").split("\n\n"))
    return Repository(name, files, probes, expected, mutations, written)


def _defect(issue: str, *lines: str) -> Defect:
    """Read one fault of faults.txt."""
    edits: list[list[str]] = []
    side = 0
    for line in lines:
        if line.startswith(("-", "+")):
            side = "-+".index(line[0]) + 1
            edits[-1][side] += f"{line[1:]}\n"
        elif line == "\\":
            edits[-1][side] = edits[-1][side].removesuffix("\n")
        elif line:
            edits.append([line, "", ""])
    return Defect(issue, tuple(Edit(*edit) for edit in edits))


def _text(path: Path) -> str:
    """Return a file without its first line, which has the canary."""
    first, _, text = path.read_text(encoding="utf-8").partition("\n")
    if CANARY not in first:
        raise ValueError(f"the first line of {path} has no canary")
    return text


def _data(path: Path, name: str) -> Any:
    """Return one value of a JSON file; an empty one if the file has yet to be made."""
    return json.loads(path.read_text(encoding="utf-8"))[name] if path.exists() else {}


def _outcome(result: str, ending: str = "") -> str:
    if result.startswith("raises "):
        return f"raise{ending} {result.removeprefix('raises ')}."
    return f"print{ending}:\n\n    {result}"


def reproduction(probes: str, name: str) -> str:
    """Return the source of one probe, with the imports and helpers that it needs, and without "probe_" in its name."""
    tree = ast.parse(probes)
    lines = probes.split("\n")
    needed = {name}
    parts: list[str] = []
    for node in reversed(tree.body):
        names = _defined(node)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            used = [alias.name for alias in node.names if alias.name in needed]
            if not used:
                continue
            start = f"from {node.module} import " if isinstance(node, ast.ImportFrom) else "import "
            parts.append(start + ", ".join(used))
        elif names & needed:
            needed |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            parts.append("\n".join(lines[node.lineno - 1 : node.end_lineno]))
    return "\n\n".join(reversed(parts)).replace(f"def {name}(", f"def {name.removeprefix('probe_')}(")


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}
