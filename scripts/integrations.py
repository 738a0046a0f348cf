"""The installation of training frameworks, from src/gem/integrations/versions.toml, for scripts/test-integrations.

python scripts/integrations.py names | environment NAME | requirements NAME | install NAME FOLDER
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tomllib

VERSIONS = Path(__file__).parents[1] / "src/gem/integrations/versions.toml"
TABLE = tomllib.loads(VERSIONS.read_text(encoding="utf-8"))


def steps(name: str) -> list[list[str]]:
    """The arguments of `pip install`, one list per call. torch is first, so that nothing else chooses its build."""
    if name not in TABLE or not isinstance(TABLE[name], dict):
        sys.exit(f"no framework {name!r} in {VERSIONS.name}; there are: {' '.join(names())}")
    entry = TABLE[name]
    own = f"{entry['package']}=={entry['tested']}"
    alone = entry.get("no_deps", False)
    first = [f"torch=={TABLE['torch']}", *TABLE["common"], *entry.get("with", []), *([] if alone else [own])]
    without = [own, *entry.get("without_dependencies", [])] if alone else entry.get("without_dependencies", [])
    return [first, *([["--no-deps", *without]] if without else [])]


def environment(name: str) -> str:
    return TABLE.get(name, {}).get("environment", name)


def names() -> list[str]:
    return [name for name, entry in TABLE.items() if isinstance(entry, dict)]


def main() -> None:
    command, *arguments = sys.argv[1:]
    if command == "names":
        print(*names())
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
