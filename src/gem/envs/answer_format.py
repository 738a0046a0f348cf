"""How an answer is to be written: what the prompt says, and what is read, are one thing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from gem.errors import BadValue
from gem.parsing import code_blocks, last_boxed, last_tagged

Kind = Literal["boxed", "tag", "code", "plain"]


@dataclass(frozen=True)
class AnswerFormat:
    r"""One way to write an answer.

    kind: "boxed", the last ``\boxed{…}``; "tag", the last ``<answer>…</answer>``; "code", the last fenced block;
    "plain", the whole text, where nothing in it is marked in one of the other ways. Raises BadValue for another word.

    >>> AnswerFormat("boxed").read(r"It is \boxed{4}."), AnswerFormat("tag").read("It is 4.")
    ('4', None)
    """

    kind: Kind

    def __post_init__(self) -> None:
        if self.kind not in _HOW:
            raise BadValue(f"answer_format must be one of {', '.join(map(repr, _HOW))}, got {self.kind!r}")

    @property
    def how(self) -> str:
        """What to do, as a sentence without its first capital."""
        return _HOW[self.kind]

    def read(self, text: str) -> str | None:
        """The answer in a text; None where it is not written so."""
        if self.kind == "boxed":
            found = last_boxed(text)
        elif self.kind == "tag":
            found = last_tagged(text, "answer")
        elif self.kind == "code":
            blocks = code_blocks(text)
            found = blocks[-1].code if blocks else None
        else:
            found = None if _MARKED.search(text) else text
        return found.strip() if found is not None and found.strip() else None

    def write(self, answer: str) -> str:
        """An answer as a text that read() takes it from."""
        return _WRITTEN[self.kind].format(answer)


_MARKED = re.compile(r"\S\s*\\boxed|<answer>|^```", re.MULTILINE)  # a box alone is an answer, too
_HOW = {
    "boxed": r"put your final answer in \boxed{}.",
    "tag": "put your final answer between <answer> and </answer>.",
    "code": "put your final answer into a fenced block that opens and closes with ```.",
    "plain": "reply with your final answer and nothing else.",
}
_WRITTEN = {
    "boxed": r"\boxed{{{}}}",
    "tag": "<answer>{}</answer>",
    "code": "```\n{}\n```",
    "plain": "{}",
}
