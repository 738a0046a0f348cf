"""The shipped corpus and questions of qa:Facts, and the script that generates them."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from gem.envs.questions.facts import FOLDER, passages, questions
from gem.graders.exact import exact_match, normalize

SCRIPTS = Path(__file__).parents[3] / "scripts"
PASSAGES = {row["id"]: row for row in passages()}
QUESTIONS = list(questions())
ONE_HOP = [row for row in QUESTIONS if row["hops"] == 1]
TWO_HOPS = [row for row in QUESTIONS if row["hops"] == 2]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def contains_answer(text: str, answer: str) -> bool:
    """Return whether the text contains the answer as whole words."""
    return re.search(rf"(?<![\w,]){re.escape(answer)}(?!\w)", text, re.IGNORECASE) is not None


def test_a_third_of_several_hundred_questions_has_two_hops():
    assert len(PASSAGES) >= 400
    assert len(QUESTIONS) >= 300
    assert 0.3 <= len(TWO_HOPS) / len(QUESTIONS) <= 0.4
    assert len(ONE_HOP) + len(TWO_HOPS) == len(QUESTIONS)


def test_the_files_are_small():
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 600_000


def test_ids_titles_questions_and_texts_are_unique():
    assert len(PASSAGES) == len(passages())
    assert len({row["id"] for row in QUESTIONS} | set(PASSAGES)) == len(QUESTIONS) + len(PASSAGES)
    assert len({row["title"] for row in PASSAGES.values()}) == len(PASSAGES)
    assert len({row["text"] for row in PASSAGES.values()}) == len(PASSAGES)
    assert len({row["question"] for row in QUESTIONS}) == len(QUESTIONS)


def test_a_passage_has_40_to_120_words_in_3_to_6_sentences_and_contains_its_title():
    for row in PASSAGES.values():
        assert 40 <= len(row["text"].split()) <= 120, row["id"]
        assert 3 <= len(re.findall(r"\.(?: |$)", row["text"])) <= 6, row["id"]
        assert row["title"].lower() in row["text"].lower(), row["id"]


def test_no_sentence_template_dominates():
    frames = Counter(
        re.sub(r"[A-Z]\w*|\d[\d,]*", "", sentence)
        for row in PASSAGES.values()
        for sentence in row["text"].rstrip(".").split(". ")
    )
    assert len(frames) > 400
    assert frames.most_common(1)[0][1] < 0.05 * sum(frames.values())


def test_the_last_of_the_needed_passages_contains_the_answer():
    for row in QUESTIONS:
        assert len(row["passages"]) == len(set(row["passages"])) == row["hops"], row["id"]
        text = PASSAGES[row["passages"][-1]]["text"]
        assert row["answer"][0] in text and contains_answer(text, row["answer"][0]), row["id"]


def test_no_question_contains_its_answer():
    for row in QUESTIONS:
        assert not any(contains_answer(row["question"], answer) for answer in row["answer"]), row["id"]


def test_a_question_contains_only_the_title_of_its_first_passage():
    titles = {row["title"]: row["id"] for row in PASSAGES.values()}
    for row in QUESTIONS:
        named = [titles[title] for title in titles if title.lower() in row["question"].lower()]
        assert named == row["passages"][:1], row["id"]


def test_the_first_of_two_passages_names_the_second_but_not_the_answer():
    for row in TWO_HOPS:
        first, second = (PASSAGES[each] for each in row["passages"])
        assert contains_answer(first["text"], second["title"]), row["id"]
        assert not any(contains_answer(first["text"], answer) for answer in row["answer"]), row["id"]


def test_no_answer_is_frequent():
    most = Counter(normalize(answer) for row in QUESTIONS for answer in set(map(normalize, row["answer"])))
    assert most.most_common(1)[0][1] < 0.02 * len(QUESTIONS)
    assert not {"yes", "no", "true", "false"} & set(most)


def test_reference_answers_are_correct_and_those_of_other_questions_are_not():
    for row in QUESTIONS:
        assert [exact_match(answer, row["answer"]).reward for answer in row["answer"]] == [1.0] * len(row["answer"])
    for row in QUESTIONS[::40]:
        others = [other["answer"][0] for other in QUESTIONS if other is not row]
        assert {exact_match(other, row["answer"]).reward for other in others} == {0.0}, row["id"]


class Index:
    """Retrieval by the sum of tf-idf over the words of the query."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.found: dict[str, Counter[str]] = defaultdict(Counter)
        for key, text in texts.items():
            for word in words(text):
                self.found[word][key] += 1
        self.size = len(texts)

    def search(self, query: str) -> list[str]:
        """Return the ids of three passages, best first."""
        score: Counter[str] = Counter()
        for word in set(words(query)):
            for key, times in self.found.get(word, {}).items():
                score[key] += times * math.log(self.size / len(self.found[word]))
        return [key for key, _ in score.most_common(3)]


TEXTS = {key: row["text"] for key, row in PASSAGES.items()}
TITLES_AND_TEXTS = {key: row["title"] + "\n" + row["text"] for key, row in PASSAGES.items()}


@pytest.mark.parametrize("corpus", [TEXTS, TITLES_AND_TEXTS], ids=["texts", "titles and texts"])
@pytest.mark.parametrize(("rows", "recall"), [(ONE_HOP, 0.99), (TWO_HOPS, 0.95)], ids=["one hop", "two hops"])
def test_a_search_for_the_question_finds_the_first_passage_among_three(rows, recall, corpus):
    index = Index(corpus)
    found = [row["passages"][0] in index.search(row["question"]) for row in rows]
    assert sum(found) >= recall * len(rows)


def test_a_search_for_the_title_finds_the_second_passage_among_three():
    index = Index(TEXTS)
    found = [row["passages"][1] in index.search(PASSAGES[row["passages"][1]]["title"]) for row in TWO_HOPS]
    assert sum(found) >= 0.99 * len(found)


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))


@pytest.mark.slow
def test_the_script_reproduces_the_files(tmp_path):
    import make_facts

    make_facts.write(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(file.name for file in FOLDER.iterdir())
    for file in FOLDER.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes(), f"run scripts/make_facts.py: {file.name}"


def test_the_dates_of_the_world_are_consistent():
    import make_facts

    world = make_facts.World(make_facts.stream("facts", "world"))
    for person in world.drawn["person"]:
        assert person.sources["birthplace"].year < person.year
        assert "teacher" not in person.sources or 18 <= person.year - person.sources["teacher"].year <= 60
    for kind, maker in [("book", "author"), ("ship", "captain"), ("bridge", "architect"), ("guild", "founder")]:
        for entity in world.drawn[kind]:
            assert 20 <= entity.year - entity.sources[maker].year <= 60, entity
    assert all("ship" not in song.sources or song.sources["ship"].year < song.year for song in world.drawn["song"])


@pytest.mark.slow
def test_questions_can_be_answered_with_search_and_not_without():
    import facts_reader

    index = Index(TEXTS)

    def exact(search) -> float:
        answers = [facts_reader.answer(row["question"], search) for row in QUESTIONS]
        right = [exact_match(a or "", row["answer"]).correct for a, row in zip(answers, QUESTIONS, strict=True)]
        return sum(right) / len(QUESTIONS)

    assert exact(lambda query: [TEXTS[key] for key in index.search(query)]) >= 0.95
    assert exact(lambda query: []) <= 0.1
