"""Imported by the process that grading workers are forked from, so that a new worker is as fast as an old one.

Parser and computer algebra fill their tables with the first formula of each kind, which takes 0.1 to 0.4 seconds; a
worker that replaces a killed one would pay that anew.
"""

from __future__ import annotations

from gem.graders.math import grade_math

_FORMULAS = [  # unequal where it can be, since equal spellings are not looked at
    (r"\sqrt{8}", r"2\sqrt{2}"),
    ("(x+1)(x+2)", "x^2+3x+2"),
    ("(x+1)^5", "x^5+1"),
    (r"\sin^2 x+\cos^2 x+\tan x", "1+y"),
    (r"\frac{1}{x+1}+\frac{1}{x}", r"\frac{2x+1}{x(x+1)}"),
    (r"\frac{2}{1+\sqrt{3}}", r"\sqrt{3}-1"),
    (r"\log_2 8+e^{2i\pi}+|x|", "4+w"),
    (r"\binom{6}{2}+3!+\pi", "21+z"),
    ("y=2x+3", "2x-y+3=0"),
]

for _answer, _gold in _FORMULAS:
    grade_math(_answer, _gold)
