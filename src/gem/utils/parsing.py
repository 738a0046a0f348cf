r"""Parsers under their published names. New code should use gem.parsing.

>>> extract_last_boxed_answer(r"so \boxed{\frac{1}{2}}"), extract_last_tagged_answer("<answer>Bern</answer>")
('\\frac{1}{2}', 'Bern')
"""

from __future__ import annotations

from gem.parsing import code_blocks, last_boxed, last_tagged

_BOX = r"\boxed{"


def last_boxed_only_string(string: str) -> str | None:
    r"""Return the last closed ``\boxed{…}`` with the command and its braces, or None."""
    content = last_boxed(string)
    return None if content is None else f"{_BOX}{content}}}"


def remove_boxed(s: str | None) -> str | None:
    r"""Return the content of a text that is one ``\boxed{…}``, or None for any other text."""
    return s[len(_BOX) : -1] if s is not None and s.startswith(_BOX) and s.endswith("}") else None


def extract_last_boxed_answer(solution: str) -> str | None:
    r"""Return the content of the last closed ``\boxed{…}``, or None."""
    return last_boxed(solution)


def extract_code_from_model(model_response: str) -> str | None:
    """Return the code in the last closed fenced block, stripped, or None if there is no such block."""
    blocks = code_blocks(model_response)
    return blocks[-1].code.strip() if blocks else None


def extract_last_tagged_answer(model_response: str) -> str | None:
    """Return the text in the last closed ``<answer>…</answer>``, stripped, or None."""
    return last_tagged(model_response, "answer")
