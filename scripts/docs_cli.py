"""Write docs/reference/cli.md, the help of every command; with --check, fail when it is stale instead."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gem.cli import COMMANDS, help_text

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "cli.md"
WIDTH = 100
HEAD = (
    "# Command line\n\n<!-- Written by scripts/docs_cli.py from the commands' docstrings and flags: edit those. -->\n"
)


def render() -> str:
    """The whole page."""
    os.environ["NO_COLOR"] = "1"  # newer versions of argparse colour their help
    sections = [("", help_text(width=WIDTH))]
    sections += [(f"\n## gem {name}\n", help_text(name, width=WIDTH)) for name in COMMANDS]
    return HEAD + "".join(f"{title}\n```text\n{text.rstrip()}\n```\n" for title, text in sections)


def main() -> int:
    page = render()
    if sys.argv[1:] == ["--check"]:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page:
            print(f"{PAGE.relative_to(ROOT)} is stale; run `make docs`", file=sys.stderr)
            return 1
        return 0
    if sys.argv[1:]:
        print(f"usage: docs_cli.py [--check], got {sys.argv[1:]}", file=sys.stderr)
        return 2
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
