"""Questions about a world: chains of relations, comparisons and counts, generated from its facts.

A question is a query, as nested lists: ``["entity", title]``; ``["of", relation, query]``, such as the author of a
work; ``["least" or "greatest", relation, query, query]``, the entity with the smaller or greater number; ``["count",
relation, query]``, the number of entities with a relation to an entity. answer() computes it, phrase() writes it.

>>> world = build_world(0)
>>> query = ["of", "founded", ["of", "birthplace", ["entity", world.titles[world.of_kind("person")[0]]]]]
>>> phrase(world, query).partition("the birthplace of")[0]
'In which year was '
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

from gem.datasets import Row, Rows
from gem.envs.web.wiki.articles import worlds_of
from gem.envs.web.wiki.generate import build_world
from gem.envs.web.wiki.world import LINKS, NUMBERS, World
from gem.errors import BadValue
from gem.seeding import stream

Query = list[Any]
KINDS = {"chain": (1, 2, 3, 4), "comparison": (2, 3, 4), "count": (1, 2, 3, 4)}  # kind → numbers of hops
ROWS = 1_000_000

_NOUNS = {
    "capital": "the capital of {}",
    "river": "the river of {}",
    "twin": "the twin town of {}",
    "source": "the source of {}",
    "climber": "the first climber of {}",
    "birthplace": "the birthplace of {}",
    "teacher": "the teacher of {}",
    "school": "the school of {}",
    "place": "the site of {}",
    "founder": "the founder of {}",
    "author": "the author of {}",
    "setting": "the setting of {}",
    "leader": "the leader of {}",
}
_NUMBERS = {
    "founded": "In which year was {} founded?",
    "population": "How many inhabitants does {} have?",
    "length": "How many kilometres long is {}?",
    "height": "How many metres high is {}?",
    "climbed": "In which year was {} first climbed?",
    "born": "In which year was {} born?",
    "died": "In which year did {} die?",
    "year": "What is the year of {}?",
}
_COUNTS = {
    "river": "How many towns lie on {}?",
    "birthplace": "How many people of the encyclopedia were born in {}?",
    "author": "How many works of {} does the encyclopedia name?",
}
_COMPARED = {  # relation → phrases for the smaller and the greater number
    "born": ("the elder of {} and {}", "the younger of {} and {}"),
    "founded": ("the older of {} and {}", "the newer of {} and {}"),
    "length": ("the shorter of {} and {}", "the longer of {} and {}"),
    "height": ("the lower of {} and {}", "the higher of {} and {}"),
    "year": ("the earlier of {} and {}", "the later of {} and {}"),
}
_STARTS = ("town", "river", "mountain", "person", "institution", "work", "event")
_MAX_COUNT = 25  # counts are drawn evenly from 1 to this number


class Questions(Rows):
    """Generated questions. A row depends only on the split, the kind, the number of hops and its index.

    Columns: ``question``; ``answer``, the accepted answers; ``kind`` and ``hops``; ``pages``, the titles that have to
    be read, in reading order, one for each hop; ``world``; ``query``; ``id``.

    Args:
        hops: number of pages to read, 1 to 4; None for any.
        kind: "chain", "comparison" or "count"; None for any.
        split: "train" or "test"; see gem.envs.web.wiki.articles.

    Raises:
        BadValue: no questions have this kind and number of hops.
    """

    generated = True

    def __init__(self, hops: int | None = None, kind: str | None = None, split: str = "train") -> None:
        self.name, self._worlds = f"encyclopedia-{split}", worlds_of(split)
        self._choices = [
            (one, number)
            for one, numbers in KINDS.items()
            for number in numbers
            if kind in (None, one) and hops in (None, number)
        ]
        if not self._choices:
            known = ", ".join(f"{one} {min(numbers)}-{max(numbers)}" for one, numbers in KINDS.items())
            raise BadValue(f"no questions of kind {kind!r} with {hops!r} hops (kinds and hops: {known})")

    def row(self, index: int) -> Row:
        rng = stream(self.name, index)
        number = rng.choice(self._worlds)
        kind, hops = rng.choice(self._choices)
        world = build_world(number)
        query = draw(world, kind, hops, rng)
        return {
            "id": f"{self.name}-{kind}-{hops}-{index}",
            "question": phrase(world, query),
            "answer": accepted(world, query),
            "kind": kind,
            "hops": hops,
            "pages": [world.titles[page] for page in pages(world, query)],
            "world": number,
            "query": query,
        }

    def __len__(self) -> int:
        return ROWS


def draw(world: World, kind: str, hops: int, rng: random.Random) -> Query:
    """Draw a question that needs this number of pages, none of them twice, and whose answer it does not name."""
    while True:
        query = {"chain": _chain, "comparison": _comparison, "count": _count}[kind](world, hops, rng)
        if query is not None and len(set(pages(world, query))) == hops and not _gives_away(world, query):
            return query


def _chain(world: World, hops: int, rng: random.Random) -> Query | None:
    query: Query | None = _named(world, rng.choice(world.of_kind(rng.choice(_STARTS))))
    for _ in range(hops - 1):
        query = None if query is None else _step(world, query, rng)
    return None if query is None else _last(world, query, rng)


def _comparison(world: World, hops: int, rng: random.Random) -> Query | None:
    relation = rng.choice([*_COMPARED])
    kind = rng.choice([*NUMBERS[relation]])
    ends = rng.sample(world.of_kind(kind), 2)
    nested = rng.randint(0, min(hops - 2, 2))
    sides = [_back(world, end, rng) if i < nested else _named(world, end) for i, end in enumerate(ends)]
    if None in sides or len({world.numbers[relation][end] for end in ends}) < 2:
        return None
    query: Query | None = [rng.choice(["least", "greatest"]), relation, *sides]
    for _ in range(hops - 2 - nested):
        query = None if query is None else _step(world, query, rng)
    return None if query is None else _last(world, query, rng)


def _count(world: World, hops: int, rng: random.Random) -> Query | None:
    wanted, relation = rng.randint(1, _MAX_COUNT), rng.choice([*_COUNTS])
    ends = _with_count(world, relation).get(wanted)
    if not ends:
        return None
    query: Query | None = _named(world, rng.choice(ends))
    for _ in range(hops - 1):
        query = None if query is None else _deeper(world, query, rng)
    return None if query is None else ["count", relation, query]


@lru_cache(maxsize=128)
def _with_count(world: World, relation: str) -> dict[int, list[int]]:
    """Return count → entities to which so many have a relation."""
    found: dict[int, list[int]] = {}
    for entity in sorted(set(world.links[relation].values())):
        found.setdefault(len(world.those(relation, entity)), []).append(entity)
    return found


def _step(world: World, query: Query, rng: random.Random) -> Query | None:
    """Apply a relation to another entity, or return None if the entity of the query has none."""
    entity = answer(world, query)
    relations = [relation for relation in _NOUNS if entity in world.links[relation]]
    return ["of", rng.choice(relations), query] if relations else None


def _last(world: World, query: Query, rng: random.Random) -> Query | None:
    """Apply any relation, to an entity or to a number."""
    entity = answer(world, query)
    relations = [*_NOUNS, *NUMBERS]
    known = [r for r in relations if entity in (world.links[r] if r in LINKS else world.numbers[r])]
    return ["of", rng.choice(known), query] if known else None


def _back(world: World, entity: int, rng: random.Random) -> Query | None:
    """Return a query of one relation whose answer is an entity, or None."""
    found = [(relation, other) for relation in _NOUNS for other in world.those(relation, entity)]
    if not found:
        return None
    relation, other = rng.choice(found)
    return ["of", relation, _named(world, other)]


def _deeper(world: World, query: Query, rng: random.Random) -> Query | None:
    """Replace the named entity of a query by a relation of another one, or return None."""
    if query[0] == "entity":
        return _back(world, _entity(world, query[1]), rng)
    inner = _deeper(world, query[2], rng)
    return None if inner is None else [*query[:2], inner]


def _named(world: World, entity: int) -> Query:
    return ["entity", world.titles[entity]]


@lru_cache(maxsize=16)
def _numbers(world: World) -> dict[str, int]:
    return {title: entity for entity, title in enumerate(world.titles)}


def _entity(world: World, title: str) -> int:
    return _numbers(world)[title]


def answer(world: World, query: Query) -> int:
    """Return the answer of a query: the number of an entity, or a number (see is_number())."""
    if query[0] == "entity":
        return _entity(world, query[1])
    if query[0] == "count":
        return len(world.those(query[1], answer(world, query[2])))
    if query[0] == "of":
        return (world.links if query[1] in LINKS else world.numbers)[query[1]][answer(world, query[2])]
    choose = min if query[0] == "least" else max
    return choose((answer(world, side) for side in query[2:]), key=world.numbers[query[1]].__getitem__)


def is_number(query: Query) -> bool:
    """Return whether the answer of a query is a number and not an entity."""
    return query[0] == "count" or (query[0] == "of" and query[1] in NUMBERS)


def accepted(world: World, query: Query) -> list[str]:
    """Return the accepted answers, the title or the number first."""
    found = answer(world, query)
    if is_number(query):
        unit = {"length": "km", "height": "m"}.get(query[1])
        return [str(found), *([f"{found} {unit}"] if unit and query[0] == "of" else [])]
    title = world.titles[found]
    short = [title.split(" ", 1)[1]] if world.kinds[found] in ("river", "mountain") else []
    return [title, *short, *([world.aliases[found]] if found in world.aliases else [])]


def pages(world: World, query: Query) -> list[int]:
    """Return the entities whose pages have to be read, in reading order."""
    if query[0] == "entity":
        return []
    read = [page for side in query[2:] for page in pages(world, side)]
    return list(dict.fromkeys([*read, *(answer(world, side) for side in query[2:])]))


def _gives_away(world: World, query: Query) -> bool:
    """Return whether the question names its answer, or asks for the way back to a page."""
    text = phrase(world, query)
    if is_number(query):
        return False
    return answer(world, query) in pages(world, query) or any(name in text for name in accepted(world, query))


def phrase(world: World, query: Query) -> str:
    """Write a query as a question."""
    nouns = _noun(world, query[2]) if query[0] != "entity" else ""
    if query[0] == "count":
        return _COUNTS[query[1]].format(nouns)
    if is_number(query):
        return _NUMBERS[query[1]].format(nouns)
    who = "Who" if world.kinds[answer(world, query)] == "person" else "What"
    return f"{who} is {_noun(world, query)}?"


def _noun(world: World, query: Query) -> str:
    if query[0] == "entity":
        kind, title = world.kinds[_entity(world, query[1])], query[1]
        if kind == "work":
            return f'"{title}"'
        return f"the {title}" if kind in ("river", "institution", "event") else title
    sides = [_noun(world, side) for side in query[2:]]
    if query[0] == "of":
        return _NOUNS[query[1]].format(*sides)
    return _COMPARED[query[1]][query[0] == "greatest"].format(*sides)
