"""Decide on notations of their own: numbers in a base, times and dates, vectors, choices, ratios and words."""

from __future__ import annotations

from fractions import Fraction

from gem.graders.math.equal.core import Verdict, all_of, same, same_with
from gem.graders.math.question import Question
from gem.graders.math.tree import ONE, InBase, Num, Op, Phrase, Sym, Tree, is_op, joined
from gem.graders.math.values import fraction_of
from gem.graders.math.words import date_of


def bases(a: Tree, g: Tree, q: Question) -> Verdict | None:
    if isinstance(a, InBase) and isinstance(g, InBase):
        return int(a.digits, a.base) == int(g.digits, g.base)
    for written, other in ((a, g), (g, a)):
        if isinstance(written, InBase):
            exact = fraction_of(other)
            return exact is not None and (str(exact) == written.digits or exact == int(written.digits, written.base))
    return None


def clocks(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare times of day; one without am or pm may be either."""
    clocks = [_seconds(tree) for tree in (a, g)]
    if None in clocks:
        return False if any(is_op(tree, "clock") for tree in (a, g)) else None
    (x, half), (y, gold_half) = clocks  # type: ignore[misc]
    return bool(x == y or ((x - y) % 43200 == 0 and not (half and gold_half)))


def _seconds(tree: Tree) -> tuple[int, bool] | None:
    """Return the seconds of a time of day since midnight, and whether its half of the day is known."""
    match tree:
        case Op("clock", (Num(seconds),)):
            return int(seconds), True
        case Op("time", args):
            known = [arg.exact for arg in args if isinstance(arg, Num) and arg.exact.denominator == 1]
            if len(known) == len(args) and 0 <= known[0] <= 24 and all(0 <= part < 60 for part in known[1:]):
                return int(sum(part * 60 ** (2 - i) for i, part in enumerate(known))), known[0] > 12
    return None


def dates(a: Tree, g: Tree, q: Question) -> Verdict | None:
    dates = [date_of(tree) if isinstance(tree, Phrase) else None for tree in (a, g)]
    return None if dates == [None, None] else dates[0] == dates[1]


def vectors(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare 2i - 3j with (2, -3), and a point P(1, 2) with (1, 2)."""
    for tree, other in ((a, g), (g, a)):
        if is_op(tree, "call") and len(tree.args) > 2 and is_op(other, "tuple"):
            return same_with(tree, Op("tuple", tree.args[1:]), a, g, q)
    size = max((len(tree.args) for tree in (a, g) if is_op(tree, "tuple")), default=0)
    vectors = [_components(tree, size) for tree in (a, g)]
    if vectors == [None, None] or not (size or None not in vectors):
        return None
    ours, theirs = (tree if vector is None else vector for tree, vector in zip((a, g), vectors, strict=True))
    return same(ours, theirs, q)


def _components(tree: Tree, size: int) -> Tree | None:
    r"""Return the tuple of a sum of multiples of \hat{i}, j and k; None for other trees."""
    terms = tree.args if is_op(tree, "+") else (tree,)
    found: dict[str, Tree] = {}
    marked = False
    for term in terms:
        whole: Tree = term.args[0] if is_op(term, "neg") else term
        inner, over = (whole.args[0], whole.args[1:]) if is_op(whole, "/") else (whole, ())
        factors = list(inner.args) if is_op(inner, "*") else [inner]
        axes = [f for f in factors if isinstance(f, Sym) and _axis(f.name)]
        if len(axes) != 1 or (axis := _axis(axes[0].name)) in found:
            return None
        marked = marked or "{" in axes[0].name
        factors.remove(axes[0])
        factor: Tree = joined("*", factors) if factors else ONE
        factor = Op("/", (factor, *over)) if over else factor
        found[axis] = Op("neg", (factor,)) if is_op(term, "neg") else factor
    if not marked and len(found) < 2:
        return None
    size = size or max("ijk".index(axis) for axis in found) + 1
    if size > 3 or any("ijk".index(axis) >= size for axis in found):
        return None
    return Op("tuple", tuple(found.get(axis, Num(Fraction(0))) for axis in "ijk"[: max(size, 2)]))


def _axis(name: str) -> str:
    for command in ("\\hat{", "\\vec{"):
        if name.startswith(command):
            name = name[len(command) : -1]
            name = {"x": "i", "y": "j", "z": "k"}.get(name, name)
    return name if name in ("i", "j", "k") else ""


def choices(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare choices by their letters; the text of a choice may be the other answer."""
    if not any(is_op(tree, "label") for tree in (a, g)):
        return None
    letters = [tree.args[0] if is_op(tree, "label") else tree for tree in (a, g)]
    if all(isinstance(letter, Sym) for letter in letters):
        return letters[0].name.upper() == letters[1].name.upper()  # type: ignore[union-attr]
    labelled = next(tree for tree in (a, g) if is_op(tree, "label"))
    return len(labelled.args) > 1 and same_with(labelled, labelled.args[1], a, g, q)


def ratios(a: Tree, g: Tree, q: Question) -> Verdict | None:
    trees = [tree for tree in (a, g) if is_op(tree, "ratio")]
    if len(trees) < 2 or (len(trees[0].args) < 3 and len(trees[1].args) < 3):
        return None
    if len(trees[0].args) != len(trees[1].args):
        return False
    first, gold_first = trees[0].args[0], trees[1].args[0]
    pairs = zip(trees[0].args, trees[1].args, strict=True)
    return all_of(same(Op("*", (x, gold_first)), Op("*", (y, first)), q) for x, y in pairs)


def same_words(a: Tree, g: Tree, q: Question) -> Verdict | None:
    texts = [_word(tree) for tree in (a, g)]
    if None in texts or not (isinstance(a, Phrase) or isinstance(g, Phrase)):
        return None
    ours, theirs = (str(text).casefold() for text in texts)
    return ours == theirs and (len(ours) > 1 or texts[0] == texts[1])


def _word(tree: Tree) -> str | None:
    match tree:
        case Phrase(parts):
            return " ".join(map(str, parts))
        case Sym(name):
            return name
        case Op("*", args) if all(isinstance(arg, Sym) for arg in args):
            return "".join(arg.name for arg in args if isinstance(arg, Sym))
    return None
