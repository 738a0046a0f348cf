r"""Compare lines in parametric form: (1, 2, 3) + t(2, 0, -1), (1 + 2t, 2, 3 - t) and x = 1 + 2t, y = 2, z = 3 - t.

Two such lines are equal if their directions are parallel and a point of one is on the other; the letter and the speed
of the parameter do not count, because a question for a line leaves them open.
"""

from __future__ import annotations

import re
from fractions import Fraction

_ASKS_LINE = re.compile(
    r"\bparametri[sz]\w*|\bparameteri[sz]\w*|\bparametric (?:form|equations?|representation)|\bvector (?:equation|form)"
    r"|\bequations? (?:of|for) (?:the|a) line",
    re.IGNORECASE,
)
_FIXED = re.compile(
    r"\bsegment|\bray\b|\bcurve|\btime\b|\bspeed\b|\bvelocity|\bwhen\b|[a-z]\s*=\s*0(?![\d.])", re.IGNORECASE
)
_VECTOR = r"(?:\([^()]*,[^()]*\)|\[[^\[\]]*,[^\[\]]*\])"
_SUM = re.compile(
    rf"(?P<base>{_VECTOR})(?P<sign>[+-])(?:(?P<t>[a-z])(?P<step>{_VECTOR})|(?P<step1>{_VECTOR})(?P<t1>[a-z]))"
    rf"|(?P<t2>[a-z])(?P<step2>{_VECTOR})\+(?P<base2>{_VECTOR})"
)
_LEFT = re.compile(r"^(?:[rlRL]\([a-z]\)|[rlRL]|\(x,y(?:,z)?\))=")
_COLUMN = re.compile(r"\\begin\{[pb]matrix\}(.*?)\\end\{[pb]matrix\}")
_COORDINATES = re.compile(r"x=(?P<x>[^=,]+),y=(?P<y>[^=,]+)(?:,z=(?P<z>[^=,]+))?")
_TERM = re.compile(
    r"(?P<sign>[+-]?)(?P<number>\d{1,9}(?:/[1-9]\d{0,8})?)?(?P<letter>[a-z])?(?:/(?P<under>[1-9]\d{0,8}))?"
)
_Line = tuple[list[Fraction], list[Fraction]]  # a point and the direction


def same_parametric_line(answer: str, gold: str, question: str) -> bool | None:
    """Compare two lines if the question asks for one, and does not fix the parameter; return None for other texts."""
    if not _ASKS_LINE.search(question) or _FIXED.search(question):
        return None
    ours, theirs = _line(answer), _line(gold)
    if ours is None or theirs is None or len(ours[0]) != len(theirs[0]):
        return None
    apart = [x - y for x, y in zip(ours[0], theirs[0], strict=True)]
    return _parallel(ours[1], theirs[1]) and _parallel(apart, theirs[1])


def _line(text: str) -> _Line | None:
    """Return a point and the direction of a line with rational numbers; None for other texts."""
    text = re.sub(r"\\text\s*\{([^{}]*)\}", r"\1", text)
    text = _COLUMN.sub(lambda m: "(" + m[1].replace(r"\\", ",") + ")", text)
    text = re.sub(r"\\(?:vec|mathbf|overrightarrow)\s*\{(\w)\}", r"\1", text)
    text = re.sub(r"\\langle", "(", re.sub(r"\\rangle", ")", text)).replace(r"\cdot", "").replace(r"\lambda", "t")
    text = re.sub(r"\\frac\{(-?\d{1,9})\}\{(\d{1,9})\}", r"\1/\2", text)
    text = _LEFT.sub("", re.sub(r"\band\b", ",", text).replace(" ", ""))
    found: _Line | None = None
    if (match := _SUM.fullmatch(text)) is not None:
        base, step = match["base"] or match["base2"], match["step"] or match["step1"] or match["step2"]
        points, steps = _linear(base[1:-1].split(",")), _linear(step[1:-1].split(","))
        if points is None or steps is None or len(points[0]) != len(steps[0]) or any(points[1]) or any(steps[1]):
            return None
        sign = -1 if match["sign"] == "-" else 1
        found = points[0], [sign * each for each in steps[0]]
    elif (named := _COORDINATES.fullmatch(text)) is not None:
        found = _linear([each for each in named.groups() if each is not None])
    elif re.fullmatch(_VECTOR, text):
        found = _linear(text[1:-1].split(","))
    return found if found is not None and any(found[1]) else None


def _linear(items: list[str]) -> _Line | None:
    """Return the constants and the factors of one letter in formulas such as 1 + 2t; None for other formulas."""
    letters, constants, factors = set[str](), list[Fraction](), list[Fraction]()
    for item in items:
        parts = {"": Fraction(0), "t": Fraction(0)}
        terms = re.findall(r"[+-]?[^+-]+", item)
        matches = [_TERM.fullmatch(term) for term in terms]
        if not terms or "".join(terms) != item:
            return None
        for match in matches:
            if match is None or not (match["number"] or match["letter"]):
                return None
            size = Fraction(match["number"] or 1) / int(match["under"] or 1)
            parts["t" if match["letter"] else ""] += -size if match["sign"] == "-" else size
            letters |= {match["letter"]} - {None}
        constants.append(parts[""])
        factors.append(parts["t"])
    return (constants, factors) if len(letters) < 2 else None


def _parallel(a: list[Fraction], g: list[Fraction]) -> bool:
    return all(a[i] * g[j] == a[j] * g[i] for i in range(len(a)) for j in range(i))
