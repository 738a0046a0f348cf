"""Readings of an answer in words: the number in a sentence, the parts with labels, the choice with its text.

Every reading is a pair of trees; the answer is right if the trees of one pair are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

from gem.graders.math.asked.pieces import CIRCLED, AnswerText, Piece, asked_tree, formulas, trees_of, words_of
from gem.graders.math.asked.sentences import LEAST, MOST, SAYS_NOTHING, bare, polarity, root, said_values
from gem.graders.math.equal import normal, same
from gem.graders.math.lexer import Token
from gem.graders.math.lexer import words as word_set
from gem.graders.math.parser import parse_tokens
from gem.graders.math.question import Question
from gem.graders.math.tree import (
    ONE,
    ZERO,
    Num,
    Op,
    Phrase,
    Relation,
    Sym,
    Tree,
    names_in,
    substituted,
    walk,
)
from gem.graders.math.values import approximate, fraction_of
from gem.graders.math.words import date_of

Pair = tuple[Tree, Tree]

_LISTED = re.compile(r"(?:\\(?:text|math)(?:bf|rm|it)?\s*\{)?(?<![\w\\])\(?([A-H])[).:](?=[\s}~\\$]|$)\s*\}?")
_AROUND = re.compile(r"^(?:\\q?quad|\\[ ,;~\\]|[\s$~])+|(?:\\q?quad|\\[ ,;~\\]|[\s$~.,;])+$")
_MARKS = "abcdefghi123456789①②③④⑤⑥⑦⑧⑨"
_BETWEEN = frozenset({",", ";", "and", "&", "with"})
_LINKS = word_set(": = is of are the The has have gets get value")
_CONDITIONS = word_set(", ; ( ) for where with when if and provided assuming all")
_SEVERAL = (
    "select all",
    "all correct",
    "all that",
    "all the correct",
    "multiple choice",
    "which ones",
    "which of the following are",
)
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()  # noqa: SIM905


def readings(answer: str, gold: str, question: Question) -> Iterator[Pair]:
    """Yield the trees of two texts, and the pairs of their other readings with regard to the question."""
    a, g = AnswerText(answer), AnswerText(gold)
    if isinstance(a.tree, Num) and isinstance(g.tree, Num) and not any(token.kind == "word" for token in a.tokens):
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
    yield from _alike_in_words(a, g)
    for rule in (_numbers, _points, _sorted, _restricted):
        yield from ((value, g.tree) for value in rule(a, g, question))
        yield from ((a.tree, value) for value in rule(g, a, question) if rule is _numbers)
    yield from ((value, g.tree) for value in said_values(a, g, question))
    yield from ((a.tree, value) for value in said_values(g, a, question))


# --- parts with labels ---


def _labels(a: AnswerText, g: AnswerText, q: Question) -> list[Pair] | None:
    """Compare labelled parts with the labels of the other answer, or in the order of the question."""
    ours, theirs = _labelled(a.parts), _labelled(g.parts)
    if ours is None and theirs is not None:
        ours = _labelled(a.parts, equations=True)
    elif ours is not None and theirs is None:
        theirs = _labelled(g.parts, equations=True)
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


def _labelled(parts: Sequence[Piece], *, equations: bool = False) -> list[tuple[str, Tree]] | None:
    """Return the labels and values of an answer in parts, of A = 5 too if ``equations``; None for other answers."""
    if equations and len(parts) == 1 and isinstance(parts[0], Op):
        parts = [piece for item in parts[0].args for piece in (item, ",")]
    groups: list[list[Piece]] = [[]]
    for index, part in enumerate(parts):
        starts = (part == "(" and parts[index + 2 : index + 3] == (")",)) or (isinstance(part, str) and part in CIRCLED)
        if part in _BETWEEN or (starts and groups[-1]):
            groups.append([])
        if part not in _BETWEEN:
            groups[-1].append(part)
    found: list[tuple[str, Tree]] = []
    for group in filter(None, groups):
        if len(group) == 4 and group[0] == "(" and group[2] == ")":  # (a) 12
            group = [group[1].name if isinstance(group[1], Sym) else str(fraction_of(group[1])), group[3]]
        elif equations and len(group) == 1 and isinstance(group[0], Relation) and isinstance(group[0].sides[0], Sym):
            group = [group[0].sides[0].name, group[0].sides[-1]]
        elif len(group) > 2 and isinstance(group[0], Sym) and group[1] in _LINKS:  # A: 5
            group = [group[0].name, *group[1:]]
        words = [word.casefold() for word in words_of(group) if word not in _LINKS]
        trees = trees_of(group)
        both = words and isinstance(group[0], str) is isinstance(group[-1], str)  # words on both sides
        if len(trees) != 1 or both or (isinstance(trees[0], Relation) and words and words[0] not in _MARKS):
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


def _alike_in_words(a: AnswerText, g: AnswerText) -> Iterator[Pair]:
    """Yield the values of two texts with the same words, such as "maximum 2 (x = 0)" and "x = 0: maximum 2"."""
    ours, theirs = _worded(a.parts), _worded(g.parts)
    plain = all(trees and len(words) < 2 for words, trees in ours) and any(words for words, _ in ours)
    if plain and [words for words, _ in ours] == [words for words, _ in theirs]:
        first, second = (_tuple(tree for _, trees in each for tree in trees) for each in (ours, theirs))
        yield first, second


def _worded(parts: Sequence[Piece]) -> list[tuple[list[str], list[Tree]]]:
    """Return the words and values of each item of an answer, in the order of the words."""
    groups: list[list[Piece]] = [[]]
    for part in parts:
        groups.append([]) if part in _BETWEEN and len(trees_of(parts)) > 1 else groups[-1].append(part)
    words = [[word for word in map(root, words_of(group)) if word not in SAYS_NOTHING | {"(", ")"}] for group in groups]
    trees = [sorted(trees_of(group), key=lambda tree: not isinstance(tree, Relation)) for group in groups]
    return sorted(zip(words, trees, strict=True), key=lambda item: item[0])


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
    return dict(zip(letters, map(asked_tree, texts), strict=True))


def _choices(a: AnswerText, g: AnswerText, q: Question) -> list[Pair] | None:
    """Compare the letters of choices; the text that the question lists may stand for its letter, and the reverse."""
    listed = choices_of(q.text)
    circled = any(c in a.text + g.text for c in CIRCLED)
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


def _choice(answer: AnswerText) -> tuple[str, Tree | None]:
    """Return the letter of a choice and the text after it; "" if the answer has no letter."""
    tree, found = answer.tree, answer.tokens
    if len(found) > 3 and (found[0].text, found[2].text) == ("(", ")") and found[1].text in "ABCDEFGH":
        return found[1].text, parse_tokens(found[3:])
    if isinstance(tree, Op) and tree.head == "label" and isinstance(tree.args[0], Sym):
        return tree.args[0].name, tree.args[1] if len(tree.args) > 1 else None
    letter = tree.name.upper() if isinstance(tree, Sym) else ""
    return (letter if len(letter) == 1 and letter in "ABCDEFGH" else ""), None


def _marks(answer: AnswerText, circled: bool) -> list[str]:
    """Return the choices of an answer that names nothing else: letters, or circled numbers or digits."""
    text = "".join(
        token.text for token in answer.tokens if token.text not in (",", "and", ";", "(", ")", "&", ".", "→")
    )
    marks = [CIRCLED[int(c) - 1] if circled and text.isdecimal() and c != "0" else c for c in text]
    return marks if len(set(marks)) == len(marks) and set(marks) <= set(CIRCLED if circled else "ABCDEFGH") else []


def _texts(a: AnswerText, g: AnswerText, q: Question) -> list[Pair] | None:
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


def _numbers(a: AnswerText, g: AnswerText, q: Question) -> Iterator[Tree]:
    """Yield 2.5 for 2,5, the sum for "1 and 1/2", two sides for 7 × 3, 5 for 5th, and the word for "No, it is not"."""
    value, found, texts = (
        fraction_of(bare(g.tree)),
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


def _points(a: AnswerText, g: AnswerText, q: Question) -> Iterator[Tree]:
    """Yield the point of A(1, 2), the conclusion of "p = 1/2, so p + 1 = 3/2", e = 1/2, and f(x) < 3 for y < 3."""
    items = a.tree.args if isinstance(a.tree, Op) and a.tree.head in ("list", "and") else (a.tree,)
    points = [
        item.args[1]
        for item in items
        if isinstance(item, Op) and item.head in ("*", "call") and isinstance(item.args[0], Sym)
        if item.args[0].name[:1].isupper() and isinstance(item.args[1], Op) and item.args[1].head == "tuple"
    ]
    if len(points) == len(items):
        yield points[0] if len(points) == 1 else Op("list", tuple(points))
    if "so" in words_of(a.parts) and not isinstance(a.parts[-1], str):
        yield a.parts[-1]
    if isinstance(a.tree, Relation) and a.tree.sides[0] == Sym("e") and "eccentricity" in q.words:
        yield a.tree.sides[-1]
    if "range" in q.words and "y" not in q.letters and isinstance(g.tree, Relation):
        values = [side for side in g.tree.sides if isinstance(side, Sym) and "(" in side.name]
        yield from (substituted(a.tree, {"y": value}) for value in values)


def _sorted(a: AnswerText, g: AnswerText, q: Question) -> Iterator[Tree]:
    """Yield the list of 3 < π < √10 if the question asks for this order, and 5 for 5 > 4 if it asks for the larger."""
    relation, words = a.tree if isinstance(a.tree, Relation) else None, set(q.words)
    signs = set(relation.operators) if relation else {part for part in a.parts if part in ("<", ">")}
    rising = next((word in LEAST for word in q.words if word in MOST | LEAST), None)
    if rising is not None and signs == {"<" if rising else ">"}:
        listed = tuple("," if part in ("<", ">") else part for part in a.parts)
        yield Op("list", relation.sides) if relation else Phrase(listed)
    larger, smaller = words & {"larger", "greater", "bigger"}, words & {"smaller", "less"}
    asked = relation and len(relation.sides) == 2 and set(relation.sides) <= set(formulas(q.text))
    if relation and asked and signs <= {"<", ">"} and "which" in words and not (larger and smaller):
        yield from relation.sides[signs == {"<" if larger else ">"} :][:1] if larger or smaller else ()


def _restricted(a: AnswerText, g: AnswerText, q: Question) -> Iterator[Tree]:
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
