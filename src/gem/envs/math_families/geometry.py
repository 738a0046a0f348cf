"""Geometry questions with exact answers: roots and multiples of pi."""

from __future__ import annotations

import random
from fractions import Fraction

from gem.envs.math_families.template import MathQuestion, Template, fraction, nonzero, radical

TRIPLES = [(3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29)]  # sides of right triangles


def hypotenuse(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.randint(1, 9 * level), rng.randint(1, 9 * level)
    return MathQuestion(
        f"The legs of a right triangle have lengths ${a}$ and ${b}$. How long is the hypotenuse?",
        radical(a * a + b * b),
    )


def triangle_from_coordinates(rng: random.Random, level: int) -> MathQuestion:
    while True:
        (ax, ay), (bx, by), (cx, cy) = [[rng.randint(-6 * level, 6 * level) for _ in "xy"] for _ in "abc"]
        doubled = abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay))
        if doubled:
            break
    text = f"What is the area of the triangle with vertices $({ax}, {ay})$, $({bx}, {by})$ and $({cx}, {cy})$?"
    return MathQuestion(text, fraction(Fraction(doubled, 2)))


def distance_to_a_line(rng: random.Random, level: int) -> MathQuestion:
    a, b, c = rng.choice(TRIPLES)
    constant, x, y = nonzero(rng, 9 * level), nonzero(rng, 6 * level), nonzero(rng, 6 * level)
    text = f"How far is the point $({x}, {y})$ from the line ${a}x + {b}y = {constant}$?"
    return MathQuestion(text, fraction(Fraction(abs(a * x + b * y - constant), c)))


def circle_from_circumference(rng: random.Random, level: int) -> MathQuestion:
    radius = Fraction(rng.randint(1, 12 * level), rng.randint(1, 2))
    text = rf"A circle has circumference ${_times_pi(2 * radius)}$. What is its area?"
    return MathQuestion(text, _times_pi(radius * radius))


def sector(rng: random.Random, level: int) -> MathQuestion:
    radius, degrees = rng.randint(2, 8 * level), 15 * rng.randint(1, 23)
    text = rf"What is the area of a sector with central angle ${degrees}^\circ$ in a circle of radius ${radius}$?"
    return MathQuestion(text, _times_pi(Fraction(degrees, 360) * radius * radius))


def polygon_angle(rng: random.Random, level: int) -> MathQuestion:
    corners = rng.randint(5, 9 + 12 * level)
    text = f"How many degrees does each interior angle of a regular polygon with ${corners}$ sides measure?"
    return MathQuestion(text, fraction(Fraction(180 * (corners - 2), corners)))


def cone(rng: random.Random, level: int) -> MathQuestion:
    radius, height = rng.randint(1, 7 * level), rng.randint(1, 7 * level)
    text = f"What is the volume of a cone with base radius ${radius}$ and height ${height}$?"
    return MathQuestion(text, _times_pi(Fraction(radius * radius * height, 3)))


def slant_of_a_cone(rng: random.Random, level: int) -> MathQuestion:
    scale = rng.randint(1, 2 * level)
    radius, height, slant = (scale * side for side in rng.choice(TRIPLES))
    text = f"What is the lateral surface area of a cone with base radius ${radius}$ and height ${height}$?"
    return MathQuestion(text, _times_pi(Fraction(radius * slant)))


def diagonal_of_a_box(rng: random.Random, level: int) -> MathQuestion:
    sides = [rng.randint(1, 7 * level) for _ in range(3)]
    text = f"How long is the space diagonal of a ${sides[0]}$ by ${sides[1]}$ by ${sides[2]}$ box?"
    return MathQuestion(text, radical(sum(side * side for side in sides)))


def law_of_cosines(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.randint(2, 8 * level), rng.randint(2, 8 * level)
    degrees, sign = rng.choice([(60, -1), (120, 1)])
    text = (
        rf"Two sides of a triangle have lengths ${a}$ and ${b}$, and the angle between them is ${degrees}^\circ$. "
        "How long is the third side?"
    )
    return MathQuestion(text, radical(a * a + b * b + sign * a * b))


def similar_triangles(rng: random.Random, level: int) -> MathQuestion:
    area, top, bottom = rng.randint(2, 20 * level), rng.randint(2, 4 + level), rng.randint(1, 3 + level)
    text = (
        f"Two triangles are similar. Each side of the larger is ${fraction(Fraction(top + bottom, bottom))}$ times the "
        f"corresponding side of the smaller, which has area ${area}$. What is the area of the larger triangle?"
    )
    return MathQuestion(text, fraction(area * Fraction(top + bottom, bottom) ** 2))


def chord(rng: random.Random, level: int) -> MathQuestion:
    distance = rng.randint(1, 6 * level)
    radius = distance + rng.randint(1, 6 * level)
    text = (
        f"A chord is at distance ${distance}$ from the center of a circle of radius ${radius}$. How long is the chord?"
    )
    return MathQuestion(text, radical(4 * (radius * radius - distance * distance)))


def circle_through_points(rng: random.Random, level: int) -> MathQuestion:
    scale = rng.randint(1, 3 * level)
    a, b, c = (scale * side for side in rng.choice(TRIPLES))
    x, y = nonzero(rng, 5 * level), nonzero(rng, 5 * level)
    text = f"What is the radius of the circle through $({x}, {y})$, $({x + a}, {y})$ and $({x}, {y + b})$?"
    return MathQuestion(text, fraction(Fraction(c, 2)))


def _times_pi(factor: Fraction) -> str:
    if factor.denominator == 1:
        return rf"{'' if factor == 1 else factor.numerator}\pi"
    return rf"\frac{{{'' if factor.numerator == 1 else factor.numerator}\pi}}{{{factor.denominator}}}"


TEMPLATES: tuple[Template, ...] = (
    hypotenuse,
    triangle_from_coordinates,
    distance_to_a_line,
    circle_from_circumference,
    sector,
    polygon_angle,
    cone,
    slant_of_a_cone,
    diagonal_of_a_box,
    law_of_cosines,
    similar_triangles,
    chord,
    circle_through_points,
)
