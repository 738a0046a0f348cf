"""Measure what README.md shows, and draw its pictures; scripts/front_door.py writes them into the page.

python scripts/measure_front_door.py families     scores of oracles and random players
python scripts/measure_front_door.py evaluation   the commands of the evaluation, and screenshots of their episodes
python scripts/measure_front_door.py demo         `make demo` and its learning curve

Each replaces its part of benchmarks/results/front_door.json. The screenshots need what `make test-viewer` needs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import gem
from front_door import FAMILIES, ROOT, STORED, output, run_commands
from gem.policies import oracle

TASKS = 100
EPISODE = "#episode=140&turn=3"  # the oracle at the desk
IMAGES = ROOT / "docs" / "images"
THEMES = {  # background, text and curve, as on GitHub
    "light": ("#ffffff", "#1f2328", "#0969da"),
    "dark": ("#0d1117", "#e6edf3", "#58a6ff"),
}


def main() -> int:
    if len(sys.argv) < 2 or not {*sys.argv[1:]} <= {*MEASURES}:
        print(f"usage: measure_front_door.py {' | '.join(MEASURES)}, got {sys.argv[1:]}", file=sys.stderr)
        return 2
    for name in sys.argv[1:]:
        measured = MEASURES[name]()
        stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.is_file() else {}
        text = json.dumps({**stored, name: measured}, indent=1, ensure_ascii=False, sort_keys=True)
        STORED.write_text(text + "\n", encoding="utf-8")
    return 0


def families() -> dict[str, Any]:
    """Return an action and the mean rewards of the oracle and of random actions, by id."""
    scores: dict[str, Any] = {}
    for env_id, turn in ((family.example, family.turn) for family in FAMILIES):
        if turn is None:
            continue
        reports = {player: gem.evaluate(player, env_id, limit=TASKS).envs[0] for player in ("oracle", "random")}
        means = {player: round(report.score.value, 4) for player, report in reports.items()}
        scores[env_id] = {**means, "tasks": reports["random"].planned, "action": action(env_id, turn)}
    return {"command": f"gem eval --policy PLAYER --env ID --limit {TASKS}", "scores": scores}


def action(env_id: str, turn: int) -> str:
    """Return what the oracle does at a turn of the episode with seed 0."""
    with gem.make(env_id, seed=0) as env:
        player, observation = oracle(env), env.reset()[0]
        for _ in range(turn):
            observation = env.step(player.act(observation))[0]
        return player.act(observation)


def evaluation() -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        printed = run_commands(folder)
        sys.path.append(str(ROOT / "tests" / "viewer"))
        from browser import Browser

        for theme in THEMES:
            with Browser(1100, 620, dark=theme == "dark") as browser:
                browser.open(Path(folder) / "evals" / "oracle" / "view.html", EPISODE)
                browser.run("document.querySelector('#rows [aria-current]').scrollIntoView({block: 'center'})")
                browser.driver.save_screenshot(str(IMAGES / f"eval-{theme}.png"))
    return printed


def demo() -> list[str]:
    """Return the scores that `make demo` prints, and how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        printed = output(["make", "demo", f"DEMO_FLAGS=--out {folder} --name demo"], ROOT)
        draw(Path(folder) / "demo")
    first = next(i for i, line in enumerate(printed) if line.startswith("Evaluation:"))
    last = printed.index("The first game of the evaluation")
    return [*printed[first:last], *(line for line in printed[last:] if "of wall clock" in line)]


def draw(run: Path) -> None:
    from matplotlib import pyplot

    from gem.rl.run.plots import CURVES, RecordedRun, draw_curves

    for theme, (ground, ink, line) in THEMES.items():
        style = {
            **dict.fromkeys(("figure.facecolor", "axes.facecolor", "legend.facecolor"), ground),
            **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink),
            **{"axes.prop_cycle": pyplot.cycler(color=[line]), "lines.linewidth": 2, "legend.edgecolor": "none"},
            **{"axes.spines.top": False, "axes.spines.right": False, "font.size": 12, "grid.color": ink},
        }
        with pyplot.rc_context(style):
            draw_curves(IMAGES / f"demo-{theme}.png", [RecordedRun.read(run)], CURVES)


MEASURES = {"families": families, "evaluation": evaluation, "demo": demo}

if __name__ == "__main__":
    sys.exit(main())
