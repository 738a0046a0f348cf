"""Write math_cases.jsonl: answer pairs whose labels follow from their construction, never from a grader.

  python tests/graders/math/make_math_cases.py > tests/graders/math/math_cases.jsonl

Every class has as many equal pairs as unequal ones. Pairs are generated from a fixed seed, here and in math_formats.py
and math_shapes.py, or listed by hand in math_pairs.txt; there the smaller kind is filled up with swapped pairs.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from math_formats import drawn_pair
from math_shapes import KINDS

Pair = tuple[str, str, bool]
CLASSES: dict[str, Callable[[random.Random], Iterator[Pair]]] = {}


def case(make: Callable[[random.Random], Iterator[Pair]]) -> Callable[[random.Random], Iterator[Pair]]:
    CLASSES[make.__name__] = make
    return make


def both(equal: list[tuple[str, str]], unequal: list[tuple[str, str]]) -> Iterator[Pair]:
    yield from ((answer, gold, True) for answer, gold in equal)
    yield from ((answer, gold, False) for answer, gold in unequal)


def numbers(rng: random.Random, low: int, high: int, count: int) -> list[int]:
    return rng.sample(range(low, high), count)


@case
def integers(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 5000, 12):
        yield rng.choice([f"{n}", f"${n}$", rf"\boxed{{{n}}}", f"{n}.", f"{n}.0", f"+{n}"]), str(n), True
        yield str(rng.choice([n + 1, n - 1, -n, 10 * n])), str(n), False


@case
def negative_numbers(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 900, 12):
        yield rng.choice([f"-{n}", f"−{n}", f"(-{n})", f"- {n}"]), f"-{n}", True
        yield str(n), f"-{n}", False


@case
def fractions(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 60, 12):
        q = Fraction(n, 61)
        k = rng.randint(2, 6)
        yield (
            rng.choice([rf"\frac{{{n * k}}}{{{61 * k}}}", f"{n}/61", rf"\dfrac{{{n}}}{{61}}", rf"\tfrac{{{n}}}{{61}}"]),
            (rf"\frac{{{q.numerator}}}{{{q.denominator}}}"),
            True,
        )
        yield (
            rng.choice([rf"\frac{{61}}{{{n}}}", rf"\frac{{{n + 1}}}{{61}}", rf"-\frac{{{n}}}{{61}}"]),
            f"{n}/61",
            False,
        )


@case
def negative_fractions(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 40, 12):
        forms = [rf"-\frac{{{n}}}{{41}}", rf"\frac{{-{n}}}{{41}}", rf"\frac{{{n}}}{{-41}}", f"-{n}/41"]
        yield rng.choice(forms), rng.choice(forms), True
        yield rng.choice([rf"\frac{{{n}}}{{41}}", rf"\frac{{-{n}}}{{-41}}"]), rng.choice(forms), False


@case
def decimals_of_fractions(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 3, 199, 12):
        exact = f"{n / 8:g}"
        yield exact, rf"\frac{{{n}}}{{8}}", True
        yield f"{n / 7:.3f}", rf"\frac{{{n if n % 7 else n + 1}}}{{7}}", False


@case
def trailing_zeros(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 101, 999, 12):
        yield f"{n / 100:.2f}" + "0" * rng.randint(1, 3), f"{n / 100:.2f}".rstrip("0").rstrip("."), True
        yield f"{n / 1000:.3f}", f"{n / 100:.2f}", False


@case
def rounded_irrationals(rng: random.Random) -> Iterator[Pair]:
    roots = [n for n in range(2, 60) if math.isqrt(n) ** 2 != n]
    for n in rng.sample(roots, 12):
        yield rf"\frac{{{n}}}{{\sqrt{{{n}}}}}", rf"\sqrt{{{n}}}", True
        yield f"{math.sqrt(n):.{rng.choice([2, 4, 8])}f}", rf"\sqrt{{{n}}}", False


@case
def mixed_numbers(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 1, 40, 12):
        top = rng.choice([1, 2, 4, 5])
        yield (
            rng.choice([rf"{n}\frac{{{top}}}{{7}}", rf"{n} {top}/7", rf"{n} \tfrac{{{top}}}{{7}}"]),
            f"{7 * n + top}/7",
            True,
        )
        yield rng.choice([rf"{n}\frac{{{top}}}{{7}}", f"{n} {top}/7"]), rf"\frac{{{n * top}}}{{7}}", False


@case
def thousands_separators(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 1000, 9_000_000, 12):
        grouped = f"{n:,}"
        yield rng.choice([grouped, grouped.replace(",", r"\,"), grouped.replace(",", "{,}")]), str(n), True
        yield rng.choice([f"({grouped})", f"{n + 1000:,}", f"{n:,}".replace(",", ".", 1)]), str(n), False


@case
def percentages(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 1, 99, 12):
        yield rng.choice([f"{n}%", rf"{n}\%", f"{n} percent"]), rng.choice([f"{n / 100:g}", f"{n}/100", f"{n}%"]), True
        yield rng.choice([f"{n}%", rf"{n}\%"]), rng.choice([str(n), f"{n + 1}%", f"{n / 10:g}"]), False


@case
def scientific_notation(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 99, 12):
        power = rng.randint(2, 9)
        forms = [rf"{n / 10:g} \times 10^{{{power}}}", rf"{n / 10:g}\cdot 10^{{{power}}}", f"{n / 10:g}e{power}"]
        yield rng.choice(forms), str(n * 10 ** (power - 1)), True
        yield rng.choice(forms), str(n * 10**power), False


@case
def repeating_decimals(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 1, 98, 12):
        yield rng.choice([rf"0.\overline{{{n:02}}}", rf"0.({n:02})"]), rf"\frac{{{n}}}{{99}}", True
        yield rng.choice([f"0.{n:02}", rf"0.\overline{{{n + 1:02}}}"]), rf"\frac{{{n}}}{{99}}", False


@case
def units_kept(rng: random.Random) -> Iterator[Pair]:
    units = [
        ("cm", "centimeters"),
        ("kg", "kilograms"),
        ("miles", "mi"),
        ("hours", "h"),
        ("seconds", "s"),
        ("feet", "ft"),
    ]
    for n, (a, b) in zip(numbers(rng, 2, 90, 12), units * 2, strict=True):
        yield (
            rng.choice([rf"{n}\text{{ {a}}}", f"{n} {a}", rf"{n}\ \mathrm{{{a}}}"]),
            rng.choice([f"{n} {b}", str(n)]),
            True,
        )
        yield (
            rng.choice([rf"{n}\text{{ {a}}}", f"{n} {a}"]),
            rng.choice([f"{n + 1} {b}", f"{n} grams", f"{n} minutes"]),
            False,
        )


@case
def units_converted(rng: random.Random) -> Iterator[Pair]:
    rows = [
        ("km", "m", 1000),
        ("kg", "g", 1000),
        ("hours", "minutes", 60),
        ("m", "cm", 100),
        ("minutes", "seconds", 60),
    ]
    for n in numbers(rng, 2, 60, 12):
        big, small, factor = rng.choice(rows)
        yield f"{n * factor} {small}", f"{n} {big}", True
        yield rng.choice([f"{n} {small}", f"{n * factor * 10} {small}"]), f"{n} {big}", False


@case
def money(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 101, 9000, 12):
        price = f"{n / 100:.2f}"
        yield rng.choice([rf"\${price}", f"${price}", f"{price} dollars"]), rng.choice([price, f"{n} cents"]), True
        yield (
            rng.choice([rf"\${price}", f"{price} dollars"]),
            rng.choice([f"{price} cents", f"{(n + 1) / 100:.2f}"]),
            False,
        )


@case
def angles(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 1, 35, 12):
        degrees = 5 * n
        q = Fraction(degrees, 180)
        radians = rf"\frac{{{q.numerator}\pi}}{{{q.denominator}}}"
        forms = [rf"{degrees}^\circ", rf"{degrees}^{{\circ}}", f"{degrees}°", f"{degrees} degrees"]
        yield rng.choice(forms), rng.choice([str(degrees), radians]), True
        yield (
            rng.choice(forms),
            rng.choice([str(degrees + 5), rf"\frac{{{q.numerator}\pi}}{{{q.denominator + 1}}}"]),
            False,
        )


@case
def variable_names(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 99, 12):
        name, other = rng.sample("xyzabnmkt", 2)
        yield (
            rng.choice([f"{name}={n}", f"{name} = {n}", rf"${name} = {n}$"]),
            rng.choice([str(n), f"{name}={n}"]),
            True,
        )
        yield f"{name}={n}", rng.choice([f"{other}={n}", str(n + 1), f"{name}={n + 1}"]), False


@case
def letters_in_formulas(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 1, 50, 12):
        a, b = rng.sample("abcghklmprstuvw", 2)
        pattern = rng.choice(["{x}+{n}", "{n}-{x}", r"\frac{{{x}}}{{{n}}}", "{n}{x}"])
        swapped = {
            "{x}+{n}": "{n}+{x}",
            "{n}-{x}": "-{x}+{n}",
            r"\frac{{{x}}}{{{n}}}": "{x}/{n}",
            "{n}{x}": r"{x}\cdot {n}",
        }
        yield pattern.format(x=a, n=n + 1), swapped[pattern].format(x=a, n=n + 1), True
        yield pattern.format(x=a, n=n + 1), pattern.format(x=b, n=n + 1), False


@case
def radicals(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 20, 12):
        root = rng.choice([2, 3, 5, 6, 7])
        yield (
            rng.choice([rf"\sqrt{{{n * n * root}}}", rf"{n}*sqrt({root})", rf"{n}\sqrt{root}"]),
            rf"{n}\sqrt{{{root}}}",
            True,
        )
        yield rng.choice([rf"\sqrt{{{n * root}}}", rf"{n + 1}\sqrt{{{root}}}"]), rf"{n}\sqrt{{{root}}}", False


@case
def rationalised(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 40, 12):
        root = rng.choice([2, 3, 5, 7])
        yield rf"\frac{{{n}\sqrt{{{root}}}}}{{{root}}}", rf"\frac{{{n}}}{{\sqrt{{{root}}}}}", True
        yield rf"\frac{{{n}\sqrt{{{root}}}}}{{{root + 1}}}", rf"\frac{{{n}}}{{\sqrt{{{root}}}}}", False


@case
def multiples_of_pi(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 90, 12):
        yield (
            rng.choice([rf"{n}\pi", f"{n}π", f"{n} pi", rf"\pi\cdot {n}", rf"\frac{{{2 * n}\pi}}{{2}}"]),
            rf"{n}\pi",
            True,
        )
        yield rng.choice([f"{n * math.pi:.2f}", str(n), rf"{n}\pi^2"]), rf"{n}\pi", False


@case
def powers_and_logarithms(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 15, 12):
        yield rng.choice([rf"\log_2 {2**n}", rf"\log_{{2}}{{{2**n}}}", rf"\frac{{{n * 3}}}{{3}}"]), str(n), True
        yield f"2^{n}", rng.choice([str(2 * n + 1), str(2 ** (n + 1)), f"3^{n}"]), False


@case
def polynomials(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 1, 30, 12):
        expanded = f"x^2+{2 * n}x+{n * n}"
        yield rng.choice([f"(x+{n})^2", f"(x+{n})(x+{n})", f"{n * n}+x^2+{2 * n}x"]), expanded, True
        yield rng.choice([f"(x-{n})^2", f"x^2+{n * n}", f"(x+{n + 1})^2"]), expanded, False


@case
def rational_functions(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 40, 12):
        yield rf"\frac{{1}}{{x}}+\frac{{1}}{{x+{n}}}", rf"\frac{{2x+{n}}}{{x(x+{n})}}", True
        yield rf"\frac{{1}}{{x}}+\frac{{1}}{{x+{n}}}", rf"\frac{{2}}{{2x+{n}}}", False


@case
def trigonometry(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 40, 12):
        yield rng.choice([rf"{n}\sin^2 x+{n}\cos^2 x", rf"{n}(\sin x)^2+{n}(\cos x)^2"]), str(n), True
        yield rng.choice([rf"{n}\sin x+{n}\cos x", rf"{n}\sin^2 x-{n}\cos^2 x"]), str(n), False


@case
def tuples(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 90, 12):
        m = n + rng.randint(1, 9)
        yield rng.choice([rf"\left({n}, {m}\right)", f"({n},{m})", f"( {n} , {m} )"]), f"({n}, {m})", True
        yield rng.choice([f"({m}, {n})", f"({n}, {m}, 0)", f"({n}, -{m})", f"[{n}, {m}]"]), f"({n}, {m})", False


@case
def sets_and_lists(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 90, 12):
        a, b, c = n, n + 3, -n
        yield (
            rng.choice([rf"\{{{b}, {a}, {c}\}}", f"{c}, {b}, {a}", f"{a}, {c} and {b}"]),
            rf"\{{{a}, {b}, {c}\}}",
            True,
        )
        yield (
            rng.choice([rf"\{{{a}, {b}\}}", f"{a}, {b}, {n + 7}", f"{a}, {b}, {c}, 0"]),
            rf"\{{{a}, {b}, {c}\}}",
            False,
        )


@case
def intervals(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 90, 12):
        low, high = -n, n + 1
        yield (
            rng.choice([f"{low} < x \\le {high}", f"x \\in ({low}, {high}]", f"({low},{high}]"]),
            f"({low}, {high}]",
            True,
        )
        yield (
            rng.choice([f"({low}, {high})", f"[{low}, {high}]", f"{low} \\le x \\le {high}", f"({low}, {high + 1}]"]),
            (f"({low}, {high}]"),
            False,
        )


@case
def half_lines(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 90, 12):
        yield rng.choice([f"x > {n}", f"{n} < x", rf"x \in ({n}, \infty)", rf"({n}, +\infty)"]), rf"({n}, \infty)", True
        yield (
            rng.choice([f"x < {n}", rf"x \ge {n}", rf"(-\infty, {n})", rf"({n + 1}, \infty)"]),
            rf"({n}, \infty)",
            False,
        )


@case
def unions(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 90, 12):
        left, right = rf"(-\infty, -{n})", rf"[{n}, \infty)"
        yield rng.choice([rf"{right} \cup {left}", rf"{left}\cup{right}"]), rf"{left} \cup {right}", True
        yield (
            rng.choice([left, rf"{left} \cup ({n}, \infty)", rf"(-\infty, {n}) \cup {right}"]),
            rf"{left} \cup {right}",
            False,
        )


@case
def equations(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 40, 12):
        yield (
            rng.choice([f"y = 2x + {n}", f"2x - y + {n} = 0", f"2y = 4x + {2 * n}", f"y - {n} = 2x"]),
            f"y = 2x + {n}",
            True,
        )
        yield rng.choice([f"y = 2x - {n}", f"x = 2y + {n}", f"2x + y + {n} = 0"]), f"y = 2x + {n}", False


@case
def several_solutions(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 60, 12):
        yield rng.choice([f"x = {n} or x = -{n}", f"x = -{n}, {n}", rf"\pm {n}", rf"x = \pm {n}"]), f"{n}, -{n}", True
        yield rng.choice([f"x = {n}", rf"\pm {n + 1}", f"x = {n} or x = {n + 1}"]), f"{n}, -{n}", False


@case
def matrices(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 60, 12):
        gold = rf"\begin{{pmatrix}} 1 & {n} \\ 0 & 2 \end{{pmatrix}}"
        yield (
            rng.choice(
                [
                    rf"\begin{{bmatrix}}1&{n}\\0&2\end{{bmatrix}}",
                    rf"\begin{{pmatrix}}1&{n}\\0&\frac{{4}}{{2}}\end{{pmatrix}}",
                ]
            ),
            gold,
            True,
        )
        yield (
            rng.choice(
                [rf"\begin{{pmatrix}}1&0\\{n}&2\end{{pmatrix}}", rf"\begin{{pmatrix}}1&{n}\\0&3\end{{pmatrix}}"]
            ),
            gold,
            False,
        )


@case
def number_bases(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 5, 200, 12):
        digits = f"{n:b}"
        yield (
            rng.choice([f"{digits}_2", f"{digits}_{{2}}", rf"{digits}_{{\text{{two}}}}"]),
            rng.choice([f"{digits}_2", f"{n:o}_8"]),
            True,
        )
        yield f"{digits}_2", rng.choice([f"{digits}_3", f"{n + 1:b}_2"]), False


@case
def choices(rng: random.Random) -> Iterator[Pair]:
    for _ in range(12):
        right, wrong = rng.sample("ABCDE", 2)
        yield (
            rng.choice([f"({right})", rf"\text{{{right}}}", rf"\text{{({right})}}", rf"\mathrm{{{right}}}"]),
            right,
            True,
        )
        yield rng.choice([f"({wrong})", rf"\text{{{wrong}}}", wrong]), right, False


@case
def words(rng: random.Random) -> Iterator[Pair]:
    names = ["Monday", "Tuesday", "Friday", "Evelyn", "Briana", "ellipse", "hyperbola", "parabola", "even", "neither"]
    for name in [*names, "yes", "no"]:
        other = rng.choice([n for n in [*names, "yes", "no"] if n != name])
        yield rng.choice([rf"\text{{{name}}}", name, name.upper(), rf"\text{{ {name}}}"]), name, True
        yield other, name, False


@case
def binomials_and_factorials(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 4, 18, 12):
        yield (
            rng.choice([rf"\binom{{{n}}}{{2}}", rf"\frac{{{n}!}}{{2!({n}-2)!}}", rf"\binom{{{n}}}{{{n - 2}}}"]),
            str(n * (n - 1) // 2),
            True,
        )
        yield rng.choice([rf"\binom{{{n}}}{{3}}", f"{n}!"]), str(n * (n - 1) // 2 + 1), False


@case
def absolute_values_and_complex(rng: random.Random) -> Iterator[Pair]:
    for n in numbers(rng, 2, 60, 12):
        yield rng.choice([f"{n}+2i", f"2i+{n}", rf"{n} + 2 i"]), f"{n}+2i", True
        yield rng.choice([f"{n}-2i", f"{n}+2", f"2+{n}i" if n != 2 else "5i", f"-{n}+2i"]), f"{n}+2i", False


def written_by_hand() -> dict[str, list[Pair]]:
    """Parse the classes of math_pairs.txt."""
    classes: dict[str, list[Pair]] = {}
    pairs: list[Pair] = []
    for line in (Path(__file__).parent / "math_pairs.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            pairs = classes.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            answer, gold = line[2:].split(" || ") if " || " in line[2:] else ("", line.removeprefix("!  || "))
            pairs.append((answer, gold, line[0] == "="))
    return {name: balanced(pairs) for name, pairs in classes.items()}


def balanced(pairs: list[Pair]) -> list[Pair]:
    """Balance equal and unequal pairs by adding swapped copies of the smaller kind."""
    kinds = {kind: [pair for pair in pairs if pair[2] is kind] for kind in (True, False)}
    fewer = len(kinds[False]) < len(kinds[True])
    missing = abs(len(kinds[False]) - len(kinds[True]))
    turned = [(gold, answer, equal) for answer, gold, equal in kinds[not fewer] if answer][:missing]
    assert len(turned) == missing, pairs[0]
    return [*pairs, *turned]


def in_formats() -> dict[str, list[Pair]]:
    """Draw 12 equal and 12 unequal pairs of each kind of math_formats and math_shapes."""
    drawn = {}
    for name in KINDS:
        rng = random.Random(name)
        drawn[f"formats_of_{name}"] = [
            (*drawn_pair(name, rng, equal), equal) for equal in (True, False) for _ in range(12)
        ]
    return drawn


def main() -> None:
    made = {name: list(make(random.Random(name))) for name, make in CLASSES.items()} | in_formats()
    for name, pairs in (made | written_by_hand()).items():
        for answer, gold, equal in pairs:
            row = {"class": name, "answer": answer, "gold": gold, "equal": equal}
            sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
