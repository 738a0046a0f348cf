"""Corrupt gold answers: derive a wrong answer from a right answer, to check that a grader rejects wrong answers."""

from __future__ import annotations

import re

_OPPOSITES = {"true": "False", "false": "True", "yes": "no", "no": "yes"}


def corrupt_formula(gold: str) -> str:
    r"""Return a wrong math answer: the gold answer with its first integer increased by one.

    Without an integer, return "no such answer" for a word and append "+1" to a formula.

    >>> corrupt_formula(r"\frac{3\pi}{4}"), corrupt_formula("x+y"), corrupt_formula("Thursday")
    ('\\frac{4\\pi}{4}', 'x+y+1', 'no such answer')
    """
    if (number := re.search(r"\d+", gold)) is not None:
        return f"{gold[: number.start()]}{int(number.group()) + 1}{gold[number.end() :]}"
    return "no such answer" if re.fullmatch(r"(?:\\text\{)?[\w\s.'-]{2,}\}?", gold) else f"{gold}+1"


def corrupt_words(gold: str) -> str:
    """Return a wrong short answer: the opposite of a yes/no or true/false answer, else the answer with words added.

    >>> corrupt_words("True"), corrupt_words("the river Ems")
    ('False', 'the river Ems, or elsewhere')
    """
    return _OPPOSITES.get(gold.strip().lower(), f"{gold}, or elsewhere")


def corrupt_program(program: str, function: str | None) -> str:
    """Return a correct program with a change that makes it produce additional output.

    Args:
        function: the name of the function that the tests call; None if the tests check what the program prints.
    """
    if function is None:
        return f"{program}\nprint('and more')\n"
    return f"{program}\n_right = {function}\n{function} = lambda *given: [_right(*given), 'and more']\n"
