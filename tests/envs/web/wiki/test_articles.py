"""The encyclopedia of gem: its facts, articles, links and distances."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from gem.envs.web.wiki.articles import article, encyclopedia, worlds_of
from gem.envs.web.wiki.generate import build_world
from gem.envs.web.wiki.graph import distances
from gem.envs.web.wiki.pages import title_key
from gem.envs.web.wiki.world import COUNTS, LINKS, NUMBERS
from gem.errors import BadValue


@pytest.fixture(scope="module")
def pages():
    return encyclopedia(0)


def test_a_world_has_at_least_2000_articles_with_text_and_links(pages):
    assert len(pages.pages()) >= 2000
    for title, page in pages.pages().items():
        assert page.title == title and len(page.text.split()) >= 15 and page.links
        assert page.text.startswith((title, f"The {title}")) and page.text.endswith(".")
        assert "[[" not in page.text and "{" not in page.text


def test_every_relation_joins_the_kinds_that_it_is_declared_for():
    world = build_world(3)
    for relation, kinds in LINKS.items():
        assert {world.kinds[entity] for entity in world.links[relation]} == set(kinds)
    for relation, kinds in NUMBERS.items():
        assert {world.kinds[entity] for entity in world.numbers[relation]} == set(kinds)
    assert Counter(world.kinds) == COUNTS


def test_titles_and_aliases_are_unique_whatever_the_case(pages):
    world = pages.world
    names = [*world.titles, *world.aliases.values()]
    assert len(set(map(title_key, names))) == len(names)
    assert len(world.aliases) > 50


def test_every_link_leads_to_a_page_and_some_are_redirects(pages):
    redirects = 0
    for page in pages.pages().values():
        for link in page.links:
            redirects += pages.get_page(link).title != link
    assert redirects > 20


def test_the_years_of_a_title_are_the_same_on_all_pages(pages):
    years: dict[str, set[str]] = {}
    for title in pages.world.titles:
        for link, year in re.findall(r"\[\[([^\]]+)\]\] \((\d+)\)", article(pages.world, pages.entity(title))):
            years.setdefault(link, set()).add(year)
    assert len(years) > 500 and all(len(found) == 1 for found in years.values())
    for title, [year] in years.items():
        assert year in pages.get_page(title).text


def test_lists_and_single_facts_agree(pages):
    world = pages.world
    for person in world.of_kind("person"):
        town = world.titles[world.links["birthplace"][person]]
        assert f"born in {town}." in pages.get_page(world.titles[person]).text
        natives = pages.get_page(town).text.partition("The people born in")[2]
        assert world.titles[person] in natives


def test_lives_and_works_are_in_order():
    world = build_world(5)
    born, died = world.numbers["born"], world.numbers["died"]
    for work in world.of_kind("work"):
        assert born[world.links["author"][work]] + 18 < world.numbers["year"][work] <= died[world.links["author"][work]]
    for event in world.of_kind("event"):
        assert born[world.links["leader"][event]] < world.numbers["year"][event] <= died[world.links["leader"][event]]
    for pupil, teacher in world.links["teacher"].items():
        assert born[teacher] + 18 <= born[pupil] < died[teacher]


def test_every_page_can_be_reached_from_every_other_at_distances_from_1_to_6(pages):
    found = Counter[int]()
    for title in pages.world.titles[::100]:
        away = distances(title, pages.graph.__getitem__)
        assert len(away) == len(pages.world.titles)
        found.update(away.values())
    assert all(found[distance] >= 20 for distance in range(1, 7))
    assert len(distances(pages.world.titles[0], pages.linked_from.__getitem__)) == len(pages.world.titles)


def test_eight_worlds_are_for_training_and_two_others_for_testing():
    assert list(worlds_of("train")) == list(range(8)) and list(worlds_of("test")) == [8, 9]
    titles = [set(build_world(number).titles) for number in (0, 1, 8)]
    assert len(titles[0] & titles[2]) < 400 and len(titles[0] & titles[1]) < 400  # works have English titles
    with pytest.raises(BadValue, match="'train' or 'test', got 'dev'"):
        worlds_of("dev")
    with pytest.raises(BadValue, match="got -1"):
        build_world(-1)


def test_a_world_is_the_same_in_every_process():
    program = (
        "import hashlib; from gem.envs.web.wiki.articles import encyclopedia\n"
        "text = ''.join(page.text for page in encyclopedia(1).pages().values())\n"
        "print(hashlib.blake2b(text.encode(), digest_size=8).hexdigest())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
