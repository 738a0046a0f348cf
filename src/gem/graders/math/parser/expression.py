"""The grammar of formulas, read by recursive descent, and of words with formulas between them.

From loose to tight: items of an answer (, ; and or), conditions (where, for, if), relations (= < ∈ ≡), sets (∪ ∩ ∖),
sums, products (also without a sign), powers, postfixes (! % ° '), and what stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gem.graders.math.lexer import Token
from gem.graders.math.parser.constructs import braces, bracket, command, environment, figure
from gem.graders.math.parser.names import (
    call,
    clock,
    declaration,
    degrees,
    digits_in_base,
    half_of_day,
    in_base,
    left_name,
    prefixed,
    repeating,
    with_smaller,
)
from gem.graders.math.parser.vocabulary import (
    CONDITIONS,
    DECLARING,
    END,
    FUNCTIONS,
    HOURS,
    MONTHS,
    RELATIONS,
    SEPARATORS,
    NotMath,
    flat,
    is_condition,
    is_product,
    is_set,
    negated,
    product,
    stripped,
    with_conditions,
    with_unit,
)
from gem.graders.math.tree import (
    EMPTY,
    INFINITY,
    Interval,
    Num,
    Op,
    Phrase,
    Quantity,
    Relation,
    Sym,
    Tree,
    is_collection,
    is_op,
    names_in,
)
from gem.graders.math.units import SCALES, read_currency, read_unit, spelled_value

_SET_OPERATORS = {"∪": "cup", "U": "cup", "∩": "cap", "∖": "minus"}


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
        return self.tokens[self.at] if self.at < len(self.tokens) else END

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else END

    def take(self, *texts: str) -> bool:
        """Skip the next token if it has one of the texts."""
        if self.next.kind != "end" and self.next.text in texts and self.next.kind != "group":
            self.at += 1
            return True
        return False

    def no(self, what: str) -> Tree:
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
        while self.next.text in SEPARATORS and self.next.kind in ("sign", "word"):
            found = SEPARATORS[self.next.text]
            head = found if head == "list" or found == "or" else head
            self.at += 1
            while self.next.text in SEPARATORS and self.next.kind in ("sign", "word"):
                head = SEPARATORS[self.next.text] if head == "list" else head
                self.at += 1
            if self.next.kind == "end" or self.next.text in (")", "]", "\\}", "…"):
                self.take("…")
                break
            trees.append(self.item(top=top))
        trees = with_conditions(trees) if top else trees
        return trees[0] if len(trees) == 1 else Op(head, tuple(trees))

    def item(self, *, top: bool = False) -> Tree:
        """Read one item: a relation with its conditions."""
        if self.next.text in CONDITIONS and self.next.kind == "word":
            return self._where(None)
        if (
            top
            and self.next.kind == "letter"
            and self.peek().kind == "word"
            and self.peek().text in DECLARING - {"and"}
            and (declared := declaration(self))
        ):
            return Op("where", (declared,))
        tree = self.relation()
        if self.next.text in ("integer", "integers") and isinstance(tree, Relation):
            self.at += 1
        if self.next.kind == "word" and self.next.text in CONDITIONS:
            return self._where(tree)
        if self.next.text == "∀":
            self.at += 1
            return Op("where", (tree, self.relation()))
        if self.next.text == "(" and top:
            mark = self.at
            self.at += 1
            condition = self.items()
            if not is_condition(condition):
                self.at = mark
                raise NotMath("a bracket after a value")
            self.expect(")")
            return Op("where", (tree, condition))
        return tree

    def _where(self, tree: Tree | None) -> Tree:
        """Read a condition after for, where or if."""
        if (declared := declaration(self)) is not None:
            return Op("where", (declared,) if tree is None else (tree, declared))
        while self.next.kind == "word" and self.next.text in DECLARING:
            self.at += 1
        if self.next.text == "∀":
            self.at += 1
        condition = self.relation()
        if self.next.kind == "word":
            raise NotMath(self.next.text)
        return Op("where", (condition,) if tree is None else (tree, condition))

    def relation(self) -> Tree:
        first = left_name(self) or self.sets()
        if self.next.text in ("mod", "pmod") and is_op(first := self._modulus(first), "mod") and self.take("="):
            return Relation((first, self.sets()), ("=",))  # 17 mod 5 = 2
        if self.next.text == "in" and isinstance(first, Sym) and self.peek().text in ("[", "(", "\\{"):
            self.at += 1
            return Relation((first, self.sets()), ("∈",))
        if self.next.text not in RELATIONS or self.next.kind == "end":
            return self._modulus(first)
        sides, operators = [first], []
        while self.next.text in RELATIONS and self.next.kind == "sign":
            operators.append(self.next.text)
            self.at += 1
            sides.append(left_name(self) or self.sets())
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

    def sets(self) -> Tree:
        tree = self.sum()
        while self.next.text in _SET_OPERATORS and (self.next.kind == "sign" or is_collection(tree)):
            head = _SET_OPERATORS[self.next.text]
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
            terms.append(term if sign == "+" else negated({"-": "neg", "±": "pm", "∓": "mp"}[sign], term))
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
                parts = tree.args if is_op(tree, "ratio", "time") else (tree,)
                digits = self.tokens[self.at - 1].text
                is_time = len(digits) == 2 and digits.isdecimal() and digits < "60" and parts[0] in HOURS
                tree = Op("time" if is_time and (len(parts) == 1 or is_op(tree, "time")) else "ratio", (*parts, right))
            else:
                tree = with_unit("*" if sign == "*" else "/", tree, right)
        if self.next.kind == "word" and self.next.text == "to" and self._starts_factor(self.peek()):
            self.at += 1
            right = self.factors()
            parts = tree.args if is_op(tree, "ratio") else (tree,)
            tree = Op("ratio", (*parts, right))
        return clock(self, tree) if self.next.text[:1] in ("a", "p", "A", "P") else tree

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
            if self.next.text in ("squared", "cubed"):
                tree = Op("^", (tree, Num(Fraction(2 if self.next.text == "squared" else 3))))
                self.at += 1
                continue
            if not self._starts_factor(self.next) or (self.next.text == "U" and is_collection(tree)):
                return tree
            if self.next.kind == "word" and self.next.text in SCALES:
                tree = product(tree, Num(SCALES[self.next.text]))
                self.at += 1
                continue
            if isinstance(tree, Num) and half_of_day(self):
                return tree
            if self._is_times():
                self.at += 1
                tree = product(tree, self.power())
                continue
            if self.next.text == "(" and (self._opens_condition() or self.peek().text in ("mod", "pmod")):
                return tree
            spaced = self.next.spaced
            right = self.power()
            tree = self._mixed(tree, right, spaced) or with_unit("*", tree, right)

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
        if is_op(right, "/") and all(isinstance(arg, Num) for arg in right.args):
            return Op("mixed", (tree, right))
        return None

    def _unit_after(self, tree: Tree) -> Tree | None:
        if (isinstance(tree, Quantity) and tree.unit != "%") or (
            self.next.text == "in" and self.peek().text in ("[", "(", "\\{")
        ):
            return None
        if is_collection(tree) or isinstance(tree, Interval):
            return None
        found = read_unit(self.tokens, self.at)
        if found is None and self.next.text == "h" and self.peek().kind == "number":  # 2 h 30 min
            found = "h", self.at + 1
        if found is None:
            return None
        unit, end = found
        if not self.next.marked and names_in(tree) and (len(self.next.text) == 1 or is_product(self.next.text)):
            return None
        self.at = end
        return with_smaller(self, Quantity(tree, unit))

    def _starts_factor(self, token: Token) -> bool:
        if token.kind in ("number", "letter", "group", "environment", "command"):
            return token.text not in ("mod", "pmod", "over", "choose")
        if token.kind == "word":
            return (
                token.text in SCALES
                or token.text in ("const", "constant")
                or (not token.marked and is_product(token.text))
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
        return self.postfix(tree)

    def _raised(self, tree: Tree) -> Tree:
        token = self.next
        inner = token.inner if token.kind == "group" else (token,)
        texts = tuple(part.text for part in inner)
        if texts in (("°",), ("o",), ("\\circ",)) or texts == ("°", "°"):
            self.at += 1
            return degrees(self, tree)
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
        exponent = self.script()
        if self.next.text == "^" and self.next.kind == "sign":  # 2^3^2 is 2^(3^2)
            self.at += 1
            exponent = self._raised(exponent)
        return Op("^", (tree, exponent))

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

    def _primed(self, tree: Tree, marks: str) -> Tree:
        if isinstance(tree, Sym):
            return Sym(tree.name + marks)
        if is_op(tree, "call") and isinstance(tree.args[0], Sym):
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
                tree = degrees(self, tree)
            elif self.next.text in ("'", "''") and isinstance(tree, (Sym, Op)):
                tree = self._primed(tree, self.next.text)
                self.at += 1
            elif self.next.text in ("'", "''") and isinstance(tree, Num):
                self.at += 1
                double = self.tokens[self.at - 1].text == "''" or self.take("'")
                tree = Quantity(tree, "arcsecond" if double else "arcminute")
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
            return self.name() if single else call(self)
        if token.kind == "group":
            return self.group()
        if token.kind == "word":
            return self.letters()
        if token.kind == "environment":
            self.at += 1
            return environment(self, token)
        if token.kind == "command":
            return command(self)
        return prefixed(self) if token.text in ("^", "_") else self.sign()

    def number(self, *, single: bool = False) -> Tree:
        token = self.next
        self.at += 1
        text = token.text
        if text.count(".") > 1 or not text.isascii():
            raise NotMath(f"a number {text}")
        if (period := repeating(self, text)) is not None:
            return period
        mantissa, _, exponent = text.partition("e")
        if abs(int(exponent or 0)) > 1000:
            raise NotMath("an exponent over 1000")
        value = Num(
            Fraction(text), len(mantissa.partition(".")[2]) - int(exponent or 0) if "." in text or exponent else None
        )
        if self.next.text == "_" and self.next.kind == "sign" and not single:
            mark = self.at
            self.at += 1
            return in_base(self, text) or self._back(mark, value)
        if self.next.kind in ("letter", "word") and not self.next.spaced and not single and text.isdecimal():
            if self.next.text in ("th", "st", "nd", "rd"):
                self.at += 1
            return digits_in_base(self, text) or value
        return value

    def _back(self, mark: int, value: Tree) -> Tree:
        self.at = mark
        return value

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
                text = flat(inner.inner) if inner.kind == "group" else inner.text
                if inner.kind == "sign" and inner.text not in "*+-∞":
                    raise NotMath(f"a subscript {inner.text}")
                name += f"_{text}"
            elif self.next.text in ("'", "''") and self.next.kind == "sign":
                name += self.next.text
                self.at += 1
            elif self.next.text == "^" and set(flat([self.peek()]).strip("{}")) == {"'"}:
                name += flat([self.peek()]).strip("{}")
                self.at += 2
            else:
                return Sym(name)

    def letters(self) -> Tree:
        """Read a word of plain text as a product of letters."""
        token = self.next
        if token.text in ("const", "constant"):
            self.at += 1
            return Sym("C")
        if self.peek().text == "_" and token.text.isalpha() and set(token.text.upper()) <= set("ABCDEF"):
            mark, self.at = self.at, self.at + 2
            if (written := in_base(self, token.text)) is not None:
                return written
            self.at = mark
        if token.text[0] == "d" == self.peek(2).text[:1] and self.peek().text == "/" and len(self.peek(2).text) == 2:
            self.at += 3
            return Sym(f"{token.text}/{self.peek(-1).text}")
        if token.marked or not (is_product(token.text) or (len(self.tokens) == 1 and len(token.text) == 2)):
            raise NotMath(f"a word {token.text!r}")
        parser = Parser([*(Token("letter", c, token.spaced) for c in token.text), *self.tokens[self.at + 1 :]])
        tree: Tree = parser.power()
        for _ in range(len(token.text) - 1):
            if parser.at >= len(token.text):
                break
            tree = product(tree, parser.power())
        self.at += 1 + parser.at - len(token.text)
        return tree

    def group(self) -> Tree:
        token = self.next
        if (bare := _headless(token)) is not None:
            self.tokens = [*self.tokens[: self.at], *bare, *self.tokens[self.at + 1 :]]
            return self.primary()
        self.at += 1
        if not token.inner:
            if self.next.text in ("^", "_"):  # {}_{10}C_5 and {}^{10}C_5
                return prefixed(self)
            return self.power()
        for name, head in (("over", "/"), ("choose", "binom")):
            index = next(
                (i for i, each in enumerate(token.inner) if each.text == name and each.kind == "command"), None
            )
            if index is not None:
                sides = token.inner[:index], token.inner[index + 1 :]
                return Op(head, tuple(Parser(side).answer() for side in sides))
        if len(token.inner) == 1 and token.inner[0].kind == "letter" and self.next.text in ("_", "'"):  # {a}_{n}
            rest = Parser([token.inner[0], *self.tokens[self.at :]])
            tree = call(rest)
            self.at += rest.at - 1
            return tree
        if is_set(token):  # {x|x>1} without backslashes
            return braces(Parser([*token.inner, Token("sign", "\\}")]))
        tree = Parser(token.inner).answer()
        if self.next.text == "_" and self.next.kind == "sign" and isinstance(tree, Sym):
            self.at += 1
            inner_token = self.next
            self.at += 1
            return Sym(f"{tree.name}_{flat(inner_token.inner) if inner_token.kind == 'group' else inner_token.text}")
        if is_op(tree, "list", "and", "or"):
            return Op("set", tree.args)
        return tree

    def argument(self) -> Tree:
        """Read the argument of a command: a group, a digit or one token."""
        token = self.next
        if token.kind == "group":
            self.at += 1
            return Parser(token.inner).answer()
        if token.kind == "number" and len(token.text) > 1 and token.text.isdecimal():
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

    def sign(self) -> Tree:
        text = self.next.text
        if self.next.kind == "end":
            raise NotMath("the end")
        if text in ("$", "€", "£", "¥", "₹"):
            self.at += 1
            negative = self.take("-")
            value = self.factors() if self.next.kind in ("number", "command") else self.no("an amount")
            return Quantity(Op("neg", (value,)) if negative else value, read_currency(text) or text)
        self.at += 1
        if text == "∞":
            return INFINITY
        if text == "∅":
            return EMPTY
        if text == "√":
            return Op("sqrt", (self.primary(), Num(Fraction(2))))
        if text in ("∠", "Δ"):
            return figure(self, text)
        if text in ("(", "[", "]", "⟨"):
            return bracket(self, text)
        if text == "\\{":
            return braces(self)
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
            return Op("det" if is_op(tree, "matrix") else "abs", (tree,))
        if text in ("+", "-"):
            return self.signed() if text == "+" else Op("neg", (self.power(),))
        if text == "…":
            return Op("dots")
        if text == "." and self.next.kind == "number":
            raise NotMath("a full stop")
        raise NotMath(f"a sign {text!r}")

    def inside(self, found: Sequence[Token]) -> Parser:
        """Return a parser of other tokens, such as those of a group."""
        return Parser(found)

    def cell(self, found: Sequence[Token]) -> Tree:
        """Parse the tokens of a cell or of another part, which may be words."""
        return parse_part(found)


def _headless(group: Token) -> tuple[Token, ...] | None:
    r"""Return the tokens of a group that is a function without its argument, as {\log}_{2} is; None for others."""
    first = group.inner[0] if group.inner else END
    inner = _headless(first) if first.kind == "group" else (first,) if first.text in FUNCTIONS else None
    scripts = group.inner[1:]
    if inner is None or len(scripts) % 2 or any(token.text not in ("_", "^") for token in scripts[::2]):
        return None
    return (*inner, *scripts)


def parse_part(found: Sequence[Token]) -> Tree:
    """Parse tokens as a formula, or else as items, or else as a phrase."""
    try:
        return Parser(found).answer()
    except (NotMath, RecursionError, ZeroDivisionError):
        return by_items(found)


def by_items(found: Sequence[Token]) -> Tree:
    """Parse the items of an answer one by one; an item that is no formula is a phrase."""
    items, heads = _split(found)
    if len(items) < 2 or any(token.text in MONTHS for token in found):
        return phrase([token for token in found if token.text != ","])
    trees: list[Tree] = []
    for item in items:
        try:
            trees.append(Parser(stripped(item)).answer())
        except (NotMath, RecursionError, ZeroDivisionError):
            trees.append(phrase(item))
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
    is_worded = all(token.kind in ("word", "letter") or token.text == "-" for token in found)
    if is_worded and (value := spelled_value(" ".join(token.text for token in found))) is not None:
        return Num(value)
    parts: list[str | Tree] = []
    at, dated = 0, any(token.text in MONTHS for token in found)
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
            elif token.text == "-" or token.text.isalnum():
                parts.append(token.text)
            at += 1
            continue
        if token.kind == "number" and dated:
            parts.append(Num(Fraction(token.text)))
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
            parts.append(flat([token]) if token.kind != "command" else f"\\{token.text}")
            at += 1
    return Phrase(tuple(parts))
