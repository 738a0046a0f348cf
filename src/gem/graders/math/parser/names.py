"""Read names, calls, numbers in another base, times and compound quantities."""

from __future__ import annotations

from fractions import Fraction
from itertools import takewhile

from gem.graders.math.parser.reader import Reader
from gem.graders.math.parser.vocabulary import BASES, CALLED, DECLARING, END, RELATIONS, NotMath, flat
from gem.graders.math.tree import InBase, Num, Op, Phrase, Quantity, Relation, Sym, Tree, is_op, joined
from gem.graders.math.units import conversion, read_unit


def call(p: Reader) -> Tree:
    """Read a name, or a function of it as in f(x+1), or a coefficient such as C_6^3."""
    first = p.next.text
    if first in ("C", "A", "P") and p.peek().text in ("_", "^") and (found := chosen(p, first)) is not None:
        return found
    if first == "C" and p.peek().text == "(" and p.peek(2).kind == "number" and p.peek(3).text == ",":
        p.at += 2
        return Op("binom", pair_in_brackets(p))
    name = p.name()
    base = name.name.rstrip("'")
    if p.next.text == "^" and flat(p.peek().inner) == "-1" and base in CALLED:
        p.at += 2
        name = Sym(f"{name.name}^-1")
    bracket = p.next.text
    if bracket in ("(", "[") and not p.next.spaced and (base in CALLED or (base in ("g", "h") and is_variable(p))):
        p.at += 1
        p.bars += 1
        arguments = p.items()
        if p.take("|"):
            arguments = Op("given", (arguments, p.items()))
        p.bars -= 1
        p.expect(")", "]")
        given = arguments.args if is_op(arguments, "list") else (arguments,)
        return Op("call", (name, *given))
    return name


def pair_in_brackets(p: Reader) -> tuple[Tree, Tree]:
    """Read two items and the closing bracket."""
    inside = p.items()
    p.expect(")")
    if not is_op(inside, "list") or len(inside.args) != 2:
        raise NotMath("two arguments")
    return inside.args[0], inside.args[1]


def is_variable(p: Reader) -> bool:
    """Return whether a bracket holds a formula of one of the usual variables, as in g(x+1)."""
    inner = takewhile(lambda token: token.text != ")", p.tokens[p.at :])
    letters = {token.text for token in inner if token.kind in ("letter", "word")}
    return len(letters) == 1 and letters <= {"n", "t", "x", "y", "z"}


def chosen(p: Reader, letter: str) -> Tree | None:
    """Read C_6^3, C^3_6 and A_5^2; None for other text."""
    mark, p.at = p.at, p.at + 1
    scripts: dict[str, Tree] = {}
    try:
        while len(scripts) < 2 and (sign := p.take("_", "^")):
            scripts[sign] = p.script()
    except NotMath:
        scripts = {}
    lower, upper = scripts.get("_"), scripts.get("^")
    if lower is None or upper is None or isinstance(lower, Phrase) or isinstance(upper, Phrase):
        p.at = mark
        return None
    if isinstance(lower, Num) and isinstance(upper, Num) and lower.exact < upper.exact:
        p.at = mark
        return None
    return Op("binom" if letter == "C" else "permutations", (lower, upper))


def prefixed(p: Reader) -> Tree:
    """Read {}_{10}C_5 and {}^{10}C_5 after the empty group."""
    p.at += 1
    top = p.script()
    letter = p.next.text
    if letter not in ("C", "P") or p.peek().text != "_":
        raise NotMath("a script before a value")
    p.at += 2
    return Op("binom" if letter == "C" else "permutations", (top, p.script()))


