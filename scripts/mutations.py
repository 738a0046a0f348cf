"""Measure what the tests catch: change random lines of src/gem, one at a time, and run the tests that execute them.

    scripts/mutations.py sample --count 60 --seed 0        draw lines, into build/mutations/sample.json
    scripts/mutations.py trace                             run the tests once; note which of them reach each line
    scripts/mutations.py run                               one run per mutation; repeat it to continue
    scripts/mutations.py table                             print the outcomes

Lines are drawn uniformly, so that packages are weighted by their size. The tests run against a copy of the project in
build/mutations/copy. Tests that already fail there are left out. A mutation that no test reaches has survived.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutations"
COPY, SAMPLE, HITS, FAILING, OUTCOMES = (
    WORK / name for name in ("copy", "sample.json", "hits", "failing.json", "outcomes.json")
)
AT_MOST = 300  # tests run for one mutation, those of the mirrored folder first
LIMIT_S = 600  # for the tests of one mutation
PROBE = """
import os
seen = set()
def hit(number):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" ", 1)[0]
    if (number, test) not in seen:
        seen.add((number, test))
        file = os.open(os.path.join({folder!r}, str(number)), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(file, (test + "\\n").encode())
        os.close(file)
"""
COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in"}
COMPARISONS |= {ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"}
ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "+"}


def changes(node: ast.AST) -> Iterator[str]:
    """Source texts that may replace a node, each with another meaning."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        yield f"({ast.unparse(node.left)} {COMPARISONS[type(node.ops[0])]} {ast.unparse(node.comparators[0])})"
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield f"({ast.unparse(node.left)} {ARITHMETIC[type(node.op)]} {ast.unparse(node.right)})"
    elif isinstance(node, ast.BoolOp):
        other = " or " if isinstance(node.op, ast.And) else " and "
        yield f"({other.join(f'({ast.unparse(value)})' for value in node.values)})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.IfExp):
        yield f"({ast.unparse(node.orelse)} if {ast.unparse(node.test)} else {ast.unparse(node.body)})"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield repr(node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield repr(not node.value)
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield "return None"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "pass"


def mutations(path: Path) -> dict[int, list[dict[str, object]]]:
    """Line → the mutations that begin on it, with the line of their statement, and whether it runs on import."""
    tree, found = ast.parse(path.read_text(encoding="utf-8")), {}
    annotations = {id(n) for node in ast.walk(tree) for a in _annotations(node) for n in ast.walk(a)}

    def visit(node: ast.AST, statement: int, on_import: bool) -> None:
        if isinstance(node, ast.JoinedStr):  # before Python 3.12, the places of its parts are wrong
            return
        if isinstance(node, ast.stmt):
            statement = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        if id(node) not in annotations:
            for text in changes(node):
                place = {"line": node.lineno, "column": node.col_offset}
                end = {"end_line": node.end_lineno, "end_column": node.end_col_offset}
                entry = {"statement": statement, "on_import": on_import, **place, **end, "new": text}
                found.setdefault(node.lineno, []).append(entry)
            for field, value in ast.iter_fields(node):
                later = field == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        visit(child, statement, on_import and not later)

    visit(tree, 1, True)
    return found


def _annotations(node: ast.AST) -> list[ast.AST]:
    return [a for name in ("annotation", "returns") if (a := getattr(node, name, None)) is not None]


def sample(count: int, seed: int) -> None:
    chance = random.Random(seed)
    paths = [p for p in sorted((ROOT / "src" / "gem").rglob("*.py")) if "repositories" not in p.parts]
    lines = [(path, n) for path in paths for n in range(1, len(path.read_text(encoding="utf-8").splitlines()) + 1)]
    chance.shuffle(lines)
    chosen = []
    for path, line in lines:
        if len(chosen) == count:
            break
        if options := mutations(path).get(line):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            chosen.append({"path": str(path.relative_to(ROOT)), "file": digest, **chance.choice(options)})
    WORK.mkdir(parents=True, exist_ok=True)
    SAMPLE.write_text(json.dumps(chosen, indent=1))


def copy_project() -> None:
    shutil.rmtree(COPY, ignore_errors=True)
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).exists():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, COPY / name)


def pytest(*arguments: str, limit_s: int) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": f"{COPY / 'src'}:{WORK}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = ["timeout", str(limit_s), sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=COPY, env=env, capture_output=True, text=True, check=False)


