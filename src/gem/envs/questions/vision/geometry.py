"""Figures with labels or on a grid, and questions about them."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from gem.envs.questions.families.template import EXACT, Methods, fraction, radical, times
from gem.envs.questions.vision.picture import PALETTE, SIZE, Canvas, Color, Picture

WIDTH, HEIGHT = SIZE
GRID: Color = (205, 210, 220)


def count_shapes(rng: random.Random, level: int) -> Picture:
    canvas = Canvas()
    spots = [(60 + 82 * (i % 5), 42 + 84 * (i // 5)) for i in range(20)]
    kinds = ["circle", "square", "triangle"]
    drawn = []
    for x, y in rng.sample(spots, 8 + 2 * level):
        kind, fill = rng.choice(kinds), PALETTE[rng.choice(list(PALETTE))]
        drawn.append(kind)
        if kind == "circle":
            canvas.circle(x, y, 24, fill)
        elif kind == "square":
            canvas.box(x - 22, y - 22, x + 22, y + 22, fill)
        else:
            canvas.polygon([(x, y - 26), (x - 26, y + 22), (x + 26, y + 22)], fill)
    kind = rng.choice(kinds)
    return Picture(canvas.image, f"How many {kind}s are there?", str(drawn.count(kind)))


def rectangle(rng: random.Random, level: int) -> Picture:
    a, b = _two_sides(rng, 80)
    canvas = Canvas()
    unit = min(320 / b, 220 / a)
    left, top, right, bottom = 70, 40, 70 + b * unit, 40 + a * unit
    canvas.box(left, top, right, bottom, (250, 244, 228))
    canvas.write(left - 26, (top + bottom) / 2, str(a))
    canvas.write((left + right) / 2, bottom + 22, str(b))
    asked, answer = rng.choice([("area", a * b), ("perimeter", 2 * (a + b))])
    return Picture(canvas.image, f"What is the {asked} of the rectangle?", str(answer))


def right_triangle(rng: random.Random, level: int) -> Picture:
    a, b = _two_sides(rng, 20 + 20 * level)
    squares = {"a": a * a, "b": b * b, "c": a * a + b * b}
    hidden = rng.choice("abc")
    if hidden != "c":  # the labels are a hypotenuse and a leg
        c = max(a, b) + rng.randint(1, 20)
        leg = a if hidden == "b" else b
        squares = {"a": leg * leg, "b": leg * leg, "c": c * c} | {hidden: c * c - leg * leg}
    labels = {side: "x" if side == hidden else radical(square) for side, square in squares.items()}
    height, base = math.sqrt(squares["a"]), math.sqrt(squares["b"])
    canvas, unit = Canvas(), min(300 / base, 210 / height)
    left, bottom = 70, 280
    right, top = left + base * unit, bottom - height * unit
    canvas.polygon([(left, bottom), (right, bottom), (left, top)], fill=(235, 240, 250))
    canvas.line([(left, bottom - 18), (left + 18, bottom - 18), (left + 18, bottom)], width=2)
    canvas.write(left - 26, (top + bottom) / 2, labels["a"])
    canvas.write((left + right) / 2, bottom + 20, labels["b"])
    canvas.write((left + right) / 2 + 24, (top + bottom) / 2 - 18, labels["c"])
    text = "The triangle has a right angle. How long is the side marked x? Give the exact value."
    return Picture(canvas.image, text, radical(squares[hidden]))


def triangle_angle(rng: random.Random, level: int) -> Picture:
    first, second = rng.randint(24, 84), rng.randint(24, 70)
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
    text = "How many degrees does the angle marked x measure?"
    return Picture(canvas.image, text, str([first, second, third][hidden]))


def ring(rng: random.Random, level: int) -> Picture:
    outer = rng.randint(20, 60 + 10 * level)
    inner = rng.randint(outer // 4, outer * 9 // 10)
    color = rng.choice(list(PALETTE))
    canvas = Canvas()
    x, y, radius = WIDTH / 2, HEIGHT / 2, 130
    canvas.circle(x, y, radius, PALETTE[color])
    canvas.circle(x, y, radius * inner / outer, (255, 255, 255))
    canvas.line([(x, y), (x + radius, y)], width=2)
    canvas.write(x + radius + 10, y, f"R={outer}", anchor="lm")
    canvas.write(x, y + 16, f"r={inner}", 15)
    text = (
        "The two circles have the same center and the radii R and r given in the figure. "
        f"What is the area of the {color} ring? Give the exact value in terms of $\\pi$."
    )
    return Picture(canvas.image, text, times(outer * outer - inner * inner, r"\pi"))


def grid_polygon(rng: random.Random, level: int) -> Picture:
    canvas, step, columns, rows = Canvas(), 34, 11, 8
    left, top = 36, 30
    for column in range(columns + 1):
        canvas.line([(left + column * step, top), (left + column * step, top + rows * step)], GRID, 1)
    for row in range(rows + 1):
        canvas.line([(left, top + row * step), (left + columns * step, top + row * step)], GRID, 1)
    while True:
        corners = [(rng.randint(0, columns), rng.randint(0, rows)) for _ in range(rng.choice([3, 4]))]
        corners.sort(key=lambda p: math.atan2(p[1] - rows / 2, p[0] - columns / 2))
        pairs = list(zip(corners, corners[1:] + corners[:1], strict=True))
        doubled = abs(sum(ax * by - bx * ay for (ax, ay), (bx, by) in pairs))
        if doubled >= 8 and _convex(corners):
            break
    canvas.polygon([(left + x * step, top + y * step) for x, y in corners], fill=(190, 215, 245))
    text = f"Each square of the grid has side length 1. What is the area of the blue shape? {EXACT}"
    return Picture(canvas.image, text, fraction(Fraction(doubled, 2)))


def l_shape(rng: random.Random, level: int) -> Picture:
    width, height = _two_sides(rng, 40)
    cut_x, cut_y = (rng.randint(side // 3, side * 2 // 3) for side in (width, height))
    canvas, unit, left, top = Canvas(), min(320 / width, 230 / height), 70, 40
    right, bottom = left + width * unit, top + height * unit
    inner_x, inner_y = right - cut_x * unit, top + cut_y * unit
    corners = [(left, top), (inner_x, top), (inner_x, inner_y), (right, inner_y), (right, bottom), (left, bottom)]
    canvas.polygon(corners, fill=(250, 238, 225))
    canvas.write((left + right) / 2, bottom + 20, str(width))
    canvas.write(left - 26, (top + bottom) / 2, str(height))
    canvas.write((inner_x + right) / 2, inner_y - 16, str(cut_x))
    canvas.write(inner_x + 20, (top + inner_y) / 2, str(cut_y))
    asked, value = rng.choice([("area", width * height - cut_x * cut_y), ("perimeter", 2 * (width + height))])
    return Picture(canvas.image, f"All angles in the figure are right angles. What is its {asked}?", str(value))


def protractor(rng: random.Random, level: int) -> Picture:
    low, high = sorted(rng.sample(range(1, 36), 2))
    canvas, x, y, radius = Canvas(), WIDTH / 2, 270, 190
    color = PALETTE[rng.choice(list(PALETTE))]
    canvas.line([(x - radius, y), (x + radius, y)], width=2)
    for degrees in range(0, 181, 10):
        length = 16 if degrees % 30 == 0 else 9
        canvas.line([_at(x, y, radius - length, degrees), _at(x, y, radius, degrees)], width=2)
        if degrees % 30 == 0:
            canvas.write(*_at(x, y, radius + 16, degrees), str(degrees), 14)
    for step in (low, high):
        canvas.line([(x, y), _at(x, y, radius - 24, 5 * step)], color, 3)
    text = (
        "Both rays point to a multiple of 5 degrees on the scale. How many degrees does the angle between them measure?"
    )
    return Picture(canvas.image, text, str(5 * (high - low)))


def parallel_line(rng: random.Random, level: int) -> Picture:
    near, far, short = rng.randint(4, 24), rng.randint(4, 24), rng.randint(4, 40)
    share = near / (near + far)
    canvas = Canvas()
    top, left, right = (rng.randint(150, 300), 40), (60, 290), (390, 290)
    d, e = ([a + (b - a) * share for a, b in zip(top, corner, strict=True)] for corner in (left, right))
    canvas.polygon([top, left, right], fill=(238, 236, 248))
    canvas.line([(d[0], d[1]), (e[0], e[1])])
    canvas.write(top[0], top[1] - 16, "A")
    canvas.write(left[0] - 14, left[1] + 8, "B")
    canvas.write(right[0] + 14, right[1] + 8, "C")
    canvas.write(d[0] - 14, d[1], "D")
    canvas.write(e[0] + 14, e[1], "E")
    canvas.write((top[0] + d[0]) / 2 - 16, (top[1] + d[1]) / 2 - 6, str(near), 15)
    canvas.write((left[0] + d[0]) / 2 - 16, (left[1] + d[1]) / 2 - 6, str(far), 15)
    canvas.write((d[0] + e[0]) / 2, e[1] - 13, str(short), 15)
    text = f"In triangle $ABC$, $DE$ is parallel to $BC$. How long is $BC$? {EXACT}"
    return Picture(canvas.image, text, fraction(Fraction(short * (near + far), near)))


def plate_with_a_hole(rng: random.Random, level: int) -> Picture:
    a, b = _two_sides(rng, 60)
    radius = rng.randint(2, max(2, min(a, b) * 2 // 5))
    canvas, unit = Canvas(), min(320 / b, 220 / a)
    left, top, right, bottom = 60, 40, 60 + b * unit, 40 + a * unit
    x, y = (left + right) / 2, (top + bottom) / 2
    canvas.box(left, top, right, bottom, (215, 222, 232))
    canvas.circle(x, y, radius * unit, (255, 255, 255))
    canvas.line([(x, y), (x, y - radius * unit)], width=2)
    canvas.write(left - 26, y, str(a))
    canvas.write(x, bottom + 20, str(b))
    canvas.write(right + 12, top + 14, f"r={radius}", anchor="lm")
    text = (
        "A circular hole of radius r is cut out of a rectangular plate. What is the area of the rest of the plate? "
        r"Give the exact value in terms of $\pi$."
    )
    return Picture(canvas.image, text, rf"{a * b}-{times(radius * radius, chr(92) + 'pi')}")


def _two_sides(rng: random.Random, most: int) -> tuple[int, int]:
    """Draw two lengths, neither of them more than three times the other, so that the figure is not too thin."""
    while True:
        a, b = rng.randint(4, most), rng.randint(4, most)
        if a <= 3 * b and b <= 3 * a:
            return a, b


def _at(x: float, y: float, radius: float, degrees: float) -> tuple[float, float]:
    angle = math.radians(degrees)
    return x + radius * math.cos(angle), y - radius * math.sin(angle)


def _convex(corners: list[tuple[int, int]]) -> bool:
    turns = [
        (bx - ax) * (cy - by) - (by - ay) * (cx - bx)
        for (ax, ay), (bx, by), (cx, cy) in zip(
            corners, corners[1:] + corners[:1], corners[2:] + corners[:2], strict=True
        )
    ]
    return all(turn > 0 for turn in turns) or all(turn < 0 for turn in turns)


METHODS: Methods = {
    1: (count_shapes, rectangle),
    2: (right_triangle, triangle_angle),
    3: (grid_polygon, ring),
    4: (l_shape, protractor),
    5: (parallel_line, plate_with_a_hole),
}
