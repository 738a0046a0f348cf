"""The page: what it embeds, and that nothing in it can run or load."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from hostile import STRINGS, trajectory
from recorded import guessing, varied, write_run

from gem.trajectory import write_jsonl
from gem.viewer.page import build_file, build_served_page
from gem.viewer.recordings import Recordings
from gem.viewer.tokens import Vocabulary

DATA = files("gem.viewer").joinpath("data")


class Elements(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=False)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str | None, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        if tag == "script":
            self.scripts[attributes.get("id")] = self.scripts.get(attributes.get("id"), "") + data


def test_the_page_holds_rows_and_bodies(tmp_path: Path):
    recordings = Recordings([write_run(tmp_path / "demo", varied(6))])
    scripts = Elements(build_file(recordings, Vocabulary())).scripts
    data = json.loads(scripts["data"])
    assert data["rows"] == recordings.rows and len(data["curve"]) == 30
    assert json.loads(scripts["body-5"]) == recordings.body(5)


def test_the_served_page_holds_no_episodes_and_may_ask_its_own_server(tmp_path: Path):
    write_jsonl(tmp_path / "a.jsonl", [guessing(1)])
    page = build_served_page(Recordings([tmp_path / "a.jsonl"]), Vocabulary())
    assert "rows" not in json.loads(Elements(page).scripts["data"])
    assert "connect-src 'self'" in page


def test_hostile_text_adds_no_element_and_survives_unchanged(tmp_path: Path):
    assert len(STRINGS) >= 40
    plain, file = tmp_path / "plain.jsonl", tmp_path / "hostile.jsonl"
    plain.write_text("".join(json.dumps(trajectory("text")) + "\n" for _ in STRINGS))
    file.write_text("".join(json.dumps(trajectory(text)) + "\n" for text in STRINGS))
    expected = Elements(build_file(Recordings([plain]), Vocabulary()))
    found = Elements(build_file(Recordings([file]), Vocabulary()))
    assert found.tags == expected.tags
    for number, text in enumerate(STRINGS):
        [message] = json.loads(found.scripts[f"body-{number}"])["turns"][2]["observation"]
        assert (message["role"], message["text"]) == (text, text)


def test_the_policy_allows_the_own_script_alone_and_no_request(tmp_path: Path):
    write_jsonl(tmp_path / "a.jsonl", [guessing(1)])
    page = build_file(Recordings([tmp_path / "a.jsonl"]), Vocabulary())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1] and "connect-src 'none'" in policy[1]
    assert re.search(r"script-src 'sha256-[\w+/]{43}='; connect-src", policy[1])
    assert "unsafe" not in policy[1]


@pytest.mark.parametrize("name", sorted(file.name for file in DATA.iterdir()))
def test_the_viewer_names_no_address_and_writes_no_html(name: str):
    text = DATA.joinpath(name).read_text("utf-8")
    for namespace in ("http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"):
        text = text.replace(namespace, "")
    assert not re.search(r"https?:|//[a-z]+\.|url\(|@import", text)
    assert not re.search(
        r"(inner|outer|Adjacent)HTML|setHTML|createContextualFragment|document\.write|\beval\(|new Function|DOMParser",
        text,
    )


def test_placeholders_in_the_data_are_left_alone(tmp_path: Path):
    (tmp_path / "{{script}}.jsonl").write_text(json.dumps(trajectory("{{data}}")) + "\n")
    page = build_file(Recordings([tmp_path / "{{script}}.jsonl"]), Vocabulary())
    assert json.loads(Elements(page).scripts["data"])["files"] == [str(tmp_path / "{{script}}.jsonl")]


def test_token_texts_come_from_the_tokenizer(tmp_path: Path):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"one": 1, "two": 2, "other": 9}, unk_token="one"))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    vocabulary = Vocabulary.load(tmp_path, None)
    assert vocabulary.texts({1, 2, 77}) == {"1": "one", "2": "two"}
    assert Vocabulary().texts({1}) == {}
