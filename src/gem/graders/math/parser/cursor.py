"""A position in a sequence of tokens."""

from __future__ import annotations

from collections.abc import Container, Sequence

from gem.graders.math.lexer import Token
from gem.graders.math.parser.vocabulary import END, NotMath


class Cursor:
    """Tokens, and the index of the next one."""

    def __init__(self, found: Sequence[Token]) -> None:
        self.tokens = found
        self.at = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else END

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else END

    def at_word(self, texts: Container[str], ahead: int = 0) -> bool:
        """Return whether a token is a word, and one of the texts."""
        return self.peek(ahead).kind == "word" and self.peek(ahead).text in texts

    def pop(self) -> Token:
        """Return the next token, and move to the one after it. Raises NotMath at the end."""
        if self.next.kind == "end":
            raise NotMath("the end")
        self.at += 1
        return self.tokens[self.at - 1]

    def take(self, *texts: str) -> str:
        """Move past the next token if it has one of the texts. Return its text, or "" if it has not."""
        if self.next.kind in ("end", "group") or self.next.text not in texts:
            return ""
        return self.pop().text

    def expect(self, *texts: str) -> None:
        if not self.take(*texts):
            raise NotMath(f"expected {' or '.join(texts)}, got {self.next.text!r}")

    def replace(self, *found: Token) -> None:
        """Put other tokens in the place of the next one."""
        self.tokens = [*self.tokens[: self.at], *found, *self.tokens[self.at + 1 :]]
