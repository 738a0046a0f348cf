# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Parser: from text to a tree, by precedence climbing."""

from calc.nodes import LEVELS, SIGN_LEVEL, Call, Choice, Negative, Number, Operation, Variable
from calc.tokens import ParseError, tokens

__all__ = ["ParseError", "parse"]
MAX_DEPTH = 100


def parse(text):
    """Return the tree of an expression. Raises ParseError, also if it is nested more than 100 deep."""
    parser = _Parser(tokens(text))
    tree = parser.expression(0)
    parser.expect("end", "")
    return tree


class _Parser:
    def __init__(self, found):
        self.found = found
        self.place = 0
        self.depth = 0

    def peek(self):
        return self.found[self.place]

    def take(self):
        token = self.found[self.place]
        self.place += 1
        return token

    def accept(self, symbol):
        """Take a symbol if it is next."""
        kind, value, _ = self.peek()
        if kind == "symbol" and value == symbol:
            self.place += 1
            return True
        return False

    def expect(self, kind, value):
        found_kind, found, position = self.take()
        if found_kind != kind or found != value:
            wanted = repr(value) if value else "the end"
            raise ParseError(f"expected {wanted}, found {found!r}" if found else f"expected {wanted}", position)

    def expression(self, level):
        """Parse operators that bind at least as tightly as the level."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ParseError("nested too deeply", self.peek()[2])
        left = self.operand()
        while True:
            kind, symbol, _ = self.peek()
            if kind != "symbol" or LEVELS.get(symbol, -1) < level:
                break
            self.take()
            if symbol == "?":
                yes = self.expression(0)
                self.expect("symbol", ":")
                left = Choice(left, yes, self.expression(0))
            elif symbol == "^":
                left = Operation("^", left, self.expression(SIGN_LEVEL))
            else:
                left = Operation(symbol, left, self.expression(LEVELS[symbol] + 1))
        self.depth -= 1
        return left

    def operand(self):
        kind, value, position = self.take()
        if kind == "number":
            return Number(value)
        if kind == "name":
            if not self.accept("("):
                return Variable(value)
            return Call(value, *self.arguments())
        if kind == "symbol" and value == "(":
            inner = self.expression(0)
            self.expect("symbol", ")")
            return inner
        if kind == "symbol" and value == "-":
            return Negative(self.expression(SIGN_LEVEL))
        if kind == "symbol" and value == "+":
            return self.expression(SIGN_LEVEL)
        raise ParseError(f"unexpected {value!r}" if value else "unexpected end", position)

    def arguments(self):
        found = []
        if self.accept(")"):
            return found
        while True:
            found.append(self.expression(0))
            if self.accept(")"):
                return found
            self.expect("symbol", ",")
