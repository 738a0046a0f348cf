"""What an answer in mathematics is: a number with its unit, a tuple, a set, an interval, an equation, a word, …

Reading an answer takes no computer algebra. A Formula keeps its LaTeX; whether two of them are equal is the engine's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from gem.graders.math_numbers import number_of
from gem.graders.math_text import clean, split
from gem.graders.math_units import FUNCTIONS, unit_of


@dataclass(frozen=True)
class Number:
    """exact: its value. unit: canonical, "" for none, "%" for percent. decimal: written with a decimal point."""

    exact: Fraction
    unit: str = ""
    decimal: bool = False


@dataclass(frozen=True)
class Formula:
    """An expression that is more than a number; latex is clean."""

    latex: str
    unit: str = ""


@dataclass(frozen=True)
class Word:
    """Text that is no mathematics: a name, yes, a letter of a multiple choice; in lower case but for single letters."""

    text: str


@dataclass(frozen=True)
class Group:
    """Several values. kind: "tuple" (ordered), "set" and "list" (unordered), "matrix" (of rows), "union", "ratio"."""

    kind: str
    items: tuple[Value, ...]


@dataclass(frozen=True)
class Interval:
    """low, high: None where it is not bounded. variable: "" where none is named."""

    low: Value | None
    high: Value | None
    closed: tuple[bool, bool]
    variable: str = ""


@dataclass(frozen=True)
class Relation:
    """left = right, left ≠ right: an equation in which no side is a plain name."""

    left: Value
    operator: str
    right: Value


@dataclass(frozen=True)
class Named:
    """name = value. name may stand alone on its side: x, f(x), A_1, Area."""

    name: str
    value: Value


@dataclass(frozen=True)
class InBase:
    """digits in a base that is written with it."""

    digits: str
    base: int


Value = Number | Formula | Word | Group | Interval | Relation | Named | InBase

_NAME = re.compile(r"(?:\\?[a-zA-Z]+|\\text\{[^{}]*\})(?:_\{?\w+\}?)?(?:\([a-zA-Z, ]+\))?'*")
_BASE = re.compile(r"([0-9A-F]+)_(?:\{?\s*(?:\\text\{)?\s*(\w+)\s*\}*)")
_BASES = {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "sixteen": 16,
}

_UNIT_TAIL = re.compile(
    r"^(?P<number>.*?[\d}\])]|.*\\pi)\s*"
    r"(?P<unit>\^\\circ|%|\\text\{\s*[^{}]*\}|(?<=\s)[a-zA-Z$¢/][a-zA-Z/ .]*|[a-zA-Z]{2,}[a-zA-Z/ .]*)"
    r"(?P<power>\^\{?[23]\}?)?\s*$"
)
_ANGLE_OF = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)")  # whose argument the degrees are, and no unit of the value
_SHORT_WORDS = frozenset({"yes", "no", "true", "false", "all", "both", "none"})
_COUNTS = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905


def read(text: str) -> Value:
    """The value that an answer's text stands for."""
    return _read(clean(text))


def _read(text: str) -> Value:
    for reader in (_read_union, _read_builder, _read_list, _read_relation, _read_bracketed, _read_matrix, _read_base):
        value = reader(text)
        if value is not None:
            return value
    return _read_scalar(text)


def _read_union(text: str) -> Value | None:
    parts = split(text, r"\\cup(?![a-zA-Z])")
    return Group("union", tuple(map(_read, parts))) if len(parts) > 1 else None


def _read_builder(text: str) -> Value | None:
    """A set given by its condition: {x | x > 3}."""
    match = re.fullmatch(r"\\?\{\s*\(?[a-zA-Z]\)?(?:\s*\\in\s*\\mathbb\{R\})?\s*(?:\\mid|\||:)(.*?)\\?\}", text)
    return _read(match.group(1).strip()) if match else None


