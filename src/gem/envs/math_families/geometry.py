"""Questions of geometry, answered exactly: with roots and multiples of pi."""

from __future__ import annotations

import random
from fractions import Fraction

from gem.envs.math_families.template import Question, Template, fraction, nonzero, radical

TRIPLES = [(3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29)]  # of right triangles


def hypotenuse(rng: random.Random, level: int) -> Question:
    a, b = rng.randint(1, 9 * level), rng.randint(1, 9 * level)
    return Question(
        f"The legs of a right triangle are ${a}$ and ${b}$. How long is its hypotenuse?", radical(a * a + b * b)
    )


def triangle_from_coordinates(rng: random.Random, level: int) -> Question:
    while True:
        (ax, ay), (bx, by), (cx, cy) = [[rng.randint(-6 * level, 6 * level) for _ in "xy"] for _ in "abc"]
        doubled = abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay))
        if doubled:
            break
    text = f"What is the area of the triangle with vertices $({ax}, {ay})$, $({bx}, {by})$ and $({cx}, {cy})$?"
    return Question(text, fraction(Fraction(doubled, 2)))


def distance_to_a_line(rng: random.Random, level: int) -> Question:
    a, b, c = rng.choice(TRIPLES)
    constant, x, y = nonzero(rng, 9 * level), nonzero(rng, 6 * level), nonzero(rng, 6 * level)
    text = f"How far is the point $({x}, {y})$ from the line ${a}x + {b}y = {constant}$?"
    return Question(text, fraction(Fraction(abs(a * x + b * y - constant), c)))


def circle_from_circumference(rng: random.Random, level: int) -> Question:
    radius = Fraction(rng.randint(1, 12 * level), rng.randint(1, 2))
    text = rf"A circle has circumference ${_times_pi(2 * radius)}$. What is its area?"
    return Question(text, _times_pi(radius * radius))


def sector(rng: random.Random, level: int) -> Question:
    radius, degrees = rng.randint(2, 8 * level), 15 * rng.randint(1, 23)
    text = rf"What is the area of a sector of ${degrees}^\circ$ in a circle of radius ${radius}$?"
    return Question(text, _times_pi(Fraction(degrees, 360) * radius * radius))


def polygon_angle(rng: random.Random, level: int) -> Question:
    corners = rng.randint(5, 9 + 12 * level)
    text = f"How many degrees has each interior angle of a regular polygon with ${corners}$ sides?"
    return Question(text, fraction(Fraction(180 * (corners - 2), corners)))


def cone(rng: random.Random, level: int) -> Question:
    radius, height = rng.randint(1, 7 * level), rng.randint(1, 7 * level)
    text = f"What is the volume of a cone of base radius ${radius}$ and height ${height}$?"
    return Question(text, _times_pi(Fraction(radius * radius * height, 3)))


def slant_of_a_cone(rng: random.Random, level: int) -> Question:
    scale = rng.randint(1, 2 * level)
    radius, height, slant = (scale * side for side in rng.choice(TRIPLES))
    text = f"What is the lateral surface area of a cone of base radius ${radius}$ and height ${height}$?"
    return Question(text, _times_pi(Fraction(radius * slant)))


def diagonal_of_a_box(rng: random.Random, level: int) -> Question:
    sides = [rng.randint(1, 7 * level) for _ in range(3)]
    text = f"How long is the space diagonal of a box of ${sides[0]}$ by ${sides[1]}$ by ${sides[2]}$?"
    return Question(text, radical(sum(side * side for side in sides)))


def law_of_cosines(rng: random.Random, level: int) -> Question:
    a, b = rng.randint(2, 8 * level), rng.randint(2, 8 * level)
    degrees, sign = rng.choice([(60, -1), (120, 1)])
    text = rf"Two sides of a triangle, ${a}$ and ${b}$ long, enclose ${degrees}^\circ$. How long is the third?"
    return Question(text, radical(a * a + b * b + sign * a * b))


def similar_triangles(rng: random.Random, level: int) -> Question:
    area, top, bottom = rng.randint(2, 20 * level), rng.randint(2, 4 + level), rng.randint(1, 3 + level)
    text = (
        f"Two triangles are similar; a side of the larger is ${fraction(Fraction(top + bottom, bottom))}$ times the "
        f"corresponding side of the smaller, whose area is ${area}$. What is the area of the larger?"
    )
    return Question(text, fraction(area * Fraction(top + bottom, bottom) ** 2))


def chord(rng: random.Random, level: int) -> Question:
    distance = rng.randint(1, 6 * level)
    radius = distance + rng.randint(1, 6 * level)
    text = f"How long is a chord at distance ${distance}$ from the centre of a circle of radius ${radius}$?"
    return Question(text, radical(4 * (radius * radius - distance * distance)))


def circle_through_points(rng: random.Random, level: int) -> Question:
    scale = rng.randint(1, 3 * level)
    a, b, c = (scale * side for side in rng.choice(TRIPLES))
    x, y = nonzero(rng, 5 * level), nonzero(rng, 5 * level)
    text = f"What is the radius of the circle through $({x}, {y})$, $({x + a}, {y})$ and $({x}, {y + b})$?"
    return Question(text, fraction(Fraction(c, 2)))


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
