"""gem plot."""

import json
import re
from pathlib import Path

import pytest

from gem.cli import main

pytest.importorskip("matplotlib")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "runs" / "a"
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps({"env": "game:GuessTheNumber-v0-easy", "seed": 3, "steps": 9}))
    evaluated = {"eval": {"greedy": {"success": 0.625, "turns_when_won": 2.0}}}
    rows = [
        {"update": 1, "episodes": 8, "success": 0.25, "turns_when_won": 2.5, **evaluated},
        {"update": 2, "episodes": 16, "success": 0.5, "turns_when_won": 2.5, "warnings": ["clipped"]},
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"upd')
    return path


def test_the_curve_of_a_run_in_progress_goes_to_its_folder(run: Path, capsys):
    assert main(["plot", str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'curve.png'}: 1 run\n"
    assert (run / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_list_of_runs_has_their_scores(run: Path, capsys):
    assert main(["plot", "--list", str(run.parent)]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert line.split() == [
        str(run),
        "game:GuessTheNumber-v0-easy",
        "3",
        "2/9",
        "0.250",
        "0.500",
        "0.625",
        "0.625",
        "clipped",
    ]
    assert main(["plot", "--list", "--json", str(run)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["evaluated"] == 0.625


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-o", "a.txt"], r"--out .*\.png, \.svg, \.pdf.*'a\.txt'"),
        (["-o", "no/such/a.png"], "its folder does not exist"),
        (["--metrics", "sucess"], "'sucess'.*metrics.md"),
        (["--json"], "--json needs --list"),
    ],
)
def test_a_usage_error_is_one_line_and_exits_with_2(flags, message, run: Path, capsys):
    assert main(["plot", str(run), *flags]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and re.search(message, error)
