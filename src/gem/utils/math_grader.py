r"""The math grader under its published names. New code should use gem.graders.math.

All comparisons are that of MathGrader, and raise GraderError if grading times out. ``fast`` has no effect.

>>> grade("1/2", r"\frac{1}{2}"), boxed_reward_fn(r"so \boxed{3}", "4")
(True, ({'formatted': True}, 0.0))
"""

from __future__ import annotations

from typing import Any

from gem.graders.math import MathGrader
from gem.parsing import last_boxed, last_tagged

Reward = tuple[dict[str, Any], float]  # ({"formatted": whether an answer was found}, 1.0 or 0.0)


def grade(model_answer: str, gt_answer: str, fast: bool = True) -> bool:
    """Return whether an answer equals the reference answer."""
    return MathGrader().grade(model_answer, gt_answer).correct


def is_latex_equal(given_answer: str, ground_truth: str) -> bool:
    return grade(given_answer, ground_truth)


grade_answer_mathd = grade_answer_sympy = is_latex_equal


def extract_boxed_answer(solution: str) -> str | None:
    r"""Return the content of the last closed ``\boxed{…}``, or None."""
    return last_boxed(solution)


def extract_answer(passage: str) -> str | None:
    r"""Return the content of the last closed ``\boxed{…}``, or None."""
    return last_boxed(passage)


def boxed_reward_fn(model_response: str, gt_answer: Any, fast: bool = False, **_: Any) -> Reward:
    r"""Grade the last ``\boxed{…}``. The reference is one answer, a number or a list of answers."""
    return _reward(last_boxed(model_response), gt_answer)


def answer_tag_reward_fn(model_response: str, gt_answer: Any, fast: bool = False, **_: Any) -> Reward:
    """Grade the last ``<answer>…</answer>``, or the box in it."""
    return _reward(last_tagged(model_response, "answer"), gt_answer)


def r1_distill_qwen_math_reward_fn(model_response: str, gt_answer: Any, fast: bool = False, **_: Any) -> Reward:
    r"""Grade the last ``\boxed{…}`` after ``</think>``; a response without ``</think>`` is not formatted."""
    parts = model_response.split("</think>")
    return _reward(last_boxed(parts[-1]) if len(parts) > 1 else None, gt_answer)


def _reward(answer: str | None, reference: Any) -> Reward:
    if answer is None:
        return {"formatted": False}, 0.0
    references = reference if isinstance(reference, (list, tuple)) else [reference]
    return {"formatted": True}, float(MathGrader().grade(answer, [str(r) for r in references]).correct)
