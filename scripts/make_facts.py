"""Generate the corpus and the questions of qa:Facts: prose about a world invented from a fixed seed.

python scripts/make_facts.py [FOLDER]   default: src/gem/envs/data/facts
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from facts_kinds import KINDS, TRADES, Fact
from facts_values import Entity, Link
from gem.envs.games.words.lists import common
from gem.graders.exact import normalize
from gem.seeding import stream

FOLDER = Path(__file__).resolve().parents[1] / "src" / "gem" / "envs" / "data" / "facts"
ONE_HOP, TWO_HOPS = 300, 150
WORDS = range(40, 121)  # per passage
APART = 5  # invented names differ in their first letters, at least in so many
STARTS = [
    *("b", "br", "c", "cl", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "kr", "l", "m", "n", "p", "pl", "qu", "r"),
    *("s", "sk", "t", "tr", "v", "y", "z"),
]
VOWELS = ["a", "e", "i", "o", "u", "ae", "ie", "oa"]
MIDDLES = [
    *("b", "dr", "g", "l", "ld", "lv", "m", "mb", "n", "nd", "nth", "p", "rd", "rk", "rm", "rv", "s", "st", "sk", "t"),
    *("v", "vr", "x", "z"),
]
ENGLISH = frozenset(word for length in range(3, 9) for word in common(length))
Row = Mapping[str, Any]


class World:
    """All entities with their facts. ``drawn`` holds them by kind and by trade."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._names: list[str] = []
        self._decks: dict[str, list[Entity]] = {}
        self.drawn: dict[str, list[Entity]] = {}
        for kind in KINDS:
            self._name(kind)
        for kind in KINDS:
            for fact in KINDS[kind].facts:
                for entity in self.drawn[kind]:
                    self._add(entity, fact)

    @property
    def entities(self) -> list[Entity]:
        return [entity for kind in KINDS for entity in self.drawn[kind]]

    def _name(self, kind: str) -> None:
        self.drawn[kind] = []
        for number in range(KINDS[kind].number):
            bare = self.invent(KINDS[kind].endings)
            if kind == "person":
                bare = f"{bare} {self.invent(('a', 'en', 'ok', 'ind', 'alt', 'ova', 'usen'))}"
            name = self.rng.choice(KINDS[kind].forms).format(bare)
            entity = Entity(kind, name, name if kind in ("book", "song") else bare)
            self.drawn[kind].append(entity)
            if kind == "person":
                entity.trade = TRADES[number % len(TRADES)]
                self.drawn.setdefault(entity.trade, []).append(entity)

    def _add(self, entity: Entity, fact: Fact) -> None:
        value = fact.value.draw(self, entity)
        if isinstance(value, Entity):
            entity.sources[fact.name] = value
            entity.facts[fact.name] = value.name
        elif value is not None:
            entity.facts[fact.name] = value

    def deal(self, group: str) -> Entity:
        if not self._decks.get(group):
            self._decks[group] = self.rng.sample(self.drawn[group], len(self.drawn[group]))
        return self._decks[group].pop()

    def made_between(self, group: str, first: int, last: int) -> Entity | None:
        fitting = [entity for entity in self.drawn[group] if first <= entity.year <= last]
        return self.rng.choice(fitting) if fitting else None

    def invent(self, endings: tuple[str, ...]) -> str:
        while True:
            parts = [self.rng.choice(letters) for letters in (STARTS, VOWELS, MIDDLES, endings)]
            word = "".join(parts)
            alike = any(word[:APART] in other or other[:APART] in word for other in self._names)
            if len(word) > APART and not alike and word not in ENGLISH:
                self._names.append(word)
                return word.capitalize()


def article(entity: Entity, rng: random.Random) -> str:
    """Write the passage of an entity: one sentence per fact, with the full name at least three times."""
    first, *others = facts_of(entity)
    while True:
        sentences, clear = [render(first, rng.choice(first.statements), entity, entity.name)], False
        for fact in rng.sample(others, len(others)):
            # After another name, "it" and "she" would be ambiguous.
            statements = [text for text in fact.statements if clear or "{x}" in text]
            sentences.append(render(fact, rng.choice(statements), entity, rng.choice([entity.name, short(entity)])))
            clear = not isinstance(fact.value, Link)
        text = " ".join(sentences)
        if text.lower().count(entity.name.lower()) >= 3 and len(text.split()) in WORDS:
            return text


