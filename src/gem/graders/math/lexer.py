r"""Split the text of a math answer into tokens: LaTeX, Unicode and plain notations of one thing become one token.

Braces are a token with the tokens inside, so that nothing is pasted together: the 5 of ``2^{3}5`` never joins its 3.

>>> [token.text for token in tokens(r"$\left( \dfrac12,\; 1{,}000 \right)$")]
['(', 'frac', '12', ',', '1000', ')']
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

MAX_CHARS = 3_000  # the longest reference answers in common datasets have a few hundred characters
MAX_TOKENS = 1_000
MAX_OPERATORS = 300  # commands and signs such as + and ^
MAX_DEPTH = 50  # nesting depth of brackets
MAX_DIGITS = 1_000  # digits of one number


@dataclass(frozen=True, slots=True)
class Token:
    r"""One token.

    Args:
        kind: "number", "letter" (one, Latin or Greek), "word" (letters of plain text), "command" (a LaTeX command
            without its backslash), "group" (braces), "environment" or "sign" (anything else).
        text: what it says, in one spelling: a number without separators, a command without its backslash.
        spaced: whether there is a space before it.
        marked: whether it stands inside ``\text{…}`` or a similar command.
        inner: the tokens of a group; for an environment its rows of cells.
    """

    kind: str
    text: str
    spaced: bool = False
    marked: bool = False
    inner: tuple[Token, ...] = ()
    rows: tuple[tuple[tuple[Token, ...], ...], ...] = ()


class Malformed(ValueError):
    """The braces or environments of a text are not balanced."""


class TooLarge(ValueError):
    """A text exceeds one of the limits of this module; the message says which."""


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def spellings(text: str) -> dict[str, str]:
    """Return the first word of each row for the others; rows end with a semicolon."""
    rows = [row.split() for row in text.split(";")]
    return {spelling: row[0] for row in rows for spelling in row[1:]}


_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>[0-9]+(?:\.[0-9]+)*|\.[0-9]+)|(?P<word>[^\W\d_]+)|\\(?P<command>[A-Za-z]+)|(?P<escaped>\\.)"
    r"|(?P<sign><=|>=|=<|!=|==|\*\*|\+/-|\+-|->|=>|\.\.\.|.)",
    re.DOTALL,
)
_GREEK = {letter: unicodedata.name(letter).split()[-1].lower() for letter in "αβγδεζηθικμνξπρστυφχψω"}
_GREEK |= {letter: unicodedata.name(letter).split()[-1].capitalize() for letter in "ΓΔΘΣΦΩ"}
_GREEK |= {"ϕ": "phi", "λ": "lambda", "Λ": "Lambda"}
_GREEK_NAMES = frozenset(_GREEK.values()) | {"Pi", "Psi", "Xi", "ell", "hbar"}
_UNICODE: dict[int, str] = str.maketrans(  # Unicode → the sign that tokens have, or LaTeX
    {
        **dict.fromkeys("−–‐‑﹣", "-"),
        **dict.fromkeys("·⋅∙・×✕", "*"),
        **dict.fromkeys("“”", '"'),
        **dict.fromkeys("‘’′", "'"),
        **dict.fromkeys("\u200b\u200c\u2060\ufeff", ""),
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full width
        **{letter: rf"\{name} " for letter, name in _GREEK.items()},
        **dict(zip("÷∶〈〉、。≦≧⩽⩾≒⋯△µ", "/:⟨⟩,.≤≥≤≥≈…Δμ", strict=True)),
        **{"∛": r"\sqrt[3]", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}"},
        **{"ℂ": r"\mathbb{C}", "″": "''", "℃": r"°\text{C}", "∑": r"\sum ", "∏": r"\prod ", "∫": r"\int "},
        **{"或": r"\text{ or }", "和": r"\text{ and }", "且": r"\text{ and }"},
    }
)
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿˣᵀ", "0123456789-+nxT", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉ₙ₊₋", "0123456789n+-", strict=True))
_BOLD = re.compile(r"(?:^|(?<=[\s:$]))\*\*([^\s*](?:[^*]*[^\s*])?)\*\*(?=[\s.,;:$]|$)")
_SCRIPTS = re.compile(f"([{''.join(_RAISED)}]+)|([{''.join(_LOWERED)}]+)|([½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])")

_OPERATORS = frozenset(["+", "-", "*", "/", "^", "_", "!", "|", "=", "<", ">", "**"])

# Commands that say nothing, that are spaces, that mark text, and that are another spelling of a command.
_SILENT = words(
    "left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr displaystyle textstyle "
    "scriptstyle limits nolimits rm bf it sf cal mathstrut strut allowbreak nonumber notag hline boldmath "
    "unboldmath par underline mathopen mathclose mathbin mathrel normalsize large Large small centering"
)
_SPACES = words("quad qquad space enspace thinspace medspace thickspace nobreakspace newline")
_TEXTS = words(
    "text textrm textbf textit textsf texttt textnormal textup textsc emph mbox hbox mathrm mathsf mathtt mathit "
    "operatorname unit si"
)
_STYLES = words("mathbf boldsymbol bm pmb mathcal mathscr mathfrak cancel bcancel")
_SPELLINGS = spellings(  # commands and digraphs → the sign or command that tokens have
    r"""
