"""Warm up the fork server of the math grading workers: importing this module compares sample formulas.

This is a module rather than a function because a worker pool prepares its fork server by importing modules by name.
The parser and sympy fill caches on the first formula of each kind, which takes 0.1 to 0.4 seconds. Forked workers
inherit these caches, so a new worker that replaces a killed worker does not have to fill the caches again.
"""

from __future__ import annotations

from gem.graders.math.conditions import Condition, SameEquation, SameFormula
from gem.graders.math.engine import holds

_CONDITIONS: list[Condition] = [  # structurally equal expressions would skip the numerical comparison
    SameFormula(r"\sqrt{8}", r"2\sqrt{2}"),
    SameFormula("(x+1)(x+2)", "x^2+3x+2"),
    SameFormula("(x+1)^5", "x^5+1"),
    SameFormula(r"\sin^2 x+\cos^2 x+\tan x", "1+y"),
    SameFormula(r"\frac{1}{x+1}+\frac{1}{x}", r"\frac{2x+1}{x(x+1)}"),
    SameFormula(r"\frac{2}{1+\sqrt{3}}", r"\sqrt{3}-1"),
    SameFormula(r"\log_2 8+e^{2i\pi}+|x|", "4+w"),
    SameFormula(r"\binom{6}{2}+3!+\pi", "21+z"),
    SameEquation(("y", "2x+3"), ("2x-y+3", "0")),
]

for _condition in _CONDITIONS:
    holds(_condition)
