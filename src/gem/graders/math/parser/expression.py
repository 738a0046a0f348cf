"""The grammar of formulas, read by recursive descent, and of words with formulas between them.

From loose to tight: items of an answer (, ; and or), conditions (where, for, if), relations (= < ∈ ≡), sets (∪ ∩ ∖),
sums, products (also without a sign), powers, postfixes (! % ° '), and what stands alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction

from gem.graders.math.lexer import Token
from gem.graders.math.parser import atoms, names
from gem.graders.math.parser.constructs import command, environment
from gem.graders.math.parser.cursor import Cursor
from gem.graders.math.parser.vocabulary import (
    CONDITIONS,
    DECLARING,
    END,
    HOURS,
    RELATIONS,
    SEPARATORS,
    NotMath,
    flat,
    is_condition,
    is_product,
    negated,
    product,
    with_conditions,
    with_unit,
)
from gem.graders.math.tree import (
    INFINITY,
    Interval,
    Num,
    Op,
    Quantity,
    Relation,
    Sym,
    Tree,
    is_collection,
    is_op,
    joined,
    names_in,
)
from gem.graders.math.units import CURRENCY_SIGNS, SCALES, read_unit

_SET_OPERATORS = {"∪": "cup", "U": "cup", "∩": "cap", "∖": "minus"}
_SIGNS = {"+": "+", "-": "neg", "±": "pm", "∓": "mp"}


class Formulas(Cursor, ABC):
    """Reads trees from tokens by recursive descent. Every method raises NotMath if its part is no formula."""

    def __init__(self, found: Sequence[Token]) -> None:
        super().__init__(found)
        self.bars = 0  # open absolute values, in which | closes
        self.in_set = False  # whether | begins the condition of a set
        self.reversed = False  # whether [ closes an interval ]a, b[

    def fresh(self, found: Sequence[Token]) -> Formulas:
        """Return a parser of other tokens."""
        return type(self)(found)

    def inside(self, found: Sequence[Token]) -> Tree:
        """Parse other tokens, such as those of a group."""
        return self.fresh(found).answer()

    @abstractmethod
    def cell(self, found: Sequence[Token]) -> Tree:
        """Parse the tokens of a cell or of another part, which may be words."""

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
        while separator := self.take(*SEPARATORS):
            while separator:
                found = SEPARATORS[separator]
                head = found if head == "list" or found == "or" else head
                separator = self.take(*SEPARATORS)
            if self.take("…") or self.next.text in (END.text, ")", "]", "\\}"):
                break
            trees.append(self.item(top=top))
        return joined(head, with_conditions(trees) if top else trees)

    def item(self, *, top: bool = False) -> Tree:
        """Read one item: a relation with its conditions."""
        if self.at_word(CONDITIONS):
            return self._where(None)
        is_declared = top and self.next.kind == "letter" and self.at_word(DECLARING - {"and"}, 1)
        if is_declared and (declared := names.declaration(self)):
            return Op("where", (declared,))
        tree = self.relation()
        if isinstance(tree, Relation):
            self.take("integer", "integers")
        if self.at_word(CONDITIONS):
            return self._where(tree)
        if self.take("∀"):
            return Op("where", (tree, self.relation()))
        if top and self.take("("):
            condition = self.items()
            if not is_condition(condition):
                raise NotMath("a bracket after a value")
            self.expect(")")
            return Op("where", (tree, condition))
        return tree

    def _where(self, tree: Tree | None) -> Tree:
        """Read a condition after for, where or if."""
        if (condition := names.declaration(self)) is None:
            while self.at_word(DECLARING):
                self.at += 1
            self.take("∀")
            condition = self.relation()
            if self.next.kind == "word":
                raise NotMath(self.next.text)
        return Op("where", (condition,) if tree is None else (tree, condition))

    def relation(self) -> Tree:
        first = names.left_name(self) or self.sets()
        if self.next.text in ("mod", "pmod") and is_op(first := self._modulus(first), "mod") and self.take("="):
            return Relation((first, self.sets()), ("=",))  # 17 mod 5 = 2
        if self._is_membership() and isinstance(first, Sym):
            self.at += 1
            return Relation((first, self.sets()), ("∈",))
        sides, operators = [first], list[str]()
        while operator := self.take(*RELATIONS):
            operators.append(operator)
            sides.append(names.left_name(self) or self.sets())
        return self._modulus(Relation(tuple(sides), tuple(operators)) if operators else first)

    def _is_membership(self) -> bool:
        """Return whether the word in stands before a set, and not for inches."""
        return self.next.text == "in" and self.peek().text in ("[", "(", "\\{")

    def _modulus(self, tree: Tree) -> Tree:
        """Read (mod 7) after a value or a congruence."""
        mark = self.at
        bracket = self.take("(")
        if not self.take("mod", "pmod", "modulo"):
            self.at = mark
            return tree
        modulus = self.sum()
        if bracket:
            self.expect(")")
        return Op("mod", (tree, modulus))

    def sets(self) -> Tree:
        tree = self.sum()
        while self.next.text in _SET_OPERATORS and (self.next.kind == "sign" or is_collection(tree)):
            tree = Op(_SET_OPERATORS[self.pop().text], (tree, self.sum()))
        return tree

    # --- arithmetic ---

    def sum(self) -> Tree:
        sign = self.take(*_SIGNS)
        terms = [self.term() if sign in ("", "+") else negated(_SIGNS[sign], self.term())]
        while sign := self.take(*_SIGNS):
            if self.take("…"):
                terms.append(Op("dots"))
                continue
            term = self.term()
            if sign == "-" and len(terms) == 1 and isinstance(terms[0], Interval) and is_collection(term):
                return Op("minus", (terms[0], term))
            if sign in "±∓":
                terms = [Op(_SIGNS[sign], (joined("+", terms), term))]
            else:
                terms.append(term if sign == "+" else Op("neg", (term,)))
        *others, last = terms
        if (
            others
            and isinstance(last, Quantity)
            and last.unit != "%"
            and not any(isinstance(term, Quantity) for term in others)
        ):
            return Quantity(Op("+", (*others, last.value)), last.unit)  # (2 + √3) cm without brackets
        return joined("+", terms)

    def term(self) -> Tree:
        tree = self.factors()
        while self.next.text in ("*", "/", ":", "per"):
            if self.next.text == ":":
                if self.peek().text == "…":
                    raise NotMath(":")
                if self.bars or self.in_set or not self._starts_factor(self.peek()):
                    break
            sign = self.pop().text
            over = sign in ("/", "per") and self.next.kind == "word"
            if over and (unit := read_unit(self.tokens, self.at)) is not None:
                self.at = unit[1]
                value, before = (tree.value, tree.unit) if isinstance(tree, Quantity) else (tree, "1")
                return Quantity(value, f"{before}/{unit[0]}")
            right = Op("dots") if self.take("…") else self.signed()
            tree = self._ratio(tree, right) if sign == ":" else with_unit("*" if sign == "*" else "/", tree, right)
        if self.at_word(("to",)) and self._starts_factor(self.peek()):
            self.at += 1
            tree = Op("ratio", (*(tree.args if is_op(tree, "ratio") else (tree,)), self.factors()))
        return names.clock(self, tree) if self.next.text[:1] in ("a", "p", "A", "P") else tree

    def _ratio(self, tree: Tree, right: Tree) -> Tree:
        """Return 2:3 as a ratio, and 2:30 as a time."""
        parts = tree.args if is_op(tree, "ratio", "time") else (tree,)
        digits = self.peek(-1).text
        is_time = len(digits) == 2 and digits.isdecimal() and digits < "60" and parts[0] in HOURS
        return Op("time" if is_time and (len(parts) == 1 or is_op(tree, "time")) else "ratio", (*parts, right))

    def signed(self) -> Tree:
        if self.take("-"):
            return Op("neg", (self.signed(),))
        self.take("+")
        return self.factors()

    def factors(self) -> Tree:
        """Read factors without a sign between them."""
        tree = self.power()
        while True:
            if (found := self._unit_after(tree)) is not None:
                tree = found
            elif power := self.take("squared", "cubed"):
                tree = Op("^", (tree, Num(Fraction(2 if power == "squared" else 3))))
            elif not self._starts_factor(self.next) or (self.next.text == "U" and is_collection(tree)):
                return tree
            elif self.at_word(SCALES):
                tree = product(tree, Num(SCALES[self.pop().text]))
            elif isinstance(tree, Num) and names.half_of_day(self):
                return tree
            elif self._is_times():
                self.at += 1
                tree = product(tree, self.power())
            elif self.next.text == "(" and (self._opens_condition() or self.peek().text in ("mod", "pmod")):
                return tree
            else:
                spaced = self.next.spaced
                right = self.power()
                tree = self._mixed(tree, right, spaced) or with_unit("*", tree, right)

    def _is_times(self) -> bool:
        """Return whether an x is a sign, as in 3x10^5."""
        texts = [self.next.text.lower(), self.peek().text, self.peek(2).text]
        return texts == ["x", "10", "^"] and self.peek(-1).kind == "number"

    def _opens_condition(self) -> bool:
        r"""Return whether a bracket holds a condition such as (k \in ℤ) and not a factor."""
        depth = 0
        for token in self.tokens[self.at :]:
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
            if depth == 0:
                return False
            if depth == 1 and token.text in RELATIONS:
                return True
        return False

    def _mixed(self, tree: Tree, right: Tree, spaced: bool) -> Tree | None:
        """Return the mixed number 1 1/2, if the two are an integer and a fraction of two; else None."""
        if not isinstance(tree, Num) or tree.places is not None or tree.exact.denominator != 1:
            return None
        if isinstance(right, Num) and spaced and self.next.text == "/" and self.peek().kind == "number":
            self.at += 1
            right = Op("/", (right, self.primary()))
        if isinstance(right, Quantity) and right.unit == "%":
            mixed = self._mixed(tree, right.value, spaced)
            return None if mixed is None else Quantity(mixed, "%")
        if is_op(right, "/") and all(isinstance(arg, Num) for arg in right.args):
            return Op("mixed", (tree, right))
        return None

    def _unit_after(self, tree: Tree) -> Tree | None:
        if self.next.kind not in ("word", "letter", "sign", "command") or self._is_membership():
            return None
        if (isinstance(tree, Quantity) and tree.unit != "%") or is_collection(tree):
            return None
        found = read_unit(self.tokens, self.at)
        if found is None and self.next.text == "h" and self.peek().kind == "number":  # 2 h 30 min
            found = "h", self.at + 1
        if found is None:
            return None
        if not self.next.marked and names_in(tree) and (len(self.next.text) == 1 or is_product(self.next.text)):
            return None
        unit, self.at = found
        return names.with_smaller(self, Quantity(tree, unit))

    def _starts_factor(self, token: Token) -> bool:
        match token.kind:
            case "number" | "letter" | "group" | "environment" | "command":
                return token.text not in ("mod", "pmod", "over", "choose")
            case "word":
                is_factor = token.text in SCALES or token.text in ("const", "constant")
                return is_factor or (not token.marked and is_product(token.text))
            case "sign":
                return (
                    token.text in ("(", "\\{", "⟨", "⌊", "⌈", "√", "∠", "Δ", "∞", "∅", "$", "€")
                    or (token.text == "[" and not self.reversed)
                    or (token.text in ("|", "‖") and not self.bars and not self.in_set)
                )
        return False

    def power(self) -> Tree:
        tree = self.postfix(self.primary())
        return self.postfix(self._raised(tree) if self.take("^") else tree)

    def _raised(self, tree: Tree) -> Tree:
        token = self.next
        inner = token.inner if token.kind == "group" else (token,)
        texts = tuple(part.text for part in inner)
        if texts in (("°",), ("o",), ("\\circ",), ("°", "°")):
            self.at += 1
            return names.degrees(self, tree)
        if texts in (("T",), ("top",), ("intercal",), ("t",)) and is_collection(tree):
            self.at += 1
            return Op("transpose", (tree,))
        is_alone = token.kind == "group" or self.peek().kind not in ("number", "letter")
        if texts in (("*",), ("+",), ("-",)) and is_alone:
            self.at += 1
            return Sym(f"{tree.name}^{texts[0]}") if isinstance(tree, Sym) else Op("signed", (tree, Sym(texts[0])))
        exponent = self.script()
        return Op("^", (tree, self._raised(exponent) if self.take("^") else exponent))  # 2^3^2 is 2^(3^2)

    def script(self) -> Tree:
        """Read an exponent or a subscript: a group, a signed number or one token."""
        token = self.next
        if token.kind == "group":
            return self.inside(self.pop().inner)
        if sign := self.take("-", "+"):
            return Op("neg", (self.script(),)) if sign == "-" else self.script()
        if token.text in ("(", "\\{") or token.kind in ("number", "letter", "command"):
            return self.postfix(self.primary(single=token.kind != "sign"))
        self.expect("∞")
        return INFINITY

    def postfix(self, tree: Tree) -> Tree:
        while self.next.kind == "sign":
            if self.take("!"):
                double = self.next.text == "!" and not self.next.spaced
                self.at += double
                tree = Op("!!" if double else "!", (tree,))
            elif self.take("%"):
                tree = Quantity(tree, "%")
            elif self.take("°"):
                tree = names.degrees(self, tree)
            elif self.next.text in ("'", "''") and isinstance(tree, (Sym, Op)):
                raise NotMath("a prime after a value")
            elif self.next.text in ("'", "''") and isinstance(tree, Num):
                is_double = self.take("''") or (self.take("'") and self.take("'"))
                tree = Quantity(tree, "arcsecond" if is_double else "arcminute")
            elif self.next.text in CURRENCY_SIGNS and isinstance(tree, Num):
                tree = Quantity(tree, self.pop().text)
            else:
                break
        return tree

    # --- what stands alone ---

    def primary(self, *, single: bool = False) -> Tree:
        """Read a number, a name, a bracket, a function or another construct.

        Args:
            single: whether the first token only is wanted, as after ^ and _.
        """
        match self.next.kind:
            case "number":
                return atoms.number(self, single=single)
            case "letter":
                return self.name() if single else names.call(self)
            case "group":
                return atoms.group(self)
            case "word":
                return atoms.letters(self)
            case "environment":
                return environment(self, self.pop())
            case "command":
                return command(self)
        return names.prefixed(self) if self.next.text in ("^", "_") else atoms.sign(self)

    def name(self) -> Sym:
        """Read a letter with its subscript and primes."""
        if self.next.kind != "letter":
            raise NotMath(f"no name {self.next.text!r}")
        name = self.pop().text
        while True:
            if self.next.text == "_" and self.peek().kind != "end":
                self.at += 1
                if self.next.kind == "sign" and self.next.text not in "*+-∞":
                    raise NotMath(f"a subscript {self.next.text}")
                name += f"_{flat([self.pop()])}"
            elif mark := self.take("'", "''"):
                name += mark
            elif self.next.text == "^" and set(marks := flat([self.peek()]).strip("{}")) == {"'"}:
                name += marks
                self.at += 2
            else:
                return Sym(name)

    def argument(self) -> Tree:
        """Read the argument of a command: a group, a digit or one token."""
        text = self.next.text
        if self.next.kind == "group":
            return self.inside(self.pop().inner)
        if self.next.kind == "number" and len(text) > 1 and text.isdecimal():
            self.replace(Token("number", text[0]), Token("number", text[1:]))
            return Num(Fraction(self.pop().text))
        return Op("neg", (self.argument(),)) if self.take("-") else self.primary(single=True)
