"""Write the generated pages: docs/reference (command line, public API, environments, scores), docs/compatibility.md,
README.md, and the scores that `gem info` prints.

python scripts/docs.py           write them
python scripts/docs.py --check   fail when one is stale
"""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from front_door import readme
from gem.cli import COMMANDS, help_text
from gem.cli.info import about
from gem.evaluation.columns import COLUMNS
from gem.evaluation.exchange.reference import ReferenceScore
from gem.registry import EnvSpec, list_envs
from public_api import PUBLIC, Definition, definitions, docstring, enum_members, field_helps, methods, signature

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
SOURCES = ROOT / "src"
WIDTH = 100


def main() -> int:
    if sys.argv[1:] not in ([], ["--check"]):
        print(f"usage: docs.py [--check], got {sys.argv[1:]}", file=sys.stderr)
        return 2
    stale = [name for name, render in PAGES.items() if not is_fresh(REFERENCE / name, render())]
    if sys.argv[1:]:
        for name in stale:
            print(f"{(REFERENCE / name).resolve().relative_to(ROOT)} is stale; run `make docs`", file=sys.stderr)
        return int(bool(stale))
    for name in stale:
        (REFERENCE / name).write_text(PAGES[name](), encoding="utf-8")
    return 0


def is_fresh(page: Path, text: str) -> bool:
    return page.is_file() and page.read_text(encoding="utf-8") == text


def command_line() -> str:
    os.environ["NO_COLOR"] = "1"  # newer versions of argparse color their help
    head = (
        "# Command line\n\n<!-- Written by scripts/docs.py from the commands' docstrings and flags: edit those. -->\n"
    )
    sections = [("", help_text(width=WIDTH))]
    sections += [(f"\n## gem {name}\n", help_text(name, width=WIDTH)) for name in COMMANDS]
    return head + "".join(f"{title}\n```text\n{text.rstrip()}\n```\n" for title, text in sections)


def environments() -> str:
    head = "# Environments\n\n<!-- Written by scripts/docs.py from the catalog and the modules' docstrings. -->\n"
    families: dict[object, list[EnvSpec]] = {}
    for spec in list_envs():  # games are grouped by name, datasets by their class
        families.setdefault(spec.id.split("-v0")[0] if "-v0" in spec.id else spec.entry_point, []).append(spec)
    return head + "".join(map(family, families.values()))


def family(specs: list[EnvSpec]) -> str:
    first = specs[0]
    rows = "\n".join(
        f"| `{s.id}` | {', '.join(f'{k}={v!r}' for k, v in s.kwargs.items())} | {game(s)} |" for s in specs
    )
    title = (
        first.id.split("-v0")[0].removeprefix("game:") if "-v0" in first.id else str(first.entry_point).split(":")[1]
    )
    oracle = f"The oracle reads the {first.oracle_sees}.\n\n" if first.oracle_sees else ""
    return (
        f"\n## {title}\n\n```text\n{about(first)}\n```\n\n{oracle}"
        f"| id | arguments | playthrough |\n|---|---|---|\n{rows}\n"
    )


def game(spec: EnvSpec) -> str:
    file = f"{spec.id.replace(':', '_')}.txt"
    return f"[{file}](../../tests/playthroughs/{file})" if (ROOT / "tests/playthroughs" / file).is_file() else ""


def columns() -> str:
    head = [
        "# Columns of an evaluation\n",
        "<!-- Written by scripts/docs.py from gem.evaluation.columns: edit that. -->\n",
        "`gem eval` has these numbers for each environment, with the same value under the same name in `report.md`,",
        "`report.tex` and `report.json` (by key), in `gem eval compare`, in `gem view` and in exports.\n",
        "A task is a row of a data set, or an episode of a game: seeds that start equal episodes are one task.",
        "Averages over tasks count each task once, however many of its episodes have finished. Finished episodes are",
        "those that did not fail. Intervals are 95 % intervals over tasks ([gem.evaluation.metrics](api.md)).\n",
    ]
    rows = [(column.name, f"`{column.key}`", column.unit, column.definition) for column in COLUMNS]
    return "\n".join([*head, table(["name", "key", "unit", "definition"], rows)])


def public_names() -> str:
    head = (
        "# API reference\n\n<!-- Written by scripts/docs.py from scripts/public_api.py and the docstrings. -->\n\n"
        "These names are public and change only with a note in the changelog. Everything else may change at any time.\n"
    )
    return head + "".join(section(title) for title in PUBLIC)


