"""Read the constructs of LaTeX: fractions, roots, functions, integrals, limits, brackets, sets and environments."""

from __future__ import annotations

from collections.abc import Sequence

from gem.graders.math.lexer import Token
from gem.graders.math.parser.names import in_base, pair_in_brackets
from gem.graders.math.parser.reader import Reader
from gem.graders.math.parser.vocabulary import (
    CONDITIONS,
    END,
    FUNCTIONS,
    MANY,
    RELATIONS,
    SETS,
    NotMath,
    flat,
    is_infinite,
    is_product,
    is_row,
    product,
    row,
)
from gem.graders.math.tree import (
    EMPTY,
    INFINITY,
    MINUS_INFINITY,
    ONE,
    REALS,
    TEN,
    TWO,
    ZERO,
    Interval,
    Num,
    Op,
    Relation,
    Sym,
    Tree,
    is_op,
    joined,
    substituted,
)

_CLOSINGS = {"(": (")", "]"), "[": ("]", ")", "["), "]": ("[", "]"), "⟨": ("⟩",)}


def command(p: Reader) -> Tree:
    if p.next.text in FUNCTIONS:
        return function_call(p)
    match name := p.pop().text:
        case "frac":
            return fraction(p)
        case "sqrt":
            return root(p)
        case "binom":
            return Op("binom", pair_in_brackets(p) if p.take("(") else (p.argument(), p.argument()))
        case "int" | "iint" | "oint":
            return integral(p)
        case "sum" | "prod":
            return series(p, name)
        case "lim":
            return limit(p)
        case "vec" | "overline" | "hat" | "dot" | "ddot" | "tilde" | "widetilde" | "overset" | "overbrace":
            return decorated(p, name)
        case "partial" | "nabla":
            return Sym(name)
    if name in SETS:
        return signed_set(p, SETS[name]) if p.next.text in ("^", "_") else SETS[name]
    raise NotMath(f"a command {name}")


def signed_set(p: Reader, tree: Tree) -> Tree:
    """Read ℝ^+, ℤ_{>0}, ℕ^*, ℝ^2."""
    marks = ""
    while p.take("^", "_"):
        marks += flat([p.pop()])
    if tree is REALS:
        return _SIGNED_REALS.get(marks, Sym(f"ℝ^{marks}"))
    name = tree.name if isinstance(tree, Sym) else ""
    if marks in ("+", ">0", "*", "+*", "*+", "≥1") and name in ("ℤ", "ℕ"):
        return Sym("ℤ+") if marks != "*" or name == "ℕ" else Sym("ℤ*")
    return Sym("ℕ") if marks in ("≥0", "0") and name == "ℤ" else Sym(f"{name}^{marks}")


_SIGNED_REALS: dict[str, Tree] = {
    **dict.fromkeys(("+", ">0", "+*", "*+"), Interval(ZERO, INFINITY, (False, False))),
    **dict.fromkeys(("-", "<0"), Interval(MINUS_INFINITY, ZERO, (False, False))),
    **dict.fromkeys(("≥0", "0+"), Interval(ZERO, INFINITY, (True, False))),
    **dict.fromkeys(("*", "×"), Op("minus", (REALS, Op("set", (ZERO,))))),
}


def fraction(p: Reader) -> Tree:
    return derivative(p) or Op("/", (p.argument(), p.argument()))


def derivative(p: Reader) -> Tree | None:
    r"""Read \frac{dy}{dx} as a name, and \frac{d}{dx} as an operator; None for other fractions."""
    top, bottom = p.next, p.peek()
    over, under = (flat(group.inner).replace("partial", "d") for group in (top, bottom))
    if not over.startswith("d") or not under.startswith("d") or len(under) < 2:
        return None
    function, variable = over[1:].lstrip("^23{}"), under[1:].rstrip("^23{}")
    if len(variable) != 1 or (len(function) > 1 and function[0].isdecimal()):
        return None
    if over in ("d", "d^2", "d^3"):
        p.at += 2
        tree = p.factors()
        for _ in range(1 if over == "d" else int(over[-1])):
            tree = Op("diff", (tree, Sym(variable)))
        return tree
    if len(function) == 1 or "_" in function:
        p.at += 2
        return Sym(f"{over}/{under}")
    return None


def root(p: Reader) -> Tree:
    index: Tree = TWO
    if p.take("["):
        index = p.sum()
        p.expect("]")
    if p.next.kind == "number" and p.next.spaced:
        return Op("sqrt", (p.primary(single=True), index))
    return Op("sqrt", (p.primary() if p.next.text == "(" else p.argument(), index))


