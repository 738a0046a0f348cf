"""The lexer and the parser: caps on the size of an answer, tokens that are never pasted together, and trees."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gem.graders.math.grader import exceeded_cap
from gem.graders.math.lexer import MAX_CHARS, MAX_DEPTH, tokens
from gem.graders.math.parser import parse
from gem.graders.math.tree import InBase, Interval, Num, Op, Phrase, Quantity, Relation, Sym, Tree


def shown(tree: Tree) -> str:
    """Return a tree as one line: (head arguments…), <value unit>, {relation}, "words"."""
    match tree:
        case Num(exact):
            return str(exact)
        case Sym(name):
            return name
        case Op(head, args):
            return f"({' '.join([head, *map(shown, args)])})"
        case Quantity(value, unit):
            return f"<{shown(value)} {unit}>"
        case Interval(low, high, (left, right)):
            return f"{'[' if left else '('}{shown(low)}; {shown(high)}{']' if right else ')'}"
        case Relation(sides, operators):
            rest = "".join(f" {o} {shown(side)}" for o, side in zip(operators, sides[1:], strict=True))
            return f"{{{shown(sides[0])}{rest}}}"
        case InBase(digits, base):
            return f"{digits}#{base}"
        case Phrase(parts):
            return '"' + " ".join(part if isinstance(part, str) else shown(part) for part in parts) + '"'


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (r"2^{3}5", "(* (^ 2 3) 5)"),
        (r"2^{35}", "(^ 2 35)"),
        (r"x^{2}3", "(* (^ x 2) 3)"),
        (r"\frac12", "(/ 1 2)"),
        (r"\int_{0}^{1}2x\,dx", "(int (* 2 x) x 0 1)"),
        (r"\int \frac{dx}{x}", "(int (/ 1 x) x)"),
        (r"\sum_{k=1}^{4}3", "(sum 3 k 1 4)"),
        (r"\log _{2}8", "(log 8 2)"),
        (r"\log_37", "(log 7 3)"),
        (r"{{a}_{n}}=2n-1", "{a_n = (+ (* 2 n) (neg 1))}"),
        (r"{x}_{1}+{x}_{2}", "(+ x_1 x_2)"),
        (r"\frac{\mathrm{d}y}{\mathrm{d}x}=2x", "{dy/dx = (* 2 x)}"),
        (r"2\hat{i}-3\mathbf{j}", r"(+ (* 2 \hat{i}) (neg (* 3 \hat{j})))"),
        (r"x\equiv5\bmod 7", "(mod {x ≡ 5} 7)"),
        (r"6.02\mathrm{e}23", str(602 * 10**21)),
        ("C_{6}^{3}", "(binom 6 3)"),
        ("{}^{10}C_5", "(binom 10 5)"),
        (r"\varepsilon", r"\epsilon"),
        ("1101_{two}", "1101#2"),
        ("3A_{16}", "3A#16"),
        ("1或2", "(or 1 2)"),
        (r"1\frac{1}{2}", "(mixed 1 (/ 1 2))"),
        (r"\left]0;\,1{,}5\right]", "(0; 3/2]"),
        ("1,00,000", "100000"),
        ("(1,234)", "(tuple 1 234)"),
        (r"0.\overline{3}", "1/3"),
        (r"9.8\,\mathrm{m\,s^{-2}}", "<49/5 m/s^2>"),
        (r"\$5", "<5 $>"),
        (r"x=\frac{\pi}{4}+k\pi\ (k\in\mathbb{Z})", r"(where {x = (+ (/ \pi 4) (* k \pi))} {k ∈ ℤ})"),
        (r"\left\{\begin{array}{l}x=3\\y=1\end{array}\right.", "(and {x = 3} {y = 1})"),
        (r"\text{Ines has 31 stamps}", '"Ines has 31 stamps"'),
        ("The final answer is **12**.", "12"),
        (r"x = \boxed{3}\text{ cm}", "{x = <3 cm>}"),
        (r"\boxed{3} or \boxed{4}", "4"),
        (r"\boxed{3} and \boxed{}", '""'),
        (r"\sqrt{7", r'"\sqrt{7"'),
    ],
)
def test_one_notation_is_one_tree(text, tree):
    assert shown(parse(text)) == tree


def test_tokens_keep_groups_and_join_the_digits_of_a_number():
    assert [token.text for token in tokens(r"$\left( \dfrac12,\; 1{,}000 \right)$")] == [
        "(",
        "frac",
        "12",
        ",",
        "1000",
        ")",
    ]
    assert [token.text for token in tokens("2^{3}5")] == ["2", "^", "{", "5"]
    assert parse("1.50") == Num(Fraction(3, 2), 2) and parse("1.5e3") == Num(Fraction(1500), -2)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("9" * 1001, "digits"),
        ("(" * (MAX_DEPTH + 1), "nested"),
        ("a" * (MAX_CHARS + 1), "characters"),
        ("2^{100000}", "exponent"),
        ("5000!", "factorial"),
        ("x^" * 10 + "x", "tower"),
        ("**a" * 10, "tower"),
        ("1 " * 1499, "tokens"),
        ("x+" * 400 + "1", "operators"),
    ],
)
def test_the_reason_names_the_exceeded_cap(answer, reason):
    assert reason in (exceeded_cap(answer) or "")


@pytest.mark.parametrize(
    "answer", ["2^{100}", r"10^{-3}", "20!", r"\binom{10}{3}", "x^{2n+1}", "2^{3^2}", "e^{-x^2/2}"]
)
def test_ordinary_expressions_are_within_the_caps(answer):
    assert exceeded_cap(answer) is None
