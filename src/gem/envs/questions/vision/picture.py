"""Images with questions about them, and a canvas to draw the images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from gem.errors import require

Color: TypeAlias = tuple[int, int, int]
SIZE = (448, 336)  # pixels, multiples of the 14- and 28-pixel patches of common vision encoders
INK, PAPER = (20, 24, 32), (255, 255, 255)
PALETTE = {
    "red": (204, 51, 51),
    "blue": (51, 90, 204),
    "green": (44, 140, 70),
    "orange": (226, 130, 30),
    "purple": (130, 70, 170),
    "gray": (120, 120, 120),
}


class Picture(NamedTuple):
    """A generated image with a question.

    Args:
        image: RGB PIL image of SIZE pixels.
        text: the question.
        answer: the exact answer; a number is written in LaTeX.
    """

    image: Any
    text: str
    answer: str


class Canvas:
    """A blank image to draw on. Coordinates are pixels from the top left corner."""

    def __init__(self) -> None:
        self._fonts = require("PIL.ImageFont", extra="vision")
        self.image = require("PIL.Image", extra="vision").new("RGB", SIZE, PAPER)
        self._pen = require("PIL.ImageDraw", extra="vision").Draw(self.image)

    def line(self, points: Sequence[tuple[float, float]], color: Color = INK, width: int = 3) -> None:
        self._pen.line(list(points), fill=color, width=width, joint="curve")

    def polygon(self, points: Sequence[tuple[float, float]], fill: Color | None = None) -> None:
        self._pen.polygon(list(points), fill=fill, outline=INK, width=3)

    def circle(self, x: float, y: float, radius: float, fill: Color | None = None) -> None:
        self._pen.ellipse([x - radius, y - radius, x + radius, y + radius], fill=fill, outline=INK, width=3)

    def box(self, left: float, top: float, right: float, bottom: float, fill: Color) -> None:
        self._pen.rectangle([left, top, right, bottom], fill=fill, outline=INK, width=2)

    def slice(self, x: float, y: float, radius: float, start: float, end: float, fill: Color) -> None:
        """Draw a pie slice. Angles are in degrees, clockwise from three o'clock."""
        corners = [x - radius, y - radius, x + radius, y + radius]
        self._pen.pieslice(corners, start, end, fill=fill, outline=INK, width=2)

    def write(self, x: float, y: float, text: str, size: int = 18, anchor: str = "mm") -> None:
        """Draw text at a point. ``anchor`` is a PIL text anchor; "mm" centers the text."""
        self._pen.text((x, y), text, fill=INK, font=self._fonts.load_default(size), anchor=anchor)
