r"""More kinds of math answers for `math_formats`; in one file because each is a few lines and stands alone.

Lists, sets, equations, quantities, words and exact arithmetic.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

from math_formats import (
    KINDS,
    Written,
    decimal,
    kind,
    latex,
    near,
    nonzero,
    others,
    rational,
    shuffled,
    term,
    total,
    ways,
)

__all__ = ["KINDS", "arithmetic"]


def radical(rng: random.Random) -> tuple[list[str], list[str]]:
    k, n = rng.randint(2, 9), rng.choice([2, 3, 5, 7])
    same = [
        rf"{k}\sqrt{{{n}}}",
        rf"\sqrt{{{k * k * n}}}",
        rf"\frac{{{k * n}}}{{\sqrt{{{n}}}}}",
        f"{k}sqrt({n})",
        f"{k}√{n}",
    ]
    return same, [rf"{k + 1}\sqrt{{{n}}}", rf"-{k}\sqrt{{{n}}}", rf"\sqrt{{{k * n}}}", f"{k * n**0.5:.3f}", str(k * n)]


def items(rng: random.Random, count: int) -> tuple[Callable[[], list[str]], Callable[[], list[str]]]:
    """Return functions that write some distinct numbers, and the same numbers but one."""
    drawn = [radical(rng)[0] if rng.random() < 0.25 else numbers(rng, rational(rng, 30)) for _ in range(count)]
    while len({each[0] for each in drawn}) < count:
        drawn = [numbers(rng, rational(rng, 30)) for _ in range(count)]

    def same() -> list[str]:
        return [rng.choice(written) for written in drawn]

    def other() -> list[str]:
        changed, wrong = same(), rng.randrange(count)
        changed[wrong] = f"{changed[wrong]}+{rng.randint(100, 999)}"
        return changed

    return same, other


def numbers(rng: random.Random, q: Fraction) -> list[str]:
    """Return ways to write a rational number as an item of a list, where commas and spaces separate."""
    return [latex(q), *(way for way in ways(rng, q) if not {",", " ", "!"} & set(way))]


@kind
def tuples(rng: random.Random) -> Written:
    same, other = items(rng, rng.randint(2, 4))

    def write(parts: list[str]) -> str:
        return rng.choice(["({})", r"\left({}\right)", "({} )", "( {})"]).format(", ".join(parts))

    first = same()
    swapped = [first[1], first[0], *first[2:]]
    return [write(same()) for _ in range(4)], [write(other()), write([*same(), "0"]), write(first[:-1]), write(swapped)]


@kind
def lists_and_sets(rng: random.Random) -> Written:
    same, other = items(rng, rng.randint(2, 4))

    def write(parts: list[str]) -> str:
        parts = shuffled(rng, parts)
        last = ", ".join(parts[:-1])
        return rng.choice(
            [
                rf"\{{{', '.join(parts)}\}}",
                rf"\left\{{{', '.join(parts)}\right\}}",
                ", ".join(parts),
                f"{last} and {parts[-1]}",
                rf"{last} \text{{ and }} {parts[-1]}",
                rf"{last}\text{{ or }}{parts[-1]}",
                ", ".join(f"${part}$" for part in parts),
                "; ".join(parts),
                "x = " + ", ".join(parts),
                " or ".join(f"x = {part}" for part in parts),
            ]
        )

    return [write(same()) for _ in range(5)], [write(other()), write(other()), write([*same(), "123456"])]


@kind
def plus_and_minus(rng: random.Random) -> Written:
    a, (root, wrong) = rng.randint(1, 30), radical(rng)
    b, c = root[0], wrong[0]

    def write(a: int, b: str) -> list[str]:
        pair = [f"{a}+{b}", f"{a}-{b}"]
        return [
            rf"{a}\pm {b}",
            rf"\{{{', '.join(shuffled(rng, pair))}\}}",
            ", ".join(pair),
            rf"x={a}\pm {b}",
            f"{a} ± {b}",
        ]

    return write(a, rng.choice(root)), [
        *write(a, c),
        *write(a + 1, b),
        f"{a}+{b}",
        f"{a}+{b}, {a}+{b}",
        rf"-{a}\pm {b}",
    ]


_LEFT = {True: ("[", r"\le ", r"\geq "), False: ("(", "<", ">")}
_RIGHT = {True: ("]", r"\leq ", r"\ge "), False: (")", "<", ">")}


@kind
def intervals(rng: random.Random) -> Written:
    low = rational(rng, 12)
    high = low + rng.choice([Fraction(1, 2), Fraction(1, 3), 1, 3, 7])
    closed = rng.random() < 0.5, rng.random() < 0.5
    infinite = rng.choice(["", "", "low", "high"])
    root = rf"\sqrt{{{rng.choice([2, 3, 5])}}}" if rng.random() < 0.3 else ""

    def write(low: Fraction, high: Fraction, left: bool, right: bool) -> list[str]:
        a, b = (
            rng.choice([latex(q), f"{q}", decimal(q) or latex(q)]) + (f"+{root}" if root else "") for q in (low, high)
        )
        (opening, less, more), (closing, below, above) = _LEFT[left], _RIGHT[right]
        if infinite == "low":
            found = [f"x{below}{b}", f"{b}{above}x", rf"(-\infty,{b}{closing}", f"x \\in (-∞, {b}{closing}"]
            return [*found, rf"\left(-\infty, {b}\right{closing}"]
        if infinite == "high":
            found = [f"x{more}{a}", f"{a}{less}x", rf"{opening}{a}, \infty)", rf"{opening}{a}, +\infty)"]
            return [*found, rf"\{{x : x {more}{a}\}}"]
        inside = f"{opening}{a}, {b}{closing}"
        return [
            inside,
            rf"x\in{inside}",
            f"{a}{less}x{below}{b}",
            rf"\left{inside[:-1]}\right{closing}",
            f"{b}{above}x{more}{a}",
        ]

    changed = [(low + (infinite != "low"), high + 1, *closed), (low - 1, high + Fraction(1, 5), *closed)]
    changed += [(low, high, not closed[0], not closed[1]), (low - 2, high + 2, *closed)]
    return write(low, high, *closed), [rng.choice(write(*each)) for each in changed]


@kind
def real_sets(rng: random.Random) -> Written:
    a = rng.randint(-9, 5)
    root = rng.choice(["", "", r"\sqrt{2}", r"\pi", r"\sqrt{3}"])
    low, high = (f"{a}+{root}", f"{a + 3}+{root}") if root else (str(a), str(a + 3))
    if rng.random() < 0.5:
        same = [
            rf"(-\infty,{low})\cup({high},\infty)",
            rf"x<{low} \text{{ or }} x>{high}",
            rf"\mathbb{{R}}\setminus[{low},{high}]",
        ]
        same += [rf"x\in({high},\infty)\cup(-\infty,{low})", rf"\mathbb{{R}} - [{low}, {high}]"]
        other = [rf"(-\infty,{low}]\cup({high},\infty)", rf"x\le{low} \text{{ or }} x>{high}", rf"({low},{high})"]
        return same, [
            *other,
            rf"\mathbb{{R}}\setminus({low},{high})",
            rf"\mathbb{{R}}\setminus\{{{low},{high}\}}",
            rf"x<{low}",
        ]
    same = [
        rf"(-\infty,{low})\cup({low},\infty)",
        rf"x\ne {low}",
        rf"\mathbb{{R}}\setminus\{{{low}\}}",
        rf"\mathbb{{R}}-\{{{low}\}}",
    ]
    same += [rf"x\in\mathbb{{R}}, x\neq {low}", rf"\{{x\in\mathbb{{R}} \mid x\ne {low}\}}"]
    return same, [
        rf"x\ne {high}",
        r"\mathbb{R}",
        rf"\mathbb{{R}}\setminus\{{{low},{high}\}}",
        rf"x>{low}",
        rf"x={low}",
        low,
    ]


@kind
def lines(rng: random.Random) -> Written:
    a, b, c, k = nonzero(rng, -9, 9), nonzero(rng, -9, 9), nonzero(rng, -20, 20), nonzero(rng, -5, 5)

    def write(a: int, b: int, c: int) -> list[str]:
        return [
            f"{total(term(a, 'x'), term(b, 'y'), term(c, ''))}=0",
            f"{total(term(a * k, 'x'), term(b * k, 'y'))}={-c * k}",
            f"y={total(term(Fraction(-a, b), 'x'), term(Fraction(-c, b), ''))}",
            f"{total(term(-b, 'y'))}={total(term(a, 'x'), term(c, ''))}",
            f"0={total(term(c, ''), term(b, 'y'), term(a, 'x'))}",
        ]

    return write(a, b, c), [
        rng.choice(write(*each)) for each in ((-a, b, c), (a, b, -c), (a + 10, b, c), (a, b, c + 1))
    ]


@kind
def assignments(rng: random.Random) -> Written:
    (x, y), (p, q) = rng.choice(["xy", "ab", "mn", "pq"]), (rng.randint(-9, 9), rng.randint(10, 30))
    same = [
        f"({p}, {q})",
        f"({x}, {y}) = ({p}, {q})",
        f"{x}={p}, {y}={q}",
        rf"{y}={q},\ {x}={p}",
        rf"{x}={p}\text{{ and }}{y}={q}",
    ]
    other = [
        f"({q}, {p})",
        f"{x}={q}, {y}={p}",
        f"({x}, {y}) = ({p}, {q + 1})",
        f"{x}={p}",
        f"({p}, {q}, 0)",
        f"[{p}, {q}]",
    ]
    return same, other


@kind
def named_values(rng: random.Random) -> Written:
    q, name = rational(rng), rng.choice(["x", "k", "S", "f(2)", "a_5", r"\alpha", "P(A)", "AB", r"\angle ABC", "x_1"])
    plain = [way for way in ways(rng, q) if "," not in way]
    return [f"{name}={way}" for way in plain] + plain, [f"{name}={way}" for way in others(rng, q) if "," not in way]


@kind
def quantities(rng: random.Random) -> Written:
    n = rng.randint(2, 90)
    big, small, factor = rng.choice([("km", "m", 1000), ("m", "cm", 100), ("kg", "g", 1000), ("hours", "minutes", 60)])
    texts = ["{} {}", r"{}\text{{ {}}}", r"{}\ \text{{{}}}", r"{}\,\mathrm{{{}}}", r"{} \mathrm{{~{}}}"]

    def write(n: int, unit: str) -> str:
        return rng.choice(texts).format(n, unit)

    same = [write(n, big), write(n * factor, small), write(n, big), rf"\frac{{{2 * n}}}{{2}}\text{{ {big}}}"]
    return same, [
        write(n, small),
        write(n * factor, big),
        write(n + 1, big),
        write(n, "seconds"),
        write(n, big + "^2"),
        f"{n}%",
    ]


@kind
def percentages(rng: random.Random) -> Written:
    n = rng.randint(1, 250)
    q = Fraction(n, 100)
    same = [f"{n}%", rf"{n}\%", f"{n} percent", rf"{n}\text{{ percent}}", rf"{n}.0\%", latex(q), decimal(q) or latex(q)]
    return same, [f"{n + 1}%", str(n), rf"{n * 10}\%", rf"-{n}\%", f"{n}/10", rf"{n}^\circ", f"{n} percent of 30"]


@kind
def angles(rng: random.Random) -> Written:
    n = rng.randint(1, 71) * 5
    q = Fraction(n, 180)
    radians = rf"\frac{{{q.numerator}\pi}}{{{q.denominator}}}"
    same = [rf"{n}^\circ", rf"{n}^{{\circ}}", f"{n}°", f"{n} degrees", rf"{n}\degree", rf"{n}\text{{ degrees}}"]
    return same, [rf"{n + 5}^\circ", f"-{n}°", rf"{radians}^\circ", f"{n} minutes", rf"{radians}+1", f"{n}%"]


@kind
def choice_letters(rng: random.Random) -> Written:
    right, wrong = rng.sample("ABCDE", 2)
    n = rng.randint(2, 99)
    same = [
        right,
        f"({right})",
        rf"\text{{{right}}}",
        rf"\textbf{{({right})}}",
        rf"\text{{({right})}}",
        rf"\mathrm{{({right})}}",
    ]
    same += [
        rf"\textbf{{({right})}}\ {n}",
        f"({right}) {n}",
        f"{right}. {n}",
        f"Option {right}",
        f"{right}.",
        f"{right})",
        f"{right}: {n}",
    ]
    other = [
        wrong,
        f"({wrong})",
        rf"\textbf{{({wrong})}}\ {n}",
        f"({wrong}) {n}",
        f"{right}, {wrong}",
        f"({right}) or ({wrong})",
    ]
    return same, [*other, f"({right}) {n} ({wrong}) {n + 1}", f"not {right}", rf"\text{{{wrong}}}", f"{right}{wrong}"]


@kind
def matrices(rng: random.Random) -> Written:
    a, b, c, d = (rng.randint(-9, 9) for _ in range(4))

    def write(a: int, b: int, c: int, d: int) -> list[str]:
        shapes = [rf"\begin{{{m}}} {a} & {b} \\ {c} & {d} \end{{{m}}}" for m in ("pmatrix", "bmatrix")]
        return [
            *shapes,
            rf"\begin{{pmatrix}}{a}&{b}\\{c}&\frac{{{2 * d}}}{{2}}\\\end{{pmatrix}}",
            f"[[{a}, {b}], [{c}, {d}]]",
        ]

    other = [(a + 1, b, c, d), (a, c + 20, b, d), (a, b, c, -d - 1), (d + 20, b, c, a)]
    return write(a, b, c, d), [rng.choice(write(*each)) for each in other] + [
        rf"\begin{{pmatrix}} {a} & {b} \end{{pmatrix}}"
    ]


@kind
def ratios(rng: random.Random) -> Written:
    a, b, k = rng.randint(1, 30), rng.randint(31, 60), rng.randint(2, 5)
    same = [f"{a}:{b}", f"{a} : {b}", f"{a * k}:{b * k}", rf"{a}\colon {b}", rf"\frac{{{a}}}{{{b}}}", f"{a} to {b}"]
    return same, [f"{b}:{a}", f"{a}:{b + 1}", f"{a}:{b}:1", f"{a}, {b}", f"{a}{b}", f"{a}.{b}"]


@kind
def logarithms_and_trigonometry(rng: random.Random) -> Written:
    a, b = rng.sample([2, 3, 5, 6, 7, 10], 2)
    k = rng.randint(2, 6)
    same = [
        rf"{k}\log_{{{a}}} {b}",
        rf"\log_{{{a}}} {b**k}",
        rf"\frac{{{k}\ln {b}}}{{\ln {a}}}",
        rf"\frac{{\ln({b**k})}}{{\ln({a})}}",
    ]
    other = [
        rf"{k}\log_{{{b}}} {a}",
        rf"\log_{{{a}}} {b * k + 1}",
        rf"{k + 1}\log_{{{a}}} {b}",
        rf"{k}\ln {b}",
        f"{k * math.log(b, a):.3f}",
    ]
    if rng.random() < 0.5:
        same = [
            rf"{k}\cos 2x",
            rf"{k}-{2 * k}\sin^2 x",
            rf"{k}(\cos^2 x-\sin^2 x)",
            rf"{k}\cos(2x)",
            rf"{2 * k}\cos^2(x)-{k}",
        ]
        other = [
            rf"{k}\sin 2x",
            rf"{2 * k}\cos x",
            rf"{k}-{k}\sin^2 x",
            rf"{k}\cos^2 x",
            rf"{k}\cos 2",
            rf"-{k}\cos 2x",
        ]
    return same, other


@kind
def sequences(rng: random.Random) -> Written:
    a, k = rng.randint(2, 9), rng.randint(2, 9)
    n = rng.choice("nk")
    same = [
        rf"{a}^{{{n}+1}}-{k}",
        rf"{a}\cdot {a}^{n}-{k}",
        rf"-{k}+{a}^{{1+{n}}}",
        rf"{a}({a}^{n})-{k}",
        f"{a}**({n}+1)-{k}",
    ]
    other = [
        rf"{a}^{n}+1-{k}",
        rf"{a}^{{{n}+1-{k}}}",
        rf"{a}^{{{n}-1}}-{k}",
        rf"{a}^{{{n}+1}}+{k}",
        rf"{a}({n}+1)-{k}",
        rf"{a * a}^{n}-{k}",
    ]
    if rng.random() < 0.5:
        same = [
            rf"\binom{{{n}}}{{2}}+{k}",
            rf"\frac{{{n}({n}-1)}}{{2}}+{k}",
            rf"\frac{{{n}^2-{n}+{2 * k}}}{{2}}",
            f"{n}({n}-1)/2+{k}",
        ]
        other = [
            rf"\binom{{{n}}}{{2}}-{k}",
            rf"\frac{{{n}({n}+1)}}{{2}}+{k}",
            rf"\binom{{{n}}}{{3}}+{k}",
            rf"\frac{{{n}^2}}{{2}}+{k}",
        ]
    return same, other


def arithmetic(rng: random.Random, depth: int) -> tuple[str, str, Fraction, int]:
    """Return a random expression in LaTeX and as plain text, its value and how tightly it binds (3: as a number)."""
    if depth == 0 or rng.random() < 0.15:
        n = rng.randint(0, 12)
        return str(n), str(n), Fraction(n), 3
    left, plain, a, binds = arithmetic(rng, depth - 1)
    operator = rng.choice(["+", "-", "*", "*", "/", "/", "^", "!", "binom"])
    if operator == "!":
        n = rng.randint(0, 25)
        return f"{n}!", f"{n}!", Fraction(math.factorial(n)), 2
    if operator == "binom":
        n, k = rng.randint(0, 40), rng.randint(0, 12)
        return rf"\binom{{{n}}}{{{k}}}", f"{math.comb(n, k)}", Fraction(math.comb(n, k)), 3
    if operator == "^":
        k = rng.randint(-3 if a else 1, 60 if abs(a) < 100 and a.denominator < 100 else 2)
        base = (left, plain) if binds == 3 else (f"({left})", f"({plain})")
        return f"{base[0]}^{{{k}}}", f"{base[1]}^({k})", a**k, 2
    right, other, b, tight = arithmetic(rng, depth - 1)
    if operator in "+-":
        shown = (right, other) if tight > 1 or operator == "+" else (f"({right})", f"({other})")
        return f"{left}{operator}{shown[0]}", f"{plain}{operator}{shown[1]}", a + b if operator == "+" else a - b, 0
    if operator == "/" and b:
        inner = [text if binds > 0 else f"({text})" for text in (left, plain)]
        outer = other if tight == 3 else f"({other})"
        return rf"\frac{{{left}}}{{{right}}}", f"{inner[1]}/{outer}", a / b, 1
    factors = [
        (f"({text})" if bound <= 1 else text)
        for text, bound in ((left, binds), (plain, binds), (right, tight), (other, tight))
    ]
    return rf"{factors[0]}\cdot {factors[2]}", f"{factors[1]}*{factors[3]}", a * b, 1


@kind
def exact_arithmetic(rng: random.Random) -> Written:
    shown, plain, value, _ = arithmetic(rng, 3)
    while not 10**-200 < abs(value) + (value == 0) < 10**200 or shown == str(value):
        shown, plain, value, _ = arithmetic(rng, 3)
    tiny = Fraction(1, 10 ** rng.choice([1, 12, 30, 80]))
    close = [value * (1 + tiny), value + tiny, value + 1, -value if value else tiny]
    return [shown, plain, latex(value), f"{value}"], [latex(each) for each in close if each != value] + [
        latex(each) for each in near(rng, value)[:3]
    ]
