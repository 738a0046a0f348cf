"""Generated question families: rows are reproducible, and every gold answer is right."""

from __future__ import annotations

import importlib
import math
import pickle
import random
import re
from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest

import gem
from gem.envs.questions.families.logic import KINDS, MAX_DEPTH, Rule, Theory, draw
from gem.envs.questions.families.template import MAX_LEVEL
from gem.envs.questions.generated import MATH_FAMILIES, VISION_FAMILIES, LogicRulesEnv, MathFamilyEnv, VisionFamilyEnv
from gem.envs.questions.worked_out import unfinished
from gem.errors import BadValue
from gem.graders.math import grade_math

IDS = ["math:Arithmetic", "math:Algebra", "math:NumberTheory", "math:Geometry", "logic:Rules"]
PICTURED = ["vision:Geometry", "vision:Charts"]
LEVELS = range(1, MAX_LEVEL + 1)
MATH = [
    (family, level, template)
    for family, name in MATH_FAMILIES.items()
    for level, templates in importlib.import_module(name).METHODS.items()
    for template in templates
]
NOT_ENGLISH = re.compile(
    r"[-+] ?[-+]|(?<![\d.])1[a-z](?![a-z])|[-+ ]0[a-z](?![a-z])|\^\{1\}|  "  # signs and factors
    r"|\ba \$?(8|11|18)\b|\ban \$?[1-79]\b|\ba [aeio]|\ban [^aeiou\W]"  # articles
    r"| \$?1\$? (?!is\b)[a-z]+s\b|\bmultiple of 1\b",  # plurals
    re.IGNORECASE,
)


def make(env_id: str, **kwargs: Any) -> Any:
    if env_id.startswith("vision:"):
        pytest.importorskip("PIL", reason="needs the extra [vision]")
    if not env_id.startswith("logic:"):
        pytest.importorskip("sympy", reason="needs the extra [math]")
    return gem.make(env_id, **kwargs)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("env_id", "count"),
    [*((each, 1500) for each in IDS), *((each, 60) for each in PICTURED)]
    + [pytest.param(each, 1500, marks=pytest.mark.exhaustive) for each in PICTURED],
)
def test_95_percent_of_the_rows_are_distinct(env_id, level, count):
    rows = make(env_id, level=level).dataset[:count]
    assert len({(row["text"], row["image"].tobytes() if "image" in row else b"") for row in rows}) >= 0.95 * count


