r"""Parse the text of a model: thoughts, LaTeX boxes, tags and code fences, and LaTeX as plain text.

This one module reads the answers and moves of all environments: what a reply says (outside_thinking), where its answer
stands (last_boxed, last_tagged, code_blocks), and which text an answer in LaTeX shows (readings).

Every function accepts any string, runs in linear time and never raises.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = [
    "code_blocks",
    "last_boxed",
    "last_tagged",
]

_THINK = re.compile(r"<(/?)think>")
_BOX = r"\\{1,2}(?:boxed|fbox)(?![a-zA-Z])\s*"  # models also write \\boxed, as in JSON
_END = r"(?=[ \t]*(?:\Z|[$.,;!?)}*`\n]|\\[\])]))"
# The token of \boxed 5, \boxed A and \boxed \frac{1}{2}. A word inside a sentence is not one ("the \boxed notation").
_BARE = (
    r"(?:[-+]?[0-9]+(?:[.,/][0-9]+)*(?![\w^/*+({\\-]|[.,][0-9])"
    rf"|(?:[a-zA-Z]+|\\[a-zA-Z]+(?:\{{(?:[^{{}}]|\{{[^{{}}]{{0,200}}\}}){{0,200}}\}})*){_END})"
)
# \\, \{ and \} are a line break and literal braces, which neither open nor close a box.
_MARKS = re.compile(rf"{_BOX}(?:\{{|(?P<bare>{_BARE})|(?P<cut>\Z|[-+]?[0-9]|\\[a-zA-Z]))|\\[\\{{}}]|[{{}}]")
_PLAIN_BOX = re.compile(r"\\boxed\s*\{([^{}\\]*)\}")  # a box whose content has no braces or commands
_INTEGER = re.compile(r"[ \t\n]*[+-]?[0-9]{1,18}[ \t\n]*")  # 18 digits fit into 64 bits
_INTEGER_BOX = re.compile(rf"\\boxed\s*\{{({_INTEGER.pattern})\}}")
_ARROW = re.compile(r"\\(?:right|longright)?arrow\b|\\to\b|->|=>|→")
_DECORATION = re.compile(r"\\[,;:! {}]|\\quad\b|[()\[\]{}\"'`$*]")
_LONGEST_TIDIED = 200  # characters; limited, so that nested boxes take linear time

# Commands whose argument stands for itself: \text{…}, \mathrm{…}, \textbf{…} and so on.
_STYLE = r"\\(?:(?:text|math)[a-z]*|[mhf]box|boxed|emph|underline|operatorname|boldsymbol|bm)(?![a-zA-Z])\*?"
_STYLED = re.compile(rf"{_STYLE}\s*\{{|\\.|[{{}}]", re.DOTALL)
_STYLE_NAME = re.compile(_STYLE)
_TOKEN = re.compile(r"\\[a-zA-Z]+\*?|\\?.", re.DOTALL)
_LATEX = re.compile(r"[\\{}$^~]")
_GROUPING = re.compile(r"(?<=[0-9])(?:\\[,;:!]|\{,\}|~)(?=[0-9]{3}(?![0-9]))")  # 12\,345 and 12{,}345
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


class CodeBlock(NamedTuple):
    """A fenced code block.

    Args:
        language: the word after the opening fence, in lower case; "" if there is no such word.
        code: the text between the fences.
        end: offset of the end of the block in the parsed text.
    """

    language: str
    code: str
    end: int


def outside_thinking(text: str) -> str:
    """Return a text without its ``<think>…</think>``; a ``<think>`` that is not closed goes to the end.

    Text before a ``</think>`` without a ``<think>`` is thinking that the chat template opened.

    >>> outside_thinking("<think>4?</think>It is 5."), outside_thinking("4?</think>It is 5. <think>Or 6")
    ('It is 5.', 'It is 5. ')
    """
    if "think>" not in text:
        return text
    said: list[str] = []
    start: int | None = 0  # of the text outside; None inside
    for match in _THINK.finditer(text):
        if match[1]:
            if start is not None:
                said.clear()
            start = match.end()
        elif start is not None:
            said.append(text[start : match.start()])
            start = None
    if start is not None:
        said.append(text[start:])
    return "\n".join(part for part in said if part)


def boxes(text: str) -> list[str]:
    r"""Return the contents of all closed ``\boxed{…}`` and ``\fbox{…}``, ordered by their start.

    Boxes and braces may be nested, boxes in up to 64 braces. A box may also hold a token without them: ``\boxed 5``.

    >>> boxes(r"\boxed{1}, \boxed{\frac{1}{2}}, \boxed 3 and \boxed{never closed")
    ['1', '\\frac{1}{2}', '3']
    """
    return [text[start:end] for start, end in _box_spans(text) if end >= 0]


def _box_spans(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the content of each box, ordered; the end is -1 for a box that is cut off."""
    # Return offsets and not strings, because the contents of 30,000 nested boxes would take gigabytes.
    found: list[tuple[int, int]] = []
    stack: list[int | None] = []  # for each open brace: offset of the box's content, or None for a plain brace
    for match in _MARKS.finditer(text):
        mark = match.group()
        if match.lastgroup is not None:
            found.append(match.span("bare") if match.lastgroup == "bare" else (match.end(), -1))
        elif mark == "}":
            start = stack.pop() if stack else None
            if start is not None:
                found.append((start, match.start()))
        elif mark == "{":
            stack.append(None)
        elif len(mark) > 2:
            stack.append(match.end() if len(stack) < 64 else None)  # all contents would take quadratic memory
    return sorted([*found, *((start, -1) for start in stack if start is not None)])