frac dfrac tfrac cfrac nicefrac sfrac flatfrac; binom dbinom tbinom; ≤ le leq leqslant leqq <= =<;
≥ ge geq geqslant geqq >=; ≠ ne neq !=; = ==; ≈ approx simeq doteq fallingdotseq thickapprox approxeq; ≡ equiv;
≅ cong; ∼ sim; … ldots cdots dots dotsc dotsb vdots ddots ...; * times ast cdot bullet centerdot; ^ **;
∅ varnothing emptyset empty; ° circ degree degrees textdegree; | lvert rvert vert mid; ‖ lVert rVert Vert;
∪ cup bigcup sqcup; ∩ cap bigcap; ∖ setminus backslash smallsetminus; ↦ mapsto;
→ to rightarrow longrightarrow Rightarrow implies Longrightarrow -> =>; ∈ in; ∉ notin; ± pm +/- +-; ∓ mp;
∞ infty infinity infin oo; √ surd; ∠ angle; Δ triangle Delta; ∥ parallel; ⊥ perp; ¬ neg lnot; ∧ land wedge; ∨ lor vee;
∀ forall; ∃ exists; ⊂ subset subseteq; ⟨ langle; ⟩ rangle; ⌊ lfloor; ⌋ rfloor; ⌈ lceil; ⌉ rceil; < lt; > gt; / div;
: colon; \{ lbrace; \} rbrace; [ lbrack; ] rbrack; ( lparen; ) rparen; $ textdollar; £ pounds textsterling;
€ euro texteuro EUR; ' prime; '' dprime; % percent textpercent; vec overrightarrow; overline bar; hat widehat;
\epsilon varepsilon epsilon; \phi varphi phi; \theta vartheta theta; \rho varrho rho; i imath; j jmath; tan tg;
cot ctg cotg; csc cosec; sin sen; arctan arctg atan; arccot arcctg; arcsin asin; arccos acos; sinh sh; cosh ch;
tanh th; mod bmod; mathbbR R Reals; mathbbZ Z; mathbbN N; mathbbQ Q; \mu textmu micro mu; \pi pi; \Omega ohm"""
)
_PLAIN_COMMANDS = words(  # commands that are often written without their backslash
    "sin cos tan cot sec csc arcsin arccos arctan arccot sinh cosh tanh log ln lg exp sqrt pi infty lim max min gcd "
    "lcm det sen tg ctg oo arctg arcctg cosec infinity asin acos atan frac binom theta alpha beta"
)
_CURRENCY_CODES = {"USD": "$", "EUR": "€", "GBP": "£"}
_PLAIN_IN_TEXT = words("arg cis Re Im Var span rank tr sgn adj ord")


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text.

    Raises:
        Malformed: the braces or environments of the text are not balanced.
        TooLarge: the text exceeds a limit.
    """
    if len(text) > MAX_CHARS:
        raise TooLarge(f"longer than {MAX_CHARS} characters")
    if text.isdecimal() and text.isascii() and len(text) <= MAX_DIGITS:  # as most answers are
        return (Token("number", text),)
    if max(_depth(text), text.count("\\begin")) > MAX_DEPTH:
        raise TooLarge(f"nested deeper than {MAX_DEPTH}")
    return tuple(_joined(_Lexer(_in_latex(text)).read(marked=False)))


def _depth(text: str) -> int:
    return max(accumulate((c in "{([") - (c in "})]") for c in text), default=0)


def _in_latex(text: str) -> str:
    """Write Unicode symbols as ASCII characters or LaTeX commands, and bold text of Markdown without its asterisks."""
    text = _BOLD.sub(r"\1", text) if "**" in text else text
    if text.isascii():
        return text
    return _SCRIPTS.sub(_script, text).translate(_UNICODE)


