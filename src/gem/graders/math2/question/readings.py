"""Readings of an answer in words: the number in a sentence, the parts with labels, the choice with its text.

An answer is read as pieces: words and signs in their order, with a tree for each formula between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

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

_LISTED = re.compile(r"(?:\\(?:text|math)(?:bf|rm|it)?\s*\{)?(?<![\w\\])\(?([A-H])[).:](?=[\s}~\\$]|$)\s*\}?")
_AROUND = re.compile(r"^(?:\\q?quad|\\[ ,;~\\]|[\s$~])+|(?:\\q?quad|\\[ ,;~\\]|[\s$~.,;])+$")
_CIRCLED, _MARKS = "①②③④⑤⑥⑦⑧⑨", "abcdefghi123456789①②③④⑤⑥⑦⑧⑨"
_SPECIAL = frozenset(("(", *_CIRCLED))  # signs that may begin a remark or a label
_NAMES = frozenset("max min sup inf gcd lcm det dim".split())  # noqa: SIM905 - commands that are labels
_BETWEEN = frozenset({",", ";", "and", "&", "with"})
_LINKS = frozenset(": = is of are the The has have value".split())  # noqa: SIM905
_REPEATING = frozenset("or = ≈ about approximately equals".split())  # noqa: SIM905
_ATTAINED = frozenset(
    "attained achieved occurs occurring reached obtained taken at when for if which it is only value ,".split()  # noqa: SIM905
)
_CONDITIONS = frozenset(", ; ( ) for where with when if and provided assuming all".split())  # noqa: SIM905
_SEVERAL = ("select all", "all correct", "all that", "all the correct", "multiple choice", "which ones")
_ANSWERS = frozenset("yes no true false".split())  # noqa: SIM905
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()  # noqa: SIM905


@dataclass(frozen=True)
class Answer:
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


def readings(answer: str, gold: str, question: Question) -> Iterator[Pair]:
    """Yield the trees of two texts, and the pairs of their other readings with regard to the question."""
    a, g = Answer(answer), Answer(gold)
    if isinstance(a.tree, Num) and isinstance(g.tree, Num):
        yield a.tree, g.tree
        return
    for reading in (_choices, _texts, _labels):
        pairs = reading(a, g, question)
        if pairs is not None:  # it decides alone
            yield from pairs
            return
    yield a.tree, g.tree
    if "?" in answer:
        return
    for rule in (_numbers, _asked, _restricted):
        yield from ((value, g.tree) for value in rule(a, g, question))
        yield from ((a.tree, value) for value in rule(g, a, question) if rule is _numbers)
    yield from ((value, g.tree) for value in _said(a, g, question))
    yield from ((a.tree, value) for value in _said(g, a, question))


# --- words and the formulas between them ---


def pieces(found: Sequence[Token]) -> tuple[Piece, ...]:
    """Return the words and signs of a text, and a tree for each formula between them."""
    parts: list[Piece] = []
    at = 0
    while at < len(found):
        token, after = found[at], found[at + 1] if at + 1 < len(found) else Token("end", "")
        is_joined = after.text in ("-", "'") and not after.spaced and at + 2 < len(found) and not found[at + 2].spaced
        is_word = token.kind == "letter" and (
            token.marked
            or token.text in _CIRCLED
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
    spaced = (bracket.spaced or bracket.text != "(") and token.kind in ("number", "group")
    return spaced or token.kind == "word" or token.marked or token.text == "%"


def words_of(parts: Sequence[Piece]) -> list[str]:
    return [part for part in parts if isinstance(part, str)]


def trees_of(parts: Sequence[Piece]) -> list[Tree]:
    return [part for part in parts if not isinstance(part, str)]


@lru_cache(maxsize=512)
def formulas(text: str) -> tuple[Tree, ...]:
    """Return the formulas between dollar signs in a text."""
    return tuple(parse(part) for part in text.split("$")[1::2] if part.strip() and len(part) < 200)


@lru_cache(maxsize=512)
def _asked_pieces(q: Question) -> tuple[Piece, ...]:
    return pieces(tokens(q.asked.replace("$", " "))) if len(q.asked) < 500 else ()


# --- sentences and remarks ---


def _said(answer: Answer, short: Answer, q: Question) -> Iterator[Tree]:
    """Yield the value that a sentence, or a value with a remark in brackets, says; nothing for other answers."""
    parts: Sequence[Piece] = answer.parts
    if len(parts) > 2 and parts[-1] == ")" and "(" in parts[1:]:
        at = max(i for i, part in enumerate(parts) if part == "(")
        parts, remark = parts[:at], parts[at + 1 : -1]
        if not _holds(remark, parts, q):
            return
        if len(parts) == 1:
            yield from trees_of(parts)
    parts = _without_known([p for p in parts if not (isinstance(p, Sym) and p.name.casefold() in q.words)] or parts, q)
    trees, name = trees_of(parts), [word.casefold() for word in words_of(short.parts)]
    if not trees and len(name) == len(short.parts) and len("".join(name)) > 1:
        low = [str(part).casefold() for part in parts]
        at = next((i for i in range(len(low)) if low[i : i + len(name)] == name), -1)
        rest = [*parts[:at], "", *parts[at + len(name) :]]
        if at >= 0 and len(rest) > 1 and low.count(name[0]) == 1 and name[0] not in _ANSWERS and adds_nothing(rest, q):
            yield short.tree
    if not trees or len(parts) < 2:
        return
    place = next(i for i, part in enumerate(parts) if not isinstance(part, str))
    if len(trees) == 2 and _is_attained(parts[place + 1 :], trees[0], q) and adds_nothing(parts[: place + 1], q):
        yield trees[0]
    noun = parts[1] if not q.text and len(parts) == 2 and isinstance(parts[0], short.tree.__class__) else ""
    is_noun = isinstance(noun, str) and (noun == "people" or (noun.islower() and len(noun) > 3 and noun[-1] == "s"))
    if len(trees) == 1 and (adds_nothing(parts, q) or (is_noun and noun not in (*SCALES, "less", "plus", "minus"))):
        yield trees[0]


def _holds(remark: Sequence[Piece], parts: Sequence[Piece], q: Question) -> bool:
    """Return whether a remark in brackets repeats the value, says where it is attained, or repeats the question."""
    values, remark = trees_of(parts), _without_known(remark, q)
    said, words = trees_of(remark), {word.casefold() for word in words_of(remark)}
    if len(values) != 1:
        return False
    if not said:
        return adds_nothing(remark, q) and not (MOST & set(q.words) and LEAST & set(q.words))
    if _is_attained(remark, values[0], q):
        return True
    if not words <= _REPEATING | {"and", ","} | set(q.words) or (said[0] != remark[0] and remark[0] not in _REPEATING):
        return False
    if len(said) > 1 and "or" in words:
        return False
    a, b = (said[0] if len(said) == 1 else Op("+", tuple(map(_bare, said)))), values[0]
    units = {part.unit for tree in (a, b) for part in walk(tree) if isinstance(part, Quantity)}
    pairs = [(a, b)] if len(units) > 1 else [(a, b), (_bare(a), _bare(b))]
    if any(same(normal(x), normal(y), q) is True for x, y in pairs):
        return True
    x, y = approximate(a, {}), approximate(b, {})
    half = max((10.0**-tree.places / 2 for tree in (a, b) if isinstance(tree, Num) and tree.places), default=0.0)
    return x is not None and y is not None and abs(x - y) <= half


def _bare(tree: Tree) -> Tree:
    return mapped(tree, lambda part: part.value if isinstance(part, Quantity) else part)


def _is_attained(remark: Sequence[Piece], value: Tree, q: Question) -> bool:
    """Return whether a remark such as "attained at x = 2" is true of the only formula in its letter."""
    trees, asked = trees_of(remark), " ".join(words_in(q.asked)).casefold().split()
    asks_where = {"which", "where", "that"} & set(asked) or "for what" in " ".join(asked)
    if len(trees) != 1 or not isinstance(trees[0], Relation) or not (MOST | LEAST) & set(q.words) or asks_where:
        return False
    *names, at = trees[0].sides
    if set(trees[0].operators) != {"="} or not {word.casefold() for word in words_of(remark)} <= _ATTAINED:
        return False
    points = {name.name: at for name in names if isinstance(name, Sym)}
    found = [each.sides[-1] if isinstance(each, Relation) else each for each in formulas(q.text)]
    found = [each for each in found if names_in(each) == set(points) and not isinstance(each, Sym)]
    if len(found) != 1 or len(remark) < 2:
        return not found
    x, y = approximate(substituted(found[0], points), {}), approximate(value, {})
    return x is not None and y is not None and abs(x - y) < 1e-9


def _without_known(parts: Sequence[Piece], q: Question) -> Sequence[Piece]:
    """Remove a number with its noun that the last question has too, as in "in 8 years"."""
    asked = _asked_pieces(q) if len(parts) > 1 else ()
    for at, part in enumerate(parts):
        size = 1 if isinstance(part, Quantity) else 2
        known = any(asked[i : i + size] == tuple(parts[at : at + size]) for i in range(len(asked)))
        if known and not isinstance(part, str) and not (at and parts[at - 1] == "of"):
            start = at - 1 if at and str(parts[at - 1]).casefold() in ("in", "after", "for") else at
            return [*parts[:start], *parts[at + size :]]
    return parts


# --- parts with labels ---


def _labels(a: Answer, g: Answer, q: Question) -> list[Pair] | None:
    """Compare labelled parts with the labels of the other answer, or in the order of the question."""
    ours, theirs = _labelled(a.parts), _labelled(g.parts)
    if ours is None:
        flipped = _labels(g, a, q) if theirs is not None else None
        return None if flipped is None else [(first, second) for second, first in flipped]
    if theirs is not None and len(theirs) == len(ours):
        order = [next((i for i, (label, _) in enumerate(ours) if _alike(label, name)), -1) for name, _ in theirs]
        blank = [i for i, (label, _) in enumerate(ours) if not label]
        order = [blank[0] if i < 0 and len(blank) == 1 else i for i in order]
        if sorted(order) == list(range(len(ours))):
            return [(_tuple(ours[i][1] for i in order), _tuple(value for _, value in theirs))]
    gold = normal(g.tree) if theirs is None else _tuple(value for _, value in theirs)
    places = [_place(label, q) for label, _ in ours]
    if -1 in places or len(set(places)) < len(places) or not isinstance(gold, Op):
        return None
    values = _tuple(value for _, (_, value) in sorted(zip(places, ours, strict=True), key=lambda pair: pair[0]))
    return [(values, Op("tuple", gold.args) if gold.head in ("list", "and") else gold)]


def _tuple(values: Iterable[Tree]) -> Op:
    return Op("tuple", tuple(values))


def _labelled(parts: Sequence[Piece]) -> list[tuple[str, Tree]] | None:
    """Return the labels and values of an answer in parts; None for other answers."""
    groups: list[list[Piece]] = [[]]
    for index, part in enumerate(parts):
        starts = (part == "(" and parts[index + 2 : index + 3] == (")",)) or (
            isinstance(part, str) and part in _CIRCLED
        )
        if part in _BETWEEN or (starts and groups[-1]):
            groups.append([])
        if part not in _BETWEEN:
            groups[-1].append(part)
    found: list[tuple[str, Tree]] = []
    for group in filter(None, groups):
        if len(group) == 4 and group[0] == "(" and group[2] == ")":  # (a) 12
            group = [group[1].name if isinstance(group[1], Sym) else str(fraction_of(group[1])), group[3]]
        words = [word.casefold() for word in words_of(group) if word not in _LINKS]
        trees = trees_of(group)
        both = words and isinstance(group[0], str) is isinstance(group[-1], str)  # words on both sides
        if len(trees) != 1 or both or (isinstance(trees[0], Relation) and words):
            return None
        found.append((" ".join(words), trees[0]))
    named = sum(bool(label) for label, _ in found)
    return found if len(found) > 1 and named and named > len(found) - 2 else None


def _alike(label: str, name: str) -> bool:
    short, long = sorted((label.removesuffix(" value"), name.removesuffix(" value")), key=len)
    return long == short or (len(short) > 2 and long.startswith(short))


def _place(label: str, q: Question) -> int:
    """Return where a question has a label first; -1 if it does not have it."""
    if len(label) < 2:
        return _MARKS.find(label) if label else -1
    words, asked = [root(word) for word in label.split()], [root(word) for word in q.words]
    other = {"gcd": "greatest", "lcm": "least"}.get(label, words[0])
    for at, word in enumerate(asked):
        starts = len(words) == 1 and len(words[0]) > 2 and word.startswith(words[0])
        hyphenated = "-" in label and "".join(asked[at : at + 5]).replace("$", "").startswith(label)
        if starts or hyphenated or asked[at : at + len(words)] == words or (len(words) == 1 and word == other):
            return at
    return -1


# --- choices and other texts ---


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
    texts = [_AROUND.sub("", text[label.end() : end]) for label, end in zip(labels, ends, strict=True)]
    return dict(zip(letters, map(parse, texts), strict=True))


def _choices(a: Answer, g: Answer, q: Question) -> list[Pair] | None:
    """Compare the letters of choices; the text that the question lists may stand for its letter, and the reverse."""
    listed = choices_of(q.text)
    circled = any(c in a.text + g.text for c in _CIRCLED)
    marks = [_marks(a, circled), _marks(g, circled)]
    several = bool(listed) or any(words in q.text.casefold() for words in _SEVERAL)
    if all(marks) and (circled or (len(marks[1]) > 1 and (several or "order" in q.words))):
        head = "tuple" if "order" in q.words else "set"
        return [(Op(head, tuple(map(Sym, marks[0]))), Op(head, tuple(map(Sym, marks[1]))))]
    if not listed:
        return None
    (ours, text), (theirs, gold_text) = _choice(a), _choice(g)
    for letter, said in ((ours, text), (theirs, gold_text)):
        if letter and (letter not in listed or (said and same(normal(said), normal(listed[letter]), q) is False)):
            return []
    if (ours and theirs) or not (ours or theirs):
        return [(Sym(ours), Sym(theirs))] if ours else None
    value = a.tree if theirs else g.tree
    matching = [letter for letter, text in listed.items() if same(normal(value), normal(text), q) is not False]
    return [(value, listed[matching[0]])] if matching == [ours or theirs] else []


def _choice(answer: Answer) -> tuple[str, Tree | None]:
    """Return the letter of a choice and the text after it; "" if the answer has no letter."""
    tree, found = answer.tree, answer.tokens
    if len(found) > 3 and (found[0].text, found[2].text) == ("(", ")") and found[1].text in "ABCDEFGH":
        return found[1].text, parse_tokens(found[3:])
    if isinstance(tree, Op) and tree.head == "label" and isinstance(tree.args[0], Sym):
        return tree.args[0].name, tree.args[1] if len(tree.args) > 1 else None
    letter = tree.name.upper() if isinstance(tree, Sym) else ""
    return (letter if len(letter) == 1 and letter in "ABCDEFGH" else ""), None


def _marks(answer: Answer, circled: bool) -> list[str]:
    """Return the choices of an answer that names nothing else: letters, or circled numbers or digits."""
    text = "".join(token.text for token in answer.tokens if token.text not in (",", "and", ";", "(", ")", "&", "."))
    marks = [_CIRCLED[int(c) - 1] if circled and text.isdecimal() and c != "0" else c for c in text]
    return marks if len(set(marks)) == len(marks) and set(marks) <= set(_CIRCLED if circled else "ABCDEFGH") else []


def _texts(a: Answer, g: Answer, q: Question) -> list[Pair] | None:
    """Compare digits in a large base, Roman numerals and chemical formulas as texts, and dates."""
    texts = [
        "".join(_text(token) for token in each.tokens if token.text not in "()").removeprefix("0x").removesuffix("_16")
        for each in (a, g)
    ]
    based = any(
        word == "base" and base.isdecimal() and int(base) > 10 for word, base in zip(q.words, q.words[1:], strict=False)
    )
    if texts[1].isalnum() and not texts[1].isdecimal() and ({"hexadecimal", "roman"} & set(q.words) or based):
        return [(Phrase((texts[0].casefold(),)), Phrase((texts[1].casefold(),)))]
    texts = [text.replace("_", "") for text in texts]
    if texts[0] == texts[1].replace("_", "") and texts[1].isalnum() and sum(c.isupper() for c in texts[1]) > 1:
        return [(ZERO, ZERO)]
    date = date_of(Phrase(a.parts)) if isinstance(a.tree, Phrase) else None
    return [(ZERO, ZERO)] if date is not None and date == date_of(Phrase(g.parts)) else None


def _text(token: Token) -> str:
    return "".join(map(_text, token.inner)) if token.kind == "group" else token.text


# --- numbers, left sides and conditions ---


def _numbers(a: Answer, g: Answer, q: Question) -> Iterator[Tree]:
    """Yield 2.5 for 2,5, the sum for "1 and 1/2", two sides for 7 × 3, 5 for 5th, and the word for "No, it is not"."""
    value, found, texts = (
        fraction_of(_bare(g.tree)),
        a.tokens,
        [_text(token) for token in a.tokens if token.text != "^"],
    )
    args = a.tree.args if isinstance(a.tree, Op) else ()
    if texts[:1] in (["either"], ["Either"]) and "or" in texts:
        yield parse_tokens(found[1:])
    if {"which", "place"} & set(q.words):
        if len(texts) == 1 and texts[0] in _ORDINALS:
            yield Num(Fraction(_ORDINALS.index(texts[0]) + 1))
        elif len(texts) == 2 and texts[0].isdecimal() and texts[1] in ("th", "st", "nd", "rd"):
            yield Num(Fraction(texts[0]))
    comma = len(texts) == 3 and texts[1] == "," and not found[2].spaced and (texts[0] + texts[2]).isdecimal()
    if comma and value is not None and value.denominator > 1 and len(texts[2]) != 3:
        yield Num(Fraction(f"{texts[0]}.{texts[2]}"), len(texts[2]))
    if isinstance(a.tree, Op) and a.tree.head == "and" and len(args) == 2 and value is not None:
        whole, part = (fraction_of(arg) for arg in args)
        if whole is not None and part is not None and whole.denominator == 1 and 0 < part < 1:
            yield Op("mixed", args)
    if "dimensions" in q.words and isinstance(a.tree, Op) and a.tree.head == "*":
        yield Op("list", args)
    if "many" in q.words and value == 0 and texts in (["none"], ["None"]):
        yield ZERO
    word = polarity((a.tree.name,) if isinstance(a.tree, Sym) else a.parts, q)
    if word and word == polarity(g.parts, q):
        yield g.tree


def _asked(a: Answer, g: Answer, q: Question) -> Iterator[Tree]:
    """Yield the point of A(1, 2), and the right side of an equation whose left side the question has."""
    items = a.tree.args if isinstance(a.tree, Op) and a.tree.head in ("list", "and") else (a.tree,)
    points = [
        item.args[1]
        for item in items
        if isinstance(item, Op) and item.head in ("*", "call") and isinstance(item.args[0], Sym)
        if item.args[0].name[:1].isupper() and isinstance(item.args[1], Op) and item.args[1].head == "tuple"
    ]
    if len(points) == len(items):
        yield points[0] if len(points) == 1 else Op("list", tuple(points))
    last = a.parts[-1] if "so" in a.parts else a.tree
    if isinstance(last, Relation) and last.operators[0] == "=" and not isinstance(g.tree, Relation):
        left, *rest = last.sides
        segment = (
            isinstance(left, Op)
            and left.head == "*"
            and all(isinstance(s, Sym) and s.name.isupper() for s in left.args)
        )
        eccentricity = left == Sym("e") and "eccentricity" in q.words
        if eccentricity or (left in formulas(q.asked) and not segment and not isinstance(left, Sym)):
            yield rest[0] if len(rest) == 1 else Relation(tuple(rest), last.operators[1:])
    elif a.parts[-2:-1] == ("so",) and isinstance(last, Num):
        yield last


def _restricted(a: Answer, g: Answer, q: Question) -> Iterator[Tree]:
    """Yield an answer without conditions that its question has too, or that exclude where a fraction is undefined."""
    if not q.text or len(g.parts) > 1 or len(a.parts) < 3:
        return
    value, *rest = a.parts
    relations: list[Relation] = []
    for part in rest:
        if isinstance(part, Relation):
            relations.append(part)
        elif not isinstance(part, str) and relations and relations[-1].operators == ("≠",):
            relations.append(Relation((relations[-1].sides[0], part), ("≠",)))
        elif part not in _CONDITIONS:
            return
    if isinstance(value, str) or not relations:
        return
    if all(names_in(each) <= names_in(value) and _is_given(each, value, q) for each in relations):
        yield value


def _is_given(condition: Relation, value: Tree, q: Question) -> bool:
    name, sign, bound = condition.sides[0], condition.operators[0], condition.sides[-1]
    given = [part for formula in formulas(q.text) for part in walk(formula)]
    if isinstance(value, Relation) and value.sides[0] == name:
        return False
    if normal(condition) in [normal(part) for part in given if isinstance(part, Relation)]:
        return True
    if not isinstance(name, Sym) or len(condition.operators) > 1:
        return False
    if sign == "≠":
        below = [part.args[1] for part in given if isinstance(part, Op) and part.head == "/"]
        at = [approximate(substituted(each, {name.name: bound}), {}) for each in below if names_in(each) == {name.name}]
        return any(y is not None and abs(y) < 1e-9 for y in at)
    is_index = any(f"{mark}{name.name}" in q.text for mark in ("_", "_{", "first $")) or name.name in q.integers
    is_first = name.name in "kmn" and is_index and (sign, bound) in ((">", ZERO), ("≥", ZERO), ("≥", ONE))
    return is_first or (name.name == "s" and sign in (">", "≥") and "laplace" in q.words)
