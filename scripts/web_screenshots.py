"""Take the pictures of docs/forms.md, docs/webshop.md and docs/wiki.md: python scripts/web_screenshots.py

The first two are pages as a browser shows them, the third is a game in `gem view`. Needs Chromium, its driver and
selenium (see `make test-viewer`).
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gem.envs.games.words.wikigame import Oracle, WikiGameEnv
from gem.envs.web.forms.env import FormsEnv
from gem.envs.web.webshop.env import MiniWebshopEnv
from gem.policies import RandomPolicy, Reply, Request
from gem.rollout import collect
from gem.trajectory import write_jsonl
from gem.vector import VectorEnv
from gem.viewer.page import build_file
from gem.viewer.recordings import Recordings
from gem.viewer.tokens import Vocabulary

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "viewer"))
from browser import Browser  # noqa: E402


def forms() -> str:
    env = FormsEnv(kind="settings", level=2)
    env.reset(seed=1)
    env.step("click [3]")
    return env.render_html()


def webshop() -> str:
    env = MiniWebshopEnv(level=2, observation_mode="html", products=2000)
    env.reset(seed=1)
    product = env.catalogue.product(env.goal().perfect[0])
    env.step(f"search[{product.title}]")
    shown = env.step(f"click[{product.asin}]").observation
    page = shown.partition("\n")[2].rpartition("\nAdmissible actions")[0]
    return f'<!DOCTYPE html><meta charset="utf-8">{page}'


class Shortest(RandomPolicy):
    """Takes the shortest way to the target."""

    def __init__(self, env: WikiGameEnv) -> None:
        self.player = Oracle(env)

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        return [Reply(self.player.act("")) for _ in requests]


def wiki(path: Path) -> str:
    env = WikiGameEnv(level=2, variant="freenav")
    write_jsonl(path, collect(VectorEnv.of([lambda: env]), Shortest(env), episodes=1))
    recordings = Recordings([path])
    return build_file(recordings, Vocabulary.load(None, recordings.tokenizer()))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the page shows the paths as they are given
        for name, document, address, width, height in (
            ("forms", forms(), "", 620, 230),
            ("webshop", webshop(), "", 820, 540),
            ("wiki", wiki(Path("game.jsonl")), "#episode=1", 900, 560),
        ):
            page = Path(folder, f"{name}.html")
            page.write_text(document, encoding="utf-8")
            with Browser(width=width, height=height) as browser:
                if address:
                    browser.open(page, address)
                else:
                    browser.driver.get(page.as_uri())
                browser.driver.save_screenshot(str(ROOT / "docs" / "images" / f"{name}.png"))


if __name__ == "__main__":
    main()