def section(title: str) -> str:
    intro, names = PUBLIC[title]
    blocks = [f"\n## {title}\n\n{intro}\n"]
    if names[0][0] == "gem.errors":  # the module's docstring shows the exceptions as a tree
        tree = ast.get_docstring(ast.parse((SOURCES / "gem" / "errors.py").read_text(encoding="utf-8"))) or ""
        return "".join([*blocks, f"\n```text\n{tree.partition(chr(10))[2].strip(chr(10))}\n```\n"])
    return "".join([*blocks, *(entry(definition) for definition in definitions(title))])


def entry(definition: Definition) -> str:
    """One public name: its signature, its docstring, and the summaries of its methods."""
    blocks = [f"\n### `{definition.path}`\n"]
    if text := signature(definition, annotations=True):
        blocks.append(f"```py\n{formatted(definition.name, text)}\n```\n")
    if body := markdown(docstring(definition)):
        blocks.append(body)
    documented = [(name, summary(node)) for name, node in methods(definition, annotations=False)]
    lists = [
        [f"- `{name}`: {text}" for name, text in field_helps(definition)],
        [f"- `{member}`" for member in enum_members(definition)],
        [f"- `{name}`: {text}" for name, text in documented if text],
    ]
    return "\n".join([*blocks, *("\n".join(lines) + "\n" for lines in lists if lines)])


def formatted(name: str, text: str) -> str:
    """The signature, with one parameter per line if it is long."""
    function = ast.parse(f"def f{text.replace('<factory>', '...')}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    parameters = split_parameters(ast.unparse(function.args))
    returns = "" if function.returns is None else f" -> {ast.unparse(function.returns)}"
    line = f"{name}({', '.join(parameters)}){returns}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {parameter}," for parameter in parameters), f"){returns}"])


def split_parameters(text: str) -> list[str]:
    """Split at commas outside brackets and quotes, and put spaces around the "=" of annotated parameters."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote or character in "'\"":
            quote = "" if character == quote else quote or character
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return [re.sub(r"^(\w+: [^=]+)=", r"\1 = ", part.strip()) for part in parts]


def markdown(text: str) -> str:
    """A docstring as Markdown: sections become lists, examples become code blocks."""
    blocks = []
    for block in single_ticks(text).split("\n\n"):
        lines = block.split("\n")
        if lines[0] in ("Args:", "Attributes:", "Returns:", "Raises:", "Yields:"):
            blocks.append(
                f"{lines[0]}\n\n" + "\n".join(items(lines[1:], named=lines[0] not in ("Returns:", "Yields:")))
            )
        elif block.startswith(">>>"):
            blocks.append(f"```pycon\n{block}\n```")
        elif block.startswith(" "):
            blocks.append(f"```text\n{block}\n```")
        else:
            blocks.append(" ".join(line.strip() for line in lines))
    return "\n\n".join(blocks) + "\n" if text else ""


def items(lines: list[str], *, named: bool) -> list[str]:
    """The entries of a docstring section as list items; continuation lines are joined."""
    joined: list[str] = []
    for line in lines:
        if line.startswith(" " * 5) or (not named and joined):
            joined[-1] += " " + line.strip()
        else:
            joined.append(line.strip())
    if not named:
        return joined
    return [
        f"- `{name}`:{text}" if colon else f"- {name}" for name, colon, text in (line.partition(":") for line in joined)
    ]


def summary(node: ast.FunctionDef | ast.ClassDef) -> str:
    return single_ticks(" ".join((ast.get_docstring(node) or "").split("\n\n")[0].split()))


def single_ticks(text: str) -> str:
    """Double backticks, as in reStructuredText, become single ones."""
    return re.sub(r"(?<!`)``(?!`)", "`", text)


def compatibility() -> str:
    folder = ROOT / "tests" / "compat"
    tables = runpy.run_path(str(folder / "published.py")) | runpy.run_path(str(folder / "published_behaviours.py"))
    names = tables["NOT_PROVIDED"]
    parts = [
        "# Code written for the published package\n",
        "<!-- Written by scripts/docs.py from published.py and published_behaviours.py in tests/compat. -->\n",
        "Programs, configurations and trainers written for the published `gem` (`gem-llm`) run unchanged: its ids,",
        "modules, names and arguments work here, except for those listed below. `tests/compat` compares the two.",
        "Keyword arguments without an effect here are dropped with one CompatibilityWarning per process.\n",
        "## What is the same\n",
        "".join(f"* {text}\n" for text in tables["SAME"]),
        "## What is stricter\n",
        table(["topic", "published", "here", "why"], tables["STRICTER"]),
        "## What is different\n",
        table(["topic", "published", "here", "why"], tables["DIFFERENT"]),
        "## Undocumented behaviour\n\nWhere the published behaviour is unknown or failed; agents follow PettingZoo.\n",
        table(["topic", "here"], tables["OPEN"]),
        "## Defaults that differ\n\nThey matter to code that calls a class. The ids set their arguments.\n",
        table(["argument", "published", "here", "why"], tables["defaults"]()),
        "## Switches\n",
        table(["setting", "use"], tables["SWITCHES"].items()),
        "## Published paths\n\nThese paths keep working: an import hook reads them from a table, `gem._published`.\n"
        "Type checkers and editors do not run the hook, so new code should import from the module on the right.\n",
        table(["published", "here"], [(f"`{a}`", f"`{b}`") for a, b in tables["FORWARDED"].items()]),
        "## Arguments and options without effect\n",
        table(["argument or option", "why"], tables["IGNORED"].items()),
        "## Arguments that differ\n",
        table(["name", "why"], quoted(tables["ARGUMENTS_DIFFER"])),
        f"## Names not provided\n\n{len(names)} names that only served the published implementation.\n",
        table(["name", "why"], quoted(names)),
        "## Environments made from ids only\n\nThe published classes start Docker or services of packages.\n",
        table(["module", "id"], quoted(tables["BY_ID"])),
    ]
    return "\n".join(parts)


def quoted(rows: dict[str, str]) -> list[tuple[str, str]]:
    return [(f"`{name.replace(':', '.')}`", text) for name, text in sorted(rows.items())]


def table(head: list[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


SCORES = """\
# Scores

