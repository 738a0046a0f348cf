r"""Remarks after a result that do not change it: where it is defined, and where an extreme value is attained.

\frac{x+2}{x+3}, x \ne 2 is a simplified fraction with the restriction of the fraction before it, and "4 (attained at
x = 2)" is a minimum.
"""

from __future__ import annotations

import re

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
            return match["said"].strip(" ,;")
    match = _ATTAINED.fullmatch(flat)
    if match is None or "=" in gold or not _ASKS_EXTREME.search(question) or _ASKS_WHERE.search(question):
        return answer
    return match["said"].strip(" ,;(")


def _is_given(condition: str, question: str) -> bool:
    r"""Return whether a condition is in the question, excludes points, or is the domain of a Laplace transform."""
    if r"\ne" in condition or (re.search(r"\blaplace\b", question, re.IGNORECASE) and condition.strip()[0] == "s"):
        return True
    asked = re.sub(r"\\(le|ge)(?:q|qslant)?(?![a-z])", r"\\\1", question)
    return re.sub(r"\s", "", condition) in re.sub(r"\s", "", asked)
