"""Charts that have to be measured: values stand on the axis, not at the bars, points and slices.

Only every fourth step of an axis is labeled. The question says of which number the values are multiples, so that every
value is determined by the picture.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise
from statistics import median

from gem.envs.questions.families.template import EXACT, Methods, fraction
from gem.envs.questions.vision.picture import INK, PALETTE, Canvas, Color, Picture

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug"]
LEFT, TOP, RIGHT, BOTTOM = 56, 28, 412, 290
STEPS = 20  # of an axis, 13 pixels each
GRID: Color = (225, 228, 235)


def bar_value(rng: random.Random, level: int) -> Picture:
    unit, values = _unit(rng), _values(rng, 4 + rng.randint(0, 3))
    canvas = _bars(unit, values, rng.choice(list(PALETTE)))
    picked = rng.randrange(len(values))
    text = f"{_multiples(unit)} What is the value for {MONTHS[picked]}?"
    return Picture(canvas.image, text, str(unit * values[picked]))


def bar_difference(rng: random.Random, level: int) -> Picture:
    unit, values = _unit(rng), _values(rng, 4 + rng.randint(0, 3))
    canvas = _bars(unit, values, rng.choice(list(PALETTE)))
    text = f"{_multiples(unit)} What is the difference between the largest and the smallest value?"
    return Picture(canvas.image, text, str(unit * (max(values) - min(values))))


def largest_increase(rng: random.Random, level: int) -> Picture:
    unit = _unit(rng)
    while True:
        values = _values(rng, 5 + rng.randint(0, 3))
        if (increase := max(b - a for a, b in pairwise(values))) > 0:
            break
    canvas = Canvas()
    _draw_axes(canvas, unit)
    _draw_labels(canvas, MONTHS[: len(values)])
    _draw_line(canvas, values, PALETTE[rng.choice(list(PALETTE))])
    text = f"{_multiples(unit)} What is the largest increase from one month to the next?"
    return Picture(canvas.image, text, str(unit * increase))


def pie_share(rng: random.Random, level: int) -> Picture:
    names = rng.sample(list(PALETTE), 4 + rng.randint(0, 2))
    cuts = sorted(rng.sample(range(1, STEPS), len(names) - 1))
    shares = [b - a for a, b in zip([0, *cuts], [*cuts, STEPS], strict=True)]
    votes = STEPS * rng.randint(5, 50 * level)
    canvas, start = Canvas(), rng.choice([-90.0, -45.0, 0.0, 30.0])
    for name, share in zip(names, shares, strict=True):
        canvas.slice(224, 168, 140, start, start + 360 / STEPS * share, PALETTE[name])
        start += 360 / STEPS * share
    picked = rng.randrange(len(names))
    text = (
        f"The pie chart shows the shares of parties in {votes} votes. Every share is a multiple of 5%. "
        f"How many votes are for the {names[picked]} party?"
    )
    return Picture(canvas.image, text, str(votes // STEPS * shares[picked]))


def grouped_bars(rng: random.Random, level: int) -> Picture:
    unit, months, colors = _unit(rng), 3 + level // 3, rng.sample(list(PALETTE), 2)
    while True:
        series = [_values(rng, months) for _ in colors]
        if sum(series[0]) > sum(series[1]):
            break
    canvas, width = Canvas(), (RIGHT - LEFT) / months
    _draw_axes(canvas, unit)
    _draw_labels(canvas, MONTHS[:months])
    for part in rng.sample([0, 1], 2):
        side = 0 if colors[part] < colors[1 - part] else 1
        for index, value in enumerate(series[part]):
            x = LEFT + (index + 0.2 + 0.3 * side) * width
            canvas.box(x, _y(value), x + 0.3 * width, BOTTOM, PALETTE[colors[part]])
    text = (
        f"{_multiples(unit)} By how much is the sum of the {colors[0]} values greater than the sum of the "
        f"{colors[1]} values?"
    )
    return Picture(canvas.image, text, str(unit * (sum(series[0]) - sum(series[1]))))


def stacked_bars(rng: random.Random, level: int) -> Picture:
    unit, months, colors = _unit(rng), 3 + level // 3, rng.sample(list(PALETTE), 3)
    stacks = [sorted(rng.sample(range(1, STEPS), 3)) for _ in range(months)]
    canvas, width = Canvas(), (RIGHT - LEFT) / months
    _draw_axes(canvas, unit)
    _draw_labels(canvas, MONTHS[:months])
    for index, tops in enumerate(stacks):
        x = LEFT + (index + 0.5) * width
        for color, low, high in zip(colors, [0, *tops], tops, strict=False):
            canvas.box(x - width * 0.3, _y(high), x + width * 0.3, _y(low), PALETTE[color])
    part = rng.randint(1, 2)
    text = (
        f"Each bar is stacked from three parts. {_multiples(unit, 'part')} "
        f"What is the sum of the sizes of all {colors[part]} parts?"
    )
    return Picture(canvas.image, text, str(unit * sum(tops[part] - tops[part - 1] for tops in stacks)))


def scatter_median(rng: random.Random, level: int) -> Picture:
    unit, across = _unit(rng), rng.sample(range(1, STEPS), rng.choice([5, 7, 9]))
    values = _values(rng, len(across))
    canvas = Canvas()
    _draw_axes(canvas, unit)
    for x, value in zip(across, values, strict=True):
        canvas.circle(LEFT + (RIGHT - LEFT) * x / STEPS, _y(value), 5, PALETTE["blue"])
    text = f"{_multiples(unit, 'height')} What is the median of the heights of the points, as read off the axis?"
    return Picture(canvas.image, text, str(unit * median(values)))


def histogram(rng: random.Random, level: int) -> Picture:
    counts = _values(rng, 6)
    canvas, width = Canvas(), (RIGHT - LEFT) / 6
    _draw_axes(canvas, 1)
    for index, count in enumerate(counts):
        canvas.box(LEFT + index * width, _y(count), LEFT + (index + 1) * width, BOTTOM, PALETTE["green"])
    for index in range(7):
        canvas.write(LEFT + index * width, BOTTOM + 16, str(10 * index), 13)
    passed = rng.randint(1, 4)
    most = f"What percentage of the students scored at least {10 * passed} points? {EXACT}"
    text = (
        "The histogram shows how many students scored 0 to 9 points, 10 to 19 points, and so on up to 59. "
        f"Every count is an integer. {most}"
    )
    return Picture(canvas.image, text, fraction(Fraction(100 * sum(counts[passed:]), sum(counts))))


def two_axes(rng: random.Random, level: int) -> Picture:
    units = rng.sample([2, 3, 5, 10], 2)
    sold, prices = _values(rng, 5), _values(rng, 5)
    canvas = _bars(units[0], sold, "orange")
    for step in range(0, STEPS + 1, 4):
        canvas.write(RIGHT + 6, _y(step), str(units[1] * step), 13, anchor="lm")
    _draw_line(canvas, prices, PALETTE["blue"])
    first, second = rng.sample(range(5), 2)
    text = (
        f"The bars show how many lamps a shop sold (left axis, multiples of {units[0]}), and the blue line shows the "
        f"price of a lamp in dollars (right axis, multiples of {units[1]}). How many dollars did the lamps sold in "
        f"{MONTHS[first]} and {MONTHS[second]} bring in together?"
    )
    revenue = sum(units[0] * sold[month] * units[1] * prices[month] for month in (first, second))
    return Picture(canvas.image, text, str(revenue))


def log_axis(rng: random.Random, level: int) -> Picture:
    while True:
        values = [rng.choice([1, 2, 5]) * 10 ** rng.randint(0, 3) for _ in range(6)]
        low, high = sorted(rng.sample(range(6), 2), key=lambda month: values[month])
        if values[low] < values[high]:
            break
    canvas, width = Canvas(), (RIGHT - LEFT) / 6
    decade = (BOTTOM - TOP) / 4
    for power in range(5):
        y = BOTTOM - decade * power
        canvas.line([(LEFT, y), (RIGHT, y)], GRID, 1)
        canvas.write(LEFT - 6, y, str(10**power), 13, anchor="rm")
    for index, value in enumerate(values):
        canvas.circle(LEFT + (index + 0.5) * width, BOTTOM - decade * math.log10(value), 6, PALETTE["red"])
    canvas.line([(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)], INK, 2)
    _draw_labels(canvas, MONTHS[:6])
    text = (
        "The axis is logarithmic, and every value is 1, 2 or 5 times a power of ten. "
        f"The value for {MONTHS[high]} is how many times the value for {MONTHS[low]}? {EXACT}"
    )
    return Picture(canvas.image, text, fraction(Fraction(values[high], values[low])))


def _unit(rng: random.Random) -> int:
    return rng.choice([1, 2, 3, 5, 10, 20, 25, 50])


def _values(rng: random.Random, count: int) -> list[int]:
    """Draw values in steps of the axis."""
    return [rng.randint(1, STEPS - 1) for _ in range(count)]


def _multiples(unit: int, what: str = "value") -> str:
    return f"Every {what} is an integer." if unit == 1 else f"Every {what} is a multiple of {unit}."


def _y(step: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * step / STEPS


def _bars(unit: int, values: list[int], color: str) -> Canvas:
    canvas, width = Canvas(), (RIGHT - LEFT) / len(values)
    _draw_axes(canvas, unit)
    _draw_labels(canvas, MONTHS[: len(values)])
    for index, value in enumerate(values):
        x = LEFT + (index + 0.5) * width
        canvas.box(x - width * 0.32, _y(value), x + width * 0.32, BOTTOM, PALETTE[color])
    return canvas


def _draw_axes(canvas: Canvas, unit: int) -> None:
    """Draw both axes, with a label and a line across the chart at every fourth step."""
    for step in range(0, STEPS + 1, 4):
        canvas.line([(LEFT, _y(step)), (RIGHT, _y(step))], GRID, 1)
        canvas.write(LEFT - 6, _y(step), str(unit * step), 13, anchor="rm")
    canvas.line([(LEFT, TOP - 8), (LEFT, BOTTOM), (RIGHT, BOTTOM)], INK, 2)


def _draw_labels(canvas: Canvas, labels: list[str]) -> None:
    width = (RIGHT - LEFT) / len(labels)
    for index, label in enumerate(labels):
        canvas.write(LEFT + (index + 0.5) * width, BOTTOM + 16, label, 15)


def _draw_line(canvas: Canvas, values: list[int], color: Color) -> None:
    width = (RIGHT - LEFT) / len(values)
    points = [(LEFT + (index + 0.5) * width, _y(value)) for index, value in enumerate(values)]
    canvas.line(points, color)
    for x, y in points:
        canvas.circle(x, y, 5, color)


METHODS: Methods = {
    1: (bar_value, bar_difference),
    2: (largest_increase, pie_share),
    3: (grouped_bars, stacked_bars),
    4: (scatter_median, histogram),
    5: (two_axes, log_axis),
}