def _script(match: re.Match[str]) -> str:
    raised, lowered, vulgar = match.groups()
    if raised:
        return f"^{{{''.join(_RAISED[c] for c in raised)}}}"
    if lowered:
        return f"_{{{''.join(_LOWERED[c] for c in lowered)}}}"
    top, _, bottom = unicodedata.normalize("NFKC", vulgar).partition("\u2044")
    return rf"\frac{{{top}}}{{{bottom}}}"


class _Lexer:
    """Reads the tokens of a text one after the other."""

    def __init__(self, text: str) -> None:
        self.matches = list(_TOKEN.finditer(text))
        self.at = 0
        if sum(match.lastgroup != "space" for match in self.matches) > MAX_TOKENS:
            raise TooLarge(f"more than {MAX_TOKENS} tokens")
        operators = sum(match.lastgroup == "command" or match[0] in _OPERATORS for match in self.matches)
        if operators > MAX_OPERATORS:
            raise TooLarge(f"more than {MAX_OPERATORS} operators")

    def read(self, *, marked: bool, until: str = "") -> list[Token]:
        r"""Read tokens up to a closing brace, an ``\end`` or the end of the text."""
        found: list[Token] = []
        spaced = False
        while self.at < len(self.matches):
            match = self.matches[self.at]
            self.at += 1
            kind, text = str(match.lastgroup), match[match.lastgroup]  # type: ignore[index]
            if kind == "space" or text in ("~", "\\,", "\\;", "\\:", "\\ ", "\\>"):
                if text == "\\,":
                    found.append(Token("sign", "\\,", spaced, marked))
                spaced = True
                continue
            if text == until:
                return found
            if text == "}":
                raise Malformed("a closing brace too many")
            if text in ("$", "\\(", "\\)", "\\[", "\\]", "\\!", "\\/", "\\-") and not self._is_money(text):
                if text == "\\!":
                    found.append(Token("sign", "\\!", spaced, marked))
                continue
            if kind == "command" and text == "end":
                self._argument_text()
                if until == "\\end":
                    return found
                raise Malformed("an \\end too many")
            found.extend(self._token(kind, text, spaced, marked))
            spaced = False
        if until:
            raise Malformed(f"{until} is missing")
        return found

    def _is_money(self, text: str) -> bool:
        """Return whether a dollar sign is a currency: $5 without a second dollar sign."""
        is_before_number = text == "$" and self._next()[:1].isdigit()
        return is_before_number and sum(match[0] == "$" for match in self.matches) % 2 == 1

    def _token(self, kind: str, text: str, spaced: bool, marked: bool) -> Iterator[Token]:
        if kind == "number":
            if len(text) > MAX_DIGITS:
                raise TooLarge(f"a number with more than {MAX_DIGITS} digits")
            yield Token("number", text, spaced, marked)
        elif kind == "word":
            yield from self._word(text, spaced, marked)
        elif kind == "command":
            yield from self._command(text, spaced, marked)
        elif kind == "escaped":
            name = text if text in ("\\{", "\\}", "\\\\") else "‖" if text == "\\|" else text[1]
            yield Token("sign", name, spaced, marked)
        elif text == "!=" and self.at > 1 and self.matches[self.at - 2].lastgroup == "number":
            yield from (Token("sign", "!", spaced, marked), Token("sign", "=", False, marked))  # 5!=120
        elif text == "{" and self._next() in ("\\rm", "\\bf", "\\it", "\\sf"):  # {\rm kg}
            self.at += 1
            yield from self._mark(self.read(marked=True, until="}"), spaced)
        elif text == "{":
            yield Token("group", "{", spaced, marked, tuple(_joined(self.read(marked=marked, until="}"))))
        else:
            yield Token("sign", _SPELLINGS.get(text, text), spaced, marked)

    def _word(self, text: str, spaced: bool, marked: bool) -> Iterator[Token]:
        if text in _CURRENCY_CODES and self._next().strip() == "":
            yield Token("sign", _CURRENCY_CODES[text], spaced, marked)
        elif (text, self._next()) in (("US", "$"), ("US", "\\$"), ("R", "\\$")):
            return
        elif text in ("Rs", "INR"):
            self.at += self._next() == "."
            yield Token("sign", "₹", spaced, marked)
        elif len(text) == 1 and text.isascii():
            yield Token("letter", text, spaced, marked)
        elif text in _PLAIN_COMMANDS and not marked:
            yield _named(text, spaced, marked)
        else:
            yield Token("word", text, spaced, marked)

    def _command(self, name: str, spaced: bool, marked: bool) -> Iterator[Token]:
        name = _SPELLINGS.get(name, name)
        if name in _SILENT:
            if self._next() == ".":
                self.at += 1  # \right.
        elif name in _SPACES:
            yield Token("sign", "\\,", True, marked)
        elif name in ("hspace", "vspace", "color", "textcolor", "phantom", "label", "tag"):
            self._argument_text()
        elif name in _TEXTS:
            self.at += self._next() == "*"
            yield from self._mark(self._braced(marked=True), spaced)
        elif name in _STYLES:
            yield from self._styled(name, spaced, marked)
        elif name == "mathbb" or name.startswith("mathbb"):
            letter = name.removeprefix("mathbb") or self._argument_text().strip("{} \\")
            is_set = letter in ("R", "Z", "N", "Q", "C")
            yield Token("command" if is_set else "letter", f"mathbb{letter}" if is_set else letter, spaced, marked)
        elif name == "begin":
            yield self._environment(spaced, marked)
        else:
            yield _named(name, spaced, marked)

    def _next(self) -> str:
        return self.matches[self.at][0] if self.at < len(self.matches) else ""

    def _skip_space(self) -> None:
        while self._next().isspace():
            self.at += 1

    def _argument_text(self) -> str:
        """Return the text of the next argument."""
        self._skip_space()
        start, depth = self.at, 0
        while self.at < len(self.matches):
            depth += (self._next() == "{") - (self._next() == "}")
            self.at += 1
            if depth <= 0:
                break
        return "".join(match[0] for match in self.matches[start : self.at])

    def _braced(self, *, marked: bool) -> list[Token]:
        """Return the tokens in the braces that follow; none if there are no braces."""
        self._skip_space()
        if self._next() != "{":
            return []
        self.at += 1
        return self.read(marked=marked, until="}")

    def _mark(self, inner: Sequence[Token], spaced: bool) -> Iterator[Token]:
        name = "".join(token.text for token in inner)
        if len(inner) == 1 and name in _PLAIN_COMMANDS | _PLAIN_IN_TEXT:
            yield _named(name, spaced, marked=False)
            return
        for index, token in enumerate(inner):
            yield Token(token.kind, token.text, token.spaced or (spaced and index == 0), True, token.inner, token.rows)

    def _styled(self, name: str, spaced: bool, marked: bool) -> Iterator[Token]:
        r"""Yield the letters in \mathbf{…}; the unit vectors \mathbf{i} and \mathbf{k} keep their style."""
        inner = self._braced(marked=marked)
        bold = name in ("mathbf", "boldsymbol", "bm", "pmb")
        for index, token in enumerate(inner):
            before = token.spaced or (spaced and index == 0)
            if bold and len(inner) == 1 and token.text in ("i", "j", "k"):
                yield Token("command", "hat", before, marked)
                yield Token("group", "{", False, marked, (token,))
            else:
                yield Token(token.kind, token.text, before, token.marked or len(inner) > 2, token.inner, token.rows)

    def _environment(self, spaced: bool, marked: bool) -> Token:
        name = self._argument_text().strip("{} *")
        if name in ("array", "tabular", "alignedat") or (self._next() == "[" and name == "array"):
            self._skip_space()
            if self._next() == "{":
                self._argument_text()
        inner = self.read(marked=marked, until="\\end")
        rows: list[list[list[Token]]] = [[[]]]
        skip = 0
        for index, token in enumerate(inner):
            if skip:
                skip -= 1
            elif token.text == "\\\\" and token.kind == "sign":
                rows.append([[]])
                skip = _length_of_gap(inner[index + 1 :])
            elif token.text == "&" and token.kind == "sign":
                rows[-1].append([])
            else:
                rows[-1][-1].append(token)
        cells = tuple(tuple(tuple(_joined(cell)) for cell in row) for row in rows if any(row))
        return Token("environment", name, spaced, marked, rows=cells)


