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
from typing import NamedTuple

from gem.parsing import plain_forms

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

# For restates(). The words have no brackets, so that (12+34) and \sin(60^\circ) are 12+34 and \sin 60^\circ.
_WORD = re.compile(r"\\?[a-zA-Z]+|\d+(?:\.\d+)?|\*\*|[<>!]=|[^\s()\[\]{}$.?]")
_ASCII = {**dict.fromkeys("×·⋅∙", "*"), "−": "-", "÷": "/", "≤": "<=", "≥": ">=", "√": " sqrt ", "²": "**2", "³": "**3"}
_FUNCTIONS = frozenset(
    [
        *("sqrt", "log", "ln", "lg", "exp", "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "gcd"),
        *("lcm", "max", "min", "mod", "bmod", "pmod", "det", "binom", "choose", "sum", "prod", "int", "lim"),
        *("lfloor", "lceil"),
    ]
)
_SIGNS = frozenset(["+", "-", "±", "*", "/", "**", "!", "|"])
_UNION = re.compile(r"\\[{}]\s*\\(?:cup|cap|setminus)")  # of sets; that of intervals is a notation
_DIVIDED = re.compile(r"÷|\\div(?![a-z])")
_PARTS = re.compile(r"(?<!\\)[,;]|\b(?:and|or|is|are)\b|\\quad")
_NAME_OF_VALUE = re.compile(r"\\?[a-zA-Z]+(?: _ ?\w)?(?: ')*(?: [a-zA-Z])*")
_TASK = re.compile(
    r"\b(?:convert|express|write|rewrite|change|round|simplify|reduce|evaluate|compute|calculate|expand|factor"
    r"|what is) (?:the (?:[a-z]+ )?(?:number|fraction|decimal|percentage|expression|angle|ratio|polynomial) )?"
    r"(?:\$([^$]+)\$|(\S*\d\S*))|:\s*\$([^$]+)\$[\s.?]*\Z",
    re.IGNORECASE,
)
_OPTIONS = re.compile(r"(?:\(A\)|(?<![\w\\$])A\s*[.)、．:])(?=.*(?:\(B\)|(?<![\w\\$])B\s*[.)、．:]))", re.DOTALL)


def restates(answer: str, question: str, golds: Sequence[str]) -> str | None:
    r"""Return a reason if a part of the answer is copied from the question and is not worked out, else None.

    Copied is an expression with operations that occurs in the question, and the one that the question says to convert
    or to evaluate. Texts are compared without styles, spaces and brackets. What a gold answer has as well, in any
    order, is worked out. So are the options of the question, fractions in lowest terms, and chains of equalities of
    which one member is worked out.
    """
    if answer.strip().isdigit():
        return None
    question = _OPTIONS.split(question, maxsplit=1)[0]
    asked = _joined(_words(question))
    task = _Task(
        words=asked,
        objects=[_words(match[match.lastindex or 0].rstrip(".?")) for match in _TASK.finditer(question)],
        golds=[words for gold in golds for part in [gold, *_PARTS.split(gold)] for words in _forms(part, asked)],
        divided=any(map(_DIVIDED.search, golds)),
    )
    return "the answer repeats an expression of the question" if any(map(task.has, _PARTS.split(answer))) else None


class _Task(NamedTuple):
    """A question, and the forms in which its gold answers and their parts are written."""

    words: str
    objects: list[list[str]]
    golds: list[list[str]]
    divided: bool

    def has(self, part: str) -> bool:
        """Return whether a part of an answer is copied: an equation, or each of its sides, other than a name."""
        sides = [side for side in part.split("=") if not _is_name(_words(side))]
        equation = len(sides) > 1 and self._has_side(part)
        return equation or (bool(sides) and all(map(self._has_side, sides)))

    def _has_side(self, text: str) -> bool:
        words, divided = _words(text), _DIVIDED.search(text) is not None
        if not words or (len(words) == 1 and words[0].isdigit()):
            return False
        if divided is self.divided and any(_is_same(words, gold) for gold in self.golds):
            return False
        if words in self.objects:
            return True
        operation = divided or (_has_operation(words) and not _is_fraction(words)) or _UNION.search(text) is not None
        return operation and _joined(words) in self.words


def _forms(gold: str, asked: str) -> list[list[str]]:
    r"""Return the words of a gold answer and of its sides.

    A side that the question has is left out if another one is its value: \log_2 8 of \log_2 8 = 3.
    """
    whole, sides = _words(gold), list(map(_words, re.split(r"=|\\approx|≈", gold)))
    found = [side for side in sides if not (_has_operation(side) and _joined(side) in asked)]
    values = [side for side in found if not any(len(word) == 1 and word.isalpha() for word in side)]
    return found if values and len(found) < len(sides) and _joined(whole) not in asked else [whole, *sides]


def _words(text: str) -> list[str]:
    forms = plain_forms(text)
    text = forms[1] if len(forms) > 1 else text
    return _WORD.findall("".join(_ASCII.get(character, character) for character in text))


def _joined(words: list[str]) -> str:
    return f" {' '.join(words)} "


def _is_same(words: list[str], gold: list[str]) -> bool:
    return Counter(words) == Counter(gold) or _joined(words) in _joined(gold)


def _has_operation(words: list[str]) -> bool:
    before = ""
    for word in words:
        if word.lstrip("\\") in _FUNCTIONS:
            return True
        if word in _SIGNS and (before[-1:].isalnum() or before in ("%", "°", "!", "'", "|")):
            return True  # and not a sign of a number
        before = word
    return False


def _is_name(words: list[str]) -> bool:
    r"""Return whether an expression names a value, as x, x_1, f(x) and \angle ABC do."""
    return _NAME_OF_VALUE.fullmatch(" ".join(words)) is not None and not _has_operation(words)


def _is_fraction(words: list[str]) -> bool:
    """Return whether an expression is a fraction in lowest terms."""
    match = re.fullmatch(r"(?:- )?(\d+) / (\d+)", " ".join(words))
    return match is not None and math.gcd(int(match[1]), int(match[2])) == 1


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
