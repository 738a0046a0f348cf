"""What words of an answer mean: phrases such as "no solution" and "all real numbers", dates, days and names."""

from __future__ import annotations

from fractions import Fraction

from gem.graders.math.lexer import words as word_set
from gem.graders.math.tree import (
    EMPTY,
    INFINITY,
    MINUS_INFINITY,
    ONE,
    REALS,
    TWO,
    ZERO,
    Interval,
    Num,
    Op,
    Phrase,
    Relation,
    Sym,
    Tree,
)

_FILLING = word_set(
    "the a an there are is it of that this all any every numbers number values value such set exist exists on be "
    "has have equation system answer limit n x y can have for"
)
_MEANINGS: dict[str, Tree] = {
    phrase: tree
    for tree, phrases in (
        (
            EMPTY,
            "no solution/no solutions/no real solution/no real solutions/no roots/no real roots/empty/none/no such",
        ),
        (EMPTY, "no such exists/no integer solutions"),
        (REALS, "real/reals/real x"),
        (Interval(ZERO, INFINITY, (True, False)), "nonnegative real/non negative real"),
        (Interval(ZERO, INFINITY, (False, False)), "positive real"),
        (Interval(MINUS_INFINITY, ZERO, (False, False)), "negative real"),
        (Op("minus", (REALS, Op("set", (ZERO,)))), "nonzero real/non zero real"),
        (
            INFINITY,
            "infinity/positive infinity/infinite/infinitely many/infinitely many solutions/diverges to infinity",
        ),
        (MINUS_INFINITY, "negative infinity/minus infinity/diverges to negative infinity"),
        (Phrase(("dne",)), "does not/doesn't/dne/doesnt/not"),
        (Op("mod", (Relation((Sym("ℤ"), ZERO), ("≡",)), TWO)), "even/even integers/even integer/even natural"),
        (Op("mod", (Relation((Sym("ℤ"), ONE), ("≡",)), TWO)), "odd/odd integers/odd integer"),
        (Op("clock", (Num(Fraction(12 * 3600)),)), "noon/12 noon"),
        (Op("clock", (ZERO,)), "midnight/12 midnight"),
        (Sym("ℤ"), "integers/integer"),
        (Sym("ℤ+"), "positive integers/natural"),
        (Phrase(("cannot determined",)), "cannot be determined/can't be determined"),
    )
    for phrase in phrases.split("/")
}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_SAME = {"converges": "convergent", "diverges": "divergent", "t": "true", "f": "false"}


def meaning(phrase: Phrase) -> Tree:
    """Return what a phrase stands for, or the phrase in lower case without words that say nothing."""
    words = [_plain(part) for part in phrase.parts]
    texts = [word for word in words if isinstance(word, str)]
    if len(texts) == len(words):
        kept = [word for word in texts if word not in _FILLING]
        if "," not in texts and (found := _MEANINGS.get(" ".join(word for word in kept if word != "-"))) is not None:
            return found
        if kept == ["no"] and {"exist", "exists"} & set(texts):
            return EMPTY
        if len(texts) == 1:
            return Phrase((_day(texts[0]),))
        silent = ("the", "a", "an", "on", "it", ".", *(() if any(map(str.isdecimal, texts)) else "-"))
        texts = [_SAME.get(word, word) for word in texts if word not in silent]
        return Phrase(tuple(texts[::-1] if len(texts) == 2 and texts[0].endswith("ly") else texts))
    trees = [part for part in words if not isinstance(part, str)]
    if texts == ["noon"] and trees == [Num(Fraction(12))]:
        return _MEANINGS["noon"]
    kept = [word for word in texts if word not in _FILLING]
    if len(trees) == 1 and (kept in (["multiples"], ["divisible", "by"], ["multiple"], ["positive", "multiples"])):
        return Op("mod", (Relation((Sym("ℤ"), ZERO), ("≡",)), trees[0]))
    if {"diverges", "tends", "infinity"} & set(texts) and trees in ([INFINITY], [MINUS_INFINITY]):
        return MINUS_INFINITY if {"negative", "minus"} & set(texts) else trees[0]
    return Phrase(tuple(words))


def _plain(part: str | Tree) -> str | Tree:
    """Return a word in lower case, and a letter as a word."""
    if isinstance(part, str):
        return part.casefold()
    return part.name if isinstance(part, Sym) and len(part.name) == 1 and part.name.isalpha() else part


def _day(word: str) -> str:
    days = (name for name in _DAYS if name.startswith(word) and len(word) >= 3)
    return next(days, _SAME.get(word, word))


def date_of(phrase: Phrase) -> tuple[int, ...] | None:
    """Return (month, day) or (month, day, year) of a date; None for other phrases."""
    month, numbers = 0, list[int]()
    for part in phrase.parts:
        if isinstance(part, str):
            word = part.casefold().rstrip(".")
            found = [i for i, name in enumerate(MONTHS, 1) if name.lower().startswith(word) and len(word) >= 3]
            if found and not month:
                month = found[0]
            elif word not in ("the", "of", "on", "th", "st", "nd", "rd", ","):
                return None
        elif isinstance(part, Num) and part.exact.denominator == 1:
            numbers.append(int(part.exact))
        else:
            return None
    return (month, *sorted(numbers)) if month and 1 <= len(numbers) <= 2 and min(numbers) <= 31 else None
