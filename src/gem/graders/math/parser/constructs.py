"""Read the constructs of LaTeX: fractions, roots, functions, integrals, limits, brackets, sets and environments."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gem.graders.math.lexer import Token
from gem.graders.math.parser.names import in_base, pair_in_brackets
from gem.graders.math.parser.reader import Reader
from gem.graders.math.parser.vocabulary import (
    CONDITIONS,
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
    ZERO,
    Interval,
    Num,
    Op,
    Relation,
    Sym,
    Tree,
    is_op,
    substituted,
)


def command(p: Reader) -> Tree:
    name = p.next.text
    if name in FUNCTIONS:
        return function_call(p)
    if name in SETS:
        p.at += 1
        tree = SETS[name]
        if p.next.text in ("^", "_"):
            return signed_set(p, tree)
        return tree
    p.at += 1
    if name == "frac":
        return fraction(p)
    if name == "sqrt":
        return root(p)
    if name == "binom" and p.take("("):
        return Op("binom", pair_in_brackets(p))
    if name == "binom":
        return Op("binom", (p.argument(), p.argument()))
    if name in ("int", "iint", "oint"):
        return integral(p)
    if name in ("sum", "prod"):
        return series(p, name)
    if name == "lim":
        return limit(p)
    if name in ("vec", "overline", "hat", "dot", "ddot", "tilde", "widetilde", "overset", "overbrace"):
        return decorated(p, name)
    if name in ("partial", "nabla"):
        return Sym(name)
    if name == "pmod":
        raise NotMath(name)
    raise NotMath(f"a command {name}")


def signed_set(p: Reader, tree: Tree) -> Tree:
    """Read ℝ^+, ℤ_{>0}, ℕ^*, ℝ^2."""
    marks = ""
    while p.next.text in ("^", "_"):
        p.at += 1
        marks += flat(p.next.inner) if p.next.kind == "group" else p.next.text
        p.at += 1
    if tree is REALS:
        if marks in ("+", ">0", "+*", "*+"):
            return Interval(ZERO, INFINITY, (False, False))
        if marks in ("-", "<0"):
            return Interval(MINUS_INFINITY, ZERO, (False, False))
        if marks in ("≥0", "0+"):
            return Interval(ZERO, INFINITY, (True, False))
        return Op("minus", (REALS, Op("set", (ZERO,)))) if marks in ("*", "×") else Sym(f"ℝ^{marks}")
    name = tree.name if isinstance(tree, Sym) else ""
    if marks in ("+", ">0", "*", "+*", "*+", "≥1") and name in ("ℤ", "ℕ"):
        return Sym("ℤ+") if marks != "*" or name == "ℕ" else Sym("ℤ*")
    return Sym("ℕ") if marks in ("≥0", "0") and name == "ℤ" else Sym(f"{name}^{marks}")


def fraction(p: Reader) -> Tree:
    if (name := derivative(p)) is not None:
        return name
    return Op("/", (p.argument(), p.argument()))


def derivative(p: Reader) -> Tree | None:
    r"""Read \frac{dy}{dx} as a name, and \frac{d}{dx} as an operator; None for other fractions."""
    top, bottom = p.next, p.peek()
    if top.kind != "group" or bottom.kind != "group":
        return None
    over, under = flat(top.inner), flat(bottom.inner)
    marks = {"d", "partial"}
    if not top.inner or not bottom.inner or (top.inner[0].text[:7] not in marks and not over.startswith("d")):
        return None
    if not under.startswith(("d", "partial")) or len(under) < 2:
        return None
    over, under = over.replace("partial", "d"), under.replace("partial", "d")
    names = over[1:].lstrip("^23{}"), under[1:].rstrip("^23{}")
    if len(under) > 1 and len(names[1]) == 1 and (len(names[0]) <= 1 or not names[0][0].isdecimal()):
        if over in ("d", "d^2", "d^3"):
            p.at += 2
            order = 1 if over == "d" else int(over[-1])
            tree = p.factors()
            for _ in range(order):
                tree = Op("diff", (tree, Sym(names[1])))
            return tree
        if len(names[0]) == 1 or "_" in names[0]:
            p.at += 2
            return Sym(f"{over}/{under}")
    return None


def root(p: Reader) -> Tree:
    index: Tree = Num(Fraction(2))
    if p.next.text == "[":
        p.at += 1
        index = p.sum()
        p.expect("]")
    if p.next.kind == "number" and p.next.spaced:
        return Op("sqrt", (p.number(single=True), index))
    return Op("sqrt", (p.primary() if p.next.text == "(" else p.argument(), index))


def function_call(p: Reader) -> Tree:
    r"""Read a function such as \sin^2 x or \log_2(8) with its argument."""
    name = p.next.text
    p.at += 1
    power: Tree | None = None
    base: Tree | None = None
    while p.next.text in ("^", "_") and p.next.kind == "sign":
        sign = p.next.text
        p.at += 1
        if sign == "_" and p.next.kind == "number" and p.peek().text != "(" and not p.peek().spaced:
            base = p.argument()  # \log_37 is \log_3 7
        elif sign == "_":
            base = p.script()
        else:
            power = p.script()
    if power == Op("neg", (ONE,)) and f"arc{name}" in FUNCTIONS:
        name, power = f"arc{name}", None
    given = arguments(p, name)
    if name == "lg":
        name, base = "log", Num(Fraction(10))
    if name == "log" and base is not None:
        given = (*given, base)
    elif base is not None:
        name = f"{name}_{base}"
    tree: Tree = Op(name, given)
    return tree if power is None else Op("^", (tree, power))


def arguments(p: Reader, name: str) -> tuple[Tree, ...]:
    p.take("*")
    if p.next.text in ("(", "[") or (p.next.text == "\\{" and name in MANY):
        opening = p.next.text
        p.at += 1
        bars, in_set = p.bars, p.in_set
        p.bars, p.in_set = 0, False
        inside = p.items()
        p.bars, p.in_set = bars, in_set
        p.expect(")" if opening == "(" else "]" if opening == "[" else "\\}")
        given = inside.args if is_op(inside, "list") else (inside,)
        return given
    negative = p.take("-")
    tree = p.power()
    while continues_argument(p):
        tree = product(tree, p.power())
    if p.next.text == "/" and isinstance(tree, (Num, Sym)) and p.peek().kind == "number" and p.peek(2).kind == "end":
        p.at += 1
        tree = Op("/", (tree, p.power()))
    return (Op("neg", (tree,)) if negative else tree,)


def continues_argument(p: Reader) -> bool:
    r"""Return whether the next factor belongs to the argument of a function without brackets, as in \sin 2x."""
    token = p.next
    if token.kind == "letter":
        return not token.marked
    return token.kind == "number" and not token.spaced


def integral(p: Reader) -> Tree:
    low, high = limits(p)
    found = differential(p)
    if found is None:
        raise NotMath("an integral without dx")
    end, variable = found
    inside = [token for token in p.tokens[p.at : end]]
    tree = p.inside(inside).answer() if inside else ONE
    p.at = end + 2
    args = (tree, variable) if low is None or high is None else (tree, variable, low, high)
    return Op("int", args)


def limits(p: Reader) -> tuple[Tree | None, Tree | None]:
    low: Tree | None = None
    high: Tree | None = None
    while p.next.text in ("^", "_") and p.next.kind == "sign":
        sign = p.next.text
        p.at += 1
        if sign == "_":
            low = p.script()
        else:
            high = p.script()
    return low, high


def differential(p: Reader) -> tuple[int, Sym] | None:
    """Return the index of the d of dx and its variable."""
    for index in range(p.at, len(p.tokens)):
        first = p.tokens[index]
        if first.text == "d" and index + 1 < len(p.tokens) and p.tokens[index + 1].kind == "letter":
            return index, Sym(p.tokens[index + 1].text)
        if first.kind == "word" and len(first.text) > 1 and first.text[-2] == "d" and is_product(first.text):
            letters = [Token("letter", c) for c in first.text]
            p.tokens = [*p.tokens[:index], *letters, *p.tokens[index + 1 :]]
            return index + len(letters) - 2, Sym(first.text[-1])
        if first.kind == "group" and index and p.tokens[index - 1].text == "frac":
            inner = first.inner
            for at, token in enumerate(inner):
                if token.text == "d" and at + 1 < len(inner) and inner[at + 1].kind == "letter":
                    rest = (*inner[:at], *inner[at + 2 :]) or (Token("number", "1"),)
                    variable = inner[at + 1]
                elif token.kind == "word" and token.text[-2:-1] == "d":
                    rest = (*inner[:at], *inner[at + 1 :]) or (Token("number", "1"),)
                    variable = Token("letter", token.text[-1])
                else:
                    continue
                end = index + 2
                tokens_ = [
                    *p.tokens[:index],
                    Token("group", "{", inner=tuple(rest)),
                    *p.tokens[index + 1 : end],
                ]
                p.tokens = [*tokens_, Token("letter", "d"), variable, *p.tokens[end:]]
                return end, Sym(variable.text)
    return None


def series(p: Reader, head: str) -> Tree:
    low, high = limits(p)
    if not isinstance(low, Relation) or low.operators != ("=",) or high is None or not isinstance(low.sides[0], Sym):
        raise NotMath(f"a {head} without limits")
    term = p.factors()
    while p.next.text in ("*", "/"):
        sign = p.next.text
        p.at += 1
        term = Op(sign, (term, p.factors()))
    index = low.sides[0]
    if index.name in ("i", "e"):  # no constants here
        term, index = substituted(term, {index.name: Sym(f"{index.name}_")}), Sym(f"{index.name}_")
    return Op(head, (term, index, low.sides[1], high))


def limit(p: Reader) -> Tree:
    low, _ = limits_of_limit(p)
    variable, point, side = low
    term = p.term()
    return Op("lim", (term, variable, point, Sym(side)))


def limits_of_limit(p: Reader) -> tuple[tuple[Sym, Tree, str], None]:
    if not p.take("_") or p.next.kind != "group":
        raise NotMath("a limit without a point")
    inner = list(p.next.inner)
    p.at += 1
    side = "+-"
    if len(inner) > 1 and inner[-2].text == "^":
        mark = flat(inner[-1].inner) if inner[-1].kind == "group" else inner[-1].text
        if mark in "+-":
            side, inner = mark, inner[:-2]
    elif inner and inner[-1].text in ("+", "-"):
        side, inner = inner[-1].text, inner[:-1]
    relation = p.inside(inner).relation()
    if not isinstance(relation, Relation) or relation.operators != ("→",) or not isinstance(relation.sides[0], Sym):
        raise NotMath("a limit without a point")
    return (relation.sides[0], relation.sides[1], side), None


def decorated(p: Reader, name: str) -> Tree:
    token = p.next
    inner = token.inner if token.kind == "group" else (token,)
    p.at += 1
    text = flat(inner)
    if name == "overline" and any(each.kind not in ("letter", "word") for each in inner):
        return Op("conjugate", (p.inside(inner).answer(),))
    if not text or any(each.kind not in ("letter", "word") for each in inner):
        raise NotMath(f"a {name} of {text}")
    if name == "hat" or (name == "vec" and text in ("i", "j", "k")):
        text = {"\\imath": "i", "x": "x"}.get(text, text)
    rest = [Token("letter", f"\\{name}{{{text}}}"), *p.tokens[p.at :]]
    parser = p.inside(rest)
    sym = parser.name()
    p.at += parser.at - 1
    return sym


def figure(p: Reader, sign: str) -> Tree:
    """Read ∠ABC and ΔABC as a name."""
    letters = ""
    if p.next.kind == "group":
        letters = flat(p.next.inner)
        p.at += 1
    while p.next.kind in ("letter", "word") and p.next.text.isalpha() and p.next.text.isupper():
        letters += p.next.text
        p.at += 1
    if not letters:
        if p.next.kind == "number" and sign == "∠":
            letters = p.next.text
            p.at += 1
        elif sign == "Δ" and p.next.kind == "letter":
            return Sym(f"Δ{p.name().name}")
        elif sign == "Δ":
            return Sym("Δ")
        elif p.next.kind == "letter":
            letters = p.name().name
    if not letters:
        raise NotMath(sign)
    return Sym(f"{sign}{letters}")


def _separates(p: Reader) -> bool:
    """Return whether | separates the coordinates of a point, as in (2|1) and (3|4|5)."""
    end = next((i for i in range(p.at, len(p.tokens)) if p.tokens[i].text == ")"), p.at)
    inside = p.tokens[p.at : end]
    bars = sum(token.text == "|" for token in inside)
    return bars == 1 or (bars == 2 and all(token.kind == "number" or token.text in ("|", "-") for token in inside))


def bracket(p: Reader, opening: str) -> Tree:
    bars, p.bars = p.bars, int(opening == "(" and _separates(p))
    outside, p.in_set, mark = (p.in_set, p.reversed), False, p.at
    p.reversed = opening == "]"
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
    p.bars, (p.in_set, p.reversed) = bars, outside
    closing = p.next.text
    if opening == "⟨":
        p.expect("⟩")
    elif opening == "]":
        p.expect("[", "]")
    elif opening == "(":
        p.expect(")", "]")
    else:
        p.expect("]", ")", "[")
    items = inside.args if is_op(inside, "list", "and") else (inside,)
    if len(items) == 1:
        if opening + closing not in ("()", "[]"):
            raise NotMath("mismatched brackets")
        if opening == "(" and p.next.text == "_" and isinstance(items[0], Num) and items[0].exact.denominator == 1:
            p.at += 1
            return in_base(p, str(items[0].exact)) or p.no("base")
        return items[0]
    if opening + closing == "[]" and all(isinstance(item, (Interval, Op)) and is_row(item) for item in items):
        return Op("matrix", tuple(row(item) for item in items))
    if (
        p.next.text == "^"
        and len(items) == 2
        and opening + closing == "[]"
        and flat([p.peek()]).strip("{}") in ("T", "top")
    ):
        return Op("tuple", items)
    if len(items) == 2 and (opening + closing != "()" or any(is_infinite(item) for item in items)):
        if opening == "⟨":
            return Op("tuple", items)
        closed = opening == "[", closing == "]"
        for index, item in enumerate(items):
            if is_infinite(item) and (closed[index] or (item == INFINITY) is (index == 0)):
                raise NotMath("an interval closed at infinity")
        return Interval(items[0], items[1], closed)
    if opening + closing not in ("()", "[]", "⟨⟩"):
        raise NotMath("mismatched brackets")
    return Op("tuple", items)


def braces(p: Reader) -> Tree:
    if p.take("\\}"):
        return EMPTY
    if p.next.kind == "environment" and p.peek().text != "\\}":
        token = p.next
        p.at += 1
        return environment(p, token, cases=True)
    outside, p.in_set = p.in_set, True
    first = p.items()
    p.in_set = outside
    if p.take("|", ":"):
        condition = p.items()
        p.expect("\\}")
        return Op("builder", (first, condition))
    p.expect("\\}")
    items = first.args if is_op(first, "list", "and", "or") else (first,)
    return Op("set", items)


def environment(p: Reader, token: Token, *, cases: bool = False) -> Tree:
    name = token.text
    rows = [[cell for cell in row] for row in token.rows]
    if cases or name in ("cases", "dcases", "rcases", "array", "aligned", "align", "gathered", "split", "eqnarray"):
        if name == "array" and not cases:
            return Op("matrix", tuple(Op("tuple", tuple(p.cell(cell) for cell in row)) for row in rows))
        if (
            all(len(row) == 2 and row[1] for row in rows)
            and cases | (name in ("cases", "dcases", "rcases"))
            and not any(cell[1] and cell[1][0].text in RELATIONS for cell in rows)
        ):
            return Op("cases", tuple(Op("tuple", (p.cell(row[0]), condition(p, row[1]))) for row in rows))
        lines = [p.cell([token for cell in row for token in cell]) for row in rows]
        return lines[0] if len(lines) == 1 else Op("and", tuple(lines))
    if not name.removesuffix("*").endswith("matrix"):
        raise NotMath(f"an environment {name}")
    matrix = Op("matrix", tuple(Op("tuple", tuple(p.cell(cell) for cell in row)) for row in rows))
    return Op("det", (matrix,)) if name[0] == "v" else matrix


def condition(p: Reader, found: Sequence[Token]) -> Tree:
    start = 0
    while start < len(found) and found[start].kind == "word" and found[start].text in CONDITIONS:
        start += 1
    return p.cell(found[start:])
