# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Arithmetic expressions."""

from calc.algebra import derivative, simplify, substitute
from calc.nodes import Call, Negative, Number, Operation, Variable
from calc.parser import ParseError, parse
from calc.values import EvaluationError, evaluate

__all__ = [
    "Call",
    "EvaluationError",
    "Negative",
    "Number",
    "Operation",
    "ParseError",
    "Variable",
    "derivative",
    "evaluate",
    "parse",
    "simplify",
    "substitute",
]
