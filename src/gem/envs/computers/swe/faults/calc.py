"""Faults of calc, written by hand.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from gem.envs.computers.swe.repository import Defect, Edit

TOKENS, NODES, PARSER = "calc/tokens.py", "calc/nodes.py", "calc/parser.py"
VALUES, ALGEBRA = "calc/values.py", "calc/algebra.py"
FAULTS = (
    Defect(
        "A minus before a power is taken to the power as well: -2 ^ 2 gives 4 instead of -4. With parentheses "
        "everything is as it should be.",
        (
            Edit(
                PARSER,
                "            return Negative(self.expression(SIGN_LEVEL))\n",
                "            return Negative(self.operand())\n",
            ),
        ),
    ),
    Defect(
        "Towers of powers have changed: 2 ^ 3 ^ 2 gives 64. The documentation says that ^ is right-associative.",
        (
            Edit(
                PARSER,
                'Operation("^", left, self.expression(SIGN_LEVEL))',
                'Operation("^", left, self.expression(LEVELS["^"] + 1))',
            ),
        ),
    ),
    Defect(
        "The text of an expression loses parentheses that it needs: a - (b - c) becomes a - b - c, and a / (b * c) "
        "becomes a / b * c.",
        (
            Edit(
                NODES,
                '{_inside(left, self.level)} {symbol} {_inside(right, self.level + 1)}"',
                '{_inside(left, self.level)} {symbol} {_inside(right, self.level)}"',
            ),
        ),
    ),
    Defect(
        "The condition of a choice is written without its parentheses when it is a choice itself: (a ? b : c) ? d : e "
        "becomes a ? b : c ? d : e, which means something else.",
        (Edit(NODES, "{_inside(condition, 1)} ? {yes} : {no}", "{condition} ? {yes} : {no}"),),
    ),
    Defect(
        "or(0, 7) gives 7 and and(1, 2) gives 2. Both should give 1; they only ever gave 1 or 0.",
        (
            Edit(
                VALUES,
                "            if bool(_value(argument, variables)) == stop:\n                return int(stop)\n",
                "            value = _value(argument, variables)\n            if bool(value) == stop:\n"
                "                return value\n",
            ),
        ),
    ),
    Defect(
        "x > 0 ? 1 / x : 0 fails for x = 0, because of a division by zero. The side that is not chosen should not be "
        "computed.",
        (
            Edit(
                VALUES,
                "        return _value(yes if _value(condition, variables) else no, variables)\n",
                "        first, second = _value(yes, variables), _value(no, variables)\n"
                "        return first if _value(condition, variables) else second\n",
            ),
        ),
    ),
    Defect(
        "I cannot call a variable e or pi any more: whatever value I give them, the constants are used.",
        (
            Edit(
                VALUES,
                "        if name in variables:\n            return variables[name]\n        if name in CONSTANTS:\n"
                "            return CONSTANTS[name]\n",
                "        known = {**variables, **CONSTANTS}\n        if name in known:\n"
                "            return known[name]\n",
            ),
        ),
    ),
    Defect(
        "Large integers become inexact when they are divided, even where the division has no rest, and results like "
        "6 / 3 are shown with a point. They used to stay integers.",
        (
            Edit(
                VALUES,
                '    if symbol == "/":\n'
                "        if isinstance(left, int) and isinstance(right, int) and right and left % right == 0:\n"
                "            return left // right\n",
                '    if symbol == "/":\n',
            ),
        ),
    ),
    Defect(
        "Rounding of negative numbers is not symmetric: round(2.5) is 3, but round(-2.5) is -2. It should be -3.",
        (
            Edit(
                VALUES,
                "    rounded = math.floor(abs(value) * scale + 0.5) / scale\n"
                "    rounded = -rounded if value < 0 else rounded\n",
                "    rounded = math.floor(value * scale + 0.5) / scale\n",
            ),
        ),
    ),
    Defect(
        "A program of ours crashed with a plain ValueError of the module math for sqrt(-1). It catches "
        "EvaluationError, "
        "as documented. ln(0) is the same.",
        (
            Edit(
                VALUES,
                "        raise error if isinstance(error, EvaluationError) else EvaluationError(str(error))"
                " from error\n",
                "        raise error\n",
            ),
        ),
    ),
    Defect(
        'In a list of 150 terms, one added to the next, parsing fails with "nested too deeply", although there is not '
        "a single parenthesis.",
        (Edit(PARSER, "        self.depth -= 1\n        return left\n", "        return left\n"),),
    ),
    Defect(
        "A comment in the middle of an expression with several lines swallows the lines that follow.",
        (
            Edit(
                TOKENS,
                '            end = text.find("\\n", index)\n            index = len(text) if end < 0 else end + 1\n',
                '            end = text.rfind("\\n", index)\n            index = len(text) if end < 0 else end + 1\n',
            ),
        ),
    ),
    Defect(
        "Replacing x by y + 1 and y by 2 at the same time gives 3 where x was. The new y should stay, as all are "
        "replaced at once.",
        (
            Edit(
                ALGEBRA,
                "        return Number(found) if isinstance(found, (int, float)) else found\n",
                "        if isinstance(found, (int, float)):\n            return Number(found)\n"
                "        others = {name: new for name, new in replacements.items() if name != node.parts[0]}\n"
                "        return found if found is node else substitute(found, others)\n",
            ),
        ),
    ),
    Defect(
        "Simplifying x - -y gives x - y, and x + -y gives x + y. Signs are lost.",
        (
            Edit(
                ALGEBRA,
                'return simplify(Operation("-", left, right.parts[0]))',
                "return Operation('+', left, right.parts[0])",
            ),
            Edit(
                ALGEBRA,
                'return simplify(Operation("+", left, right.parts[0]))',
                "return Operation('-', left, right.parts[0])",
            ),
        ),
    ),
    Defect(
        "The derivative of a quotient has the wrong sign if the variable is in the divisor: 1 / x gives 1 / x ^ 2.",
        (
            Edit(
                ALGEBRA,
                'top = Operation("-", first, Operation("*", left, _derived(right, name)))',
                'top = Operation("-", Operation("*", left, _derived(right, name)), first)',
            ),
        ),
    ),
    Defect(
        "Derivatives of exp(2 * x), ln(x ^ 2) or (2 * x) ^ 2 lack a factor. For exp(x) and x ^ 2 they are right.",
        (
            Edit(ALGEBRA, 'return Operation("*", outer, _derived(inner, name))', "return outer"),
            Edit(
                ALGEBRA,
                'return Operation("*", Operation("*", right, lower), _derived(left, name))',
                'return Operation("*", right, lower)',
            ),
        ),
    ),
)
