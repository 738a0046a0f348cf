r"""LaTeX as plain text, for answers that are compared as text. gem.parsing.readings() is the way in.

Every function accepts any string, runs in linear time and never raises.
"""

from __future__ import annotations

import re

# Commands whose argument stands for itself: \text{…}, \mathrm{…}, \textbf{…} and so on.
_STYLE = r"\\(?:(?:text|math)[a-z]*|[mhf]box|boxed|emph|underline|operatorname|boldsymbol|bm)(?![a-zA-Z])\*?"
_STYLED = re.compile(rf"{_STYLE}\s*\{{|\\.|[{{}}]", re.DOTALL)
_STYLE_NAME = re.compile(_STYLE)
_TOKEN = re.compile(r"\\[a-zA-Z]+\*?|\\?.", re.DOTALL)
_LATEX = re.compile(r"[\\{}$^~]")
_GROUPING = re.compile(r"(?<=[0-9])(?:\\[,;:! ]|\{,\}|~)(?=[0-9]{3}(?![0-9]))")  # 12\,345 and 12{,}345
_POWER_OF_TEN = re.compile(r"(?<=[0-9])\s?[*×·]\s?10\*\*\(?([-+]?[0-9]+)\)?(?![0-9.])")
_SIMPLE = re.compile(r"[\w.]*|\([^()]*\)")
# Marks in the plain text: the end of a power, and a fraction, which has brackets unless it is all of the text.
_GAP, _OPEN, _CLOSE = "\0\1\2"
_JOINED = re.compile(rf"(?<=\w){_GAP}+(?=\w)")  # 2^{3}5 is not 2**35
_LONE_FRACTION = re.compile(rf"([\s$*]*-?){_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}([\s$*.]*)")
_WITHOUT_MARKS = dict.fromkeys(map(ord, (_GAP, _OPEN, _CLOSE)))
_TO_BRACKETS = str.maketrans({_OPEN: "(", _CLOSE: ")", _GAP: None})
_DEEPEST = 50  # nested groups and arguments
_LONGEST = 50_000  # characters
_ENDS = (("**", "**"), ("`", "`"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("``", "''"))
_MOST_ENDS = 4
_FUNCTIONS = ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "log", "ln", "exp")
# LaTeX command → how it is written in ASCII, and in Unicode.
_SYMBOLS = {
    **dict.fromkeys(("times", "ast"), ("*", "×")),
    **dict.fromkeys(("le", "leq", "leqslant"), ("<=", "≤")),
    **dict.fromkeys(("ge", "geq", "geqslant"), (">=", "≥")),
    **dict.fromkeys(("ne", "neq"), ("!=", "≠")),
    **dict.fromkeys(("land", "wedge"), ("&", "∧")),
    **dict.fromkeys(("lor", "vee"), ("|", "∨")),
    **dict.fromkeys(("lnot", "neg"), ("~", "¬")),
    **dict.fromkeys(("to", "rightarrow", "longrightarrow", "Rightarrow", "implies"), ("->", "→")),
    **dict.fromkeys(("leftrightarrow", "Leftrightarrow", "iff"), ("<->", "↔")),
    **dict.fromkeys(("dots", "ldots", "cdots"), ("...", "…")),
    **dict.fromkeys(("mid", "vert", "lvert", "rvert"), ("|", "|")),
    **dict.fromkeys(("backslash", "textbackslash"), ("\\", "\\")),
    **{"cdot": ("*", "·"), "div": ("/", "÷"), "lt": ("<", "<"), "gt": (">", ">"), "pm": ("+-", "±"), "sim": ("~", "~")},
    **{"pi": ("pi", "π"), "infty": ("oo", "∞"), "circ": ("°", "°"), "colon": (":", ":"), "prime": ("'", "'")},
    **{"lbrace": ("{", "{"), "rbrace": ("}", "}"), "lbrack": ("[", "["), "rbrack": ("]", "]"), "oplus": ("^", "⊕")},
    **{name: (name, name) for name in _FUNCTIONS},
    **{f"arc{name}": (f"a{name}", f"a{name}") for name in ("sin", "cos", "tan")},
    **dict.fromkeys((",", ";", ":", " ", "quad", "qquad", "enspace", "thinspace"), (" ", " ")),
    **dict.fromkeys(("left", "right", "displaystyle", "textstyle", "limits", "hline"), ("", "")),
    **dict.fromkeys(("big", "Big", "bigl", "bigr", "Bigl", "Bigr", "bf", "rm", "it", "tt", "sf", *"!/()[]"), ("", "")),
    **{each: (each, each) for each in "%$#&_{}"},
    "\\": ("\n", "\n"),
}


def unstyled(text: str) -> str:
    r"""Return a text with the arguments of ``\text{…}``, ``\mathbf{…}`` and so on in place of these commands."""
    if "\\" not in text:
        return text
    kept: list[str] = []
    stack: list[bool] = []  # for each open brace: whether it stays
    end = 0
    for match in _STYLED.finditer(text):
        mark, stays = match[0], True
        if mark[-1] == "{" and mark != r"\{":
            stays = mark == "{"
            stack.append(stays)
        elif mark == "}" and stack:
            stays = stack.pop()
        if not stays:
            kept.append(text[end : match.start()])
            end = match.end()
    return "".join([*kept, text[end:]])


