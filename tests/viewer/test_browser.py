"""The viewer in headless Chromium: `make test-viewer`."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, missing
from hostile import STRINGS, trajectory
from recorded import auction, explained, guessing, varied, write_run

from gem.evaluation import EvalEnv, evaluate
from gem.trajectory import Trajectory, Turn, write_jsonl
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
    rows = page.run("return [...document.querySelectorAll('#rows a')].map((link) => link.id)")
    return [int(row.removeprefix("row-")) + 1 for row in rows]


def address(page: Browser | Path, number: int, more: str = "") -> str:
    """The address of an episode of a page, or of the page of a recording's folder."""
    if isinstance(page, Path):
        return f"#episode={Recordings([page]).rows[number - 1]['key']}{more}"
    script = "return JSON.parse(document.getElementById('data').textContent).rows[arguments[0]].key"
    return f"#episode={page.run(script, number - 1)}{more}"


def beside(page: Browser, number: int) -> str:
    return address(page, number).replace("#episode", "&beside")


def test_all_episodes_are_listed_with_curves_and_scores(page: Browser):
    assert listed(page) == list(range(1, COUNT + 1))
    assert page.text("#count") == "40 episodes"
    assert page.run("return document.querySelectorAll('svg.curve path').length") == 3
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
    page.run("document.querySelector('#heads .turns').click()")  # the other way round
    assert listed(page)[0] == 40 and all(n % 4 == 1 for n in listed(page)[1:8])


def test_a_result_shows_its_episodes(page: Browser):
    page.run("document.querySelectorAll('#scores tbody button')[1].click()")
    page.run_async("setTimeout(arguments[0], 100)")
    assert listed(page) == [40]


def test_names_of_environments_are_readable_beside_all_columns(browser: Browser, tmp_path: Path):
    env = EvalEnv(id="qa:Facts", name="facts-of-a-world+python_tool_no_int_reward")
    evaluate("oracle", env, limit=2, out=str(tmp_path / "run"))
    (tmp_path / "view.html").write_text(build_file(Recordings([tmp_path / "run"]), Vocabulary()), encoding="utf-8")
    browser.open(tmp_path / "view.html")
    assert browser.run("return document.querySelector('.scores tbody th').clientWidth") > 150


def test_a_row_names_the_outcome_the_task_the_reward_and_the_turns(page: Browser):
    row = page.run("return document.getElementById('row-38').textContent")
    for text in ("solved", "What is 6 times 7?", "row 7", "math:Sample", "1", "3"):
        assert text in row
    assert not re.search("[0-9a-f]{16}", page.run("return document.getElementById('rows').textContent"))


def test_a_link_to_a_turn_opens_it(browser: Browser, file: Path):
    browser.open(file, address(file.parent, 39, "&turn=3"))
    assert browser.text("#detail h2") == "What is 6 times 7?"
    assert browser.text(".eyebrow").replace("\n", "") == "math:Sampleserved-modelrow 7"
    facts = browser.run("return [...document.querySelectorAll('.facts dd')].map((fact) => fact.innerText)")
    assert [facts[0].split()[-1], *facts[1:3]] == ["solved", "1", "3"]
    assert browser.run("return document.activeElement.id") == "ep39-t3"
    assert browser.run("return document.querySelector('#rows [aria-current]').id") == "row-38"


def test_the_conversation_shows_roles_calls_images_rewards_and_the_end(page: Browser):
    page.go(address(page, 39))
    roles = page.run("return [...document.querySelectorAll('.message h4')].map((head) => head.textContent)")
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "assistant"]
    shown = page.text("#detail")
    for text in (
        "print(6 * 7)",
        "invalid: malformed",
        "python: malformed",
        "Reward = answer 0.9 + format 0.1",
        "1 oldest turn left out",
        "31 tokens in",
    ):
        assert text in shown
    assert page.run("return document.querySelector('.message img').naturalWidth") == 1
    page.go(address(page, 40))
    assert "SandboxError: the fork server died" in page.text(".why")


