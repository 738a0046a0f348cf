"""Warm up the fork server of the math grading workers: importing this module compares sample formulas.

This is a module rather than a function because a worker pool prepares its fork server by importing modules by name.
The parser and sympy fill caches on the first formula of each kind, which takes 0.1 to 0.4 seconds. Forked workers
inherit these caches, so a new worker that replaces a killed worker does not have to fill the caches again.
"""

from __future__ import annotations

from gem.graders.math.engine import holds
from gem.graders.math.equal import normal, same
from gem.graders.math.parser import parse
from gem.graders.math.question import Question

_PAIRS = (  # structurally equal expressions would skip the numerical comparison
    (r"\sqrt{8}", r"2\sqrt{2}"),
    ("(x+1)(x+2)", "x^2+3x+2"),
    (r"\sin^2 x+\cos^2 x+\tan x", r"1+\tan x"),
    (r"\frac{1}{x+1}+\frac{1}{x}", r"\frac{2x+1}{x(x+1)}"),
    (r"\log_2 8+e^{2i\pi}+|x|", "4+|x|"),
    (r"\binom{6}{2}+3!+\pi", r"21+\pi"),
    ("y=2x+3", "2x-y+3=0"),
    (r"\int_0^1 x\,dx", "0.5"),
)

for _answer, _gold in _PAIRS:
    holds(same(normal(parse(_answer)), normal(parse(_gold)), Question()))
