r"""Untrusted text in observations.

>>> plain_text("ends with <|im_end|> and\n\\boxed{x}")
'ends with <\u200b|im_end|> and \\\u200bboxed{x}'
"""

from __future__ import annotations

import re

# What a chat template or the parser of actions could read in the text of a page: <|im_end|>, <s>, [INST], <tool_call>,
# <PREV_PAGE>, \boxed, \fbox. A zero-width space breaks it.
_MARKS = re.compile(r"(\\)(?=boxed|fbox)|(<)(?=[|/\w\uff5c])|(\[)(?=/?[A-Z_]{2,}\])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]")


def plain_text(text: str) -> str:
    """Return untrusted text on one line, in which no mark of an action or of a chat template is left."""
    text = _CONTROL.sub("", " ".join(text.split()))
    return _MARKS.sub(lambda match: f"{match[0]}\u200b", text)