@pytest.mark.slow
@pytest.mark.parametrize("env_id", [*IDS, *(pytest.param(each, marks=pytest.mark.slow) for each in PICTURED)])
def test_each_level_adds_methods_and_half_of_its_rows_use_them(env_id):
    seen: set[str] = set()
    for level in LEVELS:
        rows = make(env_id, level=level).dataset[: 60 if env_id in PICTURED else 240]
        methods = {row["method"] for row in rows}
        new = {row["method"] for row in rows if row["level"] == level}
        assert new and not new & seen and methods - new == seen
        # of independent rows, the share is further from 0.5 with a probability below 1e-6
        assert level == 1 or abs(sum(row["level"] == level for row in rows) / len(rows) - 0.5) <= 2.5 / len(rows) ** 0.5
        seen |= new


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("env_id", [*IDS, *PICTURED])
def test_prompts_are_idiomatic(env_id, level):
    for row in make(env_id, level=level).dataset[: 60 if env_id in PICTURED else 300]:
        text = row["text"]
        assert (found := NOT_ENGLISH.search(text)) is None, (found, text)
        assert text[-1] in ".?" and (text[0].isupper() or text[0] == "$") and text.count("$") % 2 == 0


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("env_id", [*IDS, *PICTURED])
def test_gold_answers_score_one_and_corrupted_ones_zero_at_every_level(env_id, level):
    with make(env_id, level=level) as env:
        for idx in range(12):
            env.reset(idx=idx)
            gold = env.format.write(env.answer)
            assert env.step(gold).reward == 1.0, env.row
            env.reset(idx=idx)
            assert env.step(env.corrupted(gold)).reward == 0.0, env.row


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("12+34", "46"),
        (r"6 \times 7", "42"),
        ("2^{5}", "32"),
        (r"\frac{84}{2}", "42"),
        ("84/2", "42"),
        (r"\frac{\frac{1}{2}}{\frac{3}{4}}", r"\frac{2}{3}"),
        (r"\log_{2} 8", "3"),
        ("5!", "120"),
        (r"\sqrt{25}", "5"),
        (r"\frac{31 \pm \sqrt{2401}}{8}", r"-\frac{9}{4}, 10"),
        (r"\gcd(12, 18)", "6"),
        ("(x+1)(x+2)", "x^{2}+3x+2"),
        ("x(x+3)+2", "x^{2}+3x+2"),
        ("(x+1)^2", "x^{2}+2x+1"),
        ("(3+2i)(1-i)", "5-i"),
        (r"f(3) = 2 \cdot 3", "6"),
    ],
)
def test_an_answer_that_repeats_the_operations_is_unfinished(answer, gold):
    assert unfinished(answer, gold) is not None


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("-46", "-46"),
        ("12+34 = 46", "46"),
        ("x = -3", "-3"),
        ("3/2", r"\frac{3}{2}"),
        ("1.5", r"\frac{3}{2}"),
        (r"1 \frac{1}{2}", r"\frac{3}{2}"),
        (r"\frac{-3+\sqrt{5}}{2}", r"\frac{\sqrt{5}-3}{2}"),
        (r"6 \cdot \sqrt{2}", r"6\sqrt{2}"),
        (r"12 \times \pi", r"12\pi"),
        ("12*pi", r"12\pi"),
        ("45^\\circ", "45"),
        ("20 km/h", "20"),
        ("12 cm^2", "12"),
        ("x^2 + 2x + 1", "x^{2}+2x+1"),
        ("(x^2+2x+1)", "x^{2}+2x+1"),
        (r"x \in (-\infty, 3]", r"(-\infty, 3]"),
        (r"x = -2,\ x = 1/3", r"-2, \frac{1}{3}"),
        (r"\left(-\infty, -\frac{1}{2}\right) \cup (2, \infty)", r"(-\infty, -\frac{1}{2}) \cup (2, \infty)"),
        (r"\frac{28}{17} - \frac{58}{17}i", r"\frac{28}{17}-\frac{58i}{17}"),
    ],
)
def test_an_answer_in_another_notation_is_worked_out(answer, gold):
    assert unfinished(answer, gold) is None
    pytest.importorskip("sympy", reason="needs the extra [math]")
    assert grade_math(answer, gold).correct


def test_an_unfinished_answer_scores_zero():
    with make("math:Arithmetic", level=1) as env:
        env.reset(idx=next(i for i, row in enumerate(env.dataset[:50]) if row["method"] == "addition"))
        copied = env.step(rf"\boxed{{{env.question.split('$')[1]}}}")
        env.reset(idx=0)
        unfinished = env.step(rf"\boxed{{{int(env.answer) - 1}+1}}")
    assert copied.reward == unfinished.reward == 0.0 and "operations" in unfinished[0]


@pytest.mark.slow
@pytest.mark.parametrize("family", MATH_FAMILIES)
def test_the_expressions_of_a_question_earn_nothing(family):
    pytest.importorskip("sympy", reason="needs the extra [math]")
    for level in LEVELS:
        env = MathFamilyEnv(family, level)
        for idx in range(6):
            env.reset(idx=idx)
            shown = env.question.split("$")[1::2]
            members = [member for each in shown for member in re.split(r"=|\\le |[<>]", each)]
            for copied in {*shown, *members} - {""}:
                if not re.fullmatch(r"[-\d.]+|.*\\%", copied):  # a number that the question has may be right
                    env.reset(idx=idx)
                    assert env.step(rf"\boxed{{{copied}}}").reward == 0.0, env.row


@pytest.mark.parametrize(("family", "least", "template"), MATH, ids=lambda value: getattr(value, "__name__", value))
def test_a_template_draws_many_questions_with_readable_answers(family, least, template):
    pytest.importorskip("sympy", reason="needs the extra [math]")
    for level in range(least, MAX_LEVEL + 1):
        questions = [template(random.Random(f"{level} {seed}"), level) for seed in range(25)]
        assert len({question.text for question in questions}) >= 8
        for question in questions:
            assert question.text.count("$") % 2 == 0 and question.text[-1] in ".?"
            assert grade_math(question.answer, question.answer).correct
        wrong = next(q.answer for q in questions[1:] if q.answer != questions[0].answer)
        assert not grade_math(wrong, questions[0].answer).correct


