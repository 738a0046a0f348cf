"""What a message of the agent states: rules, amounts, dates, gigabytes and tracking numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_DIGITS = {word: str(n) for n, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight"), 1)}
_WORDS = "|".join(_DIGITS)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"({'|'.join(_MONTHS)})[a-z]*\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
# A list of numbers after "rules" is several values. A word counts only next to "rule": rule 3, "one of the items".
_RULES = re.compile(
    rf"\brules?\b((?:[\s,;:/&#*()-]|\b(?:and|or|to|number|rules?)\b|\bn[or]\b\.?|(?<=rule )(?:{_WORDS})\b|\d)+)"
)
_RULE = re.compile(rf"\d+|\b(?:{_WORDS})\b")
_MONEY = re.compile(r"\$ ?(\d[\d,]*(?:\.\d+)?)|\b(\d[\d,]*(?:\.\d+)?) ?(?:dollars?|usd)\b|\busd ?(\d[\d,]*(?:\.\d+)?)")
_GIGABYTES = re.compile(r"\b(\d+) ?(?:gbs?|gigs?|gigabytes?)\b")
_TRACKING = re.compile(r"\b(trk\d+)\b")
_DATES = (
    (re.compile(r"\b(\d{4}-\d\d-\d\d)\b"), lambda iso: iso),
    (re.compile(rf"\b{_MONTH} {_DAY},? (\d{{4}})\b"), lambda month, day, year: _iso(day, month, year)),
    (re.compile(rf"\b{_DAY} (?:of )?{_MONTH},? (\d{{4}})\b"), lambda day, month, year: _iso(day, month, year)),
)


def stated(messages: Sequence[str], field: str, value: str) -> bool:
    """Whether the last of the messages with values of a field has this one and no other.

    >>> stated(("It is $5.", "It is $7.00."), "money", "7"), stated(("Rules 3, 4 or 5.",), "rule", "4")
    (True, False)
    """
    found = [values for message in messages if (values := values_in(message, field))]
    return bool(found) and found[-1] == {value.upper()}


def values_in(message: str, field: str) -> set[str]:
    """Return the values of a field in a message.

    Args:
        message: of the agent.
        field: "rule", "money", "gigabytes", "date" or "tracking".

    >>> sorted(values_in("Rule 3 or rule no. 4; it ended on May 4, 2026, not 2026-05-05.", "date"))
    ['2026-05-04', '2026-05-05']
    """
    return _FIELDS[field](message.lower())


def _rules(text: str) -> set[str]:
    return {_DIGITS.get(found, found) for numbers in _RULES.findall(text) for found in _RULE.findall(numbers)}


def _money(text: str) -> set[str]:
    return {f"{float(''.join(found).replace(',', '')):g}" for found in _MONEY.findall(text)}


def _dates(text: str) -> set[str]:
    return {write(*match.groups()) for pattern, write in _DATES for match in pattern.finditer(text)}


def _iso(day: str, month: str, year: str) -> str:
    return f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02}"


_FIELDS: dict[str, Callable[[str], set[str]]] = {
    "rule": _rules,
    "money": _money,
    "gigabytes": lambda text: set(_GIGABYTES.findall(text)),
    "date": _dates,
    "tracking": lambda text: {found.upper() for found in _TRACKING.findall(text)},
}
