"""Normalize the text of a math answer: remove prose, quotes and boxes around it, unify LaTeX and Unicode notations.

`clean` applies the rules in a fixed order; `gem.graders.math.read` parses its result.
"""

from __future__ import annotations

import re
import unicodedata

from gem.graders.math.split import closes_early
from gem.parsing import boxes

_PROSE = re.compile(
    r"(?:(?:so|thus|hence|therefore|finally)\b,?\s*)?(?:the|my|our)?\s*(?:final|correct|right)?\s*(?<![a-z])answer"
    r"\s*(?:is|[:=])\s*:?\s*|(?:\\text\s*\{\s*)?there (?:are|is)(?: exactly)?\s*(?:\}|(?=[\s$]))\s*",
    re.IGNORECASE,
)
_MARKED_PROSE = re.compile(rf"^\$?\\(?:text|mathrm|mbox)\s*\{{\s*(?:{_PROSE.pattern})\}}\s*", re.IGNORECASE)
_QUOTES = (("**", "**"), ("__", "__"), ("`", "`"), ('"', '"'), ("“", "”"), ("‘", "’"))
_BOX_ALONE = re.compile(r"(?P<before>[$\s]*(?:\\?[a-zA-Z]\w{0,3}(?:\([a-z]\))?\s*=\s*)?)\\(?:boxed|fbox)\s*\{")
_UNIT_AFTER = re.compile(
    r"[$\s.]*(?:\\?%|\^.{0,8}|(?:\\[ ,;~])?\s*(?:\\(?:text|mathrm)\s*\{[^{}]{0,30}\}|[a-zA-Z/]{1,12}).{0,6})?[$\s.]*"
)
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
_FOR_ALL = (  # for all real x, at the end
    r"(?<=\S)[\s,]*(?:\\forall|(?:\\text\s*\{\s*)?for (?:all|any|every)(?: real)?(?: numbers?)?\s*\}?)"
    r"\s*(?<![a-z])[a-z](?:\s*\\in\s*(?:\\mathbb\s*\{?R\}?|\\R))?\s*\}?$"
)
_SPELLINGS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r"\\\\\s*\[\s*-?[\d.]+\s*(?:pt|em|ex|mm|cm|in|mu)\s*\]", r"\\\\"),
        (r"\\(?:left|right|middle|[bB]igg?[lr]?|displaystyle|textstyle|limits|nolimits)(?![a-zA-Z])\.?", ""),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\[lr]?vert(?![a-zA-Z])", "|"),
        (r"\\[lr]Vert(?![a-zA-Z])", r"\\|"),
        (r"\\textdollar(?![a-zA-Z])\s*(?:\{\})?\s*", r"\\$"),
        (r"\\(?:texteuro|euro)(?![a-zA-Z])\s*(?:\{\})?\s*", "€"),
        (r"\\(?:textsterling|pounds)(?![a-zA-Z])\s*(?:\{\})?\s*", "£"),
        (r"\\text\s*\{\s*(?:US|USD)?\s*\\?\$\s*\}\s*(?=\d)|^(?:US|USD)\s*\\?\$\s*(?=\d)", r"\\$"),
        (r"\\text\s*\{\s*USD\s*\}\s*(?=\d)|(?<![a-zA-Z])USD\s*(?=\d)", r"\\$"),
        (r"\\text\s*\{\s*EUR\s*\}\s*(?=\d)", "€"),
        (r"\\text\s*\{\s*([€£¥₹])\s*\}\s*(?=\d)", r"\1"),
        (r"\\\{\s*\\begin\{array\}\s*\{[lcr| ]*\}(.*?)\\end\{array\}(?!\s*\\\})", r"\\begin{cases}\1\\end{cases}"),
        (r"\\(?:leq|leqslant|leqq)(?![a-zA-Z])", r"\\le "),
        (r"\\(?:geq|geqslant|geqq)(?![a-zA-Z])", r"\\ge "),
        (r"<=", r"\\le "),
        (r">=", r"\\ge "),
        (r"\\neq(?![a-zA-Z])|!=", r"\\ne "),
        (r"^\\text\{\s*either\s*\}(?=.*\bor\b)|^either\b\s*(?=.*\bor\b)", ""),
        (r"^\\text\{\s*either\b\s*(?=.*\bor\b)", r"\\text{"),
        (r"\\lt(?![a-zA-Z])", "<"),
        (r"\\gt(?![a-zA-Z])", ">"),
        (r"\\(?:mathbf|boldsymbol|bm)\s*\{\s*([a-hl-z])\s*\}", r"\1"),  # not the vectors i, j, k
        (r"\\(?:mathrm|text(?:rm|bf|it|sf|tt|normal)|mathbf|mathit|mbox|mathsf|operatorname|rm)(?=\s*\{)", r"\\text"),
        (r"\\text\{\s*([^a-zA-Z{}\\]*)\s*\}", r"\1"),
        (r"\^\\circ\s*(?:\\text\{\s*([CF])\s*\}|([CF])(?![a-zA-Z]))", r"\\text{ degrees \1\2}"),
        (r"(?i)\\text\{\s*degrees? (?:C|celsius)\s*\}|\bdegrees? celsius\b", r"\\text{ celsius}"),
        (r"(?i)\\text\{\s*degrees? (?:F|fahrenheit)\s*\}|\bdegrees? fahrenheit\b", r"\\text{ fahrenheit}"),
        (r"\\text\{([^{}]*)\}\s*/\s*\\text\{([^{}]*)\}", r"\\text{\1/\2}"),
        (r"\\frac\{\\text\{([^{}]*)\}\}\{\\text\{([^{}]*)\}(\^\{?[23]\}?)?\}", r"\\text{\1/\2}\3"),
        (r"\{([^{}]*)\\over(?![a-zA-Z])([^{}]*)\}", r"\\frac{\1}{\2}"),
        (r"\{([^{}]*)\\choose(?![a-zA-Z])([^{}]*)\}", r"\\binom{\1}{\2}"),
        (r"^([^{}]*)\\choose(?![a-zA-Z])([^{}]*)$", r"\\binom{\1}{\2}"),
        (r"\\[dt]binom(?![a-zA-Z])", r"\\binom"),
        (r"\\(?:text)?color\s*\{\w+\}", ""),
        (r"\\underline(?=\s*\{)", ""),
        (_FOR_ALL, ""),
        (r"\\text\{\s*(?:for )?(?:all|any|every)(?: real)?\s*\}(?=\s*\w)", ""),
        (r"\\colon(?![a-zA-Z])", ":"),
        (r"(?<=[a-zA-Z])\^\s*(?:\\(?:ast|star)(?![a-zA-Z])|\*|\{\s*(?:\\(?:ast|star)|\*)\s*\})(?![_\d(])", r"_{star}"),
        (r"\\log_(?:e(?![a-zA-Z])|\{e\})", r"\\ln "),
        (r"\^\{?(?:\\prime\s*){2}\}?", "''"),
        (r"\^(?:\\prime(?![a-zA-Z])|\{\\prime\})", "'"),
        (r"\\lnot(?![a-zA-Z])", r"\\neg "),
        (r"(?<=\d)(?:\\[ ,;])?\s*\\Omega$", r"\\text{ ohm}"),
        (r"\\lg(?![a-zA-Z])", r"\\log_{10}"),
        (r"\\mathbb\s*R|\\mathbb\s*\{\s*R\s*\}|\\R(?![a-zA-Z])", r"\\mathbb{R}"),
        (r"(\\mathbb\{R\})\s*(?:-|\\backslash)\s*(?=\\?[\[({])", r"\1\\setminus "),
        (r"\(\s*\\text\s*\{\s*mod\s*\}\s*(\d+)\s*\)", r"\\pmod{\1}"),
        (r"\\p?mod\s*\{?\s*(\w+)\s*\}?|\bmod\s+(\d+)", r"\\pmod{\1\2}"),
        (r"(?<=\d)\s*[xX]\s*(?=10\s*\^)", r"\\cdot "),
        (r"\^\s*(-?\d{2,}|-\d)", r"^{\1}"),
        (r"(?<=\d)\^\{?[oO]\}?(?![a-zA-Z0-9])", r"^\\circ "),
        (r"\\(?:approx|simeq|doteq)(?![a-zA-Z])", r"\\approx "),
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
        (r"\\bigcup(?![a-zA-Z])", r"\\cup "),
        (r"\{:\}", ":"),
        (r"(?<=[\d}\s])\\mu\s*\\text\s*\{\s*([a-zA-Z]+)", r"\\text{ u\1"),
        (r"\\text\s*\{\s*(?:\$?\\mu\s*\$?|\\textmu\s*)([a-zA-Z]+)", r"\\text{ u\1"),
        (r"(?<=\d)(\s*)\\mu\s*([mgslLFCAVJTHN])(?![a-zA-Z])", r"\1\\text{ u\2}"),
        (r"\\text\s*\{\s*k\s*\}\s*\\Omega(?![a-z])|(?<=\d)\s*k\s*\\Omega(?![a-z])", r"\\text{ kohm}"),
        (r"\\text\s*\{\s*M\s*\}\s*\\Omega(?![a-z])|(?<=\d)\s*M\s*\\Omega(?![a-z])", r"\\text{ Mohm}"),
        (r"~", " "),
        (r"\\equiv(?![a-zA-Z])(?!.*\\pmod)", "="),
        (_FOR_ALL, ""),
        (r"(?<=[\dA-F])\s*(?:\\text\s*\{\s*)?\(?(?:in )?base[- ](\d{1,2}|[a-z]+)\)?\s*\}?$", r"_{\1}"),
        (
            r"(?<![a-zA-Z])\\?(?:text\s*\{\s*)?cis(?![a-z])\s*\}?\s*"
            r"(?:\(([^()]*)\)|(\\frac\s*\{[^{}]*\}\s*\{[^{}]*\}|\d+\s*\^\\circ))",
            r"e^{i(\1\2)}",
        ),
    ]
]
_DMS = re.compile(r"(?<![\d.])(\d{1,3})\s*\^\\circ\s*(\d{1,2})\s*'(?!')(?:\s*(\d{1,2})\s*(?:\"|''))?")
_PLAIN = re.compile(r"-?(?:\d{1,3}|\d{4,30})(?:\.\d{1,30})?|[a-zA-Z]", re.ASCII)
_INLINE = re.compile(
    r"(?<!\\)\$([^$\s](?:[^$]*[^$\s])?)\$(?!\d)"
)  # matches $5$ in "$5$ cm", and nothing in "$5 and $6"
_WRAPPERS = [("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")]
_GROUPED = re.compile(r"(?<![\d.])(\d{1,3})((?:(?:,\\!|,|\{,\}|\s*\\[,!;:]\s*)\d{3})+)(?![\d,])")


