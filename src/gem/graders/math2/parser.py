r"""Parse the tokens of a math answer into a tree.

The grammar, from loose to tight: items of an answer (, ; and or), conditions (where, for, if), relations (= < ∈ ≡),
sets (∪ ∩ ∖), sums, products (also without a sign), powers, postfixes (! % ° '), and what stands alone.

>>> parse(r"2^{3}5"), parse(r"\frac12")
(Op(head='*', args=(Op(head='^', args=(Num(...2...), Num(...3...))), Num(...5...))), Op(head='/', args=(...)))
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from gem.graders.math2.lexer import Token, tokens
from gem.graders.math2.tree import (
    EMPTY,
    INFINITY,
    MINUS_INFINITY,
    ONE,
    REALS,
    ZERO,
    InBase,
    Interval,
    Num,
    Op,
    Phrase,
    Quantity,
    Relation,
    Sym,
    Tree,
    is_collection,
    names_in,
    substituted,
)
from gem.graders.math2.units import SCALES, conversion, read_currency, read_unit, spelled_value

RELATIONS = frozenset("= < > ≤ ≥ ≠ ≈ ≡ ∈ ∉ ∼ → ⊂ ∥ ⊥ ≅".split())  # noqa: SIM905
FUNCTIONS = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh coth sech csch log ln lg exp arg Re "
    "Im det gcd lcm max min sgn deg dim ker tr rank span adj cis erf Gamma Var".split()  # noqa: SIM905
)
MANY = frozenset({"gcd", "lcm", "max", "min", "span"})  # functions of several arguments
_CALLED = frozenset("f g h F G H P E".split())  # noqa: SIM905 - letters before brackets that are functions, not factors
_SEPARATORS = {",": "list", ";": "list", "and": "and", "or": "or", "∧": "and", "∨": "or", "&": "and"}
_CONDITIONS = frozenset("for where with if when whenever provided given such as assuming at".split())  # noqa: SIM905
_DECLARING = _CONDITIONS | frozenset(
    "all any that every some real arbitrary is are be an a the number numbers constant constants and complex".split()  # noqa: SIM905
)
_CLOSING = {"(": ")]", "[": "])(", "]": "[]", "⟨": "⟩", "⌊": "⌋", "⌈": "⌉", "\\{": ("\\}",), "|": "|", "‖": "‖"}
_BASE_NAMES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_BASES = {**_BASE_NAMES, "twelve": 12, "sixteen": 16, "hex": 16}
_END = Token("end", "")
_HOURS = frozenset(Num(Fraction(hour)) for hour in range(25))
_SETS = {"mathbbR": REALS, "mathbbZ": Sym("ℤ"), "mathbbN": Sym("ℕ"), "mathbbQ": Sym("ℚ"), "mathbbC": Sym("ℂ")}


class NotMath(ValueError):
    """The tokens are no formula."""


@lru_cache(maxsize=4096)
def parse(text: str) -> Tree:
    """Parse the text of an answer; a text that is no formula becomes a Phrase.

    Raises:
        TooLarge: the text exceeds a limit of the lexer.
    """
    if text.isdigit() and text.isascii():
        return Num(Fraction(int(text)))
    return parse_tokens(tokens(text))


def parse_tokens(found: Sequence[Token]) -> Tree:
    found = _stripped(_unboxed(found))
    if not found:
        return Phrase(())
    if all(token.kind in ("word", "letter") or token.text == "-" for token in found):
        if (value := spelled_value(" ".join(token.text for token in found))) is not None:
            return Num(value)
    if (special := _labelled(found) or _worded_name(found) or _without(found)) is not None:
        return special
    if len(found) == 1 and found[0].kind == "word" and len(found[0].text) > 2 and set(found[0].text) & set("aeiou"):
        return _phrase(found)  # dog, which is not god
    for name, head in (("over", "/"), ("choose", "binom")):
        if (at := next((i for i, token in enumerate(found) if token.text == name and token.kind == "command"), 0)) > 0:
            return Op(head, (parse_tokens(found[:at]), parse_tokens(found[at + 1 :])))
    try:
        return Parser(found).answer()
    except (NotMath, RecursionError, ZeroDivisionError):
        return _by_items(found)


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
    if rest and (rest[0].text in ("and", "or", ",", ";", "&") or any(_labels_at(rest, i) for i in range(len(rest)))):
        return None
    if size == 3 and rest[:1] and rest[0].text in ("^", "_", "+", "-", "*", "/", "=", "(", "!"):
        return None
    if letter.islower() and rest:
        return None
    return Op("label", (Sym(letter.upper()), *((parse_tokens(rest),) if rest else ())))


def _labels_at(found: Sequence[Token], at: int) -> bool:
    texts = [token.text for token in found[at : at + 3]]
    return len(texts) == 3 and texts[0] == "(" and texts[2] == ")" and "A" <= texts[1] <= "H" and len(texts[1]) == 1


def _worded_name(found: Sequence[Token]) -> Tree | None:
    """Parse "Area = 12" as an assignment; None for other tokens."""
    at = next((i for i, token in enumerate(found) if token.text == "=" and token.kind == "sign"), 0)
    left = found[:at]
    if not left or "=" in [token.text for token in found[at + 1 :]] or not all(token.kind == "word" and (token.marked or not _is_product(token.text)) for token in left):
        return None
    return Relation((Sym(" ".join(token.text for token in left)), parse_tokens(found[at + 1 :])), ("=",))


def _without(found: Sequence[Token]) -> Tree | None:
    """Parse "all real numbers except 2 and 3"; None for other tokens."""
    at = next((i for i, token in enumerate(found) if token.text in ("except", "but", "excluding")), 0)
    words = {token.text for token in found[:at]}
    if (
        not at
        or not words & {"real", "reals", "mathbbR"}
        or not words <= {"all", "real", "reals", "numbers", "any", "the", "x", "mathbbR"}
    ):
        return None
    points = parse_tokens(
        [token for token in found[at + 1 :] if token.text not in ("for", "x", "=", "when", "where", "at")]
    )
    items = points.args if isinstance(points, Op) and points.head in ("list", "and", "or") else (points,)
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


def _stripped(found: Sequence[Token]) -> Sequence[Token]:
    """Remove signs around an answer that are no part of it: quotes, Markdown, a final full stop, a leading =."""
    start, end = _after_prose(found), len(found)
    while start < end and (found[start].text in ("=", "≈", '"', "`", ":", ",", "→", "∴") or _is_bold(found, start)):
        start += 1
    while (
        start + 1 < end
        and found[start].text.casefold() in ("approximately", "about", "roughly", "all", "exactly")
        and found[start + 1].kind != "word"
    ):
        start += 1
    while start < end and (found[end - 1].text in (".", ",", ";", '"', "`", ":", "…") or _is_bold(found, end - 1)):
        if found[end - 1].text == "…" and end - start > 2 and found[end - 2].text in (",", "+"):
            break
        if found[end - 1].text == "…" and found[end - 2].kind == "number":
            break
        end -= 1
    if end - start == 1 and found[start].kind == "group":
        return _stripped(found[start].inner)
    return found[start:end]


def _after_prose(found: Sequence[Token]) -> int:
    """Return the index after "so the final answer is" and the like."""
    for index, token in enumerate(found[:8]):
        if token.kind not in ("word", "letter") and token.text not in (",", "^"):
            return 0
        if (
            token.text.casefold() in ("answer", "ans")
            and index + 1 < len(found)
            and found[index + 1].text in ("is", ":", "=")
        ):
            return index + 2
    return 0


def _is_bold(found: Sequence[Token], at: int) -> bool:
    return found[at].text == "^" and found[at].kind == "sign" and at in (0, len(found) - 1)  # ** is ^ here


def _by_items(found: Sequence[Token]) -> Tree:
    """Parse the items of an answer one by one; an item that is no formula is a phrase."""
    items, heads = _split(found)
    if len(items) < 2 or any(token.text in MONTHS for token in found):
        return _phrase([token for token in found if token.text != ","])
    trees: list[Tree] = []
    for item in items:
        try:
            trees.append(Parser(_stripped(item)).answer())
        except (NotMath, RecursionError, ZeroDivisionError):
            trees.append(_phrase(item))
    if all(isinstance(tree, Phrase) for tree in trees) or any(
        isinstance(tree, Phrase) and len(tree.parts) > 3 for tree in trees
    ):
        return _phrase(found)
    return Op("or" if "or" in heads else "and" if "and" in heads else "list", tuple(trees))


def _split(found: Sequence[Token]) -> tuple[list[Sequence[Token]], set[str]]:
    items, heads, start, depth = [], set[str](), 0, 0
    for index, token in enumerate(found):
        depth += (token.text in ("(", "[", "\\{", "⟨")) - (token.text in (")", "]", "\\}", "⟩"))
        if depth <= 0 and token.text in _SEPARATORS:
            items.append(found[start:index])
            heads.add(_SEPARATORS[token.text])
            start = index + 1
    items.append(found[start:])
    return [item for item in items if item], heads


def _phrase(found: Sequence[Token]) -> Tree:
    """Return words with the formulas between them."""
    words = [token.text for token in found]
    if all(token.kind in ("word", "letter") or token.text == "-" for token in found):
        if (value := spelled_value(" ".join(words).replace(" - ", "-"))) is not None:
            return Num(value)
    parts: list[str | Tree] = []
    at = 0
    while at < len(found):
        token = found[at]
        article = token.text in ("a", "A", "I") and at + 1 < len(found) and found[at + 1].kind == "word"
        if (
            token.kind == "word"
            or (token.kind == "letter" and (token.marked or article))
            or token.text in ("'", '"', ".", "?")
        ):
            if token.text == "'" and parts and isinstance(parts[-1], str) and at + 1 < len(found):
                parts[-1] += "'" + (found[at + 1].text if not found[at + 1].spaced else "")
                at += 1 if not found[at + 1].spaced else 0
            elif token.text == "-" or token.text.isalpha():
                parts.append(token.text)
            at += 1
            continue
        parser = Parser(found[at:])
        try:
            tree = parser.relation()
            if parser.at == 0:
                raise NotMath(token.text)
            parts.append(tree)
            at += parser.at
        except (NotMath, RecursionError, ZeroDivisionError):
            parts.append(token.text if token.kind != "group" else _flat(token.inner))
            at += 1
    return Phrase(tuple(parts))


def _flat(found: Sequence[Token]) -> str:
    return "".join(_flat(token.inner) if token.kind == "group" else token.text for token in found)


class Parser:
    """Reads trees from tokens by recursive descent. Every method raises NotMath if its part is no formula."""

    def __init__(self, found: Sequence[Token]) -> None:
        self.tokens = found
        self.at = 0
        self.bars = 0  # open absolute values, in which | closes
        self.in_set = False  # whether | begins the condition of a set
        self.reversed = False  # whether [ closes an interval ]a, b[

    @property
    def next(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else _END

    def take(self, *texts: str) -> bool:
        """Skip the next token if it has one of the texts."""
        if self.next.kind != "end" and self.next.text in texts and self.next.kind != "group":
            self.at += 1
            return True
        return False

    def _no(self, what: str) -> Tree:
        raise NotMath(f"no {what}: {self.next.text!r}")

    def expect(self, *texts: str) -> None:
        if not self.take(*texts):
            raise NotMath(f"expected {' or '.join(texts)}, got {self.next.text!r}")

    # --- answers ---

    def answer(self) -> Tree:
        """Read a whole answer."""
        tree = self.items(top=True)
        if self.at < len(self.tokens):
            raise NotMath(f"cannot read {self.next.text!r}")
        return tree

    def items(self, *, top: bool = False) -> Tree:
        """Read items up to a closing bracket or the end: one is itself, several are a list."""
        trees, head = [self.item(top=top)], "list"
        while self.next.text in _SEPARATORS and self.next.kind in ("sign", "word"):
            found = _SEPARATORS[self.next.text]
            head = found if head == "list" or found == "or" else head
            self.at += 1
            while self.next.text in _SEPARATORS and self.next.kind in ("sign", "word"):
                head = _SEPARATORS[self.next.text] if head == "list" else head
                self.at += 1
            if self.next.kind == "end" or self.next.text in (")", "]", "\\}", "…"):
                self.take("…")
                break
            trees.append(self.item(top=top))
        trees = _with_conditions(trees) if top else trees
        return trees[0] if len(trees) == 1 else Op(head, tuple(trees))

    def item(self, *, top: bool = False) -> Tree:
        """Read one item: a relation with its conditions."""
        if self.next.text in _CONDITIONS and self.next.kind == "word":
            return self._where(None)
        tree = self.relation()
        if self.next.kind == "word" and self.next.text in _CONDITIONS:
            return self._where(tree)
        if self.next.text == "∀":
            self.at += 1
            return Op("where", (tree, self.relation()))
        if self.next.text == "(" and top:
            mark = self.at
            self.at += 1
            condition = self.items()
            if not _is_condition(condition):
                self.at = mark
                raise NotMath("a bracket after a value")
            self.expect(")")
            return Op("where", (tree, condition))
        return tree

    def _where(self, tree: Tree | None) -> Tree:
        """Read a condition after for, where or if."""
        if (declared := self._declaration()) is not None:
            return Op("where", (declared,) if tree is None else (tree, declared))
        while self.next.kind == "word" and self.next.text in _CONDITIONS | {
            "all",
            "any",
            "that",
            "every",
            "some",
            "real",
        }:
            self.at += 1
        if self.next.text == "∀":
            self.at += 1
        condition = self.relation()
        if self.next.kind == "word":
            raise NotMath(self.next.text)
        return Op("where", (condition,) if tree is None else (tree, condition))

    def _declaration(self) -> Tree | None:
        """Read "where k is an integer" as k ∈ ℤ, and "for some constant c" as c ∈ ℝ; None for other conditions."""
        end, names, kind = self.at, list[Sym](), Sym("ℝ")
        while end < len(self.tokens):
            token = self.tokens[end]
            text = token.text.casefold()
            if token.kind == "letter" and not (
                text == "a" and end + 1 < len(self.tokens) and self.tokens[end + 1].kind == "word"
            ):
                parser = Parser(self.tokens[end:])
                names.append(parser.name())
                end += parser.at
                continue
            if text in ("integer", "integers", "whole"):
                kind = Sym("ℤ")
            elif text not in _DECLARING and text != ",":
                return None
            end += 1
        if not names:
            return None
        self.at = end
        return Relation((names[0] if len(names) == 1 else Op("list", tuple(names)), kind), ("∈",))

    def relation(self) -> Tree:
        first = self._left_name() or self.sets()
        if self.next.text not in RELATIONS or self.next.kind == "end":
            return self._modulus(first)
        sides, operators = [first], []
        while self.next.text in RELATIONS and self.next.kind == "sign":
            operators.append(self.next.text)
            self.at += 1
            sides.append(self._left_name() or self.sets())
        return self._modulus(Relation(tuple(sides), tuple(operators)))

    def _modulus(self, tree: Tree) -> Tree:
        """Read (mod 7) after a value or a congruence."""
        mark = self.at
        bracket = self.take("(")
        if self.next.text not in ("mod", "pmod", "modulo"):
            self.at = mark
            return tree
        self.at += 1
        modulus = self.sum()
        if bracket:
            self.expect(")")
        return Op("mod", (tree, modulus))

    def _left_name(self) -> Sym | None:
        """Read a name such as y(t) or P(A|B) before a relation; None for anything else."""
        if self.next.kind != "letter" or self.peek().kind == "end":
            return None
        mark = self.at
        try:
            name = self.name().name
        except NotMath:
            self.at = mark
            return None
        if self.next.text == "(" and not self.next.spaced:
            end = next((i for i in range(self.at, len(self.tokens)) if self.tokens[i].text == ")"), 0)
            inside = self.tokens[self.at + 1 : end]
            after = self.tokens[end + 1] if end + 1 < len(self.tokens) else _END
            if end and inside and after.text in RELATIONS and all(t.kind == "letter" or t.text in ",|" for t in inside):
                self.at = end + 1
                return Sym(f"{name}({','.join(t.text for t in inside if t.text != ',')})")
        self.at = mark
        return None

    def sets(self) -> Tree:
        tree = self.sum()
        while self.next.text in ("∪", "∩", "∖") and self.next.kind == "sign":
            head = {"∪": "cup", "∩": "cap", "∖": "minus"}[self.next.text]
            self.at += 1
            tree = Op(head, (tree, self.sum()))
        return tree

    # --- arithmetic ---

    def sum(self) -> Tree:
        terms: list[Tree] = []
        if self.next.text in ("+", "-", "±", "∓") and self.next.kind == "sign":
            sign = self.next.text
            self.at += 1
            term = self.term()
            terms.append(term if sign == "+" else _signed({"-": "neg", "±": "pm", "∓": "mp"}[sign], term))
        else:
            terms.append(self.term())
        while self.next.kind == "sign" and self.next.text in ("+", "-", "±", "∓"):
            sign = self.next.text
            self.at += 1
            if self.next.text == "…":
                self.at += 1
                terms.append(Op("dots"))
                continue
            minus = sign == "-" and isinstance(terms[0], Interval) and len(terms) == 1
            term = self.term()
            if minus and is_collection(term):
                return Op("minus", (terms[0], term))
            if sign in "±∓":
                left = terms[0] if len(terms) == 1 else Op("+", tuple(terms))
                terms = [Op("pm" if sign == "±" else "mp", (left, term))]
            else:
                terms.append(term if sign == "+" else Op("neg", (term,)))
        last = terms[-1]
        if (
            len(terms) > 1
            and isinstance(last, Quantity)
            and last.unit != "%"
            and not any(isinstance(t, Quantity) for t in terms[:-1])
        ):
            return Quantity(Op("+", (*terms[:-1], last.value)), last.unit)  # (2 + √3) cm without brackets
        return terms[0] if len(terms) == 1 else Op("+", tuple(terms))

    def term(self) -> Tree:
        tree = self.factors()
        while self.next.text in ("*", "/", ":", "per") and self.next.kind in ("sign", "word"):
            sign = "/" if self.next.text == "per" else self.next.text
            if sign == ":" and self.peek().text == "…":
                raise NotMath(":")
            if sign == ":" and (self.bars or self.in_set or not self._starts_factor(self.peek())):
                break
            self.at += 1
            if (
                sign != ":"
                and self.next.kind == "word"
                and (unit := read_unit(self.tokens, self.at)) is not None
                and sign == "/"
            ):
                self.at = unit[1]
                return (
                    Quantity(tree.value, f"{tree.unit}/{unit[0]}")
                    if isinstance(tree, Quantity)
                    else Quantity(tree, f"1/{unit[0]}")
                )
            if self.next.text == "…":
                self.at += 1
                right: Tree = Op("dots")
            else:
                right = self.factors() if self.next.text not in ("+", "-") else self.signed()
            if sign == ":":
                parts = tree.args if isinstance(tree, Op) and tree.head in ("ratio", "time") else (tree,)
                digits = self.tokens[self.at - 1].text
                is_time = len(digits) == 2 and digits.isdigit() and digits < "60" and parts[0] in _HOURS
                tree = Op("time" if is_time and (len(parts) == 1 or tree.head == "time") else "ratio", (*parts, right))
            else:
                tree = _with_unit("*" if sign == "*" else "/", tree, right)
        if self.next.kind == "word" and self.next.text == "to" and self._starts_factor(self.peek()):
            self.at += 1
            right = self.factors()
            parts = tree.args if isinstance(tree, Op) and tree.head == "ratio" else (tree,)
            tree = Op("ratio", (*parts, right))
        return self._clock(tree) if self.next.text[:1] in ("a", "p", "A", "P") else tree

    def signed(self) -> Tree:
        if self.take("-"):
            return Op("neg", (self.signed(),))
        self.take("+")
        return self.factors()

    def factors(self) -> Tree:
        """Read factors without a sign between them."""
        tree = self.power()
        while True:
            if (
                self.next.kind in ("word", "letter", "sign", "command")
                and (found := self._unit_after(tree)) is not None
            ):
                tree = found
                continue
            if not self._starts_factor(self.next):
                return tree
            if self.next.kind == "word" and self.next.text in SCALES:
                tree = _product(tree, Num(SCALES[self.next.text]))
                self.at += 1
                continue
            if self._is_times():
                self.at += 1
                tree = _product(tree, self.power())
                continue
            if self.next.text == "(" and (self._opens_condition() or self.peek().text in ("mod", "pmod")):
                return tree
            spaced = self.next.spaced
            right = self.power()
            tree = self._mixed(tree, right, spaced) or _with_unit("*", tree, right)

    def _is_times(self) -> bool:
        """Return whether an x is a sign, as in 3x10^5."""
        return (
            self.next.text in ("x", "X")
            and self.tokens[self.at - 1].kind == "number"
            and self.peek().text == "10"
            and self.peek(2).text == "^"
        )

    def _opens_condition(self) -> bool:
        r"""Return whether a bracket holds a condition such as (k \in ℤ) and not a factor."""
        depth = 0
        for index in range(self.at, len(self.tokens)):
            text = self.tokens[index].text
            depth += (text in ("(", "[")) - (text in (")", "]"))
            if depth == 0:
                return False
            if depth == 1 and text in RELATIONS and self.tokens[index].kind == "sign":
                return True
        return False

    def _mixed(self, tree: Tree, right: Tree, spaced: bool) -> Tree | None:
        """Return the mixed number 1 1/2, if the two are an integer and a fraction of two; else None."""
        if not isinstance(tree, Num) or tree.places is not None or tree.exact.denominator != 1:
            return None
        if isinstance(right, Num) and spaced and self.next.text == "/" and self.peek().kind == "number":
            self.at += 1
            right = Op("/", (right, self.primary()))
        if (
            isinstance(right, Quantity)
            and right.unit == "%"
            and (mixed := self._mixed(tree, right.value, spaced)) is not None
        ):
            return Quantity(mixed, "%")
        if isinstance(right, Op) and right.head == "/" and all(isinstance(arg, Num) for arg in right.args):
            return Op("mixed", (tree, right))
        return None

    def _unit_after(self, tree: Tree) -> Tree | None:
        if isinstance(tree, Quantity) and tree.unit != "%":
            return None
        if is_collection(tree) or isinstance(tree, Interval):
            return None
        found = read_unit(self.tokens, self.at)
        if found is None:
            return None
        unit, end = found
        if not self.next.marked and len(self.next.text) == 1 and names_in(tree):
            return None
        self.at = end
        return self._with_smaller(Quantity(tree, unit))

    def _with_smaller(self, tree: Quantity) -> Quantity:
        """Read the second part of 2 hours and 30 minutes."""
        mark = self.at
        self.take("and", ",")
        if self.next.kind == "number" and tree.unit not in ("%", "degree"):
            value = self.number()
            found = read_unit(self.tokens, self.at, marked=True) if self.at < len(self.tokens) else None
            factor = conversion(tree.unit, found[0]) if found is not None else None
            if found is not None and factor is not None and factor > 1:
                self.at = found[1]
                return Quantity(Op("+", (Op("*", (Num(factor), tree.value)), value)), found[0])
        self.at = mark
        return tree

    def _clock(self, tree: Tree) -> Tree:
        """Read am or pm after a time of day."""
        parts = tree.args if isinstance(tree, Op) and tree.head == "time" else (tree,)
        letters, end = "", self.at
        while end < len(self.tokens) and len(letters) < 2 and self.tokens[end].kind in ("letter", "word"):
            letters += self.tokens[end].text.lower()
            end += 1
            end += end < len(self.tokens) and self.tokens[end].text == "."
        values = [part.exact for part in parts if isinstance(part, Num) and part.exact.denominator == 1]
        if letters not in ("am", "pm") or len(values) != len(parts) or len(parts) > 3 or not 1 <= values[0] <= 12:
            return tree
        self.at = end
        seconds = sum(
            value * 60 ** (2 - i) for i, value in enumerate([values[0] % 12 + 12 * (letters == "pm"), *values[1:]])
        )
        return Op("clock", (Num(Fraction(seconds)),))

    def _starts_factor(self, token: Token) -> bool:
        if token.kind in ("number", "letter", "group", "environment", "command"):
            return token.text not in ("mod", "pmod", "over", "choose")
        if token.kind == "word":
            return (
                token.text in SCALES
                or token.text in ("const", "constant")
                or not token.marked
                and _is_product(token.text)
            )
        return token.kind == "sign" and (
            token.text in ("(", "\\{", "⟨", "⌊", "⌈", "√", "∠", "Δ", "∞", "∅", "$", "€")
            or (token.text == "[" and not self.reversed)
            or (token.text in ("|", "‖") and not self.bars and not self.in_set)
        )

    def power(self) -> Tree:
        tree = self.postfix(self.primary())
        if self.next.text == "^" and self.next.kind == "sign":
            self.at += 1
            tree = self._raised(tree)
            if self.next.text == "^" and self.next.kind == "sign":  # 2^3^2 is 2^(3^2)
                if isinstance(tree, Op) and tree.head == "^":
                    self.at += 1
                    tree = Op("^", (tree.args[0], self._raised(tree.args[1])))
        return self.postfix(tree)

    def _raised(self, tree: Tree) -> Tree:
        token = self.next
        inner = token.inner if token.kind == "group" else (token,)
        texts = tuple(part.text for part in inner)
        if texts in (("°",), ("o",), ("\\circ",)) or texts == ("°", "°"):
            self.at += 1
            return self._degrees(tree)
        if texts and set(texts) <= {"'", "''"}:
            self.at += 1
            return self._primed(tree, "".join(texts))
        if texts in (("T",), ("top",), ("intercal",), ("t",)) and is_collection(tree):
            self.at += 1
            return Op("transpose", (tree,))
        if texts in (("*",), ("+",), ("-",)) and (
            token.kind == "group" or self.peek().kind not in ("number", "letter")
        ):
            self.at += 1
            return Sym(f"{tree.name}^{texts[0]}") if isinstance(tree, Sym) else Op("signed", (tree, Sym(texts[0])))
        return Op("^", (tree, self.script()))

    def script(self) -> Tree:
        """Read an exponent or a subscript: a group, a signed number or one token."""
        token = self.next
        if token.kind == "group":
            self.at += 1
            return Parser(token.inner).answer()
        if token.text in ("-", "+") and token.kind == "sign":
            self.at += 1
            return Op("neg", (self.script(),)) if token.text == "-" else self.script()
        if token.text in ("(", "\\{") or token.kind in ("number", "letter", "command"):
            return self.postfix(self.primary(single=token.kind != "sign"))
        if token.text == "∞":
            self.at += 1
            return INFINITY
        raise NotMath(f"an exponent {token.text!r}")

    def _degrees(self, tree: Tree) -> Tree:
        """Read what follows a degree sign: minutes and seconds, or the C and F of temperatures."""
        if self.next.text in ("C", "F", "K") and self.next.kind == "letter":
            unit = {"C": "celsius", "F": "fahrenheit", "K": "kelvin"}[self.next.text]
            self.at += 1
            return Quantity(tree, unit)
        parts = [tree]
        while self.next.kind == "number" and len(parts) < 3:
            mark = self.at
            value = self.primary(single=True)
            raised = self.next.text == "^"
            self.at += raised
            marks = self.next.inner if self.next.kind == "group" else (self.next,)
            if not marks or any(token.text not in ("'", "''", '"') for token in marks):
                self.at = mark
                break
            self.at += 1
            while self.next.text == "'":
                self.at += 1
            parts.append(Op("/", (value, Num(Fraction(60 ** len(parts))))))
        return Quantity(tree if len(parts) == 1 else Op("+", tuple(parts)), "degree")

    def _primed(self, tree: Tree, marks: str) -> Tree:
        if isinstance(tree, Sym):
            return Sym(tree.name + marks)
        if isinstance(tree, Op) and tree.head == "call" and isinstance(tree.args[0], Sym):
            return Op("call", (Sym(tree.args[0].name + marks), *tree.args[1:]))
        raise NotMath("a prime after a value")

    def postfix(self, tree: Tree) -> Tree:
        while self.next.kind == "sign":
            if self.next.text == "!":
                self.at += 1
                double = self.next.text == "!" and not self.next.spaced
                self.at += double
                tree = Op("!!" if double else "!", (tree,))
            elif self.next.text == "%":
                self.at += 1
                tree = Quantity(tree, "%")
            elif self.next.text == "°":
                self.at += 1
                tree = self._degrees(tree)
            elif self.next.text in ("'", "''") and isinstance(tree, (Sym, Op)):
                tree = self._primed(tree, self.next.text)
                self.at += 1
            elif self.next.text in "€£¥₹$" and isinstance(tree, Num):
                tree = Quantity(tree, read_currency(self.next.text) or "")
                self.at += 1
            else:
                break
        return tree

    # --- what stands alone ---

    def primary(self, *, single: bool = False) -> Tree:
        """Read a number, a name, a bracket, a function or another construct.

        Args:
            single: whether the first token only is wanted, as after ^ and _.
        """
        token = self.next
        if token.kind == "number":
            return self.number(single=single)
        if token.kind == "letter":
            return self.name() if single else self.call()
        if token.kind == "group":
            return self.group()
        if token.kind == "word":
            return self.letters()
        if token.kind == "environment":
            self.at += 1
            return environment(token)
        if token.kind == "command":
            return self.command()
        return self.sign()

    def number(self, *, single: bool = False) -> Tree:
        token = self.next
        self.at += 1
        text = token.text
        if text.count(".") > 1 or not text.isascii():
            raise NotMath(f"a number {text}")
        if (repeating := self._repeating(text)) is not None:
            return repeating
        mantissa, _, exponent = text.partition("e")
        if abs(int(exponent or 0)) > 1000:
            raise NotMath("an exponent over 1000")
        value = Num(
            Fraction(text), len(mantissa.partition(".")[2]) - int(exponent or 0) if "." in text or exponent else None
        )
        if self.next.text == "_" and self.next.kind == "sign" and not single:
            mark = self.at
            self.at += 1
            return self._in_base(text) or self._back(mark, value)
        if self.next.kind in ("letter", "word") and not self.next.spaced and not single and text.isdigit():
            if self.next.text in ("th", "st", "nd", "rd"):
                self.at += 1
            return self._digits_in_base(text) or value
        return value

    def _back(self, mark: int, value: Tree) -> Tree:
        self.at = mark
        return value

    def _digits_in_base(self, text: str) -> Tree | None:
        """Read digits above nine, as in 3A_{16}."""
        end = self.at
        while (
            end < len(self.tokens)
            and self.tokens[end].kind in ("letter", "word", "number")
            and not self.tokens[end].spaced
        ):
            text += self.tokens[end].text
            end += 1
        if end >= len(self.tokens) or self.tokens[end].text != "_":
            return None
        mark, self.at = self.at, end + 1
        found = self._in_base(text)
        if found is None:
            self.at = mark
        return found

    def _in_base(self, text: str) -> Tree | None:
        """Read the base after an underscore; None if it is none, or the digits do not fit it."""
        token = self.next
        name = _flat(token.inner) if token.kind == "group" else token.text
        name = name.strip("() ")
        base = _BASES.get(name, int(name) if name.isdigit() else 0)
        digits = text.upper()
        if not 2 <= base <= 36 or "." in text or any(int(digit, 36) >= base for digit in digits):
            return None
        self.at += 1
        return InBase(digits, base)

    def _repeating(self, text: str) -> Tree | None:
        r"""Read the period of 0.\overline{3}, 0.(3), 0.1\dot{6} and 0.333…; None for other numbers."""
        decimals = text.partition(".")[2]
        mark = self.at
        if "." not in text and self.next.text == "." and self.peek().text in ("overline", "dot", "("):
            self.at += 1
        elif "." not in text:
            return None
        period = ""
        if self.next.text in ("overline", "dot") and self.peek().kind in ("group", "number"):
            inner = self.peek()
            period = _flat(inner.inner) if inner.kind == "group" else inner.text
            self.at += 2
        elif (
            self.next.text == "(" and not self.next.spaced and self.peek().kind == "number" and self.peek(2).text == ")"
        ):
            period = self.peek().text
            self.at += 3
        elif self.next.text == "…" and len(decimals) >= 3:
            for size in range(1, len(decimals) // 2 + 1):
                if len(decimals) >= max(3, 2 * size) and decimals.endswith(decimals[-size:] * (2 if size > 1 else 3)):
                    period, decimals = decimals[-size:], decimals
                    self.at += 1
                    break
        if not period.isdigit():
            self.at = mark
            return None
        head = text.partition(".")[0] or "0"
        scale = 10 ** len(decimals)
        return Num(Fraction(int(head + decimals), scale) + Fraction(int(period), (10 ** len(period) - 1) * scale))

    def name(self) -> Sym:
        """Read a letter with its subscript and primes."""
        token = self.next
        if token.kind != "letter":
            raise NotMath(f"no name {token.text!r}")
        self.at += 1
        name = token.text
        while True:
            if self.next.text == "_" and self.next.kind == "sign" and self.peek().kind != "end":
                self.at += 1
                inner = self.next
                self.at += 1
                text = _flat(inner.inner) if inner.kind == "group" else inner.text
                if inner.kind == "sign" and inner.text not in "*+-∞":
                    raise NotMath(f"a subscript {inner.text}")
                name += f"_{text}"
            elif self.next.text in ("'", "''") and self.next.kind == "sign":
                name += self.next.text
                self.at += 1
            else:
                return Sym(name)

    def call(self) -> Tree:
        """Read a name, or a function of it as in f(x+1), or a coefficient such as C_6^3."""
        first = self.next.text
        if first in ("C", "A", "P") and self.peek().text in ("_", "^") and (found := self._chosen(first)) is not None:
            return found
        name = self.name()
        base = name.name.rstrip("'")
        if (
            self.next.text == "^"
            and self.peek().kind == "group"
            and _flat(self.peek().inner) == "-1"
            and base in _CALLED
        ):
            self.at += 2
            name = Sym(f"{name.name}^-1")
        bracket = self.next.text
        if base in _CALLED and bracket in ("(", "[") and not self.next.spaced:
            self.at += 1
            self.bars += 1
            arguments = self.items()
            if self.take("|"):
                arguments = Op("given", (arguments, self.items()))
            self.bars -= 1
            self.expect(")", "]")
            given = arguments.args if isinstance(arguments, Op) and arguments.head == "list" else (arguments,)
            return Op("call", (name, *given))
        return name

    def _chosen(self, letter: str) -> Tree | None:
        """Read C_6^3, C^3_6 and A_5^2; None for other text."""
        mark = self.at
        self.at += 1
        scripts: dict[str, Tree] = {}
        try:
            for _ in range(2):
                if self.next.text not in ("_", "^") or self.next.text in scripts:
                    raise NotMath(letter)
                sign = self.next.text
                self.at += 1
                scripts[sign] = self.script()
        except NotMath:
            self.at = mark
            return None
        if isinstance(scripts["^"], Phrase) or isinstance(scripts["_"], Phrase):
            self.at = mark
            return None
        return Op("binom" if letter == "C" else "permutations", (scripts["_"], scripts["^"]))

    def letters(self) -> Tree:
        """Read a word of plain text as a product of letters."""
        token = self.next
        if token.text in ("const", "constant"):
            self.at += 1
            return Sym("C")
        if token.marked or not _is_product(token.text):
            raise NotMath(f"a word {token.text!r}")
        if self.peek().text == "_" and all(c in "ABCDEF" for c in token.text.upper()):
            mark, self.at = self.at, self.at + 2
            if (written := self._in_base(token.text)) is not None:
                return written
            self.at = mark
        parser = Parser([*(Token("letter", c, token.spaced) for c in token.text), *self.tokens[self.at + 1 :]])
        tree: Tree = parser.power()
        for _ in range(len(token.text) - 1):
            if parser.at >= len(token.text):
                break
            tree = _product(tree, parser.power())
        self.at += 1 + parser.at - len(token.text)
        return tree

    def group(self) -> Tree:
        token = self.next
        self.at += 1
        if not token.inner:
            if self.next.text in ("^", "_"):  # {}_{10}C_5 and {}^{10}C_5
                return self._prefixed()
            return self.power()
        for name, head in (("over", "/"), ("choose", "binom")):
            index = next(
                (i for i, each in enumerate(token.inner) if each.text == name and each.kind == "command"), None
            )
            if index is not None:
                sides = token.inner[:index], token.inner[index + 1 :]
                return Op(head, tuple(Parser(side).answer() for side in sides))
        if all(each.kind == "letter" for each in token.inner[:1]) and self.next.text in ("_", "'"):
            inner = token.inner if len(token.inner) == 1 else ()
            if inner:
                rest = Parser([inner[0], *self.tokens[self.at :]])
                tree = rest.call()
                self.at += rest.at - 1
                return tree
        tree = Parser(token.inner).answer()
        if self.next.text == "_" and self.next.kind == "sign" and isinstance(tree, Sym):
            self.at += 1
            inner_token = self.next
            self.at += 1
            return Sym(f"{tree.name}_{_flat(inner_token.inner) if inner_token.kind == 'group' else inner_token.text}")
        if isinstance(tree, Op) and tree.head in ("list", "and", "or"):
            return Op("set", tree.args)
        return tree

    def _prefixed(self) -> Tree:
        """Read {}_{10}C_5 and {}^{10}C_5 after the empty group."""
        self.at += 1
        top = self.script()
        letter = self.next.text
        if letter not in ("C", "P") or self.peek().text != "_":
            raise NotMath("a script before a value")
        self.at += 2
        return Op("binom" if letter == "C" else "permutations", (top, self.script()))

    def argument(self) -> Tree:
        """Read the argument of a command: a group, a digit or one token."""
        token = self.next
        if token.kind == "group":
            self.at += 1
            return Parser(token.inner).answer()
        if token.kind == "number" and len(token.text) > 1 and token.text.isdigit():
            self.tokens = [
                *self.tokens[: self.at],
                Token("number", token.text[0]),
                Token("number", token.text[1:]),
                *self.tokens[self.at + 1 :],
            ]
            self.at += 1
            return Num(Fraction(token.text[0]))
        if token.text == "-":
            self.at += 1
            return Op("neg", (self.argument(),))
        return self.primary(single=True)

    def command(self) -> Tree:
        name = self.next.text
        if name in FUNCTIONS:
            return self.function()
        if name in _SETS:
            self.at += 1
            tree = _SETS[name]
            if self.next.text in ("^", "_"):
                return self._signed_set(tree)
            return tree
        self.at += 1
        if name == "frac":
            return self.fraction()
        if name == "sqrt":
            return self.root()
        if name == "binom":
            return Op("binom", (self.argument(), self.argument()))
        if name in ("int", "iint", "oint"):
            return self.integral()
        if name in ("sum", "prod"):
            return self.series(name)
        if name == "lim":
            return self.limit()
        if name in ("vec", "overline", "hat", "dot", "ddot", "tilde", "widetilde", "overset", "overbrace"):
            return self.decorated(name)
        if name in ("partial", "nabla"):
            return Sym(name)
        if name == "pmod":
            raise NotMath(name)
        raise NotMath(f"a command {name}")

    def _signed_set(self, tree: Tree) -> Tree:
        """Read ℝ^+, ℤ_{>0}, ℕ^*, ℝ^2."""
        marks = ""
        while self.next.text in ("^", "_"):
            self.at += 1
            marks += _flat(self.next.inner) if self.next.kind == "group" else self.next.text
            self.at += 1
        if tree is REALS:
            if marks in ("+", ">0", "+*", "*+"):
                return Interval(ZERO, INFINITY, (False, False))
            if marks in ("-", "<0"):
                return Interval(MINUS_INFINITY, ZERO, (False, False))
            if marks in ("≥0", "0+"):
                return Interval(ZERO, INFINITY, (True, False))
            return Op("minus", (REALS, Op("set", (ZERO,)))) if marks in ("*", "×") else Sym(f"ℝ^{marks}")
        name = tree.name if isinstance(tree, Sym) else ""
        if marks in ("+", ">0", "*", "+*", "*+", "≥1") and name in ("ℤ", "ℕ"):
            return Sym("ℤ+") if marks != "*" or name == "ℕ" else Sym("ℤ*")
        return Sym("ℕ") if marks in ("≥0", "0") and name == "ℤ" else Sym(f"{name}^{marks}")

    def fraction(self) -> Tree:
        if (name := self._derivative()) is not None:
            return name
        return Op("/", (self.argument(), self.argument()))

    def _derivative(self) -> Tree | None:
        r"""Read \frac{dy}{dx} as a name, and \frac{d}{dx} as an operator; None for other fractions."""
        top, bottom = self.next, self.peek()
        if top.kind != "group" or bottom.kind != "group":
            return None
        over, under = _flat(top.inner), _flat(bottom.inner)
        marks = {"d", "partial"}
        if not top.inner or not bottom.inner or top.inner[0].text[:7] not in marks and not over.startswith("d"):
            return None
        if not under.startswith(("d", "partial")) or len(under) < 2:
            return None
        over, under = over.replace("partial", "d"), under.replace("partial", "d")
        names = over[1:].lstrip("^23{}"), under[1:].rstrip("^23{}")
        if len(under) > 1 and len(names[1]) == 1 and (len(names[0]) <= 1 or not names[0][0].isdigit()):
            if over in ("d", "d^2", "d^3"):
                self.at += 2
                order = 1 if over == "d" else int(over[-1])
                tree = self.factors()
                for _ in range(order):
                    tree = Op("diff", (tree, Sym(names[1])))
                return tree
            if len(names[0]) == 1 or "_" in names[0]:
                self.at += 2
                return Sym(f"{over}/{under}")
        return None

    def root(self) -> Tree:
        index: Tree = Num(Fraction(2))
        if self.next.text == "[":
            self.at += 1
            index = self.sum()
            self.expect("]")
        if self.next.kind == "number" and self.next.spaced:
            return Op("sqrt", (self.number(single=True), index))
        return Op("sqrt", (self.primary() if self.next.text == "(" else self.argument(), index))

    def function(self) -> Tree:
        """Read a function such as \\sin^2 x or \\log_2(8) with its argument."""
        name = self.next.text
        self.at += 1
        power: Tree | None = None
        base: Tree | None = None
        while self.next.text in ("^", "_") and self.next.kind == "sign":
            sign = self.next.text
            self.at += 1
            if sign == "_" and self.next.kind == "number" and len(self.next.text) > 1 and self.next.text.isdigit():
                base = self.argument()
            elif sign == "_":
                base = self.script()
            else:
                power = self.script()
        if power == Op("neg", (ONE,)) and f"arc{name}" in FUNCTIONS:
            name, power = f"arc{name}", None
        arguments = self._arguments(name)
        if name == "lg":
            name, base = "log", Num(Fraction(10))
        if name == "log" and base is not None:
            arguments = (*arguments, base)
        elif base is not None:
            name = f"{name}_{base}"
        tree: Tree = Op(name, arguments)
        return tree if power is None else Op("^", (tree, power))

    def _arguments(self, name: str) -> tuple[Tree, ...]:
        self.take("*")
        if self.next.text in ("(", "[") or (self.next.text == "\\{" and name in MANY):
            opening = self.next.text
            self.at += 1
            bars, in_set = self.bars, self.in_set
            self.bars, self.in_set = 0, False
            inside = self.items()
            self.bars, self.in_set = bars, in_set
            self.expect(")" if opening == "(" else "]" if opening == "[" else "\\}")
            given = inside.args if isinstance(inside, Op) and inside.head == "list" else (inside,)
            return given
        negative = self.take("-")
        tree = self.power()
        while self._continues_argument():
            tree = _product(tree, self.power())
        if (
            self.next.text == "/"
            and isinstance(tree, (Num, Sym))
            and self.peek().kind == "number"
            and self.peek(2).kind == "end"
        ):
            self.at += 1
            tree = Op("/", (tree, self.power()))
        return (Op("neg", (tree,)) if negative else tree,)

    def _continues_argument(self) -> bool:
        """Return whether the next factor belongs to the argument of a function without brackets, as in \\sin 2x."""
        token = self.next
        if token.kind == "letter":
            return not token.marked
        return token.kind == "number" and not token.spaced

    def integral(self) -> Tree:
        low, high = self._limits()
        found = self._differential()
        if found is None:
            raise NotMath("an integral without dx")
        end, variable = found
        inside = [token for token in self.tokens[self.at : end]]
        tree = Parser(inside).answer() if inside else ONE
        self.at = end + 2
        args = (tree, variable) if low is None or high is None else (tree, variable, low, high)
        return Op("int", args)

    def _limits(self) -> tuple[Tree | None, Tree | None]:
        low: Tree | None = None
        high: Tree | None = None
        while self.next.text in ("^", "_") and self.next.kind == "sign":
            sign = self.next.text
            self.at += 1
            if sign == "_":
                low = self.script()
            else:
                high = self.script()
        return low, high

    def _differential(self) -> tuple[int, Sym] | None:
        """Return the index of the d of dx and its variable."""
        for index in range(self.at, len(self.tokens)):
            first = self.tokens[index]
            if first.text == "d" and index + 1 < len(self.tokens) and self.tokens[index + 1].kind == "letter":
                return index, Sym(self.tokens[index + 1].text)
            if first.kind == "word" and len(first.text) > 1 and first.text[-2] == "d" and _is_product(first.text):
                letters = [Token("letter", c) for c in first.text]
                self.tokens = [*self.tokens[:index], *letters, *self.tokens[index + 1 :]]
                return index + len(letters) - 2, Sym(first.text[-1])
            if first.kind == "group" and index and self.tokens[index - 1].text == "frac":
                inner = first.inner
                for at, token in enumerate(inner):
                    if token.text == "d" and at + 1 < len(inner) and inner[at + 1].kind == "letter":
                        rest = (*inner[:at], *inner[at + 2 :]) or (Token("number", "1"),)
                        variable = inner[at + 1]
                    elif token.kind == "word" and token.text[-2:-1] == "d":
                        rest = (*inner[:at], *inner[at + 1 :]) or (Token("number", "1"),)
                        variable = Token("letter", token.text[-1])
                    else:
                        continue
                    end = index + 2
                    tokens_ = [
                        *self.tokens[:index],
                        Token("group", "{", inner=tuple(rest)),
                        *self.tokens[index + 1 : end],
                    ]
                    self.tokens = [*tokens_, Token("letter", "d"), variable, *self.tokens[end:]]
                    return end, Sym(variable.text)
        return None

    def series(self, head: str) -> Tree:
        low, high = self._limits()
        if (
            not isinstance(low, Relation)
            or low.operators != ("=",)
            or high is None
            or not isinstance(low.sides[0], Sym)
        ):
            raise NotMath(f"a {head} without limits")
        term = self.factors()
        while self.next.text in ("*", "/"):
            sign = self.next.text
            self.at += 1
            term = Op(sign, (term, self.factors()))
        index = low.sides[0]
        if index.name in ("i", "e"):  # no constants here
            term, index = substituted(term, {index.name: Sym(f"{index.name}_")}), Sym(f"{index.name}_")
        return Op(head, (term, index, low.sides[1], high))

    def limit(self) -> Tree:
        low, _ = self._limits_of_limit()
        variable, point, side = low
        term = self.term()
        return Op("lim", (term, variable, point, Sym(side)))

    def _limits_of_limit(self) -> tuple[tuple[Sym, Tree, str], None]:
        if not self.take("_") or self.next.kind != "group":
            raise NotMath("a limit without a point")
        inner = list(self.next.inner)
        self.at += 1
        side = "+-"
        if len(inner) > 1 and inner[-2].text == "^":
            mark = _flat(inner[-1].inner) if inner[-1].kind == "group" else inner[-1].text
            if mark in "+-":
                side, inner = mark, inner[:-2]
        elif inner and inner[-1].text in ("+", "-"):
            side, inner = inner[-1].text, inner[:-1]
        relation = Parser(inner).relation()
        if not isinstance(relation, Relation) or relation.operators != ("→",) or not isinstance(relation.sides[0], Sym):
            raise NotMath("a limit without a point")
        return (relation.sides[0], relation.sides[1], side), None

    def decorated(self, name: str) -> Tree:
        token = self.next
        inner = token.inner if token.kind == "group" else (token,)
        self.at += 1
        text = _flat(inner)
        if name == "overline" and any(each.kind not in ("letter", "word") for each in inner):
            return Op("conjugate", (Parser(inner).answer(),))
        if not text or any(each.kind not in ("letter", "word") for each in inner):
            raise NotMath(f"a {name} of {text}")
        if name == "hat" or (name == "vec" and text in ("i", "j", "k")):
            text = {"\\imath": "i", "x": "x"}.get(text, text)
        rest = [Token("letter", f"\\{name}{{{text}}}"), *self.tokens[self.at :]]
        parser = Parser(rest)
        sym = parser.name()
        self.at += parser.at - 1
        return sym

    def sign(self) -> Tree:
        text = self.next.text
        if self.next.kind == "end":
            raise NotMath("the end")
        if text in ("$", "€", "£", "¥", "₹"):
            self.at += 1
            negative = self.take("-")
            value = self.factors() if self.next.kind in ("number", "command") else self._no("an amount")
            return Quantity(Op("neg", (value,)) if negative else value, read_currency(text) or text)
        self.at += 1
        if text == "∞":
            return INFINITY
        if text == "∅":
            return EMPTY
        if text == "√":
            return Op("sqrt", (self.primary(), Num(Fraction(2))))
        if text in ("∠", "Δ"):
            return self.figure(text)
        if text in ("(", "[", "]", "⟨"):
            return self.bracket(text)
        if text == "\\{":
            return self.set()
        if text in ("⌊", "⌈"):
            tree = self.sum()
            self.expect("⌋" if text == "⌊" else "⌉")
            return Op("floor" if text == "⌊" else "ceil", (tree,))
        if text in ("|", "‖"):
            in_set, self.in_set = self.in_set, False
            self.bars += 1
            tree = self.sum()
            self.bars -= 1
            self.in_set = in_set
            self.expect(text)
            return Op("abs", (tree,))
        if text in ("+", "-"):
            return self.signed() if text == "+" else Op("neg", (self.power(),))
        if text == "…":
            return Op("dots")
        if text == "." and self.next.kind == "number":
            raise NotMath("a full stop")
        raise NotMath(f"a sign {text!r}")

    def figure(self, sign: str) -> Tree:
        """Read ∠ABC and ΔABC as a name."""
        letters = ""
        if self.next.kind == "group":
            letters = _flat(self.next.inner)
            self.at += 1
        while self.next.kind in ("letter", "word") and self.next.text.isalpha() and self.next.text.isupper():
            letters += self.next.text
            self.at += 1
        if not letters:
            if self.next.kind == "number" and sign == "∠":
                letters = self.next.text
                self.at += 1
            elif sign == "Δ" and self.next.kind == "letter":
                return Sym(f"Δ{self.name().name}")
            elif sign == "Δ":
                return Sym("Δ")
            elif self.next.kind == "letter":
                letters = self.name().name
        if not letters:
            raise NotMath(sign)
        return Sym(f"{sign}{letters}")

    def bracket(self, opening: str) -> Tree:
        bars, self.bars = self.bars, 0
        outside, self.in_set, self.reversed = (self.in_set, self.reversed), False, opening == "]"
        inside = self.items()
        self.bars, (self.in_set, self.reversed) = bars, outside
        closing = self.next.text
        if opening == "⟨":
            self.expect("⟩")
        elif opening == "]":
            self.expect("[", "]")
        elif opening == "(":
            self.expect(")", "]")
        else:
            self.expect("]", ")", "[")
        items = inside.args if isinstance(inside, Op) and inside.head in ("list", "and") else (inside,)
        if len(items) == 1:
            if opening + closing not in ("()", "[]"):
                raise NotMath("mismatched brackets")
            if (
                opening == "("
                and self.next.text == "_"
                and isinstance(items[0], Num)
                and items[0].exact.denominator == 1
            ):
                self.at += 1
                return self._in_base(str(items[0].exact)) or self._no("base")
            return items[0]
        if opening + closing == "[]" and all(isinstance(item, (Interval, Op)) and _is_row(item) for item in items):
            return Op("matrix", tuple(_row(item) for item in items))
        if (
            self.next.text == "^"
            and len(items) == 2
            and opening + closing == "[]"
            and _flat([self.peek()]).strip("{}") in ("T", "top")
        ):
            return Op("tuple", items)
        if len(items) == 2 and (opening + closing != "()" or any(_is_infinite(item) for item in items)):
            if opening == "⟨":
                return Op("tuple", items)
            closed = opening == "[", closing == "]"
            for index, item in enumerate(items):
                if _is_infinite(item) and (closed[index] or (item == INFINITY) is (index == 0)):
                    raise NotMath("an interval closed at infinity")
            return Interval(items[0], items[1], closed)
        if opening + closing not in ("()", "[]", "⟨⟩"):
            raise NotMath("mismatched brackets")
        return Op("tuple", items)

    def set(self) -> Tree:
        if self.take("\\}"):
            return EMPTY
        if self.next.kind == "environment" and self.peek().text != "\\}":
            token = self.next
            self.at += 1
            return environment(token, cases=True)
        outside, self.in_set = self.in_set, True
        first = self.items()
        self.in_set = outside
        if self.take("|", ":"):
            condition = self.items()
            self.expect("\\}")
            return Op("builder", (first, condition))
        self.expect("\\}")
        items = first.args if isinstance(first, Op) and first.head in ("list", "and", "or") else (first,)
        return Op("set", items)


def environment(token: Token, *, cases: bool = False) -> Tree:
    name = token.text
    rows = [[cell for cell in row] for row in token.rows]
    if cases or name in ("cases", "dcases", "rcases", "array", "aligned", "align", "gathered", "split", "eqnarray"):
        if name == "array" and not cases:
            return Op("matrix", tuple(Op("tuple", tuple(parse_tokens(cell) for cell in row)) for row in rows))
        if (
            all(len(row) == 2 and row[1] for row in rows)
            and cases | (name in ("cases", "dcases", "rcases"))
            and not any(cell[1] and cell[1][0].text in RELATIONS for cell in rows)
        ):
            return Op("cases", tuple(Op("tuple", (parse_tokens(row[0]), _condition(row[1]))) for row in rows))
        lines = [parse_tokens([token for cell in row for token in cell]) for row in rows]
        return lines[0] if len(lines) == 1 else Op("and", tuple(lines))
    if not name.removesuffix("*").endswith("matrix"):
        raise NotMath(f"an environment {name}")
    matrix = Op("matrix", tuple(Op("tuple", tuple(parse_tokens(cell) for cell in row)) for row in rows))
    return Op("det", (matrix,)) if name[0] == "v" else matrix


def _condition(found: Sequence[Token]) -> Tree:
    start = 0
    while start < len(found) and found[start].kind == "word" and found[start].text in _CONDITIONS:
        start += 1
    return parse_tokens(found[start:])


def _with_conditions(trees: list[Tree]) -> list[Tree]:
    """Join conditions in a list, such as x ≠ 2 and k ∈ ℤ, to the value before them."""
    found: list[Tree] = []
    for tree in trees:
        bare = isinstance(tree, Op) and tree.head == "where" and len(tree.args) == 1
        if found and bare:
            found[-1] = Op("where", (found[-1], *tree.args))  # type: ignore[union-attr]
        elif found and _is_domain(tree, found[-1]):
            found[-1] = Op("where", (found[-1], tree))
        else:
            found.append(tree)
    return found


def _is_condition(tree: Tree) -> bool:
    if isinstance(tree, Op) and tree.head in ("list", "and"):
        return all(map(_is_condition, tree.args))
    return isinstance(tree, Relation) and (tree.operators[0] != "=" or len(names_in(tree)) == 1)


def _is_domain(tree: Tree, before: Tree) -> bool:
    r"""Return whether an item such as k \in ℤ only says where the item before it holds."""
    if not isinstance(tree, Relation) or not set(tree.operators) <= {"∈", "≠", "≤", "≥", "<", ">"}:
        return False
    if isinstance(before, Relation) and not set(before.operators) <= {"=", "≡", "≈"}:
        return False
    return tree.operators[0] in ("∈", "≠") or not isinstance(before, (Num, Interval))


def _product(left: Tree, right: Tree) -> Tree:
    factors = left.args if isinstance(left, Op) and left.head == "*" else (left,)
    return Op("*", (*factors, right))


def _with_unit(head: str, left: Tree, right: Tree) -> Tree:
    """Return a product or quotient; the unit after its last factor is that of the whole, as in 3/4 inch."""
    if isinstance(right, Quantity) and not isinstance(left, Quantity):
        return Quantity(_with_unit(head, left, right.value), right.unit)
    return _product(left, right) if head == "*" else Op("/", (left, right))


def _signed(head: str, tree: Tree) -> Tree:
    return Quantity(Op(head, (tree.value,)), tree.unit) if isinstance(tree, Quantity) else Op(head, (tree,))


def _is_infinite(tree: Tree) -> bool:
    return tree in (INFINITY, MINUS_INFINITY)


def _is_row(tree: Tree) -> bool:
    return isinstance(tree, Interval) and tree.closed == (True, True) or (isinstance(tree, Op) and tree.head == "tuple")


def _row(tree: Tree) -> Tree:
    return Op("tuple", (tree.low, tree.high)) if isinstance(tree, Interval) else tree


MONTHS = frozenset("January February March April May June July August September October November December".split())  # noqa: SIM905
_NOT_PRODUCTS = frozenset(
    "or and is in no of to by at on if so as an we it he up be do my us go the for not all one two six ten per mod red yes odd any day old men how who you can cm mm km kg mg ml ft mi oz lb hr min sec deg sum dne pm am".split()
)  # noqa: SIM905


def _is_product(word: str) -> bool:
    """Return whether letters of plain text are a product of variables, such as xy and ABC, and not a word."""
    if not word.isascii() or word.lower() in _NOT_PRODUCTS or len(word) > 4 or (len(word) > 2 and word.istitle()):
        return False
    if word.isupper():
        return True
    return len(word) <= 3 or not set(word) & set("aeiouy")
