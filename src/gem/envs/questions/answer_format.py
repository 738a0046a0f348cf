"""Answer formats: the instruction in the prompt, and the parser for the reply."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from gem.errors import BadValue
from gem.parsing import code_blocks, last_boxed, last_tagged, outside_thinking

Kind = Literal["boxed", "tag", "code", "plain"]


@dataclass(frozen=True)
class AnswerFormat:
    r"""A format for final answers.

    Args:
        kind: "boxed", the last ``\boxed{…}``; "tag", the last ``<answer>…</answer>``; "code", the last fenced block;
            "plain", the whole text, which must not contain a marker of another format after other text. Text in
            ``<think>…</think>`` does not count.

    Raises:
        BadValue: unknown kind.

    >>> AnswerFormat("boxed").read(r"It is \boxed{4}."), AnswerFormat("tag").read("It is 4.")
    ('4', None)
    """

    kind: Kind

    def __post_init__(self) -> None:
        if self.kind not in _HOW:
            raise BadValue(f"answer_format must be one of {', '.join(map(repr, _HOW))}, got {self.kind!r}")

    @property
    def how(self) -> str:
        """The instruction for the agent, as a sentence that starts with a lower-case letter."""
        return _HOW[self.kind]

    def read(self, text: str) -> str | None:
        """Return the answer in a text, or None if the text contains no answer in this format.

        A last box or tag that is empty or cut off is no answer, whatever stands before it.
        """
        text = outside_thinking(text)
        if self.kind == "boxed":
            found = last_boxed(text)
        elif self.kind == "tag":
            cut_off = text.rfind("<answer>") > text.rfind("</answer>")
            found = None if cut_off else last_tagged(text, "answer")
        elif self.kind == "code":
            blocks = code_blocks(text)
            found = blocks[-1].code if blocks else None
        else:
            found = None if _MARKED.search(text) else text
        return found.strip() if found is not None and found.strip() else None

    def write(self, answer: str) -> str:
        """Return a text from which read() parses the answer."""
        return _WRITTEN[self.kind].format(answer)


class AnswerOracle:
    """Oracle that replies with the gold answer of the open task, for environments with ``answer`` and ``format``."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def act(self, observation: Any) -> str:
        gold = self.env.answer
        written: str = self.env.format.write(gold if isinstance(gold, str) else gold[0])
        return written


_MARKED = re.compile(r"\S\s*\\(?:boxed|fbox)|<answer>|^```", re.MULTILINE)  # a box at the start of a text is allowed
_HOW = {
    "boxed": r"put your final answer in \boxed{}.",
    "tag": "put your final answer between <answer> and </answer>.",
    "code": "put your final answer in a code block fenced by ```.",
    "plain": "reply with your final answer and nothing else.",
}
_WRITTEN = {
    "boxed": r"\boxed{{{}}}",
    "tag": "<answer>{}</answer>",
    "code": "```\n{}\n```",
    "plain": "{}",
}
