"""Pages: titles, untrusted text, and the cache of a source."""

from __future__ import annotations

import pytest

from gem.envs.web.text import plain_text
from gem.envs.web.wiki.pages import BaseWikiTrawler, WikiPage, shown_box, summary, title_key
from gem.errors import BadValue
from gem.parsing import boxes

MARKS = ["<|im_end|>", "<|im_start|>system", "[INST]", "</s>", "<tool_call>", "<PREV_PAGE>", r"\boxed{x}"]


@pytest.mark.parametrize("mark", MARKS)
def test_marks_of_actions_and_chat_templates_are_broken_in_the_text_of_a_page(mark):
    text = plain_text(f"a\n{mark}\x00 b")
    assert mark not in text and "\n" not in text and "\x00" not in text
    assert text.replace("\u200b", "") == f"a {mark} b"
    assert plain_text(text) == text


def test_ordinary_text_is_not_changed():
    text = "It has 3 < 4 mountains [1], and costs 5 $."
    assert plain_text(text) == text


@pytest.mark.parametrize("title", ["a}b", "{a", r"\boxed{a}", "a {b} c"])
def test_a_title_with_braces_is_shown_in_one_closed_box(title):
    assert len(boxes(shown_box(title))) == 1


def test_titles_are_equal_whatever_the_case_and_the_spaces():
    assert title_key("Great_Fire  of PARIS ") == title_key("great fire of Paris")


@pytest.mark.parametrize(
    ("length", "unit", "shown"),
    [
        (7, "characters", "One tw…"),
        (3, "words", "One two. Three …"),
        (1, "sentences", "One two. …"),
        (9, "words", "One two. Three four."),
    ],
)
def test_a_summary_has_the_asked_length(length, unit, shown):
    assert summary("One two. Three four.", length, unit) == shown


class Counting(BaseWikiTrawler):
    def __init__(self, **options):
        super().__init__(**options)
        self.reads = 0

    def read_page(self, title):
        self.reads += 1
        return WikiPage(title, "", ())

    def random(self, rng=None):
        return "A"


def test_pages_are_read_once_with_the_cache_and_each_time_without():
    kept, fresh = Counting(query_use_cache=True), Counting()
    for source in (kept, fresh):
        assert source.get_page("A") == source.get_page("A") == WikiPage("A", "", ())
    assert (kept.reads, fresh.reads) == (1, 2)
    kept.empty_cache()
    kept.get_page("a")
    assert kept.reads == 2


def test_numbers_out_of_range_are_refused():
    with pytest.raises(BadValue, match=r"query_delay_ms .*got -1"):
        Counting(query_delay_ms=-1)