def tidied(content: str) -> str:
    r"""Return the content of a box without text commands, brackets, quotes and a final full stop; arrows become "to".

    >>> [tidied(content) for content in (r"\text{5}", "Up.", "reveal (0, 1)", r"A \to C")]
    ['5', 'Up', 'reveal  0, 1', 'A  to  C']
    """
    plain = _ARROW.sub(" to ", _unstyled(content))
    return _DECORATION.sub(" ", plain).strip().removesuffix(".").replace("\u2212", "-")


def last_boxed(text: str, pattern: re.Pattern[str] | None = None) -> str | None:
    r"""Return the content of the last ``\boxed{…}`` or ``\fbox{…}``, or None if there is none or it is cut off.

    Boxes inside ``<think>…</think>`` do not count (see outside_thinking()); ``\boxed 5`` holds one token.

    With a pattern, closed boxes whose content the pattern does not fully match are ignored. The pattern is matched with
    the content as written and, if it has at most 200 characters, tidied(); the content that matches is returned.

    >>> last_boxed(r"not \boxed{up} but \boxed{left}"), last_boxed(r"\boxed{up}, no, \boxed{le")
    ('left', None)
    >>> last_boxed(r"\boxed{\text{Up.}}", re.compile("[a-zA-Z]+"))
    'Up'
    """
    plain = _PLAIN_BOX.match(text, text.rfind("box") - 1)
    if plain is not None and "<" not in text and (pattern is None or pattern.fullmatch(plain[1])):
        return plain[1]  # fast path: the last box is simple, so the braces of the text need not be matched
    text = outside_thinking(text)
    for start, end in reversed(_box_spans(text)):
        if end < 0:
            return None
        if pattern is None or pattern.fullmatch(text, start, end):
            return text[start:end]
        if end - start <= _LONGEST_TIDIED and pattern.fullmatch(content := tidied(text[start:end])):
            return content
    return None


def last_boxed_int(text: str) -> int | None:
    r"""Return the integer in the last ``\boxed{…}`` that contains only an integer, or None if there is no such box.

    An integer has at most 18 ASCII digits, and may have a sign and surrounding whitespace. See last_boxed() for boxes
    that do not count, and tidied() for what may surround the integer.

    >>> last_boxed_int(r"\boxed{7} then \boxed{ \text{0}. }"), last_boxed_int("7")
    (0, None)
    """
    plain = _INTEGER_BOX.match(text, text.rfind("box") - 1)
    content = plain[1] if plain is not None and "<" not in text else last_boxed(text, _INTEGER)
    return None if content is None else int(content)


def readings(answer: str) -> list[str]:
    r"""Return an answer as written and then, where they differ, as plain text: what LaTeX and Markdown show.

    Styles such as ``\text{…}`` and ``**…**``, dollar signs and a final full stop are removed; escaped characters and
    operators are written as in ASCII or as in Unicode. A command that is not known stays as it is.

    >>> readings("True"), readings(r"\text{True}."), readings(r"3 \times x^{2}")[1:]
    (['True'], ['\\text{True}.', 'True.', 'True'], ['3 * x**2', '3 × x**2'])
    """
    forms = plain_forms(answer)
    ends = [inner for form in forms or [answer] for inner in _without_ends(form)]
    return list(dict.fromkeys(each for each in (answer, *forms, *ends) if each))


