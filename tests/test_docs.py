"""Documents are executed: every Python block of README.md and docs/, and every docstring example of the core."""

import contextlib
import doctest
import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gem.cli import COMMANDS
from gem.cli.flags import parse
from gem.errors import MissingDependency

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = [
    str(path.relative_to(ROOT / "src").with_suffix("")).replace("/", ".")
    for path in sorted((ROOT / "src" / "gem").rglob("*.py"))
    if re.search(r"^\s*>>> ", path.read_text(), re.MULTILINE)
]


NEEDS = {
    **{"gem.rl": "torch", '"math:': "sympy", "gem.testing.fakes.endpoint": "aiohttp"},
    **{"gem.tools.mcp.tool": "mcp", "search_engine": "uvicorn", "keys=True": "pyte"},
}  # a word in the code of a page → the library that it needs


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path, monkeypatch, tmp_path):
    for word, library in NEEDS.items():
        if any(word in block for block in blocks(page, "python")):
            pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(blocks(page, "python"), start=1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)
    assert namespace["gem"]


@pytest.mark.slow
def test_the_examples_of_modules_print_what_they_say():
    failed = []
    for name in MODULES:
        with contextlib.suppress(MissingDependency):
            result = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
            failed += [name] if result.failed or not result.attempted else []
    assert failed == []


def commands(page: Path) -> list[list[str]]:
    """Return the arguments of each gem command in the shell blocks of a page."""
    lines = "".join(block for language in ("sh", "bash", "text") for block in blocks(page, language))
    shown = re.findall(r"^(?:[A-Z_0-9]+=\S+ )*gem ([a-z]+ [^|>&;\n]*)", lines.replace("\\\n", " "), re.MULTILINE)
    return [argv for line in shown if (argv := shlex.split(line, comments=True))[0] in COMMANDS]


def test_the_flags_of_commands_are_read():
    for page in PAGES:
        for command, *argv in commands(page):
            print(f"{page.name}: gem {command}", *argv)  # shown if it raises BadValue
            parse(importlib.import_module(COMMANDS[command][0]).Config, argv)


@pytest.mark.slow
def test_the_readme_shows_what_its_commands_print():
    command = [sys.executable, "scripts/front_door.py", "--check"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_make_targets_that_documents_name_exist():
    makefile = (ROOT / "Makefile").read_text()
    text = "".join(page.read_text() for page in [*PAGES, ROOT / "CONTRIBUTING.md"])
    named = {word for line in re.findall(r"(?:^|`)make ([a-z -]+)(?:`|$)", text, re.MULTILINE) for word in line.split()}
    assert {"demo", "quick", "check", "test"} <= named
    assert {target for target in named if not re.search(rf"^{target}:", makefile, re.MULTILINE)} == set()


def test_links_between_pages_lead_somewhere():
    missing = []
    for page in PAGES:
        prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        links = re.findall(r"\]\(([^)#]+)\)", prose) + re.findall(r'src(?:set)?="([^"]+)"', prose)
        local = [link for link in links if not link.startswith("http")]
        missing += [f"{page.name}: {link}" for link in local if not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.slow
def test_the_package_of_the_plug_in_guide_is_found_by_its_entry_point(tmp_path: Path):
    page = ROOT / "docs" / "plugins.md"
    (project,), (module,) = blocks(page, "toml"), blocks(page, "python")
    info = tmp_path / "parity_gym-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parity-gym\nVersion: 1.0\n")
    entry_point = re.search(r'^\[project\.entry-points\."(.*)"\]\n(.*?)"(.*)"$', project, re.MULTILINE)
    assert entry_point is not None
    (info / "entry_points.txt").write_text("[{}]\n{}{}\n".format(*entry_point.groups()))
    (tmp_path / "parity_gym.py").write_text(module)
    command = [sys.executable, "-m", "gem"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "src")])}
    for arguments, shown in [(["list", "parity:*"], "parity:Parity  -"), (["check", "parity:Parity"], "parity:Parity")]:
        run = subprocess.run([*command, *arguments], env=env, capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stdout + run.stderr
        assert shown in run.stdout and "plug-in" not in run.stderr
