r"""Check that an answer is worked out: that it does not repeat the question's operations for the grader to carry out.

>>> unfinished("12+34", "46"), unfinished("12+34 = 46", "46"), unfinished("(x+1)(x+2)", "x^{2}+3x+2")
('the answer still has operations to carry out', None, 'the answer still has operations to carry out')
"""

from __future__ import annotations

import re

_BINARY = r"(?<=[\w)}\]!%])\s*"
_TIMES = r"(?:\\times|\\cdot|[*×·])"
_OPERATION = re.compile(
    rf"{_BINARY}[-+−]|\\pm|±|{_TIMES}(?!\s*(?:\\?sqrt|\\?pi|[√π]|10\b))|(?<=[\d)}}])\s*(?:\^(?!\s*{{?\s*\\?circ)|\*\*|!)"
    r"|\\?\b(?:log|ln|gcd|lcm|binom|sum|prod|max|min|b?mod|pmod|int)(?![a-zA-Z])|\\(?:log|ln|binom|sum|prod|lfloor|lceil)"
)
_NAME = re.compile(r"\W*[a-zA-Z]+\W*|.*[a-zA-Z]\s*\([^()]*\)+\s*|\W*[a-z](?:\s*,\s*[a-z])*\W*")
_ROOT = re.compile(r"\\?sqrt|√")
_DIVISION = re.compile(r"\\[cdt]?frac|/\s*(?=[\d(\\{])|\\div|÷")
_PRODUCT = re.compile(r"[\w)}]\s*(?:\\times|\\cdot|\*)?\s*(?:\\left\s*)?\(|\)\s*(?:\^|\*|\\cdot|\\times|\d|[a-z])")


def unfinished(answer: str, gold: str) -> str | None:
    """Return a reason if the answer has more operations to carry out than the gold answer, else None.

    Signs, multiples of pi, one root and one fraction per root and fraction of the gold answer, and powers of variables
    and of units are no operations. In a chain of equalities, one member that is worked out is enough, other than a name
    such as f(2).
    """
    members = [member for member in re.split(r"=|\\approx|≈", answer) if not _NAME.fullmatch(member)]
    if any(_is_worked_out(member, gold) for member in members or [answer]):
        return None
    return "the answer still has operations to carry out"


def _is_worked_out(answer: str, gold: str) -> bool:
    if re.search(r"(?<![\\a-zA-Z])x", gold):  # an expanded polynomial
        return not _PRODUCT.search(answer.strip().strip("()"))
    divisions = max(_count(_DIVISION, gold), 1 if "." in gold else 0)
    return (
        _count(_OPERATION, answer) <= _count(_OPERATION, gold)
        and _count(_ROOT, answer) <= _count(_ROOT, gold)
        and _count(_DIVISION, answer) <= divisions
    )


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))
