"""Messages whose form the policy fixes, so that checks need not understand them: proposals, answers and refusals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gem.envs.desks.desk.shop import CONFIRM, REFUSE

# The message that states a value, by field.
FORMS = {
    "rule": REFUSE,
    "money": "It is ${}.",
    "gigabytes": "It is {} GB.",
    "date": "It is {}.",
    "tracking": "It is {}.",
}
_PROPOSAL = re.compile(re.escape(CONFIRM.lower()).replace(r"\{\}", "(.+)"))
_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred"
).replace(" ", "|")
_NUMBER = rf"(?:\d|\b(?:{_WORDS})\b)"
_CURRENCY = r"(?:dollars?|usd|bucks?|euros?|eur|pounds?|€|£)"
_MONTH = r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
# What a value of a field looks like in any message: in the policy's spelling and in others.
_VALUES = {
    "rule": re.compile(rf"\brules?\b\W*(?:no\b|number\b)?\W*{_NUMBER}"),
    "money": re.compile(rf"[$€£] ?\d|{_NUMBER}[ -]?{_CURRENCY}(?!\w)|\b(?:usd|eur) ?\d"),
    "gigabytes": re.compile(rf"{_NUMBER}[ -]?(?:gbs?|gigs?|gigabytes?)\b"),
    "date": re.compile(rf"\d{{4}}[-/.]\d\d|\d[-/.]\d\d?[-/.]\d{{4}}|{_MONTH} \d|\d(?:st|nd|rd|th)? (?:of )?{_MONTH}"),
    "tracking": re.compile(r"\btrk\W?\d"),
}


class Proposal(NamedTuple):
    """A call that the agent asks the customer to confirm, in lower case. ``values``: as tasks.values() writes them."""

    function: str
    values: frozenset[str]

    @classmethod
    def of(cls, function: str, values: Iterable[str]) -> Proposal:
        return cls(function, frozenset(value.lower() for value in values))


def proposed(message: str) -> Proposal | None:
    """Return what a message proposes; None if it has another form.

    >>> proposed("I would call resume_line with L-1234. Do you confirm this?")
    Proposal(function='resume_line', values=frozenset({'l-1234'}))
    >>> proposed("I would not call resume_line with L-1234. Do you confirm this?")
    """
    match = _PROPOSAL.fullmatch(_plain(message))
    return match and Proposal.of(match[1], match[2].split(", "))


def stated(messages: Sequence[str], field: str, value: str) -> bool:
    """Whether the last of the messages with values of a field is the form with this one.

    Args:
        messages: of the agent.
        field: of FORMS.
        value: that has to be stated.

    >>> stated(("It is $5.", "It is $7."), "money", "7"), stated(("Rules 3, 4 or 5.",), "rule", "4")
    (True, False)
    """
    found = [message for message in messages if has_value(message, field)]
    return bool(found) and _plain(found[-1]) == _plain(FORMS[field].format(value))


def refuses(message: str) -> bool:
    """Whether a message refuses a request, in the form of the policy."""
    return any(stated([message], "rule", str(rule)) for rule in range(1, 9))


def has_value(message: str, field: str) -> bool:
    """Whether a message has a value of a field, in any spelling."""
    return _VALUES[field].search(message.lower()) is not None


def _plain(message: str) -> str:
    return " ".join(message.lower().split()).removesuffix(".")
