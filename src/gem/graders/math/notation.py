r"""Answers in a notation of their own, compared as texts: digits of a base, strings of letters, cyclic groups.

Letters in these answers are not factors: FE and EF are different numbers in base 16, and ABC and CBA different orders.
"""

from __future__ import annotations

import re
from fractions import Fraction

_HEXADECIMAL = re.compile(
    r"\bhex(?:adecimal)?\b|\bbase[- ]?\$?(?:1[1-9]|2\d|3[0-6]|eleven|twelve|sixteen)", re.IGNORECASE
)
_BASE_MARK = re.compile(
    r"^0[xX]|\s*(?:_\{?\(?(?:\d\d|\\text\{?(?:hex|sixteen)\}?)\)?\}?)$|\s+(?:\\text\{)?\s*(?:in )?hex\w*\}?$"
)
_STRING = re.compile(
    r"\b(?:words?|letters?|codes?|codeword|password|strings?|spell\w*|anagram|initials|abbreviation|symbols?|encod\w+"
    r"|decod\w+|encrypt\w*|decrypt\w*|cipher|from left to right|in (?:the )?order|ordering|finish\w*|standing in"
    r"|roman numerals?)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\\?\{?\(?[A-H]\)?(?:[,;& ]*(?:and)? ?\(?[A-H]\)?)*\\?\}?", re.IGNORECASE)
_CYCLIC = re.compile(
    r"(?:\\mathbb\{?\s*Z\}?|Z|C)_\{?(?P<order>\d{1,9})\}?"
    r"|(?:\\mathbb\{?\s*Z\}?|Z)/\(?(?P<modulus>\d{1,9})\)?(?:\\mathbb\{?\s*Z\}?|Z)?"
    r"|(?P<klein>V_4|K_4|(?:the )?klein(?: four)?[- ]?(?:four)?[- ]?group)"
    r"|(?:the )?cyclic group of order (?P<cyclic>\d{1,9})"
    r"|(?P<infinite>\\mathbb\{?\s*Z\}?|Z|(?:the |an )?infinite cyclic(?: group)?|(?:the )?integers)",
    re.IGNORECASE,
)
_SPAN = re.compile(
    r"\\?(?:operatorname\{span\}|span)\s*(?:\\?\{(?P<spanned>.*?)\\?\}|\((?P<bracketed>[(\\].*)\))"
    r"|\\?\{\s*(?P<letter>[a-z])\s*(?:\\cdot)?\s*(?P<scaled>.*?)\s*(?::|\\mid|\|)\s*(?P=letter)\s*\\in\s*\\mathbb\{?\s*R\}?\s*\\?\}"
    r"|(?:all |the set of (?:all )?)?(?:real |scalar |constant )?multiples of (?P<multiples>.*)"
)
_MATRICES = re.compile(r"\b(?:matrix|matrices|operators|linear maps)\b", re.IGNORECASE)
_FACTOR = re.compile(r"([A-Z])(?:\^\{?(-?\d|T|\\top)\}?)?")
_CIRCLED = re.compile(r"(?:[①-⑳]|\(?\b\d{1,2}\b\)?|and|[ ,;、])+")
_COLUMN = re.compile(r"\\begin\{[pb]matrix\}(.*?)\\end\{[pb]matrix\}")
_RATIONAL = r"-?\d{1,9}(?:/[1-9]\d{0,8})?"
_VECTOR = re.compile(rf"(?:\(|\[|\\langle)\s*({_RATIONAL}(?:, ?{_RATIONAL})+)\s*(?:\)|\]|\\rangle)")
_ANY_MULTIPLE = re.compile(
    r"\bany (?:non-?zero |scalar |real |constant )*multiple"
    r"|\b(?:an?|some|one) (?:eigenvector|normal vector|direction vector)",
    re.IGNORECASE,
)
_ONE_MULTIPLE = re.compile(r"\bunit\b|normali[sz]|\bmagnitude\b|\blength\b|\bcomponents?\b|\binteger", re.IGNORECASE)
_FAMILY = re.compile(
    r"(?:x=(?P<x>[^,=]+)(?:,|and)y=(?P<y>[^,=a-z]*[a-z][^,=a-z]*)|\(x,y\)=\((?P<x1>[^,=()]+),(?P<y1>[^,=()]+)\))"
    r"(?:,|\()?(?:for|where|with)?(?:(?:all|some|any|an)?integers?(?P<said>[a-z])|(?P<given>[a-z])(?:\\in\\mathbb\{?Z\}?|isaninteger))\)?"
)
_DISTRIBUTIONS = {
    "B": "binomial", "Bin": "binomial", "Binom": "binomial", "Binomial": "binomial",
    "Po": "poisson", "Poi": "poisson", "Pois": "poisson", "Poisson": "poisson",
    "Geo": "geometric", "Geom": "geometric", "Geometric": "geometric",
    "N": "normal", "Normal": "normal", "Exp": "exponential", "Exponential": "exponential",
    "U": "uniform", "Unif": "uniform", "Uniform": "uniform",
}  # fmt: skip
_DISTRIBUTION = re.compile(
    r"(?:[A-Z]\s*(?:\\sim|~)\s*)?(?:\\text|\\mathcal|\\mathrm)?\{?\s*(?P<name>[A-Z][a-z]*)\s*\}?\((?P<parameters>[^()]*)\)"
)


