"""Exact arithmetic on the cells of parsed vectors and matrices: multiples and determinants."""

from __future__ import annotations

from fractions import Fraction

from gem.graders.math.values import (
    Formula,
    Number,
    Value,
    latex_of,
)


def times(factor: Number | Formula, item: Value) -> Value | None:
    if not isinstance(item, (Number, Formula)) or factor.unit or item.unit:
        return None
    if isinstance(factor, Number) and isinstance(item, Number):
        return Number(factor.exact * item.exact)
    return Formula(rf"({latex_of(factor)})\cdot({latex_of(item)})")


def scaled(factor: Value, cells: list[list[Value]]) -> list[list[Value]] | None:
    """Multiply a matrix by a factor. Return None if the factor or a cell is not a number."""
    if not isinstance(factor, Number) or not all(isinstance(cell, Number) for row in cells for cell in row):
        return None
    return [[Number(cell.exact * factor.exact) for cell in row if isinstance(cell, Number)] for row in cells]


def determinant(cells: list[list[Value]]) -> Value | None:
    """Return the determinant of a 2x2 or 3x3 matrix of numbers; None for any other matrix."""
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
