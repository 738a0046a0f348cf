r"""Remarks after a result that do not change it: where it is defined, and where an extreme value is attained.

\frac{x+2}{x+3}, x \ne 2 is a simplified fraction with the restriction of the fraction before it, and "4 (attained at
x = 2)" is a minimum.
"""

from __future__ import annotations

import re

from gem.graders.math.read import read
from gem.graders.math.split import split
from gem.graders.math.values import Group, Named, Number

_NUMBER = r"-?(?:[\d./]+|\\frac\{\d+\}\{\d+\}|\\sqrt\{\d+\}|\\pi|[a-z](?![a-z]))"
_CONDITION = (
    rf"(?:{_NUMBER}\s*(?:<|\\le)\s*)?[a-zA-Z](?:_\{{?\w\}}?)?\s*(?:[<>]|\\(?:ne|le|ge)(?![a-z]))\s*(?:0|{_NUMBER})"
    rf"(?:\s*,\s*{_NUMBER})*"
)
_RESTRICTED = re.compile(
    rf"(?P<said>.*?[\w)}}\]|])[\s,;]*(?:\(|,|\b(?:for|where|with|when|if|provided|assuming)\b(?: that| all)?)[\s,(]*"
    rf"(?P<conditions>{_CONDITION}(?:\s*(?:,|and)\s*{_CONDITION})*)\s*\)?"
)
_ATTAINED = re.compile(
    r"(?P<said>.*?[\w)}])[\s,;]*\(?\s*(?:(?:which|it) )?(?:is )?"
    r"(?:attained |achieved |occurs |occurring |reached |obtained |taken )?"
    r"(?:only )?\b(?:at|when|for|if)\s*\(?[a-z](?:\s*,\s*[a-z])*\)?\s*=[^<>]+"
)
_NO_VALUE = re.compile(r"[=<>,]|\\[lgn]e|\\in")
_FIRST_INDEX = re.compile(r"([kmn])\s*(?:\\ge\s*[01]|>\s*0)")
_WHERE_ATTAINED = re.compile(
    r"(?P<said>.*?[\w)}])[\s,;]*\(?\s*[a-z ]*\b(?:at|when|for|if)\s*"
    r"\(?(?P<letters>[a-z](?:\s*=\s*[a-z])*)\s*=(?P<at>[^=<>,]+?)\)?"
)
_ASKS_EXTREME = re.compile(
    r"\b(?:max|min)(?:imum|imal|ima)?\b|\b(?:smallest|largest|least|greatest|extreme)\b|\bm(?:ax|in)imi[sz]e",
    re.IGNORECASE,
)
_ASKS_WHERE = re.compile(
    r"\b(?:at|for) (?:which|what)\b|\bwhere\b|\bpoints?\b|\band the\b"
    r"|\bvalues? of \$?[a-z]\$? (?:at|for|that|which|where)"
    r"|\b(?:maximi[sz]es|minimi[sz]es)\b|\bcoordinates?\b|\bpairs?\b",
    re.IGNORECASE,
)


def without_remark_on_domain(answer: str, gold: str, question: str) -> str:
    """Return a normalized answer without such a remark; the answer itself if it has none, or if it may matter."""
    flat = re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", answer).strip(" .")
    if not question or re.search(r"[<>]|\\(?:ne|le|ge|text|cup|in)(?![a-z])|\bfor\b|\bif\b", gold):
        return answer
    match = _RESTRICTED.fullmatch(flat)
    if match is not None and not re.search(r"[<>]|\\(?:ne|le|ge)(?![a-z])", match["said"]):
        letters = set(re.findall(r"([a-zA-Z])(?:_\{?\w\}?)?\s*(?:[<>]|\\(?:ne|le|ge))", match["conditions"]))
        named = set(
            re.findall(r"(?<![\\a-zA-Z])[a-zA-Z]|(?<=[a-z ])[a-zA-Z]", re.sub(r"\\[a-zA-Z]+", " ", match["said"]))
        )
        conditions = re.split(r",(?=\s*[a-zA-Z])|and", match["conditions"])
        if letters <= named and all(_is_given(each, question) for each in conditions):
            said = match["said"].strip(" ,;")
            return answer if any(_may_exclude(each, said) for each in conditions) else said
    match = _ATTAINED.fullmatch(flat)
    if match is None or "=" in gold or not _ASKS_EXTREME.search(question) or _ASKS_WHERE.search(question):
        return answer
    return match["said"].strip(" ,;(")


def _is_given(condition: str, question: str) -> bool:
    r"""Return whether a condition excludes points, is in the question, or is the domain of an index or a transform."""
    if r"\ne" in condition or (re.search(r"\blaplace\b", question, re.IGNORECASE) and condition.strip()[0] == "s"):
        return True
    if (first := _FIRST_INDEX.fullmatch(condition.strip())) is not None and _is_index(first.group(1), question):
        return True
    asked = re.sub(r"\\(le|ge)(?:q|qslant)?(?![a-z])", r"\\\1", question)
    return re.sub(r"\s", "", condition) in re.sub(r"\s", "", asked)


def _may_exclude(condition: str, said: str) -> bool:
    r"""Return whether x \ne 3 contradicts x = 3: it excludes a value of the letter in the answer, or may do so."""
    letter, excludes, points = condition.strip().partition(r"\ne")
    value = read(said).value
    if not excludes or not isinstance(value, Named) or value.name != letter.strip():
        return False
    values = value.value.items if isinstance(value.value, Group) else (value.value,)
    excluded = [read(point).value for point in split(points, ",") if point]
    return not all(isinstance(each, Number) for each in (*values, *excluded)) or bool(set(values) & set(excluded))


def _is_index(letter: str, question: str) -> bool:
    """Return whether a question has a letter as the index of a sequence, or as a positive integer."""
    return (
        re.search(
            rf"_\{{?{letter}(?![a-z])|\b(?:positive |non-?negative )?(?:integers?|natural numbers?) \$?{letter}\b"
            rf"|\bfirst \$?{letter}\$? |\b{letter}\$? (?:elements?|sides|people|points|terms|vertices|letters|disks)\b",
            question,
        )
        is not None
    )


def attained_value(answer: str, question: str) -> tuple[str, str] | None:
    """Return a formula of the question at the place of "4 attained at x = 2", and the 4; None if there is no such.

    The question must have one formula in exactly the letters of the place.
    """
    flat = re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", answer).strip(" .")
    match = _WHERE_ATTAINED.fullmatch(flat)
    if match is None:
        return None
    letters = set(re.findall("[a-z]", match["letters"]))
    formulas = [re.sub(r"^[a-zA-Z](?:\([a-z, ]+\))?\s*=", "", each) for each in re.findall(r"\$([^$]+)\$", question)]
    names = r"(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])"
    found = {
        each
        for each in formulas
        if set(re.findall(names, each)) == letters and len(each.strip()) > 1 and not _NO_VALUE.search(each)
    }
    if len(found) != 1:
        return None
    return re.sub(names, lambda m: f"({match['at'].strip()})", found.pop()), match["said"].rpartition("=")[2].strip(
        " ,;("
    )
