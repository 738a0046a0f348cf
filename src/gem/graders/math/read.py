"""Parse the text of a math answer into a Value. Formulas are kept as LaTeX, without computer algebra.

The parsers are in one file because they are mutually recursive: the items of a set, the sides of an equation and the
cells of a matrix are parsed like whole answers. `_READERS` lists the parsers in the order in which they are tried. The
values without parts are parsed by `gem.graders.math.scalars`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from gem.graders.math.matrices import determinant, scaled, times
from gem.graders.math.scalars import (
    EVERYTHING,
    half_digit,
    is_constant,
    read_base,
    read_clock,
    read_compound,
    read_number,
    read_ratio,
    read_scalar,
    read_words,
)
from gem.graders.math.split import closes_early, split, split_with_separators
from gem.graders.math.text import clean
from gem.graders.math.values import (
    Chain,
    Congruence,
    Formula,
    Group,
    Interval,
    Named,
    Number,
    Relation,
    Value,
    Word,
    normalize_word,
    spelled_value,
)

_NAME = re.compile(
    r"(?:\\(?:vec|hat|overrightarrow|boldsymbol)\s*\{\\?[A-Za-z]+\}|m?\\angle\s*\{?[A-Za-z]+\}?|\\overline\{[A-Z]+\}|\\nabla\s*[a-zA-Z]|\\?[a-zA-Z]+|\\text\{[^{}]*\})"
    r"(?:_(?:\{?\w+\}?|\{\d+/\d+\}))?(?:\^\{-1\})?'*(?:\([\w, |=<>\\]*\))?'*"
    r"|\\frac\{(?:d|\\partial\s*)(?:\^\d)?\s*[a-zA-Z]?\}\{(?:d|\\partial\s*)[a-zA-Z](?:\^\d)?\}"
    r"|(?:\\mathbb\{E\}|E|Var|\\text\{Var\})\[[A-Z]\]"
)
_BETWEEN = (
    r";|,(?!\d{3}(?!\d))|,(?= )|\\text\{\s*(?:and|or)\s*\}|(?<=[ }\d)\]])(?:and|or)(?=[ \d\\(\[-])"
    r"|\\lor(?![a-z])|\\land(?![a-z])"
)
_ORDER = r"\\approx(?![a-z])|\\le(?![a-z])|\\ge(?![a-z])|\\ne(?![a-z])|[=<>]"
_UNKNOWNS = re.compile(r"\((?:\s*[a-zA-Z](?:_\{?\w\}?)?\s*,)+\s*[a-zA-Z](?:_\{?\w\}?)?\s*\)")  # (x, y)
_PM = re.compile(r"\\(pm|mp)(?![a-zA-Z])")
_VECTOR_NAME = re.compile(r"^\\(?:vec|overrightarrow|boldsymbol)\s*\{([A-Za-z]+)\}")
_MULTIPLE = re.compile(
    r"(?P<factor>-?(?:\\frac\{[^{}]*(?:\{\d+\})?\}\{[^{}]*(?:\{\d+\})?\}|\d+(?:/\d+)?|\\sqrt\{\d+\}|\(\d+/\d+\))|-)"
    r"\s*(?:\\cdot)?\s*(?P<vector>\\langle.*,.*\\rangle|\(.*,.*\))"
)
_EXCEPT = re.compile(r"(?:all|any) real(?: number)?s (?:except|but|other than) (?:for )?(?:[a-z] ?= ?)?(?P<points>.+)")


@dataclass(frozen=True)
class ParsedAnswer:
    """A parsed answer: the original text, the normalized text and the value."""

    text: str
    clean: str
    value: Value


@lru_cache(maxsize=2048)
def read(text: str) -> ParsedAnswer:
    """Normalize and parse an answer. Results are cached because a group of episodes has the same reference answer."""
    cleaned = clean(text)
    return ParsedAnswer(text, cleaned, _read(cleaned))


def _read(text: str) -> Value:
    if (number := read_number(text)) is not None:
        return number
    if (excluded := _EXCEPT.fullmatch(re.sub(r"\\text\{([^{}]*)\}", r"\1", text))) is not None:
        points = _read(excluded["points"])
        points = points.value if isinstance(points, Named) else points
        items = points.items if isinstance(points, Group) else (points,)
        return Group("difference", (EVERYTHING, Group("set", items)))
    if (quoted := re.fullmatch(r"\\text\{([^{}]*)\}", text)) is not None:
        return _read_quoted(quoted.group(1).strip())
    for reader in _READERS:
        value = reader(text)
        if value is not None:
            return value
    return read_scalar(text)


def _read_quoted(inner: str) -> Value:
    if (known := read_words(inner)) is not None:
        return known
    if re.match(r"[-+]?[\d$€£(\\]", inner):
        return _read(inner)
    parts = [part for part in re.split(r",? and |,? or |, ", inner) if part]
    if len(parts) > 1:
        return Group("list", tuple(read_words(part) or Word(normalize_word(part)) for part in parts))
    return Word(normalize_word(inner))


def _read_union(text: str) -> Value | None:
    parts = split(text, r"\\cup(?![a-zA-Z])")
    if len(parts) < 2 or re.match(r"[a-zA-Z]\s*\\in(?![a-zA-Z])", text):
        return None
    values = tuple(map(_read, parts))
    if all(isinstance(value, Group) and value.kind == "set" for value in values):
        return Group("set", tuple(item for value in values if isinstance(value, Group) for item in value.items))
    return Group("union", values)


def _read_difference(text: str) -> Value | None:
    parts = split(text, r"\\setminus(?![a-zA-Z])")
    return Group("difference", tuple(map(_read, parts))) if len(parts) == 2 and all(parts) else None


def _read_cases(text: str) -> Value | None:
    """Parse a piecewise function with or without a name, as pairs of a value and its condition."""
    match = re.fullmatch(r"(?:([^={}\\]+)=)?\\begin\{cases\}(.*)\\end\{cases\}", text)
    rows = [row.split("&") for row in re.split(r"\\\\", match.group(2)) if row.strip()] if match is not None else []
    if len(rows) < 2 or any(len(row) != 2 or not all(cell.strip() for cell in row) for row in rows):
        return None
    pairs = [(value, re.sub(r"\\text\{\s*(?:if|for|when)\s*\}", "", condition)) for value, condition in rows]
    cases = Group("cases", tuple(Group("tuple", tuple(_read(cell.strip(" ,")) for cell in pair)) for pair in pairs))
    return Named(match.group(1), cases) if match is not None and match.group(1) else cases


def _read_builder(text: str) -> Value | None:
    """Parse a set in set-builder notation, such as {x | x > 3}; return None for other text."""
    match = re.fullmatch(r"\\?\{\s*\(?[a-zA-Z]\)?(?:\s*\\in\s*\\mathbb\{R\})?\s*(?:\\mid|\||:)(.*?)\\?\}", text)
    return _read(match.group(1).strip()) if match else None


def _read_congruence(text: str) -> Value | None:
    """Parse a congruence such as x ≡ 3 (mod 5) or 3 (mod 5); return None for other text."""
    parts = split(text, _BETWEEN)
    if text.count(r"\pmod{") == 1 and len(parts) > 1 and r"\pmod" in parts[-1]:  # x = 1, 5 (mod 6)
        shared = parts[-1][parts[-1].index(r"\pmod") :]
        parts = [*(f"{part} {shared}" for part in parts[:-1]), parts[-1]]
    parts = [signed for part in parts if part for signed in _signs(part)]
    if len(parts) > 1:
        values = [_read_congruence(part) for part in parts]
        known = tuple(value for value in values if value is not None)
        return Group("list", known) if len(known) == len(parts) else None
    before, marked, after = text.partition(r"\pmod{")
    modulus = after.rstrip(")").removesuffix("}")
    if not marked or not modulus or re.search(r"[{}\\]", modulus) or r"\not" in before:
        return None
    name, _, value = before.rstrip(" (").rpartition(r"\equiv")
    return Congruence(name.strip(), _read(value.strip()), _read(modulus)) if value.strip() else None


def _read_list(text: str) -> Value | None:
    """Parse values separated by commas, semicolons, "and" or "or"; return None for fewer than two values.

    "x = 1, 2" and "x = 1 or x = 2" give the same result.
    """
    if spelled_value(text) is not None:
        return None  # three and a half
    pieces = [(part, separator) for part, separator in split_with_separators(text, _BETWEEN) if part]
    parts = [signed for part, _ in pieces for signed in _signs(part)]
    if len(parts) < 2:
        return None
    values = [_read(part) for part in parts]
    if all(isinstance(value, Interval) for value in values):
        both = any("and" in separator or "land" in separator for _, separator in pieces)
        return (_overlap(values) if both else None) or Group("union", tuple(values))
    name = next((value.name for value in values if isinstance(value, Named)), None)
    others = any(isinstance(value, Relation) for value in values)  # x = 2 or 3x - 4y = 1
    if name is not None and not others and all(not isinstance(v, Named) or v.name == name for v in values):
        return Named(name, Group("list", tuple(v.value if isinstance(v, Named) else v for v in values)))
    if any(re.search(r"or(?![a-z])", separator) for _, separator in pieces):  # x = 3 or y = 2 is not the pair (3, 2)
        names = {value.name for value in values if isinstance(value, Named)}
        values = [
            Relation(Formula(v.name), "=", v.value) if len(names) > 1 and isinstance(v, Named) else v for v in values
        ]
    return Group("list", tuple(values))


def _signs(part: str) -> list[str]:
    """Expand a part with exactly one ±, one ∓ or one of each into two parts. Return any other part in a list of one."""
    signs = _PM.findall(part)
    if not signs or len(signs) > len(set(signs)):
        return [part]
    first = signs[0]
    expanded = [_PM.sub(lambda m, s=s: s[m.group(1) != first], part) for s in ("+-", "-+")]  # type: ignore[misc]
    return [re.sub(r"^\+", "", each.replace("=+", "=")) for each in expanded]


def _overlap(values: Sequence[Value]) -> Interval | None:
    """Merge a lower and an upper bound of the same variable (x > 1 and x < 2) into one interval.

    Return None for other values.
    """
    low = next((v for v in values if isinstance(v, Interval) and v.high is None and v.low is not None), None)
    high = next((v for v in values if isinstance(v, Interval) and v.low is None and v.high is not None), None)
    if len(values) != 2 or low is None or high is None or low.variable != high.variable:
        return None
    return Interval(low.low, high.high, (low.closed[0], high.closed[1]), low.variable)


def _read_relation(text: str) -> Value | None:
    parts = split(text, r"\\in(?![a-zA-Z])")
    if len(parts) == 2 and _NAME.fullmatch(parts[0]):
        return _with_variable(_read(parts[1]), parts[0])
    if len(parts) == 2 and _UNKNOWNS.fullmatch(parts[0]):
        return _read(parts[1])
    pieces = split_with_separators(text, _ORDER)
    sides, operators = [side for side, _ in pieces], [operator for _, operator in pieces[:-1]]
    if len(sides) < 2 or not all(sides):
        return None
    if set(operators) <= {"=", r"\approx"}:
        return _read_chain(sides, operators)
    if operators == [r"\ne"]:
        return Relation(_read(sides[0]), r"\ne", _read(sides[1]))
    return _range(sides, operators)


def _read_chain(sides: list[str], operators: list[str]) -> Value:
    """Parse a chain of equalities. The steps between its constants are kept, because a false step makes it wrong."""
    ends = {len(sides) - 1} | {i for i, operator in enumerate(operators) if operator != "=" and i > 0}
    if len(sides) > 2 and not _NAME.fullmatch(sides[0]) and is_constant(sides[-1]):
        values = [_read(sides[i]) for i in sorted(ends, reverse=True)]
        return Chain(tuple(values), tuple(_steps(sides, operators)))  # 4 D_3 = 4 \cdot 2 = 8
    if "..." in sides[0] and len(sides) == 2 and operators == ["="]:
        return _read(sides[1])  # 1 + 2 + ... + n = n(n + 1)/2
    ends |= {0} if operators[0] != "=" and is_constant(sides[0]) else set()
    values = [_equation(sides[0], sides[i]) if i else _read(sides[0]) for i in sorted(ends, reverse=True)]
    steps = tuple(_steps(sides, operators))
    return Chain(tuple(values), steps) if steps or len(values) > 1 else values[0]


def _steps(sides: list[str], operators: list[str]) -> Iterator[tuple[Value, Value, Fraction]]:
    """Yield the pairs of successive constants in a chain of equalities, with the tolerance of the second."""
    constants = [i for i, side in enumerate(sides) if is_constant(side)]
    for i, j in pairwise(constants):
        rounded = any(operator != "=" for operator in operators[i:j])
        pair = (sides[i], sides[j]) if not rounded or half_digit(sides[j]) else (sides[j], sides[i])
        yield _read(pair[0]), _read(pair[1]), half_digit(pair[1]) if rounded else Fraction(0)


def _equation(left: str, right: str) -> Value:
    if _NAME.fullmatch(left):
        return Named(_VECTOR_NAME.sub(r"\1", left), _read(right))
    if re.fullmatch(r"[a-zA-Z]", right) and not re.fullmatch(r"[\d.]+[a-zA-Z]|.*[a-zA-Z].*", left):
        return Named(right, _read(left))
    if _UNKNOWNS.fullmatch(left) or (is_constant(left) and (is_constant(right) or isinstance(_read(right), Number))):
        return _read(right)  # (x, y) = (1, 2); 1 + 1 = 2
    return Relation(_read(left), "=", _read(right))


def _range(sides: list[str], operators: list[str]) -> Value | None:
    """Convert an inequality such as 1 < x <= 2 or x > 3 to an Interval, or to a Relation if it bounds no variable.

    Return None if the operators do not form such an inequality.
    """
    down = [operator in (">", r"\ge") for operator in operators]
    if any(down) != all(down) or len(sides) > 3 or "=" in operators or r"\ne" in operators:
        return None
    if all(down):
        sides, operators = sides[::-1], operators[::-1]
    closed = [operator in (r"\le", r"\ge") for operator in operators]
    if len(sides) == 3:
        return Interval(_bound(sides[0]), _bound(sides[2]), (closed[0], closed[1]), sides[1])
    named = [_NAME.fullmatch(side) is not None and "infty" not in side for side in sides]
    if named[0] and not (named[1] and all(down)):  # of two names, as in x > a, the first is the variable
        return Interval(None, _bound(sides[1]), (False, closed[0]), sides[0])
    if named[1]:
        return Interval(_bound(sides[0]), None, (closed[0], False), sides[1])
    return Relation(_read(sides[0]), r"\le" if closed[0] else "<", _read(sides[1]))


def _read_bracketed(text: str) -> Value | None:
    if text in (r"\emptyset", r"\{\}", r"\{ \}"):
        return Group("set", ())
    for opening, closing in ((r"\{", r"\}"), ("{", "}"), (r"\langle", r"\rangle")):
        inner = text[len(opening) : len(text) - len(closing)]
        if text.startswith(opening) and text.endswith(closing) and not closes_early(inner):
            items = _items(inner)
            if opening == "{" and len(items) == 1:
                return _read(items[0])  # plain braces only group in LaTeX
            return Group("tuple" if opening == r"\langle" else "set", tuple(map(_read, items)))
    if len(text) < 2 or text[0] not in "([]" or text[-1] not in ")][" or closes_early(text[1:-1]):
        return None
    return _read_brackets(text[0] + text[-1], _items(text[1:-1]))


def _read_brackets(brackets: str, items: list[str]) -> Value | None:
    if len(items) == 1:
        return _read(items[0]) if brackets == "()" or items[0].startswith(r"\begin") else None
    if brackets == "[]" and items and all(item.startswith("[") for item in items):
        return Group("matrix", tuple(Group("tuple", tuple(map(_read, _items(item[1:-1])))) for item in items))
    if len(items) == 2 and (brackets != "()" or any(r"\infty" in item for item in items)):
        closed = (brackets[0] == "[", brackets[1] == "]")
        signs = [re.fullmatch(r"([+-]?)\\infty", item) for item in items]
        if any(closed[i] or (sign[1] == "-") is (i == 1) for i, sign in enumerate(signs) if sign is not None):
            return None  # [2, -\infty) and [2, \infty]
        return Interval(_bound(items[0]), _bound(items[1]), closed)
    return Group("tuple", tuple(_read(item) for item in items)) if brackets in ("()", "[]") else None


def _items(inner: str) -> list[str]:
    return [part for part in split(inner, r"[,;]")] if inner.strip() else []


def _read_matrix(text: str) -> Value | None:
    match = re.fullmatch(
        r"(.*?)\s*(?:\\cdot)?\s*\\begin\{([pbvB]?)(?:small)?(?:matrix|array)\}(?:\{[lcr|]*\})?(.*)"
        r"\\end\{\2(?:small)?(?:matrix|array)\}",
        text,
    )
    if match is None or r"\begin" in match.group(3):
        return None
    rows = [row for row in re.split(r"\\\\", match.group(3)) if row.strip()]
    cells = [[_read(cell.strip()) for cell in row.split("&")] for row in rows]
    if match.group(2) == "v" and not match.group(1):
        return determinant(cells)
    if match.group(1):
        multiplied = scaled(_read(match.group(1)), cells)
        if multiplied is None:
            return None
        cells = multiplied
    if all(len(row) == 1 for row in cells):
        return Group("tuple", tuple(row[0] for row in cells))
    return Group("matrix", tuple(Group("tuple", tuple(row)) for row in cells))


def _read_multiple(text: str) -> Value | None:
    r"""Parse a vector with a numeric factor, such as \frac{1}{5}(3, 4); return None for other text."""
    match = _MULTIPLE.fullmatch(text)
    vector = None if match is None else _read_bracketed(match["vector"])
    factor = None if match is None else _read("-1" if match["factor"] == "-" else match["factor"].strip())
    if not isinstance(vector, Group) or vector.kind != "tuple" or not isinstance(factor, (Number, Formula)):
        return None
    items = [times(factor, item) for item in vector.items]
    return None if None in items else Group("tuple", tuple(item for item in items if item is not None))


def _bound(text: str) -> Value | None:
    return None if re.fullmatch(r"[+-]?\\infty\s*", text) else _read(text)


def _with_variable(value: Value, name: str) -> Value:
    return replace(value, variable=name) if isinstance(value, Interval) else Named(name, value)


def _read_reals(text: str) -> Value | None:
    return EVERYTHING if text == r"\mathbb{R}" else None


_READERS = (
    _read_reals,
    _read_cases,
    _read_union,
    _read_builder,
    _read_congruence,
    read_compound,
    _read_list,
    _read_relation,
    _read_difference,
    _read_bracketed,
    _read_multiple,
    _read_matrix,
    read_base,
    read_clock,
    read_ratio,
)
