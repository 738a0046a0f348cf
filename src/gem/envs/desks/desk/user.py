"""A simulated customer, scripted from a hidden goal: answers what it is asked, is vague, and changes its mind.

It reads questions with patterns, so any wording works that asks for things by their usual names. It agrees only to
proposals in the policy's form, of a call that it wants; it does not mind about amounts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from gem.envs.desks.desk.statements import Proposal, proposed

_PROPOSES = re.compile(r"\b(confirm\b|proceed|go ahead|(shall|should) i)\b")
_ASKS = re.compile(r"\?|\b(please|tell me|need|provide|give me|let me know)\b")
_ELSE = re.compile(
    r"\b(anything|something) (else|further|more)\b|\belse (can|may) i\b|\bfurther (help|questions?)\b"
    r"|\b(is|will) that (be )?(all|everything)\b"
)
_IDENTITY = re.compile(r"\be-?mail|\bzip\b|\b(your|full|last) name\b|\bidentif|\bverif|\bwho you are\b")
_MAIL = re.compile(r"\be-?mail address")
_HELP = re.compile(r"\bhow (can|may) i (help|assist)|\bwhat (can|may) i do\b|\bwhat (would|do) you (like|want|need)\b")
_REFUSES = re.compile(r"\brule \d|\b(cannot|can't|unable|not possible|not allowed)\b")
_SLOTS = {
    "order": re.compile(
        r"\b(which|what) (of (the|your) )?orders?\b|\border (number|id)\b|\bnumber of (the|your) order\b"
    ),
    "item": re.compile(r"\b(which|what) (item|product|one|thing)s?\b|\bitems?\b.*\?"),
    "variant": re.compile(r"\bcolou?r|\bvariant|\binstead\b|\bexchange\b.*\bfor\b"),
    "reason": re.compile(r"\breason\b|\bwhy\b"),
    "address": re.compile(r"\baddress\b|\bstreet\b"),
    "payment": re.compile(r"\bpayment\b|\bpay with\b|\bcard\b"),
    "shipping": re.compile(r"\bshipping\b|\bshipped\b"),
    "line": re.compile(r"\b(which|what) (of (the|your) )?lines?\b|\bline number\b|\bnumber of (the|your) line\b"),
    "plan": re.compile(r"\b(which|what) plan\b"),
    "gigabytes": re.compile(r"\bhow (much|many)\b|\bgigabytes\b"),
    "date": re.compile(r"\buntil\b|\b(which|what) date\b|\bhow long\b"),
}
_SENTENCE = re.compile(r"(?<=[.?!])\s+|\n+")
_YES = ("Yes, please.", "Yes, go ahead.", "Yes, that is right.")
_FINE = ("All right.", "Okay.", "I see.")
_DONE = ("No, that is all. Thank you.", "No, thanks, that was all.", "Nothing else, thank you.")


class Want(NamedTuple):
    """A change that the customer wants: the function, and the values of the call but amounts."""

    function: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class CustomerWish:
    """What the customer wants at one time.

    Args:
        request: one sentence or more that says it.
        details: answers to questions, by what is asked for: order, item, variant, reason, address, payment, shipping,
            line, plan, gigabytes, date.
        wants: the changes that it agrees to.
        after: when the customer comes to it: at the start, when the change before is proposed, which it replaces, or
            when asked for anything else.
        said: how the customer then says it.
    """

    request: str
    details: dict[str, str] = field(default_factory=dict)
    wants: Sequence[Want] = ()
    after: Literal["start", "proposal", "more"] = "start"
    said: str = ""


@dataclass(frozen=True)
class CustomerGoal:
    """The hidden goal of a customer.

    Args:
        name, zip: what the customer says who it is.
        email: None if the customer does not remember it.
        opening: the first message; None to say the first request at once.
        wishes: in order; the last one is what has to be done at the end.
        style: chooses among wordings.
    """

    name: str
    zip: str
    email: str | None
    opening: str | None
    wishes: tuple[CustomerWish, ...]
    style: int = 0


@dataclass(frozen=True)
class Mood:
    """What has changed in the conversation: the current wish, and what the customer has said."""

    wish: int = 0
    told: bool = False  # whether the customer has said the request
    insisted: bool = False


@dataclass(frozen=True)
class CustomerReply:
    """A message of the customer. ``agrees``: whether it says yes to the changes in the agent's message."""

    text: str
    mood: Mood
    agrees: bool = False