def clean(text: str) -> str:
    r"""Rewrite equivalent LaTeX and Unicode notations to the same text, without changing the meaning.

    >>> clean(r"$\left( \dfrac12,\; 1{,}000 \right).$")
    '(\\frac{1}{2}, 1000)'
    """
    text = text.strip()
    if _PLAIN.fullmatch(text):
        return text
    text = _unwrap(strip_surroundings(_ascii(text))).replace(r"\text{,}", "{,}")
    text = _GROUPED.sub(
        lambda m: m.group(1) + re.sub(r"\D", "", m.group(2)) if _is_one_number(m, text) else m.group(), text
    )
    text = _INLINE.sub(r"\1", text).replace(r"\,", " ").replace("{,}", ",").replace(r"\!", "")
    for pattern, replacement in _SPELLINGS:
        text = pattern.sub(replacement, text)
    text = _DMS.sub(_degrees, _brace_arguments(text))
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\s*([,(){}\[\]=<>/^_+])\s*", r"\1", text) if "\\text" not in text else text
    text = re.sub(r",(?=\S)", ", ", text).lstrip("= ")
    text = re.sub(r"^(?:\\approx(?![a-zA-Z])|(?i:approximately|about|roughly)(?= [\d\\$.-]))\s*", "", text)
    text = re.sub(r"^([a-zA-Z])\)$", r"\1", text)  # the multiple-choice label a)
    return _unwrap(re.sub(r"(?<=\S)[,;]$|(?<![.\d])\.$|(?<=[\d})\]a-zA-Z%])\.$", "", text.strip()))


