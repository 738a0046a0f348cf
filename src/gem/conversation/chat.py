"""A chat template as token spans: the first prompt, then only what each new message adds.

Ids fed next = ids fed before + ids sampled + ids of the new messages. Earlier turns are not rendered again, so what
the model said is fed back as the very tokens it sampled.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from gem.conversation.template import SafeText, Template
from gem.errors import BadValue
from gem.messages import Message, Role, assistant, user

_ASKED, _REPLY, _ANSWERED = "a-question", "a-reply-to-be-found-again", "an-answer"
# Kept per format: games say few different things, and the results of tools are long and never the same.
_CACHE = 16_384  # texts
_CACHED_CHARS = 2_000  # of messages: longer ones would fill the memory
_REPLIES = 4_096  # of those that a template may strip
_VERDICTS = 131_072  # of keeps(), which is asked for all turns of all episodes under way

Said = tuple[tuple[Role, str], ...]  # messages, as a key


class ChatFormat:
    """The token spans of conversations under one tokenizer and its chat template.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template that ends replies with a token.

    Attributes:
        eos_id: the token that ends a reply: the control token that the template writes after one, else the
            tokenizer's eos token.

    Texts of others never become control tokens, and a template that refuses the role "tool" gets such messages as the
    user's: see gem.conversation.template. Raises BadValue when the tokenizer has no template or no eos token.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.template = tokenizer, Template(tokenizer)
        self.eos_token, self.eos_id = self._end_of_reply()
        self._delta = lru_cache(_CACHE)(self._encode_delta)
        self._first = lru_cache(_CACHE)(self._encode_first)
        self._said = lru_cache(_REPLIES)(self._read_reply)
        self._kept: dict[bytes, bool] = {}  # by digest, as replies are long and never the same
        self._extends: bool | None = None

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """A whole conversation, ready for the model's reply.

        Replies among the messages are encoded as text; those that reply() made keep their control tokens.
        """
        if len(messages) == 1:
            said = self._key(messages)
            return list(self._first(said) if _is_short(said) else self._encode_first(said))
        return self.template.encode(self.template.render(messages))

    def raw(self, prompt: str) -> list[int]:
        """A prompt that was written with the template already; what looks like a control token is one."""
        return self.template.encode_plain(prompt)

    def extend(self, fed: list[int], sampled: list[int], new: str | Sequence[Message]) -> list[int]:
        """The context after a reply and new messages.

        Args:
            fed, sampled: the ids of the last prompt and of the reply to it. A reply that was cut before its end token
                gets one, as a fed token.
            new: the messages; a text is one of the user's.

        Raises BadValue when the template does not show or does not end earlier replies, so that no context extends the
        last one.
        """
        closed = sampled[-1:] == [self.eos_id]
        said = self._key([user(new)] if isinstance(new, str) else new)
        added = self._delta(said) if _is_short(said) else self._encode_delta(said)
        return fed + sampled + ([] if closed else [self.eos_id]) + list(added)

    @property
    def extends(self) -> bool:
        """Whether the template shows earlier replies and ends them, so that extend() works."""
        if self._extends is None:
            try:
                self._delta(self._key([user(_ANSWERED)]))
            except BadValue:
                self._extends = False
            else:
                self._extends = True
        return self._extends

    def keeps(self, sampled: list[int]) -> bool:
        """Whether the template shows this reply in full once the user has answered it, blanks aside.

        Templates that strip thinking do not keep replies that have some.
        """
        key = blake2b(array("q", sampled).tobytes(), digest_size=16).digest()
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= _VERDICTS:
                self._kept.clear()
            kept = self._kept[key] = self._find_reply(sampled)
        return kept

    def reply(self, sampled: list[int]) -> Message:
        """A sampled reply as a message that prompt() encodes with its own control tokens, and no others."""
        return assistant(self._said(tuple(sampled)))

    def decode(self, sampled: list[int]) -> str:
        """The text of a reply, without its end token."""
        return str(self.tokenizer.decode(self._open(sampled), skip_special_tokens=False))

    def encode_reply(self, text: str) -> list[int]:
        """The ids of a reply that somebody else wrote, its end token included."""
        return [*self.template.encode_text(text), self.eos_id]

    def _open(self, sampled: list[int]) -> list[int]:
        return sampled[:-1] if sampled[-1:] == [self.eos_id] else sampled

    def _key(self, messages: Sequence[Message]) -> Said:
        return tuple((message["role"], self.template.safe(message["content"])) for message in messages)

    def _end_of_reply(self) -> tuple[str, int]:
        """What the template ends a reply with: not always the eos token, as with <|im_end|> and <|endoftext|>."""
        _, _, rest = self.template.render([user(_ASKED), assistant(_REPLY)], reply=False).partition(_REPLY)
        for token in sorted(self.template.control, key=len, reverse=True):
            if rest.lstrip().startswith(token):
                return token, self.template.control[token]
        if self.tokenizer.eos_token_id is None:
            raise BadValue("the tokenizer has no eos token, so no reply would ever end; set tokenizer.eos_token")
        return self.tokenizer.eos_token, self.tokenizer.eos_token_id

    def _encode_first(self, said: Said) -> tuple[int, ...]:
        return tuple(self.template.encode(self.template.render(_messages(said))))

    def _encode_delta(self, said: Said) -> tuple[int, ...]:
        # What the template writes between the end of a reply and the start of the next, found on a dummy conversation.
        # (Not by comparing it with the conversation up to the reply: some templates write the last reply differently.)
        shown = self.template.render([user(_ASKED), assistant(_REPLY), *_messages(said)])
        _, found, rest = shown.partition(_REPLY)
        gap, ended, new = rest.partition(self.eos_token)
        if not found or not ended or gap.strip():
            raise BadValue(
                "this chat template drops earlier replies or does not end them with the eos token, so contexts cannot "
                "be extended token by token; use the wrapper concat_chat, which renders every prompt anew"
            )
        # Together with the end token: tokenizers may take blanks after it, or treat the start of a text differently.
        ids = tuple(self.template.encode(self.eos_token + new))
        return ids[1:] if ids[:1] == (self.eos_id,) else tuple(self.template.encode(new))

    def _read_reply(self, sampled: tuple[int, ...]) -> SafeText:
        return self.template.said(self._open(list(sampled)))

    def _find_reply(self, sampled: list[int]) -> bool:
        said = self.template.said(self._open(sampled))
        shown = self.template.render([user(_ASKED), assistant(said), user(_ANSWERED)])
        return squeezed(said) in squeezed(shown.partition(_ASKED)[2].rpartition(_ANSWERED)[0])


def squeezed(text: str) -> str:
    """A text without its blanks, which templates trim and add as they like."""
    return "".join(text.split())


def _is_short(said: Said) -> bool:
    return sum(len(content) for _, content in said) <= _CACHED_CHARS


def _messages(said: Said) -> list[Message]:
    return [{"role": role, "content": content} for role, content in said]
