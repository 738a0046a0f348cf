"""LaTeX and plain text of an answer, brought to one spelling; and the caps on what is looked at."""

from __future__ import annotations

import ast
import contextlib
import re

MAX_CHARS = 3_000  # the longest gold answers of the usual data sets have a few hundred
MAX_DEPTH = 50  # of nested brackets
MAX_DIGITS = 1_000  # of one number
MAX_EXPONENT = 10_000  # of a number; 10_000 has the size of what still prints
MAX_POWER = 1_000  # of an expression with variables
MAX_FACTORIAL = 3_000

_CHARACTERS = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "×": r"\times ",
        "·": r"\cdot ",
        "÷": "/",
        "π": r"\pi ",
        "∞": r"\infty ",
        "√": r"\sqrt ",
        "≤": r"\le ",
        "≥": r"\ge ",
        "≠": r"\ne ",
        "∪": r"\cup ",
        "∈": r"\in ",
        "∅": r"\emptyset ",
        "°": r"^\circ ",
        "±": r"\pm ",
        "²": "^2",
        "³": "^3",
        "½": r"\frac{1}{2}",
        "¼": r"\frac{1}{4}",
        "¾": r"\frac{3}{4}",
        "θ": r"\theta ",
        "\u00a0": " ",
        "，": ",",
        "（": "(",
        "）": ")",
    }
)
_SPELLINGS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits|nolimits)(?![a-zA-Z])\.?", ""),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\(?:leq|leqslant|leqq)(?![a-zA-Z])", r"\\le "),
        (r"\\(?:geq|geqslant|geqq)(?![a-zA-Z])", r"\\ge "),
        (r"<=", r"\\le "),
        (r">=", r"\\ge "),
        (r"\\neq(?![a-zA-Z])|!=", r"\\ne "),
        (r"\\lt(?![a-zA-Z])", "<"),
        (r"\\gt(?![a-zA-Z])", ">"),
        (r"\\(?:lbrace)(?![a-zA-Z])", r"\\{"),
        (r"\\(?:rbrace)(?![a-zA-Z])", r"\\}"),
        (r"\\(?:varnothing)(?![a-zA-Z])", r"\\emptyset "),
        (r"\\(?:ast|times)(?![a-zA-Z])|\*(?!\*)(?<!\*\*)", r"\\cdot "),
        (r"\*\*", "^"),
        (r"\\(?:mathrm|textrm|textbf|textit|mathbf|mbox|mathsf|operatorname|rm)(?=\s*\{)", r"\\text"),
        (r"\\(?:degree|degrees)(?![a-zA-Z])", r"^\\circ "),
        (r"\^\s*\{\s*\\circ\s*\}", r"^\\circ "),
        (r"\\(?:ldots|cdots|dots)(?![a-zA-Z])", "..."),
        (r"(?<!\\)\\(?:qquad|quad|hspace\{[^}]*\}|[;:! ])", " "),
        (r"\\(?:div)(?![a-zA-Z])", "/"),
        (r"\\%", "%"),
        (r"\\cap(?![a-zA-Z])", r"\\cap "),
        (r"~", " "),
    ]
]
_WRAPPERS = [("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")]
_GROUPED = re.compile(r"(?<![\d.])(\d{1,3})((?:(?:,|\\,|\{,\}|\s*\\,\s*)\d{3})+)(?![\d,])")


def over_caps(text: str) -> str | None:
    """Why a text is not looked at: its length, its nesting, or numbers too large to work out. None where it may be.

    Costs time in proportion to the length, at most MAX_CHARS of it.
    """
    if len(text) > MAX_CHARS:
        return f"longer than {MAX_CHARS} characters"
    if _depth(text) > MAX_DEPTH:
        return f"nested deeper than {MAX_DEPTH}"
    if re.search(rf"\d{{{MAX_DIGITS + 1}}}", text):
        return f"a number of over {MAX_DIGITS} digits"
    flat = (
        re.sub(r"\\[,;:! ]|\s|\\left|\\right", "", text)
        .replace("**", "^")
        .replace(r"\cdot", "*")
        .replace(r"\times", "*")
    )
    for match in re.finditer(r"\^", flat):
        before = flat[match.start() - 1 : match.start()]
        limit = MAX_EXPONENT if before.isdigit() else MAX_POWER
        if any(number > limit for number in _numbers(_exponent(flat, match.end()))):
            return f"an exponent beyond {limit}"
    for match in re.finditer(r"(?:\d+|\([^()]*\)|\{[^{}]*\})!|\\[dt]?binom(\{[^{}]*\}+)", flat):
        if any(number > MAX_FACTORIAL for number in _numbers(match.group(1) or match.group()[:-1])):
            return f"a factorial or binomial beyond {MAX_FACTORIAL}"
    return "a factorial of a factorial" if re.search(r"!\)*!", flat) else None


def _exponent(flat: str, start: int) -> str:
    """The exponent that begins at start, with those raised on it: in 9^9^9 the text 9^9."""
    end = start + len(_group(flat, start))
    while flat[end : end + 1] == "^":
        end += 1 + len(_group(flat, end + 1))
    return flat[start:end]


