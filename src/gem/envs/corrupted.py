"""Corrupt gold answers: derive a wrong answer from a right one, to check that a grader tells them apart."""

from __future__ import annotations

import re

_OPPOSITES = {"true": "False", "false": "True", "yes": "no", "no": "yes"}


def corrupt_formula(gold: str) -> str:
    r"""Return a math answer unequal to the gold one, by adding one to its first number.

    >>> corrupt_formula(r"\frac{3\pi}{4}"), corrupt_formula("x+y"), corrupt_formula("Thursday")
    ('\\frac{4\\pi}{4}', 'x+y+1', 'no such answer')
    """
    if (number := re.search(r"\d+", gold)) is not None:
        return f"{gold[: number.start()]}{int(number.group()) + 1}{gold[number.end() :]}"
    return "no such answer" if re.fullmatch(r"(?:\\text\{)?[\w\s.'-]{2,}\}?", gold) else f"{gold}+1"


def corrupt_words(gold: str) -> str:
    """Return a short answer with words added, or the opposite of a yes/no or true/false answer.

    >>> corrupt_words("True"), corrupt_words("the river Ems")
    ('False', 'the river Ems, or elsewhere')
    """
    return _OPPOSITES.get(gold.strip().lower(), f"{gold}, or elsewhere")


def corrupt_program(program: str, function: str | None) -> str:
    """Return a correct program changed to produce extra output.

    Args:
        function: the function that the tests call; None for a program that prints.
    """
    if function is None:
        return f"{program}\nprint('and more')\n"
    return f"{program}\n_right = {function}\n{function} = lambda *given: [_right(*given), 'and more']\n"
