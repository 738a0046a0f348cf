"""Draw the facts of a world from a seed.

>>> world = build_world(0)
>>> len(world.titles), world.kinds[world.links["capital"][0]]
(2200, 'town')
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from gem._internal.counts import check_count
from gem.envs.web.wiki.names import Names, Sounds
from gem.envs.web.wiki.world import ARTS, COUNTS, EVENTS, FIRST_YEAR, INSTITUTIONS, LAST_YEAR, TRADES, World
from gem.seeding import stream

MAX_WEIGHT = 30.0  # of a town in births and of an artist in works, relative to the smallest


@lru_cache(maxsize=16)
def build_world(number: int) -> World:
    """Return a world. It is built on first use, in a fraction of a second, and kept.

    Raises:
        BadValue: the number is negative.
    """
    check_count("world", number, 0)
    return _Builder(number).world


class _Builder:
    def __init__(self, number: int) -> None:
        self.rng = stream("encyclopedia", number)
        self.world, self.names = World(number), Names(self.rng)
        self.sounds = [Sounds(self.rng) for _ in range(COUNTS["region"])]
        self._draw_places()
        self._draw_people()
        self._draw_institutions()
        self._draw_schools()
        self._draw_works()
        self._draw_events()
        self._draw_climbs()

    def _name(self, entity: int, first: str | None, form: str, draw: Callable[[], str]) -> None:
        """Name an entity ``first`` if that name is free, otherwise by filling the form with a drawn word."""
        self.world.titles[entity] = self.names.new(first, form, draw)

    def _members(self, kind: str, region: int) -> list[int]:
        """Return the entities of a kind that lie in a region: equally many in each."""
        everything = self.world.of_kind(kind)
        return [entity for entity in everything if (entity - everything.start) % COUNTS["region"] == region]

    def _draw_places(self) -> None:
        world, rng = self.world, self.rng
        for region, sounds in enumerate(self.sounds):
            self._name(region, None, "%s", sounds.word)
            towns, rivers, mountains = (self._members(kind, region) for kind in ("town", "river", "mountain"))
            for entity in (*towns, *rivers, *mountains):
                world.links["region"][entity] = region
            for mountain in mountains:
                self._name(mountain, None, "Mount %s", sounds.word)
                world.numbers["height"][mountain] = rng.randint(640, 5400)
            for river in rivers:
                self._name(river, None, "River %s", sounds.word)
                world.numbers["length"][river] = rng.randint(38, 1900)
                world.links["source"][river] = rng.choice(mountains)
            weights = [rng.expovariate(1.0) for _ in rivers]
            for town in towns:
                self._town(town, sounds, rng.choices(rivers, weights)[0])
            world.links["capital"][region] = rng.choice(towns)
        for town in rng.sample(world.of_kind("town"), 150):
            world.links["twin"][town] = rng.choice(world.of_kind("town"))
        world.links["twin"] = {town: twin for town, twin in world.links["twin"].items() if town != twin}

    def _town(self, town: int, sounds: Sounds, river: int) -> None:
        world, rng = self.world, self.rng
        self._name(town, None, "%s", sounds.place)
        world.links["river"][town] = river
        world.numbers["founded"][town] = rng.randint(510, FIRST_YEAR - 1)
        world.numbers["population"][town] = rng.randint(8, 900) * 100 + rng.randrange(100)
        if rng.random() < 0.3:
            world.aliases[town] = self.names.new(None, "%s", sounds.place)

    def _draw_people(self) -> None:
        world, rng = self.world, self.rng
        towns = world.of_kind("town")
        weights = [min(rng.paretovariate(1.2), MAX_WEIGHT) for _ in towns]
        for person in world.of_kind("person"):
            town = rng.choices(towns, weights)[0]
            self._name(person, None, "%s", self.sounds[world.links["region"][town]].person)
            world.links["birthplace"][person] = town
            world.numbers["born"][person] = born = rng.randint(FIRST_YEAR, LAST_YEAR - 80)
            world.numbers["died"][person] = born + rng.randint(38, 88)
            world.sorts[person] = rng.choice([*ARTS] * 2 + [*TRADES])
        people = list(world.of_kind("person"))
        for person in people:
            born = world.numbers["born"][person]
            older = [
                other
                for other in rng.sample(people, 60)
                if born - world.numbers["born"][other] >= 18 and world.numbers["died"][other] >= born + 16
            ]
            near = [other for other in older if world.region_of(other) == world.region_of(person)]
            if older:
                world.links["teacher"][person] = rng.choice(near if near and rng.random() < 0.7 else older)

    def _adult(self, year_from: int = FIRST_YEAR, near: int | None = None) -> tuple[int, int]:
        """Draw a person and a year in which the person was at least 24; of the region of ``near`` in most cases."""
        world, rng = self.world, self.rng
        while True:
            person = rng.choice(world.of_kind("person"))
            if near is not None and rng.random() < 0.9 and world.region_of(person) != world.region_of(near):
                continue
            first = max(world.numbers["born"][person] + 24, year_from)
            if first <= world.numbers["died"][person]:
                return person, rng.randint(first, world.numbers["died"][person])

    def _draw_institutions(self) -> None:
        world, rng = self.world, self.rng
        for entity in world.of_kind("institution"):
            town = rng.choice(world.of_kind("town"))
            sort = world.sorts[entity] = rng.choice(INSTITUTIONS)
            founder, year = self._adult(near=town)
            world.links["place"][entity], world.links["founder"][entity] = town, founder
            world.numbers["founded"][entity] = year
            named_for = f"{world.titles[founder].split()[-1]} {sort.capitalize()}" if rng.random() < 0.5 else None
            self._name(entity, named_for, f"{sort.capitalize()} of Saint %s", self.sounds[world.region_of(town)].word)

    def _draw_schools(self) -> None:
        world, rng = self.world, self.rng
        schools = [e for e in world.of_kind("institution") if world.sorts[e] in ("university", "academy")]
        for person in world.of_kind("person"):
            born = world.numbers["born"][person]
            open_then = [e for e in schools if world.numbers["founded"][e] < born + 16]
            if open_then and rng.random() < 0.6:
                world.links["school"][person] = rng.choice(open_then)

    def _draw_works(self) -> None:
        world, rng = self.world, self.rng
        artists = [person for person in world.of_kind("person") if world.sorts[person] in ARTS]
        weights = [min(rng.paretovariate(1.2), MAX_WEIGHT) for _ in artists]
        places = [*world.of_kind("town"), *world.of_kind("river"), *world.of_kind("mountain")]
        for work in world.of_kind("work"):
            author = rng.choices(artists, weights)[0]
            self._name(work, None, "%s", self.names.title_of_work)
            world.sorts[work] = rng.choice(ARTS[world.sorts[author]])
            world.links["author"][work] = author
            world.links["setting"][work] = rng.choice(places)
            world.numbers["year"][work] = rng.randint(world.numbers["born"][author] + 19, world.numbers["died"][author])

    def _draw_events(self) -> None:
        world, rng = self.world, self.rng
        for event in world.of_kind("event"):
            town = rng.choice(world.of_kind("town"))
            leader, year = self._adult(near=town)
            sort = world.sorts[event] = rng.choice(EVENTS)
            world.links["place"][event], world.links["leader"][event] = town, leader
            world.numbers["year"][event] = year
            named_for = f"{sort.title()} of {world.titles[town]}" if rng.random() < 0.4 else None
            self._name(event, named_for, f"{sort.title()} of %s", self.sounds[world.region_of(town)].word)

    def _draw_climbs(self) -> None:
        world = self.world
        for mountain in world.of_kind("mountain"):
            world.links["climber"][mountain], world.numbers["climbed"][mountain] = self._adult(near=mountain)