def _read_list(text: str) -> Value | None:
    """Several values side by side, with commas, semicolons, "and", "or"; x = 1, 2 and x = 1 or x = 2 alike."""
    parts = split(
        text, r";|,(?!\d{3}(?!\d))|,(?= )|\\text\{\s*(?:and|or)\s*\}|(?<=[ }\d)])(?:and|or)(?=[ \d\\(-])|\\lor(?![a-z])"
    )
    parts = [part for part in parts if part]
    if len(parts) > 1:
        values = [_read(part) for part in parts]
        name = next((value.name for value in values if isinstance(value, Named)), None)
        if name is not None and all(not isinstance(v, Named) or v.name == name for v in values):
            return Named(name, Group("list", tuple(v.value if isinstance(v, Named) else v for v in values)))
        return Group("list", tuple(values))
    if text.count(r"\pm") == 1:
        return _read(", ".join(re.sub(r"^\+", "", text.replace(r"\pm", sign)) for sign in "+-"))
    return None


def _read_relation(text: str) -> Value | None:
    parts = split(text, r"\\in(?![a-zA-Z])")
    if len(parts) == 2 and _NAME.fullmatch(parts[0]):
        return _with_variable(_read(parts[1]), parts[0])
    operators = re.findall(r"\\le(?![a-z])|\\ge(?![a-z])|\\ne(?![a-z])|[=<>]", text)
    sides = split(text, r"\\le(?![a-z])|\\ge(?![a-z])|\\ne(?![a-z])|[=<>]")
    if len(sides) < 2 or len(operators) != len(sides) - 1 or not all(sides):
        return None
    if operators == ["="]:
        return _equation(*sides)
    if len(sides) > 2 and set(operators) == {"="}:
        return _equation(sides[0], sides[-1])  # a chain of equalities: what is found stands at its end
    if operators == [r"\ne"]:
        return Relation(_read(sides[0]), r"\ne", _read(sides[1]))
    return _range(sides, operators)


def _equation(left: str, right: str) -> Value:
    if _NAME.fullmatch(left):
        return Named(left, _read(right))
    if re.fullmatch(r"[a-zA-Z]", right) and not re.fullmatch(r"[\d.]+[a-zA-Z]|.*[a-zA-Z].*", left):
        return Named(right, _read(left))
    return Relation(_read(left), "=", _read(right))


def _range(sides: list[str], operators: list[str]) -> Value | None:
    """1 < x <= 2, x > 3: an interval of its variable."""
    down = [operator in (">", r"\ge") for operator in operators]
    if any(down) != all(down) or len(sides) > 3 or "=" in operators or r"\ne" in operators:
        return None
    if all(down):
        sides, operators = sides[::-1], operators[::-1]
    closed = [operator in (r"\le", r"\ge") for operator in operators]
    if len(sides) == 3:
        return Interval(_bound(sides[0]), _bound(sides[2]), (closed[0], closed[1]), sides[1])
    if _NAME.fullmatch(sides[0]) and "infty" not in sides[0]:
        return Interval(None, _bound(sides[1]), (False, closed[0]), sides[0])
    if _NAME.fullmatch(sides[1]) and "infty" not in sides[1]:
        return Interval(_bound(sides[0]), None, (closed[0], False), sides[1])
    return Relation(_read(sides[0]), r"\le" if closed[0] else "<", _read(sides[1]))


def _read_bracketed(text: str) -> Value | None:
    if text in (r"\emptyset", r"\{\}", r"\{ \}"):
        return Group("set", ())
    for opening, closing in ((r"\{", r"\}"), ("{", "}"), (r"\langle", r"\rangle")):
        if text.startswith(opening) and text.endswith(closing) and _encloses(text, len(opening), len(closing)):
            inner = text[len(opening) : -len(closing)]
            kind = "tuple" if opening == r"\langle" else "set"
            return Group(kind, tuple(_read(part) for part in _items(inner)))
    if len(text) < 2 or text[0] not in "([" or text[-1] not in ")]" or not _encloses(text, 1, 1):
        return None
    items = _items(text[1:-1])
    if len(items) == 1:
        return _read(items[0]) if text[0] + text[-1] == "()" else None
    if len(items) == 2 and (text[0] + text[-1] != "()" or any(r"\infty" in item for item in items)):
        return Interval(_bound(items[0]), _bound(items[1]), (text[0] == "[", text[-1] == "]"))
    return Group("tuple", tuple(_read(item) for item in items))


