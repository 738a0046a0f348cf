"""Encode conversations with a chat template, extending the context token by token.

Each prompt is the previous prompt followed by the sampled ids and the ids of the new messages. Earlier turns are not
rendered again, so replies keep the exact tokens that were sampled.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from gem.conversation.template import SafeText, Template
from gem.errors import BadValue
from gem.messages import Message, Role, assistant, user

# Cache sizes per format. Games repeat few short texts; tool results are long and never repeat.
_CACHED_TEXTS = 16_384
_CACHED_CHARS = 2_000  # per conversation; longer ones are not cached
_CACHED_REPLIES = 4_096  # decoded replies that a template may strip
_CACHED_KEEPS = 131_072  # results of keeps(), which is called for all turns of all in-flight episodes

MessagesKey = tuple[tuple[Role, str], ...]  # hashable messages


class ChatFormat:
    """Encodes conversations with the chat template of a tokenizer.

    Message text is never encoded as control tokens. If the template does not support the role "tool", such messages
    are rendered as user messages; see gem.conversation.template.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template that ends replies with a token.
        image_text: returns the text of an image, with control tokens; None refuses images.

    Attributes:
        eos_id: id of the token that ends a reply: the control token that the template writes after a reply, or the
            tokenizer's eos token if the template writes none.

    Raises:
        BadValue: if the tokenizer has no chat template or no eos token.
    """

    def __init__(self, tokenizer: Any, image_text: Callable[[Any], str] | None = None) -> None:
        self.tokenizer, self.template = tokenizer, Template(tokenizer, image_text)
        self.reads_images = image_text is not None
        self.eos_token, self.eos_id = self._end_of_reply()
        self._delta = lru_cache(_CACHED_TEXTS)(self._encode_delta)
        self._first = lru_cache(_CACHED_TEXTS)(self._encode_first)
        self._reply_text = lru_cache(_CACHED_REPLIES)(self._decode_reply)
        self._kept: dict[bytes, bool] = {}  # by digest, because replies are long and rarely repeat
        self._extends: bool | None = None

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Encode a whole conversation and the header of the next reply.

        Messages are encoded as text. Only messages made by reply() keep their control tokens.
        """
        if len(messages) == 1:
            return self._encoded(self._first, messages)
        return self.template.encode(self.template.render(messages))

    def raw(self, prompt: str) -> list[int]:
        """Encode a prompt rendered with the template. Text that looks like a control token is encoded as that token."""
        return self.template.encode_plain(prompt)

    def extend(self, fed: list[int], sampled: list[int], new: str | Sequence[Message]) -> list[int]:
        """Return the previous prompt, extended by a reply, new messages and the header of the next reply.

        ``fed`` contains the ids of the previous prompt. For the other arguments and the errors, see new_ids().
        """
        return [*fed, *sampled, *self.new_ids(sampled, new)]

    def new_ids(self, sampled: list[int], new: str | Sequence[Message]) -> list[int]:
        """Return the ids that follow a reply: its end token if missing, new messages and the header of the next reply.

        Args:
            sampled: ids of the reply. If it does not end with the end token, the token is added.
            new: the new messages; a string is one user message.

        Raises:
            BadValue: if the template does not show earlier replies or does not end them with a token.
        """
        added = self._encoded(self._delta, [user(new)] if isinstance(new, str) else new)
        return added if sampled[-1:] == [self.eos_id] else [self.eos_id, *added]

    def raw_new_ids(self, before: str, sampled: list[int], prompt: str) -> list[int] | None:
        """Return the ids that follow a reply in a prompt written as text.

        Args:
            before: the previous prompt, as text.
            sampled: ids of the reply.
            prompt: the next prompt, rendered with the template; see raw().

        Returns:
            None if the prompt does not begin with the previous prompt and the reply, its end token included.
        """
        known = before + self.decode(sampled)
        if not prompt.startswith(known):
            return None
        rest = prompt[len(known) :]
        if sampled[-1:] != [self.eos_id]:
            return self.raw(rest)
        gap, ended, new = rest.partition(self.eos_token)
        return self._after_end(new, self.raw) if ended and not gap.strip() else None

    @property
    def can_extend(self) -> bool:
        """Whether extend() works: the template shows earlier replies and ends them with a token."""
        if self._extends is None:
            try:
                self._encoded(self._delta, [user("x")])
                self._extends = True
            except BadValue:
                self._extends = False
        return self._extends

    def keeps(self, sampled: list[int]) -> bool:
        """Return whether the template still shows this reply in full after a user message, ignoring whitespace.

        Returns false for a reply with thinking if the template removes thinking from earlier replies.
        """
        key = blake2b(array("q", sampled).tobytes(), digest_size=16).digest()
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= _CACHED_KEEPS:
                self._kept.clear()
            kept = self._kept[key] = self.template.keeps(self._decode_reply(tuple(sampled)))
        return kept

    def reply(self, sampled: list[int]) -> Message:
        """Convert a sampled reply to a message.

        prompt() encodes only the sampled control tokens as control tokens, not text that looks like them.
        """
        return assistant(self._reply_text(tuple(sampled)))

    def decode(self, sampled: list[int]) -> str:
        """Decode a reply, without its end token."""
        return str(self.tokenizer.decode(self._without_end(sampled), skip_special_tokens=False))

    def encode_reply(self, text: str) -> list[int]:
        """Encode a reply given as text, and add the end token."""
        return [*self.template.encode_text(text), self.eos_id]

    def _without_end(self, sampled: list[int]) -> list[int]:
        return sampled[:-1] if sampled[-1:] == [self.eos_id] else sampled

    def _encoded(self, cached: Any, messages: Sequence[Message]) -> list[int]:
        """Encode messages with a function that has a cache, which long messages do not enter."""
        key = tuple((message["role"], self.template.safe(message["content"])) for message in messages)
        is_short = sum(len(content) for _, content in key) <= _CACHED_CHARS
        return list(cached(key) if is_short else cached.__wrapped__(key))

    def _end_of_reply(self) -> tuple[str, int]:
        """Return the text and id of the control token that the template writes after a reply, else of the eos token."""
        rest = self.template.after_reply([], reply=False) or ""
        for token in sorted(self.template.control, key=len, reverse=True):
            if rest.lstrip().startswith(token):
                return token, self.template.control[token]
        if self.tokenizer.eos_token_id is None:
            raise BadValue("the tokenizer has no eos token to end replies with; set tokenizer.eos_token")
        return self.tokenizer.eos_token, self.tokenizer.eos_token_id

    def _encode_first(self, key: MessagesKey) -> tuple[int, ...]:
        return tuple(self.template.encode(self.template.render(_messages(key))))

    def _encode_delta(self, key: MessagesKey) -> tuple[int, ...]:
        gap, ended, new = (self.template.after_reply(_messages(key)) or "").partition(self.eos_token)
        if not ended or gap.strip():
            raise BadValue(
                "this chat template drops earlier replies or does not end them with the eos token, so contexts cannot "
                "be extended token by token; use the wrapper concat_chat, which then renders every prompt from scratch"
            )
        return tuple(self._after_end(new, self.template.encode))

    def _after_end(self, text: str, encode: Callable[[str], list[int]]) -> list[int]:
        # Encoded with the end token in front: tokenizers may merge whitespace into it or treat the start differently.
        ids = encode(self.eos_token + text)
        return ids[1:] if ids[:1] == [self.eos_id] else encode(text)

    def _decode_reply(self, sampled: tuple[int, ...]) -> SafeText:
        return self.template.decode_reply(self._without_end(list(sampled)))


def _messages(key: MessagesKey) -> list[Message]:
    return [{"role": role, "content": content} for role, content in key]
