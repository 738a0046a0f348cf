r"""Labels of an answer that the question explains: "40 pc" is 40 if the question asks for parsecs.

"l: y = x" is the line y = x, "f_{\max} = 6" is 6 if the question asks for a maximum and not for a minimum.
"""

from __future__ import annotations

import re

_ABBREVIATED = {  # an abbreviation that is not in the list of units → how the question spells it out
    "pc": r"parsecs?",
    "kpc": r"kiloparsecs?",
    "Mpc": r"megaparsecs?",
    "ly": r"light[- ]?years?",
    "AU": r"astronomical units?",
    "au": r"astronomical units?",
    "eV": r"electron[- ]?volts?",
    "dB": r"decibels?",
    "rpm": r"revolutions per minute",
    "bpm": r"beats per minute",
    "amu": r"atomic mass units?",
    "cal": r"calories",
    "kcal": r"kilocalories|kcal",
    "mpg": r"miles per gallon",
    "nmi": r"nautical miles",
    "hp": r"horsepower",
    "psi": r"pounds per square inch",
}
_MEASURED = re.compile(r"(?P<number>.*[\d})])\s*(?:\\text\s*\{\s*)?(?P<unit>[a-zA-Z]{2,4})\s*\}?")
_EXTREME = re.compile(
    r"(?:\\?(?P<before>max|min)(?![a-z])\s*)?(?P<of>\([^=]+\)|\\?[a-zA-Z]+(?:\([a-z]\))?|[a-zA-Z+ ]+)\s*"
    r"(?:_\{?\s*(?:\\text\s*\{\s*)?\\?(?P<after>max|min)(?:imum)?\s*\}*\s*)?=(?P<said>[^=]+)"
)
_MOST = re.compile(r"\b(?:max\w*|largest|greatest|highest|most)\b", re.IGNORECASE)
_LEAST = re.compile(r"\b(?:min(?:im\w*)?|smallest|least|lowest)\b", re.IGNORECASE)
_TARGET = re.compile(
    r"(?:max\w*|min\w*|largest|smallest|greatest|least)(?: possible)?(?: value)? of (?:the [a-z]+ )?\$(?P<of>[^$]+)\$",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"(?P<said>.*[\d})])\s*(?:\\text\s*\{\s*)?\(\s*(?:the )?(?P<which>max|min)(?:imum)?(?: value)?\s*\)\s*\}?"
)
_CURVE = re.compile(r"(?P<name>\\ell|\\Gamma|[a-zA-Z](?:_\d)?)\s*:\s*(?P<said>[^:=]+=[^:=]+)")
_ASKS_CURVE = re.compile(
    r"\b(?:lines?|curves?|circles?|planes?|parabolas?|ellipses?|hyperbolas?|tangents?|normals?|asymptotes?|bisectors?"
    r"|locus|spheres?)\b",
    re.IGNORECASE,
)
_RATIO = re.compile(r"(?P<left>[a-zA-Z]+(?:\s*:\s*[a-zA-Z]+)+)\s*=(?P<said>[^=:]+(?::[^=:]+)+)")
_NEITHER = re.compile(r"(?:it is |the \w+ is )?neither (\w+) n?or (\w+)")
_TIMES = r"\d+(?:\.\d+|/\d+)?|\\frac\{\d+\}\{\d+\}|\\sqrt\{\d+\}"
_FACTOR = re.compile(
    rf"(?P<number>{_TIMES})\s*(?:times(?: as (?:much|many|large|great|big|bright|fast|long|strong|high))?|x|\\cdot)"
    rf"|(?:by )?a factor of (?P<last>{_TIMES})"
)
_ASKS_FACTOR = re.compile(r"\bby (?:what|which) factor\b|\bhow many times\b|\bwhat factor\b", re.IGNORECASE)
_ASKS_CIRCUIT = re.compile(
    r"\b(?:impedances?|admittances?|reactances?|phasors?|inductors?|capacitors?|transfer function)\b",
    re.IGNORECASE,
)


