"""Readings of an answer in words: the number in a sentence, the parts with labels, the choice with its text.

An answer is read as pieces: words and signs in their order, with a tree for each formula between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise

from gem.graders.math2.equal import normal, same
from gem.graders.math2.lexer import Token, tokens
from gem.graders.math2.parser import NotMath, Parser, parse, parse_tokens
from gem.graders.math2.question.read import Question, words_in
from gem.graders.math2.question.sentences import LEAST, MOST, adds_nothing, polarity, root
from gem.graders.math2.tree import (
    ONE,
    ZERO,
    Num,
    Op,
    Phrase,
    Quantity,
    Relation,
    Sym,
    Tree,
    mapped,
    names_in,
    substituted,
    walk,
)
from gem.graders.math2.units import SCALES, spelled_value
from gem.graders.math2.values import approximate, fraction_of
from gem.graders.math2.words import date_of

Piece = str | Tree
Pair = tuple[Tree, Tree]


@dataclass(frozen=True)
class Answer:
    """A text with its tree and its pieces."""

    text: str

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tokens(self.text)

    @cached_property
    def tree(self) -> Tree:
        return parse(self.text)

    @cached_property
    def parts(self) -> tuple[Piece, ...]:
        return pieces(self.tokens)


_LISTED = re.compile(r"(?:\\(?:text|math)(?:bf|rm|it)?\s*\{)?(?<![\w\\])\(?([A-H])[).:](?=[\s}~\\$]|$)\s*\}?")
_AROUND = re.compile(r"^(?:\\q?quad|\\[ ,;~\\]|[\s$~])+|(?:\\q?quad|\\[ ,;~\\]|[\s$~.,;])+$")
_CIRCLED = "①②③④⑤⑥⑦⑧⑨"
_DIGITS = frozenset("123456789")
_NAMES = frozenset("max min sup inf gcd lcm det dim".split())  # noqa: SIM905 - commands that are labels
_BETWEEN = frozenset({",", ";", "and", "&", "with"})
_REPEATING = frozenset("or = ≈ about approximately equals".split())  # noqa: SIM905
_ATTAINED = frozenset(
    "attained achieved occurs occurring reached obtained taken at when for if which it is only value".split()  # noqa: SIM905
)
_CONDITIONS = frozenset(", ; ( ) for where with when if and provided assuming all".split())  # noqa: SIM905
_SEVERAL = ("select all", "all correct", "all that", "all the correct", "which of the", "multiple choice", "which ones")
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()  # noqa: SIM905
_DISTRIBUTIONS = {"b": "binomial", "bin": "binomial", "binom": "binomial", "n": "normal", "po": "poisson"}


def readings(answer: str, gold: str, question: Question) -> Iterator[Pair]:
    """Yield the trees of two texts, and the pairs of their other readings with regard to the question."""
    a, g = Answer(answer), Answer(gold)
    for reading in (_choices, _labels):
        pairs = reading(a, g, question)
        if pairs is not None:  # it decides alone
            yield from pairs
            return
    yield a.tree, g.tree
    if "?" in answer:
        return
    for rule in (_texts, _numbers, _yes_no, _sorted, _points, _restricted):
        yield from rule(a, g, question)
    yield from ((value, g.tree) for value in _said(a, g, question))
    yield from ((a.tree, value) for value in _said(g, a, question))


# --- words and the formulas between them ---


def pieces(found: Sequence[Token]) -> tuple[Piece, ...]:
    """Return the words and signs of a text, and a tree for each formula between them."""
    parts: list[Piece] = []
    at = 0
    while at < len(found):
        token, after = found[at], found[at + 1] if at + 1 < len(found) else Token("end", "")
        is_article = token.text in ("a", "A", "I") and after.kind == "word" and after.spaced
        is_joined = after.text in ("-", "'") and not after.spaced and at + 2 < len(found) and not found[at + 2].spaced
        if token.kind == "word" and (spelled := _spelled(found, at, parts)) is not None:
            parts.append(spelled[0])
            at = spelled[1]
        elif token.text == "-" and token.marked and parts and isinstance(parts[-1], str) and not after.spaced:
            parts[-1] += f"-{after.text}"
            at += 2
        elif token.kind == "word" or (
            token.kind == "letter" and (token.marked or is_article or (is_joined and found[at + 2].kind == "word"))
        ):
            size = 3 if is_joined and found[at + 2].kind in ("word", "letter") else 1
            parts.append("".join(each.text for each in found[at : at + size]))
            at += size
        elif token.kind == "command" and token.text in _NAMES and after.text not in ("(", "{"):
            parts.append(token.text)
            at += 1
        else:
            tree, at = _formula(found, at, remark=_has_value(parts))
            parts.append(tree)
    return tuple(parts)


def _spelled(found: Sequence[Token], at: int, before: Sequence[Piece]) -> tuple[Tree, int] | None:
    """Read a number in words from a token on: (number, index after it); "one" is none."""
    end = at
    while end < len(found) and found[end].kind == "word" and spelled_value(found[end].text) is not None:
        end += 1
    value = spelled_value(" ".join(token.text for token in found[at:end])) if end > at else None
    is_one = found[at].text.casefold() in ("one", "second", "half") or (found[at].text in SCALES)
    return None if value is None or is_one or len(found) == end - at else (Num(value), end)


def _formula(found: Sequence[Token], at: int, *, remark: bool) -> tuple[Piece, int]:
    """Read the longest formula from a token on: (tree, index after it), or the sign itself."""
    opens = found[at].text == "(" and (remark or (at + 2 < len(found) and _is_mark(found[at + 1 : at + 3])))
    if not opens and found[at].text not in (",", ";", ":", ")", "/"):
        stops = [i for i in range(at + 1, len(found)) if found[i].text == "(" and _ends_value(found[i - 1], found[i])]
        words = [i for i in range(at + 1, len(found)) if found[i].kind == "word" or found[i].text in (",", ";")]
        for end in (*stops[:1], len(found), *words[:1]):
            parser = Parser(found[at:end])
            try:
                tree = parser.relation()
            except (NotMath, RecursionError, ZeroDivisionError):
                continue
            if parser.at:
                return tree, end - (len(parser.tokens) - parser.at)  # the parser may split a token
    return "per" if found[at].text == "/" else found[at].text, at + 1


def _has_value(parts: Sequence[Piece]) -> bool:
    """Return whether there is a formula after the last separator."""
    start = max((i for i, part in enumerate(parts) if part in (",", ";", "and", "(")), default=-1)
    return any(not isinstance(part, str) for part in parts[start + 1 :])


def _is_mark(inside: Sequence[Token]) -> bool:
    """Return whether a bracket holds one letter or digit, as in (a) and (1)."""
    return inside[1].text == ")" and len(inside[0].text) == 1 and inside[0].kind in ("letter", "number")


def _ends_value(token: Token, bracket: Token) -> bool:
    return (
        token.kind == "word"
        or token.marked
        or token.text == "%"
        or (bracket.spaced and token.kind in ("number", "group"))
    )


def words_of(parts: Sequence[Piece]) -> list[str]:
    return [part for part in parts if isinstance(part, str)]


def trees_of(parts: Sequence[Piece]) -> list[Tree]:
    return [part for part in parts if not isinstance(part, str)]


# --- sentences and remarks ---


def _said(answer: Answer, short: Answer, q: Question) -> Iterator[Tree]:
    """Yield the value that a sentence or a value with remarks says; nothing for other answers."""
    parts, remark = _without_remark(answer.parts)
    if remark and not _holds(remark, parts, q):
        return
    if remark and len(parts) == 1 and not isinstance(parts[0], str):
        yield parts[0]
    parts = _without_known([p for p in parts if not (isinstance(p, Sym) and p.name.casefold() in q.words)] or parts, q)
    trees = trees_of(parts)
    name = [word.casefold() for word in words_of(short.parts)]
    if not trees and len(name) == len(short.parts) and len("".join(name)) > 1:
        low = [str(part).casefold() for part in parts]
        at = next((i for i in range(len(low)) if low[i : i + len(name)] == name), None)
        rest = [*parts[:at], "", *parts[at + len(name) :]] if at is not None else []
        if at is not None and len(rest) > 1 and low.count(name[0]) == 1 and adds_nothing(rest, q):
            yield short.tree
    place = next((i for i, part in enumerate(parts) if not isinstance(part, str)), 0)
    if len(trees) == 2 and isinstance(trees[1], Relation) and place < len(parts) - 2:
        if _is_attained(parts[place + 1 :], trees[0], q) and adds_nothing([*parts[:place], trees[0]], q):
            yield trees[0]
    is_noun = (
        len(parts) == 2 and isinstance(parts[0], Num) and isinstance(parts[1], str) and isinstance(short.tree, Num)
    )
    if (
        is_noun
        and not q.text
        and parts[1].islower()
        and (parts[1] == "people" or (parts[1].endswith("s") and len(parts[1]) > 3))
    ):
        if parts[1] not in SCALES and parts[1] not in ("less", "minus", "plus", "times"):
            yield parts[0]
    if len(trees) == 1 and len(parts) > 1 and adds_nothing(parts, q):
        yield trees[0]


def _without_remark(parts: Sequence[Piece]) -> tuple[Sequence[Piece], Sequence[Piece]]:
    """Split off the brackets at the end of an answer."""
    if len(parts) > 2 and parts[-1] == ")" and "(" in parts[1:]:
        at = max(i for i, part in enumerate(parts) if part == "(")
        return parts[:at], parts[at + 1 : -1]
    return parts, ()


def _holds(remark: Sequence[Piece], parts: Sequence[Piece], q: Question) -> bool:
    """Return whether a remark in brackets repeats the value, says where it is attained, or repeats the question."""
    values, said = trees_of(parts), trees_of(remark)
    words = {word.casefold() for word in words_of(remark)}
    if len(values) != 1:
        return False
    if not said or not trees_of(remark := _without_known(remark, q)):
        return adds_nothing(remark, q) and not (MOST & set(q.words) and LEAST & set(q.words))
    if _is_attained(remark, values[0], q):
        return True
    if not words <= _REPEATING | {"and", ","} | set(q.words):
        return False
    if said[0] != remark[0] and remark[0] not in _REPEATING:
        return False
    if len(said) > 1 and "or" in words:
        return False
    return _agree(said[0] if len(said) == 1 else Op("+", tuple(map(_bare, said))), values[0], q)


def _bare(tree: Tree) -> Tree:
    return mapped(tree, lambda part: part.value if isinstance(part, Quantity) else part)


def _agree(a: Tree, b: Tree, q: Question) -> bool:
    """Return whether two numbers are equal exactly, in other units, as a percentage, or by rounding."""
    units = {part.unit for tree in (a, b) for part in walk(tree) if isinstance(part, Quantity)}
    if same(normal(a), normal(b), q) is True or (
        len(units) < 2 and same(normal(_bare(a)), normal(_bare(b)), q) is True
    ):
        return True
    x, y = approximate(a, {}), approximate(b, {})
    if x is None or y is None:
        return False
    half = max((10.0**-tree.places / 2 for tree in (a, b) if isinstance(tree, Num) and tree.places), default=0.0)
    return abs(x - y) <= half


def _is_attained(remark: Sequence[Piece], value: Tree, q: Question) -> bool:
    """Return whether a remark such as "attained at x = 2" is true of the only formula in its letter."""
    trees = trees_of(remark)
    if len(trees) != 1 or not isinstance(trees[0], Relation) or not (MOST | LEAST) & set(q.words) or _asks_where(q):
        return False
    if not {word.casefold() for word in words_of(remark)} <= _ATTAINED | {","} or len(remark) < 2:
        return False
    *names, at = trees[0].sides
    if set(trees[0].operators) != {"="} or not all(isinstance(name, Sym) for name in names):
        return False
    points = {name.name: at for name in names if isinstance(name, Sym)}
    found = [each.sides[-1] if isinstance(each, Relation) else each for each in formulas(q)]
    found = [each for each in found if names_in(each) == set(points) and not isinstance(each, Sym)]
    if len(found) != 1:
        return not found
    x, y = approximate(substituted(found[0], points), {}), approximate(value, {})
    return x is not None and y is not None and abs(x - y) < 1e-9


def _asks_where(q: Question) -> bool:
    asked = [word.casefold() for word in words_in(q.asked)]
    return bool({"which", "where", "that"} & set(asked)) or any(
        p in (("for", "what"), ("at", "what")) for p in pairwise(asked)
    )


def _without_known(parts: Sequence[Piece], q: Question) -> Sequence[Piece]:
    """Remove a number with its noun that the last question has too, as in "in 8 years", if there is another number."""
    asked = pieces(tokens(q.asked.replace("$", " "))) if len(q.asked) < 500 else ()
    for at, part in enumerate(parts):
        if isinstance(part, str) or (at and parts[at - 1] == "of"):
            continue
        size = 1 if isinstance(part, Quantity) else 2
        if any(asked[i : i + size] == tuple(parts[at : at + size]) for i in range(len(asked))):
            start = at - 1 if at and str(parts[at - 1]).casefold() in ("in", "after", "for") else at
            return [*parts[:start], *(part for part in parts[at + size :] if at or part != ",")]
    return parts


@lru_cache(maxsize=512)
def formulas(q: Question) -> tuple[Tree, ...]:
    """Return the formulas between dollar signs in a question."""
    return tuple(parse(part) for part in q.text.split("$")[1::2] if part.strip() and len(part) < 200)


# --- parts with labels ---


def _labels(a: Answer, g: Answer, q: Question) -> list[Pair] | None:
    """Compare labelled parts with the labels of the other answer, or in the order of the question."""
    ours, theirs = _labelled(a.parts), _labelled(g.parts)
    if ours is None or not (theirs or isinstance(normal(g.tree), Op)):
        return None if ours is not None or theirs is None else _flipped(_labels(g, a, q))
    if theirs is not None and len(theirs) == len(ours):
        order = [next((i for i, (label, _) in enumerate(ours) if _alike(label, name)), -1) for name, _ in theirs]
        blank = [i for i, (label, _) in enumerate(ours) if not label]
        order = [blank[0] if i < 0 and len(blank) == 1 else i for i in order]
        if sorted(order) == list(range(len(ours))):
            return [(_tuple(ours[i][1] for i in order), _tuple(value for _, value in theirs))]
    places = [_place(label, q) for label, _ in ours]
    if -1 in places or len(set(places)) < len(places):
        return None
    values = _tuple(value for _, (_, value) in sorted(zip(places, ours, strict=True), key=lambda pair: pair[0]))
    items = normal(g.tree)
    gold = _tuple(value for _, value in theirs) if theirs is not None else items
    return [(values, Op("tuple", gold.args) if isinstance(gold, Op) and gold.head in ("list", "and") else gold)]


def _flipped(pairs: list[Pair] | None) -> list[Pair] | None:
    return None if pairs is None else [(a, g) for g, a in pairs]


def _tuple(values: Iterator[Tree]) -> Tree:
    return Op("tuple", tuple(values))


def _labelled(parts: Sequence[Piece]) -> list[tuple[str, Tree]] | None:
    """Return the labels and values of an answer in parts; None for other answers."""
    groups: list[list[Piece]] = [[]]
    for index, part in enumerate(parts):
        is_mark = part == "(" and parts[index + 2 : index + 3] == (")",) or (str(part) in _CIRCLED and part != "")
        if part in _BETWEEN or (is_mark and groups[-1]):
            groups.append([])
        if part not in _BETWEEN:
            groups[-1].append(part)
    groups = [group for group in groups if group]
    found: list[tuple[str, Tree]] = []
    for group in groups:
        if group[0] == "(" and len(group) == 4 and group[2] == ")":
            group = [f"({group[1].name if isinstance(group[1], Sym) else _digits(group[1])})", group[3]]
        words = [word.casefold() for word in words_of(group) if word not in (":", "=", "is", "of", "are", "the", "The")]
        trees = trees_of(group)
        if len(trees) != 1 or (isinstance(trees[0], Relation) and words):
            return None
        if words and isinstance(group[0], str) is isinstance(group[-1], str):
            return None  # words on both sides
        found.append((" ".join(words), trees[0]))
    labels = [label for label, _ in found if label]
    return found if len(found) > 1 and labels and len(labels) > len(found) - 2 else None


def _digits(part: Piece) -> str:
    return str(part.exact) if isinstance(part, Num) else str(part)


def _alike(label: str, name: str) -> bool:
    short, long = sorted((label.removesuffix(" value"), name.removesuffix(" value")), key=len)
    return long == short or (len(short) > 2 and long.startswith(short))


def _place(label: str, q: Question) -> int:
    """Return where a question has a label first; -1 if it does not have it."""
    if label[:1] == "(" or label in _CIRCLED:
        return "abcdefghij123456789①②③④⑤⑥⑦⑧⑨".find(label.strip("()")) if label else -1
    words, asked = [root(word) for word in label.split()], [root(word) for word in q.words]
    short = {"gcd": "greatest", "lcm": "least"}.get(label)
    for at in range(len(asked)):
        if words and (asked[at : at + len(words)] == words or asked[at] == short):
            return at
        if len(words) == 1 and len(words[0]) > 2 and asked[at].startswith(words[0]):
            return at
        if "-" in label and "".join(asked[at : at + 5]).replace("$", "").startswith(label):
            return at
    return -1


# --- choices ---


@lru_cache(maxsize=512)
def choices_of(text: str) -> dict[str, Tree]:
    """Return the text of each choice that a question lists by letter, from A on, parsed; empty if it lists none."""
    labels = list(_LISTED.finditer(text))
    starts = [i for i, label in enumerate(labels) if label.group(1) == "A"]
    labels = labels[starts[-1] :] if starts else []
    letters = [label.group(1) for label in labels]
    if len(labels) < 2 or letters != list("ABCDEFGH"[: len(letters)]):
        return {}
    ends = [label.start() for label in labels[1:]] + [len(text)]
    return {
        label.group(1): parse(_AROUND.sub("", text[label.end() : end])) for label, end in zip(labels, ends, strict=True)
    }


def _choices(a: Answer, g: Answer, q: Question) -> list[Pair] | None:
    """Compare the letters of choices; the text that the question lists may stand for its letter, and the reverse."""
    listed = choices_of(q.text)
    circled = any(c in a.text + g.text for c in _CIRCLED)
    marks = [_marks(a, circled), _marks(g, circled)]
    several = bool(listed) or any(words in q.text.casefold() for words in _SEVERAL)
    if all(marks) and ((several and len(marks[1]) > 1 and _asks_no_order(q)) or circled):
        return [(_letters(sorted(marks[0])), _letters(sorted(marks[1])))]
    labels = [_choice(a), _choice(g)]
    if not listed:
        return None
    letters = [label.args[0].name if label and isinstance(label.args[0], Sym) else "" for label in labels]
    for letter, label in zip(letters, labels, strict=True):
        if label and (letter not in listed or (len(label.args) > 1 and not _is_text(label.args[1], listed[letter], q))):
            return []
    if letters[0] and letters[1]:
        return [(Sym(letters[0]), Sym(letters[1]))]
    if not letters[0] and not letters[1]:
        return None
    letter, value = (letters[1], a.tree) if letters[1] else (letters[0], g.tree)
    others = [text for name, text in listed.items() if name != letter]
    if any(_is_text(value, text, q) for text in others):
        return []
    return [(a.tree, listed[letter])] if letters[1] else [(listed[letter], g.tree)]


def _asks_no_order(q: Question) -> bool:
    return "order" not in q.words


def _is_text(value: Tree, text: Tree, q: Question) -> bool:
    return same(normal(value), normal(text), q) is not False


def _choice(answer: Answer) -> Op | None:
    tree, found = answer.tree, answer.tokens
    if len(found) > 3 and (found[0].text, found[2].text) == ("(", ")") and "A" <= found[1].text <= "H":
        return Op("label", (Sym(found[1].text), parse_tokens(found[3:])))
    if isinstance(tree, Sym) and "A" <= tree.name.upper() <= "H" and len(tree.name) == 1:
        return Op("label", (Sym(tree.name.upper()),))
    return tree if isinstance(tree, Op) and tree.head == "label" else None


def _marks(answer: Answer, circled: bool) -> list[str]:
    """Return the choices of an answer that names nothing else: letters, or circled numbers or digits."""
    texts = [token.text for token in answer.tokens if token.text not in (",", "and", ";", "(", ")", "&", ".")]
    if circled:
        texts = [_CIRCLED[int(text) - 1] if text in _DIGITS else text for text in texts]
    marks = list("".join(texts))
    allowed = _CIRCLED if circled else "ABCDEFGH"
    return marks if len(set(marks)) == len(marks) and set(marks) <= set(allowed) else []


def _letters(marks: Sequence[str]) -> Tree:
    return Op("set", tuple(map(Sym, marks)))


# --- numbers, texts and conditions ---


def _texts(a: Answer, g: Answer, q: Question) -> Iterator[Pair]:
    """Compare digits in a base, strings of letters and chemical formulas as texts, and distributions by their names."""
    texts = ["".join(_text(token) for token in each.tokens) for each in (a, g)]
    words = set(q.words)
    if {"hexadecimal", "base"} & words:
        texts = [text.removeprefix("0x").removesuffix("_16").casefold() for text in texts]
    elif "order" in words:
        texts = [text.replace(",", "") for text in texts]
    else:
        texts = [text.replace("_", "") for text in texts]
    capitals = sum(c.isupper() for c in texts[1]) > 1 and texts[1].isalnum()
    if texts[0] == texts[1] and len(texts[0]) > 1 and (capitals or ("hexadecimal" in words and texts[1].isalnum())):
        yield Phrase((texts[0],)), Phrase((texts[0],))
    dates = date_of(Phrase(a.parts)), date_of(Phrase(g.parts))
    if dates[0] is not None and dates[0] == dates[1]:
        yield Phrase(("same",)), Phrase(("same",))
    laws = _distribution(a.parts), _distribution(g.parts)
    if laws[0] is not None and laws[1] is not None:
        yield laws[0], laws[1]


def _text(token: Token) -> str:
    return "".join(map(_text, token.inner)) if token.kind == "group" else token.text


def _distribution(parts: Sequence[Piece]) -> Tree | None:
    """Return B(10, 0.3) and Bin(n = 10, p = 0.3) as one tree; None if the answer is no distribution."""
    last = parts[-1] if parts else ""
    if len(parts) == 1 and isinstance(last, Relation) and last.operators == ("∼",):
        last = last.sides[1]
        parts = last.args if isinstance(last, Op) and last.head in ("*", "call") else ()
        last = parts[-1] if parts else ""
    name = parts[0].name if len(parts) == 2 and isinstance(parts[0], Sym) else parts[0] if len(parts) == 2 else ""
    law = _DISTRIBUTIONS.get(str(name).casefold(), str(name).casefold())
    if law not in _DISTRIBUTIONS.values() or not isinstance(last, Op) or last.head != "tuple":
        return None
    return Op(law, tuple(arg.sides[-1] if isinstance(arg, Relation) else arg for arg in last.args))


def _numbers(a: Answer, g: Answer, q: Question) -> Iterator[Pair]:
    """Read 2,5 as 2.5, "1 and 1/2" as their sum, 7 × 3 as two sides, and "none" as 0, if the other answer is such."""
    for one, other in ((a, g), (g, a)):
        value, found = fraction_of(_bare(other.tree)), one.tokens
        tree: Tree | None = None
        args = one.tree.args if isinstance(one.tree, Op) else ()
        if found[:1] and found[0].text.casefold() == "either" and any(token.text == "or" for token in found):
            tree = parse_tokens(found[1:])
        elif {"which", "place"} & set(q.words) and (ordinal := _ordinal(found)) is not None:
            tree = ordinal
        elif value is not None and value.denominator > 1:
            if [token.text for token in found[1:2]] == [","] and len(found) == 3 and not found[2].spaced:
                if found[2].text.isdigit() and found[0].text.isdigit() and len(found[2].text) != 3:
                    tree = Num(Fraction(f"{found[0].text}.{found[2].text}"), len(found[2].text))
            elif isinstance(one.tree, Op) and one.tree.head == "and" and len(args) == 2:
                whole, part = (fraction_of(arg) for arg in args)
                if whole is not None and part is not None and whole.denominator == 1 and 0 < part < 1:
                    tree = Op("mixed", args)
        elif "dimensions" in q.words and isinstance(one.tree, Op) and one.tree.head == "*":
            tree = Op("list", args)
        elif value == 0 and "many" in q.words and isinstance(one.tree, Phrase) and one.tree.text.casefold() == "none":
            tree = ZERO
        if tree is not None:
            yield (tree, other.tree) if one is a else (other.tree, tree)


def _ordinal(found: Sequence[Token]) -> Tree | None:
    """Return the number of 5th and fifth; None for other tokens."""
    texts = [_text(token) for token in found if token.text != "^"]
    if len(texts) == 1 and texts[0] in _ORDINALS:
        return Num(Fraction(_ORDINALS.index(texts[0]) + 1))
    is_short = len(texts) == 2 and texts[0].isdecimal() and texts[1] in ("th", "st", "nd", "rd")
    return Num(Fraction(texts[0])) if is_short else None


def _yes_no(a: Answer, g: Answer, q: Question) -> Iterator[Pair]:
    letters = [(each.tree.name,) if isinstance(each.tree, Sym) else each.parts for each in (a, g)]
    ours, theirs = (polarity(parts, q) for parts in letters)
    if ours and theirs:
        yield Phrase((ours,)), Phrase((theirs,))


def _sorted(a: Answer, g: Answer, q: Question) -> Iterator[Pair]:
    """Read 3 < π < √10 as a list, if the question asks for an order and it is this one."""
    texts = words_of(a.parts)
    relation = a.tree if isinstance(a.tree, Relation) else None
    signs = set(relation.operators) if relation else {text for text in texts if text in "<>"}
    rising = next((alike is LEAST for word in q.words for alike in (MOST, LEAST) if word in alike), None)
    larger, smaller = ({"larger", "greater", "bigger"} & set(q.words), {"smaller", "less"} & set(q.words))
    if relation and len(relation.sides) == 2 and "which" in q.words and bool(larger) != bool(smaller):
        if signs <= {"<", ">"}:
            yield relation.sides[(signs == {"<"}) == bool(larger)], g.tree
    if len(signs) != 1 or rising is None or signs != {"<" if rising else ">"}:
        return
    items = relation.sides if relation else tuple(Phrase((text,)) for text in texts if text not in signs)
    if isinstance(g.tree, Op) and g.tree.head in ("list", "and"):
        yield Op("tuple", items), Op("tuple", g.tree.args)
    elif all(isinstance(part, str) for part in g.parts):
        yield Op("tuple", items), Op("tuple", tuple(Phrase((part,)) for part in words_of(g.parts) if part != ","))


def _points(a: Answer, g: Answer, q: Question) -> Iterator[Pair]:
    """Read the points A(1, 2) and B(3, 4) without their names, and a left side of an equation that the question has."""
    items = a.tree.args if isinstance(a.tree, Op) and a.tree.head in ("list", "and") else (a.tree,)
    points: list[Tree] = []
    for item in items:
        if isinstance(item, Op) and item.head in ("*", "call") and isinstance(item.args[0], Sym):
            if item.args[0].name[:1].isupper() and isinstance(last := item.args[-1], Op) and last.head == "tuple":
                points.append(last)
    if len(points) == len(items):
        yield points[0] if len(points) == 1 else Op("list", tuple(points)), g.tree
    if isinstance(g.tree, Relation):
        return
    last = a.parts[-1] if "so" in a.parts else a.tree
    if isinstance(last, Relation) and last.operators[0] == "=" and _is_asked(last.sides[0], a, q):
        yield last.sides[1] if len(last.sides) == 2 else Relation(last.sides[1:], last.operators[1:]), g.tree
    elif a.parts[-2:-1] == ("so",) and isinstance(last, Num):
        yield last, g.tree


def _is_asked(left: Tree, a: Answer, q: Question) -> bool:
    """Return whether a left side is a formula of the question or names what it asks for."""
    words = set(q.words)
    if isinstance(left, Op) and left.head == "*" and all(isinstance(arg, Sym) for arg in left.args):
        if a.tokens[0].text == "[":
            points = {arg.name for arg in left.args if isinstance(arg, Sym)}
            return "area" in words and any(text.isupper() and points <= set(text) for text in words_in(q.text))
        return left in formulas(q) and not all(arg.name.isupper() for arg in left.args if isinstance(arg, Sym))
    if isinstance(left, Op) and left.head == "abs" and {"norm", "modulus", "magnitude", "length"} & words:
        return True
    named = {Sym("e"): "eccentricity", Op("^", (Sym("\\sigma"), Num(Fraction(2)))): "variance"}.get(left)
    return named in words or (not isinstance(left, Sym) and left in formulas(q))


def _restricted(a: Answer, g: Answer, q: Question) -> Iterator[Pair]:
    """Drop conditions of an answer that the question has too, or that exclude where its fractions are undefined."""
    if len(a.parts) < 3 or isinstance(a.parts[0], str) or not q.text or len(g.parts) > 1:
        return
    value, *rest = a.parts
    names = names_in(value)
    relations: list[Relation] = []
    for part in rest:
        if isinstance(part, str) and part not in _CONDITIONS:
            return
        if isinstance(part, Relation) and isinstance(part.sides[0], (Sym, Num)):
            relations.append(part)
        elif not isinstance(part, str):
            if not relations or relations[-1].operators != ("≠",):
                return
            relations.append(Relation((relations[-1].sides[0], part), ("≠",)))
    if relations and all(names_in(each) <= names and _is_given(each, value, q) for each in relations):
        yield value, g.tree


def _is_given(condition: Relation, value: Tree, q: Question) -> bool:
    name, bound = condition.sides[0], condition.sides[-1]
    given = [part for formula in formulas(q) for part in walk(formula)]
    if isinstance(value, Relation) and value.sides[0] == name:
        return False
    if normal(condition) in [normal(part) for part in given if isinstance(part, Relation)]:
        return True
    if not isinstance(name, Sym) or len(condition.operators) > 1:
        return False
    if condition.operators == ("≠",):
        below = [part.args[1] for part in given if isinstance(part, Op) and part.head == "/"]
        at = [approximate(substituted(each, {name.name: bound}), {}) for each in below if names_in(each) == {name.name}]
        return any(y is not None and abs(y) < 1e-9 for y in at)
    if condition.operators[0] in (">", "≥") and name.name == "s" and "laplace" in q.words:
        return True
    first = (condition.operators[0], bound) in ((">", ZERO), ("≥", ZERO), ("≥", ONE))
    is_index = any(f"{mark}{name.name}" in q.text for mark in ("_", "_{", "first $")) or name.name in q.integers
    return first and name.name in "kmn" and is_index
