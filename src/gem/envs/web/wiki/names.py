"""Invented names. Each region has its own sounds, so that a name tells where a person or a place comes from."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field


def _words(text: str) -> list[str]:
    return text.split()


_STARTS = _words("b br c ch d dr f fl g gl h j k kl l m n p pr qu r s sh sk st t th tr v w y z")
_VOWELS = _words("a e i o u ae ai ea ei ia io ou")
_ENDS = ["", "", "l", "m", "n", "nd", "r", "rk", "rn", "s", "sk", "st", "t", "th", "x"]
_PLACE_ENDINGS = _words("mor by ost holm ane eth ford wick una ossa grad ley")
_FAMILY_ENDINGS = _words("ano en ski dal ero ich ault ond erra ius ax ing")
_ADJECTIVES = _words(
    "Amber Bitter Borrowed Broken Burning Crimson Distant Drowned Empty Faithful First Forgotten Frozen Gilded Glass "
    "Hidden Hollow Iron Last Lonely Long Lost Midnight Paper Patient Quiet Restless Sacred Salt Scarlet Second Silent "
    "Silver Sleeping Stolen Velvet Wandering White Winter Wooden"
)
_NOUNS = _words(
    "Anchor Bell Bridge Candle Cathedral Chorus Clockmaker Comet Courtyard Crown Daughter Door Feast Ferryman Garden "
    "Gate Harbour Harvest Heron Inheritance Island Journey Key Lantern Letter Library Map Mirror Mountain Nightingale "
    "Oath Orchard Organist Pilgrim Portrait Promise Queen Road Season Shepherd Shore Song Staircase Stranger Summer "
    "Tide Tower Traveller Vineyard Voyage Well Window"
)


@dataclass
class Names:
    """The names of one world, none of which is given twice, whatever the case.

    Args:
        rng: the stream from which names are drawn.
    """

    rng: random.Random
    taken: set[str] = field(default_factory=set)

    def new(self, first: str | None, form: str, draw: Callable[[], str]) -> str:
        """Return ``first`` if it is a name that is not taken, otherwise the first such ``form % draw()``."""
        name = first
        while name is None or name.casefold() in self.taken:
            name = form % draw()
        self.taken.add(name.casefold())
        return name

    def title_of_work(self) -> str:
        """Return a title such as "The Silent Orchard"."""
        first, second = self.rng.sample(_ADJECTIVES, 2)
        one, other = self.rng.sample(_NOUNS, 2)
        article = "An" if first[0] in "AEIOU" else "A"
        forms = (
            f"The {first} {one}",
            f"{first} {one}",
            f"The {one} of the {second} {other}",
            f"{article} {first} {one}",
        )
        return self.rng.choice(forms)


class Sounds:
    """The sounds of a region, and the names made of them.

    Args:
        rng: the stream from which the sounds and the names are drawn.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._starts, self._vowels = rng.sample(_STARTS, 9), [*rng.sample(_VOWELS[:5], 3), rng.choice(_VOWELS[5:])]
        self._ends = rng.sample(_ENDS, 5)
        self._town_endings, self._family_endings = rng.sample(_PLACE_ENDINGS, 2), rng.sample(_FAMILY_ENDINGS, 2)

    def _syllables(self, count: int) -> str:
        choice = self.rng.choice
        parts = [choice(self._starts) + choice(self._vowels) for _ in range(count)]
        return "".join(parts) + choice(self._ends)

    def word(self) -> str:
        return self._syllables(2).capitalize()

    def place(self) -> str:
        return (self._syllables(self.rng.choice((1, 2))) + self.rng.choice(self._town_endings)).capitalize()

    def given(self) -> str:
        return (self._syllables(1) + self.rng.choice("aeio")).capitalize()

    def family(self) -> str:
        return (self._syllables(self.rng.choice((1, 2))) + self.rng.choice(self._family_endings)).capitalize()

    def person(self) -> str:
        return f"{self.given()} {self.family()}"
