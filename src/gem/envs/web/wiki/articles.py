"""The articles of a world: readable text with links, written from its facts.

In the text, ``[[Title]]`` is a link. A fact is stated in the article of its subject, and often in that of its object as
well; each list of an article is complete.

>>> articles = Articles(0)
>>> town = articles.world.titles[articles.world.links["capital"][0]]
>>> page = articles.get_page(town.upper())
>>> page.title == town, page.links[0] == articles.world.titles[0]
(True, True)
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any

from gem.envs.web.wiki.generate import build_world
from gem.envs.web.wiki.pages import BaseWikiTrawler, WikiPage, title_key
from gem.envs.web.wiki.world import TEST, TRAIN, World
from gem.errors import BadValue
from gem.seeding import stream

_LINK = re.compile(r"\[\[(.+?)\]\]")
_TRADE = ("salt", "wool", "timber", "glass", "amber", "wine", "rope", "copper", "paper", "linen", "clocks", "slate")
_SIGHT = (
    "an old covered market",
    "a leaning bell tower",
    "its long stone bridge",
    "a garden of rare trees",
    "the ruins of a fortress",
    "a harbour clock that has never been right",
    "its painted houses",
)
_LANDSCAPE = (
    "wide meadows and chalk hills",
    "dark forests and many lakes",
    "stony heaths",
    "terraces of vines",
    "marshes and low dykes",
    "steep valleys",
)
_MANNER = (
    "Contemporaries praised the patience of the work",
    "Few letters of that time survive",
    "Later writers disagree about the details",
    "The records of those years are incomplete",
    "Several portraits are known",
)
_RECEPTION = (
    "It was admired at once and soon imitated",
    "It was forgotten for a century and then rediscovered",
    "Critics were divided about the last part",
    "It was paid for by a merchant who never collected it",
    "The first version was burned by its author",
)
_OUTCOME = (
    "The losses were heavy",
    "Trade took a decade to recover",
    "It was remembered in many songs",
    "Chroniclers give three different accounts of it",
    "Its anniversary was kept for a century",
)


class Articles(BaseWikiTrawler):
    """The pages of one world of our own. An article is written when it is read, and kept.

    Args:
        world: number of the world. gem uses 0 to 7 for training, and 8 and 9 for testing.

    Raises:
        BadValue: the number is negative.
    """

    def __init__(self, world: int = 0) -> None:
        super().__init__(url=f"gem:encyclopedia/{world}", query_delay_ms=0, query_use_cache=True)
        self.world = build_world(world)
        titles, aliases = self.world.titles, self.world.aliases
        self._numbers = {title_key(title): entity for entity, title in enumerate(titles)}
        self._numbers |= {title_key(alias): entity for entity, alias in aliases.items()}

    def entity(self, title: str) -> int | None:
        """Return the number of the entity with a title or alias, or None."""
        return self._numbers.get(title_key(title))

    def read_page(self, title: str) -> WikiPage | None:
        entity = self.entity(title)
        return None if entity is None else read_markup(self.world.titles[entity], article(self.world, entity))

    def random(self, rng: random.Random | None = None) -> str:
        return (rng or random.Random()).choice(self.world.titles)

    @property
    def graph(self) -> Mapping[str, tuple[str, ...]]:  # type: ignore[override]
        """Title → titles of the linked pages, after redirects, for all pages."""
        return self._measured[0]

    @property
    def most_links(self) -> int:
        """The greatest number of links of a page."""
        return self._measured[1]

    @cached_property
    def _measured(self) -> tuple[Mapping[str, tuple[str, ...]], int]:
        titles, graph, most = self.world.titles, {}, 0
        for entity, title in enumerate(titles):
            links = read_markup(title, article(self.world, entity)).links
            most = max(most, len(links))
            graph[title] = tuple(dict.fromkeys(titles[self._numbers[title_key(link)]] for link in links))
        return graph, most

    @cached_property
    def linked_from(self) -> Mapping[str, tuple[str, ...]]:
        """Title → titles of the pages that link to it, for all pages."""
        found: dict[str, list[str]] = {title: [] for title in self.graph}
        for title, links in self.graph.items():
            for link in links:
                found[link].append(title)
        return {title: tuple(others) for title, others in found.items()}

    def pages(self) -> Mapping[str, WikiPage]:
        """Return all pages by title."""
        return _Pages(self)


class _Pages(Mapping[str, WikiPage]):
    def __init__(self, articles: Articles) -> None:
        self._articles = articles

    def __getitem__(self, title: str) -> WikiPage:
        if (page := self._articles.get_page(title)) is None:
            raise KeyError(title)
        return page

    def __iter__(self) -> Any:
        return iter(self._articles.world.titles)

    def __len__(self) -> int:
        return len(self._articles.world.titles)


@lru_cache(maxsize=16)
def encyclopedia(world: int = 0) -> Articles:
    """Return the pages of a world, which all environments in this process share."""
    return Articles(world)


def worlds_of(split: str) -> range:
    """Return the numbers of the worlds of a split. Raises BadValue unless it is "train" or "test"."""
    if split not in ("train", "test"):
        raise BadValue(f"split must be 'train' or 'test', got {split!r}")
    return TRAIN if split == "train" else TEST


def read_markup(title: str, markup: str) -> WikiPage:
    """Return the page with a text in which links are written as ``[[Title]]``."""
    links = dict.fromkeys(_LINK.findall(markup))
    links.pop(title, None)
    return WikiPage(title, _LINK.sub(r"\1", markup), tuple(links))


def article(world: World, entity: int) -> str:
    """Return the article on an entity, with links."""
    write = _Writer(world, entity)
    sentences: Callable[[int], Iterable[str]] = getattr(write, world.kinds[entity])
    return " ".join(sentences(entity))


class _Writer:
    """Writes the article on one entity. Each kind of entity has a method that yields sentences."""

    def __init__(self, world: World, entity: int) -> None:
        self.world, self.rng = world, stream("encyclopedia", world.number, "article", entity)

    def _to(self, entity: int) -> str:
        return f"[[{self.world.titles[entity]}]]"

    def _by_alias(self, entity: int) -> str:
        """Return a link that uses the other title of the entity, if it has one."""
        return f"[[{self.world.aliases.get(entity, self.world.titles[entity])}]]"

    def _list(self, relation: str, entity: int, year: str | None = None) -> str:
        """Return links to all that have a relation to an entity, with their years; empty if nothing has."""
        found = self.world.those(relation, entity)
        dates = self.world.numbers[year] if year else {}
        return _joined([self._to(e) + (f" ({dates[e]})" if e in dates else "") for e in found])

    def region(self, e: int) -> Iterable[str]:
        world, name = self.world, self.world.titles[e]
        yield f"{name} is a country whose capital is {self._to(world.links['capital'][e])}."
        yield f"It borders on {_joined([self._to(other) for other in world.neighbours(e)])}."
        coast, inland = self.rng.sample(_LANDSCAPE, 2)
        yield f"Travellers describe {coast}, and {inland} further inland."
        members = world.those("region", e)
        for kind, what in (("river", "rivers"), ("mountain", "mountains"), ("town", "towns")):
            yield f"Its {what} are {_joined([self._to(m) for m in members if world.kinds[m] == kind])}."

    def town(self, e: int) -> Iterable[str]:
        world, name = self.world, self.world.titles[e]
        links, numbers = world.links, world.numbers
        yield f"{name} is a town in {self._to(links['region'][e])}, on the {self._to(links['river'][e])}."
        former = f" under the name of {world.aliases[e]}" if e in world.aliases else ""
        yield f"It was founded in {numbers['founded'][e]}{former} and has {numbers['population'][e]:,} inhabitants."
        yield f"The town is known for {self.rng.choice(_TRADE)} and for {self.rng.choice(_SIGHT)}."
        if e in links["twin"]:
            yield f"Its twin town is {self._to(links['twin'][e])}."
        if found := [other for other in world.those("place", e) if world.kinds[other] == "institution"]:
            yield f"It is the seat of {_joined([self._to(other) for other in found])}."
        if found := [other for other in world.those("place", e) if world.kinds[other] == "event"]:
            dated = [f"{self._to(other)} ({numbers['year'][other]})" for other in found]
            yield f"Its history includes {_joined(dated)}."
        if natives := self._list("birthplace", e):
            yield f"The people born in {name} are {natives}."
        yield from self._scenes(e)

    def river(self, e: int) -> Iterable[str]:
        links, name = self.world.links, self.world.titles[e]
        yield f"The {name} is a river in {self._to(links['region'][e])}, {self.world.numbers['length'][e]} km long."
        yield f"It rises on {self._to(links['source'][e])} and crosses {self.rng.choice(_LANDSCAPE)}."
        if towns := self._list("river", e):
            yield f"The towns on its banks are {towns}."
        yield from self._scenes(e)

    def mountain(self, e: int) -> Iterable[str]:
        links, numbers, name = self.world.links, self.world.numbers, self.world.titles[e]
        yield f"{name} is a mountain in {self._to(links['region'][e])}, {numbers['height'][e]:,} m high."
        yield f"It was first climbed by {self._to(links['climber'][e])} in {numbers['climbed'][e]}."
        yield f"From the top one sees {self.rng.choice(_LANDSCAPE)}."
        if rivers := self._list("source", e):
            yield f"The rivers that rise on it are {rivers}."
        yield from self._scenes(e)

    def person(self, e: int) -> Iterable[str]:
        world, name = self.world, self.world.titles[e]
        links, numbers = world.links, world.numbers
        family, life = name.split()[-1], f"{numbers['born'][e]}-{numbers['died'][e]}"
        sort = _with_article(world.sorts[e])
        yield f"{name} ({life}) was {sort}, born in {self._to(links['birthplace'][e])}."
        if e in links["school"]:
            yield f"{family} went to the {self._to(links['school'][e])}."
        if e in links["teacher"]:
            yield f"{family} was a pupil of {self._to(links['teacher'][e])}."
        yield f"{self.rng.choice(_MANNER)}."
        for relation, year, form in (
            ("author", "year", "Works: {}."),
            ("teacher", "born", "Pupils: {}."),
            ("founder", "founded", f"{family} founded {{}}."),
            ("leader", "year", f"{family} took the lead in {{}}."),
            ("climber", "climbed", f"{family} was the first to climb {{}}."),
        ):
            if found := self._list(relation, e, None if relation == "teacher" else year):
                yield form.format(found)

    def institution(self, e: int) -> Iterable[str]:
        world, name = self.world, self.world.titles[e]
        links = world.links
        sort = _with_article(world.sorts[e])
        yield f"The {name} is {sort} in {self._to(links['place'][e])}."
        yield f"It was founded by {self._to(links['founder'][e])} in {world.numbers['founded'][e]}."
        yield f"Visitors are shown {self.rng.choice(_SIGHT)} nearby. {self.rng.choice(_MANNER)}."
        if pupils := self._list("school", e):
            yield f"Its students were {pupils}."

    def work(self, e: int) -> Iterable[str]:
        world, name = self.world, self.world.titles[e]
        sort = _with_article(world.sorts[e])
        yield f"{name} is {sort} by {self._to(world.links['author'][e])}, completed in {world.numbers['year'][e]}."
        yield f"Its setting is {self._by_alias(world.links['setting'][e])}."
        yield f"{self.rng.choice(_RECEPTION)}. {self.rng.choice(_MANNER)}."

    def event(self, e: int) -> Iterable[str]:
        world, name = self.world, self.world.titles[e]
        sort = _with_article(world.sorts[e])
        yield f"The {name} was {sort} at {self._by_alias(world.links['place'][e])} in {world.numbers['year'][e]}."
        yield f"{self._to(world.links['leader'][e])} took the lead."
        yield f"{self.rng.choice(_OUTCOME)}. {self.rng.choice(_MANNER)}."

    def _scenes(self, e: int) -> Iterable[str]:
        if works := self._list("setting", e, "year"):
            yield f"Works set there: {works}."


def _with_article(noun: str) -> str:
    """Put "a" or "an" before a noun.

    >>> _with_article("opera"), _with_article("university")
    ('an opera', 'a university')
    """
    return f"{'an' if noun[0] in 'aeiou' and not noun.startswith('uni') else 'a'} {noun}"


def _joined(parts: list[str]) -> str:
    """Join parts with commas and "and".

    >>> _joined(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
