r"""Check that an answer is worked out: that it does not repeat the question's operations for the grader to carry out.

>>> restates(r"\log_{2}8", r"What is $\log_2 8$?", ["3"]), restates("2+1", r"What is $\log_2 8$?", ["3"])
('the answer repeats an expression of the question', None)
>>> unfinished("12+34", "46"), unfinished("12+34 = 46", "46"), unfinished("(x+1)(x+2)", "x^{2}+3x+2")
('the answer still has operations to carry out', None, 'the answer still has operations to carry out')
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from gem._internal.latex import plain_forms

_BINARY = r"(?<=[\w)}\]!%])\s*"
_TIMES = r"(?:\\times|\\cdot|[*×·])"
_OPERATION = re.compile(
    rf"{_BINARY}[-+−]|\\pm|±|{_TIMES}(?!\s*(?:\\?sqrt|\\?pi|[√π]|10\b))|(?<=[\d)}}])\s*(?:\^(?!\s*{{?\s*\\?circ)|\*\*|!)"
    r"|\\?\b(?:log|ln|gcd|lcm|binom|sum|prod|max|min|b?mod|pmod|int)(?![a-zA-Z])|\\(?:log|ln|binom|sum|prod|lfloor|lceil)"
    r"|\\?\b(?:sin|cos|tan|cot|sec|csc)(?![a-zA-Z])"
)
_NAME = re.compile(r"\W*[a-zA-Z]+\W*|.*[a-zA-Z]\s*\([^()]*\)+\s*|\W*[a-z](?:\s*,\s*[a-z])*\W*")
_ROOT = re.compile(r"\\?sqrt|√")
_DIVISION = re.compile(r"\\[cdt]?frac|/\s*(?=[\d(\\{])|\\div|÷")
_PRODUCT = re.compile(r"[\w)}]\s*(?:\\times|\\cdot|\*)?\s*(?:\\left\s*)?\(|\)\s*(?:\^|\*|\\cdot|\\times|\d|[a-z])")

# Of restates(). The tokens have no brackets, so that (12+34) and \sin(60^\circ) are 12+34 and \sin 60^\circ.
_WORD = re.compile(r"\\?[a-zA-Z]+|\d+(?:\.\d+)?|\*\*|[<>!]=|[^\s()\[\]{}$.?]")
_FUNCTIONS = frozenset(
    "sqrt binom log ln lg exp sin cos tan cot sec csc asin acos atan gcd lcm max min mod bmod pmod det".split()  # noqa: SIM905
)
_SIGNS = frozenset(["+", "-", "−", "±", "*", "×", "·", "/", "÷", "**", "!", "|", "√", "∑", "∫"])
_COMMANDS = re.compile(
    r"\\(?:sum|prod|int|lim|lfloor|lceil|overline|dot|binom|cdot|bmod|pmod|mod|gcd|lcm|max|min|lg|d?det|cup|cap|choose)"
)
_PARTS = re.compile(r"(?<!\\)[,;]|\band\b|\bor\b|\\quad")
_NAMED = re.compile(r"\\?[a-zA-Z]+(?:_\w)?'*(?:\s+[a-zA-Z])*")  # f, x_1, f(x), \angle ABC, as tokens
_OPTIONS = re.compile(r"(?:\(A\)|(?<![\w\\$])A\s*[.)、．:])(?=.*(?:\(B\)|(?<![\w\\$])B\s*[.)、．:]))", re.DOTALL)


def restates(answer: str, question: str, golds: Sequence[str]) -> str | None:
    r"""Return a reason if a part of the answer is copied from the question with operations in it, else None.

    Texts are compared without styles, spaces and brackets. A part that a gold answer has as well, in any order, is not
    copied, nor is one of the options of the question, a fraction in lowest terms or a part of a chain of equalities
    of which another member is worked out.
    """
    parts = [part for part in _PARTS.split(answer) if _has_operation(_words(part))]
    if not parts:
        return None
    asked = _joined(_words(_OPTIONS.split(question, maxsplit=1)[0]))
    forms = [
        _words(text) for gold in golds for piece in [gold, *_PARTS.split(gold)] for text in [piece, *piece.split("=")]
    ]
    copied = any(
        _is_copied(part, asked, forms)
        or all(
            _is_copied(each, asked, forms) for each in part.split("=") if not _NAMED.fullmatch(" ".join(_words(each)))
        )
        for part in parts
    )
    return "the answer repeats an expression of the question" if copied else None


def _is_copied(part: str, asked: str, forms: list[list[str]]) -> bool:
    words = _words(part)
    if not _has_operation(words) or _is_fraction(part) or _joined(words) not in asked:
        return False
    return not any(Counter(words) == Counter(form) or _joined(words) in _joined(form) for form in forms)


def _words(text: str) -> list[str]:
    forms = plain_forms(text)
    return _WORD.findall(forms[1] if len(forms) > 1 else text)


def _joined(words: list[str]) -> str:
    return f" {' '.join(words)} "


def _has_operation(words: list[str]) -> bool:
    return any(
        word in _FUNCTIONS or _COMMANDS.fullmatch(word) or (word in _SIGNS and at) for at, word in enumerate(words)
    )


def _is_fraction(part: str) -> bool:
    match = re.fullmatch(r"-?(\d+)/(\d+)", "".join(_words(part)))
    return match is not None and "÷" not in part and r"\div" not in part and math.gcd(int(match[1]), int(match[2])) == 1


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