@pytest.mark.slow
def test_answers_to_equations_solve_them():
    """Check the answers with sympy, which the templates do not use."""
    sympy = pytest.importorskip("sympy", reason="needs the extra [math]")
    from gem.envs.questions.families import algebra
    from gem.graders.math.engine import to_sympy
    from gem.graders.math.parser import parse

    x = sympy.Symbol("x")
    for seed in range(10):
        for template in (
            *(algebra.linear_equation, algebra.quadratic_equation),
            *(algebra.irrational_roots, algebra.exponential_equation),
        ):
            question = template(random.Random(seed), 3)
            left, right = question.text.split("$")[1].split("=")
            for value in question.answer.split(","):
                difference = (to_sympy(parse(left)) - to_sympy(parse(right))).subs(x, to_sympy(parse(value.strip())))
                assert sympy.simplify(difference) == 0, question


def test_number_theory_answers_agree_with_sympy():
    sympy = pytest.importorskip("sympy", reason="needs the extra [math]")
    from gem.envs.questions.families import number_theory

    def number(text: str) -> int:
        return int("".join(c for c in text.split("$")[1] if c.isdigit()))

    for seed in range(30):
        divisors = number_theory.number_of_divisors(random.Random(seed), 4)
        assert int(divisors.answer) == sympy.divisor_count(number(divisors.text))
        prime = number_theory.largest_prime_factor(random.Random(seed), 4)
        assert int(prime.answer) == max(sympy.factorint(number(prime.text)))
        inverse = number_theory.inverse_modulo(random.Random(seed), 4)
        modulus = int(inverse.text.split("pmod{")[1].split("}")[0])
        factor = int(inverse.text.split("${")[0].split("and $")[1].split("x")[0])
        assert factor * int(inverse.answer) % modulus == 1


def numbers_in(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"-?\d+", text)]


