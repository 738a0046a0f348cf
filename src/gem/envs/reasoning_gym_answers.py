r"""Which answers may reach which scorer of reasoning-gym.

Nine scorers evaluate the answer as Python, by eval() or sympy's parse_expr(), and one makes a fraction of it. Here is
what an answer to those may be written with: enough for every right answer, and too little for a call, an attribute or a
number that takes for ever. Any other answer is wrong without being scored.
"""

from __future__ import annotations

import re

LONGEST = 20_000  # characters of an answer to any question, which is twenty times the longest right one

_LISTS = re.compile(r"""[\w\s,.\[\]'"+-]*""")
_ARITHMETIC = re.compile(r"(?:(?<!\d)\d{1,20}(?!\d)|(?<!\*)\*(?!\*)|[\s+/().-])*")
_FRACTION = re.compile(r"[\d\s./+-]{0,200}(?:[eE]-?\d{1,2})?")
_FORMULA = re.compile(
    r"(?:(?<![A-Za-z])(?:[A-Za-z]|a?(?:sin|cos|tan)h?|sec|csc|cot|exp|log|ln|sqrt|erf|pi|Abs)(?![A-Za-z])"
    r"|(?<!\d)\d{1,40}(?!\d)|[\s+*/().,-])*"
)
_LONGEST_FORMULA = 2_000
_TOWER = re.compile(r"\*\*\s*[(-]*\s*\d{4}|\*\*\s*\(*\s*-?[\w.]+\s*\)*\s*\*\*")  # x**9999, x**y**z

_WRITTEN_WITH = {
    **dict.fromkeys(["binary_matrix", "n_queens", "spiral_matrix", "string_insertion"], _LISTS),
    **dict.fromkeys(["countdown", "puzzle24"], _ARITHMETIC),
    **dict.fromkeys(["intermediate_integration", "polynomial_multiplication", "simple_integration"], _FORMULA),
    "coin_flip": _FRACTION,
}


def may_be_scored(name: str, answer: str) -> bool:
    """Whether the scorer of a generator may see an answer."""
    pattern = _WRITTEN_WITH.get(name)
    if len(answer) > (LONGEST if pattern in (None, _LISTS) else _LONGEST_FORMULA):
        return False
    if pattern is None:
        return True
    return pattern.fullmatch(answer) is not None and not (pattern is _FORMULA and _TOWER.search(answer))


def takes_algebra(name: str) -> bool:
    """Whether the scorer works with formulas, which may take for ever: it belongs into a worker that can be killed."""
    return _WRITTEN_WITH.get(name) is _FORMULA