def _named(name: str, spaced: bool, marked: bool) -> Token:
    """Return the token of a LaTeX command: a sign, a Greek letter or the command."""
    name = _SPELLINGS.get(name, f"\\{name}" if name in _GREEK_NAMES else name)
    if name.startswith("\\") and name[1:].isalpha():
        return Token("letter", name, spaced, marked)
    kind = "letter" if len(name) == 1 and name.isalpha() else "command" if name.isalnum() else "sign"
    return Token(kind, name, spaced, marked)


def _length_of_gap(rest: Sequence[Token]) -> int:
    r"""Return the number of tokens of the [4pt] after \\."""
    if len(rest) < 4 or rest[0].text != "[":
        return 0
    end = next((i for i, token in enumerate(rest[:6]) if token.text == "]"), 0)
    return end + 1 if end and any(t.text in ("pt", "em", "ex", "mm", "cm", "in", "mu") for t in rest[:end]) else 0


def _joined(found: Sequence[Token]) -> Iterator[Token]:
    """Join the parts of a number that separators divide: 1,000 and 1{,}000 and 2{,}5, and 3e5."""
    at, depth = 0, 0
    while at < len(found):
        token = found[at]
        if token.kind == "sign":
            depth += (token.text in ("(", "[", "\\{")) - (token.text in (")", "]", "\\}"))
        if token.kind != "number":
            if token.text not in ("\\,", "\\!"):
                yield token
            at += 1
            continue
        text, end = _grouped(found, at, plain_comma=depth <= 0)
        exponent, end = _exponent(found, end, token)
        yield Token("number", text + exponent, token.spaced, token.marked)
        at = end


