"""What a fact of the invented world can be: a number, a year, something of two words, a name, another entity."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Protocol


@dataclass
class Entity:
    """kind: of the tables in facts_kinds. name: as in a sentence, "the river Orvel". bare: the shortest form of it.

    year: of birth or of making. facts: the values by the names of the facts. sources: the entities among them.
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
        """What names it, the name as in a sentence first."""
        return list(dict.fromkeys([self.name.removeprefix("the "), self.bare, self.surname]))

    @property
    def surname(self) -> str:
        return self.bare.split()[-1] if self.kind == "person" else self.bare

    @property
    def pronouns(self) -> tuple[str, str]:
        return ("she", "her") if len(self.bare) % 2 else ("he", "his")  # no fact depends on it


class World(Protocol):
    rng: random.Random

    def deal(self, group: str) -> Entity:
        """An entity of a kind or trade; all of them have their turn before one comes again."""

    def made_between(self, group: str, first: int, last: int) -> Entity | None:
        """An entity whose year is first to last, None where there is none."""

    def invent(self, endings: tuple[str, ...]) -> str:
        """A name that nothing else has."""


class Value(Protocol):
    def draw(self, world: World, entity: Entity) -> str | Entity | None:
        """The value, None where the entity has none."""

    def accepted(self, text: str) -> list[str]:
        """The answers that say the same as the text, which comes first."""


@dataclass(frozen=True)
class Number:
    """From low to high; unit: what is counted, and shorter words for it."""

    low: int
    high: int
    unit: tuple[str, ...]

    def draw(self, world: World, entity: Entity) -> str:
        return f"{world.rng.randint(self.low, self.high):,}"

    def accepted(self, text: str) -> list[str]:
        return [text, *(f"{text} {unit}" for unit in self.unit)]


@dataclass(frozen=True)
class Year:
    """Between two years, counted from that of the maker where there is one: ``maker`` names the fact."""

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
    """One word of each list: "silver otter"."""

    first: tuple[str, ...]
    second: tuple[str, ...]

    def draw(self, world: World, entity: Entity) -> str:
        return f"{world.rng.choice(self.first)} {world.rng.choice(self.second)}"

    def accepted(self, text: str) -> list[str]:
        return [text]


@dataclass(frozen=True)
class Invented:
    """A name that has no article of its own; form: around it."""

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
    """Another entity that was there before this one was made."""

    def draw(self, world: World, entity: Entity) -> Entity | None:
        return world.made_between(self.group, 0, entity.year - 1)


@dataclass(frozen=True)
class Teacher(Link):
    """Somebody of the same trade, 18 to 60 years older."""

    group: str = "person"

    def draw(self, world: World, entity: Entity) -> Entity | None:
        return world.made_between(entity.trade, entity.year - 60, entity.year - 18)