@pytest.mark.slow
def test_number_theory_answers_agree_with_counting():
    from gem.envs.questions.families import number_theory as theory

    def asked(template: Any, seed: int) -> tuple[list[int], int]:
        question = template(random.Random(seed), 2)
        return numbers_in(question.text), int(question.answer)

    for seed in range(30):
        (divisor, low, high), count = asked(theory.count_of_multiples, seed)
        assert count == sum(n % divisor == 0 for n in range(low, high + 1))
        (prime, number), exponent = asked(theory.power_in_a_factorial, seed)
        assert math.factorial(number) % prime**exponent == 0 != math.factorial(number) % prime ** (exponent + 1)
        (_, last, *divisors), count = asked(theory.divisible_by_none, seed)
        assert count == sum(all(n % d for d in divisors) for n in range(1, last + 1))
        (number, _), value = asked(theory.sum_of_divisors, seed)
        assert value == sum({d for n in range(1, math.isqrt(number) + 1) if number % n == 0 for d in (n, number // n)})
        (_, base, _, modulus), order = asked(theory.multiplicative_order, seed)
        assert [pow(base, k, modulus) for k in range(1, order + 1)].index(1) == order - 1
        (_, number, _), count = asked(theory.totient, seed)
        assert count == sum(math.gcd(n, number) == 1 for n in range(1, number + 1))


def test_answers_about_triangles_agree_with_coordinates():
    from gem.envs.questions.families import geometry
    from gem.graders.math.engine import to_sympy
    from gem.graders.math.parser import parse

    pytest.importorskip("sympy", reason="needs the extra [math]")
    for seed in range(20):
        for template in (geometry.triangle_from_sides, geometry.inscribed_circle, geometry.median_of_a_triangle):
            question = template(random.Random(seed), 3)
            a, b, c = numbers_in(question.text)
            x = (c * c + b * b - a * a) / (2 * c)  # A at the origin, B at (c, 0), C at (x, y)
            y = math.sqrt(b * b - x * x)
            expected = {
                "triangle_from_sides": c * y / 2,
                "inscribed_circle": c * y / (a + b + c),
                "median_of_a_triangle": math.hypot((c + x) / 2, y / 2),
            }
            assert float(to_sympy(parse(question.answer))) == pytest.approx(expected[template.__name__])
        question = geometry.circle_through_points(random.Random(seed), 3)
        (ax, ay), (bx, by), (cx, cy) = [numbers_in(part) for part in question.text.split("$")[1::2]]
        b, c = complex(bx - ax, by - ay), complex(cx - ax, cy - ay)
        center = b * c * (b - c).conjugate() / (b * c.conjugate() - b.conjugate() * c)
        assert float(to_sympy(parse(question.answer))) == pytest.approx(abs(center))


def test_arithmetic_answers_agree_with_a_simulation():
    from gem.envs.questions.families import arithmetic

    for seed in range(30):
        question = arithmetic.digit_of_a_quotient(random.Random(seed), 5)
        top, bottom, place = numbers_in(question.text)
        for _ in range(place):
            digit, top = divmod(10 * top, bottom)
        assert digit == int(question.answer)
        question = arithmetic.sum_of_a_range(random.Random(seed), 5)
        first, second, _, last, step = numbers_in(question.text)
        assert step == second - first and int(question.answer) == sum(range(first, last + 1, step))


def test_a_triangle_area_agrees_with_herons_formula():
    from gem.envs.questions.families import geometry

    for seed in range(30):
        question = geometry.triangle_from_coordinates(random.Random(seed), 3)
        corners = [tuple(map(int, part.strip("()").split(","))) for part in question.text.split("$")[1::2]]
        sides = [
            ((ax - bx) ** 2 + (ay - by) ** 2)
            for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True)
        ]
        a, b, c = sides  # Heron's formula, over squares of sides
        assert 16 * Fraction(question.answer.replace(r"\frac{", "").replace("}{", "/").replace("}", "")) ** 2 == (
            4 * a * b - (a + b - c) ** 2
        )


@pytest.mark.parametrize("env_id", [*IDS, *PICTURED])
def test_a_seed_determines_its_sequence_of_questions(env_id):
    with make(env_id) as one, make(env_id) as two:
        first = [one.reset(seed=5)[0], one.reset()[0], one.reset()[0]]
        second = [two.reset(seed=5)[0], two.reset()[0], two.reset()[0]]
        texts = [o["text"] if isinstance(o, dict) else o for o in first]
        assert texts == [o["text"] if isinstance(o, dict) else o for o in second]
        assert len(set(map(str, texts))) >= 2 or isinstance(first[0], dict)


@pytest.mark.parametrize(
    ("level", "message"),
    [
        (6, "level .*1 to 5.*got 6; did you mean 5"),
        (0, r"got 0; did you mean 1\?"),
        ("3", "got '3'"),
        (2.0, "got 2.0"),
        ("hard", "got 'hard'$"),
        (float("nan"), "got nan$"),
        (True, "got True$"),
        (None, "got None$"),
    ],
)
def test_all_families_reject_the_same_levels(level, message):
    for env_id in (*IDS, *PICTURED):
        with pytest.raises(BadValue, match=message):
            make(env_id, level=level)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MathFamilyEnv("aritmetic"), "did you mean 'arithmetic'"),
        (lambda: LogicRulesEnv(depth=MAX_DEPTH + 1), "depth .*0 to 8.*got 9"),
        (lambda: LogicRulesEnv(distractors=-1), "distractors must be"),
        (lambda: gem.make("logic:Rules", levle=2), "did you mean 'level'"),
    ],
)
def test_an_unknown_family_or_option_is_rejected(build, message):
    with pytest.raises((BadValue, TypeError), match=message):
        build()


def test_a_row_is_reproducible():
    rows = {level: make("math:Algebra", level=level).dataset for level in (2, 3)}
    assert rows[3][123] == make("math:Algebra", level=3).dataset[123] != rows[2][123]


@pytest.mark.parametrize("depth", [None, *range(MAX_DEPTH + 1)])
def test_about_half_of_the_statements_are_true_at_every_depth(depth):
    drawn = LogicRulesEnv(5, depth=depth).dataset[:200]
    assert 70 <= sum(row["answer"] == "True" for row in drawn) <= 130