@pytest.fixture
def reasons(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The viewer with two rollouts of a task that say why they have their score, and another episode."""
    run = write_run(tmp_path / "reasons", [*explained(), guessing(1)])
    path = run / "view.html"
    path.write_text(build_file(Recordings([run]), Vocabulary()), encoding="utf-8")
    browser.open(path)
    yield browser
    assert browser.problems(path) == []


def test_an_episode_says_first_why_it_has_its_score(reasons: Browser):
    reasons.go(address(reasons, 2))
    assert "The tests fail for negative numbers." in reasons.text(".why")
    checks = reasons.run("return [...document.querySelectorAll('.checks li')].map((check) => check.innerText)")
    assert [re.sub(r"\s+", " ", check) for check in checks] == [
        "✕ failed: negative got -1, expected 1",
        "✓ passed: positive",
    ]
    script = "return document.querySelector('.why').compareDocumentPosition(document.querySelector('.turn'))"
    assert reasons.run(script) & 4  # the turns follow


def test_code_formulas_and_data_are_readable(reasons: Browser):
    reasons.go(address(reasons, 1))
    kinds = reasons.run(
        "return [...document.querySelectorAll('.message [class^=code-]')].map((part) => part.className)"
    )
    assert {"code-keyword", "code-call"} <= set(kinds)
    assert "C:\\temp\nsecond line" in reasons.run("return document.querySelector('.message dl').textContent")
    if importlib.util.find_spec("latex2mathml"):
        assert reasons.run("return document.querySelector('.message math mfrac').textContent") == "12"
        assert reasons.run("return document.querySelector('.formula').title") == "$\\frac{1}{2}$"
    reasons.press("r")
    text = reasons.run("return document.querySelector('.message.assistant pre').textContent")
    assert text == "I return $\\frac{1}{2}$ of it:\n```python\ndef half(x):\n    return x / 2\n```\n"
    reasons.press("r")


def test_system_and_long_tool_messages_are_folded(page: Browser, browser: Browser, tmp_path: Path):
    page.go(address(page, 39))
    assert page.run("return [...document.querySelectorAll('details.message')].map((one) => one.open)") == [True, True]
    long = [{"role": "system", "content": "Be brief. " * 100}, {"role": "user", "content": "Go."}]
    run = write_run(tmp_path / "long", [Trajectory("test", turns=[Turn(long, "a")])])
    (run / "view.html").write_text(build_file(Recordings([run]), Vocabulary()), encoding="utf-8")
    with Browser() as other:
        other.open(run / "view.html", address(run, 1))
        assert other.run("return document.querySelector('details.message').open") is False


def test_a_link_to_an_episode_far_down_shows_its_row(browser: Browser, tmp_path: Path):
    write_jsonl(tmp_path / "a.jsonl", varied(450))
    (tmp_path / "a.html").write_text(build_file(Recordings([tmp_path / "a.jsonl"]), Vocabulary()), encoding="utf-8")
    browser.open(tmp_path / "a.html", address(tmp_path / "a.jsonl", 430))
    assert len(listed(browser)) == 450
    box = browser.run("return document.getElementById('row-429').getBoundingClientRect().toJSON()")
    assert 0 < box["top"] < box["bottom"] < 800


def test_the_keyboard_moves_between_episodes_turns_and_views(page: Browser):
    first, second = address(page, 1), address(page, 2)
    page.press("j", "j")
    assert page.run("return location.hash") == second
    page.press("k", "n", "n")
    assert page.run("return location.hash") == f"{first}&turn=2"
    page.press("p", "t")
    assert page.run("return location.hash") == f"{first}&turn=1&view=tokens"
    page.press("ESCAPE")
    assert page.run("return [location.hash, document.activeElement.id]") == ["", "row-0"]
    page.press("/", "fork server")
    page.run_async("setTimeout(arguments[0], 250)")
    page.press("ENTER")
    assert page.run("return location.hash") == address(page, 40)
    page.press("ESCAPE", "ENTER")
    assert page.run("return document.activeElement.tagName") == "H2"


def test_buttons_and_swipes_move_to_the_next_and_the_previous_episode(page: Browser):
    page.go(address(page, 1))
    assert page.run("return document.querySelector('.previous').disabled")
    page.run("document.querySelector('.next').click()")
    page.run_async("setTimeout(arguments[0], 60)")
    assert page.run("return location.hash") == address(page, 2)
    swipe = """
        const [from, to, done] = arguments;
        const target = document.querySelector("h2");
        const touch = (clientX) => new Touch({identifier: 1, target, clientX, clientY: 300});
        target.dispatchEvent(new TouchEvent("touchstart", {bubbles: true, touches: [touch(from)]}));
        target.dispatchEvent(new TouchEvent("touchend", {bubbles: true, changedTouches: [touch(to)]}));
        setTimeout(done, 60);"""
    page.run_async(swipe, 300, 100)
    assert page.run("return location.hash") == address(page, 3)
    page.run_async(swipe, 100, 300)
    page.run_async(swipe, 100, 130)  # too short
    assert page.run("return location.hash") == address(page, 2)


def test_equal_episodes_have_addresses_of_their_own(browser: Browser, tmp_path: Path):
    run = write_run(tmp_path / "equal", [guessing(1), guessing(1), guessing(2)])
    (run / "view.html").write_text(build_file(Recordings([run]), Vocabulary()), encoding="utf-8")
    browser.open(run / "view.html")
    browser.press("j", "j", "j")
    assert browser.run("return document.querySelector('[aria-current]').id") == "row-2"


def test_tokens_are_shaded_by_probability_and_marked_by_the_loss_mask(page: Browser):
    page.go(address(page, 2, "&view=tokens"))
    tokens = page.run(
        "return [...document.querySelectorAll('pre .sampled')].map((token) =>"
        " [parseFloat(token.style.getPropertyValue('--p')), token.classList.contains('unmasked'), token.title])"
    )
    assert len(tokens) == 18
    assert [unmasked for _, unmasked, _ in tokens] == [True, *[False] * 5] * 3
    probabilities = [float(title.split("probability ")[-1].split(";")[0]) for *_, title in tokens]
    assert all(abs(shade - 100 * (1 - p)) <= 1 for (shade, *_), p in zip(tokens, probabilities, strict=True))


def test_two_rollouts_of_one_task_stand_side_by_side(page: Browser):
    page.go(address(page, 2))
    assert page.run("return document.querySelectorAll('.toolbar option').length") == 6  # seed 1: 1, 8, … and a title
    page.go(address(page, 2) + beside(page, 9))
    about = page.run("return [...document.querySelectorAll('.eyebrow')].map((one) => one.lastChild.innerText)")
    assert about == ["episode 2", "episode 9"]
    assert page.text("#difference") == "First difference: turn 1"
    marked = page.run("return [...document.querySelectorAll('.side mark')].map((mark) => mark.textContent)")
    assert marked


def test_equal_turns_of_two_rollouts_are_folded(reasons: Browser):
    reasons.go(address(reasons, 1) + beside(reasons, 2))
    assert reasons.text(".comparison > details > summary") == "Turn 1 is the same"
    assert reasons.text("#difference") == "First difference: turn 2"
    words = reasons.run("return [...document.querySelectorAll('mark')].map((mark) => mark.textContent)")
    assert words == ["abs(", ")"]


def test_a_link_to_a_task_lists_its_rollouts(reasons: Browser):
    reasons.go("#task=0123456789abcdef")
    assert listed(reasons) == [1, 2]
    assert "2 rollouts, 1 solved" in reasons.text("#task")
    reasons.run("[...document.querySelectorAll('#task a')].at(-1).click()")
    reasons.run_async("setTimeout(arguments[0], 100)")
    assert reasons.run("return location.hash") == address(reasons, 1) + beside(reasons, 2)
    reasons.go("#")
    assert listed(reasons) == [1, 2, 3]


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
    games.go(address(games, 4))
    assert games.text(".eyebrow").startswith("bidder_2")
    games.run("[...document.querySelectorAll('.toolbar button')].find((b) => b.innerText === 'All 3 agents').click()")
    games.go(address(games, 4, "&agents=all"))
    heads = games.run("return [...document.querySelectorAll('.eyebrow')].map((one) => one.firstChild.innerText)")
    assert heads == ["bidder_0", "bidder_1", "bidder_2"]
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
    page.go(address(page, 3))
    page.run("document.querySelector('.note input').focus()")
    page.press("good", "TAB", "A note.")
    page.open(file, address(page, 3))
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
        phone.open(file)
        for part, visible, hidden in [
            ("", "#list", "#detail"),
            (address(phone, 39), "#detail", "#list"),
            (address(phone, 2, "&view=tokens"), "#detail h2", "#list"),
            (address(phone, 2) + beside(phone, 9), "#difference", "#list"),
        ]:
            phone.open(file, part)
            shown = "return document.querySelector(arguments[0]).offsetParent !== null"
            assert phone.run(shown, visible) and not phone.run(shown, hidden)
            assert phone.run("return document.documentElement.scrollWidth") <= 390
        phone.open(file)
        name = "return getComputedStyle(document.querySelector('.matrix td'), '::before').content"
        assert "demo" in phone.run(name) and re.match(r"0\.\d{3}", phone.text(".matrix td"))


def test_printing_opens_what_is_folded(page: Browser):
    page.go(address(page, 39))
    is_open = "return [...document.querySelectorAll('#detail details')].map((one) => one.open)"
    before = page.run(is_open)
    assert not all(before)
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert all(page.run(is_open))
    page.run("dispatchEvent(new Event('afterprint'))")
    assert page.run(is_open) == before


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
            const replies = document.querySelectorAll(".message.assistant pre.text, .message pre.tokens");
            texts.push([...replies].at(-1).textContent.toWellFormed());
        }
        const nodes = [...document.querySelectorAll("*")];
        const handlers = nodes.flatMap((node) => node.getAttributeNames()).filter((name) => name.startsWith("on"));
        done([texts, window.pwned ?? null, nodes.map((node) => node.tagName), handlers]);
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
    keys = [row["key"] for row in Recordings([folder]).rows]
    addresses = [f"#episode={key}{view}" for key in keys for view in ("", "&view=tokens")]
    browser.go(addresses[0])
    for is_raw in (False, True):
        texts, pwned, tags, handlers = browser.run_async(VISIT, addresses)
        assert pwned is None and handlers == []
        assert not {"IFRAME", "BASE", "VIDEO", "MATH", "ANIMATE", "LINK", "META"} & set(tags[tags.index("BODY") :])
        if not is_raw:  # formulas replace their text, and nothing else does
            browser.press("r")
    assert [shown[:200] for shown in texts[::2]] == [displayed(text)[:200] for text in STRINGS]
    fill(browser, "text", "<script>")
    assert browser.problems(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["results", "episode", "tokens", "compared", "task"])
def test_axe_finds_no_serious_violation(view: str, scheme: str, page: Browser, file: Path):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed; `make test-viewer` installs it with npm")
    page.prefer(scheme)
    second = address(page, 2)
    views = {"results": "", "episode": address(page, 39), "tokens": second + "&view=tokens", "task": "#task=seed%201"}
    page.open(file, {**views, "compared": second + beside(page, 9)}[view])
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
        browser.open(serving.url, address(tmp_path / "a.jsonl", 39, "&turn=2"))
        assert browser.text("#detail h2") == "What is 6 times 7?"
        assert listed(browser) == list(range(1, COUNT + 1))
        fill(browser, "text", "Fork Server")
        assert listed(browser) == [40]
        problems = browser.problems(serving.url)
        serving.shutdown()
        thread.join()
    assert problems == []
