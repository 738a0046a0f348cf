"""The viewer in headless Chromium: `make test-viewer`."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, missing
from hostile import STRINGS, trajectory
from recorded import auction, varied, write_run

from gem.trajectory import write_jsonl
from gem.viewer import server
from gem.viewer.page import build_file
from gem.viewer.recordings import Recordings
from gem.viewer.tokens import Vocabulary

if not os.environ.get("GEM_TEST_VIEWER"):
    pytest.skip("make test-viewer runs these tests", allow_module_level=True)
if missing():
    pytest.skip(missing(), allow_module_level=True)

AXE = Path(os.environ.get("GEM_AXE", ""))  # axe.min.js of the npm package axe-core
COUNT = 40


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = write_run(tmp_path_factory.mktemp("runs") / "demo", varied(COUNT))
    page = run / "view.html"
    page.write_text(build_file(Recordings([run]), Vocabulary()), encoding="utf-8")
    return page


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Browser]:
    """The viewer with 40 episodes. Afterwards there must have been no error, no dialog and no request."""
    browser.open(file)
    browser.run("localStorage.clear()")
    browser.open(file)
    yield browser
    assert browser.problems(file) == []


def fill(page: Browser, name: str, value: Any) -> None:
    script = """
        const field = document.getElementById("filters").elements[arguments[0]];
        field.type === "checkbox" ? field.checked = arguments[1] : field.value = arguments[1];
        field.dispatchEvent(new Event("input", {bubbles: true}));
        setTimeout(arguments[2], 250);"""
    page.run_async(script, name, value)


def listed(page: Browser) -> list[int]:
    links = page.run("return [...document.querySelectorAll('#rows a')].map((link) => link.getAttribute('href'))")
    return [int(link.removeprefix("#ep")) for link in links]


def test_all_episodes_are_listed_with_curves_and_scores(page: Browser):
    assert listed(page) == list(range(1, COUNT + 1))
    assert page.text("#count") == "40 episodes"
    assert page.run("return document.querySelectorAll('svg path').length") == 3
    assert page.run("return document.querySelectorAll('#scores tbody tr').length") == 3


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("env", "math:Sample", [39]),
        ("outcome", "failed", [40]),
        ("failure", "SandboxError", [40]),
        ("least", "0.5", [n for n in range(1, 40) if n % 3 != 1]),
        ("most", "0.5", [n for n in range(1, 38) if n % 3 == 1]),
        ("text", "SIX TIMES", []),
        ("text", "6 Times", [39]),
        ("forks", True, [39]),
        ("invalid", True, [39]),
        ("tool_errors", True, [39]),
        ("labeled", True, []),
    ],
)
def test_a_filter_keeps_the_matching_episodes(name: str, value: Any, expected: list[int], page: Browser):
    fill(page, name, value)
    assert listed(page) == expected
    assert page.text("#count") == f"{len(expected)} of 40 episodes"


def test_episodes_are_sorted_by_a_field(page: Browser):
    fill(page, "order", "turns")
    fill(page, "descending", True)
    assert all(n % 4 == 0 for n in listed(page)[:8])


def test_a_link_to_a_turn_opens_it(browser: Browser, file: Path):
    browser.open(file, "#ep39-t3")
    assert browser.text("h2") == "Episode 39: solved, reward 1, 3 turns"
    assert browser.run("return document.activeElement.id") == "ep39-t3"
    assert browser.run("return document.querySelector('#rows [aria-current]').id") == "row-38"


def test_the_conversation_shows_roles_calls_images_rewards_and_the_end(page: Browser):
    page.go("#ep39")
    roles = page.run("return [...document.querySelectorAll('.message > h4:first-child')].map((head) => head.innerText)")
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "assistant"]
    shown = page.text("#detail")
    for text in (
        "python({",
        "invalid: malformed",
        "python: malformed",
        "answer 0.9 + format 0.1",
        "1 oldest turn left out",
        "End: solved",
    ):
        assert text in shown
    assert page.run("return document.querySelector('.message img').naturalWidth") == 1
    page.go("#ep40")
    assert "SandboxError: the fork server died" in page.text("#detail")


def test_a_link_to_an_episode_far_down_shows_its_row(browser: Browser, tmp_path: Path):
    write_jsonl(tmp_path / "a.jsonl", varied(450))
    (tmp_path / "a.html").write_text(build_file(Recordings([tmp_path / "a.jsonl"]), Vocabulary()), encoding="utf-8")
    browser.open(tmp_path / "a.html", "#ep430")
    assert len(listed(browser)) == 450
    box = browser.run("return document.getElementById('row-429').getBoundingClientRect().toJSON()")
    assert 0 < box["top"] < box["bottom"] < 800


def test_the_keyboard_moves_between_episodes_turns_and_views(page: Browser):
    page.press("j", "j")
    assert page.run("return location.hash") == "#ep2"
    page.press("k", "n", "n")
    assert page.run("return location.hash") == "#ep1-t2"
    page.press("p", "t")
    assert page.run("return location.hash") == "#ep1-t1-tokens"
    page.press("ESCAPE")
    assert page.run("return [location.hash, document.activeElement.id]") == ["", "row-0"]
    page.press("/", "fork server")
    page.run_async("setTimeout(arguments[0], 250)")
    page.press("ENTER")
    assert page.run("return location.hash") == "#ep40"
    page.press("ESCAPE", "ENTER")
    assert page.run("return document.activeElement.tagName") == "H2"


def test_tokens_are_shaded_by_probability_and_marked_by_the_loss_mask(page: Browser):
    page.go("#ep2-tokens")
    tokens = page.run(
        "return [...document.querySelectorAll('pre .sampled')].map((token) =>"
        " [parseFloat(token.style.getPropertyValue('--p')), token.classList.contains('unmasked'), token.title])"
    )
    assert len(tokens) == 18
    assert [unmasked for _, unmasked, _ in tokens] == [True, *[False] * 5] * 3
    probabilities = [float(title.split("probability ")[-1].split(";")[0]) for *_, title in tokens]
    assert all(abs(shade - 100 * (1 - p)) <= 1 for (shade, *_), p in zip(tokens, probabilities, strict=True))


def test_two_rollouts_of_one_task_stand_side_by_side(page: Browser):
    page.go("#ep2")
    assert page.run("return document.querySelectorAll('.tools option').length") == 6  # seed 1: 1, 8, … and "no other"
    page.go("#ep2-vs9")
    heads = page.run("return [...document.querySelectorAll('h2')].map((head) => head.innerText.slice(0, 9))")
    assert heads == ["Episode 2", "Episode 9"]
    assert "The replies differ from turn 1 on." in page.text(".tools")


@pytest.fixture
def games(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The viewer with two games of three agents each."""
    run = write_run(tmp_path / "games", [*auction(1), *auction(2)])
    path = run / "view.html"
    path.write_text(build_file(Recordings([run]), Vocabulary()), encoding="utf-8")
    browser.open(path)
    yield browser
    assert browser.problems(path) == []


