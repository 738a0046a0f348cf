"""Generated question families: rows are reproducible, and every gold answer is right."""

from __future__ import annotations

import importlib
import random
from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest

import gem
from gem.envs.generated import MATH_FAMILIES, VISION_FAMILIES, Generated, LogicRulesEnv, MathFamilyEnv, VisionFamilyEnv
from gem.envs.logic_rules import MAX_DEPTH, Rule, Theory, draw
from gem.envs.math_families.template import MAX_LEVEL
from gem.errors import BadValue
from gem.graders.math import grade_math

IDS = ["math:Arithmetic", "math:Algebra", "math:NumberTheory", "math:Geometry", "logic:Rules"]
PICTURED = ["vision:Geometry", "vision:Charts"]
MATH = [(family, t) for family, name in MATH_FAMILIES.items() for t in importlib.import_module(name).TEMPLATES]


def make(env_id: str, **kwargs: Any) -> Any:
    if env_id.startswith("vision:"):
        pytest.importorskip("PIL", reason="needs the extra [vision]")
    if not env_id.startswith("logic:"):
        pytest.importorskip("sympy", reason="needs the extra [math]")
    return gem.make(env_id, **kwargs)


def test_each_math_family_has_at_least_ten_templates():
    assert all(count >= 10 for count in Counter(family for family, _ in MATH).values())


@pytest.mark.parametrize(("family", "template"), MATH, ids=lambda value: getattr(value, "__name__", value))
def test_a_template_draws_many_questions_with_readable_answers(family, template):
    pytest.importorskip("latex2sympy2_extended", reason="needs the extra [math]")
    for level in range(1, MAX_LEVEL + 1):
        questions = [template(random.Random(f"{level} {seed}"), level) for seed in range(25)]
        assert len({question.text for question in questions}) >= 8
        for question in questions:
            assert question.text.count("$") % 2 == 0 and question.text[-1] in ".?"
            assert grade_math(question.answer, question.answer).correct
        wrong = next(q.answer for q in questions[1:] if q.answer != questions[0].answer)
        assert not grade_math(wrong, questions[0].answer).correct


def test_answers_to_equations_solve_them():
    """Check the answers with sympy, which the templates do not use."""
    sympy = pytest.importorskip("sympy", reason="needs the extra [math]")
    from gem.envs.math_families import algebra
    from gem.graders.math_engine import parse

    x = sympy.Symbol("x")
    for seed in range(30):
        for template in (algebra.linear_equation, algebra.quadratic_equation, algebra.exponential_equation):
            question = template(random.Random(seed), 3)
            left, right = question.text.split("$")[1].split("=")
            for value in question.answer.split(","):
                difference = (parse(left) - parse(right)).subs(x, parse(value.strip()))
                assert sympy.simplify(difference) == 0, question


def test_number_theory_answers_agree_with_sympy():
    sympy = pytest.importorskip("sympy", reason="needs the extra [math]")
    from gem.envs.math_families import number_theory

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
        zeros = number_theory.zeros_of_a_factorial(random.Random(seed), 2)
        digits = str(sympy.factorial(number(zeros.text)))
        assert len(digits) - len(digits.rstrip("0")) == int(zeros.answer)


def test_a_triangle_area_agrees_with_herons_formula():
    from gem.envs.math_families import geometry

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
def test_every_gold_answer_scores_one_and_the_answer_of_another_row_zero(env_id):
    with make(env_id) as env:
        other = "no such answer"
        for seed in range(60):
            env.reset(seed=seed)
            gold = env.answer
            assert env.step(env.format.write(gold)).reward == 1.0
            env.reset(seed=seed)
            if not grade_math(other, gold).correct and env_id != "logic:Rules":
                assert env.step(env.format.write(other)).reward == 0.0
            other = gold


@pytest.mark.parametrize("env_id", [*IDS, *PICTURED])
def test_a_seed_determines_its_sequence_of_questions(env_id):
    with make(env_id) as one, make(env_id) as two:
        first = [one.reset(seed=5)[0], one.reset()[0], one.reset()[0]]
        second = [two.reset(seed=5)[0], two.reset()[0], two.reset()[0]]
        texts = [o["text"] if isinstance(o, dict) else o for o in first]
        assert texts == [o["text"] if isinstance(o, dict) else o for o in second]
        assert len(set(map(str, texts))) >= 2 or isinstance(first[0], dict)


@pytest.mark.parametrize("env_id", ["math:Arithmetic", "vision:Charts"])
def test_the_level_changes_the_questions(env_id):
    with make(env_id, level=1) as low, make(env_id, level=5) as high:
        rows = [(low.dataset[i]["text"], high.dataset[i]["text"]) for i in range(20)]
    assert sum(a != b for a, b in rows) >= 15


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MathFamilyEnv("aritmetic"), "did you mean 'arithmetic'"),
        (lambda: MathFamilyEnv("algebra", level=6), "level must be an integer from 1 to 5, got 6"),
        (lambda: VisionFamilyEnv("charts", level=True), "level must be"),
        (lambda: LogicRulesEnv(depth=MAX_DEPTH + 1), "depth must be an integer from 0 to 8, got 9"),
        (lambda: LogicRulesEnv(distractors=-1), "distractors must be"),
    ],
)
def test_an_unknown_family_or_level_is_rejected(build, message):
    with pytest.raises(BadValue, match=message):
        build()


def test_a_row_is_reproducible():
    templates = [t for family, t in MATH if family == "algebra"]
    assert Generated("f", templates, 3)[123] == Generated("f", templates, 3)[123] != Generated("f", templates, 2)[123]
    assert len({row["kind"] for row in Generated("f", templates, 3)[:60]}) >= 8


@pytest.mark.parametrize("depth", range(MAX_DEPTH + 1))
def test_about_half_of_the_statements_are_true_at_every_depth(depth):
    drawn = [draw(random.Random(seed), depth) for seed in range(200)]
    assert 60 <= sum(answer == "True" for _, answer in drawn) <= 140


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
