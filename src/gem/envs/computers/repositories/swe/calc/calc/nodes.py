# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Nodes of the tree of an expression. They are compared by value; str() gives a text that parses to the same tree."""

LEVELS = {"?": 0, "==": 1, "!=": 1, "<": 2, "<=": 2, ">": 2, ">=": 2, "+": 3, "-": 3, "*": 4, "/": 4, "%": 4, "^": 6}
SIGN_LEVEL = 5
ATOM_LEVEL = 7


class Node:
    """A part of an expression. parts: what it is made of; level: how tightly it binds."""

    level = ATOM_LEVEL

    def __init__(self, *parts):
        self.parts = parts

    def __eq__(self, other):
        return type(self) is type(other) and self.parts == other.parts

    def __hash__(self):
        return hash((type(self).__name__, self.parts))

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(repr, self.parts))})"

    def children(self):
        """Return the nodes directly below."""
        return [part for part in self.parts if isinstance(part, Node)]

    def variables(self):
        """Return the names of the variables, sorted."""
        names = {name for child in self.children() for name in child.variables()}
        return sorted(names)


class Number(Node):
    """Number(value)"""

    def __str__(self):
        return str(self.parts[0])


class Variable(Node):
    """Variable(name)"""

    def __str__(self):
        return self.parts[0]

    def variables(self):
        return [self.parts[0]]


class Negative(Node):
    """Negative(node)"""

    level = SIGN_LEVEL

    def __str__(self):
        return f"-{_inside(self.parts[0], SIGN_LEVEL)}"


class Operation(Node):
    """Operation(symbol, left, right)"""

    @property
    def level(self):
        return LEVELS[self.parts[0]]

    def __str__(self):
        symbol, left, right = self.parts
        if symbol == "^":  # right-associative, and its exponent may have a sign
            power = _inside(right, SIGN_LEVEL)
            return f"{_inside(left, self.level + 1)} ^ {power}"
        return f"{_inside(left, self.level)} {symbol} {_inside(right, self.level + 1)}"


class Choice(Node):
    """Choice(condition, value if it is not 0, other value)"""

    level = LEVELS["?"]

    def __str__(self):
        condition, yes, no = self.parts
        return f"{_inside(condition, 1)} ? {yes} : {no}"


class Call(Node):
    """Call(name, *arguments)"""

    def __str__(self):
        return f"{self.parts[0]}({', '.join(map(str, self.parts[1:]))})"


def _inside(node, level):
    """Return the text of a node for a place that needs at least this level."""
    return str(node) if node.level >= level else f"({node})"