def function_call(p: Reader) -> Tree:
    r"""Read a function such as \sin^2 x or \log_2(8) with its argument."""
    name = p.pop().text
    power: Tree | None = None
    base: Tree | None = None
    while sign := p.take("^", "_"):
        if sign == "^":
            power = p.script()
        elif p.next.kind == "number" and p.peek().text != "(" and not p.peek().spaced:
            base = p.argument()  # \log_37 is \log_3 7
        else:
            base = p.script()
    if power == Op("neg", (ONE,)) and f"arc{name}" in FUNCTIONS:
        name, power = f"arc{name}", None
    given = arguments(p, name)
    if name == "lg":
        name, base = "log", TEN
    if base is not None:
        name, given = (name, (*given, base)) if name == "log" else (f"{name}_{base}", given)
    tree = Op(name, given)
    return tree if power is None else Op("^", (tree, power))


def arguments(p: Reader, name: str) -> tuple[Tree, ...]:
    p.take("*")
    if opening := p.take("(", "[", *(("\\{",) if name in MANY else ())):
        bars, in_set = p.bars, p.in_set
        p.bars, p.in_set = 0, False
        inside = p.items()
        p.bars, p.in_set = bars, in_set
        p.expect({"(": ")", "[": "]"}.get(opening, "\\}"))
        return inside.args if is_op(inside, "list") else (inside,)
    negative = p.take("-")
    tree = p.power()
    while continues_argument(p.next):
        tree = product(tree, p.power())
    return (Op("neg", (tree,)) if negative else tree,)


def continues_argument(token: Token) -> bool:
    r"""Return whether a factor belongs to the argument of a function without brackets, as in \sin 2x."""
    return not token.marked if token.kind == "letter" else token.kind == "number" and not token.spaced


def integral(p: Reader) -> Tree:
    low, high = limits(p)
    found = differential(p)
    if found is None:
        raise NotMath("an integral without dx")
    end, variable = found
    inner = p.tokens[p.at : end]
    tree = p.inside(inner) if inner else ONE
    p.at = end + 2
    return Op("int", (tree, variable) if low is None or high is None else (tree, variable, low, high))


def limits(p: Reader) -> tuple[Tree | None, Tree | None]:
    scripts: dict[str, Tree] = {}
    while sign := p.take("^", "_"):
        scripts[sign] = p.script()
    return scripts.get("_"), scripts.get("^")


def differential(p: Reader) -> tuple[int, Sym] | None:
    """Return the index of the d of dx and its variable, after moving it out of a fraction or a word."""
    for index in range(p.at, len(p.tokens)):
        token, after = p.tokens[index], p.tokens[index + 1 :]
        if token.text == "d" and after and after[0].kind == "letter":
            return index, Sym(after[0].text)
        if token.kind == "word" and token.text[-2:-1] == "d" and is_product(token.text):
            letters = [Token("letter", c) for c in token.text]
            p.tokens = [*p.tokens[:index], *letters, *after]
            return index + len(letters) - 2, Sym(token.text[-1])
        if token.kind == "group" and index and p.tokens[index - 1].text == "frac":
            for at, (each, following) in enumerate(zip(token.inner, (*token.inner[1:], END), strict=True)):
                is_letter = each.text == "d" and following.kind == "letter"
                if is_letter or (each.kind == "word" and each.text[-2:-1] == "d"):
                    variable = following.text if is_letter else each.text[-1]
                    rest = (*token.inner[:at], *token.inner[at + 1 + is_letter :]) or (Token("number", "1"),)
                    moved = [after[0], Token("letter", "d"), Token("letter", variable)]
                    p.tokens = [*p.tokens[:index], Token("group", "{", inner=rest), *moved, *after[1:]]
                    return index + 2, Sym(variable)
    return None


def series(p: Reader, head: str) -> Tree:
    low, high = limits(p)
    if not isinstance(low, Relation) or low.operators != ("=",) or high is None or not isinstance(low.sides[0], Sym):
        raise NotMath(f"a {head} without limits")
    term = p.factors()
    while sign := p.take("*", "/"):
        term = Op(sign, (term, p.factors()))
    index = low.sides[0]
    if index.name in ("i", "e"):  # no constants here
        term, index = substituted(term, {index.name: Sym(f"{index.name}_")}), Sym(f"{index.name}_")
    return Op(head, (term, index, low.sides[1], high))


def limit(p: Reader) -> Tree:
    if not p.take("_") or p.next.kind != "group":
        raise NotMath("a limit without a point")
    inner, side = p.pop().inner, "+-"
    raised = len(inner) > 1 and inner[-2].text == "^"
    if inner and (mark := flat(inner[-1:])) in ("+", "-"):
        side, inner = mark, inner[: -2 if raised else -1]
    relation = p.fresh(inner).relation()
    if not isinstance(relation, Relation) or relation.operators != ("→",) or not isinstance(relation.sides[0], Sym):
        raise NotMath("a limit without a point")
    return Op("lim", (p.term(), *relation.sides, Sym(side)))


def decorated(p: Reader, name: str) -> Tree:
    token = p.pop()
    inner = token.inner if token.kind == "group" else (token,)
    text = flat(inner)
    is_name = all(each.kind in ("letter", "word") for each in inner)
    if name == "overline" and not is_name:
        return Op("conjugate", (p.inside(inner),))
    if not text or not is_name:
        raise NotMath(f"a {name} of {text}")
    text = {"\\imath": "i"}.get(text, text)
    p.at -= 1
    p.replace(Token("letter", f"\\{name}{{{text}}}"))
    return p.name()


