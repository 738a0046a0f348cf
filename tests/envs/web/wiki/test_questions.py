"""Questions about the encyclopedia: one answer each, known pages, and what readers with and without search reach."""

from __future__ import annotations

import importlib.util
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from gem.envs.questions.encyclopedia_qa import passages, search_index
from gem.envs.web.wiki.articles import encyclopedia
from gem.envs.web.wiki.generate import build_world
from gem.envs.web.wiki.questions import KINDS, Questions
from gem.errors import BadValue
from gem.graders.exact import exact_match
from gem.tools.search.tool import format_hits

spec = importlib.util.spec_from_file_location("reader", Path(__file__).with_name("reader.py"))
assert spec is not None and spec.loader is not None
reader = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reader)


def triples(world):
    """All facts as (subject, relation, object), with titles for entities."""
    for relation, pairs in world.links.items():
        for subject, other in pairs.items():
            yield world.titles[subject], relation, world.titles[other]
    for relation, pairs in world.numbers.items():
        for subject, number in pairs.items():
            yield world.titles[subject], relation, number


def solutions(query, facts):
    """All answers of a query on a set of facts: a slow twin of gem.envs.web.wiki.questions.answer()."""
    if query[0] == "entity":
        return {query[1]}
    sides = [solutions(side, facts) for side in query[2:]]
    if query[0] == "of":
        return {o for s, r, o in facts if r == query[1] and s in sides[0]}
    if query[0] == "count":
        return {sum(1 for _, r, o in facts if r == query[1] and o == other) for other in sides[0]}
    numbers = {s: o for s, r, o in facts if r == query[1]}
    both = sides[0] | sides[1]
    best = (min if query[0] == "least" else max)(numbers[title] for title in both)
    return {title for title in both if numbers[title] == best}


def test_300_questions_have_exactly_one_answer_by_a_query_on_the_facts():
    facts = {number: list(triples(build_world(number))) for number in range(8)}
    for row in Questions().take(300):
        [found] = solutions(row["query"], facts[row["world"]])
        assert str(found) == row["answer"][0], row["question"]


@pytest.mark.parametrize(("kind", "hops"), [(kind, hops) for kind, numbers in KINDS.items() for hops in numbers])
def test_a_question_needs_as_many_pages_as_it_has_hops(kind, hops):
    for row in Questions(hops, kind, "test").take(20):
        assert (row["kind"], row["hops"], row["world"] in (8, 9)) == (kind, hops, True)
        assert len(set(row["pages"])) == hops
        texts = [encyclopedia(row["world"]).get_page(page).text for page in row["pages"]]
        if kind != "count":
            assert any(answer in texts[-1].replace(",", "") for answer in row["answer"]) or kind == "comparison"
            assert any(answer in text.replace(",", "") for text in texts for answer in row["answer"]), row["question"]
        if not row["answer"][0].isdigit():
            assert row["answer"][0] not in row["question"]


def test_a_row_depends_only_on_its_index():
    assert Questions()[7] == Questions()[7] != Questions()[8]
    assert len({row["question"] for row in Questions().take(200)}) > 195


def test_unknown_kinds_and_numbers_of_hops_are_refused():
    with pytest.raises(BadValue, match=r"kind 'comparison' with 1 hops \(kinds and hops: chain 1-4"):
        Questions(1, "comparison")


def test_aliases_are_accepted():
    rows = [row for row in Questions(hops=2).take(300) if len(row["answer"]) > 1]
    assert any(row["answer"][0].startswith("River ") for row in rows)
    world = {number: build_world(number) for number in range(8)}
    assert any(set(row["answer"]) & set(world[row["world"]].aliases.values()) for row in rows)


@pytest.fixture(scope="module")
def scores():
    """Rates of right answers by number of hops: of a reader with search, with three pages, and without pages."""
    found = defaultdict(Counter)
    for row in Questions(split="test").take(150):
        index = search_index(row["world"])

        def search(query, index=index):
            return reader.documents(format_hits(index.search([query], 3)[0]))

        first = search(row["question"])
        readers = {"search": search, "three": lambda query, first=first: first, "none": lambda query: []}
        for name, pages in readers.items():
            try:
                answer = reader.answer(row["question"], pages)
            except reader.Unknown:
                continue
            found[name][row["hops"]] += exact_match(answer, row["answer"]).correct
        found["all"][row["hops"]] += 1
    return found


def test_a_reader_with_the_search_tool_answers_at_least_nine_tenths(scores):
    assert scores["search"].total() >= 0.9 * scores["all"].total()


def test_the_same_reader_without_the_search_tool_answers_at_most_a_twentieth(scores):
    assert scores["none"].total() <= 0.05 * scores["all"].total()


@pytest.mark.parametrize("hops", [3, 4])
def test_the_first_three_pages_found_by_the_words_of_the_question_are_not_enough(scores, hops):
    assert scores["three"][hops] <= 0.3 * scores["all"][hops]


def test_the_most_frequent_answer_of_a_question_type_is_right_in_at_most_a_twentieth():
    rows = list(Questions().take(3000))
    frequent = defaultdict(Counter)
    for row in rows[:2000]:
        frequent[row["kind"], row["query"][1]][row["answer"][0]] += 1
    guesses = {kind: answers.most_common(1)[0][0] for kind, answers in frequent.items()}
    right = sum(exact_match(guesses[row["kind"], row["query"][1]], row["answer"]).correct for row in rows[2000:])
    assert right <= 0.05 * 1000


def test_passages_are_the_pages_of_the_world():
    rows = passages(3)
    assert len(rows) == len(encyclopedia(3).world.titles)
    assert rows[5]["text"] == encyclopedia(3).get_page(rows[5]["title"]).text