<!-- Written by scripts/docs.py from benchmarks/results/scores.jsonl. -->

What the oracle, a random player and a small public model reach in each environment that needs no download, with 95 %
intervals, as `gem eval --env ID --policy oracle --limit 100` prints them. `gem info ID` shows those of one
environment, and `gem eval` names them beside a new score. An oracle may see what a player does not: it says what is
possible. The random player takes legal actions; where a reply is free text, it solves next to nothing.

The model is SmolLM2-135M-Instruct (`scripts/fetch-smollm2`), sampled greedily with at most 64 tokens per reply, on at
most 50 tasks of one environment per family; not in all families. It is too small to follow most formats, and shows
where a score of zero is ordinary.

**Your model here.** `gem eval export RUN --leaderboard` writes one line of JSON per run, with the versions of the
environments and graders, and hashes of the tasks and the records. Add it with `python benchmarks/scores.py --add
FILE`, run `make docs`, and open a pull request.
"""


def scores() -> str:
    """The scores of players that need no download, and of models whose rows are kept, by family."""
    families: dict[str, list[str]] = {}
    for env_id in reference():
        families.setdefault(env_id.partition(":")[0], []).append(env_id)
    return SCORES + "".join(map(scores_of_family, *zip(*families.items(), strict=True)))


def scores_of_family(family: str, ids: list[str]) -> str:
    lines = [
        [f"`{env_id}`", one.player, str(one.score), str(one.solved), f"{one.turns:.1f}", str(one.episodes)]
        for env_id in ids
        for one in map(ReferenceScore.read, reference()[env_id])
    ]
    return f"\n## {family}\n\n" + table(["environment", "player", "score", "solved", "turns", "episodes"], lines)


@cache
def reference() -> dict[str, list[dict[str, Any]]]:
    """The scores of each environment, those of the players before those of the models."""
    found: dict[str, list[dict[str, Any]]] = {}
    rows = [json.loads(line) for line in (ROOT / "benchmarks" / "results" / "scores.jsonl").read_text().splitlines()]
    for row in sorted(rows, key=lambda row: ("oracle", "random", row["model"]).index(row["model"])):
        for env in row["envs"]:
            if env["name"] == env["id"] and not env["kwargs"]:  # as registered, without wrappers
                means = {key: {**env[key], **rounded(env[key])} for key in ("score", "solved")}
                score = {"player": row["model"], **means, "turns": round(env["turns"], 2), "episodes": env["done"]}
                found.setdefault(env["id"], []).append(score)
    return dict(sorted(found.items()))


def rounded(estimate: dict[str, Any]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in estimate.items() if isinstance(value, float)}


def stored_scores() -> str:
    lines = [f"{json.dumps(env_id)}: {json.dumps(scores)}" for env_id, scores in reference().items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": command_line,
    "columns.md": columns,
    "api.md": public_names,
    "environments.md": environments,
    "scores.md": scores,
    "../../src/gem/evaluation/data/scores.json": stored_scores,
    "../compatibility.md": compatibility,
    "../../README.md": readme,
}

if __name__ == "__main__":
    sys.exit(main())