def same_notation(answer: str, gold: str, question: str) -> bool | None:
    """Compare two normalized texts if the question and the reference answer are of such a kind; else return None."""
    if not question:
        return None
    if _HEXADECIMAL.search(question) and re.fullmatch(r"(?=.*[A-Z])[0-9A-Z]+", digits := _digits(gold)):
        return _digits(answer) == digits and _base(answer, question) == _base(gold, question)
    if re.search("[①-⑳]", gold) and _CIRCLED.fullmatch(plain := _plain(gold)):
        ours = _circled(_plain(answer)) if _CIRCLED.fullmatch(_plain(answer)) else None
        return ours is not None and ours == _circled(plain)
    if "select all" in question.casefold() and len(gold) > 1 and _LISTED.fullmatch(_plain(gold)):
        ours, theirs = (re.findall(r"[A-H]", re.sub("(?i)and", "", _plain(each)).upper()) for each in (answer, gold))
        return _LISTED.fullmatch(_plain(answer)) is not None and sorted(set(ours)) == sorted(set(theirs))
    if _STRING.search(question) and re.fullmatch(r"[A-Z]{2,}", gold):
        return re.sub(r"\\text|[{}\s,]|\\to|->|-", "", answer).upper() == gold
    products = [re.sub(r"\s|\\cdot", "", each) for each in (answer, gold)]
    if _MATRICES.search(question) and all(re.fullmatch(f"(?:{_FACTOR.pattern}){{2,}}", each) for each in products):
        ours, theirs = (_FACTOR.findall(each) for each in products)  # AB is not BA
        return ours == theirs
    for kind, parsed in ((r"\bgroups?\b", _groups), (r"\bdistribution\b", _distribution)):
        if re.search(kind, question) and None not in (pair := (parsed(answer), parsed(gold))):
            return pair[0] == pair[1]
    family, gold_family = _family(answer), _family(gold)
    if family is not None and gold_family is not None:
        return _same_family(family, gold_family)
    return _same_line(answer, gold, question)


def _circled(text: str) -> list[int]:
    numbers = re.findall(r"[①-⑳]|\d+", text)
    return sorted({int(each) if each.isdigit() and each.isascii() else ord(each) - ord("①") + 1 for each in numbers})


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text)).strip(" .")


def _digits(text: str) -> str:
    """Return the digits of a number in a base above ten, without the marks of its base, as capitals."""
    text = re.sub(r"\\text\s*\{(\w+)\}", r"\1", text)
    text = _BASE_MARK.sub("", re.sub(r"^\(|\)(?=_|$)", "", _BASE_MARK.sub("", text)))
    return re.sub(r"\\text|[{}\s]", "", text).upper().lstrip("0")


def _base(text: str, question: str) -> int:
    """Return the base above ten that a number says, or else the base that the question has first."""
    if (said := re.search(r"_\{?\(?(\d\d)\)?\}?$", text)) is not None:
        return int(said.group(1))
    asked = _HEXADECIMAL.search(question)
    name = asked.group().casefold() if asked is not None and not re.match("0[xX]", text) else "hex"
    number = re.search(r"\d+", name)
    return (
        int(number.group()) if number is not None else {"eleven": 11, "twelve": 12}.get(re.split("[- ]", name)[-1], 16)
    )


def _groups(text: str) -> list[list[int]] | None:
    r"""Return a list of products of cyclic groups by their orders, 0 for \mathbb{Z}; None for other text.

    >>> _groups(r"\mathbb{Z}/6\mathbb{Z}"), _groups("Z_4, Z_2 \\cdot Z_2"), _groups("S_3")
    ([[6]], [[2, 2], [4]], None)
    """
    listed = re.split(r"\s*(?:,| and |;)\s*", _plain(text))
    found = []
    for product in listed:
        factors = [_CYCLIC.fullmatch(each.strip(" ()")) for each in re.split(r"\\cdot|\\oplus|\\times", product)]
        if None in factors:
            return None
        found.append(sorted(order for factor in factors if factor is not None for order in _orders(factor)))
    return sorted(found)


