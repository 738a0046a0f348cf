"""Take the screenshots of docs/viewer.md: python scripts/viewer_screenshots.py [FOLDER]

Two imitated models are evaluated in five environments: they repeat the oracle's replies, with some mistakes.
FOLDER is for the pictures; default: docs/images. Needs the extras [eval,math,viewer], and Chromium, its driver and
selenium (see `make test-viewer`).
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gem
from gem.policies import Endpoint, EndpointPolicy
from gem.testing.fakes import FakeEndpoint
from gem.trajectory import read_jsonl
from gem.viewer.page import build_file
from gem.viewer.recordings import Recordings
from gem.viewer.tokens import Vocabulary

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "viewer.md"  # which names the pictures
sys.path.append(str(ROOT / "tests" / "viewer"))
from browser import Browser  # noqa: E402

ENVS = ["game:GuessTheNumber-v0-easy", "math:Algebra", "code:Warmup-v0", "desk:Retail", "logic:Rules"]
MODELS = {"model-large": 0.06, "model-small": 0.3}  # name → share of the turns with a mistake
SIZES = {"wide": (1400, 900), "tablet": (900, 900), "phone": (390, 844)}
THOUGHTS = {
    "math": "<think>\nThe terms are $a_1, a_2, \\ldots$ with a common difference $d$.\n</think>\nWith "
    "\\[ S_n = \\frac{n}{2}\\left(2a_1 + (n-1)d\\right) \\]\nthe answer is **exact**: ",
    "code": "I read the numbers, leave out what is not valid, and print the result:\n\n",
    "logic": "<think>\nI apply the rules until nothing new follows.\n</think>\n",
}


def imitation(mistakes: float, actions: dict[str, list[str]]) -> Callable[[Any], Any]:
    """Return a server's replies: those of the oracle to the same task, with mistakes at random."""

    def reply(request: Any) -> str:
        messages = request.body["messages"]
        first = next(message["content"] for message in messages if message["role"] == "user")
        known, k = actions.get(first, []), sum(message["role"] == "assistant" for message in messages)
        family = next(
            (name for name, word in (("math", "boxed{}"), ("code", "```"), ("logic", "Rules:")) if word in first), ""
        )
        rng = random.Random(f"{first[:2000]} {k} {mistakes}")
        if not known or rng.random() < mistakes:
            wrong = {
                "math": "\\boxed{\\frac{1}{2}}",
                "code": "```python\nprint(0)\n```",
                "logic": "<answer>Unknown</answer>",
            }
            return THOUGHTS.get(family, "") + wrong.get(
                family, "\\boxed{1}" if "integer" in first else "Is there anything else?"
            )
        return THOUGHTS.get(family, "") + known[min(k, len(known) - 1)]

    return reply


def evaluate() -> list[Path]:
    gem.evaluate("oracle", ENVS, limit=10, out="evals/oracle")
    played = list(read_jsonl("evals/oracle/trajectories.jsonl"))
    actions = {str(episode.turns[0].observation): [turn.action for turn in episode.turns] for episode in played}
    for model, mistakes in MODELS.items():
        with FakeEndpoint(imitation(mistakes, actions)) as server:
            policy = EndpointPolicy(Endpoint(server.url, model), temperature=0.7, seed=0)
            gem.evaluate(policy, ENVS, limit=10, rollouts=2, out=f"evals/{model}")
    return [Path("evals") / model for model in MODELS]


def main() -> None:
    images = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "images").absolute()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the page shows the paths as they are given
        recordings = Recordings(evaluate())
        page = Path(folder) / "view.html"
        page.write_text(build_file(recordings, Vocabulary()), encoding="utf-8")
        rows = recordings.rows
        lost = next(row for row in rows if row["env"] == "math:Algebra" and row["outcome"] != "solved")
        won = next(row for row in rows if row["task"] == lost["task"] and row["outcome"] == "solved")
        desk = next(row for row in rows if row["env"] == "desk:Retail" and row["outcome"] == "solved")
        code = next(row for row in rows if row["env"] == "code:Warmup-v0")
        addresses = {
            "results": "",
            "episode": f"#episode={desk['key']}",
            "math": f"#episode={won['key']}",
            "code": f"#episode={code['key']}",
            "compare": f"#episode={won['key']}&beside={lost['key']}",
        }
        for name, size, theme in re.findall(r"viewer-(\w+)-(\w+)-(\w+)\.png", DOCS.read_text(encoding="utf-8")):
            width, height = SIZES[size]
            with Browser(width, height, phone=size == "phone", dark=theme == "dark") as browser:
                browser.open(page, addresses[name])
                browser.driver.save_screenshot(str(images / f"viewer-{name}-{size}-{theme}.png"))


if __name__ == "__main__":
    main()
