"""Write the parts of README.md that are printed, measured or counted; each is between two comments.

python scripts/front_door.py           write them (so does scripts/docs.py)
python scripts/front_door.py --check   fail when one is stale, and run the commands of the evaluation again

The loop is run each time. Scores, printed reports and pictures come from scripts/measure_front_door.py, which keeps the
text in benchmarks/results/front_door.json; other figures are read from the pages in benchmarks/results.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from gem.envs.catalog import PATH_SPECS, SPECS

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"
STORED = RESULTS / "front_door.json"
BEGIN, END = "<!-- begin: scripts/front_door.py {} -->\n", "<!-- end -->\n"


class Family(NamedTuple):
    """A row of the table of environments.

    Args:
        ids: shell patterns.
        example: the id that is shown and measured.
        what, page: the kind of tasks, and their page in docs/.
        needs: what they need beside an extra.
        turn: the turn whose action is shown, from 0; None for ids that are not measured.
    """

    ids: str
    example: str
    what: str
    page: str
    needs: str = ""
    turn: int | None = 0


ENGINE, IN_GEM_DATA = "`[containers]`, podman or docker", "their data in `$GEM_DATA`"
FAMILIES = [
    Family("game:*", "game:Wordle-v0", "puzzles and games for one player", "reference/environments.md"),
    Family(
        "board:* cards:* talk:*", "board:TicTacToe-v0", "board, card and talk games between players", "table_games.md"
    ),
    Family("math:*", "math:Arithmetic", "generated mathematics", "data.md"),
    Family("rg:*", "rg:leg_counting", "generators of reasoning-gym", "design/reasoning_gym.md"),
    Family("logic:*", "logic:Rules", "statements that follow from rules", "data.md"),
    Family("qa:*", "qa:Facts", "questions about invented worlds", "wiki.md"),
    Family("vision:*", "vision:Charts", "questions about pictures", "data.md"),
    Family("*", "math:GSM8K", "datasets of the Hugging Face hub", "data.md", "a download", turn=None),
    Family("code:*", "code:Warmup-v0", "programs, graded by hidden tests", "data.md", "a sandbox"),
    Family("tool:*", "tool:Lookup", "answers that only a tool shows", "training.md"),
    Family("terminal:*", "terminal:Files", "tasks in a shell", "terminal.md", "sandbox level `ns`"),
    Family("swe:*", "swe:Mini", "repair of small repositories", "swe.md", "sandbox level `ns`"),
    Family("web:*", "web:Forms", "web pages with forms", "forms.md"),
    Family("webshop:Mini", "webshop:Mini", "a generated web shop", "webshop.md"),
    Family("desk:*", "desk:Retail", "service desks with functions", "desks.md", turn=1),
    Family(
        "tau2:* taubench:* webshop:t*",
        "tau2:retail",
        "tau2-bench, TAU-bench and WebShop",
        "tau.md",
        IN_GEM_DATA,
        turn=None,
    ),
    Family("mcpmark:*", "mcpmark:Files", "tasks for an MCP server", "mcpmark.md", "npm or PostgreSQL", turn=None),
    Family("harbor:*", "harbor:PATH", "task folders in containers", "containers.md", ENGINE, turn=None),
    Family("swebench:*", "swebench:PATH", "rows of SWE-bench", "swe.md", "repositories or images", turn=None),
]

# page of benchmarks/results → text, and the row and column of each number
FIGURES: dict[str, tuple[str, list[tuple[str, int]]]] = {
    "import_and_list": (
        "`import gem` takes {} s of CPU time; a bare Python interpreter takes {} s",
        [("import gem", 2), ("bare interpreter", 2)],
    ),
    "vector": (
        "With 16 environments of 50 ms per step and one of 2 s, asynchronous stepping is {} times as fast as lock-step",
        [("16 envs of 50 ms, one of 2 s: transitions/s to those of lock-step", 1)],
    ),
    "graders": (
        "On the last of ten unseen sets of 500 answers, in textbook style of many countries, the math grader agrees "
        "with people on {}; math-verify, which is not told the question, on {}",
        [("10, first score, with the grammar and the repairs that set 9 led to", 2), ("10", 2)],
    ),
    "sandbox": (
        "A cell of a Python session in the sandbox takes {} ms; a session with numpy and sympy takes {} MiB of memory",
        [("a cell of a session", 2), ("memory per session, MiB: proportional set size", 1)],
    ),
    "environments": (
        "A small model learns to call a tool in {} s of CPU time: success in `tool:Lookup` rises from {} to {}",
        [("lookup", 9), ("lookup", 4), ("lookup", 6)],
    ),
}


def main() -> int:
    if sys.argv[1:] not in ([], ["--check"]):
        print(f"usage: front_door.py [--check], got {sys.argv[1:]}", file=sys.stderr)
        return 2
    if not sys.argv[1:]:
        README.write_text(readme(), encoding="utf-8")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        fresh = {"front_door.py": readme() == README.read_text(encoding="utf-8")}
        fresh["measure_front_door.py evaluation"] = run_commands(folder) == measured("evaluation")
    for script in (script for script, is_fresh in fresh.items() if not is_fresh):
        print(f"README.md is stale; run scripts/{script}", file=sys.stderr)
    return int(not all(fresh.values()))


def measured(name: str) -> Any:
    return json.loads(STORED.read_text(encoding="utf-8"))[name]


def readme() -> str:
    """Return README.md with all parts written anew."""
    text = README.read_text(encoding="utf-8")
    for name, part in PARTS.items():
        before, begin, rest = text.partition(BEGIN.format(name))
        assert begin and END in rest, f"README.md has no comments for {name}"
        text = f"{before}{begin}{part(before)}{END}{rest.partition(END)[2]}"
    return text


def loop(before: str) -> str:
    """Return what the Python block before this part prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(block(before, "python"), {})
    return fenced(printed.getvalue())


