"""Exact match of short answers under its published names. New code should use gem.graders.exact.

>>> em_check("the Alps!", ["Alps", "The Alps mountains"])
True
"""

from __future__ import annotations

from collections.abc import Sequence

from gem.graders.exact import exact_match, normalize


def normalize_answer(s: str) -> str:
    """Convert a text to lower case and remove punctuation, articles and extra spaces; see gem.graders.exact."""
    return normalize(s)


def em_check(prediction: str, golden_answers: str | Sequence[str]) -> bool:
    """Return whether a prediction equals one of the reference answers after normalization."""
    return exact_match(prediction, golden_answers).correct