@pytest.mark.parametrize(
    "kwargs", [*({"level": level} for level in KINDS), {"depth": 0}, {"depth": 0, "distractors": 0}]
)
def test_a_statement_cannot_be_decided_by_counting_facts(kwargs):
    rows = LogicRulesEnv(**kwargs).dataset[:400]
    counts = Counter((row["text"].split("\n")[0].count("."), row["text"].count("If "), row["answer"]) for row in rows)
    shown = {(facts, rules) for facts, rules, _ in counts}
    best = sum(max(counts[facts, rules, answer] for answer in ("True", "False")) for facts, rules in shown)
    assert best / len(rows) <= 0.65


@pytest.mark.parametrize("level", KINDS)
def test_a_statement_cannot_be_decided_by_counting_facts_about_the_person(level):
    drawn = [draw(random.Random(seed), level, KINDS[level]) for seed in range(400)]
    for least in range(1, 6):
        right = sum(
            (text.count(f"{text.split('Statement: ')[1].split()[0]} is ") > least) == (answer == "True")
            for text, answer in drawn
        )
        assert right / len(drawn) <= 0.65


def test_rules_with_negation_and_relations_have_their_consequences():
    facts = frozenset({("A", "kind"), ("B", "kind"), ("B", "shy")})
    proud = Rule(("kind",), "proud", lacks=("shy",))
    calm = Rule(("proud",), "calm", verb="helps")
    derived = Theory(facts, (proud, calm), frozenset({("C", "helps", "A"), ("A", "helps", "B")})).consequences()
    assert derived == dict.fromkeys(facts, 0) | {("A", "proud"): 1, ("C", "calm"): 2}
    assert str(proud) == "If someone is kind and not shy, then they are proud."
    assert str(calm) == "If someone helps a person who is proud, then they are calm."


def test_consequences_agree_with_a_brute_force_search():
    rng = random.Random(3)
    letters = "abcdef"
    for _ in range(50):
        rules = [Rule(tuple(rng.sample(letters, rng.randint(1, 2))), rng.choice(letters)) for _ in range(5)]
        facts = frozenset(("X", letter) for letter in rng.sample(letters, 2))
        known = {trait for _, trait in facts}
        for order in permutations(rules):  # one pass finds the whole chain in at least one order
            for rule in order:
                if set(rule.needs) <= known:
                    known.add(rule.gives)
        assert {trait for _, trait in Theory(facts, tuple(rules)).consequences()} == known


@pytest.mark.parametrize("family", VISION_FAMILIES)
def test_images_are_drawn_and_differ(family):
    pytest.importorskip("PIL", reason="needs the extra [vision]")
    env = VisionFamilyEnv(family, level=2)
    seen = set()
    for seed in range(12):
        observation, _ = env.reset(seed=seed)
        (image,) = observation["images"]
        assert (image.mode, image.size) == ("RGB", (448, 336))
        assert len(image.getcolors(maxcolors=1 << 20)) > 2
        seen.add(image.tobytes())
    assert len(seen) == 12


def test_a_chart_does_not_show_its_values(monkeypatch):
    pytest.importorskip("PIL", reason="needs the extra [vision]")
    from gem.envs.questions.vision.charts import METHODS
    from gem.envs.questions.vision.picture import Canvas

    written: list[str] = []
    write = Canvas.write
    monkeypatch.setattr(
        Canvas,
        "write",
        lambda self, x, y, text, *given, **named: (written.append(text), write(self, x, y, text, *given, **named)),
    )
    for level, templates in METHODS.items():
        for template in templates:
            for seed in range(8):
                written.clear()
                template(random.Random(seed), level)
                labels = [int(text) for text in written if text.isdigit()]
                assert all(text.isdigit() or text in "JanFebMarAprMayJunJulAug" for text in written)
                assert len(labels) in (0, 5, 6, 12, 13)  # only axes have numbers, at regular steps


@pytest.mark.parametrize("kwargs", [{}, {"depth": 3}])
def test_logic_rules_can_be_pickled(kwargs):
    env = LogicRulesEnv(**kwargs)
    env.reset(seed=0)
    twin = pickle.loads(pickle.dumps(env))
    assert twin.row == env.row and twin.reset()[0] == env.reset()[0]
