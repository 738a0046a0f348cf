"""Decide whether two trees are equal; what the deciders leave open is a Condition for the engine.

:func:`same` brings both trees to a normal form and asks the deciders in turn. Each knows one kind of answer (numbers,
equations, sets, families with arbitrary constants …) and returns True, False, a
:data:`~gem.graders.math.engine.Condition` that needs sympy, or None if the pair is not of its kind.

Read core first, then the decider of the kind that you look for.
"""

from __future__ import annotations

from gem.graders.math.equal.collections import collections, real_sets
from gem.graders.math.equal.core import DECIDERS, Verdict, all_of, any_of, same
from gem.graders.math.equal.families import congruences, families, integrals, piecewise, progressions, wheres
from gem.graders.math.equal.formulas import (
    ROUNDING,
    assignments,
    chains,
    equations,
    formulas,
    half_digit,
    numbers,
    quantities,
    rounded_equal,
)
from gem.graders.math.equal.normal import named, normal, split_unit
from gem.graders.math.equal.notations import bases, choices, clocks, dates, ratios, same_words, vectors

_ORDER = (
    *(numbers, dates, same_words, bases, choices, integrals, families, piecewise, progressions, wheres, vectors),
    *(clocks, congruences, chains, assignments, quantities, ratios, equations, real_sets, collections, formulas),
)
DECIDERS |= {decider.__name__: decider for decider in _ORDER}

__all__ = ["ROUNDING", "Verdict", "all_of", "any_of", "half_digit", "named", "normal", "rounded_equal", "same"]
__all__ += ["split_unit"]
