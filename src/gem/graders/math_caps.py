"""What is looked at of an answer in mathematics: beyond these caps it is wrong, without being worked out."""

from __future__ import annotations

import ast
import contextlib
import re

MAX_CHARS = 3_000  # the longest gold answers of the usual data sets have a few hundred
MAX_DEPTH = 50  # of nested brackets
MAX_DIGITS = 1_000  # of one number
MAX_EXPONENT = 10_000  # of a number; 10_000 has the size of what still prints
MAX_POWER = 1_000  # of an expression with variables
MAX_TOWER = 5  # exponents raised on each other
MAX_FACTORIAL = 3_000
_ARITHMETIC = re.compile(r"[\d\s.+*/()-]*")


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
    end = 0
    for match in re.finditer(r"\^", flat):
        if match.start() < end:
            continue  # raised on the one before, with which it was looked at
        exponent, height = _exponent(flat, match.end())
        if height > MAX_TOWER:
            return f"a tower of over {MAX_TOWER} exponents"
        end = match.end() + len(exponent) if height > 1 else 0
        before = flat[match.start() - 1 : match.start()]
        limit = MAX_EXPONENT if before.isdigit() else MAX_POWER
        if any(number > limit for number in _numbers(exponent)):
            return f"an exponent beyond {limit}"
    for match in re.finditer(r"(?:\d+|\([^()]*\)|\{[^{}]*\})!|\\[dt]?binom(\{[^{}]*\}+)", flat):
        if any(number > MAX_FACTORIAL for number in _numbers(match.group(1) or match.group()[:-1])):
            return f"a factorial or binomial beyond {MAX_FACTORIAL}"
    return "a factorial of a factorial" if re.search(r"!\)*!", flat) else None


def _exponent(flat: str, start: int) -> tuple[str, int]:
    """The exponent that begins at start, with those raised on it, and their number: in 9^9^9 the text 9^9, and 2."""
    end, height = start + len(_group(flat, start)), 1
    while flat[end : end + 1] == "^" and height <= MAX_TOWER:
        end += 1 + len(_group(flat, end + 1))
        height += 1
    return flat[start:end], height


def _numbers(text: str) -> list[float]:
    """How large a text is as a number; where it is none, the numbers in it."""
    expression = text.translate(str.maketrans("{}", "()")).replace("^", "**")
    if _ARITHMETIC.fullmatch(expression) is None:
        return [float(number) for number in re.findall(r"\d+", text)]
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
