r"""The form and the notation in which a question asks for its answer.

An answer with the value of the reference answer is wrong if the question asks for a form that the reference answer has
and the answer has not: \sqrt{12} for 2\sqrt{3} in simplest radical form, or the formula of the question for its value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import takewhile

from gem.graders.math.lexer import Malformed, TooLarge
from gem.graders.math.parser import parse
from gem.graders.math.question import Question
from gem.graders.math.tree import (
    COLLECTIONS,
    InBase,
    Num,
    Op,
    Phrase,
    Quantity,
    Relation,
    Sym,
    Tree,
    mapped,
    names_in,
    walk,
)
from gem.graders.math.units import spelled_value

_PART = re.compile(  # formulas, plain arithmetic such as 12+34, words
    r"(?<!\\)\$\$?(?P<a>[^$]+)\$\$?|\\\((?P<b>.+?)\\\)|\\\[(?P<c>.+?)\\\]"
    r"|(?P<d>\({0,9}\d[\d.]*\)*!?(?:\s*[-+*/^×÷·−_]\s*\({0,9}\d[\d.]*\)*!?)+|\d+!)"
    r"|(?P<word>[A-Za-z]+(?:['-][A-Za-z]+)*)|\d+(?:\.\d+)?|[^\s\w]"
)
_SILENT = frozenset(
    "a an the your its answer exact common terminating repeating simplified reduced following".split()  # noqa: SIM905
)


# --- the text of a question ---


@lru_cache(maxsize=2048)
def parts(text: str) -> tuple[str | Tree, ...]:
    """Return the words and signs of a question, and its formulas as trees; each name of (x, y) is a tree of its own."""
    found: list[str | Tree] = []
    for match in _PART.finditer(text):
        formula = match[match.lastgroup] if match.lastgroup in ("a", "b", "c", "d") else ""
        try:
            tree = parse(formula) if formula else Phrase(())
        except (Malformed, TooLarge):
            continue
        if isinstance(tree, Phrase):
            found += parts(formula) if formula and formula != text else [match[0]]
        elif isinstance(tree, Op) and tree.head in ("list", "tuple") and all(isinstance(x, Sym) for x in tree.args):
            found += [each for name in tree.args for each in (name, ",")][:-1]
        else:
            found.append(tree)
    return tuple(
        Sym(x) if isinstance(x, str) and len(x) == 1 and x.isalpha() and x not in ("a", "A", "I") else x for x in found
    )


@lru_cache(maxsize=2048)
def sentences(text: str) -> list[list[str | Tree]]:
    found: list[list[str | Tree]] = [[]]
    for part in parts(text):
        found[-1].append(part)
        if part in (".", "?", "!"):
            found.append([])
    return found


def lower_text(words: Sequence[str | Tree], silent: frozenset[str] = _SILENT) -> str:
    """Return words in lower case without articles, with $ for formulas and spaces around each."""
    texts = [word.lower() if isinstance(word, str) else "$" for word in words]
    return f" {' '.join(text for text in texts if text not in silent)} "


def _says(said: str, *phrases: str) -> bool:
    """Return whether a text has words that begin with one of the phrases."""
    return any(f" {phrase}" in said for phrase in phrases)


# --- the form of a value ---


def has_asked_form(answer: Tree, gold: Tree, question: Question) -> bool:
    """Return whether an answer has each form that the question asks for and the reference answer has."""
    found = [each for each in sentences(question.text) if not _says(lower_text(each), *_OPTIONAL)]
    words = [word for sentence in found for word in sentence]
    said, a, g = lower_text(words), result(answer), result(gold)
    template = words[words.index("form") + 1 :] if "form" in words else []
    bases = tuple(tree.base if isinstance(tree, InBase) else 0 for tree in (answer, gold))
    if isinstance(gold, InBase) and len(gold.digits) > 1 and _says(said, *_BASED) and bases[0] != bases[1]:
        return False
    if isinstance(answer, InBase) and bases[0] != 10 and not bases[1]:
        return _asked_base(words) != 10 and int(answer.digits, answer.base) == _integer(g)
    if any(has(g) and not has(a) for phrases, has in _FORMS if _says(said, *phrases)):
        return False
    tens = any(Num(Fraction(10)) in _bases(part) for part in template if not isinstance(part, str))
    if tens and _is_scientific(g) and not _is_scientific(a):
        return False
    if _A_PLUS_BI in template and _is_rectangular(g) and not _is_rectangular(a):
        return False
    is_power = _says(said, *_POWERS) or any(isinstance(part, Op) and part.head == "^" for part in template)
    if is_power and not (_bases(g) <= _bases(a) or (_bases(a) and " power of integer" in said)):
        return False
    factors = not _is_sum(g) and _asks_factors(lower_text(words, frozenset()).split())
    if factors and _count_factors(a) < _count_factors(g):
        return False
    is_equation = any(isinstance(part, Relation) or part == "=" for part in template)
    if (is_equation or _says(said, "standard form", "slope-int")) and not _is_same_equation(answer, gold):
        return False
    return not _is_copied(answer, gold, question)


def result(tree: Tree) -> Tree:
    """Return the value of an assignment or a chain without its unit, and an equation such as x^2+y^2 = 9 itself."""
    if isinstance(tree, Relation) and set(tree.operators) <= {"=", "≈"}:
        left, right = tree.sides[0], tree.sides[-1]
        is_equation = len(tree.sides) == 2 and isinstance(left, Op) and names_in(left) and not names_in(right)
        tree = tree if is_equation else right
    match tree:
        case Op("where", (value, *_)) | Op("label", (_, value)):
            return result(value)
    return tree.value if isinstance(tree, Quantity) and tree.unit != "%" else tree


def _ops(tree: Tree, *heads: str) -> list[Op]:
    return [part for part in walk(tree) if isinstance(part, Op) and part.head in heads]


def _integer(tree: Tree) -> int | None:
    if isinstance(tree, Op) and tree.head == "neg":
        return _integer(tree.args[0])
    return int(tree.exact) if isinstance(tree, Num) and tree.exact.denominator == 1 else None


def _is_sum(tree: Tree) -> bool:
    return isinstance(tree, Op) and tree.head in ("+", "pm", "mp")


def _is_expanded(tree: Tree) -> bool:
    return not any(map(_is_sum, (arg for part in _ops(tree, "*", "^") for arg in part.args)))


def _is_reduced(tree: Tree) -> bool:
    """Return whether fractions of integers are in lowest terms, roots are simple, and there are no like terms."""
    for part in _ops(tree, "/", "ratio", "time"):  # 12 : 18 may be a time
        common = [_common_factor(arg) for arg in part.args]
        if math.gcd(*common) > 1 or (part.head == "/" and abs(_integer(part.args[1]) or 0) == 1):
            return False
    factors = [[_kind(arg) for arg in part.args] for part in _ops(sorted_terms(tree), "*")]
    terms = [[_letters(arg) for arg in part.args] for part in _ops(tree, "+")]
    return (
        all(map(_is_simple_root, _ops(tree, "sqrt")))
        and not any(kinds.count("number") > 1 or kinds.count("root") > 1 for kinds in factors)
        and all(len(set(each)) == len(each) for each in terms)
    )


def _common_factor(tree: Tree) -> int:
    """Return the integer that divides every term: 6 for 6√3, 2 for 2+4x, 1 for √3."""
    match tree:
        case Num():
            return abs(_integer(tree) or 1)
        case Op("neg", (value,)):
            return _common_factor(value)
        case Op("*", args):
            return math.prod(map(_common_factor, args))
        case Op("+", args):
            return math.gcd(*map(_common_factor, args))
    return 1


def _is_simple_root(tree: Op) -> bool:
    radicand, index = tree.args[0], _integer(tree.args[1]) or 0
    if not isinstance(radicand, Num):
        return not _ops(radicand, "/") or bool(names_in(radicand))
    value = _integer(radicand) or 0
    powers = (k**index for k in range(2, 10_000))
    return (
        1 < index < 100
        and value > 1
        and all(value % power for power in takewhile(lambda power: power <= value, powers))
    )


def _kind(tree: Tree) -> str:
    """Return whether a factor is a rational number or the root of a number."""
    if isinstance(tree, Op) and tree.head in ("/", "sqrt") and all(isinstance(arg, Num) for arg in tree.args):
        return "number" if tree.head == "/" else "root"
    return "number" if isinstance(tree, Num) else ""


def _letters(tree: Tree) -> str:
    """Return a term without its rational factor, as a text that like terms share."""
    match tree:
        case Num():
            return ""
        case Op("neg", (term,)) | Op("/", (term, Num())):
            return _letters(term)
        case Op("*", args):
            return "".join(sorted(map(_letters, args)))
    return repr(tree)


def _is_fraction(tree: Tree) -> bool:
    is_decimal = any(isinstance(part, Quantity) or (isinstance(part, Num) and part.places) for part in walk(tree))
    return bool(_ops(tree, "/")) and not is_decimal


def _is_scientific(tree: Tree) -> bool:
    match tree:
        case Op("neg", (value,)):
            return _is_scientific(value)
        case Num(_, places):
            return places is not None and places < 0  # 3.2e5
        case Op("*", (Num(factor), Op("^", (Num(base), _)))):
            return 1 <= factor < 10 == base
    return isinstance(tree, Op) and tree.head == "^" and tree.args[0] == Num(Fraction(10))


def _bases(tree: Tree) -> set[Tree]:
    return {part.args[0] for part in _ops(tree, "^")}


def _is_rectangular(tree: Tree) -> bool:
    products = any(_is_sum(arg) and _I in walk(arg) for part in _ops(tree, "*", "^") for arg in part.args)
    return not products and not any(_I in walk(part.args[1]) for part in _ops(tree, "/")) and not _is_polar(tree)


def _is_polar(tree: Tree) -> bool:
    return bool(_ops(tree, "cis", "cos", "exp")) or Sym("e") in _bases(tree)


def _asks_factors(words: list[str]) -> bool:
    if "product" in words and ("factors" in words or "primes" in words):
        return True
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        if word.startswith(("factori", "factored", "factoring")) and word != "factorial":
            return True
        if word == "factor" and before not in _BEFORE_FACTOR and after != "of":
            return True
    return False


def _count_factors(tree: Tree) -> int:
    """Count the factors of a product with their multiplicities; 1 for a sum."""
    match tree:
        case Op("*" | "/" | "neg", args):
            return max(1, sum(_count_factors(arg) for arg in args if _integer(arg) not in (1, -1)))
        case Op("^", (base, Num(exponent))) if exponent.denominator == 1 and exponent > 0:
            return int(exponent) * _count_factors(base)
    return 1


def _is_same_equation(answer: Tree, gold: Tree) -> bool:
    """Return whether the same letters are on each side of two equations; True if either is not one equation."""
    if not isinstance(answer, Relation) or not isinstance(gold, Relation):
        return True
    if isinstance(gold.sides[0], Sym):
        return gold.sides[0] in answer.sides
    ours, theirs = ([names_in(side) for side in tree.sides] for tree in (answer, gold))
    return ours in (theirs, theirs[::-1])


_FORMS: tuple[tuple[tuple[str, ...], Callable[[Tree], bool]], ...] = (  # beginnings of phrases without articles
    (("expand", "multiply out"), _is_expanded),
    (("simplif", "simplest", "lowest terms", "reduce ", "rationali", "rational denominator"), _is_reduced),
    (
        ("rationali", "rational denominator", "simplest radical"),
        lambda tree: not any(_ops(part.args[1], "sqrt") for part in _ops(tree, "/")),
    ),
    (
        ("as decimal", "in decimal", "into decimal", "to decimal", "give decimal", "decimal form"),
        lambda tree: (
            not _ops(tree, "/", "sqrt", "mixed", "^") and isinstance(tree, (Num, Op, InBase)) and not names_in(tree)
        ),
    ),
    (("as fraction", "into fraction", "to fraction", "improper fraction"), _is_fraction),
    (("improper fraction",), lambda tree: not _ops(tree, "mixed")),
    (("mixed number", "mixed fraction"), lambda tree: bool(_ops(tree, "mixed"))),
    (("scientific notation", "standard form", "standard index form"), _is_scientific),
    (("as single", "as one", "to single", "into single"), lambda tree: not _is_sum(tree)),
    (("positive exponent", "negative exponent"), lambda t: not any(_ops(p.args[1], "neg") for p in _ops(t, "^"))),
    (
        ("vertex form", "standard form", "complete square", "completing square"),
        lambda tree: any(map(_is_sum, _bases(tree))),
    ),
    (("rectangular form",), _is_rectangular),
    (("polar form", "trigonometric form", "exponential form"), _is_polar),
)
_POWERS = ("as power of", "exponential form", "exponential notation", "index form")
_OPTIONAL = ("you may ", "you can ", "you need not", "you don't", "equivalent")
_I, _A_PLUS_BI = Sym("i"), parse("a+bi")
_BEFORE_FACTOR = frozenset("common a the each one scale integrating prime what which by".split())  # noqa: SIM905


# --- a part of the question that is not worked out ---


def _is_copied(answer: Tree, gold: Tree, question: Question) -> bool:
    """Return whether an answer stands in the question as something to work out, and the reference answer does not."""
    if (isinstance(gold, Sym) and gold.name in "ABCDEFGH") or (
        isinstance(gold, Op) and gold == Op("label", gold.args[:1])
    ):
        return False  # a choice
    given = _given(question.text)
    copies, kept = ({sorted_terms(tree), sorted_terms(result(tree))} & given for tree in (answer, gold))
    return bool(copies) and not kept


@lru_cache(maxsize=2048)
def _given(text: str) -> frozenset[Tree]:
    """Return the operations of a question: its formulas, their sides, and their parts without letters."""
    found = set[Tree]()
    words = parts(text)
    for before, formula in zip(["", *words], words, strict=False):
        if isinstance(formula, str):
            continue
        sides = formula.sides if isinstance(formula, Relation) else ()
        inner = [part for part in walk(formula) if not names_in(part)]
        found |= {sorted_terms(part) for part in (formula, *sides, *inner) if _is_operation(part)}
        if isinstance(before, str) and before.lower() in REWRITE:
            found.add(sorted_terms(formula))
    return frozenset(found)


def _is_operation(tree: Tree) -> bool:
    """Return whether a tree can be worked out; numbers, simple fractions and simple roots cannot."""
    if isinstance(tree, Relation) and tree.operators[0] not in ("=", "∈"):
        return any(isinstance(side, Op) and names_in(side) for side in tree.sides)
    if not isinstance(tree, Op) or tree.head in _VALUES:
        return False
    inner = [arg for part in _ops(tree, "*", "sqrt") for arg in part.args] + [p.args[1] for p in _ops(tree, "/")]
    return (
        bool(names_in(tree))
        or any(isinstance(part, Op) and part.head not in ("neg", "+", "*", "/", "sqrt") for part in walk(tree))
        or any(_is_sum(part) for part in inner)
        or any(_ops(part.args[1], "/") for part in _ops(tree, "/"))
        or not _is_reduced(tree)
    )


def sorted_terms(tree: Tree) -> Tree:
    """Return a tree with its terms and factors in one order."""

    def change(part: Tree) -> Tree:
        if not isinstance(part, Op) or part.head not in ("+", "*"):
            return part
        split = [arg.args if isinstance(arg, Op) and arg.head == part.head else (arg,) for arg in part.args]
        return Op(part.head, tuple(sorted((arg for args in split for arg in args), key=repr)))

    return mapped(tree, change)


_VALUES = COLLECTIONS | {"label", "mixed", "where", "clock", "time"}
REWRITE = frozenset("convert express write rewrite simplify reduce expand factor evaluate".split())  # noqa: SIM905


# --- notation ---


def in_asked_notation(tree: Tree, question: Question) -> Tree:
    """Return digits in the base that a question asks for, and letters that are no product as their text."""
    said, text = lower_text(parts(question.text)), _letters_of(tree)
    match tree:
        case Phrase((str(digits), "(", "base", Num(written), ")")):
            return _in_base(digits, int(written)) or tree
        case Op("and", (_, Op("/")) as both) if " mixed number" in said:
            return Op("mixed", both)  # 1 and 3/4
    base = _asked_base(parts(question.text))
    if base not in (0, 10) and " how many " not in said and text:
        return _in_base(text.lower().removeprefix("0x").removeprefix("0b"), base) or tree
    return Phrase((text,)) if isinstance(tree, Op) and text.isalpha() and _says(said, *_SPELLED) else tree


def _asked_base(words: Sequence[str | Tree]) -> int:
    """Return the base of "to base 8", "in binary" and the like, the last one if there are several; 0 for none."""
    found = 0
    kept = [word.lower() if isinstance(word, str) else word for word in words if word not in ("-", "$")]
    for before, word, after in zip(["", *kept], kept, [*kept[1:], ""], strict=False):
        if before in ("in", "to", "into", "as") and isinstance(word, str) and word in _BASED:
            number = (
                (int(after) if after.isdecimal() else spelled_value(after))
                if isinstance(after, str)
                else _integer(after)
            )
            found = _BASED[word] or int(number or 0)
    return found


def _in_base(digits: str, base: int) -> InBase | None:
    fits = digits.isalnum() and digits.isascii() and 2 <= base <= 36 and all(int(d, 36) < base for d in digits)
    return InBase(digits.upper(), base) if fits else None


def _letters_of(tree: Tree) -> str:
    """Return the text of digits and letters that were read as a product or list; "" for other trees."""
    match tree:
        case Num(exact, None) if exact.denominator == 1 and exact >= 0:
            return str(exact)
        case Sym(name) if len(name) == 1:
            return name
        case Quantity(value, unit) if unit in _UNIT_DIGITS:
            return _letters_of(value) + _UNIT_DIGITS[unit]
        case Phrase((Num() as zero, str(digits))):  # 0 xFF
            return _letters_of(zero) + digits
        case Op("*" | "list", args):
            found = [_letters_of(arg) for arg in args]
            return "".join(found) if all(found) else ""
    return ""


_BASED = {"binary": 2, "ternary": 3, "octal": 8, "decimal": 10, "hexadecimal": 16, "hex": 16, "base": 0}
_UNIT_DIGITS = {"ampere": "A", "coulomb": "C", "farad": "F"}  # 2F is no capacitance
_SPELLED = ("roman", "letters", "matri", "word")