def _numbers(text: str) -> list[float]:
    """How large a text is as a number; where it is none, the numbers in it."""
    expression = text.translate(str.maketrans("{}", "()")).replace("^", "**")
    try:
        return [_size(ast.parse(expression, mode="eval").body)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [float(number) for number in re.findall(r"\d+", text)]


def _size(node: ast.AST) -> float:
    """A float as large as the number that an expression stands for. Raises ValueError where it stands for none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(min(node.value, 1e300))
    if isinstance(node, ast.UnaryOp):
        return _size(node.operand)
    if isinstance(node, ast.BinOp):
        left, right = _size(node.left), _size(node.right)
        with contextlib.suppress(OverflowError):
            if isinstance(node.op, ast.Pow):
                return float(left**right)
            return left / right if isinstance(node.op, ast.Div) and right else left * right + left + right
        return float("inf")
    raise ValueError("no number")


def _group(text: str, start: int) -> str:
    """The argument that begins at start: a bracketed group, or one sign, or a number."""
    if start < len(text) and text[start] in "{(":
        close = {"{": "}", "(": ")"}[text[start]]
        depth = 0
        for end in range(start, len(text)):
            depth += (text[end] == text[start]) - (text[end] == close)
            if depth == 0:
                return text[start : end + 1]
        return text[start:]
    match = re.compile(r"-?\d+|.", re.DOTALL).match(text, start)
    return match.group() if match else ""


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        if character in "{([":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "})]":
            depth -= 1
    return deepest


def clean(text: str) -> str:
    r"""One spelling for what LaTeX and Unicode write in several ways; the meaning is untouched.

    >>> clean(r"$\left( \dfrac12,\; 1{,}000 \right).$")
    '(\\frac{1}{2}, 1000)'
    """
    text = text.strip().translate(_CHARACTERS)
    text = _unwrap(text)
    text = _GROUPED.sub(
        lambda m: m.group(1) + re.sub(r"\D", "", m.group(2)) if _is_one_number(m, text) else m.group(), text
    )
    text = text.replace(r"\,", " ").replace("{,}", ",")
    for pattern, replacement in _SPELLINGS:
        text = pattern.sub(replacement, text)
    text = _bare_arguments(text)
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\s*([,(){}\[\]=<>/^_+])\s*", r"\1", text) if "\\text" not in text else text
    text = re.sub(r",(?=\S)", ", ", text)
    return _unwrap(re.sub(r"(?<![.\d])\.$|(?<=[\d})\]a-zA-Z%])\.$", "", text.strip()))


def _is_one_number(match: re.Match[str], text: str) -> bool:
    """Whether 1,234 is a number: not inside brackets, where (1,234) is a pair, unless the comma is no plain one."""
    if "," not in match.group(2).replace(r"\,", "").replace("{,}", ""):
        return True
    before = text[: match.start()]
    return all(before.count(a) <= before.count(b) for a, b in ("()", "[]")) and r"\{" not in before


def _unwrap(text: str) -> str:
    """Without dollar signs, boxes and text marks that enclose the whole."""
    while True:
        text = text.strip()
        for opening, closing in _WRAPPERS:
            inner = text[len(opening) : -len(closing)]
            if (
                text.startswith(opening)
                and text.endswith(closing)
                and len(text) > len(opening)
                and opening not in inner
            ):
                text = inner
                break
        else:
            match = re.fullmatch(r"\\(?:boxed|fbox|mathbf|displaystyle)\s*\{(.*)\}", text, re.DOTALL)
            if match is None or _depth_breaks(match.group(1)):
                return text
            text = match.group(1)


def _depth_breaks(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return True
    return False


def _bare_arguments(text: str) -> str:
    r"""With braces around the arguments that LaTeX takes without: \frac12, \sqrt2, x^10 stays x^1 0 as LaTeX has it."""
    text = re.sub(r"\\frac\s*([0-9a-zA-Z])\s*([0-9a-zA-Z])", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\frac\s*([0-9a-zA-Z])\s*\{", r"\\frac{\1}{", text)
    text = re.sub(r"(\\frac\{[^{}]*\})\s*([0-9a-zA-Z])", r"\1{\2}", text)
    text = re.sub(r"\\sqrt\s*([0-9a-zA-Z])", r"\\sqrt{\1}", text)
    text = re.sub(r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\\a-zA-Z])sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\\a-zA-Z])(pi|sin|cos|tan|log|ln|exp)(?![a-zA-Z])", r"\\\1 ", text)
    return re.sub(r"\^\(([^()]*)\)", r"^{\1}", text)


def split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators (a regular expression) that stand in no bracket.

    >>> split("1, (2, 3), 4", ",")
    ['1', '(2, 3)', '4']
    """
    pattern = re.compile(separator)
    parts, depth, start, i = [], 0, 0, 0
    while i < len(text):
        if text.startswith("\\{", i) or text.startswith("\\}", i):
            depth += 1 if text[i + 1] == "{" else -1
            i += 2
            continue
        depth += (text[i] in "({[") - (text[i] in ")}]")
        match = pattern.match(text, i) if depth == 0 else None
        if match is not None and match.end() > i:
            parts.append(text[start:i].strip())
            start = i = match.end()
        else:
            i += 1
    return [*parts, text[start:].strip()]
