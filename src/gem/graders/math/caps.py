"""Limits on the size of a math answer. An answer over a limit is wrong without being evaluated."""

from __future__ import annotations

import ast
import contextlib
import re

MAX_CHARS = 3_000  # the longest reference answers in common datasets have a few hundred characters
MAX_TOKENS = 1_000  # words, numbers, LaTeX commands and other characters without spaces
MAX_OPERATORS = 300  # LaTeX commands and characters in "+-*/^_!|=<>"
MAX_DEPTH = 50  # nesting depth of brackets
MAX_DIGITS = 1_000  # digits of one number
MAX_EXPONENT = 10_000  # exponent of a number; 2^10000 can still be printed
MAX_POWER = 1_000  # exponent of any other base, such as a variable
MAX_TOWER = 5  # number of stacked exponents
MAX_FACTORIAL = 3_000  # argument of a factorial or binomial coefficient
_TOKEN = re.compile(r"\\?[a-zA-Z]+|\d+|\S")
_DOUBLE = re.compile(r"(?:\(\d*[02468][a-z](?:[+-]\d{1,2})?\)|(?<!\d)\d{1,3})!!(?!!)")  # double factorials
_OPERATOR = re.compile(r"\\[a-zA-Z]+|[-+*/^_!|=<>]")
_NUMERIC_BASE = re.compile(r"(?:\d|\([\d+*/.{}-]+\))\Z")  # ends in 2 or (2/3)
_ARITHMETIC = re.compile(r"[\d\s.+*/()-]*")
_BOLD = re.compile(r"(?:^|(?<=[\s:]))\*\*([^\s*](?:[^*]*[^\s*])?)\*\*(?=[\s.,;:]|$)")


def exceeded_cap(text: str) -> str | None:
    """Return a description of the size limit that a text exceeds (length, nesting, size of numbers), or None.

    An answer that exceeds a limit is graded wrong without being evaluated. The check takes linear time and reads at
    most MAX_CHARS characters.
    """
    if len(text) > MAX_CHARS:
        return f"longer than {MAX_CHARS} characters"
    if _depth(text) > MAX_DEPTH:
        return f"nested deeper than {MAX_DEPTH}"
    if re.search(rf"\d{{{MAX_DIGITS + 1}}}", text):
        return f"a number with more than {MAX_DIGITS} digits"
    flat = (
        re.sub(r"\\[,;:! ]|\s|\\left|\\right", "", _BOLD.sub(r"\1", text))
        .replace("**", "^")
        .replace(r"\cdot", "*")
        .replace(r"\times", "*")
    )
    end = 0
    for match in re.finditer(r"\^", flat):
        if match.start() < end:
            continue  # already checked as part of a tower of exponents
        exponent, height = _exponent(flat, match.end())
        if height > MAX_TOWER:
            return f"a tower of more than {MAX_TOWER} exponents"
        end = match.end() + len(exponent) if height > 1 else 0
        before = flat[max(0, match.start() - 60) : match.start()].replace(r"\frac", "")
        limit = MAX_EXPONENT if _NUMERIC_BASE.search(before) else MAX_POWER
        if any(number > limit for number in _magnitudes(exponent)):
            return f"an exponent above {limit}"
    for match in re.finditer(r"(?:\d+|\([^()]*\)|\{[^{}]*\})!|\\[dt]?binom(\{[^{}]*\}+)", flat):
        if any(number > MAX_FACTORIAL for number in _magnitudes(match.group(1) or match.group()[:-1])):
            return f"a factorial or binomial above {MAX_FACTORIAL}"
    if len(_TOKEN.findall(text)) > MAX_TOKENS:
        return f"more than {MAX_TOKENS} tokens"
    if len(_OPERATOR.findall(text)) > MAX_OPERATORS:
        return f"more than {MAX_OPERATORS} operators"
    return "a factorial of a factorial" if re.search(r"!\)*!", _DOUBLE.sub("0", flat)) else None


def _exponent(flat: str, start: int) -> tuple[str, int]:
    """Return the tower of exponents that begins at ``start``, and the height of the tower.

    For the first exponent in 9^9^9, the result is ("9^9", 2).
    """
    end, height = start + len(_group(flat, start)), 1
    while flat[end : end + 1] == "^" and height <= MAX_TOWER:
        end += 1 + len(_group(flat, end + 1))
        height += 1
    return flat[start:end], height


def _magnitudes(text: str) -> list[float]:
    """Return the approximate value of an arithmetic expression, or all integers in any other text."""
    expression = text.translate(str.maketrans("{}", "()")).replace("^", "**")
    if _ARITHMETIC.fullmatch(expression) is None:
        return [float(number) for number in re.findall(r"\d+", text)]
    try:
        return [_magnitude(ast.parse(expression, mode="eval").body)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [float(number) for number in re.findall(r"\d+", text)]


def _magnitude(node: ast.AST) -> float:
    """Return a rough estimate of the absolute value of an arithmetic expression. Raises ValueError for other syntax."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(min(node.value, 1e300))
    if isinstance(node, ast.UnaryOp):
        return _magnitude(node.operand)
    if isinstance(node, ast.BinOp):
        left, right = _magnitude(node.left), _magnitude(node.right)
        with contextlib.suppress(OverflowError):
            if isinstance(node.op, ast.Pow):
                return float(left**right)
            return left / right if isinstance(node.op, ast.Div) and right else left * right + left + right
        return float("inf")
    raise ValueError("not arithmetic")


def _group(text: str, start: int) -> str:
    """Return the argument that begins at ``start``: a bracketed group, an integer or one character."""
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