def plain_forms(text: str) -> list[str]:
    r"""Return a LaTeX text without styles, in ASCII and in Unicode; no texts if it has nothing of LaTeX or is too long.

    >>> plain_forms(r"\text{a\_b} \leq \frac{x+1}{2}")
    ['a\\_b \\leq \\frac{x+1}{2}', 'a_b <= ((x+1)/2)', 'a_b ≤ ((x+1)/2)']
    """
    if len(text) > _LONGEST or not _LATEX.search(text):
        return []
    try:
        return [_unstyled(text), _Plain(text, 0).text(), _Plain(text, 1).text()]
    except _TooDeep:
        return [_unstyled(text)]


def last_tagged(text: str, tag: str) -> str | None:
    """Return the content of the last closed ``<tag>…</tag>`` without surrounding whitespace.

    If the tags are nested, only the innermost tag counts. Returns None if there is no closed tag outside of thinking;
    see outside_thinking().

    >>> last_tagged("<answer>4</answer> no: <answer> 5 </answer>", "answer")
    '5'
    """
    found, start, text = None, None, outside_thinking(text)
    for match in re.finditer(f"<(/?){re.escape(tag)}>", text):
        if not match[1]:
            start = match.end()
        elif start is not None:
            found, start = text[start : match.start()], None
    return None if found is None else found.strip()


def first_tagged(text: str, tag: str) -> tuple[str, int] | None:
    """Return the text between the first ``<tag>`` and the next ``</tag>``, and the offset after ``</tag>``.

    Returns None if the first ``<tag>`` is not closed or does not exist.

    >>> first_tagged("so <python>1+1</python> and more", "python")
    ('1+1', 23)
    """
    start = text.find(f"<{tag}>")
    if start < 0:
        return None
    close = text.find(f"</{tag}>", start)
    return None if close < 0 else (text[start + len(tag) + 2 : close], close + len(tag) + 3)


def code_blocks(text: str, language: str | None = None) -> list[CodeBlock]:
    r"""Return the closed fenced code blocks of a Markdown text. With ``language``, other blocks are left out.

    >>> [block.code for block in code_blocks("```python\nprint(1)\n```\n", "python")]
    ['print(1)\n']
    """
    return [block for _, block in placed_code_blocks(text) if language is None or block.language == language]


def placed_code_blocks(text: str) -> list[tuple[int, CodeBlock]]:
    """Return (offset of the opening fence, block) for each closed fenced code block."""
    blocks: list[tuple[int, CodeBlock]] = []
    opened: tuple[str, str, int, int] | None = None  # fence, language, offset of the fence, offset of the code
    position = 0
    for line in text.split("\n"):
        end = position + len(line)
        fence, word = _fence(line)
        if opened is None:
            if fence:
                opened = (fence, word.lower(), text.index(fence, position), end + 1)
        elif fence.startswith(opened[0]) and not word:
            blocks.append((opened[2], CodeBlock(opened[1], text[opened[3] : position], end)))
            opened = None
        position = end + 1
    return blocks


def _fence(line: str) -> tuple[str, str]:
    """Return the code fence at the start of a line and the word after the fence; ("", "") if there is no fence."""
    line = line.strip(" \t\r")
    rest = line.lstrip(line[:1]) if line[:1] in ("`", "~") else line
    fence = line[: len(line) - len(rest)]
    if len(fence) < 3 or (fence[0] == "`" and "`" in rest):
        return "", ""
    return fence, (rest.split(maxsplit=1) or [""])[0]


def _unstyled(text: str) -> str:
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


def _without_ends(text: str) -> list[str]:
    """Return a text without surrounding Markdown and dollar signs and a final full stop, one less at a time.

    >>> _without_ends("**It rains.**"), _without_ends("4")
    (['It rains.', 'It rains'], [])
    """
    found: list[str] = []
    while len(found) < _MOST_ENDS:
        inner = text.removesuffix(".")
        for opening, closing in _ENDS:
            if inner == text and text.startswith(opening) and text.endswith(closing) and len(text) > 2 * len(opening):
                inner = text[len(opening) : -len(closing)]
        if inner == text:
            break
        text = inner.strip()
        found.append(text)
    return found


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
        text = _JOINED.sub(" ", "".join(lone.groups()) if lone else text).translate(_TO_BRACKETS)
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
