r"""Find reference answers that no model's answer can equal: artifacts of data conversion, and prose.

``gem check --rows`` applies these functions to the rows of a dataset. They read the text only; whether a formula can be
parsed is decided by MathGrader.check_gold().

>>> gold_error("He has 3 + 4 = 7 eggs.\n#### 7"), gold_error("['7']"), gold_error("7")
("a worked solution; the answer is what follows '####'", 'a list written as text', None)
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any

from gem._internal.json_codec import dumps
from gem._internal.text import short_repr
from gem.graders.code.compare import same_output, same_value
from gem.graders.code.tests import ProgramTest, Suite

MAX_PHRASE_WORDS = 8  # words between two commas of a math answer, without LaTeX and words such as "and" or "if"
MAX_FORMULA_WORDS = 16  # words of a math answer, which may be a list of names
MAX_WORDS = 20  # words of a short answer; the answers of Natural Questions and TriviaQA have about five
_WORD = re.compile(r"(?<![\\a-zA-Z])[^\W\d_]{2,}")
_FORMULA_WORD = re.compile(r"\b(?:if|and|or|for|all|any|otherwise|where|when|to|in|is)\b|\\(?:begin|end)\{\w+\*?\}")
_SENTENCES = re.compile(r"(?:[^\W\d_]{2,}\W+){2}[^\W\d_]{2,}\.\s+[A-Z]")  # text after a sentence
_LISTED = re.compile(
    r"[(（]([A-Z])[)）]|^\W*([A-Z])[.):．：、]", re.MULTILINE
)  # (A) anywhere; A. or A) at a line start
_CHOSEN = re.compile(r"(?:\\text(?:bf|rm)?\s*\{)?\s*[(（]?([A-Z])[)）]?\s*\}?[.．]?")
_MISSING = ("nan", "<NA>", "NaN")
_NUMPY = re.compile(r"array\(.*\)|\[\s*(['\"]).*?\1(?:\s+\1.*?\1)*\s*\]", re.DOTALL)


def gold_error(gold: str, *, formula: bool = True) -> str | None:
    """Return why no answer can equal a reference answer, or None.

    Args:
        formula: whether the answer is a math answer; otherwise it is a short answer in words.
    """
    text = gold.strip()
    if not text:
        return "an empty text"
    if "####" in text:
        return "a worked solution; the answer is what follows '####'"
    if text in (_MISSING if formula else _MISSING[:2]):
        return "a missing value (NaN)"
    if (kind := _container(text)) is not None:
        return f"a {kind} written as text"
    words = [len(_WORD.findall(part)) for part in re.split("[,;]", _FORMULA_WORD.sub(" ", text) if formula else text)]
    if formula and (max(words) > MAX_PHRASE_WORDS or sum(words) > MAX_FORMULA_WORDS or _SENTENCES.search(text)):
        return "prose instead of an answer"
    return f"prose of {sum(words)} words instead of a short answer" if sum(words) > MAX_WORDS else None


def choice_error(gold: str, question: str) -> str | None:
    """Return an error if a gold answer is the letter of a choice that the question does not list, or None.

    >>> choice_error("(D)", "How many? (A) 3 (B) 4 (C) 5"), choice_error("C", "How many? (A) 3 (B) 4 (C) 5")
    ('the question lists only the choices A to C', None)
    """
    chosen = _CHOSEN.fullmatch(gold.strip())
    letters = [match.group(1) or match.group(2) for match in _LISTED.finditer(question)]
    if chosen is None or "A" not in letters:
        return None
    listed = letters[len(letters) - 1 - letters[::-1].index("A") :]  # the last list, after examples
    if len(listed) < 2 or listed != [chr(ord("A") + i) for i in range(len(listed))] or chosen.group(1) in listed:
        return None
    return f"the question lists only the choices A to {listed[-1]}"


def value_error(value: Any) -> str | None:
    """Return why a value of a dataset row is no reference answer, or None: a mapping, a nested list, bytes or NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return "a missing value (NaN)" if math.isnan(value) else "an infinite number"
    if isinstance(value, (Mapping, list, tuple, set, bytes)):
        return f"a {type(value).__name__}"
    return None


def suite_error(suite: Suite) -> str | None:
    """Return why no program can pass tests, or why every program passes them; None if neither was found.

    The expected outputs are not examined if the suite has a checker; see CodeGrader.checker_error().
    """
    if suite.function is not None and not all(name.isidentifier() for name in suite.function.split(".")):
        return f"{short_repr(suite.function, 80)} is not the name of a function"
    if suite.checker is not None:  # the expected outputs are examples
        return None
    if suite.function is None and not any(test.accepted[0].strip() for test in suite.tests):
        return "every expected output is empty"
    first: dict[object, ProgramTest] = {}
    for number, test in enumerate(suite.tests):
        if any(isinstance(value, float) and math.isnan(value) for value in test.accepted):
            return f"test {number} expects NaN, which equals no value"
        known = first.setdefault((test.case.stdin, test.case.arguments), test)
        if known is not test and not _compatible(known, test, suite.function):
            return f"test {number} expects another output than test {suite.tests.index(known)} for the same input"
    return None


def _compatible(one: ProgramTest, other: ProgramTest, function: str | None) -> bool:
    if function is None:
        return same_output(one.accepted[0], other.accepted[0]) or same_output(other.accepted[0], one.accepted[0])
    return any(same_value(dumps(a), b) or same_value(dumps(b), a) for a in one.accepted for b in other.accepted)


def _container(text: str) -> str | None:
    """Return "list" or "dict" if a text is the repr or JSON of a list of texts or of a dict; otherwise None."""
    if text[0] not in "[{(a" or text[-1] not in "]})":
        return None
    if _NUMPY.fullmatch(text):
        return "list"
    value: Any = None
    for parse in (json.loads, ast.literal_eval):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # of "\d" in a literal
                value = parse(text)
            break
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
    if isinstance(value, dict):
        return "dict" if value else None  # {} is an empty set
    holds_text = isinstance(value, (list, tuple, set)) and any(isinstance(item, (str, dict)) for item in value)
    return "list" if holds_text else None