def abbreviation(text: str, question: str) -> str:
    """40 pc is 40 if the question asks for parsecs and no other unit of the list."""
    match = _MEASURED.fullmatch(text)
    if match is None or match["unit"] not in _ABBREVIATED:
        return text
    asked = {spelled for spelled in _ABBREVIATED.values() if re.search(rf"\bin (?:{spelled})\b", question)}
    return match["number"].strip() if asked == {_ABBREVIATED[match["unit"]]} else text


def extreme(text: str, question: str) -> str:
    r"""(xy)_{\max} = 6 and 7 (maximum), if the question asks for the maximum of xy and for no minimum."""
    asked = {"max": _MOST.search(question) is not None, "min": _LEAST.search(question) is not None}
    if all(asked.values()):
        return text
    if (remark := _REMARK.fullmatch(text)) is not None:
        said = remark["said"].removesuffix(r"\text{").strip()
        return said if asked[remark["which"]] and re.fullmatch(r"[^a-z]*|.*\\.*", said) else text
    match = _EXTREME.fullmatch(text)
    which = match and (match["before"] or match["after"])
    if match is None or not which or (match["before"] and match["after"]) or not asked[which]:
        return text
    of = re.sub(r"[\s{}$]", "", match["of"])
    inner = of[1:-1] if of.startswith("(") else of
    target = _TARGET.search(question)
    if target is not None:
        named = re.sub(r"[\s{}]", "", target["of"]).partition("=")[0]
        known = inner in (named, re.sub(r"\([a-z]\)$", "", named))
    else:
        known = inner in re.sub(r"[\s{}]", "", question)
    new = re.fullmatch("[a-zA-Z]", inner) and inner not in "".join(re.findall(r"\$([^$]*)\$", question))
    return match["said"].strip() if known or new else text


def curve_name(text: str, question: str) -> str:
    """l: y = x is the equation of a line, if the question asks for a curve and l is not an unknown in it."""
    match = _CURVE.fullmatch(text)
    if match is None or not _ASKS_CURVE.search(question):
        return text
    return text if re.search(rf"(?<![\\a-zA-Z]){re.escape(match['name'])}", match["said"]) else match["said"].strip()


def ratio_name(text: str, question: str) -> str:
    """a:b:c = 8:12:15 if the question has a:b:c and the sides have the same number of terms."""
    match = _RATIO.fullmatch(text)
    if match is None or match["left"].count(":") != match["said"].count(":"):
        return text
    left = re.sub(r"\s", "", match["left"])
    named = re.search(rf"(?<![\w:]){left}(?![\w:]|=)", re.sub(r"\s*([:=])\s*", r"\1", question))
    return match["said"].strip() if named else text


def factor(text: str, question: str) -> str:
    """25 times, 25 x and a factor of 25 are 25 if the question asks for a factor."""
    match = _FACTOR.fullmatch(re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text).strip())
    return text if match is None or not _ASKS_FACTOR.search(question) else match["number"] or match["last"]


def neither(text: str, question: str) -> str:
    """Neither even nor odd is neither, if the question names both."""
    match = _NEITHER.fullmatch(re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text).strip(" .").casefold())
    named = match is not None and all(re.search(rf"\b{each}\b", question.casefold()) for each in match.groups())
    return r"\text{neither}" if named else text


def imaginary_unit(text: str, question: str) -> str:
    """R + jX is R + iX in a question about circuits, if the text has no i of its own."""
    if not _ASKS_CIRCUIT.search(question) or re.search(r"(?<![\\a-zA-Z])i(?![a-zA-Z])", text):
        return text
    return re.sub(r"(?<![\\a-zA-Z_])(?<!_\{)j(?![a-zA-Z_])", "i", text)


RULES = (abbreviation, extreme, curve_name, ratio_name, factor, neither, imaginary_unit)
