"""Parse the text of a whole answer: without its box and prose, and with forms that are in its words."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from gem.graders.math.lexer import Malformed, Token, tokens
from gem.graders.math.parser.expression import Formulas
from gem.graders.math.parser.vocabulary import END, FAILURES, SEPARATORS, flat, infix, is_product, stripped
from gem.graders.math.tree import REALS, Num, Op, Phrase, Relation, Sym, Tree, is_op
from gem.graders.math.units import read_unit, spelled_value
from gem.graders.math.words import MONTHS


@lru_cache(maxsize=4096)
def parse(text: str) -> Tree:
    """Parse the text of an answer; a text that is no formula becomes a Phrase.

    Raises:
        TooLarge: the text exceeds a limit of the lexer.
    """
    try:
        return parse_tokens(tokens(text))
    except Malformed:
        return Phrase((text,))


def parse_tokens(found: Sequence[Token]) -> Tree:
    found = _unboxed(found)
    found = stripped(stripped(found)[_after_prose(stripped(found)) :])
    if not found:
        return Phrase(())
    if (value := _spelled(found)) is not None:
        return value
    if (special := _special(found)) is not None:
        return special
    if len(found) == 1 and found[0].kind == "word" and len(found[0].text) > 2 and found[0].text[1] in "aeiou":
        return phrase(found)  # dog, which is not god
    if (parts := infix(found)) is not None:
        head, *sides = parts
        return Op(head, tuple(map(parse_tokens, sides)))
    return _formula(found) or _of_letters(found) or by_items(found)


class Parser(Formulas):
    """The grammar of formulas, whose cells may be words."""

    def cell(self, found: Sequence[Token]) -> Tree:
        return parse_part(found)


def parse_part(found: Sequence[Token]) -> Tree:
    """Parse tokens as a formula, or else as items, or else as a phrase."""
    return _formula(found) or by_items(found)


def _formula(found: Sequence[Token]) -> Tree | None:
    try:
        return Parser(found).answer()
    except FAILURES:
        return None


def _spelled(found: Sequence[Token]) -> Tree | None:
    """Return the number that tokens spell out in words; None for other tokens."""
    if not all(token.kind in ("word", "letter") or token.text == "-" for token in found):
        return None
    value = spelled_value(" ".join(token.text for token in found))
    return None if value is None else Num(value)


def _of_letters(found: Sequence[Token]) -> Tree | None:
    """Parse by + 2 and 6an, whose words are products of letters; None for other tokens."""
    plain = [token for token in found if token.kind == "word"]
    if not plain or len(plain) == len(found) or any(token.marked or len(token.text) != 2 for token in plain):
        return None
    if any(token.text in ("or", "is", "in", "no", "of", "to", "if", "it") for token in plain):
        return None
    letters: list[Token] = []
    for token in found:
        letters += [Token("letter", c) for c in token.text] if token.kind == "word" else [token]
    return _formula(letters)


def _special(found: Sequence[Token]) -> Tree | None:
    """Parse an answer whose form is in its words; None for any other."""
    forms = (_titled, _labelled, _worded_name, _without, _worded_base)
    return next((tree for form in forms if (tree := form(found)) is not None), None)


def _labelled(found: Sequence[Token]) -> Tree | None:
    """Parse (D) 45, D. 45, D: 45 and "choice D" as a choice with its text; None for other tokens."""
    texts = [token.text for token in found[:4]]
    if texts[0].casefold() in ("choice", "option", "answer") and len(found) > 1:
        inner = _labelled(found[1:]) or (parse_tokens(found[1:]) if len(found) == 2 else None)
        return Op("label", (inner,)) if isinstance(inner, Sym) else inner
    size = 3 if texts[0] == "(" and texts[2:3] == [")"] else 2 if texts[1:2] in ([")"], ["."], [":"]) else 0
    letter = texts[1] if size == 3 else texts[0]
    marked = found[0].marked and found[0].kind == "letter" and len(found) > 1 and not found[1].marked
    size = size or (1 if marked and found[1].kind != "sign" and found[1].text != "_" else 0)
    if not size or len(letter) != 1 or not "A" <= letter.upper() <= "H" or (letter.islower() and size < 2):
        return None
    rest = found[size:]
    follows = rest[0].text if rest else ""
    if follows in ("and", "or", ",", ";", "&", "is", *"ABCDEFGH") or any(_labels_at(rest, i) for i in range(len(rest))):
        return None
    if (size == 3 and follows in ("^", "_", "+", "-", "*", "/", "=", "(", "!")) or (letter.islower() and rest):
        return None
    return Op("label", (Sym(letter.upper()), *((parse_tokens(rest),) if rest else ())))


def _titled(found: Sequence[Token]) -> Tree | None:
    """Parse "l: y = 2x" without its title, and f: x ↦ 2x as f(x) = 2x; None for other tokens."""
    at = next((i for i, token in enumerate(found[:6]) if token.text == ":"), 0)
    title = [token for token in found[:at] if token.text not in ("(", ")")]
    rest = found[at + 1 :]
    if not at or not rest or not title or title[0].kind != "letter":
        return None
    if len(rest) > 2 and rest[1].text == "↦":
        name = f"{flat(title)}({rest[0].text})"
        return Relation((Sym(name), parse_tokens(rest[2:])), ("=",))
    if len(title) == 1 and any(token.text == "=" for token in rest) and any(token.kind == "letter" for token in rest):
        return parse_tokens(rest) if title[0].text not in [token.text for token in rest] else None
    return None


def _labels_at(found: Sequence[Token], at: int) -> bool:
    texts = [token.text for token in found[at : at + 3]]
    if texts[1:2] == [":"]:
        return found[at].kind == "letter" and "A" <= texts[0] <= "H"
    return len(texts) == 3 and texts[0] == "(" and texts[2] == ")" and "A" <= texts[1] <= "H" and len(texts[1]) == 1


def _worded_name(found: Sequence[Token]) -> Tree | None:
    """Parse "Area = 12" as an assignment; None for other tokens."""
    at = next((i for i, token in enumerate(found) if token.text == "=" and token.kind == "sign"), 0)
    left = found[:at]
    if len(left) > 3 and left[-1].text == ")" and left[-3].text == "(" and left[-2].kind == "letter":
        left = left[:-3]  # Dom(g) = …
    is_worded = all(token.kind == "word" and (token.marked or not is_product(token.text)) for token in left)
    if not left or not is_worded or any(token.text == "=" for token in found[at + 1 :]):
        return None
    return Relation((Sym(" ".join(token.text for token in left)), parse_tokens(found[at + 1 :])), ("=",))


def _worded_base(found: Sequence[Token]) -> Tree | None:
    """Parse "1101 in base two" and "1101 (base 2)" as 1101_2; None for other tokens."""
    at = next((i for i, token in enumerate(found) if token.text.casefold() == "base"), 0)
    before = found[: at - (at > 1 and found[at - 1].text in ("(", "in"))]
    before = before[: len(before) - (len(before) > 1 and before[-1].text in ("(", "in"))]
    base = [token for token in found[at + 1 :] if token.text not in ("-", ")")]
    if not at or len(base) != 1 or len(before) != 1:
        return None
    return _formula([before[0], Token("sign", "_"), base[0]])


def _without(found: Sequence[Token]) -> Tree | None:
    """Parse "all real numbers except 2 and 3"; None for other tokens."""
    at = next((i for i, token in enumerate(found) if token.text in ("except", "but", "excluding")), 0)
    words = {token.text for token in found[:at]}
    known = {"all", "real", "reals", "numbers", "any", "the", "x", "mathbbR"}
    if not at or not words & {"real", "reals", "mathbbR"} or not words <= known:
        return None
    kept = [token for token in found[at + 1 :] if token.text not in ("for", "x", "=", "when", "where", "at")]
    points = parse_tokens(kept)
    items = points.args if is_op(points, "list", "and", "or") else (points,)
    return Op("minus", (REALS, Op("set", items)))


def _unboxed(found: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens of the last box, with a name before a single box (x =) and a unit after it."""
    places = [i for i, token in enumerate(found) if token.text in ("boxed", "fbox") and token.kind == "command"]
    if not places:
        return found
    at = places[-1]
    if at + 1 >= len(found):
        return ()
    inner = found[at + 1].inner if found[at + 1].kind == "group" else found[at + 1 : at + 2]
    before, after = found[:at], found[at + 2 :]
    while after and after[-1].text == ".":
        after = after[:-1]
    if len(places) > 1 or len(before) > 8 or not before or before[-1].text != "=" or before[0].kind != "letter":
        before = ()
    if after and not (
        len(places) == 1 and (after[0].text == "^" or ((unit := read_unit(after, 0)) and unit[1] == len(after)))
    ):
        after = ()
    return _unboxed([*before, *inner, *after]) if before or after else _unboxed(inner)