def strip_surroundings(text: str) -> str:
    r"""Remove the prose, quotes and boxes around an answer.

    If there are several boxes, only the contents of the last box are kept. If there is one box, a name before the box
    and a unit after the box are kept.

    >>> strip_surroundings(r"The answer is **12**."), strip_surroundings(r"x = \boxed{3}\text{ cm}")
    ('12', 'x = 3\\text{ cm}')
    >>> strip_surroundings(r"not \boxed{3} but \boxed{4}")
    '4'
    """
    text = _unbox(re.sub(r"\\(boxed|fbox)\s+([^\s{])", r"\\\1{\2}", text).strip())
    text = _MARKED_PROSE.sub("", text)
    if (prose := _PROSE.match(text)) is not None:
        text = text[prose.end() :]
        text = rf"\text{{{text}" if text.count("}") > text.count("{") else text  # \text{There are no solutions}
    while True:
        text = text.strip()
        for opening, closing in _QUOTES:
            end = re.fullmatch(rf"{re.escape(opening)}(.+?){re.escape(closing)}[.,]?", text, re.DOTALL)
            if end is not None and opening not in end.group(1):
                text = end.group(1)
                break
        else:
            return text


def _unbox(text: str) -> str:
    found = boxes(text.replace(r"\fbox", r"\boxed"))
    if not found:
        return text
    if len(found) == 1 and (start := _BOX_ALONE.match(text)) is not None:
        after = text[start.end() + len(found[0]) + 1 :]
        if len(after) <= 40 and _UNIT_AFTER.fullmatch(after):
            return f"{start.group('before')}{found[0]}{after}"
    return _unbox(found[-1])


