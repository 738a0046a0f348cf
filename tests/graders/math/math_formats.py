r"""Kinds of math answers in the formats of public data sets, for labels that follow from construction.

A kind draws a value and returns the ways to write it, and ways to write other values near it. Two ways to write one
value are an equal pair; a way to write another value makes an unequal pair. The golds have the formats of MATH
(`\frac{1}{2}`, `x \in [1,2)`), GSM8K (1,200), AIME (042), AMC (`\textbf{(C)}\ 12`), OlympiadBench (lists and units),
Minerva (1.5e-3, formulas with several letters), DeepScaleR and ORZ (plain text, 1:3, 45°).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction

Written = tuple[list[str], list[str]]  # ways to write one value, and ways to write others
KINDS: dict[str, Callable[[random.Random], Written]] = {}
_WRAPPINGS = (
    *("{}", "{}", "{}", "${}$", r"\boxed{{{}}}", r"$\boxed{{{}}}$", r"\({}\)", r"\[{}\]", "$${}$$", " {} ", "{}."),
    *("The answer is {}.", "The final answer is ${}$.", "**{}**", r"So the answer is \boxed{{{}}}.", r"\fbox{{{}}}"),
    *(r"Thus we get \boxed{{{}}}, as claimed.", "Answer: {}", r"Therefore, the final answer is: $\boxed{{{}}}$."),
)


def kind(make: Callable[[random.Random], Written]) -> Callable[[random.Random], Written]:
    KINDS[make.__name__] = make
    return make


def drawn_pair(name: str, rng: random.Random, equal: bool) -> tuple[str, str]:
    """Return an answer and a gold of a kind, which are equal or not."""
    same, other = KINDS[name](rng)
    gold = rng.choice(same)
    return wrapped(rng, rng.choice(same if equal else other)), gold


def wrapped(rng: random.Random, text: str) -> str:
    """Write an answer as models do: in a box or dollars, after a phrase, with other spaces or brackets."""
    if rng.random() < 0.2:
        text = text.replace(r"\frac", rng.choice([r"\dfrac", r"\tfrac", r"\cfrac"]))
    if rng.random() < 0.2 and len(text) > 6 and text.count("(") == text.count(")") and "sqrt(" not in text:
        text = text.replace("(", r"\left(").replace(")", r"\right)") if "\\left" not in text else text
    if rng.random() < 0.2:
        text = text.replace("=", " = ").replace("+", " + ")
    wrapping = rng.choice(_WRAPPINGS)
    clashes = text.endswith(".") or any(mark in wrapping and mark in text for mark in ("$", "**"))
    return text if clashes else wrapping.format(text)


def nonzero(rng: random.Random, low: int, high: int) -> int:
    return rng.choice([n for n in range(low, high + 1) if n])


def rational(rng: random.Random, size: int = 40) -> Fraction:
    return Fraction(nonzero(rng, -size, size), rng.randint(1, 24))


def latex(q: Fraction | int) -> str:
    q = Fraction(q)
    if q.denominator == 1:
        return str(q)
    return f"{'-' * (q < 0)}\\frac{{{abs(q.numerator)}}}{{{q.denominator}}}"


def decimal(q: Fraction) -> str | None:
    """Return a terminating decimal with at most six places, or None."""
    scaled = q * 10**6
    if scaled.denominator != 1:
        return None
    return f"{'-' * (q < 0)}{abs(scaled.numerator) // 10**6}.{abs(scaled.numerator) % 10**6:06}".rstrip("0").rstrip(".")


def ways(rng: random.Random, q: Fraction | int) -> list[str]:
    """Return ways to write a rational number."""
    q = Fraction(q)
    top, bottom, sign, k = abs(q.numerator), q.denominator, "-" * (q < 0), rng.randint(2, 9)
    part = Fraction(rng.randint(1, 9), rng.randint(2, 9))
    found = [
        rf"{sign}\frac{{{k * top}}}{{{k * bottom}}}",
        rf"\frac{{{sign}{top}}}{{{bottom}}}",
        f"{sign}{top}/{bottom}" if bottom > 1 else str(q),
        f"{latex(q - part)}+{latex(part)}",
        rf"{latex(q / part)}\cdot{latex(part)}" if part.denominator > 1 else latex(q),
        rf"{latex(q * part)}\div{latex(part)}" if part.denominator == 1 else latex(q),
        rf"{sign}{{{top} \over {bottom}}}" if bottom > 1 else f"{q}.0",
        f"{k * q - q}+{q}-{(k - 1) * q}".replace("+-", "-").replace("--", "+") if bottom == 1 else latex(q),
    ]
    if 0 < top < 10 and 1 < bottom < 10:
        found.append(rf"{sign}\frac{top}{bottom}")
    if top > bottom > 1:
        found += [
            rf"{sign}{top // bottom}\frac{{{top % bottom}}}{{{bottom}}}",
            f"{sign}{top // bottom} {top % bottom}/{bottom}",
        ]
    if (shown := decimal(q)) is not None:
        found += [
            shown,
            shown + ("0" if "." in shown else ".00"),
            shown.replace("0.", ".", 1) if abs(q) < 1 and q else shown,
        ]
    if bottom == 1 and top >= 1000:
        found += [f"{int(q):,}".replace(",", comma) for comma in (",", "{,}", r"\,", ",\\!")]
    if bottom in (3, 9, 11, 33, 99) and 0 < q < 1:
        period = str(99 // bottom * top).zfill(2)
        found += [rf"0.\overline{{{period}}}", f"0.({period})"]
    return found


def near(rng: random.Random, q: Fraction | int) -> list[Fraction]:
    """Return other rational numbers that a mistake gives: a sign, one more, the reciprocal, a wrong place."""
    q = Fraction(q)
    others = [-q, q + 1, q - 1, q * 10, q / 10, 2 * q, q + Fraction(1, q.denominator), q + Fraction(1, 1000)]
    others += [1 / q if q else q + 2, q**2 or q + 3, Fraction(q.numerator, q.denominator + 1), Fraction(q.numerator)]
    return [other for other in others if other not in (q, 0)]


def others(rng: random.Random, q: Fraction | int) -> list[str]:
    return [rng.choice(ways(rng, other)) for other in near(rng, q)]


def shuffled(rng: random.Random, items: Sequence[str]) -> list[str]:
    return rng.sample(list(items), len(items))


def term(coefficient: Fraction | int, what: str) -> str:
    """Return a signed term, such as +2x, -x or +\\frac{1}{2}x; "" for a zero."""
    c = Fraction(coefficient)
    shown = ("" if abs(c) == 1 else latex(abs(c))) + what if what else latex(abs(c))
    return ("-" if c < 0 else "+") + shown if c else ""


def total(*terms: str) -> str:
    return "".join(terms).lstrip("+") or "0"


@kind
def gsm8k_numbers(rng: random.Random) -> Written:
    n = Fraction(
        rng.choice([rng.randint(2, 99), rng.randint(100, 99_999), rng.randint(10**5, 10**8)]), rng.choice([1, 1, 4])
    )
    names = [f"\\${latex(n)}", f"{n} dollars"] if n.denominator == 1 else []
    return [latex(n), *ways(rng, n), *names], [
        *others(rng, n),
        f"{latex(n)} dozen",
        f"{latex(n)}%",
        f"{latex(n)} wrong",
    ]


@kind
def aime_integers(rng: random.Random) -> Written:
    n = rng.randint(1, 999)
    exact = [
        str(n),
        f"{n:03}",
        f"{n}.",
        rf"{n - 1}+1",
        rf"2\cdot {n // 2}+{n % 2}",
        rf"\frac{{{7 * n}}}{{7}}",
        f"n={n}",
    ]
    wrong = [f"{n + 1:03}", f"{n - 1}", f"-{n}", f"{n}0", f"{n + 100}", f"{n}^2+1", rf"\frac{{{n}}}{{2}}", f"n<{n}"]
    return exact, wrong


@kind
def fractions(rng: random.Random) -> Written:
    q = rational(rng)
    return ways(rng, q), others(rng, q)


@kind
def surds(rng: random.Random) -> Written:
    a, b, c, d = nonzero(rng, -9, 9), nonzero(rng, -9, 9), rng.choice([2, 3, 5, 6, 7, 10, 11]), rng.randint(1, 9)

    def write(a: int, b: int, c: int, d: int) -> list[str]:
        inner, sign = b * b * c, "+" if b > 0 else "-"
        top = total(str(a), term(b, rf"\sqrt{{{c}}}"))
        found = [
            rf"\frac{{{top}}}{{{d}}}",
            total(term(Fraction(a, d), ""), term(Fraction(b, d), rf"\sqrt{{{c}}}")),
            rf"\frac{{{a}{sign}\sqrt{{{inner}}}}}{{{d}}}",
            total(term(Fraction(b, d), rf"\sqrt{{{c}}}"), term(Fraction(a, d), "")),
            f"({a}{sign}sqrt({inner}))/{d}",
            f"({a}{sign}√{inner})/{d}",
            rf"\frac{{1}}{{{d}}}({a}{sign}{abs(b)}\sqrt{{{c}}})",
        ]
        if a * a != inner:  # rationalized
            found.append(rf"\frac{{{a * a - inner}}}{{{d * a}{'-' if b > 0 else '+'}{d * abs(b)}\sqrt{{{c}}}}}")
        return found

    other = [
        write(*changed)
        for changed in ((a, -b, c, d), (-a, b, c, d), (a, b, c, d + 1), (a, b + 1 or 2, c, d), (a, b, c + 13, d))
    ]
    rounded = f"{(a + b * c**0.5) / d:.4f}"
    return write(a, b, c, d), [rng.choice(each) for each in other] + [rounded]


@kind
def multiples_of_pi(rng: random.Random) -> Written:
    q = rational(rng)

    def write(q: Fraction) -> list[str]:
        top, sign = abs(q.numerator), "-" * (q < 0)
        pi = rf"{top}\pi" if top > 1 else r"\pi"
        return [
            total(term(q, r"\pi")),
            rf"{sign}\frac{{{pi}}}{{{q.denominator}}}",
            rf"{sign}{pi}/{q.denominator}",
            f"{sign}{top}π/{q.denominator}",
            rf"\frac{{{q.numerator}}}{{{q.denominator}}} \pi",
            f"{q.numerator}*pi/{q.denominator}",
        ]

    return write(q), [
        *(rng.choice(write(other)) for other in near(rng, q)),
        latex(q),
        rf"{latex(q)}\pi^2",
        f"{float(q) * 3.14159265:.4f}",
    ]


@kind
def complex_numbers(rng: random.Random) -> Written:
    a, b = rational(rng, 12), rational(rng, 12)

    def write(a: Fraction, b: Fraction) -> list[str]:
        d = a.denominator * b.denominator
        return [
            total(term(a, ""), term(b, "i")),
            total(term(b, "i"), term(a, "")),
            rf"\frac{{{total(str(int(a * d)), term(b * d, 'i'))}}}{{{d}}}",
            rf"i\left({latex(b)}\right)+{latex(a)}" if a > 0 else total(term(a, ""), term(b, "i")),
        ]

    pairs = [(a, -b), (-a, b), (b, a), (a + 1, b), (a, b + 1)]
    return write(a, b), [rng.choice(write(*pair)) for pair in pairs if pair != (a, b)] + [
        latex(a),
        total(term(a, ""), term(b, "x")),
    ]


@kind
def polynomials(rng: random.Random) -> Written:
    x, (p, q), k = rng.choice("xyztn"), (nonzero(rng, -9, 9), nonzero(rng, -9, 9)), rng.choice([1, 1, 2, 3, -1, 5])

    def write(p: int, q: int, k: int) -> list[str]:
        terms = [term(k, f"{x}^2"), term(k * (p + q), x), term(k * p * q, "")]
        factors = (f"({x}{p:+})", f"({x}{q:+})")
        outside = "" if k == 1 else "-" if k == -1 else str(k)
        return [
            total(*terms),
            total(*shuffled(rng, terms)),
            outside + "".join(shuffled(rng, factors)),
            f"{outside}{x}^{{2}}" + "".join(terms[1:]),
            f"{x}({total(term(k, x), term(k * (p + q), ''))}){term(k * p * q, '')}",
            rf"{k}\cdot({total(f'{x}^2', term(p + q, x), term(p * q, ''))})",
        ]

    changed = [(-p, q, k), (p + 1, q, k), (p, q, -k), (p, q + 1, k), (p, q, k + 1 or 2), (-p, -q, k)]
    different = [c for c in changed if (c[2], c[2] * (c[0] + c[1]), c[2] * c[0] * c[1]) != (k, k * (p + q), k * p * q)]
    return write(p, q, k), [rng.choice(write(*c)) for c in different] + [write(p, q, k)[0].replace(x, "w")]


@kind
def rational_functions(rng: random.Random) -> Written:
    a, b, c = rng.sample(range(1, 20), 3)

    def write(a: int, b: int, c: int) -> list[str]:
        numerator = f"{1 + c}x+{b + c * a}"
        return [
            rf"\frac{{1}}{{x+{a}}}+\frac{{{c}}}{{x+{b}}}",
            rf"\frac{{{numerator}}}{{(x+{a})(x+{b})}}",
            rf"\frac{{{numerator}}}{{x^2+{a + b}x+{a * b}}}",
            f"({numerator})/((x+{a})(x+{b}))",
            rf"{c}(x+{b})^{{-1}}+(x+{a})^{{-1}}",
            rf"-\frac{{-1}}{{{a}+x}}-\frac{{{c}}}{{-x-{b}}}",
        ]

    changed = [(a + 1, b, c), (a, b + 1, c), (a, b, c + 1)]
    return write(a, b, c), [rng.choice(write(*each)) for each in changed] + [rf"\frac{{{1 + c}}}{{2x+{a + b}}}"]


@kind
def formulas_of_several_letters(rng: random.Random) -> Written:
    a, b, c = rng.sample("abcknmpqrstuvwxyz", 3)
    k, p = rng.randint(2, 9), rng.randint(2, 4)
    same = [
        rf"\frac{{{k}{a}^{p}{b}}}{{{c}}}",
        rf"\frac{{{k}{b}{a}^{p}}}{{{c}}}",
        rf"{k} {a}^{{{p}}} {b} / {c}",
        rf"\frac{{{k}}}{{{c}}}{a}^{{{p}}}{b}",
        rf"{k}\cdot {a}^{{{p}}}\cdot {b}\cdot {c}^{{-1}}",
        rf"{a}^{{{p}}} \left(\frac{{{k} {b}}}{{{c}}}\right)",
        f"{k}*{a}**{p}*{b}/{c}",
    ]
    other = [
        rf"\frac{{{k}{a}^{p + 1}{b}}}{{{c}}}",
        rf"\frac{{{k + 1}{a}^{p}{b}}}{{{c}}}",
        rf"\frac{{{k}{a}^{p}{c}}}{{{b}}}",
        rf"\frac{{{k}{a}{b}^{p}}}{{{c}}}",
        rf"\frac{{{k}{a}^{p}}}{{{b}{c}}}",
        f"{k}*{a}*{p}*{b}/{c}",
        rf"-\frac{{{k}{a}^{p}{b}}}{{{c}}}",
        rf"\frac{{{k}{a}^{p}+{b}}}{{{c}}}",
        rf"\frac{{{k}{a.upper()}^{p}{b}}}{{{c}}}",
        rf"\frac{{{k}{a}'^{p}{b}}}{{{c}}}",
    ]
    return same, other


@kind
def minerva_formulas(rng: random.Random) -> Written:
    k, m, a = rng.randint(2, 9), rng.randint(2, 9), rng.choice(["A", "x_{0}", r"\rho", "v_0", "C_1"])
    w, t = rng.choice([r"\omega", r"\lambda", "k", r"\alpha"]), rng.choice("txr")
    same = [
        rf"{k} {a} e^{{-{m} {t}}} \cos ({w} {t})",
        rf"{k}{a}\cos({w} {t})e^{{-{m}{t}}}",
        rf"\frac{{{k}{a}\cos({w} {t})}}{{e^{{{m}{t}}}}}",
        rf"{k} {a} \exp (-{m} {t}) \cos ({t} {w})",
        rf"{a}\cdot {k}\cdot e^{{-{m}{t}}}\cdot\cos\left({w} {t}\right)",
    ]
    other = [
        rf"{k} {a} e^{{{m} {t}}} \cos ({w} {t})",
        rf"{k} {a} e^{{-{m} {t}}} \sin ({w} {t})",
        rf"{k + 1} {a} e^{{-{m} {t}}} \cos ({w} {t})",
        rf"{k} {a} e^{{-{m + 1} {t}}} \cos ({w} {t})",
        rf"{k} {a} e^{{-{m} {t}}} \cos ({w} {t}+1)",
        rf"{k} {a}^2 e^{{-{m} {t}}} \cos ({w} {t})",
        rf"{k} e^{{-{m} {t}}} \cos ({w} {t})",
    ]
    return same, other


@kind
def scientific_notation(rng: random.Random) -> Written:
    m, e = rng.randint(11, 99), nonzero(rng, -9, 12)

    def write(m: int, e: int) -> list[str]:
        shown = f"{m // 10}.{m % 10}"
        plain = decimal(Fraction(m) * Fraction(10) ** (e - 1))
        found = [
            rf"{shown} \times 10^{{{e}}}",
            f"{shown}e{e}",
            f"{shown}E{e}",
            rf"{shown}\cdot10^{{{e}}}",
            f"{shown}*10^{{{e}}}",
        ]
        return found + [rf"{m} \times 10^{{{e - 1}}}"] + ([plain] if plain and Fraction(plain) else [])

    return write(m, e), [rng.choice(write(*c)) for c in ((m + 1, e), (m, e + 1), (m, -e), (m, e - 1))] + [f"-{m}e{e}"]
