"""The facts of an invented world: places, people, works and events, and how they are related.

A fact is a relation between an entity and another entity, or between an entity and a number. Every relation is a
function: a person has one birthplace, a river one source. Articles (articles.py) and questions (questions.py) are
written from these facts alone, so they agree. generate.py draws the facts.
"""

from __future__ import annotations

from gem.errors import BadValue

TRAIN, TEST = range(8), range(8, 10)  # seeds of the worlds for training and for testing
FIRST_YEAR, LAST_YEAR = 1400, 1900

# Number of entities of each kind. They are numbered in this order.
COUNTS = {
    "region": 12,
    "town": 300,
    "river": 48,
    "mountain": 80,
    "person": 800,
    "institution": 160,
    "work": 600,
    "event": 200,
}

# Relations to an entity, and relations to a number, with the kinds that have them.
LINKS = {
    "capital": ("region",),
    "region": ("town", "river", "mountain"),
    "river": ("town",),
    "twin": ("town",),
    "source": ("river",),
    "climber": ("mountain",),
    "birthplace": ("person",),
    "teacher": ("person",),
    "school": ("person",),
    "place": ("institution", "event"),
    "founder": ("institution",),
    "author": ("work",),
    "setting": ("work",),
    "leader": ("event",),
}
NUMBERS = {
    "founded": ("town", "institution"),
    "population": ("town",),
    "length": ("river",),
    "height": ("mountain",),
    "climbed": ("mountain",),
    "born": ("person",),
    "died": ("person",),
    "year": ("work", "event"),
}
ARTS = {
    "painter": ("painting", "fresco", "altarpiece"),
    "novelist": ("novel", "novella"),
    "composer": ("opera", "symphony", "ballet"),
    "poet": ("poem", "collection of poems"),
    "sculptor": ("statue", "monument"),
}
TRADES = ("merchant", "general", "physician", "astronomer", "explorer", "engineer", "bishop", "magistrate")
EVENTS = ("battle", "siege", "treaty", "great fire", "flood", "rising", "congress")
INSTITUTIONS = ("university", "academy", "museum", "observatory", "theatre", "library")


class World:
    """The facts of a world.

    Attributes:
        number: the seed of the world.
        kinds: kind of each entity, a key of COUNTS.
        sorts: what an entity is, in a word or two, such as "novel" or "battle".
        titles: title of each entity; no two are equal, whatever the case.
        aliases: other title of an entity, for those that have one.
        links: relation → entity → entity.
        numbers: relation → entity → number.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.kinds = [kind for kind, count in COUNTS.items() for _ in range(count)]
        self.sorts = list(self.kinds)
        self.titles = [""] * len(self.kinds)
        self.aliases: dict[int, str] = {}
        self.links: dict[str, dict[int, int]] = {name: {} for name in LINKS}
        self.numbers: dict[str, dict[int, int]] = {name: {} for name in NUMBERS}
        self._inverse: dict[str, dict[int, list[int]]] = {}

    def of_kind(self, kind: str) -> range:
        start = 0
        for name, count in COUNTS.items():
            if name == kind:
                return range(start, start + count)
            start += count
        raise BadValue(f"kind must be one of {', '.join(COUNTS)}, got {kind!r}")

    def those(self, relation: str, entity: int) -> list[int]:
        """Return the entities that have this relation to an entity, such as the people born in a town."""
        if relation not in self._inverse:
            found: dict[int, list[int]] = {}
            for subject, other in self.links[relation].items():
                found.setdefault(other, []).append(subject)
            self._inverse[relation] = found
        return self._inverse[relation].get(entity, [])

    def neighbours(self, region: int) -> list[int]:
        """Return the two regions that border on a region. The regions lie in a ring."""
        count = COUNTS["region"]
        return [(region - 1) % count, (region + 1) % count]

    def region_of(self, entity: int) -> int:
        """Return the region to which an entity belongs by its place, birthplace or author."""
        for relation in ("region", "birthplace", "place", "author"):
            if entity in self.links[relation]:
                return self.region_of(self.links[relation][entity])
        return entity
