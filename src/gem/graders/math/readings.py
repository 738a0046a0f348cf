"""Other readings of an answer, with regard to the reference answer and the question.

A vector 2i - 3j is also the tuple (2, -3), n = 6k + 2 is a congruence, "maximum 10, minimum -6" lists values in the
order of the question, and "Ines has 31 stamps" says 31 if the question counts her stamps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from gem.graders.math.read import ParsedAnswer, read
from gem.graders.math.sentences import said_value
from gem.graders.math.split import split, split_with_separators
from gem.graders.math.values import Congruence, Group, Named, Number, Value, Word

_PARITY = re.compile(
    r"(?:for )?(?:all |any |every |the )?"
    r"(?:(?P<first>odd|even)(?: (?:positive )?(?:integers?|numbers?))?(?: [a-z])?"
    r"|(?:integers? |numbers? )?[a-z] (?:is |are |must be |be )?(?:an )?(?P<last>odd|even)(?: integer| number)?)"
)
_MULTIPLES = re.compile(r"(?:all )?multiples of (\d+)|[a-z] is (?:divisible by|a multiple of) (\d+)")
_LINEAR = re.compile(
    r"(?:(?P<name>[a-z]) ?= ?)?(?P<modulus>\d+)(?: ?\\cdot ?)?(?P<letter>[a-z]) ?(?P<rest>[+-] ?\d+)?"
    r"(?:[ ,(]*(?:for |where |with )*(?:(?:some |all |any |an )*integers? (?P=letter)|(?P=letter) (?:is )?an integer"
    r"|(?P=letter) ?\\in ?\\mathbb ?\{?(?P<set>[NZ])\}?(?P<plus>\^\{?\+\}?)?"
    r"|(?:integers? )?(?P=letter) ?\\ge ?(?P<least>\d)(?: (?:an )?integer)?"
    r"|(?P=letter) ?= ?(?P<start>[01]), .*\.\.\.)\)?)?"
)
_BASIS = re.compile(r"\\(?:text|hat|vec|boldsymbol|bm|mathbf)\s*\{\s*(?:\\text\{\s*)?\\?([ijk])(?:math)?\s*\}\}?")
_TRANSPOSED = re.compile(r"[\[(]([^\[\]()]*,[^\[\]()]*)[\])]\^\{?(?:T|\\top|\\text\{T\}|\\intercal)\}?")
_AXIS = re.compile(r"\\hat\s*(?:\{\s*)?(?:\\text\{)?([xyz])\}*")
_TERM = re.compile(r"(?P<factor>.*?)\s*(?:\\cdot\s*)?(?P<axis>[ijk])")
_LABELED = re.compile(
    r"(?P<label>[a-z][a-z -]*?)\s*(?:is|=|:|of)?\s*(?P<value>(?:[-+]?[\d\\$.]|\(|\[).*)", re.IGNORECASE
)


def interpretations(answer: ParsedAnswer, gold: ParsedAnswer, question: str) -> Iterator[tuple[Value, Value]]:
    """Yield the two parsed values, and the pairs of their other readings."""
    labeled = _labeled(answer, question), _labeled(gold, question)
    if labeled[0] is not None and isinstance(gold.value, Group):
        yield labeled[0], labeled[1] or Group("tuple", gold.value.items)
        return
    yield answer.value, gold.value
    if (items := _as_list(answer, gold.value)) is not None:
        yield items, gold.value
    if (items := _as_list(gold, answer.value)) is not None:
        yield answer.value, items
    if (number := _decimal_comma(answer, gold.value)) is not None:
        yield number, gold.value
    elif (number := _decimal_comma(gold, answer.value)) is not None:
        yield number, answer.value
    if (vector := _as_vector(answer, gold.value)) is not None:
        yield vector, gold.value
    elif (vector := _as_vector(gold, answer.value)) is not None:
        yield answer.value, vector
    if (classes := _residue_classes(answer, gold)) is not None:
        yield classes
    if answer.value == Word("none") and (gold.value == Group("set", ()) or _is_none(gold.value, question)):
        yield gold.value, gold.value
    if gold.value == Word("none") and answer.value == Group("set", ()):
        yield answer.value, answer.value
    if (said := said_value(answer, gold, question)) is not None:
        yield said, gold.value
    if (said := said_value(gold, answer, question)) is not None:
        yield answer.value, said


def plain(text: str) -> str:
    r"""Remove the \text commands of a text, and its space around them that is not single."""
    return re.sub(r"\s+", " ", re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text)).strip(" .")


def _as_list(answer: ParsedAnswer, other: Value) -> Value | None:
    """Parse a mixed number such as "2 and 1/3" as a list if the other value is a collection; else return None."""
    if not isinstance(answer.value, Number) or not isinstance(other, (Group, Named)):
        return None
    parts, found = re.subn(r"\\text\{\s*and\s*\}|\band\b", ", ", answer.clean)
    return read(parts).value if found else None


def _decimal_comma(answer: ParsedAnswer, other: Value) -> Number | None:
    """Parse 3,14 as a decimal number if the other value is a number that is not an integer; else return None."""
    if re.search(r",\s", answer.text):
        return None
    match = re.fullmatch(r"([+-]?\d+),(\d{1,2}|\d{4,})", answer.clean.replace(" ", ""))
    if match is None or not isinstance(other, Number) or other.exact.denominator == 1:
        return None
    return Number(Fraction(f"{match.group(1)}.{match.group(2)}"), decimal=True)


def _as_vector(answer: ParsedAnswer, other: Value) -> Group | None:
    """Parse 2i - 3j or (2, -3)^T as a tuple if the other value is a tuple of two or three items; else return None."""
    if not isinstance(other, Group) or other.kind != "tuple" or len(other.items) not in (2, 3):
        return None
    if (column := _TRANSPOSED.fullmatch(answer.clean)) is not None:
        return Group("tuple", tuple(read(item).value for item in split(column.group(1), ",")))
    text, marked = _BASIS.subn(r"\1", _AXIS.sub(lambda m: rf"\hat{{{'ijk'['xyz'.index(m.group(1))]}}}", answer.clean))
    signs, terms = ["+"], list[str]()
    for term, sign in split_with_separators(text, "[+-]"):
        if not term and sign and not terms:
            signs = [sign]  # the sign of the first term
            continue
        terms.append(term)
        signs.append(sign)
    found = dict[str, Value]()
    for sign, term in zip(signs, terms, strict=False):
        match = _TERM.fullmatch(term)
        letters = "[ijk]" if marked else "[a-zA-Z]"
        if match is None or match["axis"] in found or re.search(letters, re.sub(r"\\[a-z]+", "", match["factor"])):
            return None
        found[match["axis"]] = read(f"{sign.replace('+', '')}{match['factor'] or 1}").value
    axes = "ijk"[: len(other.items)]
    if not set(found) <= set(axes) or not (marked or len(found) > 1):
        return None
    return Group("tuple", tuple(found.get(axis, Number(Fraction(0))) for axis in axes))


def _residue_classes(answer: ParsedAnswer, gold: ParsedAnswer) -> tuple[Value, Value] | None:
    """Return two answers as congruences if one of them is written as a congruence or in words; else None."""
    texts = [plain(each.clean) for each in (answer, gold)]
    if not any(
        isinstance(each.value, Congruence) or _PARITY.fullmatch(text) or _MULTIPLES.fullmatch(text)
        for each, text in zip((answer, gold), texts, strict=True)
    ):
        return None
    ours, theirs = (_residue(each.value, text) for each, text in zip((answer, gold), texts, strict=True))
    return None if ours is None or theirs is None else (ours, theirs)


def _residue(value: Value, text: str) -> Congruence | None:
    if isinstance(value, Congruence):
        if value.name and not re.fullmatch(r"[a-zA-Z](?:_\{?\w\}?)?", value.name):
            return None  # n + 1 = 0 (mod 3) is not n = 0 (mod 3)
        return Congruence("", value.value, value.modulus)
    if (parity := _PARITY.fullmatch(text)) is not None:
        odd = "odd" in (parity["first"], parity["last"])
        return Congruence("", Number(Fraction(int(odd))), Number(Fraction(2)))
    if (multiples := _MULTIPLES.fullmatch(text)) is not None:
        return Congruence("", Number(Fraction(0)), Number(Fraction(multiples.group(1) or multiples.group(2))))
    match = _LINEAR.fullmatch(text)
    if match is None or match["name"] == match["letter"]:
        return None
    modulus, rest = int(match["modulus"]), int((match["rest"] or "0").replace(" ", ""))
    starts = [int(match[name]) for name in ("least", "start") if match[name] is not None]
    if match["set"] == "N" or match["plus"]:
        starts = [1] if match["plus"] else [0, 1]
    if starts and not any(0 < modulus * start + rest <= modulus for start in starts):
        return None  # the first of the numbers is missing, or one is too many
    return Congruence("", Number(Fraction(rest)), Number(Fraction(modulus)))


def _labeled(answer: ParsedAnswer, question: str) -> Group | None:
    """Return labeled values in the order in which the question has their labels; None for other answers."""
    if not question or not re.search("[a-zA-Z]{3}", answer.clean):
        return None
    found = dict[int, Value]()
    parts = [part for part in split(plain(answer.clean), r",|;| and (?=[a-z])") if part]
    for part in parts:
        match = _LABELED.fullmatch(part.strip())
        place = -1 if match is None else question.casefold().find(match["label"].casefold().removeprefix("the "))
        if match is None or len(match["label"]) < 3 or place < 0 or place in found:
            return None
        found[place] = read(match["value"]).value
    return Group("tuple", tuple(found[place] for place in sorted(found))) if len(found) > 1 else None


def _is_none(gold: Value, question: str) -> bool:
    return gold == Number(Fraction(0)) and re.search(r"\bhow many\b", question, re.IGNORECASE) is not None
