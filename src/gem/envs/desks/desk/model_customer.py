"""The prompt of a model that plays the customer of a desk, and how its replies are understood."""

from __future__ import annotations

import re

from gem.envs.desks.desk.user import CustomerGoal, CustomerWish

_YES = re.compile(r"\W*yes\b", re.IGNORECASE)
_RULES = """Rules:
- You are the customer. Write only your next message, in one to three sentences, without a heading.
- You know only what is written here. Say a value when the agent asks for it, and invent none.
- When the agent asks you to confirm a change: begin with the word Yes if it is a change that you agree to, named with
  all these values and no others; amounts of money may be added. Else begin with the word No, and say what is wrong.
- If the agent refuses, ask once for an exception, then accept it.
- When the agent asks whether there is anything else, and there is not, say that this was all."""
_PHONE = """
- You hold the phone and have functions for it. Use one only if the agent asks you for just that step, tell the agent
  what the function returned, and never say that you took a step without calling its function."""


def customer_prompt(goal: CustomerGoal, *, phone: bool) -> str:
    """Return the system message of the model, with the hidden goal.

    Args:
        goal: of the customer.
        phone: whether the customer has functions for a phone.
    """
    email = f"Your e-mail address is {goal.email}." if goal.email else "You do not remember your e-mail address."
    lines = [f"You talk to a service desk. Your name is {goal.name} and your zip code is {goal.zip}. {email}"]
    lines += [_wish(wish) for wish in goal.wishes]
    return "\n".join(lines) + "\n" + _RULES + (_PHONE if phone else "")


def agrees(reply: str) -> bool:
    """Whether a reply agrees to the change that the agent asked about.

    >>> agrees("Yes, go ahead."), agrees("No. I said yes to another one.")
    (True, False)
    """
    return _YES.match(reply) is not None


def _wish(wish: CustomerWish) -> str:
    begin = {
        "start": "What you want: ",
        "proposal": f'When the agent asks you to confirm this change, do not agree. Say "{wish.said}" From then on: ',
        "more": f'When the agent asks whether there is anything else, say "{wish.said}" From then on: ',
    }
    changes = [f"{want.function} with {', '.join(want.values)}" for want in wish.wants]
    agreed = f"You agree to this change: {'; '.join(changes)}." if changes else "You agree to no change."
    asked = [f'If asked for the {name}: "{said}"' for name, said in wish.details.items()]
    return " ".join([begin[wish.after] + wish.request, agreed, *asked])