def _grouped(found: Sequence[Token], at: int, *, plain_comma: bool) -> tuple[str, int]:
    """Return the digits of a number without its separators, and the index of the token after it."""
    parts, separators, end = [found[at].text], [], at + 1
    if found[at].text.count(".") > 1:  # 1.234.567
        groups = found[at].text.split(".")
        return ("".join(groups) if all(len(group) == 3 for group in groups[1:]) else found[at].text), end
    while True:
        separator, start = _separator(found, end)
        if not separator or start >= len(found) or found[start].kind != "number":
            break
        if separator == "," and (not plain_comma or found[start].spaced):
            break
        if separator == " " and (
            parts[-1].count(".") or len(found[start].text.split(".")[0]) != 3 or len(parts[0]) > 3
        ):
            break
        parts.append(found[start].text)
        separators.append(separator)
        end = start + 1
    if not separators:
        return parts[0], end
    whole, last = parts[1:], parts[-1].split(".")[0]
    is_grouped = (
        len(parts[0]) <= 3 and parts[0] != "0" and all("." not in part for part in parts[:-1]) and len(last) == 3
    )
    if is_grouped and all(len(part.split(".")[0]) == 3 for part in whole):
        return "".join(parts), end
    if is_grouped and set(separators) == {","} and all(len(part) == 2 for part in whole[:-1]) and len(parts) > 2:
        return "".join(parts), end  # 1,00,000
    if separators == [","] and parts[0] == "0" and last == parts[1] and last[0] == "0" and len(last) > 1:
        return f"0.{last}", end  # 0,05
    if separators[0] == "{,}" and "." not in parts[0] + parts[1]:
        return f"{parts[0]}.{parts[1]}", _separator(found, at + 1)[1] + 1  # 2{,}5
    return parts[0], at + 1


def _separator(found: Sequence[Token], at: int) -> tuple[str, int]:
    r"""Return the separator of digits at an index ("," or "{,}" or " ") and the index after it; "" if there is none."""
    text = found[at].text if at < len(found) else ""
    if text == ",":
        marked = found[at].marked
        at += 1
        if at < len(found) and found[at].text == "\\!":
            return "{,}", at + 1
        return ("{,}" if marked else ","), at
    if text == "{" and [token.text for token in found[at].inner] == [","]:
        return "{,}", at + 1
    if text in ("\\,", "\\!"):
        return " ", at + 1
    if at < len(found) and found[at].kind == "number" and found[at].spaced:
        return " ", at
    return "", at


def _exponent(found: Sequence[Token], end: int, token: Token) -> tuple[str, int]:
    """Return the exponent of 3e5 and 6.02E-23, and the index after it."""
    rest = found[end : end + 3]
    if not rest or rest[0].text not in ("e", "E") or rest[0].spaced or len(rest) < 2:
        return "", end
    sign = rest[1].text if rest[1].text in "+-" and rest[1].kind == "sign" else ""
    digits = rest[2] if sign and len(rest) > 2 else rest[1]
    if digits.kind != "number" or digits.spaced or not digits.text.isdecimal() or len(digits.text) > 4:
        return "", end
    return f"e{sign}{digits.text}", end + (3 if sign else 2)
