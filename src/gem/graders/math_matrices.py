"""What can be said of a matrix of numbers without computer algebra."""

from __future__ import annotations

from fractions import Fraction

from gem.graders.math_values import Number, Value

Cells = list[list[Value]]


def scaled(factor: Value, cells: Cells) -> Cells | None:
    """Every number of a matrix times a number; None where they are not all numbers."""
    if not isinstance(factor, Number) or not all(isinstance(cell, Number) for row in cells for cell in row):
        return None
    return [[Number(cell.exact * factor.exact) for cell in row if isinstance(cell, Number)] for row in cells]


def determinant(cells: Cells) -> Value | None:
    """Of two rows of two numbers, or three of three."""
    rows = [[cell.exact for cell in row if isinstance(cell, Number)] for row in cells]
    size = len(cells)
    if size not in (2, 3) or any(len(row) != size for row in rows):
        return None
    if size == 2:
        return Number(rows[0][0] * rows[1][1] - rows[0][1] * rows[1][0])
    terms = (
        rows[0][i] * (rows[1][(i + 1) % 3] * rows[2][(i + 2) % 3] - rows[1][(i + 2) % 3] * rows[2][(i + 1) % 3])
        for i in range(3)
    )
    return Number(sum(terms, Fraction(0)))
