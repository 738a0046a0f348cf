"""Multiple-choice answers: the letter in an answer, and the choices that a question lists."""

from __future__ import annotations

import re

_LABEL = re.compile(
    r"(?:\\text\s*\{)?\s*(?P<said>(?i:option|choice|answer)\s+)?"
    r"(?:\((?P<round>[A-Z]|[a-e](?=\)\s*\}?$))\)(?=[\s\\}:\d$-]|[A-Z][a-z]|$)|(?P<dot>[A-Z])(?:\)|[.:](?=[\s\\}]|$))|(?P<alone>[A-Z])(?=\s*\}?$))"
    r"\s*\}?[.:]?\s*(?P<rest>.*)",
    re.DOTALL,
)
_MARKED_LETTER = re.compile(r"^(\(?)\\text\{\s*([A-H])\s*\}(?=\s*[).:])")  # \text{A}) 54
_SMALL_LETTER = re.compile(r"\(?([a-e])[).]?")
_OTHER_LABEL = re.compile(  # a second choice after the first, or its negation
    r"(?<![a-zA-Z\\])\([A-Za-e]\)|(?<![\w\\.])[A-Z][.)](?=[\s}]|$)|^[A-Z]$|^(?:and|or|is|not|nor|wrong|incorrect|false)\b"
)
_DENIAL = re.compile(r"\b(?:not|isn't|never|wrong|incorrect|false|neither|nor|at least|at most|more|less|unless)\b")
_LISTED = re.compile(r"(?:\\(?:text|math)(?:bf|rm|it)?\s*\{)?(?<![\w\\])\(?([A-F])[).:](?=[\s}~\\$]|$)\s*\}?")
_AROUND = re.compile(r"^(?:\\q?quad|\\[ ,;~\\]|[\s$~])+|(?:\\q?quad|\\[ ,;~\\]|[\s$~.,;])+$")


def choice_of(text: str) -> tuple[str, str] | None:
    """Return the multiple-choice letter in an answer and the text after the letter; None if there is no letter.

    >>> choice_of("(C) 12"), choice_of("Option B"), choice_of("12")
    (('C', '12'), ('B', ''), None)
    """
    match = _LABEL.fullmatch(_MARKED_LETTER.sub(r"\1\2", text.strip()))
    if match is None:
        return None
    letter = match["round"] or match["dot"] or match["alone"]
    rest = match["rest"].strip()
    return letter.upper(), rest[:-1].strip() if rest.count("}") > rest.count("{") else rest


def small_choice(text: str) -> str:
    """Return the letter of an answer such as "c" or "(c)" as a capital; "" for other text."""
    match = _SMALL_LETTER.fullmatch(text)
    return "" if match is None else match.group(1).upper()


def names_another(rest: str, text: str = "") -> bool:
    """Return whether the words after a choice name a second choice or take it back; ``text`` is that of the choice."""
    return _OTHER_LABEL.search(rest) is not None or not set(_DENIAL.findall(rest)) <= set(_DENIAL.findall(text))


def listed_choices(question: str) -> dict[str, str]:
    """Return the text of each choice that a question lists by letter, from A on; empty if it lists none.

    >>> listed_choices("What is 3*4? (A) 11 (B) $12$"), listed_choices("Find A. Then rest.")
    ({'A': '11', 'B': '12'}, {})
    """
    labels = list(_LISTED.finditer(question))
    starts = [i for i, label in enumerate(labels) if label.group(1) == "A"]
    labels = labels[starts[-1] :] if starts else []
    letters = [label.group(1) for label in labels]
    if len(labels) < 2 or letters != sorted(set(letters)):
        return {}
    ends = [label.start() for label in labels[1:]] + [len(question)]
    texts = [question[label.end() : end] for label, end in zip(labels, ends, strict=True)]
    return {label.group(1): _AROUND.sub("", text) for label, text in zip(labels, texts, strict=True)}
