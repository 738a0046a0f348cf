"""Wrong answers made of right ones, to see that a grader tells them apart. What makes them wrong is their making."""

from __future__ import annotations

import re

_OPPOSITES = {"true": "False", "false": "True", "yes": "no", "no": "yes"}


def spoiled_formula(gold: str) -> str:
    r"""An answer in mathematics that is not equal to the gold one: the first number in it is one larger.

    >>> spoiled_formula(r"\frac{3\pi}{4}"), spoiled_formula("x+y"), spoiled_formula("Thursday")
    ('\\frac{4\\pi}{4}', 'x+y+1', 'no such answer')
    """
    if (number := re.search(r"\d+", gold)) is not None:
        return f"{gold[: number.start()]}{int(number.group()) + 1}{gold[number.end() :]}"
    return "no such answer" if re.fullmatch(r"(?:\\text\{)?[\w\s.'-]{2,}\}?", gold) else f"{gold}+1"


def spoiled_words(gold: str) -> str:
    """A short answer with other words in it; to a question of two answers, the other one.

    >>> spoiled_words("True"), spoiled_words("the river Ems")
    ('False', 'the river Ems, or elsewhere')
    """
    return _OPPOSITES.get(gold.strip().lower(), f"{gold}, or elsewhere")


def spoiled_program(program: str, function: str | None) -> str:
    """A right program that says more than it should. function: what is called, None for one that prints."""
    if function is None:
        return f"{program}\nprint('and more')\n"
    return f"{program}\n_right = {function}\n{function} = lambda *given: [_right(*given), 'and more']\n"
