"""Types of values of facts: numbers, years, pairs of words, invented names and other entities."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Protocol


@dataclass
class Entity:
    """An entity of the world.

    kind: key of facts_kinds.KINDS. name: as in a sentence, "the river Orvel". bare: its shortest form. year: of birth
    or creation. facts: values by name of the fact. sources: the values that are entities.
    """

    kind: str
    name: str
    bare: str
    trade: str = ""
    year: int = 0
    facts: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Entity] = field(default_factory=dict)

    @property
    def title(self) -> str:
        title = self.name.removeprefix("the ")
        return title[0].upper() + title[1:]

    @property
    def answers(self) -> list[str]:
        """Accepted names; the form used in sentences comes first."""
        return list(dict.fromkeys([self.name.removeprefix("the "), self.bare, self.surname]))

    @property
    def surname(self) -> str:
        return self.bare.split()[-1] if self.kind == "person" else self.bare

    @property
    def pronouns(self) -> tuple[str, str]:
        return ("she", "her") if len(self.bare) % 2 else ("he", "his")  # arbitrary


class World(Protocol):
    rng: random.Random

    def deal(self, group: str) -> Entity:
        """Return an entity of a kind or trade. Each is returned once before one is returned again."""

    def made_between(self, group: str, first: int, last: int) -> Entity | None:
        """Return an entity whose year is between first and last, or None."""

    def invent(self, endings: tuple[str, ...]) -> str:
        """Return a unique name."""


class Value(Protocol):
    def draw(self, world: World, entity: Entity) -> str | Entity | None:
        """Return a value, or None where the entity has none."""

    def accepted(self, text: str) -> list[str]:
        """Return all accepted answers, starting with the text itself."""


@dataclass(frozen=True)
class Number:
    """An integer from low to high. unit: what is counted, and abbreviations."""

    low: int
    high: int
    unit: tuple[str, ...]

    def draw(self, world: World, entity: Entity) -> str:
        return f"{world.rng.randint(self.low, self.high):,}"

    def accepted(self, text: str) -> list[str]:
        return [text, *(f"{text} {unit}" for unit in self.unit)]


@dataclass(frozen=True)
class Year:
    """A year from low to high, relative to the year of the entity in the fact ``maker`` where given."""

    low: int
    high: int
    maker: str = ""

    def draw(self, world: World, entity: Entity) -> str:
        start = entity.sources[self.maker].year if self.maker else 0
        entity.year = start + world.rng.randint(self.low, self.high)
        return str(entity.year)

    def accepted(self, text: str) -> list[str]:
        return [text, f"year {text}", f"in {text}", f"in the year {text}"]


@dataclass(frozen=True)
class Pair:
    """One word of each list, such as "silver otter"."""

    first: tuple[str, ...]
    second: tuple[str, ...]

    def draw(self, world: World, entity: Entity) -> str:
        return f"{world.rng.choice(self.first)} {world.rng.choice(self.second)}"

    def accepted(self, text: str) -> list[str]:
        return [text]


@dataclass(frozen=True)
class Invented:
    """An invented name without a passage of its own. form: template around it."""

    form: str = "{}"
    endings: tuple[str, ...] = ("el", "ash", "une", "ovar")

    def draw(self, world: World, entity: Entity) -> str:
        return self.form.format(world.invent(self.endings))

    def accepted(self, text: str) -> list[str]:
        before, after = self.form.split("{}")
        bare = text.removeprefix(before).removesuffix(after)
        return list(dict.fromkeys([text.removeprefix("the "), bare]))


@dataclass(frozen=True)
class Link:
    """Another entity, of a kind or of a trade."""

    group: str

    def draw(self, world: World, entity: Entity) -> Entity | None:
        return world.deal(self.group)

    def accepted(self, text: str) -> list[str]:
        raise NotImplementedError("an entity knows its own names")


@dataclass(frozen=True)
class Earlier(Link):
    """Another entity that is older than this one."""

    def draw(self, world: World, entity: Entity) -> Entity | None:
        return world.made_between(self.group, 0, entity.year - 1)


@dataclass(frozen=True)
class Teacher(Link):
    """A person of the same trade, 18 to 60 years older."""

    group: str = "person"

    def draw(self, world: World, entity: Entity) -> Entity | None:
        return world.made_between(entity.trade, entity.year - 60, entity.year - 18)
