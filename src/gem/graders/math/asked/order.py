r"""Names and order: which value an answer gives, and whether the order of a list is the order of the question.

"b = 3, a = 2" is (2, 3) if the question lists $a$ before $b$; "m+n = 113" is 113 if it asks for m+n, and "m = 5" is not
an answer then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, takewhile
from operator import itemgetter

from gem.graders.math.asked.forms import REWRITE, lower_text, parts, sentences, sorted_terms
from gem.graders.math.asked.pieces import asked_tree
from gem.graders.math.question import Question
from gem.graders.math.tree import COLLECTIONS, Num, Op, Phrase, Quantity, Relation, Sym, Tree, walk

_ASKING = frozenset(
    "find give determine compute calculate state report write list name enter evaluate identify solve what how "  # noqa: SIM905
    "answer".split()
)
_BETWEEN = frozenset(  # words between an asking verb and a formula that is asked
    "the a length measure value values of is are for all possible positive real unknown numbers number integers "  # noqa: SIM905
    "integer two three both , maximum minimum greatest largest smallest least exact coefficients constants parameters "
    "variables digits and".split()
)
_MEMBERS = frozenset(  # nouns whose members have no order: "the roots of f and g"
    "all every any which solution solutions root roots zero zeros possible intersection intersections point points "  # noqa: SIM905
    "numbers integers primes factors divisors eigenvalues members elements intercepts critical two three four pair "
    "pairs letters digits values coordinates".split()
)
_OF = frozenset("of over where for at between that such whose to with in on when".split())  # noqa: SIM905
_ARTICLES = frozenset("the its their his her".split())  # noqa: SIM905
_SUPERLATIVES = ("least", "most", "last", "right", "bottom", "top")
_ORDERED = (
    *("increasing order", "decreasing order", "ascending order", "descending order", "alphabetical order"),
    *("reverse order", "correct order", "chronological order", "in order", "order of size", "in this order"),
    *("in that order", "in which order", "respectively", "followed by", "as well as", "and also", ", then", "and then"),
    *("ordered pair", "ordered triple", "first .", "first ?", "and how", "and what", "and where", "and when", "as ("),
)
_OPPOSITE = {"max": ("min", "least", "smallest"), "min": ("max", "greatest", "largest")}
_DESCRIBED = {
    "abs": ("norm", "magnitude", "modulus", "length"),
    "det": ("determinant",),
    "max": ("max", "greatest"),
    "*": ("dot product", "scalar product", "inner product"),
    "^": ("variance", "inverse"),
}


_BLANK = re.compile(r"(?:\\?_){2,}")


@lru_cache(maxsize=2048)
def is_ordered(question: Question) -> bool:
    """Return whether the items of a list without brackets have an order."""
    words = parts(question.text)
    said = lower_text(words)
    if any(f" {phrase} " in said for phrase in _ORDERED) and " in order to " not in said:
        return True
    if (
        said.count(" ? ") > 1
        or len(_BLANK.findall(question.text)) > 1
        or " ( a ) " in f" {' '.join(word for word in words if isinstance(word, str))} "
    ):
        return True
    return any(map(_lists_different_things, sentences(question.text)))


def _lists_different_things(sentence: Sequence[str | Tree]) -> bool:
    """Return whether a sentence asks for things of several kinds, such as "the mean and the median"."""
    texts = [word.lower() if isinstance(word, str) else "$" for word in sentence if word not in (".", "?")]
    said = " ".join(texts)
    if any(before == "to" and (w.endswith("est") or w in _SUPERLATIVES) for before, w in pairwise(texts)):
        return True  # from least to greatest
    if {"then", "second", "terms"} & set(said.replace("next ", "first ").partition("first ")[2].split()):
        return True
    if "solve" in texts and ("for $ and $" in said or "for $ , $" in said):
        return True
    return any(_asks_different_things(sentence, texts, i + 1) for i, word in enumerate(texts) if word in _ASKING)


def _asks_different_things(sentence: Sequence[str | Tree], texts: list[str], start: int) -> bool:
    """Return whether the words from an index on, after an asking verb, are two names or two kinds of nouns."""
    at = texts.index("and", start) if "and" in texts[start:] else len(texts)
    left, right = texts[start:at], texts[at + 1 :]
    if set(left) <= _BETWEEN - {"for"} | {"$"} and left.count("$") + right[:1].count("$") > 1:
        return True  # find x and y
    head = list(takewhile(lambda word: word not in _OF, left))
    if not right or right[0] in _ASKING or set(head) & _MEMBERS:
        return False
    people = sentence[at - 1 : at + 2 : 2]
    if all(isinstance(word, str) and word.istitle() for word in people) or left[-3:-1] == ["number", "of"]:
        return True  # the ages of Ann and Ben, the number of vertices and edges
    if left[:1] == ["many"] and len(left) == 2:
        return True  # how many apples and pears
    has_article = set(head[:2]) & _ARTICLES or len(left) < 3
    return right[0] in ("also", *_ARTICLES) or (head == left and bool(has_article))  # the mean and (the) median


def _names_in_a_row(words: Sequence[str | Tree]) -> list[Tree]:
    """Return the names of the last "x, y and z" in a sentence; [] if it has none."""
    rows: list[list[Tree]] = [[]]
    for word in words:
        if isinstance(word, Sym):
            rows[-1].append(word)
        elif word not in (",", "and"):
            rows.append([])
    return next((row for row in reversed(rows) if len(row) > 1), [])


# --- items with names ---


def in_asked_order(tree: Tree, question: Question) -> Tree:
    """Return the values of a list with different names in the order in which the question has the names.

    Without names, a list becomes a tuple if the question gives it an order.
    """
    pairs = _labelled(tree)
    words = parts(question.asked)
    words = words if all(_place(label, words) >= 0 for label, _ in pairs) else parts(question.text)
    keys: list[tuple[int, str]] = [(_place(label, words), label) for label, _ in pairs]
    if len({place for place, _ in keys}) < len(keys) or any(place < 0 for place, _ in keys):
        is_named = isinstance(tree, Op) and len({_stem(label) for _, label in keys}) == len(keys)
        keys = [(0, label.lstrip("\\")) for _, label in keys] if is_named else []
    if len(keys) > 1:
        return Op("tuple", tuple(value for _, (_, value) in sorted(zip(keys, pairs, strict=True), key=itemgetter(0))))
    if isinstance(tree, Op) and tree.head in ("list", "and") and is_ordered(question):
        return Op("tuple", tree.args)
    return tree


def _labelled(tree: Tree) -> list[tuple[str, Tree]]:
    """Return the items of a list with their labels: b = 3, Ann: 15, slope 2; [] if an item has none."""
    if isinstance(tree, Phrase):
        chunks: list[list[str | Tree]] = [[]]
        for part in tree.parts:
            chunks.append([]) if part in (",", ";", "and") else chunks[-1].append(part)
        items: Sequence[Tree] = [Phrase(tuple(chunk)) for chunk in chunks if chunk]
    else:
        items = tree.args if isinstance(tree, Op) and tree.head in ("list", "and") else ()
    found = [_label(item) for item in items]
    return [] if any(not label for label, _ in found) else found


def _label(tree: Tree) -> tuple[str, Tree]:
    match tree:
        case Relation((left, right), ("=",)) if _name(left):
            return _name(left), right
        case Op("ratio", (Sym(name), Num() | Quantity() as value)):  # A: 3
            return name, value
        case Op("max" | "min" as head, (Num() | Op("neg") as value,)):
            return head, value
        case Phrase((*words, value)) if not isinstance(value, str) and all(isinstance(word, str) for word in words):
            named = [str(word).lower() for word in words if word not in (":", "=", "is", "-", "the", "of")]
            return (named[-1] if named and len(named[-1]) > 2 else ""), value
        case Phrase((Num() as value, str(word), *_)) if len(word) > 2:  # 10 rabbits
            return word.lower(), value
    return "", tree


def _place(label: str, words: Sequence[str | Tree]) -> int:
    """Return where a question has a name or a word that begins with a label; -1 if it has none."""
    row = [_name(name) for name in _names_in_a_row(words)]
    if label in row:
        return row.index(label)
    for index, word in enumerate(words):
        if isinstance(word, str):
            if len(label) > 2 and (word.lower().startswith(label) or word.lower().endswith(f"-{label}")):
                return index
        elif _name(word) == label:
            return index
    return -1


# --- the value that is asked ---


def said_of_asked(tree: Tree, question: Question) -> Tree | None:
    """Return 113 for m+n = 113 if the question asks for m+n; None if the left side is something else that it has."""
    words, tree = parts(question.text), _without_point_names(tree)
    said = lower_text(words)
    asked = {name for each in _asked(question) for name in (_name(each), _function(each)) if name}
    match tree:
        case Phrase((*before, "=", value)) if before and not isinstance(value, str):  # (xy)_max = 6
            labels = [part for part in before if isinstance(part, str) and part.isalpha()]
            known = all(f" {label}" in said for label in labels)
            return value if labels and known and all(isinstance(x, str) or _name(x) in asked for x in before) else tree
        case Relation((Op("tuple", names), Op("tuple", values)), ("=",)) if len(names) == len(values):
            return Op("list", tuple(Relation(pair, ("=",)) for pair in zip(names, values, strict=True)))
        case Relation((_, _, _, *_) as sides, operators) if is_ordered(question):  # 3 < \pi < 4
            falls = any(
                f" {word}" in said
                for word in ("to least", "to smallest", "to low", "to short", "decreasing", "descending")
            )
            return Op("list", sides) if set(operators) == {">" if falls else "<"} else tree
        case Relation((Sym("e"), value), ("=",)) if " eccentricity " in said:
            return value
        case Relation((Op("mod", (number, _)), value), ("=",)):  # 17 mod 5 = 2
            given = {str(part) for word in words for part in ((word,) if isinstance(word, str) else walk(word))}
            return tree if {str(number), str(getattr(number, "exact", number))} & given else None
        case Relation((left, value), ("=",)):
            name = _name(left).removesuffix("^*")
        case _:
            return tree
    extreme = name[-3:] if name.endswith(("_max", "_min")) else ""
    if extreme and any(f" {word}" in said for word in _OPPOSITE[extreme]):
        return None
    name = name.removesuffix(f"_{extreme}")
    is_function = not extreme and any(each.startswith(f"{name}(") for each in asked)  # y for y(t)
    if name in asked or name.partition("(")[0] in asked or is_function:
        return value if extreme or isinstance(left, Op) else tree
    formulas = [part for each in words if not isinstance(each, str) for part in walk(each)]
    if isinstance(left, Op) and left.head == "*" and asked and name in map(_name, formulas):
        return None  # AB = 12 where DE is asked
    if isinstance(left, Op) and left.head != "call":
        is_area = left.head == "*" and len(left.args) > 2 and name in map(_name, words)
        described = (*_DESCRIBED.get(left.head, ()), *(("area",) if is_area else ()))
        return value if any(f" {word}" in said for word in described) else tree
    known_names = {part.name for part in formulas if isinstance(part, Sym)}
    known_names |= {each.partition("(")[0] for each in known_names}
    alike = any(_stem(name) == _stem(each) or name[:1] == each[:1] in ("∠", "\\") for each in asked)
    is_other = asked and name and (name in known_names or alike) and not any(_same_angle(name, each) for each in asked)
    return None if is_other else tree


def _without_point_names(tree: Tree) -> Tree:
    """Return (5, 2) for C(5, 2)."""
    match tree:
        case Op("*" | "call", (Sym(name), Op("tuple") as point)) if name[0].isupper():
            return point
        case Op("call", (Sym(name), _, *_) as args) if name[0].isupper() and len(args) > 2:
            return Op("tuple", args[1:])
        case Op("list" | "and" | "or" | "set" as head, items):
            return Op(head, tuple(map(_without_point_names, items)))
    return tree


def _asked(question: Question) -> list[Tree]:
    """Return the formulas after find, what is, the value of and so on."""
    found: list[Tree] = []
    for sentence in sentences(question.text):
        asking = False
        for word in sentence:
            if isinstance(word, str):
                asking = word.lower() in _ASKING | REWRITE or (asking and word.lower() in _BETWEEN)
            elif asking and not isinstance(word, Relation):
                found.append(word)
    blanks = [text.strip() for text in question.text.split("$")[1::2]]
    return [*found, *(asked_tree(text[:-1]) for text in blanks if text.endswith("="))]  # $x+y=$____


def _name(tree: Tree | str) -> str:
    """Return a name, or a formula with its terms in one order, as text; "" for a number or another tree."""
    match tree:
        case Sym(name):
            return name
        case Op("call", (Sym(function), *arguments)):
            return f"{function}({','.join(_name(x) or repr(x) for x in arguments)})"
        case Op(head) if head not in COLLECTIONS or head == "ratio":
            return repr(sorted_terms(tree))
    return ""


def _function(tree: Tree) -> str:
    """Return y(t) for the product of y and t that the parser reads."""
    match tree:
        case Op("*", (Sym(function), Sym(variable))):
            return f"{function}({variable})"
    return ""


def _stem(name: str) -> str:
    r"""Return the letter of a_{n}, f'(x) and \overline{z}."""
    bare = name.partition("{")[2] or name.partition("_")[0].partition("(")[0]
    return bare if bare.startswith("\\") else bare[:1]


def _same_angle(name: str, other: str) -> bool:
    ours, theirs = name.removeprefix("∠"), other.removeprefix("∠")
    return name != ours and other != theirs and (ours == theirs[::-1] or ours in (theirs[1:2],) or theirs == ours[1:2])
