"""A chat template as token spans: the first prompt, then only what each new message adds.

Ids fed next = ids fed before + ids sampled + ids of the new messages. Earlier turns are never rendered again, so what
the model said is fed back as the very tokens it sampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gem.core import Info
from gem.errors import BadValue
from gem.messages import Message, Observation, assistant, user

_REPLY = "a-reply-to-be-found-again"
_CACHE = 16_384  # rendered texts kept per format: games say few different things


def observation_text(observation: Observation, info: Info) -> str:
    """An observation as the text of one user message: info["prefix"], the text, info["suffix"].

    Raises BadValue for an observation that is not text.
    """
    text = observation["text"] if isinstance(observation, dict) and set(observation) == {"text"} else observation
    if not isinstance(text, str):
        raise BadValue(f"a text policy needs text observations, got {type(observation).__name__}")
    return "\n".join(part for part in (info.get("prefix"), text, info.get("suffix")) if part)


class ChatFormat:
    """The token spans of conversations under one tokenizer and its chat template.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template and an eos token that ends a turn.

    Raises BadValue when the tokenizer has no template or no eos token.
    """

    def __init__(self, tokenizer: Any) -> None:
        if getattr(tokenizer, "chat_template", None) is None:
            raise BadValue("the tokenizer has no chat template; set tokenizer.chat_template")
        if tokenizer.eos_token_id is None:
            raise BadValue("the tokenizer has no eos token, so no reply would ever end; set tokenizer.eos_token")
        self.tokenizer = tokenizer
        self.eos_id: int = tokenizer.eos_token_id
        self._delta = lru_cache(_CACHE)(self._encode_delta)
        self._first = lru_cache(_CACHE)(self._encode_first)

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """A whole conversation, ready for the model's reply."""
        if len(messages) == 1 and messages[0]["role"] == "user":
            return list(self._first(messages[0]["content"]))
        return self._encode(self._render(messages, reply=True))

    def raw(self, prompt: str) -> list[int]:
        """A prompt that was written with the template already."""
        return self._encode(prompt)

    def extend(self, fed: list[int], sampled: list[int], text: str) -> list[int]:
        """The context after a reply and a new user message.

        Args:
            fed, sampled: the ids of the last prompt and of the reply to it. A reply that was cut before its end token
                gets one, as a fed token.
            text: of the new user message.

        Raises BadValue when the template keeps no earlier replies, so that no context extends the last one.
        """
        closed = sampled[-1:] == [self.eos_id]
        return fed + sampled + ([] if closed else [self.eos_id]) + list(self._delta(text))

    def decode(self, sampled: list[int]) -> str:
        """The text of a reply, without its end token."""
        ids = sampled[:-1] if sampled[-1:] == [self.eos_id] else sampled
        return str(self.tokenizer.decode(ids, skip_special_tokens=False))

    def encode_reply(self, text: str) -> list[int]:
        """The ids of a reply that somebody else wrote, its end token included."""
        return [*self._encode(text), self.eos_id]

    def _render(self, messages: Sequence[Message], reply: bool) -> str:
        return str(self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=reply))

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def _encode_first(self, text: str) -> tuple[int, ...]:
        return tuple(self._encode(self._render([user(text)], reply=True)))

    def _encode_delta(self, text: str) -> tuple[int, ...]:
        # What the template writes between the end of a reply and the start of the next, found on a dummy conversation.
        # (Not by comparing it with the conversation up to the reply: some templates write the last reply differently.)
        eos = self.tokenizer.eos_token
        shown = self._render([user("a"), assistant(_REPLY), user(text)], reply=True)
        _, found, rest = shown.partition(_REPLY)
        gap, ended, new = rest.partition(eos)
        if not found or not ended or gap.strip():
            raise BadValue(
                "this chat template drops earlier replies or does not end them with the eos token, so contexts cannot "
                "be extended token by token; use the wrapper concat_chat, which renders every prompt anew"
            )
        return tuple(self._encode(new))
