# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Values of expressions."""

import math

from calc.nodes import Call, Choice, Negative, Number, Variable
from calc.parser import parse

CONSTANTS = {"pi": math.pi, "e": math.e}
MAX_POWER_BITS = 10000


class EvaluationError(ValueError):
    """An expression has no value."""


def _mean(*values):
    return sum(values) / len(values)


def _clamp(value, low, high):
    if low > high:
        raise EvaluationError(f"clamp needs low <= high, got {low} and {high}")
    return max(low, min(value, high))


def _round(value, digits=0):
    """Round half away from zero."""
    scale = 10**digits
    rounded = math.floor(abs(value) * scale + 0.5) / scale
    rounded = -rounded if value < 0 else rounded
    return int(rounded) if digits <= 0 else rounded


# name: (function, fewest arguments, most arguments or None)
FUNCTIONS = {
    "abs": (abs, 1, 1),
    "min": (min, 1, None),
    "max": (max, 1, None),
    "sqrt": (math.sqrt, 1, 1),
    "floor": (math.floor, 1, 1),
    "ceil": (math.ceil, 1, 1),
    "round": (_round, 1, 2),
    "ln": (math.log, 1, 1),
    "exp": (math.exp, 1, 1),
    "mean": (_mean, 1, None),
    "clamp": (_clamp, 3, 3),
    "hypot": (math.hypot, 1, None),
}


def evaluate(expression, variables=None):
    """Return the value of a text or tree.

    Integers stay exact: / gives an int if it divides evenly, else a float. % has the sign of its right side.
    Comparisons give 1 or 0. and(…) and or(…) and the choice a ? b : c evaluate only what they need.

    variables: values by name; they come before the constants pi and e.

    Raises:
        ParseError: the text is not an expression.
        EvaluationError: there is no value, for example because a variable is unknown.
    """
    node = parse(expression) if isinstance(expression, str) else expression
    try:
        return _value(node, variables or {})
    except (ArithmeticError, TypeError) as error:
        raise EvaluationError(str(error)) from error
    except ValueError as error:
        raise error if isinstance(error, EvaluationError) else EvaluationError(str(error)) from error


def _value(node, variables):
    if isinstance(node, Number):
        return node.parts[0]
    if isinstance(node, Variable):
        name = node.parts[0]
        if name in variables:
            return variables[name]
        if name in CONSTANTS:
            return CONSTANTS[name]
        raise EvaluationError(f"unknown variable {name}")
    if isinstance(node, Negative):
        return -_value(node.parts[0], variables)
    if isinstance(node, Choice):
        condition, yes, no = node.parts
        return _value(yes if _value(condition, variables) else no, variables)
    if isinstance(node, Call):
        return _called(node, variables)
    symbol, left, right = node.parts
    return operate(symbol, _value(left, variables), _value(right, variables))


def _called(node, variables):
    name, *arguments = node.parts
    if name in ("and", "or"):
        stop = name == "or"
        for argument in arguments:
            if bool(_value(argument, variables)) == stop:
                return int(stop)
        return int(not stop)
    if name not in FUNCTIONS:
        raise EvaluationError(f"unknown function {name}")
    function, fewest, most = FUNCTIONS[name]
    if len(arguments) < fewest or (most is not None and len(arguments) > most):
        raise EvaluationError(f"wrong number of arguments for {name}: {len(arguments)}")
    return function(*(_value(argument, variables) for argument in arguments))


def operate(symbol, left, right):
    """Return the value of one operation. Raises ArithmeticError or EvaluationError."""
    if symbol == "+":
        return left + right
    if symbol == "-":
        return left - right
    if symbol == "*":
        return left * right
    if symbol == "/":
        if isinstance(left, int) and isinstance(right, int) and right and left % right == 0:
            return left // right
        return left / right
    if symbol == "%":
        return left % right
    if symbol == "^":
        return _power(left, right)
    outcomes = {
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    return int(outcomes[symbol])


def _power(left, right):
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * abs(right) > MAX_POWER_BITS:
        raise EvaluationError("the power is too large")
    value = left**right
    if isinstance(value, complex):
        raise EvaluationError("the power is not a real number")
    return value