def render(fact: Fact, text: str, entity: Entity, name: str) -> str:
    they, their = entity.pronouns
    text = text.format(x=name, v=entity.facts[fact.name], they=they, their=their, trade=entity.trade)
    return text[0].upper() + text[1:]


def short(entity: Entity) -> str:
    return KINDS[entity.kind].noun or entity.surname


def facts_of(entity: Entity) -> list[Fact]:
    return [fact for fact in KINDS[entity.kind].facts if fact.name in entity.facts]


class Draft(NamedTuple):
    """A candidate question.

    meant: the answers, normalized. about: the entities whose passages are needed, in reading order. sort: questions of
    the same sort are similar.
    """

    text: str
    answers: list[str]
    meant: frozenset[str]
    about: list[Entity]
    sort: str


def one_hop(world: World, rng: random.Random) -> Iterator[Draft]:
    """Yield a question for each fact of each entity."""
    for entity in world.entities:
        for fact in facts_of(entity):
            yield draft(fact, [entity], entity.name, f"{entity.kind} {fact.name}", rng)


def two_hops(world: World, rng: random.Random) -> Iterator[Draft]:
    """Yield a question for each fact of each entity that is the value of a fact of another entity."""
    for entity in world.entities:
        for link in facts_of(entity):
            if between := entity.sources.get(link.name):
                name = link.noun.format(x=entity.name)
                for fact in facts_of(between):
                    yield draft(fact, [entity, between], name, f"{entity.kind} {link.name} {fact.name}", rng)


def draft(fact: Fact, about: list[Entity], name: str, sort: str, rng: random.Random) -> Draft:
    entity = about[-1]
    source = entity.sources.get(fact.name)
    answers = source.answers if source else fact.value.accepted(entity.facts[fact.name])
    return Draft(rng.choice(fact.questions).format(x=name), answers, frozenset(map(normalize, answers)), about, sort)


def is_fair(draft: Draft, texts: Mapping[str, str]) -> bool:
    """Return whether neither the question nor the first of two passages contains the answer."""
    before = [draft.text, *(texts[entity.title] for entity in draft.about[:-1])]
    return not any(contains_answer(text, answer) for text in before for answer in draft.answers)


def contains_answer(text: str, answer: str) -> bool:
    """Return whether the text contains the answer as whole words."""
    text, answer = text.lower(), answer.lower()
    return answer in text and re.search(rf"(?<![\w,]){re.escape(answer)}(?!\w)", text) is not None


def choose(drafts: list[Draft], count: int, taken: set[str], rng: random.Random) -> list[Draft]:
    """Choose questions without a common answer, spread evenly over the sorts.

    taken: normalized answers already in use; updated.
    """
    chosen: list[Draft] = []
    used: Counter[str] = Counter()
    drafts = rng.sample(drafts, len(drafts))
    while len(chosen) < count:
        drafts = [draft for draft in drafts if taken.isdisjoint(draft.meant)]
        best = min(drafts, key=lambda draft: used[draft.sort])
        used[best.sort] += 1
        taken.update(best.meant)
        chosen.append(best)
    return chosen


def build() -> dict[str, list[Row]]:
    """Return the rows of both files by file name."""
    world = World(stream("facts", "world"))
    prose, asking, picking = (stream("facts", part) for part in ("prose", "asking", "picking"))
    texts = {entity.title: article(entity, prose) for entity in world.entities}
    titles = picking.sample(sorted(texts), len(texts))
    ids = {title: f"facts-{number:03}" for number, title in enumerate(titles, 1)}
    taken: set[str] = set()
    chosen: list[Draft] = []
    for every, count in ((two_hops, TWO_HOPS), (one_hop, ONE_HOP)):
        fair = [draft for draft in every(world, asking) if is_fair(draft, texts)]
        chosen += choose(fair, count, taken, picking)
    chosen = picking.sample(chosen, len(chosen))
    return {
        "passages.jsonl": [{"id": ids[title], "title": title, "text": texts[title]} for title in titles],
        "questions.jsonl": [question(number, draft, ids) for number, draft in enumerate(chosen, 1)],
    }


def question(number: int, draft: Draft, ids: Mapping[str, str]) -> Row:
    return {
        "id": f"facts-q{number:03}",
        "question": draft.text,
        "answer": draft.answers,
        "passages": [ids[entity.title] for entity in draft.about],
        "hops": len(draft.about),
    }


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in build().items():
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (folder / name).write_bytes("".join(lines).encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]) if sys.argv[1:] else FOLDER)