def first_message(goal: CustomerGoal) -> CustomerReply:
    """Return how the customer begins."""
    if goal.opening is not None:
        return CustomerReply(goal.opening, Mood())
    return CustomerReply(goal.wishes[0].request, Mood(told=True))


def mentions(message: str, value: str) -> bool:
    """Whether a message has a value, not as part of a longer word or number.

    >>> mentions("Order #W10000?", "#w10000"), mentions("Order #W100001", "#W10000")
    (True, False)
    """
    return re.search(rf"(?<![\w#$-]){re.escape(value)}(?![\w-]|[.,]\d)", message, re.IGNORECASE) is not None


def answer(goal: CustomerGoal, mood: Mood, message: str) -> CustomerReply:
    """Return the reply of the customer to a message of the agent."""
    wish, text = goal.wishes[mood.wish], message.lower()
    later = goal.wishes[mood.wish + 1] if mood.wish + 1 < len(goal.wishes) else None
    if proposal := proposed(message):
        return _judged(goal, mood, wish, later, proposal)
    if _ELSE.search(text):
        if later is not None and later.after == "more":
            return CustomerReply(later.said, replace(mood, wish=mood.wish + 1, told=True))
        return CustomerReply(_DONE[goal.style % 3] if mood.told else wish.request, replace(mood, told=True))
    parts = []
    if _ASKS.search(text):
        if any(map(_asks_identity, _SENTENCE.split(text))):
            parts.append(_identity(goal, text))
        parts += [wish.details[slot] for slot in _asked(text) if slot in wish.details]
        if not parts and _IDENTITY.search(text) and not _HELP.search(text):  # in two sentences
            parts.append(_identity(goal, text))
    if _HELP.search(text) or (not mood.told and not parts):
        parts.append(wish.request)
        mood = replace(mood, told=True)
    if not parts and _REFUSES.search(text):
        parts = [_FINE[goal.style % 3] if mood.insisted else "That is a pity. Can you not make an exception?"]
        mood = replace(mood, insisted=True)
    if not parts and _PROPOSES.search(text):
        parts = ["I cannot say yes to that: please name the call and all its values, and nothing else."]
    if not parts:
        parts = [f"I am not sure what you mean. {wish.request}" if "?" in text else _FINE[goal.style % 3]]
    return CustomerReply(" ".join(parts), mood)


def _judged(
    goal: CustomerGoal, mood: Mood, wish: CustomerWish, later: CustomerWish | None, proposal: Proposal
) -> CustomerReply:
    """Return the reply to a proposal."""
    if not wish.wants:
        return CustomerReply(f"I do not want to change anything. {wish.request}", replace(mood, told=True))
    named = proposal._replace(values=frozenset(value for value in proposal.values if not value.startswith("$")))
    if named not in [Proposal.of(*want) for want in wish.wants]:
        return CustomerReply(f"No, that is not what I asked for. {wish.request}", replace(mood, told=True))
    if later is not None and later.after == "proposal":
        return CustomerReply(later.said, replace(mood, wish=mood.wish + 1, told=True))
    return CustomerReply(_YES[goal.style % 3], mood, agrees=True)


def _asked(text: str) -> list[str]:
    """Return what a message asks for."""
    text = _MAIL.sub("", text)  # not the address of a street
    return [slot for slot, pattern in _SLOTS.items() if pattern.search(text)]


def _asks_identity(sentence: str) -> bool:
    return _ASKS.search(sentence) is not None and _IDENTITY.search(sentence) is not None


def _identity(goal: CustomerGoal, text: str) -> str:
    if goal.email is not None and (goal.style % 2 or "name" not in text):
        return f"My e-mail address is {goal.email}."
    forgot = "I do not remember my e-mail address. " if "mail" in text and goal.email is None else ""
    return f"{forgot}My name is {goal.name} and my zip code is {goal.zip}."