def test_the_agents_of_a_game_stand_side_by_side_with_what_each_has_seen(games: Browser):
    games.go("#ep4")
    assert games.text("h2") == "Episode 4, bidder_2: finished, reward 0, 2 turns"
    games.run("[...document.querySelectorAll('.tools button')].find((b) => b.innerText === 'All 3 agents').click()")
    games.go("#ep4-all")
    heads = games.run("return [...document.querySelectorAll('h2')].map((head) => head.innerText.split(':')[0])")
    assert heads == ["Episode 5, bidder_0", "Episode 6, bidder_1", "Episode 4, bidder_2"]
    cards = games.run(
        "return [...document.querySelectorAll('.episode')].map((one) => one.querySelector('h4').innerText)"
    )
    assert cards == [f"seen by bidder_{k} (user)" for k in range(3)]
    said = games.run("return [...document.querySelectorAll('.message.assistant h4')].map((head) => head.innerText)")
    assert said == [f"bidder_{k}" for k in (0, 0, 1, 1, 2, 2)]
    if AXE.is_file():
        games.run(AXE.read_text(encoding="utf-8"))
        found = games.run_async("axe.run().then((result) => arguments[0](result.violations))")
        assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []


def test_labels_and_notes_are_kept_and_exported(page: Browser, file: Path):
    page.go("#ep3")
    page.run("document.querySelector('.note input').focus()")
    page.press("good", "TAB", "A note.")
    page.open(file, "#ep3")
    assert "“good”" in page.text("#row-2")
    fill(page, "labeled", True)
    assert listed(page) == [3]
    text = page.run_async("""
        const [create, done] = [URL.createObjectURL, arguments[0]];
        URL.createObjectURL = (blob) => { blob.text().then(done); return create(blob); };
        document.getElementById("export").click();""")
    label = json.loads(text)
    assert (label["line"], label["label"], label["note"]) == (3, "good", "A note.")
    assert label["file"].endswith("trajectories.jsonl")


