"""Print a benchmark's results as a table: one line per measurement, with median, minimum and maximum."""

from __future__ import annotations

import os
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Line:
    """One measurement.

    Args:
        values: one per repeat.
        aim: bound for the median, a lower bound unless ``at_most``; 0 means no aim.
        each: (least, most) bounds for every single value, instead of an aim.
    """

    name: str
    values: list[float]
    unit: str
    aim: float = 0.0
    at_most: bool = False
    each: tuple[float, float] | None = None

    @property
    def met(self) -> bool:
        if self.each is not None:
            return all(self.each[0] <= value <= self.each[1] for value in self.values)
        median = statistics.median(self.values)
        return not self.aim or (median <= self.aim if self.at_most else median >= self.aim)

    def cells(self) -> list[str]:
        numbers = [f"{f(self.values):,.{_digits(self.values)}f}" for f in (statistics.median, min, max)]
        aim = self._aimed()
        return [self.name, *numbers, self.unit, aim, ("yes" if self.met else "NO") if aim else ""]

    def _aimed(self) -> str:
        if self.each is not None:
            least, most = self.each
            return f"{most:,g}" if least == most else f"{least:,g} to {most:,g}"
        return f"{'≤' if self.at_most else '≥'} {self.aim:,g}" if self.aim else ""


def report(what: str, how_much: str, lines: Sequence[Line]) -> int:
    """Print the table under a heading. Return the exit code: 1 if an aim is missed."""
    print(f"<!-- Written by `python benchmarks/{' '.join([Path(sys.argv[0]).name, *sys.argv[1:]])}` -->\n")
    print(f"# {what} ({how_much}, {os.cpu_count()} cores, Python {platform.python_version()})\n")
    for cells in [["what", "median", "min", "max", "unit", "aim", "met"], ["---"] * 7, *(x.cells() for x in lines)]:
        print("| " + " | ".join(cells) + " |")
    return 0 if all(line.met for line in lines) else 1


def ratios(own: Sequence[float], baseline: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(own, baseline, strict=True)]


def _digits(values: Sequence[float]) -> int:
    return 0 if max(values) >= 100 or all(value == int(value) for value in values) else 2
