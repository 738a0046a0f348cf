# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Changes of expressions: substitution, simplification, derivatives."""

from calc.nodes import Call, Choice, Negative, Number, Operation, Variable
from calc.values import EvaluationError, operate


def substitute(node, replacements):
    """Return the tree with variables replaced by trees or numbers, all at once."""
    if isinstance(node, Variable):
        found = replacements.get(node.parts[0], node)
        return Number(found) if isinstance(found, (int, float)) else found
    return _rebuilt(node, lambda child: substitute(child, replacements))


def simplify(node):
    """Return a tree with the same value that is not longer: numbers computed, 0 and 1 removed, signs moved out.

    Operations without a value, such as 1 / 0, stay. x * 0 becomes 0, and x ^ 0 becomes 1.
    """
    node = _rebuilt(node, simplify)
    if isinstance(node, Negative):
        return _simple_negative(node)
    if isinstance(node, Choice):
        condition, yes, no = node.parts
        if isinstance(condition, Number):
            return yes if condition.parts[0] else no
        return yes if yes == no else node
    if not isinstance(node, Operation):
        return node
    symbol, left, right = node.parts
    values = _constant(left), _constant(right)
    if None not in values:
        try:
            return _number(operate(symbol, *values))
        except (ArithmeticError, EvaluationError):
            return node
    rule = _RULES.get(symbol)
    return rule(node, left, right) if rule else node


def _rebuilt(node, change):
    parts = [change(part) if hasattr(part, "parts") else part for part in node.parts]
    return type(node)(*parts)


def _number(value):
    """Return a number as a node; negative ones have a sign, as in a parsed tree."""
    return Negative(Number(-value)) if value < 0 else Number(value)


def _constant(node):
    """Return the value of a number, with or without a sign, or None."""
    if isinstance(node, Negative) and isinstance(node.parts[0], Number):
        return -node.parts[0].parts[0]
    return node.parts[0] if isinstance(node, Number) else None


def _is(node, value):
    return isinstance(node, Number) and node.parts[0] == value


def _simple_negative(node):
    inner = node.parts[0]
    if isinstance(inner, Negative):
        return inner.parts[0]
    if _is(inner, 0):
        return inner
    if isinstance(inner, Operation) and inner.parts[0] == "-":
        return Operation("-", inner.parts[2], inner.parts[1])
    return node


def _sum(node, left, right):
    if _is(left, 0):
        return right
    if _is(right, 0):
        return left
    if isinstance(right, Negative):
        return simplify(Operation("-", left, right.parts[0]))
    if left == right:
        return simplify(Operation("*", Number(2), left))
    return node


def _difference(node, left, right):
    if _is(right, 0):
        return left
    if _is(left, 0):
        return _simple_negative(Negative(right))
    if isinstance(right, Negative):
        return simplify(Operation("+", left, right.parts[0]))
    return Number(0) if left == right else node


def _product(node, left, right):
    if _is(left, 0) or _is(right, 0):
        return Number(0)
    if _is(left, 1):
        return right
    if _is(right, 1):
        return left
    if isinstance(left, Negative):
        return simplify(Negative(Operation("*", left.parts[0], right)))
    if isinstance(right, Negative):
        return simplify(Negative(Operation("*", left, right.parts[0])))
    if isinstance(right, Number):
        return simplify(Operation("*", right, left))
    if isinstance(left, Number) and isinstance(right, Operation) and right.parts[0] == "*":
        factor = right.parts[1]
        if isinstance(factor, Number):
            return simplify(Operation("*", Number(left.parts[0] * factor.parts[0]), right.parts[2]))
    return node


def _quotient(node, left, right):
    if _is(right, 1):
        return left
    if _is(left, 0) and not _is(right, 0):
        return Number(0)
    return node


def _power(node, left, right):
    if _is(right, 0):
        return Number(1)
    if _is(right, 1):
        return left
    if isinstance(left, Operation) and left.parts[0] == "^":
        exponents = left.parts[2], right
        if all(isinstance(exponent, Number) and isinstance(exponent.parts[0], int) for exponent in exponents):
            return Operation("^", left.parts[1], Number(exponents[0].parts[0] * exponents[1].parts[0]))
    return node


_RULES = {"+": _sum, "-": _difference, "*": _product, "/": _quotient, "^": _power}


def derivative(node, name):
    """Return the simplified derivative by a variable. Raises EvaluationError where there is no rule."""
    return simplify(_derived(node, name))


def _derived(node, name):
    if name not in node.variables():
        return Number(0)
    if isinstance(node, Variable):
        return Number(1)
    if isinstance(node, Negative):
        return Negative(_derived(node.parts[0], name))
    if isinstance(node, Choice):
        condition, yes, no = node.parts
        return Choice(condition, _derived(yes, name), _derived(no, name))
    if isinstance(node, Call):
        return _derived_call(node, name)
    symbol, left, right = node.parts
    if symbol in ("+", "-"):
        return Operation(symbol, _derived(left, name), _derived(right, name))
    if symbol == "*":
        first = Operation("*", _derived(left, name), right)
        return Operation("+", first, Operation("*", left, _derived(right, name)))
    if symbol == "/":
        first = Operation("*", _derived(left, name), right)
        top = Operation("-", first, Operation("*", left, _derived(right, name)))
        return Operation("/", top, Operation("^", right, Number(2)))
    if symbol == "^" and name not in right.variables():
        lower = Operation("^", left, Operation("-", right, Number(1)))
        return Operation("*", Operation("*", right, lower), _derived(left, name))
    if symbol == "^" and name not in left.variables():
        return Operation("*", Operation("*", Call("ln", left), node), _derived(right, name))
    raise EvaluationError(f"no derivative of {node}")


def _derived_call(node, name):
    function, *arguments = node.parts
    if len(arguments) == 1:
        inner = arguments[0]
        outer = {
            "exp": node,
            "ln": Operation("/", Number(1), inner),
            "sqrt": Operation("/", Number(1), Operation("*", Number(2), node)),
        }.get(function)
        if outer is not None:
            return Operation("*", outer, _derived(inner, name))
    raise EvaluationError(f"no derivative of {node}")
