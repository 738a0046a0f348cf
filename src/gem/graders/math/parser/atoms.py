"""Read what stands alone: numbers, products of letters, groups, signs and brackets."""

from __future__ import annotations

from fractions import Fraction

from gem.graders.math.lexer import Token
from gem.graders.math.parser import names
from gem.graders.math.parser.constructs import braces, bracket, figure
from gem.graders.math.parser.reader import Reader
from gem.graders.math.parser.vocabulary import END, FUNCTIONS, NotMath, infix, is_product, is_set, product
from gem.graders.math.tree import EMPTY, INFINITY, TWO, Num, Op, Quantity, Sym, Tree, is_op
from gem.graders.math.units import CURRENCY_SIGNS

_PAIRED = {"⌊": ("floor", "⌋"), "⌈": ("ceil", "⌉")}


def number(p: Reader, *, single: bool) -> Tree:
    text = p.pop().text
    if text.count(".") > 1 or not text.isascii():
        raise NotMath(f"a number {text}")
    if (period := names.repeating(p, text)) is not None:
        return period
    mantissa, _, exponent = text.partition("e")
    power = int(exponent or 0)
    if abs(power) > 1000:
        raise NotMath("an exponent over 1000")
    value = Num(Fraction(text), len(mantissa.partition(".")[2]) - power if "." in text or exponent else None)
    if single:
        return value
    mark = p.at
    if p.take("_"):
        if (written := names.in_base(p, text)) is not None:
            return written
        p.at = mark
    elif p.next.kind in ("letter", "word") and not p.next.spaced and text.isdecimal():
        p.take("th", "st", "nd", "rd")
        return names.digits_in_base(p, text) or value
    return value


def letters(p: Reader) -> Tree:
    """Read a word of plain text as a product of letters."""
    token, mark = p.next, p.at
    if p.take("const", "constant"):
        return Sym("C")
    if p.peek().text == "_" and token.text.isalpha() and set(token.text.upper()) <= set("ABCDEF"):
        p.at += 2
        if (written := names.in_base(p, token.text)) is not None:
            return written
        p.at = mark
    under = p.peek(2).text
    if token.text[0] == "d" == under[:1] and p.peek().text == "/" and len(under) == 2:
        p.at += 3
        return Sym(f"{token.text}/{under}")
    if token.marked or not (is_product(token.text) or (len(p.tokens) == 1 and len(token.text) == 2)):
        raise NotMath(f"a word {token.text!r}")
    parser = p.fresh([*(Token("letter", c, token.spaced) for c in token.text), *p.tokens[p.at + 1 :]])
    tree = parser.power()
    while parser.at < len(token.text):
        tree = product(tree, parser.power())
    p.at += 1 + parser.at - len(token.text)
    return tree


def group(p: Reader) -> Tree:
    if (bare := _headless(p.next)) is not None:
        p.replace(*bare)
        return p.primary()
    inner = p.pop().inner
    if not inner:
        return names.prefixed(p) if p.next.text in ("^", "_") else p.power()
    if (parts := infix(inner)) is not None:
        head, *sides = parts
        return Op(head, tuple(map(p.inside, sides)))
    if len(inner) == 1 and inner[0].kind == "letter" and p.next.text in ("_", "'"):  # {a}_{n}
        p.at -= 1
        p.replace(inner[0])
        return names.call(p)
    if is_set(inner):  # {x|x>1} without backslashes
        return braces(p.fresh([*inner, Token("sign", "\\}")]))
    tree = p.inside(inner)
    return Op("set", tree.args) if is_op(tree, "list", "and", "or") else tree


def sign(p: Reader) -> Tree:
    match text := p.pop().text:
        case "∞":
            return INFINITY
        case "∅":
            return EMPTY
        case "…":
            return Op("dots")
        case "√":
            return Op("sqrt", (p.primary(), TWO))
        case "∠" | "Δ":
            return figure(p, text)
        case "(" | "[" | "]" | "⟨":
            return bracket(p, text)
        case "\\{":
            return braces(p)
        case "⌊" | "⌈":
            head, closing = _PAIRED[text]
            tree = p.sum()
            p.expect(closing)
            return Op(head, (tree,))
        case "|" | "‖":
            in_set, p.in_set = p.in_set, False
            p.bars += 1
            tree = p.sum()
            p.bars -= 1
            p.in_set = in_set
            p.expect(text)
            return Op("det" if is_op(tree, "matrix") else "abs", (tree,))
        case "+":
            return p.signed()
        case "-":
            return Op("neg", (p.power(),))
    if text not in CURRENCY_SIGNS:
        raise NotMath(f"a sign {text!r}")
    negative = p.take("-")
    if p.next.kind not in ("number", "command"):
        raise NotMath("no amount")
    value = p.factors()
    return Quantity(Op("neg", (value,)) if negative else value, text)


def _headless(group: Token) -> tuple[Token, ...] | None:
    r"""Return the tokens of a group that is a function without its argument, as {\log}_{2} is; None for others."""
    first = group.inner[0] if group.inner else END
    inner = _headless(first) if first.kind == "group" else (first,) if first.text in FUNCTIONS else None
    scripts = group.inner[1:]
    if inner is None or len(scripts) % 2 or any(token.text not in ("_", "^") for token in scripts[::2]):
        return None
    return (*inner, *scripts)
