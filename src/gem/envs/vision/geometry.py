"""Figures labeled with measurements, and questions about them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

from gem.envs.math_families.template import fraction, radical
from gem.envs.vision.picture import PALETTE, SIZE, Canvas, Picture

TRIPLES = [(3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29)]
WIDTH, HEIGHT = SIZE


def right_triangle(rng: random.Random, level: int) -> Picture:
    scale = rng.randint(1, 2 * level)
    a, b, c = (scale * side for side in rng.choice(TRIPLES))
    if rng.random() < 0.5:
        a, b = b, a
    canvas = Canvas()
    unit = min(300 / b, 210 / a)
    left, bottom = 70, 280
    right, top = left + b * unit, bottom - a * unit
    canvas.polygon([(left, bottom), (right, bottom), (left, top)], fill=(235, 240, 250))
    canvas.line([(left, bottom - 18), (left + 18, bottom - 18), (left + 18, bottom)], width=2)
    hidden = rng.choice(["a", "b", "c"])
    canvas.write(left - 26, (top + bottom) / 2, "x" if hidden == "a" else str(a))
    canvas.write((left + right) / 2, bottom + 20, "x" if hidden == "b" else str(b))
    canvas.write((left + right) / 2 + 24, (top + bottom) / 2 - 18, "x" if hidden == "c" else str(c))
    return Picture(canvas.image, "How long is the side marked x?", str({"a": a, "b": b, "c": c}[hidden]))


def triangle_angles(rng: random.Random, level: int) -> Picture:
    first, second = rng.randint(30, 75), rng.randint(30, 75)
    third = 180 - first - second
    canvas = Canvas()
    base, left, bottom = 320.0, 64.0, 280.0
    height = base / (1 / math.tan(math.radians(first)) + 1 / math.tan(math.radians(second)))
    squeeze = min(1.0, 230 / height)
    base, height = base * squeeze, height * squeeze
    top = (left + height / math.tan(math.radians(first)), bottom - height)
    canvas.polygon([(left, bottom), (left + base, bottom), top], fill=(240, 248, 238))
    labels = [f"{first}°", f"{second}°", f"{third}°"]
    hidden = rng.randrange(3)
    labels[hidden] = "x"
    canvas.write(left + 46, bottom - 16, labels[0])
    canvas.write(left + base - 48, bottom - 16, labels[1])
    canvas.write(top[0], top[1] + 46, labels[2])
    return Picture(
        canvas.image, "How many degrees does the angle marked x measure?", str([first, second, third][hidden])
    )


def rectangle(rng: random.Random, level: int) -> Picture:
    a, b = rng.randint(3, 9 * level), rng.randint(3, 9 * level)
    canvas = Canvas()
    unit = min(320 / b, 220 / a)
    left, top, right, bottom = 70, 40, 70 + b * unit, 40 + a * unit
    canvas.box(left, top, right, bottom, (250, 244, 228))
    canvas.write(left - 26, (top + bottom) / 2, str(a))
    canvas.write((left + right) / 2, bottom + 22, str(b))
    asked, answer = rng.choice(
        [("area", str(a * b)), ("perimeter", str(2 * (a + b))), ("length of a diagonal", radical(a * a + b * b))]
    )
    return Picture(canvas.image, f"What is the {asked} of the rectangle?", answer)


def ring(rng: random.Random, level: int) -> Picture:
    outer = rng.randint(3, 8 * level)
    inner = rng.randint(1, outer - 1)
    canvas = Canvas()
    x, y, radius = WIDTH / 2, HEIGHT / 2, 130
    canvas.circle(x, y, radius, PALETTE["orange"])
    canvas.circle(x, y, radius * inner / outer, (255, 255, 255))
    canvas.line([(x, y), (x + radius, y)], width=2)
    canvas.write(x + radius + 26, y, f"R={outer}", anchor="lm")
    canvas.write(x, y + 26, f"r={inner}")
    return Picture(
        canvas.image,
        "The radii of the circles are labeled R and r. What is the area of the orange ring?",
        rf"{outer * outer - inner * inner}\pi",
    )


def grid_polygon(rng: random.Random, level: int) -> Picture:
    canvas, step, columns, rows = Canvas(), 34, 11, 8
    left, top = 36, 30
    for column in range(columns + 1):
        canvas.line([(left + column * step, top), (left + column * step, top + rows * step)], (205, 210, 220), 1)
    for row in range(rows + 1):
        canvas.line([(left, top + row * step), (left + columns * step, top + row * step)], (205, 210, 220), 1)
    while True:
        corners = [(rng.randint(0, columns), rng.randint(0, rows)) for _ in range(3 if level < 3 else 4)]
        corners.sort(key=lambda p: math.atan2(p[1] - rows / 2, p[0] - columns / 2))
        pairs = list(zip(corners, corners[1:] + corners[:1], strict=True))
        doubled = abs(sum(ax * by - bx * ay for (ax, ay), (bx, by) in pairs))
        if doubled >= 8 and _convex(corners):
            break
    canvas.polygon([(left + x * step, top + y * step) for x, y in corners], fill=(190, 215, 245))
    return Picture(
        canvas.image,
        "Each square of the grid has side length 1. What is the area of the shape?",
        fraction(Fraction(doubled, 2)),
    )


def shapes(rng: random.Random, level: int) -> Picture:
    canvas = Canvas()
    spots = [(60 + 82 * (i % 5), 60 + 74 * (i // 5)) for i in range(20)]
    chosen = rng.sample(spots, 6 + 2 * level)
    kinds = [(rng.choice(["circle", "square", "triangle"]), rng.choice(list(PALETTE))) for _ in chosen]
    for (x, y), (kind, color) in zip(chosen, kinds, strict=True):
        fill = PALETTE[color]
        if kind == "circle":
            canvas.circle(x, y, 24, fill)
        elif kind == "square":
            canvas.box(x - 22, y - 22, x + 22, y + 22, fill)
        else:
            canvas.polygon([(x, y - 26), (x - 26, y + 22), (x + 26, y + 22)], fill)
    kind, color = rng.choice(kinds)
    return Picture(canvas.image, f"How many {color} {kind}s are there?", str(kinds.count((kind, color))))


def _convex(corners: list[tuple[int, int]]) -> bool:
    turns = [
        (bx - ax) * (cy - by) - (by - ay) * (cx - bx)
        for (ax, ay), (bx, by), (cx, cy) in zip(
            corners, corners[1:] + corners[:1], corners[2:] + corners[:2], strict=True
        )
    ]
    return all(turn > 0 for turn in turns) or all(turn < 0 for turn in turns)


TEMPLATES: tuple[Callable[[random.Random, int], Picture], ...] = (
    right_triangle,
    triangle_angles,
    rectangle,
    ring,
    grid_polygon,
    shapes,
)
