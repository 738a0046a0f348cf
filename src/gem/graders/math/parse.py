"""Parse the LaTeX of a formula into a sympy object, the only file that uses latex2sympy2_extended."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

from gem._internal.text import short_repr
from gem.errors import BadValue, require

MAX_DIGITS = 100_000  # digits of the integers in a formula, in total
_ODD_ROOT = re.compile(r"\\sqrt\[(\d*[13579])\]\{-(\d+(?:\.\d+)?)\}")  # real root of a negative number
_PRIME = re.compile(r"(?<![\\a-zA-Z])([a-zA-Z])('+)")  # the parser drops primes
_PRODUCT = re.compile(  # the parser reads \pi(2) as a function of 2, and 2\binom{3}{1} and (4)(2) as mixed numbers
    r"(?:\\pi|(?<![a-zA-Z\\])i)(?=\s*\()|(?<=[\d})])\s*(?=\\binom)|(?<=[\d)])(?<![_^]\d)\s*(?=\{*\([\d(])"
)
_BRACED = re.compile(r"(?<![\\\w}\]^_])\{(\d+)\}")  # {3}{(2)} is a product, not a mixed number
_GAMMA = re.compile(r"\\Gamma\s*\(((?:[^()]|\([^()]*\))*)\)")
_WORD_TIMES_ZERO = re.compile(  # "not 0" is not the product of n, o, t and 0
    r"(?<![\\a-zA-Z])[a-zA-Z]{2,}(?:\s+|(?<=[a-zA-Z]{3}))0(?:\.0*)?(?![\d.])|(?<![\d.])0(?:\.0*)?\s+[a-zA-Z]{2,}"
)
_DROPPED = re.compile(
    r"[\d)}]'|\d_|\)(?:\^(?:\w|\{[^{}]*\}))?_\{?\d|\d\^\{[^{}]*\}_"
)  # the parser drops primes and bases
_DOUBLE = re.compile(
    r"(?:\((?:(?P<even>\d*[02468])(?P<letter>[a-z])\s*(?P<rest>[+-]\s*\d{1,2})?|(?P<inner>\d{1,3}))\)|(?P<number>\d{1,3}))!!(?!!)"
)
_DECIMAL = re.compile(r"(?<![\d.])(\d*)\.(\d+)(?![\d.])")
_DEGREES = re.compile(r"\{?(\d+(?:\.\d+)?)\}?\s*\^\\circ")


@lru_cache(maxsize=4096)
def parse(latex: str) -> Any:
    """Parse normalized LaTeX into a sympy object. Raises BadValue if the text is not a formula.

    Arithmetic is evaluated exactly; so are integrals, sums, products, limits and derivatives, if possible.
    """
    sympy = sympy_library()
    text = re.sub(r"\\(?:text|mathrm)\{([^{}]*)\}", r"\1", latex)
    text = _BRACED.sub(r"\1", text)
    text = _GAMMA.sub(r"(\1-1)!", text)
    text = _DOUBLE.sub(_double_factorial, text)
    text = _opaque_functions(text).replace(r"\Gamma", "G_{Gamma}")  # the parser reads both gammas as a number
    text = re.sub(r"\^\{?T\}?(?![a-zA-Z])", r"^{1\\cdot T}", text)  # the parser drops the exponent T
    if _DROPPED.search(text) or _WORD_TIMES_ZERO.search(text):
        raise BadValue(f"not a formula: {short_repr(latex, 80)}")
    text = _PRIME.sub(lambda m: f"{m.group(1)}_{{{'p' * len(m.group(2))}}}", text)
    text = _ODD_ROOT.sub(r"(-\\sqrt[\1]{\2})", text)
    text = re.sub(r"(\\to[^{}^]+)\^([+-])(?=\})", r"\1^{\2}", text)
    text = _PRODUCT.sub(r"\g<0>\\cdot ", text)
    text = _DEGREES.sub(r"{\1\\cdot\\frac{\\pi}{180}}", text)
    text = _DECIMAL.sub(_as_fraction, text)
    try:
        library = require("latex2sympy2_extended.latex2sympy2", extra="math")
        cased = library.ConversionConfig(lowercase_symbols=False)
        expression = library.latex2sympy(
            text, conversion_config=cased, normalization_config=None
        )  # keeps units and boxes
        imaginary = [symbol for symbol in expression.free_symbols if symbol.name == "i"]
        expression = expression.subs({symbol: sympy.I for symbol in imaginary})
        expression = expression.subs({s: sympy.Symbol(s.name) for s in expression.free_symbols})  # drop assumptions
        if isinstance(expression, sympy.Basic) and r"\lim" in text and not re.search(r"\^\{?\s*[+-]", text):
            expression = expression.replace(sympy.Limit, lambda f, x, to, _: sympy.Limit(f, x, to, _side(to)))
        if _digits(expression) > MAX_DIGITS:
            raise BadValue(f"a number with more than {MAX_DIGITS} digits")
        return expression.doit()
    except RecursionError as e:
        raise BadValue(f"not a formula: {short_repr(latex, 80)}") from e
    except Exception as e:  # the parser raises many types on malformed text
        raise BadValue(f"not a formula: {short_repr(latex, 80)} ({type(e).__name__})") from e


def _as_fraction(match: re.Match[str]) -> str:
    """Return a decimal number as an exact fraction; the parser reads it as a floating-point number."""
    return rf"{{\frac{{{int(match[1] + match[2])}}}{{{10 ** len(match[2])}}}}}"


def _side(to: Any) -> str:
    """Return the direction of a limit without a sign: from both sides, except at infinity."""
    return "+-" if to.is_finite else "+"


def _double_factorial(match: re.Match[str]) -> str:
    r"""Write (2n-1)!! as \frac{(2n)!}{2^n n!}, and 7!! as a number. The parser reads two factorials."""
    number = match["inner"] or match["number"]
    if number is not None:
        return str(math.prod(range(int(number), 0, -2)))
    rest = int((match["rest"] or "0").replace(" ", ""))
    odd = rest % 2
    half = rf"({int(match['even']) // 2}{match['letter']}+{(rest + odd) // 2})"
    return rf"\frac{{(2{half})!}}{{2^{{{half}}}{half}!}}" if odd else rf"(2^{{{half}}}{half}!)"


def _digits(expression: Any) -> float:
    """Return an upper estimate of the decimal digits of the integers that doit() computes for an expression."""
    if (
        not isinstance(expression, sympy_library().Basic)
        or expression.is_Symbol
        or not (expression.args or expression.is_Rational)
    ):
        return 0.0
    if expression.is_Rational:
        return math.log10(abs(expression.p) or 1) + math.log10(expression.q)
    total = sum(map(_digits, expression.args))
    if expression.is_Pow and expression.exp.is_number:
        exponent = expression.exp if _digits(expression.exp) < 10 else math.inf
        return _digits(expression.base) * max(1.0, abs(complex(exponent))) + total
    if expression.func.__name__ == "factorial" and expression.args[0].is_number:
        size = abs(complex(expression.args[0])) if total < 10 else math.inf
        return size * math.log10(size + 1)
    return total


def _opaque_functions(latex: str) -> str:
    r"""Replace f(…), and g(…) and h(…) of one of the variables n, t, x, y and z, by an unusual function.

    The parser reads f(x+1) as a product.
    """
    for match in re.finditer(r"\\[a-zA-Z]+|([fgh])(\^\{-1\}|'*)\(", latex):
        argument = match.group(1) and _argument(latex[match.end() :])
        if not argument or "," in argument:
            continue
        if match.group(1) != "f" and re.fullmatch(r"[^a-zA-Z\\]*([ntxyz])(?:[^a-zA-Z\\]|\1)*", argument) is None:
            continue
        shift = f"{'fgh'.index(match.group(1)) + 17}+{len(match.group(2))}"
        rest = _opaque_functions(latex[match.end() + len(argument) :])
        return rf"{latex[: match.start()]}\arctan({_opaque_functions(argument)}+\frac{{{shift}}}{{13}}{rest}"
    return latex


def _argument(text: str) -> str:
    """Return the text before the bracket that closes an argument; "" if no bracket closes it."""
    depth = 1
    for end, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[:end]
    return ""


@lru_cache(maxsize=1)
def sympy_library() -> Any:
    return require("sympy", extra="math")
