"""Write the expected results and the faults made by a program into src/gem/envs/computers/repositories/swe/*/hidden.

A fault changes one operator, boundary or constant. It is kept if at least two hidden tests give another result, so that
the one that the issue shows is not the only one. Duplicates are removed by their diff. Needs sandbox level ns.

    python scripts/swe_faults.py [NAME ...]
    python scripts/swe_faults.py --expected [NAME ...]     # the expected results only
"""

from __future__ import annotations

import ast
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from gem.envs.computers.swe import driver
from gem.envs.computers.swe.repository import FOLDER, NAMES, Edit, Repository, load
from gem.envs.computers.task import CANARY
from gem.sandbox import Limits, get_sandbox

FAULTS_PER_REPOSITORY = 90
MAX_SHOWN = 600  # characters of a result in an issue
LIMITS = Limits(wall_s=5, cpu_s=2, output_bytes=1 << 20)
COMPARED = {
    **{ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!=")},
    **{ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in")},
    **{ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is")},
}
COMPUTED = {
    **{ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*")},
    **{ast.Mod: ("%", "//")},
}
NAMED = {
    **{"min": "max", "max": "min", "any": "all", "all": "any", "startswith": "endswith", "endswith": "startswith"},
    **{"strip": "lstrip", "rstrip": "strip", "lstrip": "rstrip", "find": "rfind", "rfind": "find"},
    **{"partition": "rpartition", "rpartition": "partition", "lower": "upper", "upper": "lower"},
}


def mutations(text: str) -> Iterator[tuple[int, str]]:
    """Yield (index of a line, the changed line) for every change of one line."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        for start, end, line, old, new in _changes(node):
            part = lines[line - 1].encode()[start:end].decode()
            if part.count(old) == 1:
                changed = part.replace(old, new)
                encoded = lines[line - 1].encode()
                yield line - 1, (encoded[:start] + changed.encode() + encoded[end:]).decode()


def _changes(node: ast.AST) -> Iterator[tuple[int, int, int, str, str]]:
    """Yield (first byte, last byte, line, old text, new text) of the changes of a node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = node.left, node.comparators[0]
        if left.end_lineno == right.lineno and type(node.ops[0]) in COMPARED:
            yield (left.end_col_offset, right.col_offset, right.lineno, *COMPARED[type(node.ops[0])])
    elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED and node.left.end_lineno == node.right.lineno:
        yield (node.left.end_col_offset, node.right.col_offset, node.right.lineno, *COMPUTED[type(node.op)])
    elif isinstance(node, ast.BoolOp):
        words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            if left.end_lineno == right.lineno:
                yield (left.end_col_offset, right.col_offset, right.lineno, *words)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.col_offset, node.operand.col_offset, node.lineno, "not ", ""
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        for value in {node.value + 1, max(node.value - 1, 0)} - {node.value}:
            yield node.col_offset, node.end_col_offset, node.lineno, str(node.value), str(value)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield node.col_offset, node.end_col_offset, node.lineno, str(node.value), str(not node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMED:
        name = node.func.id
        yield node.func.col_offset, node.func.end_col_offset, node.func.lineno, name, NAMED[name]
    elif isinstance(node, ast.Attribute) and node.attr in NAMED:
        yield node.value.end_col_offset, node.end_col_offset, node.end_lineno, node.attr, NAMED[node.attr]
    elif isinstance(node, (ast.Break, ast.Continue)):
        yield node.col_offset, node.end_col_offset, node.lineno, type(node).__name__.lower(), "pass"


def line_edit(path: str, text: str, index: int, changed: str) -> Edit:
    """Return an edit of one line, with as many lines before it as make it unique."""
    lines = text.split("\n")
    new_lines = [*lines[:index], changed, *lines[index + 1 :]]
    for first in range(index, -1, -1):
        old, new = ("\n".join(some[first : index + 1]) + "\n" for some in (lines, new_lines))
        if text.count(old) == 1 and "\n".join(new_lines).count(new) == 1:
            return Edit(path, old, new)
    raise ValueError(f"line {index + 1} of {path} cannot be made unique")


def results(repository: Repository, files: dict[str, str]) -> dict[str, str] | None:
    """Run the hidden tests in a machine. Returns their results, or None if they do not end or cannot start."""
    hidden = {"hidden/driver.py": Path(driver.__file__).read_text(), "hidden/probes.py": repository.probes}
    placed = {f"repo/{path}": text for path, text in files.items()}
    with get_sandbox().machine(files={**placed, **hidden}, limits=LIMITS) as machine:
        command = "exec python3 -I -B hidden/driver.py repo hidden full"
        result = machine.run(["/bin/sh", "-c", command])
    return dict(json.loads(line) for line in result.stdout.splitlines()) if result.ok else None


def write(path: Path, **content: object) -> None:
    path.write_text(json.dumps({"canary": CANARY, **content}, indent=0, ensure_ascii=True) + "\n")


def make_faults(repository: Repository) -> None:
    edits = {}  # by diff
    for path, text in repository.files.items():
        if path.startswith(f"{repository.name}/"):
            for index, changed in mutations(text):
                edits[path, index, changed] = line_edit(path, text, index, changed)
    order = sorted(edits)
    random.Random(repository.name).shuffle(order)
    kept = []
    tried = 0
    for key in order:
        if len(kept) == FAULTS_PER_REPOSITORY:
            break
        tried += 1
        found = results(repository, repository.broken([edits[key]]))
        if found is None:
            continue
        different = [name for name, result in repository.expected.items() if found[name] != result]
        shown = min(different, key=lambda name: len(found[name]) + len(repository.expected[name]), default="")
        if len(different) >= 2 and len(found[shown]) <= MAX_SHOWN and not found[shown].count(" at 0x"):
            kept.append((key, {"edit": list(vars(edits[key]).values()), "probe": shown, "found": found[shown]}))
    write(
        FOLDER / repository.name / "hidden" / "mutations.json",
        faults=[row for _, row in sorted(kept, key=lambda item: item[0])],
    )
    print(f"{repository.name}: {len(order)} changes, {tried} tried, {len(kept)} kept")


def main(arguments: list[str]) -> None:
    for name in [name for name in arguments if not name.startswith("-")] or NAMES:
        repository = load(name)
        found = results(repository, dict(repository.files))
        if found is None:
            raise SystemExit(f"the hidden tests of {name} do not run")
        write(FOLDER / name / "hidden" / "expected.json", results=found)
        load.cache_clear()
        if "--expected" not in arguments:
            make_faults(load(name))


if __name__ == "__main__":
    main(sys.argv[1:])