def _items(inner: str) -> list[str]:
    return [part for part in split(inner, r"[,;]")] if inner.strip() else []


def _encloses(text: str, opening: int, closing: int) -> bool:
    """Whether the first bracket of a text is closed by its last."""
    depth = 0
    for character in text[opening : len(text) - closing]:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return False
    return True


def _read_matrix(text: str) -> Value | None:
    match = re.fullmatch(r"\\begin\{([pbvB]?)(?:matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1(?:matrix|array)\}", text)
    if match is None:
        return None
    rows = [row for row in re.split(r"\\\\", match.group(2)) if row.strip()]
    cells = [[_read(cell.strip()) for cell in row.split("&")] for row in rows]
    if all(len(row) == 1 for row in cells):
        return Group("tuple", tuple(row[0] for row in cells))
    return Group("matrix", tuple(Group("tuple", tuple(row)) for row in cells))


def _read_base(text: str) -> Value | None:
    match = _BASE.fullmatch(text)
    if match is None:
        return None
    digits, word = match.groups()
    base = _BASES.get(word, int(word) if word.isdigit() else 0)
    return InBase(digits, base) if 2 <= base <= 36 and all(int(d, 36) < base for d in digits) else None


def _read_scalar(text: str) -> Value:
    if (quoted := re.fullmatch(r"\\text\{(\s*[\d$][^{}]*)\}", text)) is not None:
        return _read_scalar(quoted.group(1).strip())  # \text{5 apples}
    ratio = re.fullmatch(r"(\d+)\s*:\s*(\d+)", text)
    if ratio and int(ratio.group(2)):
        return Number(Fraction(int(ratio.group(1)), int(ratio.group(2))))
    if (currency := re.fullmatch(r"([+-]?)\s*\\?[$£€]\s*(.+)", text)) is not None:
        value = _read_scalar(currency.group(1) + currency.group(2))
        return replace(value, unit="$") if isinstance(value, (Number, Formula)) and not value.unit else value
    if (number := number_of(text)) is not None:
        return Number(number, decimal="." in text)
    tail = _UNIT_TAIL.fullmatch(text)
    if tail is not None and not re.search(r"[a-zA-Z]", re.sub(r"\\[a-zA-Z]+", "", tail.group("number"))):
        unit = unit_of(tail.group("unit"), tail.group("power"))
        if unit is not None and not (unit == "degree" and _ANGLE_OF.search(text)):
            value = _read_scalar(tail.group("number").strip())
            if isinstance(value, (Number, Formula)) and not value.unit:
                return replace(value, unit=unit)
    if text.lower() in _COUNTS:
        return Number(Fraction(_COUNTS.index(text.lower())))
    return Word(_word(text)) if _is_word(text) else Formula(text)


def _is_word(text: str) -> bool:
    if re.fullmatch(r"\(?\s*\\?text\{[^{}]*\}\s*\)?", text) or re.fullmatch(r"\(?[A-Z]\)?", text):
        return True
    letters = re.sub(r"\\text\{|\}|[ .,'’-]", "", text)
    if text.lower() in _SHORT_WORDS or re.fullmatch(r"[A-Z][a-z]{2,}", text):
        return True
    return len(letters) > 3 and letters.isalpha() and letters.lower() not in FUNCTIONS


def _word(text: str) -> str:
    word = re.sub(r"\\text\{|[{}().$]", "", text).strip()
    return word if len(word) == 1 else re.sub(r"\s+", " ", word).casefold()


def _bound(text: str) -> Value | None:
    return None if re.fullmatch(r"[+-]?\\infty\s*", text) else _read(text)


def _with_variable(value: Value, name: str) -> Value:
    return replace(value, variable=name) if isinstance(value, Interval) else Named(name, value)