def _after_prose(found: Sequence[Token]) -> int:
    """Return the index after "so the final answer is" and the like."""
    for index, token in enumerate(found[:8]):
        if token.kind not in ("word", "letter") and token.text not in (",", "^"):
            return 0
        following = found[index + 1].text if index + 1 < len(found) else ""
        if token.text.casefold() in ("answer", "ans") and following in ("is", ":", "="):
            return index + 2
    return 0


def by_items(found: Sequence[Token]) -> Tree:
    """Parse the items of an answer one by one; an item that is no formula is a phrase."""
    items, heads = _split(found)
    if len(items) < 2 or any(token.text in MONTHS for token in found):
        return phrase([token for token in found if token.text != ","])
    trees: list[Tree] = []
    for item in items:
        trees.append(_formula(stripped(item)) or phrase(item))
    if all(isinstance(tree, Phrase) for tree in trees) or any(
        isinstance(tree, Phrase) and len(tree.parts) > 3 for tree in trees
    ):
        return phrase(found)
    return Op("or" if "or" in heads else "and" if "and" in heads else "list", tuple(trees))


def _split(found: Sequence[Token]) -> tuple[list[Sequence[Token]], set[str]]:
    items, heads, start, depth = [], set[str](), 0, 0
    for index, token in enumerate(found):
        depth += (token.text in ("(", "[", "\\{", "⟨")) - (token.text in (")", "]", "\\}", "⟩"))
        if depth <= 0 and token.text in SEPARATORS:
            items.append(found[start:index])
            heads.add(SEPARATORS[token.text])
            start = index + 1
    items.append(found[start:])
    return [item for item in items if item], heads


def phrase(found: Sequence[Token]) -> Tree:
    """Return words with the formulas between them."""
    if (value := _spelled(found)) is not None:
        return value
    parts: list[str | Tree] = []
    at, dated = 0, any(token.text in MONTHS for token in found)
    while at < len(found):
        token, after = found[at], found[at + 1] if at + 1 < len(found) else END
        is_letter = token.kind == "letter" and (
            token.marked or (token.text in ("a", "A", "I") and after.kind == "word")
        )
        if token.kind == "number" and dated:
            parts.append(Num(Fraction(token.text)))
        elif token.text == "'" and parts and isinstance(parts[-1], str) and after is not END:
            parts[-1] += "'" + (after.text if not after.spaced else "")
            at += not after.spaced
        elif token.kind == "word" or is_letter:
            parts.append(token.text)
        elif token.text not in ("'", '"', ".", "?"):
            parser = Parser(found[at:])
            try:
                parts.append(parser.relation())
                at += parser.at - 1
            except FAILURES:
                parts.append(flat([token]) if token.kind != "command" else f"\\{token.text}")
        at += 1
    return Phrase(tuple(parts))