def reports(before: str) -> str:
    """Return what the first and the third command of the shell block before this part print."""
    random, _, compare, _ = block(before, "bash").splitlines()
    printed = measured("evaluation")
    if not {random, compare} <= printed.keys():
        raise SystemExit("README.md has other commands; run scripts/measure_front_door.py evaluation")
    return fenced("\n".join([*printed[random], "", *printed[compare]]))


def run_commands(folder: str) -> dict[str, list[str]]:
    """Run these commands in a folder and return what each prints, without the number and progress of samples."""
    commands = block(README.read_text(encoding="utf-8").partition(BEGIN.format("reports"))[0], "bash").splitlines()
    printed = {command: output([sys.executable, "-m", *shlex.split(command)], folder) for command in commands}
    left_out = re.compile("samples/s|Expected|fresh seeds| MB$|#task=|more tasks|^The links")
    return {command: [line for line in lines if not left_out.search(line)] for command, lines in printed.items()}


def block(before: str, language: str) -> str:
    return str(re.findall(rf"^```{language}\n(.*?)^```", before, re.MULTILINE | re.DOTALL)[-1])


def families(_: str) -> str:
    scores = measured("families")["scores"]
    rows = [f"| {' | '.join(cells(family, scores.get(family.example)))} |\n" for family in FAMILIES]
    return "| id | tasks | random | oracle | needs | an action |\n|---|---|---|---|---|---|\n" + "".join(rows)


def cells(family: Family, score: Mapping[str, Any] | None) -> list[str]:
    extra = {spec.id: spec for spec in (*PATH_SPECS, *SPECS)}[family.example].extra
    needs = ", ".join(filter(None, [f"`[{extra}]`" if extra else "", family.needs]))
    means, played = ["", ""], ""
    if score is not None:
        means, played = [f"{score[player]:.2f}" for player in ("random", "oracle")], f"`{short(score['action'])}`"
    return [name(family), f"[{family.what}](docs/{family.page})", *means, needs, played]


def name(family: Family) -> str:
    """Return the example and how many other ids there are. Datasets of the hub are counted in their own row only."""
    hub = {spec.id for spec in SPECS if "data" in (spec.extra or "")}
    matches = [spec.id for spec in SPECS if any(fnmatch(spec.id, pattern) for pattern in family.ids.split())]
    others = sum((other in hub) == (family.example in hub) for other in matches) - 1
    return f"`{family.example}`" + (f" and {others} more" if others > 0 else "")


def short(action: str) -> str:
    """Return the first line of an action without code fences, at most 36 characters of it."""
    lines = [line for line in action.splitlines() if not line.startswith("```")]
    line = lines[0] if len(lines) == 1 else f"{lines[0]} …"
    return (line if len(line) <= 36 else f"{line[:35]}…").replace("|", "\\|")


def parts(_: str) -> str:
    """Return a line each for tools, algorithms and frameworks."""
    from gem.rl.estimate.advantages import ADVANTAGES  # these import no torch
    from gem.rl.estimate.losses import LOSSES

    advantages, losses = (" ".join(f"`{name}`" for name in each) for each in (ADVANTAGES, LOSSES))
    examples = sorted((ROOT / "examples").glob("*/README.md"), key=lambda page: page.parent.name)
    titles = [page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for page in examples]
    frameworks = [f"[{title}](examples/{page.parent.name})" for title, page in zip(titles, examples, strict=True)]
    return (
        "- [Tools](docs/tools.md): Python, [search](docs/search.md), [shell and editor](docs/terminal.md), "
        "[MCP servers](docs/mcp.md), your own functions\n"
        f"- [Algorithms](docs/algorithms.md): advantages {advantages}; losses {losses}\n"
        f"- [Frameworks](docs/frameworks.md): {', '.join(frameworks)}\n"
    )


def figures(_: str) -> str:
    lines = {page: text.format(*(number(page, *place) for place in places)) for page, (text, places) in FIGURES.items()}
    return "".join(f"- {line} ([{page}](benchmarks/results/{page}.md)).\n" for page, line in lines.items())


def number(page: str, row: str, column: int) -> str:
    """Return a cell of the first row with this name in a page of results."""
    lines = (RESULTS / f"{page}.md").read_text(encoding="utf-8").splitlines()
    tables = (re.split(r" *\| *| {2,}", line.strip("| ")) for line in lines)
    return next(line[column] for line in tables if line[0] == row)


def fenced(text: str) -> str:
    return f"```text\n{text.strip()}\n```\n"


def output(command: list[str], folder: str | Path) -> list[str]:
    """Run a command, for a terminal of 100 columns, and return the lines that it prints."""
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    env.pop("FORCE_COLOR", None)
    run = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return [line.rstrip() for line in run.stdout.splitlines()]


PARTS: dict[str, Callable[[str], str]] = {
    "loop": loop,
    "demo": lambda _: fenced("\n".join(measured("demo"))),
    "reports": reports,
    "families": families,
    "parts": parts,
    "figures": figures,
}

if __name__ == "__main__":
    sys.exit(main())