def without_ends(text: str) -> list[str]:
    """Return a text without surrounding Markdown and dollar signs and a final full stop, one less at a time.

    >>> without_ends("**It rains.**"), without_ends("4")
    (['It rains.', 'It rains'], [])
    """
    found: list[str] = []
    while len(found) < _MOST_ENDS:
        inner = text.removesuffix(".")
        for opening, closing in _ENDS:
            if inner is text and text.startswith(opening) and text.endswith(closing) and len(text) > 2 * len(opening):
                inner = text[len(opening) : -len(closing)]
        if inner is text:
            break
        text = inner.strip()
        found.append(text)
    return found


def plain_forms(text: str) -> list[str]:
    r"""Return a LaTeX text without styles, in ASCII and in Unicode; no texts if it has nothing of LaTeX or is too long.

    >>> plain_forms(r"\text{a\_b} \leq \frac{x+1}{2}")
    ['a\\_b \\leq \\frac{x+1}{2}', 'a_b <= ((x+1)/2)', 'a_b ≤ ((x+1)/2)']
    """
    if len(text) > _LONGEST or not _LATEX.search(text):
        return []
    try:
        return [unstyled(text), _Plain(text, 0).text(), _Plain(text, 1).text()]
    except _TooDeep:
        return [unstyled(text)]


class _TooDeep(Exception):
    pass


class _Plain:
    """Writes LaTeX as plain text, in one pass over its tokens.

    Args:
        column: of _SYMBOLS; 0 for ASCII, 1 for Unicode.
    """

    def __init__(self, latex: str, column: int) -> None:
        self._tokens = _TOKEN.findall(_GROUPING.sub("", latex.translate(_WITHOUT_MARKS)))
        self._column, self._at, self._depth = column, 0, 0
        self._table = r"\begin" in latex

    def text(self) -> str:
        """Return the text. Raises _TooDeep."""
        text = self._until("")
        lone = _LONE_FRACTION.fullmatch(text)
        text = "".join(lone.groups()) if lone else _JOINED.sub(" ", text).translate(_TO_BRACKETS)
        text = _POWER_OF_TEN.sub(r"e\1", text).replace("``", '"').replace("''", '"').strip()
        return "\n".join(" ".join(line.split()) for line in text.split("\n")) if self._table else text

    def _next_is(self, token: str) -> bool:
        return self._tokens[self._at : self._at + 1] == [token]

    def _until(self, closing: str) -> str:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _TooDeep
        parts = []
        while self._at < len(self._tokens) and not self._next_is(closing):
            parts.append(self._item())
        self._at += 1
        self._depth -= 1
        return "".join(parts)

    def _argument(self) -> str:
        while self._at < len(self._tokens) and self._tokens[self._at].isspace():
            self._at += 1
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _TooDeep
        argument = self._item() if self._at < len(self._tokens) else ""
        self._depth -= 1
        return argument

    def _item(self) -> str:
        token = self._tokens[self._at]
        self._at += 1
        if token == "{":
            return self._until("}")
        if token == "^":
            power = self._argument()
            return power if power == "°" else f"**{_operand(power)}{_GAP}"
        if token == "_" and self._next_is("{"):
            return f"_{_operand(self._argument())}{_GAP}"
        if token == "~" or (token == "&" and self._table):
            return " "
        return token if len(token) == 1 else self._command(token[1:])

    def _command(self, name: str) -> str:
        spaced = self._at > 1 and self._tokens[self._at - 2] == " "
        if name in ("frac", "dfrac", "tfrac", "cfrac"):
            return f"{_OPEN}{_operand(self._argument())}/{_operand(self._argument())}{_CLOSE}"
        if name in ("binom", "dbinom", "tbinom"):
            return f"binom({self._argument()}, {self._argument()})"
        if name == "sqrt":
            if not self._next_is("["):
                return f"sqrt({self._argument()})"
            self._at += 1
            root = self._until("]")
            return f"{_operand(self._argument())}**(1/{root}){_GAP}"
        if name in ("begin", "end"):
            if self._argument() in ("array", "tabular") and name == "begin":
                self._argument()  # the alignment of the columns
            return ""
        if _STYLE_NAME.fullmatch(f"\\{name}"):
            return self._argument()
        if name in ("left", "right") and self._next_is("."):
            self._at += 1
        if name not in _SYMBOLS:
            return f"\\{name}"
        symbol = _SYMBOLS[name][self._column]
        bare = not spaced or "".join(self._tokens[self._at + 1 : self._at + 2]).isspace()
        if bare and name.isalpha() and not symbol[-1:].isalnum() and self._next_is(" "):
            self._at += 1  # the space in B\to A only ends the name of the command
        return symbol


def _operand(text: str) -> str:
    text = text.strip()
    return text if _SIMPLE.fullmatch(text) else f"({text})"
