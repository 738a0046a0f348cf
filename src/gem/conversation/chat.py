"""Encode conversations with a chat template, extending the context token by token.

Each prompt is the previous prompt followed by the sampled ids and the ids of the new messages. Earlier turns are not
rendered again, so replies keep the exact tokens that were sampled.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from gem._internal.inbound import SETTINGS, read_json
from gem.conversation.template import SafeText, Template, thinking_tags
from gem.errors import BadValue
from gem.messages import Message, Role, assistant, tool, user

# Cache sizes per format. Games repeat few short texts; tool results are long and never repeat.
_CACHED_TEXTS = 16_384
_CACHED_CHARS = 2_000  # per conversation; longer ones are not cached
_CACHED_REPLIES = 4_096  # decoded replies that a template may strip
_CACHED_KEEPS = 131_072  # results of keeps(), which is called for all turns of all in-flight episodes

# Tokens that end a reply where a tokenizer has them as control tokens. Servers stop at those of a model's
# generation_config, which are more than the end token of the template and which a client may not know.
_ENDS = frozenset(
    (
        *("<|endoftext|>", "<|im_end|>", "<|end|>", "</s>", "<eos>", "<|eos|>", "[EOS]", "<end_of_turn>"),
        *("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|eot|>", "<|eom|>", "<|return|>", "<|call|>"),
        *("<|END_OF_TURN_TOKEN|>", "<|end_of_turn|>", "[|endofturn|]", "<|endofturn|>", "<｜end▁of▁sentence｜>"),
    )
)
_HEADER_TOKENS = 8  # at the end of a prompt, which hold the tag that opens the thinking of a reply
_TOOL_ROUND = (assistant("ok"), tool("ok"))

MessagesKey = tuple[tuple[Role, str], ...]  # hashable messages


class ChatFormat:
    """Encodes conversations with the chat template of a tokenizer.

    Message text is never encoded as control tokens. If the template does not support the role "tool", such messages
    are rendered as user messages; see gem.conversation.template.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template that ends replies with a token.
        image_text: returns the text of an image, with control tokens; None refuses images.
        end_ids: further ids that end a reply, such as those of the model's generation_config.

    Attributes:
        eos_id: id of the token that ends a reply: the control token that the template writes after a reply. Some
            templates write none, and the next message begins with one (GLM); else the tokenizer's eos token.
        end_ids: all ids that end a reply: ``eos_id``, the tokenizer's eos token, the given ones, those of a
            generation_config.json in the tokenizer's folder, those that begin the message after a reply if replies have
            no end of their own, and well-known ones such as ``<|eot_id|>`` that are control tokens of the tokenizer.

    Raises:
        BadValue: if the tokenizer has no chat template or no eos token.
    """

    def __init__(
        self, tokenizer: Any, image_text: Callable[[Any], str] | None = None, end_ids: Iterable[int] = ()
    ) -> None:
        self.tokenizer, self.template = tokenizer, Template(tokenizer, image_text)
        self.reads_images = image_text is not None
        self.eos_token, self.eos_id = self._end_of_reply()
        self.end_ids = frozenset({self.eos_id, *end_ids, *self._other_ends()})
        self._delta = lru_cache(_CACHED_TEXTS)(self._encode_delta)
        self._later_delta = lru_cache(_CACHED_TEXTS)(partial(self._encode_delta, before=_TOOL_ROUND))
        self._first = lru_cache(_CACHED_TEXTS)(self._encode_first)
        self._reply_text = lru_cache(_CACHED_REPLIES)(self._decode_reply)
        self._kept: dict[bytes, bool] = {}  # by digest, because replies are long and rarely repeat

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

    def extend(self, fed: Sequence[int], sampled: list[int], new: str | Sequence[Message]) -> list[int]:
        """Return the previous prompt, extended by a reply, new messages and the header of the next reply.

        ``fed`` contains the ids of the previous prompt. For the other arguments and the errors, see new_ids().
        """
        _, closing = self.thinking_ids(fed, sampled)
        return [*fed, *sampled, *closing, *self.new_ids(sampled, new)]

    def thinking_ids(self, fed: Sequence[int], sampled: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the ids that open thinking at the end of a prompt, and those that close it if a cut reply does not.

        Usually both are empty. The latter belong between the reply and new_ids(): the next reply would otherwise
        continue the thinking. A reply with both around it is what chat templates take for a reply with thinking.

        Args:
            fed: ids of the prompt.
            sampled: ids of the reply.
        """
        if not self._opens_thinking:
            return [], []
        opening, closing = thinking_tags(self.template.decode(fed[-_HEADER_TOKENS:]))
        if self.has_ended(sampled) or closing.strip() in self.decode(sampled):
            closing = ""
        return self.raw(opening), self.raw(closing)

    def new_ids(self, sampled: list[int], new: str | Sequence[Message], *, after_tools: bool = False) -> list[int]:
        """Return the ids that follow a reply: its end token if missing, new messages and the header of the next reply.

        Args:
            sampled: ids of the reply. A token that the template writes after replies is not repeated if the model has
                ended its reply with it: the end token, or the token that begins the next message (GLM).
            new: the new messages; a string is one user message.
            after_tools: whether an earlier reply was answered by tools; see numbers_tools.

        Raises:
            BadValue: if the template does not show earlier replies or writes no control token after them.
        """
        added = self._encoded(
            self._later_delta if after_tools else self._delta, [user(new)] if isinstance(new, str) else new
        )
        return added[1:] if added[0] in sampled[len(self._without_end(sampled)) :] else added

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
        if not self.has_ended(sampled):
            return self.raw(rest)
        after = self._encode_after(rest, self.raw)
        return after[1:] if after[:1] == sampled[-1:] else None

    @cached_property
    def can_extend(self) -> bool:
        """Whether extend() works: the template shows earlier replies and ends them with a token."""
        try:
            self._encoded(self._delta, [user("x")])
        except BadValue:
            return False
        return True

    @cached_property
    def numbers_tools(self) -> bool:
        """Whether the template shows the first results of tools differently from later ones (DeepSeek-V3)."""
        if not self.can_extend or not self.template.supports_tools:
            return False
        return self.new_ids([], [tool("x")]) != self.new_ids([], [tool("x")], after_tools=True)

    @cached_property
    def _opens_thinking(self) -> bool:
        return any(thinking_tags(self.template.render([user("x")])))

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

    def decode(self, sampled: Sequence[int]) -> str:
        """Return the text of a reply: all that was sampled, without the tokens at its end that end a reply.

        Other special tokens, such as ``<tool_call>``, are part of the text.
        """
        return self.template.decode(self._without_end(sampled))

    def has_ended(self, sampled: Sequence[int]) -> bool:
        """Whether a reply ends with a token that ends replies. Others were cut."""
        return len(sampled) > 0 and sampled[-1] in self.end_ids

    def encode_reply(self, text: str) -> list[int]:
        """Encode a reply given as text, and add the end token."""
        return [*self.template.encode_text(text), self.eos_id]

    def _without_end(self, sampled: Sequence[int]) -> list[int]:
        end = len(sampled)
        while end and sampled[end - 1] in self.end_ids:
            end -= 1
        return list(sampled[:end])

    def _encoded(self, cached: Any, messages: Sequence[Message]) -> list[int]:
        """Encode messages with a function that has a cache, which long messages do not enter."""
        key = tuple((message["role"], self.template.safe(message["content"])) for message in messages)
        is_short = sum(len(content) for _, content in key) <= _CACHED_CHARS
        return list(cached(key) if is_short else cached.__wrapped__(key))

    def _end_of_reply(self) -> tuple[str, int]:
        """Return the text and id of the control token that the template writes after a reply, else of the eos token."""
        if end := self.leading_token(self.template.after_reply([], reply=False)) or next(self._next_headers(), None):
            return end
        if self.tokenizer.eos_token_id is None:
            raise BadValue("the tokenizer has no eos token to end replies with; set tokenizer.eos_token")
        return self.tokenizer.eos_token, self.tokenizer.eos_token_id

    def _next_headers(self) -> Iterator[tuple[str, int]]:
        """Yield the control tokens that the template writes right after a reply, before a user message or a tool's."""
        for message in (user("x"), tool("x")):
            with suppress(BadValue):  # the template refuses such a conversation
                found = self.leading_token(self.template.after_reply([message]))
                if found and found[0] != getattr(self.tokenizer, "bos_token", None):  # which no model samples
                    yield found

    def leading_token(self, text: str | None) -> tuple[str, int] | None:
        """Return the control token or eos token that a text begins with, after whitespace, and its id."""
        text = (text or "").lstrip()
        if token := self.template.leading_control(text):
            return token, self.template.control[token]
        eos, id = self.tokenizer.eos_token, self.tokenizer.eos_token_id
        return (eos, id) if id is not None and text.startswith(eos) else None

    def _other_ends(self) -> Iterator[int]:
        yield from (id for _, id in self._next_headers())
        yield from (id for token, id in self.template.control.items() if token in _ENDS)
        yield from eos_ids(self.tokenizer.eos_token_id)
        yield from _folder_ends(getattr(self.tokenizer, "name_or_path", None))

    def _encode_first(self, key: MessagesKey) -> tuple[int, ...]:
        return tuple(self.template.encode(self.template.render(_messages(key))))

    def _encode_delta(self, key: MessagesKey, before: Sequence[Message] = ()) -> tuple[int, ...]:
        ids = self._encode_after(self.template.after_reply(_messages(key), before=before), self.template.encode)
        if not ids:
            raise BadValue(
                "this chat template drops earlier replies or writes no control token after them, so contexts cannot "
                "be extended token by token; use the wrapper concat_chat, which then renders every prompt from scratch"
            )
        return tuple(ids)

    def _encode_after(self, text: str | None, encode: Callable[[str], list[int]]) -> list[int]:
        """Encode what the template writes after a reply, from the control token on. Empty if it writes none."""
        if (leading := self.leading_token(text)) is None:
            return []
        token, id = leading
        # With the token in front: tokenizers may merge whitespace into it or treat the start differently.
        text = (text or "").lstrip()
        ids = encode(text)
        return ids if ids[:1] == [id] else [id, *encode(text.removeprefix(token))]

    def _decode_reply(self, sampled: tuple[int, ...]) -> SafeText:
        return self.template.decode_reply(self._without_end(list(sampled)))


def _messages(key: MessagesKey) -> list[Message]:
    return [{"role": role, "content": content} for role, content in key]


def _folder_ends(folder: str | None) -> list[int]:
    """Return the eos ids of the generation_config.json in a model's folder; empty if there is none."""
    path = Path(folder or "", "generation_config.json")
    config = read_json(path, SETTINGS) if folder and path.is_file() else None
    return eos_ids(config.get("eos_token_id")) if isinstance(config, dict) else []


def eos_ids(value: Any) -> list[int]:
    """Return the ``eos_token_id`` of a configuration as a list. Raises BadValue for one that is neither."""
    ids = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(id, int) for id in ids):
        raise BadValue(f"eos_token_id of the model must be a number or a list of numbers, got {value!r}")
    return ids