def figure(p: Reader, sign: str) -> Tree:
    """Read ∠ABC and ΔABC as a name."""
    letters = flat(p.pop().inner) if p.next.kind == "group" else ""
    while p.next.kind in ("letter", "word") and p.next.text.isalpha() and p.next.text.isupper():
        letters += p.pop().text
    if not letters and p.next.kind == "letter":
        letters = p.name().name
    if not letters and sign == "∠":
        raise NotMath(sign)
    return Sym(f"{sign}{letters}")


def _separates(p: Reader) -> bool:
    """Return whether | separates the coordinates of a point, as in (2|1) and (3|4|5)."""
    end = next((i for i in range(p.at, len(p.tokens)) if p.tokens[i].text == ")"), p.at)
    inside = p.tokens[p.at : end]
    bars = sum(token.text == "|" for token in inside)
    return bars == 1 or (bars == 2 and all(token.kind == "number" or token.text in ("|", "-") for token in inside))


def bracket(p: Reader, opening: str) -> Tree:
    """Read an interval, a tuple, a matrix of rows, or a value in brackets, after the opening bracket."""
    outside, mark = (p.bars, p.in_set, p.reversed), p.at
    p.bars, p.in_set, p.reversed = int(opening == "(" and _separates(p)), False, opening == "]"
    try:
        inside = p.items()
        if opening == "[" and p.next.text not in ("]", ")"):
            raise NotMath("[")
    except NotMath:
        if opening != "[":
            raise
        p.at, p.reversed = mark, True  # [a, b[
        inside = p.items()
    if opening == "(" and p.next.text == "|" and not isinstance(inside, Relation):  # the point (2|1)
        points: list[Tree] = [inside]
        while p.take("|"):
            points.append(p.sum())
        inside = Op("list", tuple(points))
    p.bars, p.in_set, p.reversed = outside
    both = opening + p.next.text
    p.expect(*_CLOSINGS[opening])
    items = inside.args if is_op(inside, "list", "and") else (inside,)
    if len(items) == 1:
        if both not in ("()", "[]"):
            raise NotMath("mismatched brackets")
        if opening == "(" and isinstance(items[0], Num) and items[0].exact.denominator == 1 and p.take("_"):
            if (written := in_base(p, str(items[0].exact))) is None:
                raise NotMath("no base")
            return written
        return items[0]
    if both == "[]" and all(map(is_row, items)):
        return Op("matrix", tuple(map(row, items)))
    is_transposed = p.next.text == "^" and flat([p.peek()]).strip("{}") in ("T", "top")
    if len(items) != 2 or both == "⟨⟩" or (both == "[]" and is_transposed):
        if both not in ("()", "[]", "⟨⟩"):
            raise NotMath("mismatched brackets")
        return Op("tuple", items)
    if both == "()" and not any(map(is_infinite, items)):
        return Op("tuple", items)
    closed = opening == "[", both[-1] == "]"
    for index, item in enumerate(items):
        if is_infinite(item) and (closed[index] or (item == INFINITY) is (index == 0)):
            raise NotMath("an interval closed at infinity")
    return Interval(items[0], items[1], closed)


def braces(p: Reader) -> Tree:
    if p.take("\\}"):
        return EMPTY
    if p.next.kind == "environment" and p.peek().text != "\\}":
        return environment(p, p.pop(), cases=True)
    outside, p.in_set = p.in_set, True
    first = p.items()
    p.in_set = outside
    if p.take("|", ":"):
        first = Op("builder", (first, p.items()))
        p.expect("\\}")
        return first
    p.expect("\\}")
    return Op("set", first.args if is_op(first, "list", "and", "or") else (first,))


def environment(p: Reader, token: Token, *, cases: bool = False) -> Tree:
    name, rows = token.text.removesuffix("*"), token.rows
    cases = cases or name in ("cases", "dcases", "rcases")
    if not cases and (name == "array" or name.endswith("matrix")):
        matrix = Op("matrix", tuple(Op("tuple", tuple(p.cell(cell) for cell in row)) for row in rows))
        return Op("det", (matrix,)) if name[0] == "v" else matrix
    if not cases and name not in ("aligned", "align", "gathered", "split", "eqnarray"):
        raise NotMath(f"an environment {name}")
    if cases and all(len(row) == 2 and row[1] and row[1][0].text not in RELATIONS for row in rows):
        return Op("cases", tuple(Op("tuple", (p.cell(row[0]), condition(p, row[1]))) for row in rows))
    return joined("and", [p.cell([token for cell in row for token in cell]) for row in rows])


def condition(p: Reader, found: Sequence[Token]) -> Tree:
    start = next(
        (i for i, token in enumerate(found) if token.kind != "word" or token.text not in CONDITIONS), len(found)
    )
    return p.cell(found[start:])
