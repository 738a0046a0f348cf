"""Prompt templates: instructions around the observations of an environment, for evaluation and training.

The names are those of the published system. Its templates also wrote the chat markup of Qwen; here that is the job of
the tokenizer or the server, so a template has only the words.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gem.conversation.observations import map_text
from gem.errors import BadValue, did_you_mean
from gem.messages import Observation

PLACE = "{observation}"
# "Please reason … \boxed{}." is the sentence that Qwen recommends for its models.
_BOXED = r"Please reason step by step, and put your final answer within \boxed{}."
TEMPLATES = {
    "no": PLACE,
    "qwen3_game": f"You play a text game. Choose a legal action each turn, and try to win.\n\n{PLACE}\n\n{_BOXED}",
    "qwen3_general": f"Question: {PLACE}\n\n{_BOXED}",
    "code": "Solve this programming problem with a complete Python program, and put the program in one ```python block."
    f"\n\n{PLACE}",
}


@dataclass(frozen=True)
class PromptTemplate:
    """A text with one ``{observation}``.

    Args:
        name: one of TEMPLATES, or the path of the file.
        text: of the template.

    Raises:
        BadValue: unless the text has ``{observation}`` exactly once.
    """

    name: str
    text: str

    def __post_init__(self) -> None:
        if (count := self.text.count(PLACE)) != 1:
            raise BadValue(f"the prompt template {self.name} must have {PLACE} exactly once, got {count} times")

    @classmethod
    def load(cls, name: str) -> PromptTemplate:
        """Return the template with this name, or that of a UTF-8 file. Raises BadValue if there is neither.

        >>> PromptTemplate.load("no").text
        '{observation}'
        """
        if name in TEMPLATES:
            return cls(name, TEMPLATES[name])
        try:
            return cls(name, Path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as e:
            if isinstance(e, BadValue):
                raise
            near = did_you_mean(name, TEMPLATES)
            raise BadValue(f"no prompt template {name!r}{near}; give {', '.join(TEMPLATES)} or a text file") from e

    def apply(self, observation: Observation) -> Any:
        """Return an observation with the words of the template around its text.

        Of a list of messages, the text of the last one is wrapped.

        Raises:
            BadValue: for an observation without text.

        >>> PromptTemplate("hint", "{observation} Be brief.").apply("1 + 1?")
        '1 + 1? Be brief.'
        """
        changed = map_text(observation, lambda text: self.text.replace(PLACE, text))
        if changed is None:
            kind = type(observation).__name__
            raise BadValue(f"the prompt template {self.name} needs an observation of text, got {kind}")
        return changed