def trace(arguments: list[str]) -> None:
    """Insert a probe before each statement, and run the tests once."""
    copy_project()
    shutil.rmtree(HITS, ignore_errors=True)
    HITS.mkdir()
    HITS.chmod(0o777)
    (WORK / "gem_probe.py").write_text(PROBE.format(folder=str(HITS)))
    chosen = json.loads(SAMPLE.read_text())
    for number, entry in sorted(enumerate(chosen), key=lambda pair: -pair[1]["statement"]):
        path = COPY / entry["path"]
        lines = path.read_text(encoding="utf-8").split("\n")
        first = lines[entry["statement"] - 1]
        blanks = first[: len(first) - len(first.lstrip())]
        if not re.match(r"\s*(elif|else|except|finally|case)\b", first):
            probe = [f"try: __import__('gem_probe').hit({number})", "except BaseException: pass"]
            lines[entry["statement"] - 1 : entry["statement"] - 1] = [blanks + line for line in probe]
        path.write_text("\n".join(lines), encoding="utf-8")
    done = pytest("-n", "2", "--dist", "worksteal", "-rfE", "--tb=no", *arguments, limit_s=7200)
    failing = re.findall(r"^(?:FAILED|ERROR) (\S+?::.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    FAILING.write_text(json.dumps(failing, indent=1))
    print(done.stdout[-3000:])


def tests_of(number: int, entry: dict[str, object]) -> list[str]:
    """The tests that reach a line, those of the mirrored folder first; without a trace, those that name the module."""
    folder = "/".join(["tests", *Path(str(entry["path"])).parts[2:-1]])
    while not (COPY / folder).is_dir():
        folder = folder.rpartition("/")[0]
    file = HITS / str(number)
    hits = set(file.read_text().splitlines()) if file.exists() else set()
    hits -= {"", *json.loads(FAILING.read_text())}
    if not hits or entry["on_import"]:  # which test imports a module first is chance
        name = Path(str(entry["path"])).stem.strip("_")
        files = sorted((COPY / folder).rglob("test_*.py"))
        named = [file for file in files if name in file.name] or [file for file in files if name in file.read_text()]
        return [str(file.relative_to(COPY)) for file in named] or [folder]
    return sorted(hits, key=lambda test: (not test.startswith(folder + "/"), test))[:AT_MOST]


def run() -> None:
    outcomes = json.loads(OUTCOMES.read_text()) if OUTCOMES.exists() else {}
    for number, entry in enumerate(json.loads(SAMPLE.read_text())):
        if str(number) in outcomes:
            continue
        copy_project()
        path = COPY / entry["path"]
        lines = path.read_bytes().split(b"\n")
        first, last = entry["line"] - 1, entry["end_line"] - 1
        before, after = lines[first][: entry["column"]], lines[last][entry["end_column"] :]
        old = b"\n".join(lines[first : last + 1])
        if hashlib.sha256(path.read_bytes()).hexdigest() != entry["file"]:
            raise SystemExit(f"{entry['path']} has changed since `sample`")
        lines[first : last + 1] = [before + entry["new"].encode() + after]
        path.write_bytes(b"\n".join(lines))
        tests = tests_of(number, entry)
        for marks in ("not slow", "slow"):
            status = pytest("-x", "--tb=line", "-m", marks, *tests, limit_s=LIMIT_S).returncode
            outcome = "survived" if status in (0, 5) else "found"  # also by tests that hang, or cannot be collected
            if outcome == "found":
                break
        outcomes[str(number)] = {"outcome": outcome, "tests": len(tests), "old": old.decode()[:200]}
        OUTCOMES.write_text(json.dumps(outcomes, indent=1))
        print(
            f"{number}: {outcome} by {len(tests)} tests: {entry['path']}:{entry['line']} -> {entry['new'][:80]}",
            flush=True,
        )


def table() -> None:
    outcomes = json.loads(OUTCOMES.read_text())
    for number, entry in enumerate(json.loads(SAMPLE.read_text())):
        outcome = outcomes[str(number)]
        print(f"{outcome['outcome']:9} {entry['path']}:{entry['line']}: {outcome['old'].strip()} -> {entry['new']}")
    print(sum(outcome["outcome"] == "found" for outcome in outcomes.values()), "of", len(outcomes), "found")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["sample", "trace", "run", "table"])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pytest", default="", help="further arguments of trace, such as tests/vector")
    args = parser.parse_args()
    if args.command == "sample":
        sample(args.count, args.seed)
    elif args.command == "trace":
        trace(args.pytest.split())
    else:
        {"run": run, "table": table}[args.command]()


if __name__ == "__main__":
    main()
