"""What a question says about its answer: a percentage, a unit, a rounding, an order, a base or a list of choices."""

from __future__ import annotations

import re

from gem.graders.math_units import is_listed_unit, parse_unit

_PERCENT = re.compile(
    r"(?:(?:what|which|how many|as an?|nearest|find the)(?: [a-z]+)?|in)\s+per ?cent", re.IGNORECASE
)  # matches "what percent" and "as a percentage", but not "20 percent"
_SEVERAL_CHOICES = re.compile(
    r"\bselect\b|multiple.choice|which of the following|all (?:the )?(?:correct|true)", re.IGNORECASE
)
_UNIT = r"(?:square |cubic )?[a-z]+(?:\^\{?[23]\}?)?(?:(?: per |/)[a-z]+(?:\^\{?[23]\}?)?)?"
_COUNTED = re.compile(
    rf"\bhow many ({_UNIT})|\bin (?!\w[\s.,?)])({_UNIT})(?=[.,?)]|$| (?:and|correct|rounded|to)\b)", re.IGNORECASE
)
_ROUNDING = re.compile(
    r"\bnearest (?:\w+ )?(?:whole|integer|ten|hundred|thousand|cent|dollar|degree|\$?\d)"  # or tenth, hundredth
    r"|decimal places?\b|significant (?:figure|digit)"
    r"|\brounded\b|\bround (?:your|off|to|up|down|the (?:answer|result)|it)\b",
    re.IGNORECASE,
)
_SUPERLATIVE = (
    r"(?:last|largest|smallest|greatest|least|highest|lowest|tallest|shortest|oldest|youngest|fastest|slowest)"
)
_ORDER = re.compile(
    r"\b(?:(?:in|de)creasing|(?:a|de)scending|alphabetical|numerical|chronological|reverse|correct) order\b"
    rf"|\bfrom (?:the )?[\w ]{{1,30}}\bto (?:the )?{_SUPERLATIVE}\b",
    re.IGNORECASE,
)
_BASE = re.compile(r"\bbase\b|\bbinary\b|\bternary\b|\boctal\b|\bhexadecimal\b", re.IGNORECASE)
_INTEGERS = re.compile(
    r"(?:integers?|natural numbers?)\s+\$?([a-zA-Z])\b|\$?([a-zA-Z])\$? is an? (?:[a-z-]+ )?(?:integer|natural number)"
    r"|([a-zA-Z])\s*\\in\s*\\mathbb\s*\{?[NZ]",
)
_KIND = re.compile(r"\b(?:what|which) (?:type|kind|sort) of ([a-z]+)", re.IGNORECASE)


def asks_percentage(question: str) -> bool:
    return _PERCENT.search(question) is not None


def asks_for_choices(question: str) -> bool:
    """Return whether several choices may be right."""
    return _SEVERAL_CHOICES.search(question) is not None


def asks_for(question: str, latex: str) -> bool:
    """Return whether a question names a formula that is not part of a longer formula."""
    text = r"\s*".join(map(re.escape, re.sub(r"\s", "", latex)))
    plain = re.sub(r"\\left|\\right|\$", "", question)
    return re.search(rf"(?<![\w^)}}*/+=-])(?<![+=-] ){text}(?!\s*[\w^({{*/+=-])", plain) is not None


def asked_unit(question: str) -> str | None:
    """Return the unit in which the last question counts, as in "how many minutes"; None if it has none or several."""
    asked = re.findall(r"[^.?!]*\?", question)[-1:] or [question]
    texts = [counted or given for counted, given in _COUNTED.findall(asked[0])]
    units = {unit for text in texts if (unit := parse_unit(text)) is not None and is_listed_unit(unit)}
    return units.pop() if len(units) == 1 else None


def asks_rounding(question: str) -> bool:
    return _ROUNDING.search(question) is not None


def asks_order(question: str) -> bool:
    """Return whether the order of a list matters, as in "from first to last" or "in increasing order"."""
    return _ORDER.search(question) is not None


def asks_base(question: str) -> bool:
    return _BASE.search(question) is not None


def integers_in(question: str) -> str:
    """Return the letters that a question says are integers."""
    return "".join(letter for found in _INTEGERS.findall(question) for letter in found)


def asked_kind(question: str) -> str:
    """Return the noun after "what type of", such as "triangle"; "" if the question has no such phrase."""
    match = _KIND.search(question)
    return "" if match is None else match.group(1).lower()
