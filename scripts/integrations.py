"""Install training frameworks for scripts/test-integrations, and keep the results of their contract tests.

python scripts/integrations.py names | environment NAME | requirements NAME | install NAME FOLDER
python scripts/integrations.py record NAME RESULTS.XML   # of pytest, into tests/integrations/results.json
python scripts/integrations.py document                  # the table of docs/frameworks.md, from these results
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

import tomllib

ROOT = Path(__file__).parents[1]
VERSIONS = ROOT / "src/gem/integrations/shared/versions.toml"
RESULTS, PAGE = ROOT / "tests/integrations/results.json", ROOT / "docs/frameworks.md"
BEGIN, END = "<!-- begin: scripts/integrations.py document -->\n", "<!-- end -->\n"
COLUMNS = {
    "ran": "what ran",
    "unit": "unit",
    "reward": "reward",
    "turn_credit": "credit per turn",
    "group_seed": "seed of a group",
    "tools": "tools",
    "images": "images",
}
TABLE = tomllib.loads(VERSIONS.read_text(encoding="utf-8"))


def steps(name: str) -> list[list[str]]:
    """The arguments of `pip install`, one list per call. torch is first, so that nothing else chooses its build."""
    if name not in TABLE or not isinstance(TABLE[name], dict):
        sys.exit(f"no framework {name!r} in {VERSIONS.name}; there are: {' '.join(names())}")
    entry = TABLE[name]
    own = [f"{entry['package']}=={entry['tested']}"] if "package" in entry else []
    alone = entry.get("no_deps", False)
    first = [f"torch=={TABLE['torch']}", *TABLE["common"], *entry.get("with", []), *([] if alone else own)]
    without = [*(own if alone else []), *entry.get("without_dependencies", [])]
    flags = ["--no-deps", *(["--ignore-requires-python"] if entry.get("any_python") else [])]
    return [first, *([[*flags, *without]] if without else [])]


def environment(name: str) -> str:
    return TABLE.get(name, {}).get("environment", name)


def names() -> list[str]:
    return [name for name, entry in TABLE.items() if isinstance(entry, dict)]


def record(name: str, report: Path) -> None:
    """Keep the numbers of a run of pytest."""
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    tests, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
    failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[name] = {
        "version": TABLE[name]["tested"],
        "date": datetime.now(timezone.utc).date().isoformat(),
        "passed": tests - skipped - failed,
        "failed": failed,
        "skipped": skipped,
    }
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def document() -> str:
    """The support table in Markdown."""
    results = json.loads(RESULTS.read_text())
    rows = [["framework", "version", "contract tests", "date", *COLUMNS.values()]]
    rows.append(["---"] * len(rows[0]))
    for name in names():
        entry, result = TABLE[name], results.get(name)
        if result is None:
            ran = ["not run", ""]
        else:
            failed = f", {result['failed']} failed" if result["failed"] else ""
            ran = [f"{result['passed']} passed{failed}", result["date"]]
        rows.append([name, entry["tested"], *ran, *(entry["support"][column] for column in COLUMNS)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    command, *arguments = sys.argv[1:]
    if command == "names":
        print(*names())
        return
    if command == "record":
        record(arguments[0], Path(arguments[1]))
        return
    if command == "document":
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(before + BEGIN + document() + END + rest.partition(END)[2])
        return
    if command == "environment":
        print(environment(arguments[0]))
        return
    calls = steps(environment(arguments[0]))
    if command == "requirements":
        print("\n".join(" ".join(call) for call in calls))
    for call in calls if command == "install" else ():
        pip = [f"{arguments[1]}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *call], check=True)


if __name__ == "__main__":
    main()