def _ascii(text: str) -> str:
    """Replace Unicode symbols with ASCII characters or LaTeX commands."""
    if text.isascii():
        return text
    text = re.sub(r"√\s*(\d+(?:\.\d+)?)", r"\\sqrt{\1}", text)
    text = re.sub(f"[{_VULGAR}]", lambda m: _fraction(unicodedata.normalize("NFKC", m.group())), text)
    text = re.sub(f"[{''.join(_RAISED)}]+", lambda m: f"^{{{''.join(_RAISED[c] for c in m.group())}}}", text)
    text = re.sub(f"[{''.join(_LOWERED)}]+", lambda m: f"_{{{''.join(_LOWERED[c] for c in m.group())}}}", text)
    return text.translate(_CHARACTERS)


def _fraction(text: str) -> str:
    top, _, bottom = text.partition("\u2044")
    return rf"\frac{{{top}}}{{{bottom}}}"


def _degrees(match: re.Match[str]) -> str:
    """Convert an angle in degrees, minutes and seconds to a LaTeX fraction in degrees."""
    degrees, minutes, seconds = (int(part or 0) for part in match.groups())
    return rf"\frac{{{3600 * degrees + 60 * minutes + seconds}}}{{3600}}^\circ "


def _is_one_number(match: re.Match[str], text: str) -> bool:
    r"""Return whether digits separated by commas are one number.

    A plain comma inside brackets separates items, as in (1,234). The LaTeX separators {,} and \, always group digits.
    """
    if "," not in match.group(2).replace(r"\,", "").replace("{,}", ""):
        return True
    before = text[: match.start()]
    return all(before.count(a) <= before.count(b) for a, b in ("()", "[]")) and r"\{" not in before


def _unwrap(text: str) -> str:
    """Remove math delimiters (such as dollar signs), boxes and font commands that enclose the whole text."""
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
            if match is None or closes_early(match.group(1), "{", "}"):
                return text
            text = match.group(1)


def _brace_arguments(text: str) -> str:
    r"""Add optional braces (in \frac12 and \sqrt2) and the missing backslashes of function names (such as sin)."""
    letter = r"([0-9a-zA-Z]|\\(?:pi|theta|alpha|beta|phi|lambda|mu|omega)(?![a-z]))"
    text = re.sub(rf"\\frac\s*{letter}\s*{letter}", r"\\frac{\1}{\2}", text)
    text = re.sub(rf"\\frac\s*{letter}\s*\{{", r"\\frac{\1}{", text)
    text = re.sub(rf"(\\frac\{{[^{{}}]*\}})\s*{letter}", r"\1{\2}", text)
    text = re.sub(r"\\sqrt\s*(\[\d\])?\s*([0-9a-zA-Z])", r"\\sqrt\1{\2}", text)
    text = re.sub(r"([_^])\{(\w)\}", r"\1\2", text)
    text = re.sub(r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\\a-zA-Z])sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\\a-zA-Z])(pi|sin|cos|tan|log|ln|exp|infty)(?![a-zA-Z])", r"\\\1 ", text)
    text = re.sub(r"(?<![\\a-zA-Z])infinity(?![a-zA-Z])", r"\\infty ", text)
    text = re.sub(r"(\\arc(?:sin|cos|tan))\s+(\d+(?:\.\d+)?|[a-z])(?![\w^.])", r"\1(\2)", text)
    text = re.sub(r"(\\log_)(\d)(?=\d)", r"\1{\2} ", text)  # \log_37 has base 3
    text = re.sub(r"\^\(([^()]*)\)", r"^{\1}", text)
    return re.sub(r"\^(\w)\^(\w|\{[^{}]*\})", r"^{\1^\2}", text)  # powers of powers are right-associative