def repeating(p: Reader, text: str) -> Tree | None:
    r"""Read the period of 0.\overline{3}, 0.(3), 0.1\dot{6} and 0.333…; None for other numbers."""
    decimals = text.partition(".")[2]
    mark = p.at
    if "." not in text and p.next.text == "." and p.peek().text in ("overline", "dot", "("):
        p.at += 1
    elif "." not in text:
        return None
    period = ""
    if p.next.text in ("overline", "dot") and p.peek().kind in ("group", "number"):
        period = flat([p.peek()])
        p.at += 2
    elif p.next.text == "(" and not p.next.spaced and p.peek().kind == "number" and p.peek(2).text == ")":
        period = p.peek().text
        p.at += 3
    elif p.next.text == "…" and len(decimals) >= 3:
        sizes = range(1, len(decimals) // 2 + 1)
        repeated = (decimals[-n:] for n in sizes if decimals.endswith(decimals[-n:] * (2 if n > 1 else 3)))
        period = next(repeated, "")
        p.at += 1
    if not period.isdecimal():
        p.at = mark
        return None
    head = text.partition(".")[0] or "0"
    scale = 10 ** len(decimals)
    return Num(Fraction(int(head + decimals), scale) + Fraction(int(period), (10 ** len(period) - 1) * scale))


def digits_in_base(p: Reader, text: str) -> Tree | None:
    """Read digits above nine, as in 3A_{16}."""
    end = p.at
    while end < len(p.tokens) and p.tokens[end].kind in ("letter", "word", "number") and not p.tokens[end].spaced:
        text += p.tokens[end].text
        end += 1
    if end >= len(p.tokens) or p.tokens[end].text != "_":
        return None
    mark, p.at = p.at, end + 1
    found = in_base(p, text)
    if found is None:
        p.at = mark
    return found


def in_base(p: Reader, text: str) -> Tree | None:
    """Read the base after an underscore; None if it is none, or the digits do not fit it."""
    name = flat([p.next]).strip("() ")
    base = BASES.get(name, int(name) if name.isdecimal() else 0)
    digits = text.upper()
    if not 2 <= base <= 36 or not (text.isalnum() and text.isascii()) or any(int(d, 36) >= base for d in digits):
        return None
    p.at += 1
    return InBase(digits, base)


def declaration(p: Reader) -> Tree | None:
    """Read "where k is an integer" as k ∈ ℤ, and "for some constant c" as c ∈ ℝ; None for other conditions."""
    end, names, kind = p.at, list[Sym](), Sym("ℝ")
    while end < len(p.tokens):
        text = p.tokens[end].text.casefold()
        is_article = text == "a" and p.peek(end + 1 - p.at).kind == "word"
        if p.tokens[end].kind == "letter" and not is_article:
            parser = p.fresh(p.tokens[end:])
            names.append(parser.name())
            end += parser.at
            continue
        if text in ("integer", "integers", "whole"):
            kind = Sym("ℤ")
        elif text not in DECLARING and text != ",":
            return None
        end += 1
    if not names:
        return None
    p.at = end
    return Relation((joined("list", names), kind), ("∈",))


def degrees(p: Reader, tree: Tree) -> Tree:
    """Read what follows a degree sign: minutes and seconds, or the C and F of temperatures."""
    if letter := p.take("C", "F", "K"):
        return Quantity(tree, {"C": "celsius", "F": "fahrenheit", "K": "kelvin"}[letter])
    parts = [tree]
    while p.next.kind == "number" and len(parts) < 3:
        mark = p.at
        value = p.primary(single=True)
        p.take("^")
        if not flat([p.next]) or not set(flat([p.next])) <= {"'", '"'}:
            p.at = mark
            break
        p.at += 1
        while p.take("'"):
            pass
        parts.append(Op("/", (value, Num(Fraction(60 ** len(parts))))))
    return Quantity(joined("+", parts), "degree")


def with_smaller(p: Reader, tree: Quantity) -> Quantity:
    """Read the second part of 2 hours and 30 minutes."""
    mark = p.at
    p.take("and", ",")
    if p.next.kind == "number" and tree.unit not in ("%", "degree"):
        value = p.primary()
        found = read_unit(p.tokens, p.at, marked=True) if p.at < len(p.tokens) else None
        factor = conversion(tree.unit, found[0]) if found is not None else None
        if found is not None and factor is not None and factor > 1:
            p.at = found[1]
            return Quantity(Op("+", (Op("*", (Num(factor), tree.value)), value)), found[0])
    p.at = mark
    return tree


def half_of_day(p: Reader) -> tuple[str, int] | None:
    """Return am or pm, also written a.m., and the index after it; None if it does not follow."""
    letters, end = "", p.at
    while end < len(p.tokens) and len(letters) < 2 and p.tokens[end].kind in ("letter", "word"):
        letters += p.tokens[end].text.lower()
        end += 1
        end += end < len(p.tokens) and p.tokens[end].text == "."
    return (letters, end) if letters in ("am", "pm") else None


def clock(p: Reader, tree: Tree) -> Tree:
    """Read am or pm after a time of day."""
    parts = tree.args if is_op(tree, "time") else (tree,)
    values = [part.exact for part in parts if isinstance(part, Num) and part.exact.denominator == 1]
    half = half_of_day(p)
    if not half or len(values) != len(parts) or len(parts) > 3 or not 1 <= values[0] <= 12:
        return tree
    letters, p.at = half
    seconds = sum(
        value * 60 ** (2 - i) for i, value in enumerate([values[0] % 12 + 12 * (letters == "pm"), *values[1:]])
    )
    return Op("clock", (Num(Fraction(seconds)),))


def left_name(p: Reader) -> Sym | None:
    """Read a name such as y(t) or P(A|B) before a relation; None for anything else."""
    if p.next.kind != "letter" or p.peek().kind == "end":
        return None
    mark = p.at
    try:
        name = p.name().name
    except NotMath:
        name = ""
    if name and p.next.text == "(" and (not p.next.spaced or name[-1] == "'"):
        end = next((i for i in range(p.at, len(p.tokens)) if p.tokens[i].text == ")"), 0)
        inside = p.tokens[p.at + 1 : end]
        script = flat(p.tokens[end + 1 : end + 3])
        extreme = script if script in ("_max", "_min") else ""  # f(x)_{max}
        last = end + 2 * bool(extreme)
        after = p.tokens[last + 1] if last + 1 < len(p.tokens) else END
        if end and inside and after.text in RELATIONS and all(t.kind == "letter" or t.text in ",|" for t in inside):
            p.at = last + 1
            return Sym(f"{name}({','.join(t.text for t in inside if t.text != ',')}){extreme}")
    p.at = mark
    return None