def test_colors_follow_the_system_and_the_switch(page: Browser, file: Path):
    def background() -> str:
        return str(page.run("return getComputedStyle(document.body).backgroundColor"))

    light = background()
    page.prefer("dark")
    dark = background()
    assert light != dark
    page.run("document.getElementById('theme').click()")
    page.open(file)
    assert background() == light
    page.prefer("light")


def test_a_phone_shows_the_list_or_the_episode_without_scrolling_sideways(file: Path):
    with Browser(390, 844, phone=True) as phone:
        for address, visible, hidden in [
            ("", "#list", "#detail"),
            ("#ep39", "#detail", "#list"),
            ("#ep2-tokens", "h2", "#list"),
        ]:
            phone.open(file, address)
            shown = "return document.querySelector(arguments[0]).offsetParent !== null"
            assert phone.run(shown, visible) and not phone.run(shown, hidden)
            assert phone.run("return document.documentElement.scrollWidth") <= 390


class HostileVocabulary(Vocabulary):
    def texts(self, ids: Any) -> dict[str, str]:
        return {str(token): STRINGS[token] for token in range(1, 5)}


def displayed(text: str) -> str:
    text = text.replace("\u202e", "\\u202e").replace("\u2066", "\\u2066")
    return text.replace("\ud800", "\ufffd")


VISIT = """
    const [addresses, done] = arguments;
    (async () => {
        const texts = [];
        for (const address of addresses) {
            location.hash = address;
            await new Promise((resume) => setTimeout(resume, 30));
            texts.push([...document.querySelectorAll(".message pre")].at(-2).textContent.toWellFormed());
        }
        done([texts, window.pwned ?? null, [...document.querySelectorAll("*")].map((node) => node.tagName)]);
    })();"""


@pytest.mark.parametrize("policy", [True, False], ids=["with the policy", "by escaping alone"])
def test_hostile_text_neither_runs_nor_loads_anything(policy: bool, browser: Browser, tmp_path: Path):
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    folder.mkdir()
    lines = [json.dumps(trajectory(text)) + "\n" for text in STRINGS]
    (folder / "a.jsonl").write_text("".join(lines))
    page = tmp_path / "view.html"
    html = build_file(Recordings([folder]), HostileVocabulary())
    page.write_text(html if policy else html.replace("Content-Security-Policy", "None"), encoding="utf-8")
    browser.open(page)
    addresses = [f"#ep{n}{view}" for n in range(1, len(STRINGS) + 1) for view in ("", "-tokens")]
    texts, pwned, tags = browser.run_async(VISIT, addresses)
    assert pwned is None
    assert not {"IFRAME", "BASE", "VIDEO", "MATH", "ANIMATE"} & set(tags)
    assert [shown[:200] for shown in texts[::2]] == [displayed(text)[:200] for text in STRINGS]
    fill(browser, "text", "<script>")
    assert browser.problems(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", ["", "#ep39", "#ep2-tokens", "#ep2-vs9"])
def test_axe_finds_no_serious_violation(address: str, scheme: str, page: Browser, file: Path):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed; `make test-viewer` installs it with npm")
    page.prefer(scheme)
    page.open(file, address)
    page.run("for (const details of document.querySelectorAll('details')) details.open = true")
    page.run(AXE.read_text(encoding="utf-8"))
    found = page.run_async("axe.run().then((result) => arguments[0](result.violations))")
    page.prefer("light")
    serious = [v for v in found if v["impact"] in ("serious", "critical")]
    assert [(v["id"], v["help"], [node["html"] for node in v["nodes"]][:3]) for v in serious] == []


def test_a_server_pages_through_episodes(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "ROWS_PER_PAGE", 15)
    write_jsonl(tmp_path / "a.jsonl", varied(COUNT))
    with server.ViewerServer(Recordings([tmp_path / "a.jsonl"]), Vocabulary(), port=0) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        browser.open(serving.url, "#ep39-t2")
        assert browser.text("h2") == "Episode 39: solved, reward 1, 3 turns"
        assert listed(browser) == list(range(1, COUNT + 1))
        fill(browser, "text", "Fork Server")
        assert listed(browser) == [40]
        problems = browser.problems(serving.url)
        serving.shutdown()
        thread.join()
    assert problems == []
