"""Pages of web:Forms in headless Chromium have the roles, names and values of their text: `make test-viewer`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, missing

from gem.envs.web.forms.env import SITES, FormsEnv

sys.path.insert(0, str(Path(__file__).parents[1] / "envs" / "web" / "forms"))

from forms_reader import Reader

if not os.environ.get("GEM_TEST_VIEWER"):
    pytest.skip("make test-viewer runs these tests", allow_module_level=True)
if missing():
    pytest.skip(missing(), allow_module_level=True)

ROLES = {"link", "button", "textbox", "combobox", "checkbox", "heading", "alert"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


def in_browser(browser: Browser, page: Path) -> list[tuple[str, str, str]]:
    """Return the role, name and value of each element that the browser tells a screen reader about."""
    browser.driver.get(page.as_uri())
    nodes = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    found = []
    for node in nodes:
        role = node.get("role", {}).get("value")
        if role in ROLES:
            checked = [p["value"]["value"] for p in node.get("properties", ()) if p["name"] == "checked"]
            value = checked[0] if checked else str(node.get("value", {}).get("value", ""))
            name = node.get("name", {}).get("value", "") if role != "alert" else ""
            found.append((role, name, value))
    return sorted(found)


def in_text(env: FormsEnv) -> list[tuple[str, str, str]]:
    window: Any = env.window()
    found = [("heading", window.root.name, "")]
    for element in window.shown():
        if element.role in ROLES:
            found.append((element.role, "" if element.role == "alert" else element.name, element.value or ""))
    return sorted(found)


@pytest.mark.parametrize("kind", list(SITES))
def test_a_browser_shows_the_roles_names_and_values_of_the_text(kind: str, browser: Browser, tmp_path: Path) -> None:
    env, page = FormsEnv(kind=kind), tmp_path / "page.html"
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        reader = Reader()
        while True:
            page.write_text(env.render_html(), encoding="utf-8")
            assert in_browser(browser, page) == in_text(env), (seed, env.board())
            step = env.step(reader.act(observation))
            if step.terminated:
                break
            observation = step.observation
