"""Geometry questions with exact answers: roots and multiples of pi."""

from __future__ import annotations

import random
from fractions import Fraction

from gem.envs.questions.families.template import (
    EXACT,
    MathQuestion,
    Methods,
    fraction,
    listed,
    nonzero,
    radical,
    split_square,
    times,
)

TRIPLES = [(3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29)]  # sides of right triangles
PI = r"\pi"
IN_PI = r"Give the exact value in terms of $\pi$."


def third_angle(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.randint(15, 85), rng.randint(15, 85)
    text = rf"Two angles of a triangle measure ${a}^\circ$ and ${b}^\circ$. How many degrees does the third measure?"
    return MathQuestion(text, str(180 - a - b))


def rectangle(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.randint(3, 90 * level), rng.randint(3, 90 * level)
    asked, value = rng.choice([("area", a * b), ("perimeter", 2 * (a + b))])
    return MathQuestion(f"A rectangle has sides of length ${a}$ and ${b}$. What is its {asked}?", str(value))


def trapezoid(rng: random.Random, level: int) -> MathQuestion:
    a, b, height = rng.sample(range(3, 20 + 12 * level), 3)
    text = f"A trapezoid has parallel sides of lengths ${a}$ and ${b}$ and height ${height}$. What is its area? {EXACT}"
    return MathQuestion(text, fraction(Fraction((a + b) * height, 2)))


def hypotenuse(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.randint(1, 50 * level), rng.randint(1, 50 * level)
    text = (
        f"The legs of a right triangle have lengths ${a}$ and ${b}$. How long is the hypotenuse? Give the exact value."
    )
    return MathQuestion(text, radical(a * a + b * b))


def circle_from_circumference(rng: random.Random, level: int) -> MathQuestion:
    radius = Fraction(rng.randint(1, 300 * level), rng.randint(1, 5))
    return MathQuestion(
        rf"A circle has circumference ${times(2 * radius, PI)}$. What is its area? {IN_PI}", times(radius * radius, PI)
    )


def sector(rng: random.Random, level: int) -> MathQuestion:
    radius, degrees = rng.randint(2, 40 * level), 5 * rng.randint(2, 71)
    text = (
        rf"What is the area of a sector with central angle ${degrees}^\circ$ in a circle of radius ${radius}$? {IN_PI}"
    )
    return MathQuestion(text, times(Fraction(degrees, 360) * radius * radius, PI))


def polygon_angle(rng: random.Random, level: int) -> MathQuestion:
    some, corners = rng.choice(
        [
            ("Three of the four angles of a quadrilateral", 4),
            ("Four of the five angles of a pentagon", 5),
            ("Five of the six angles of a hexagon", 6),
        ]
    )
    mean = 180 * (corners - 2) // corners
    angles = [mean + rng.randint(-20, 20) for _ in range(corners - 1)]
    known = listed([rf"{angle}^\circ" for angle in angles])
    text = f"{some} measure {known}. How many degrees does the remaining angle measure?"
    return MathQuestion(text, str(180 * (corners - 2) - sum(angles)))


def triangle_from_coordinates(rng: random.Random, level: int) -> MathQuestion:
    while True:
        (ax, ay), (bx, by), (cx, cy) = [[rng.randint(-6 * level, 6 * level) for _ in "xy"] for _ in "abc"]
        doubled = abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay))
        if doubled:
            break
    text = f"What is the area of the triangle with vertices $({ax}, {ay})$, $({bx}, {by})$ and $({cx}, {cy})$?"
    return MathQuestion(f"{text} {EXACT}", fraction(Fraction(doubled, 2)))


def similar_triangles(rng: random.Random, level: int) -> MathQuestion:
    area, top, bottom = rng.randint(2, 40 * level), rng.randint(2, 6 + level), rng.randint(1, 5 + level)
    text = (
        f"Two triangles are similar. Each side of the larger is ${fraction(Fraction(top + bottom, bottom))}$ times the "
        f"corresponding side of the smaller, which has area ${area}$. What is the area of the larger triangle? {EXACT}"
    )
    return MathQuestion(text, fraction(area * Fraction(top + bottom, bottom) ** 2))


def volume(rng: random.Random, level: int) -> MathQuestion:
    solid, part = rng.choice([("cone", Fraction(1, 3)), ("cylinder", Fraction(1))])
    radius, height = rng.randint(1, 20 * level), rng.randint(1, 20 * level)
    return MathQuestion(
        f"What is the volume of a {solid} with base radius ${radius}$ and height ${height}$? {IN_PI}",
        times(part * radius * radius * height, PI),
    )


def diagonal_of_a_box(rng: random.Random, level: int) -> MathQuestion:
    sides = [rng.randint(1, 12 * level) for _ in range(3)]
    text = f"The edges of a rectangular box have lengths {listed(sides)}. How long is its space diagonal?"
    return MathQuestion(f"{text} Give the exact value.", radical(sum(side * side for side in sides)))


def distance_to_a_line(rng: random.Random, level: int) -> MathQuestion:
    a, b, c = rng.choice(TRIPLES)
    constant, x, y = nonzero(rng, 9 * level), nonzero(rng, 6 * level), nonzero(rng, 6 * level)
    text = f"How far is the point $({x}, {y})$ from the line ${a}x + {b}y = {constant}$? {EXACT}"
    return MathQuestion(text, fraction(Fraction(abs(a * x + b * y - constant), c)))


def chord(rng: random.Random, level: int) -> MathQuestion:
    distance = rng.randint(1, 15 * level)
    radius = distance + rng.randint(1, 15 * level)
    text = (
        f"A chord is at distance ${distance}$ from the center of a circle of radius ${radius}$. How long is the chord? "
        "Give the exact value."
    )
    return MathQuestion(text, radical(4 * (radius * radius - distance * distance)))


def surface_of_a_cone(rng: random.Random, level: int) -> MathQuestion:
    radius, height = rng.randint(1, 20 * level), rng.randint(1, 20 * level)
    outside, inside = split_square(radius * radius + height * height)
    text = f"What is the lateral surface area of a cone with base radius ${radius}$ and height ${height}$? {IN_PI}"
    return MathQuestion(text, times(radius * outside, PI if inside == 1 else rf"\pi\sqrt{{{inside}}}"))


def law_of_cosines(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.randint(2, 15 * level), rng.randint(2, 15 * level)
    degrees, sign = rng.choice([(60, -1), (120, 1)])
    text = (
        rf"Two sides of a triangle have lengths ${a}$ and ${b}$, and the angle between them is ${degrees}^\circ$. "
        "How long is the third side? Give the exact value."
    )
    return MathQuestion(text, radical(a * a + b * b + sign * a * b))


def triangle_from_sides(rng: random.Random, level: int) -> MathQuestion:
    a, b, c = _triangle(rng, 6 * level)
    text = f"The sides of a triangle have lengths {listed([a, b, c])}. What is its area? Give the exact value."
    outside, inside = split_square(_sixteen_squared_areas(a, b, c))
    return MathQuestion(text, _root(Fraction(outside, 4), inside))


def inscribed_circle(rng: random.Random, level: int) -> MathQuestion:
    a, b, c = _triangle(rng, 6 * level)
    outside, inside = split_square(_sixteen_squared_areas(a, b, c))
    text = (
        f"The sides of a triangle have lengths {listed([a, b, c])}. What is the radius of its inscribed circle? "
        "Give the exact value."
    )
    return MathQuestion(text, _root(Fraction(outside, 2 * (a + b + c)), inside))


def median_of_a_triangle(rng: random.Random, level: int) -> MathQuestion:
    a, b, c = _triangle(rng, 6 * level)
    outside, inside = split_square(2 * b * b + 2 * c * c - a * a)
    text = f"In triangle $ABC$, $BC = {a}$, $CA = {b}$ and $AB = {c}$. How long is the median from $A$?"
    return MathQuestion(f"{text} Give the exact value.", _root(Fraction(outside, 2), inside))


def intersecting_chords(rng: random.Random, level: int) -> MathQuestion:
    a, b, c = (rng.randint(2, 6 * level) for _ in range(3))
    lengths = f"$AP = {a}$, $PB = {b}$ and $CP = {c}$"
    text = f"Chords $AB$ and $CD$ of a circle intersect at $P$. If {lengths}, how long is $PD$? {EXACT}"
    return MathQuestion(text, fraction(Fraction(a * b, c)))


def circle_through_points(rng: random.Random, level: int) -> MathQuestion:
    while True:
        points = [(rng.randint(-2 * level, 2 * level), rng.randint(-2 * level, 2 * level)) for _ in range(3)]
        (ax, ay), (bx, by), (cx, cy) = points
        doubled = abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay))
        if doubled:
            break
    product = 1
    for (px, py), (qx, qy) in zip(points, points[1:] + points[:1], strict=True):
        product *= (px - qx) ** 2 + (py - qy) ** 2
    outside, inside = split_square(product)
    text = f"What is the radius of the circle through the points $({ax}, {ay})$, $({bx}, {by})$ and $({cx}, {cy})$?"
    return MathQuestion(f"{text} Give the exact value.", _root(Fraction(outside, 2 * doubled), inside))


def _triangle(rng: random.Random, most: int) -> tuple[int, int, int]:
    """Draw the sides of a triangle that is not degenerate."""
    while True:
        a, b, c = (rng.randint(3, most) for _ in range(3))
        if a + b > c and b + c > a and c + a > b:
            return a, b, c


def _sixteen_squared_areas(a: int, b: int, c: int) -> int:
    """Return 16 times the square of the area of a triangle (Heron's formula)."""
    return (a + b + c) * (-a + b + c) * (a - b + c) * (a + b - c)


def _root(factor: Fraction, inside: int) -> str:
    return fraction(factor) if inside == 1 else times(factor, rf"\sqrt{{{inside}}}")


METHODS: Methods = {
    1: (third_angle, rectangle, trapezoid),
    2: (hypotenuse, circle_from_circumference, sector, polygon_angle),
    3: (triangle_from_coordinates, similar_triangles, volume, diagonal_of_a_box),
    4: (distance_to_a_line, chord, surface_of_a_cone, law_of_cosines),
    5: (triangle_from_sides, inscribed_circle, median_of_a_triangle, intersecting_chords, circle_through_points),
}
