r"""Names and order: which value an answer gives, and whether the order of a list is the order of the question.

"b = 3, a = 2" is (2, 3) if the question lists $a$ before $b$; "m+n = 113" is 113 if it asks for m+n, and "m = 5" is not
an answer then.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gem.graders.math2.question.forms import lower_text, parts, sentences, sorted_terms
from gem.graders.math2.question.read import Question
from gem.graders.math2.tree import COLLECTIONS, Num, Op, Phrase, Relation, Sym, Tree, walk

_ASKING = frozenset(
    "find give determine compute calculate state report write list name enter evaluate identify solve what how answer".split()  # noqa: SIM905
)
_BETWEEN = frozenset(  # words between an asking verb and a formula that is asked
    "the a length measure value values of is are for all possible positive real unknown numbers number integers integer two three both , "
    "maximum minimum greatest largest smallest least exact coefficients constants parameters variables digits and".split()  # noqa: SIM905
)
_MEMBERS = frozenset(  # nouns whose members have no order: "the roots of f and g"
    "all every any which solution solutions root roots zero zeros possible intersection intersections point points numbers "
    "integers primes factors divisors eigenvalues members elements intercepts critical two three four pair pairs "
    "letters digits values coordinates".split()  # noqa: SIM905
)
_OF = frozenset("of over where for at between that such whose to with in on when".split())  # noqa: SIM905
_ARTICLES = frozenset("the its their his her".split())  # noqa: SIM905
_SUPERLATIVES = ("least", "most", "last", "right", "bottom", "top")
_ORDERED = (
    *(
        f"{kind} order"
        for kind in "increasing decreasing ascending descending alphabetical numerical reverse correct".split()
    ),  # noqa: SIM905
    *("chronological order", "respectively", "in order", "order of size", "in this order", "in which order"),
    *("followed by", "as well as", "and also", ", then", "and then", "ordered pair", "ordered triple", "first ."),
    *("and how", "and what", "and where", "and when", "first ?"),
)
_DESCRIBED = {"abs": ("norm", "magnitude", "modulus", "length"), "det": ("determinant",), "max": ("max", "greatest")}


@lru_cache(maxsize=2048)
def is_ordered(question: Question) -> bool:
    """Return whether the items of a list without brackets have an order."""
    said = lower_text(parts(question.text))
    if any(f" {phrase} " in said for phrase in _ORDERED) and not any(f" in order {w} " in said for w in ("to", "that")):
        return True
    if said.count(" ? ") > 1 or any(
        parts(question.text)[i : i + 3] == ("(", "a", ")") for i in range(len(parts(question.text)))
    ):
        return True
    return any(map(_lists_different_things, sentences(question.text)))


def _lists_different_things(sentence: Sequence[str | Tree]) -> bool:
    """Return whether a sentence asks for things of several kinds, such as "the mean and the median"."""
    words = [word.lower() if isinstance(word, str) else word for word in sentence]
    texts = [word if isinstance(word, str) else "$" for word in words if word not in (".", "?")]
    if any(
        before == "to" and (w.endswith("est") or w in _SUPERLATIVES)
        for before, w in zip(texts, texts[1:], strict=False)
    ):
        return True  # from least to greatest
    if "first" in texts and {"then", "second"} & set(texts[texts.index("first") :]):
        return True
    if "solve" in texts and {" for $ and $ ", " for $ , $ "} & {
        f" {' '.join(texts[i : i + 4])} " for i in range(len(texts))
    }:
        return True
    if _is_template(texts):
        return True
    for start in [i for i, word in enumerate(texts) if word in _ASKING]:
        ends = [i for i in range(start + 1, len(texts)) if texts[i] == "and"]
        left = texts[start + 1 : ends[0]] if ends else texts[start + 1 :]
        right = texts[ends[0] + 1 :] if ends else []
        if set(left) <= _BETWEEN - {"for"} | {"$"} and left.count("$") + right[:1].count("$") > 1:
            return True  # find x and y
        if not right or right[0] in _ASKING:
            continue
        end = next((i for i, word in enumerate(left) if word in _OF), len(left))
        people = sentence[ends[0] - 1 : ends[0] + 2 : 2]
        if set(left[:end]) & _MEMBERS or left[:1] == ["all"]:
            continue
        if all(isinstance(word, str) and word.istitle() for word in people) or "number of" in " ".join(left[-3:]):
            return True  # the ages of Ann and Ben, the number of vertices and edges
        if left[:1] == ["many"] and len(left) == 2:
            return True  # how many apples and pears
        if {"is", "are", "was", "were", "both"} >= set(left[:1]):
            left, end = left[1:], end - 1
        if right[0] in ("also", *_ARTICLES) or (
            end == len(left) and (left[:1] and left[0] in _ARTICLES or len(left) < 3)
        ):
            return True  # the mean and (the) median, the age of Ann and the age of Ben
    return False


def _is_template(texts: Sequence[str]) -> bool:
    """Return whether a sentence has a bracket such as (length, width)."""
    for start in [i for i, word in enumerate(texts) if word == "("]:
        inside = texts[start + 1 : next((i for i in range(start, len(texts)) if texts[i] == ")"), start)]
        if "," in inside and all(word == "," or len(word) > 2 for word in inside):
            return True
    return False


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
    if len(pairs) > 1 and len({label for label, _ in pairs}) == len(pairs):
        words = parts(question.text)
        places = [_place(label, words) for label, _ in pairs]
        if -1 not in places and len(set(places)) == len(places):
            return Op("tuple", tuple(pairs[i][1] for i in sorted(range(len(pairs)), key=lambda i: places[i])))
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
        case Op("max" | "min" as head, (Num() | Op("neg") as value,)):
            return head, value
        case Phrase((*words, value)) if not isinstance(value, str) and all(isinstance(word, str) for word in words):
            named = [str(word).lower() for word in words if word not in (":", "=", "is", "-", "the", "of")]
            return (named[-1] if named and len(named[-1]) > 2 else ""), value
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
    said = lower_text(parts(question.text))
    if isinstance(tree, Phrase) and "=" in tree.parts[1:] and not isinstance(tree.parts[-1], str):
        words = [part for part in tree.parts[:-2] if isinstance(part, str) and part.isalpha()]
        formulas = [part for part in tree.parts[:-2] if not isinstance(part, str)]
        known = all(f" {word}" in said for word in words) and set(map(_name, formulas)) <= set(
            map(_name, _asked(question))
        )
        return tree.parts[-1] if words and known else tree
    if not isinstance(tree, Relation) or len(tree.sides) != 2 or tree.operators != ("=",):
        return tree
    left, right = tree.sides
    name, _, extreme = _name(left).partition("_m")
    if extreme in ("ax", "in"):
        opposite = ("min", "least", "smallest") if extreme == "ax" else ("max", "greatest", "largest")
        if any(f" {word}" in said for word in opposite):
            return None
    else:
        name = _name(left).removesuffix("^*")
    asked = {name for each in _asked(question) for name in (_name(each), _function(each)) if name}
    if name in asked or name.partition("(")[0] in asked or any(each.startswith(f"{name}(") for each in asked):
        return right if extreme in ("ax", "in") or isinstance(left, Op) else tree
    if isinstance(left, Op) and left.head != "call":
        is_area = left.head == "*" and len(left.args) > 2 and name in map(_name, parts(question.text))
        words = _DESCRIBED.get(left.head, ("area",) if is_area else ())
        return right if any(f" {word}" in said for word in words) else tree
    formulas = [each for each in parts(question.text) if not isinstance(each, str)]
    known = {part.name for each in formulas for part in walk(each) if isinstance(part, Sym)}
    alike = any(_stem(name) == _stem(each) or name[:1] == each[:1] in ("∠", "\\") for each in asked)
    if asked and name and (name in known or alike) and not any(_same_angle(name, each) for each in asked):
        return None
    return tree


def _asked(question: Question) -> list[Tree]:
    """Return the formulas after find, what is, the value of and so on."""
    found: list[Tree] = []
    for sentence in sentences(question.text):
        asking = False
        for word in sentence:
            if isinstance(word, str):
                asking = word.lower() in _ASKING or (asking and word.lower() in _BETWEEN)
            elif asking and not isinstance(word, Relation):
                found.append(word)
    return found


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
    bare = name.partition("{")[2] or name
    return bare.lstrip("\\")[:1] if not name.startswith("\\") or "{" in name else name


def _same_angle(name: str, other: str) -> bool:
    ours, theirs = name.removeprefix("∠"), other.removeprefix("∠")
    return name != ours and other != theirs and (ours == theirs[::-1] or ours in (theirs[1:2],) or theirs == ours[1:2])
