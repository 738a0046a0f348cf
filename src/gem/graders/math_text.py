"""LaTeX and plain text of an answer in mathematics, brought to one spelling."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from gem.graders.math_words import bare

_GREEK = {
    **{"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "θ": "theta", "λ": "lambda", "μ": "mu"},
    **{"π": "pi", "ρ": "rho", "σ": "sigma", "φ": "phi", "ω": "omega", "Δ": "Delta", "Ω": "Omega"},
}
_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("−–‐‑﹣", "-"),
        **dict.fromkeys("·⋅∙", r"\cdot "),
        **dict.fromkeys("\u00a0\u2009\u202f\u2002\u2003", " "),
        **dict.fromkeys("\u200b\u200c\u2060\ufeff", ""),
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full width
        "×": r"\times ",
        "÷": "/",
        "∞": r"\infty ",
        "∛": r"\sqrt[3]",
        "√": r"\sqrt ",
        "≤": r"\le ",
        "≥": r"\ge ",
        "≠": r"\ne ",
        "≈": r"\approx ",
        "≡": r"\equiv ",
        "∪": r"\cup ",
        "∈": r"\in ",
        "∅": r"\emptyset ",
        "∠": r"\angle ",
        "ℝ": r"\mathbb{R}",
        "°": r"^\circ ",
        "±": r"\pm ",
        "′": "'",
        "″": "''",
        "…": "...",
        "⟨": r"\langle ",
        "⟩": r"\rangle ",
        **{letter: rf"\{name} " for letter, name in _GREEK.items()},
    }
)
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
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
        (r"\\(?:mathrm|text(?:rm|bf|it|sf|tt|normal)|mathbf|mathit|mbox|mathsf|operatorname|rm)(?=\s*\{)", r"\\text"),
        (r"\\text\{\s*([^a-zA-Z{}\\]*)\s*\}", r"\1"),
        (r"\^\\circ\s*(?:\\text\{\s*([CF])\s*\}|([CF])(?![a-zA-Z]))", r"\\text{ degrees \1\2}"),
        (r"(?i)\\text\{ degrees C\}|\bdegrees? celsius\b", r"\\text{ celsius}"),
        (r"(?i)\\text\{ degrees F\}|\bdegrees? fahrenheit\b", r"\\text{ fahrenheit}"),
        (r"\\text\{([^{}]*)\}\s*/\s*\\text\{([^{}]*)\}", r"\\text{\1/\2}"),
        (r"\\frac\{\\text\{([^{}]*)\}\}\{\\text\{([^{}]*)\}(\^\{?[23]\}?)?\}", r"\\text{\1/\2}\3"),
        (r"\{([^{}]*)\\over(?![a-zA-Z])([^{}]*)\}", r"\\frac{\1}{\2}"),
        (r"\{([^{}]*)\\choose(?![a-zA-Z])([^{}]*)\}", r"\\binom{\1}{\2}"),
        (r"^([^{}]*)\\choose(?![a-zA-Z])([^{}]*)$", r"\\binom{\1}{\2}"),
        (r"\\[dt]binom(?![a-zA-Z])", r"\\binom"),
        (r"\\(?:text)?color\s*\{\w+\}", ""),
        (r"\\underline(?=\s*\{)", ""),
        (r"\\text\{\s*(?:for )?(?:all|any|every)(?: real)?\s*\}(?=\s*\w)", ""),
        (r"\\colon(?![a-zA-Z])", ":"),
        (r"\\lg(?![a-zA-Z])", r"\\log_{10}"),
        (r"\\mathbb\s*R|\\mathbb\s*\{\s*R\s*\}|\\R(?![a-zA-Z])", r"\\mathbb{R}"),
        (r"\\p?mod\s*\{?\s*(\w+)\s*\}?|\bmod\s+(\d+)", r"\\pmod{\1\2}"),
        (r"(?<=\d)\s*[xX]\s*(?=10\s*\^)", r"\\cdot "),
        (r"\^\s*(-?\d{2,}|-\d)", r"^{\1}"),
        (r"(?<=\d)\^\{?[oO]\}?(?![a-zA-Z0-9])", r"^\\circ "),
        (r"\\(?:approx|simeq|doteq)(?![a-zA-Z])", "="),
        (r"\+/-|\+\\?/\\?-|(?:^|(?<=[=,(]))\s*\+-", r"\\pm "),
        (r"\\(?:lbrace)(?![a-zA-Z])", r"\\{"),
        (r"\\(?:rbrace)(?![a-zA-Z])", r"\\}"),
        (r"\\(?:varnothing)(?![a-zA-Z])", r"\\emptyset "),
        (r"\\(?:ast|times)(?![a-zA-Z])|\*(?!\*)(?<!\*\*)", r"\\cdot "),
        (r"\*\*", "^"),
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
_DMS = re.compile(r"(?<![\d.])(\d{1,3})\s*\^\\circ\s*(\d{1,2})\s*'(?!')(?:\s*(\d{1,2})\s*(?:\"|''))?")
_PLAIN = re.compile(r"-?(?:\d{1,3}|\d{4,30})(?:\.\d{1,30})?|[a-zA-Z]", re.ASCII)
_INLINE = re.compile(r"(?<!\\)\$([^$\s](?:[^$]*[^$\s])?)\$(?!\d)")  # $5$ cm, and not $5 and $6
_WRAPPERS = [("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")]
_GROUPED = re.compile(r"(?<![\d.])(\d{1,3})((?:(?:,\\!|,|\{,\}|\s*\\[,!;:]\s*)\d{3})+)(?![\d,])")


@lru_cache(maxsize=2048)
def clean(text: str) -> str:
    r"""One spelling for what LaTeX and Unicode write in several ways; the meaning is untouched.

    >>> clean(r"$\left( \dfrac12,\; 1{,}000 \right).$")
    '(\\frac{1}{2}, 1000)'
    """
    text = text.strip()
    if _PLAIN.fullmatch(text):
        return text
    text = _unwrap(bare(_ascii(text)))
    text = _GROUPED.sub(
        lambda m: m.group(1) + re.sub(r"\D", "", m.group(2)) if _is_one_number(m, text) else m.group(), text
    )
    text = _INLINE.sub(r"\1", text).replace(r"\,", " ").replace("{,}", ",").replace(r"\!", "")
    for pattern, replacement in _SPELLINGS:
        text = pattern.sub(replacement, text)
    text = _DMS.sub(_degrees, _bare_arguments(text))
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\s*([,(){}\[\]=<>/^_+])\s*", r"\1", text) if "\\text" not in text else text
    text = re.sub(r",(?=\S)", ", ", text).lstrip("= ")
    text = re.sub(r"^([a-zA-Z])\)$", r"\1", text)  # the choice a)
    return _unwrap(re.sub(r"(?<=\S)[,;]$|(?<![.\d])\.$|(?<=[\d})\]a-zA-Z%])\.$", "", text.strip()))


def _ascii(text: str) -> str:
    """Without the characters for which LaTeX has words."""
    if text.isascii():
        return text
    text = re.sub(f"[{_VULGAR}]", lambda m: _fraction(unicodedata.normalize("NFKC", m.group())), text)
    text = re.sub(f"[{''.join(_RAISED)}]+", lambda m: f"^{{{''.join(_RAISED[c] for c in m.group())}}}", text)
    text = re.sub(f"[{''.join(_LOWERED)}]+", lambda m: f"_{{{''.join(_LOWERED[c] for c in m.group())}}}", text)
    return text.translate(_CHARACTERS)


def _fraction(text: str) -> str:
    top, _, bottom = text.partition("\u2044")
    return rf"\frac{{{top}}}{{{bottom}}}"


def _degrees(match: re.Match[str]) -> str:
    """15° 30' as a fraction of degrees."""
    degrees, minutes, seconds = (int(part or 0) for part in match.groups())
    return rf"\frac{{{3600 * degrees + 60 * minutes + seconds}}}{{3600}}^\circ "


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
                and opening not in inner.replace(r"\$", "")
                and not inner.endswith("\\")
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
    text = re.sub(r"\\sqrt\s*(\[\d\])?\s*([0-9a-zA-Z])", r"\\sqrt\1{\2}", text)
    text = re.sub(r"([_^])\{(\w)\}", r"\1\2", text)
    text = re.sub(r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\\a-zA-Z])sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\\a-zA-Z])(pi|sin|cos|tan|log|ln|exp|infty)(?![a-zA-Z])", r"\\\1 ", text)
    text = re.sub(r"(?<![\\a-zA-Z])infinity(?![a-zA-Z])", r"\\infty ", text)
    return re.sub(r"\^\(([^()]*)\)", r"^{\1}", text)


def split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators (a regular expression) that stand in no bracket.

    >>> split("1, (2, 3), 4", ",")
    ['1', '(2, 3)', '4']
    """
    return [part for part, _ in cut(text, separator)]


def cut(text: str, separator: str) -> list[tuple[str, str]]:
    """split(), each part with the separator that follows it; "" follows the last."""
    pattern = re.compile(separator)
    parts, depth, start, i = list[tuple[str, str]](), 0, 0, 0
    while i < len(text):
        if text.startswith("\\{", i) or text.startswith("\\}", i):
            depth += 1 if text[i + 1] == "{" else -1
            i += 2
            continue
        depth += (text[i] in "({[") - (text[i] in ")}]") if not _is_angle(text, i) else _is_angle(text, i)
        match = pattern.match(text, i) if depth == 0 else None
        if match is not None and match.end() > i:
            parts.append((text[start:i].strip(), match.group()))
            start = i = match.end()
        else:
            i += 1
    return [*parts, (text[start:].strip(), "")]


def _is_angle(text: str, i: int) -> int:
    r"""1 where \langle begins, -1 where \rangle does."""
    return text.startswith("\\langle", i) - text.startswith("\\rangle", i)