def _orders(factor: re.Match[str]) -> list[int]:
    if factor["klein"]:
        return [2, 2]
    return [0] if factor["infinite"] else [int(next(filter(None, factor.group("order", "modulus", "cyclic"))))]


def _distribution(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the name and the parameters of a distribution, such as B(10, 0.3); None for other text."""
    match = _DISTRIBUTION.fullmatch(text.strip())
    if match is None or match["name"] not in _DISTRIBUTIONS:
        return None
    parameters = [re.sub(r"\s", "", each) for each in match["parameters"].split(",")]
    labels = [each.partition("=")[0] if "=" in each else "" for each in parameters]
    if any(labels) and labels not in (["n", "p"], ["p"], ["\\mu", "\\sigma^2"], ["\\lambda"], ["a", "b"]):
        return None
    return _DISTRIBUTIONS[match["name"]], tuple(each.rpartition("=")[2] for each in parameters)


def _family(text: str) -> tuple[list[int], list[int]] | None:
    """Return the base point and the step of the integer points (x, y) = (2 + 3t, -1 - 2t); None for other text."""
    if (match := _FAMILY.fullmatch(re.sub(r"[\s$]", "", _plain(text)))) is None:
        return None
    letter = match["given"] or match["said"]
    linear = re.compile(rf"(?=.)(-?\d{{1,9}}(?![\d{letter}]))?(?:([+-]?\d{{0,9}}){letter}([+-]\d{{1,9}})?)?")
    pairs = [linear.fullmatch(match[name] or match[f"{name}1"]) for name in "xy"]
    if any(pair is None or pair[2] is None or (pair[1] and pair[3]) for pair in pairs):
        return None
    found = [pair for pair in pairs if pair is not None]
    steps = [int(pair[2] + "1" if pair[2] in ("", "+", "-") else pair[2]) for pair in found]
    return [int(pair[1] or pair[3] or 0) for pair in found], steps


def _same_family(a: tuple[list[int], list[int]], g: tuple[list[int], list[int]]) -> bool:
    """Return whether two families of integer points have the same step, up to its sign, and a common point."""
    (base, step), (gold_base, gold_step) = a, g
    if not any(step) or step not in (gold_step, [-each for each in gold_step]):
        return False
    axis = 0 if step[0] else 1
    times, rest = divmod(base[axis] - gold_base[axis], step[axis])
    return rest == 0 and all(base[i] - gold_base[i] == times * step[i] for i in (0, 1))


def _same_line(answer: str, gold: str, question: str) -> bool | None:
    """Compare two spans of one vector, or two vectors of which any multiple is right; None for other texts."""
    spans = _SPAN.fullmatch(_plain_math(answer)), _SPAN.fullmatch(_plain_math(gold))
    if spans[0] is not None and spans[1] is not None:
        ours, theirs = _vector(_generator(spans[0])), _vector(_generator(spans[1]))
    elif _ANY_MULTIPLE.search(question) and not (_ONE_MULTIPLE.search(question) or "=" in gold):
        ours, theirs = _vector(answer), _vector(gold)
    else:
        return None
    if ours is None or theirs is None:
        return None
    if len(ours) != len(theirs) or not any(ours) or not any(theirs):
        return False
    return all(ours[i] * theirs[j] == ours[j] * theirs[i] for i in range(len(ours)) for j in range(i))


def _generator(span: re.Match[str]) -> str:
    return next(filter(None, span.group("spanned", "bracketed", "scaled", "multiples")), "")


def _plain_math(text: str) -> str:
    return re.sub(r"\\text\s*\{([^{}]*)\}", r"\1", text).strip()


def _vector(text: str) -> list[Fraction] | None:
    """Return the items of a vector of rational numbers; None for other text."""
    column = _COLUMN.search(text)
    if column is not None:
        text = "(" + column.group(1).replace(r"\\", ",").replace("&", ",") + ")"
    text = re.sub(r"\\frac\{(-?\d{1,9})\}\{(\d{1,9})\}", r"\1/\2", re.sub(r"\^\{?(?:T|\\top)\}?$", "", text.strip()))
    match = _VECTOR.fullmatch(text)
    return None if match is None else [Fraction(item.strip()) for item in match.group(1).split(",")]
