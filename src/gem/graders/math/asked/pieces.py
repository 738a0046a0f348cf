"""An answer as pieces: words and signs in their order, with a tree for each formula between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from gem.graders.math.lexer import Token, tokens
from gem.graders.math.lexer import words as word_set
from gem.graders.math.parser import NotMath, Parser, parse
from gem.graders.math.tree import Num, Op, Phrase, Sym, Tree
from gem.graders.math.units import SCALES, spelled_value

Piece = str | Tree

CIRCLED = "①②③④⑤⑥⑦⑧⑨"
_SPECIAL = frozenset(("(", *CIRCLED))  # signs that may begin a remark or a label
_NAMES = word_set("max min sup inf gcd lcm det dim")  # commands that are labels


@dataclass(frozen=True)
class AnswerText:
    """A text with its tokens, its tree and its pieces."""

    text: str

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tokens(self.text)

    @cached_property
    def tree(self) -> Tree:
        return parse(self.text)

    @cached_property
    def parts(self) -> tuple[Piece, ...]:
        plain = not any(
            token.kind == "word" or token.marked or token.text in _SPECIAL | _NAMES for token in self.tokens
        )
        whole = isinstance(self.tree, Phrase) or (isinstance(self.tree, Op) and self.tree.head == "where")
        return (self.tree,) if plain and not whole else pieces(self.tokens)


def pieces(found: Sequence[Token]) -> tuple[Piece, ...]:
    """Return the words and signs of a text, and a tree for each formula between them."""
    parts: list[Piece] = []
    at = 0
    while at < len(found):
        token, after = found[at], found[at + 1] if at + 1 < len(found) else Token("end", "")
        is_joined = after.text in ("-", "'") and not after.spaced and at + 2 < len(found) and not found[at + 2].spaced
        is_word = token.kind == "letter" and (
            token.marked
            or token.text in CIRCLED
            or (token.text in "aAI" and after.kind == "word" and after.spaced)
            or (is_joined and found[at + 2].kind == "word")
        )
        if token.kind == "word" and (value := spelled_value(token.text)) is not None and _is_count(token, found):
            parts.append(Num(value))
        elif token.text == "-" and token.marked and parts and isinstance(parts[-1], str) and not after.spaced:
            parts[-1] += f"-{after.text}"
            at += 1
        elif token.kind == "word" or is_word:
            size = 3 if is_joined and found[at + 2].kind in ("word", "letter") else 1
            parts.append("".join(each.text for each in found[at : at + size]))
            at += size - 1
        elif token.kind == "command" and token.text in _NAMES and after.text not in ("(", "{"):
            parts.append(token.text)
        else:
            part, at = _formula(found, at, parts)
            parts.append(part)
        at += 1
    return tuple(parts)


def _is_count(token: Token, found: Sequence[Token]) -> bool:
    return len(found) > 1 and token.text.casefold() not in ("one", "second", "half") and token.text not in SCALES


def _formula(found: Sequence[Token], at: int, before: Sequence[Piece]) -> tuple[Piece, int]:
    """Read the longest formula from a token on: (tree, index of its last token), or the sign itself."""
    start = max((i for i, part in enumerate(before) if part in (",", ";", "and", "(")), default=-1)
    is_remark = any(not isinstance(part, (str, Sym)) for part in before[start + 1 :])  # a bracket after a value
    is_mark = [token.text for token in found[at + 2 : at + 3]] == [")"] and len(found[at + 1].text) == 1  # (a) and (1)
    if not (found[at].text == "(" and (is_remark or is_mark)) and found[at].text not in (",", ";", ":", ")", "/"):
        rest = range(at + 1, len(found))
        remarks = [i for i in rest if found[i].text in _SPECIAL and _ends_value(found[i - 1], found[i])]
        words = [i for i in rest if found[i].kind == "word" or found[i].text in (",", ";")]
        for end in (*remarks[:1], len(found), *words[:1]):
            parser = Parser(found[at:end])
            try:
                tree = parser.relation()
            except (NotMath, RecursionError, ZeroDivisionError):
                continue
            if parser.at:
                return tree, end - (len(parser.tokens) - parser.at) - 1  # the parser may split a token
    return "per" if found[at].text == "/" else found[at].text, at


def _ends_value(token: Token, bracket: Token) -> bool:
    spaced = (bracket.spaced or bracket.marked or bracket.text != "(") and token.kind in ("number", "group")
    return spaced or token.kind == "word" or token.marked or token.text == "%"


def words_of(parts: Sequence[Piece]) -> list[str]:
    return [part for part in parts if isinstance(part, str)]


def trees_of(parts: Sequence[Piece]) -> list[Tree]:
    return [part for part in parts if not isinstance(part, str)]


def asked_tree(text: str) -> Tree:
    """Parse a part of a question; a part that cannot be read is a Phrase of its text."""
    try:
        return parse(text)
    except ValueError:
        return Phrase((text,))


@lru_cache(maxsize=512)
def formulas(text: str) -> tuple[Tree, ...]:
    """Return the formulas between dollar signs in a question."""
    return tuple(asked_tree(part) for part in text.split("$")[1::2] if part.strip() and len(part) < 200)
