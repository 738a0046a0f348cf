"""Charts with questions that combine several of their values."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

from gem.envs.math_families.template import fraction
from gem.envs.vision.picture import INK, PALETTE, Canvas, Picture

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug"]
LEFT, TOP, RIGHT, BOTTOM = 56, 28, 430, 290


def bar_chart(rng: random.Random, level: int) -> Picture:
    labels, values = _series(rng, level)
    canvas, top = Canvas(), _axes_for(values)
    _draw_axes(canvas, top)
    width = (RIGHT - LEFT) / len(values)
    for index, (label, value) in enumerate(zip(labels, values, strict=True)):
        x = LEFT + (index + 0.5) * width
        y = BOTTOM - (BOTTOM - TOP) * value / top
        canvas.box(x - width * 0.32, y, x + width * 0.32, BOTTOM, PALETTE["blue"])
        canvas.write(x, y - 12, str(value), 15)
        canvas.write(x, BOTTOM + 16, label, 15)
    return Picture(canvas.image, *_question(rng, labels, values))


def line_chart(rng: random.Random, level: int) -> Picture:
    labels, values = _series(rng, level)
    canvas, top = Canvas(), _axes_for(values)
    _draw_axes(canvas, top)
    width = (RIGHT - LEFT) / len(values)
    points = [
        (LEFT + (index + 0.5) * width, BOTTOM - (BOTTOM - TOP) * value / top) for index, value in enumerate(values)
    ]
    canvas.line(points, PALETTE["red"])
    for (x, y), label, value in zip(points, labels, values, strict=True):
        canvas.circle(x, y, 5, PALETTE["red"])
        canvas.write(x, y - 16, str(value), 15)
        canvas.write(x, BOTTOM + 16, label, 15)
    rises = [(b - a, i) for i, (a, b) in enumerate(pairwise(values))]
    best = max(rises)
    if rng.random() < 0.4 and [rise for rise, _ in rises].count(best[0]) == 1:
        text = "What is the largest increase from one month to the next?"
        return Picture(canvas.image, text, str(best[0]))
    return Picture(canvas.image, *_question(rng, labels, values))


def pie_chart(rng: random.Random, level: int) -> Picture:
    names = rng.sample(list(PALETTE), min(6, 3 + level // 2))
    cuts = sorted(rng.sample(range(1, 20), len(names) - 1))
    shares = [5 * (b - a) for a, b in zip([0, *cuts], [*cuts, 20], strict=True)]
    total = 20 * rng.randint(2, 15 * level)
    canvas, start = Canvas(), -90.0
    for name, share in zip(names, shares, strict=True):
        canvas.slice(150, 168, 120, start, start + 3.6 * share, PALETTE[name])
        start += 3.6 * share
    for row, (name, share) in enumerate(zip(names, shares, strict=True)):
        canvas.box(300, 60 + 34 * row, 320, 80 + 34 * row, PALETTE[name])
        canvas.write(330, 70 + 34 * row, f"{name} {share}%", 17, anchor="lm")
    picked = rng.randrange(len(names))
    text = f"The whole pie represents {total} votes. How many votes are for {names[picked]}?"
    return Picture(canvas.image, text, fraction(Fraction(total * shares[picked], 100)))


def table(rng: random.Random, level: int) -> Picture:
    rows, columns = rng.sample(MONTHS, 3 + level // 2), rng.sample(["red", "blue", "green", "gray"], 3)
    cells = {(row, column): rng.randint(1, 20 * level) for row in rows for column in columns}
    canvas, x0, y0, dx, dy = Canvas(), 40, 30, 95, 46
    for j, column in enumerate(columns):
        canvas.write(x0 + (j + 1.5) * dx, y0 + dy / 2, column)
    for i, row in enumerate(rows):
        y = y0 + (i + 1) * dy
        canvas.line([(x0, y), (x0 + 4 * dx, y)], INK, 1)
        canvas.write(x0 + dx / 2, y + dy / 2, row)
        for j, column in enumerate(columns):
            canvas.write(x0 + (j + 1.5) * dx, y + dy / 2, str(cells[row, column]))
    if rng.random() < 0.5:
        column = rng.choice(columns)
        total = sum(cells[row, column] for row in rows)
        return Picture(canvas.image, f"What is the sum of the {column} column?", str(total))
    row = rng.choice(rows)
    return Picture(canvas.image, f"What is the sum of the {row} row?", str(sum(cells[row, c] for c in columns)))


def _series(rng: random.Random, level: int) -> tuple[list[str], list[int]]:
    labels = MONTHS[: 4 + level // 2 + rng.randint(0, 2)]
    return labels, [rng.randint(2, 10 + 18 * level) for _ in labels]


def _axes_for(values: list[int]) -> int:
    """Return the value at the top of the axis: a round number above all values."""
    step = 5 if max(values) < 45 else 10
    return (max(values) // step + 1) * step + step // 5


def _draw_axes(canvas: Canvas, top: int) -> None:
    canvas.line([(LEFT, TOP - 8), (LEFT, BOTTOM), (RIGHT, BOTTOM)], INK, 2)
    for part in range(5):
        y = BOTTOM - (BOTTOM - TOP) * part / 4
        canvas.line([(LEFT - 5, y), (LEFT, y)], INK, 2)
        canvas.write(LEFT - 9, y, f"{top * part / 4:g}", 13, anchor="rm")


def _question(rng: random.Random, labels: list[str], values: list[int]) -> tuple[str, str]:
    first, second = rng.sample(range(len(values)), 2)
    return rng.choice(
        [
            (
                f"What is the sum of the values for {labels[first]} and {labels[second]}?",
                str(values[first] + values[second]),
            ),
            ("What is the difference between the largest and the smallest value?", str(max(values) - min(values))),
            (
                "What is the mean of all values? Give an integer or a fraction in lowest terms.",
                fraction(Fraction(sum(values), len(values))),
            ),
            (
                f"In how many months is the value greater than in {labels[first]}?",
                str(sum(v > values[first] for v in values)),
            ),
        ]
    )


TEMPLATES: tuple[Callable[[random.Random, int], Picture], ...] = (bar_chart, line_chart, pie_chart, table)
