"""Render and encode a tokenizer's chat template without letting message text inject control tokens.

Before rendering, a mark is inserted into message text that looks like a control token ("<|im_end|>"). The template's
own control tokens have no mark, so only they are encoded as control tokens, even if the template trims, quotes or
splits the messages. The marks are removed before the text is encoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from os.path import commonprefix
from typing import Any

from gem.errors import BadValue
from gem.messages import Message, Role, assistant, tool, user

MARK = "\ufdd0"  # a Unicode noncharacter, reserved for internal use; removed from message text
_ZERO_WIDTH_SPACE = "\u200b"
_QUESTION, _REPLY, _ANSWER = "a-question", "a-reply-to-be-found-again", "an-answer"  # contents of dummy conversations
_SYSTEM: Message = {"role": "system", "content": "s"}
# <think>, <seed:think>, [THINK], ◁think▷
_OPENS_THINKING = re.compile(r"([<\[◁])((?:\w+:)?(?:think(?:ing)?|thought|reasoning|THINK)[>\]▷])(\s*)\Z")


class SafeText(str):
    """Text in which every string that only looks like a control token is marked."""


class Template:
    """The chat template of a tokenizer.

    Control tokens are the tokenizer's special tokens and the added tokens that the template writes around user and
    assistant messages. Other added tokens, such as "<think>" and "<tool_response>" of many models, are ordinary text.
    If the template rejects or omits messages of the role "tool", they are rendered as user messages.

    Args:
        tokenizer: a Hugging Face tokenizer, or an object with its apply_chat_template(), encode() and decode().
        image_text: returns the text of an image, with control tokens; None if the model reads no images.

    Raises:
        BadValue: if the tokenizer has no chat template, one whose prompts end without the header of replies, or one
            that refuses replies as the model writes them (gpt-oss).
    """

    def __init__(self, tokenizer: Any, image_text: Callable[[Any], str] | None = None) -> None:
        self.image_text = image_text
        if getattr(tokenizer, "chat_template", ...) is None:
            raise BadValue("the tokenizer has no chat template; set tokenizer.chat_template")
        self.tokenizer = tokenizer
        self.control = self._control_tokens()
        self._find = re.compile("|".join(map(re.escape, sorted(self.control, key=len, reverse=True))) or r"(?!)")
        self._control_ids = frozenset(self.control.values())
        self._check_header([user(_QUESTION)])
        self._check_header([user(_QUESTION), assistant("ok"), user(_ANSWER)])
        self._check_replies()

    def render(self, messages: Sequence[Message], reply: bool = True) -> str:
        """Render a conversation. Message text that looks like a control token is marked.

        Args:
            messages: the conversation.
            reply: whether to end with the header of the next reply.

        Raises:
            BadValue: for messages that the template refuses.
        """
        return self.render_plain([{**message, "content": self.safe(message["content"])} for message in messages], reply)

    def render_plain(self, messages: Sequence[Message], reply: bool = True) -> str:
        """Render a conversation without marks, so that message text may be encoded as control tokens."""
        messages = self._with_supported_roles(messages)
        try:
            return self._apply(messages, reply)
        except Exception as e:  # of any class: jinja2 errors, or those of a custom tokenizer
            roles = ", ".join(message["role"] for message in messages)
            raise BadValue(f"the chat template refuses messages of {roles}: {type(e).__name__}: {e}") from e

    def after_reply(
        self, messages: Sequence[Message], reply: bool = True, before: Sequence[Message] = ()
    ) -> str | None:
        """Return what the template writes after a reply: its end, new messages and the header of the next reply.

        Returns None if the template does not show earlier replies. For the other arguments and errors, see render().

        Args:
            before: messages between the first user message and the reply.
        """
        # Rendered with a dummy reply. (Comparing with the conversation up to the reply fails where templates render the
        # last reply differently.)
        rendered = self.render([user(_QUESTION), *before, assistant(_REPLY), *messages], reply)
        _, found, rest = rendered.partition(_REPLY)
        return rest if found else None

    def keeps(self, reply: str) -> bool:
        """Return whether the template still shows a reply in full after a user message, ignoring whitespace."""
        rendered = self.render([user(_QUESTION), assistant(reply), user(_ANSWER)])
        between = rendered.partition(_QUESTION)[2].rpartition(_ANSWER)[0]
        return remove_whitespace(self.safe(reply)) in remove_whitespace(between)

    def encode(self, rendered: str) -> list[int]:
        """Encode the output of render(): unmarked control tokens as such, everything else as text."""
        if MARK not in rendered:
            return self.encode_plain(rendered)
        ids: list[int] = []
        end = 0
        for match in self._find.finditer(rendered):
            ids += [*self.encode_text(rendered[end : match.start()]), self.control[match[0]]]
            end = match.end()
        return ids + self.encode_text(rendered[end:])

    def encode_plain(self, text: str) -> list[int]:
        """Encode a text. Text that looks like a special token is encoded as that token."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def encode_text(self, text: str) -> list[int]:
        """Encode a text without producing control tokens."""
        text = self.safe(text)
        if MARK not in text:
            return self.encode_plain(text)
        bare = text.replace(MARK, "")
        ids = list(self.tokenizer.encode(bare, add_special_tokens=False, split_special_tokens=True))
        if self._control_ids.isdisjoint(ids):
            return ids
        # The tokenizer does not split added tokens that are not special, or those in the base vocabulary.
        return [id for part in text.split(MARK) for id in self.encode_plain(part)]

    def safe(self, text: Any) -> SafeText:
        """Mark strings that look like control tokens in a text. Raises BadValue for a value that is not text.

        A list of parts, texts and images, becomes a text if the model reads images.
        """
        if isinstance(text, SafeText):
            return text
        if isinstance(text, list) and self.image_text is not None:
            return SafeText("".join(self._part(part, self.image_text) for part in text))
        if not isinstance(text, str):
            raise BadValue(f"a text policy takes messages of text, got content of {type(text).__name__}")
        return self._split(text.replace(MARK, "") if MARK in text else text, MARK)

    def _part(self, part: Any, image_text: Callable[[Any], str]) -> str:
        return image_text(part["image"]) if part.get("type") == "image" else self.safe(part.get("text"))

    def neutral(self, text: str) -> SafeText:
        """Insert zero-width spaces into strings that look like control tokens, for prompts that are passed on as text.

        render() then inserts no marks into the text.
        """
        return self._split(text, _ZERO_WIDTH_SPACE)

    def leading_control(self, text: str) -> str:
        """Return the control token that a text begins with; empty if it begins with none."""
        match = self._find.match(text)
        return match[0] if match else ""

    def without_end(self, text: str) -> str:
        """Remove control tokens, and whitespace between and after them, from the end of a reply."""
        end = len(text)
        for match in reversed(list(self._find.finditer(text))):
            if text[match.end() : end].strip():
                break
            end = match.start()
        return text[:end]

    def _split(self, text: str, separator: str) -> SafeText:
        while self._find.search(text):  # repeated, because control tokens may contain other control tokens
            text = self._find.sub(lambda match: match[0][0] + separator + match[0][1:], text)
        return SafeText(text)

    def decode_reply(self, ids: Sequence[int]) -> SafeText:
        """Decode sampled ids. Sampled control tokens are kept; other text that looks like a control token is marked."""
        parts: list[str] = []
        run: list[int] = []
        control: list[str] = []
        for id in ids:
            if id in self._control_ids:
                control.append(self.decode([id]))
                parts += [self.safe(self.decode(run)), control[-1]]
                run = []
            else:
                run.append(id)
        parts.append(self.safe(self.decode(run)))
        text = "".join(parts)
        # A control token and the text next to it may spell another control token, as "<end>" and ">" spell "<end>>".
        return SafeText(text if self._find.findall(text) == control else MARK.join(parts))

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False)) if ids else ""

    @cached_property
    def supports_tools(self) -> bool:
        """Whether the template renders messages of the role "tool"."""
        try:
            first, second = (self._apply([user("a"), assistant("b"), tool(text * 8)], True) for text in ("1", "2"))
        except Exception:  # of any class, as in render_plain()
            return False
        return first != second

    @cached_property
    def _refuses_system(self) -> tuple[bool, bool]:
        """Whether the template refuses a system message at the start, and one later."""
        return self._refuses([_SYSTEM, user("a")]), self._refuses([user("a"), assistant("b"), _SYSTEM, user("c")])

    @cached_property
    def _refuses_repeats(self) -> bool:
        """Whether the template refuses two user messages in a row."""
        return self._refuses([user("a"), user("b")])

    def _refuses(self, messages: Sequence[Message]) -> bool:
        try:
            self._apply(messages, True)
        except Exception:  # of any class, as in render_plain()
            return True
        return False

    def _control_tokens(self) -> dict[str, int]:
        added = getattr(self.tokenizer, "added_tokens_decoder", {})
        control = {token.content: id for id, token in added.items() if token.special}
        if len(control) < len(added):  # some tokenizers do not mark the tokens of message headers as special
            question, answer = user("a"), assistant("b")
            # Headers occur in both texts; the empty thinking block that some templates add occurs in one only.
            rendered = [self._apply([question], True), self._apply([question, answer, question], False)]
            # A single character, such as the line break in the added tokens of Gemma, is text.
            words = {t.content: id for id, t in added.items() if len(t.content.strip()) > 1}
            control |= {word: id for word, id in words.items() if all(word in text for text in rendered)}
        if short := [word for word in control if len(word) < 2]:
            raise BadValue(f"the tokenizer's special token {short[0]!r} is a single character, as any text may hold")
        return control

    def _check_header(self, messages: Sequence[Message]) -> None:
        """Raise BadValue if replies have a header, such as "<|im_start|>assistant", that prompts do not end with."""
        try:
            prompt, plain = (self._apply(messages, reply) for reply in (True, False))
            shown, found, _ = self._apply([*messages, assistant(_REPLY)], False).partition(_REPLY)
        except Exception:  # of any class; render_plain() reports it if such messages are rendered
            return
        # What both begin with: without the header, and without an end that a text without a next reply may have.
        before = commonprefix([prompt, plain])  # noqa: RUF071
        header = shown.removeprefix(before).strip()
        if found and shown.startswith(before) and header and not prompt.removeprefix(before).strip():
            raise BadValue(
                f"the chat template ignores add_generation_prompt: it begins replies with {header!r}, and its prompts "
                "end without; end it with {% if add_generation_prompt %}, this header and {% endif %}"
            )

    def _check_replies(self) -> None:
        """Raise BadValue if the model writes tokens around its replies that the template refuses in messages."""
        try:
            prompt = self._apply([user(_QUESTION)], True)
            shown, found, _ = self._apply([user(_QUESTION), assistant(_REPLY), user(_ANSWER)], True).partition(_REPLY)
        except Exception:  # of any class, as in _check_header()
            return
        written = shown.removeprefix(prompt)  # between the header and the reply, which the model writes itself
        if not found or not shown.startswith(prompt) or not self._find.search(written):
            return
        try:
            self._apply([user(_QUESTION), assistant(written + _REPLY), user(_ANSWER)], True)
        except Exception as e:
            raise BadValue(
                f"the chat template refuses replies that begin with {written!r}, as those of its model do ("
                f"{type(e).__name__}: {e}), so that contexts cannot be built from tokens; let a server render the "
                "messages: use EndpointPolicy without a tokenizer"
            ) from e

    def _with_supported_roles(self, messages: Sequence[Message]) -> list[Message]:
        """Turn messages of roles that the template does not take into user messages, and join user messages.

        Converted messages are joined with user messages next to them, because such templates often require alternating
        roles; other user messages are joined only if the template refuses two in a row.
        """
        kept: list[Message] = []
        before: Role | None = None  # role of the last message, before it was converted
        for i, message in enumerate(messages):
            role, message = message["role"], self._converted(message, i > 0)
            changed = message["role"] != role or (bool(kept) and kept[-1]["role"] != before)
            if before and kept[-1]["role"] == message["role"] == "user" and (changed or self._refuses_repeats):
                space = "\n" if "tool" in (before, role) else "\n\n"
                text = f"{kept[-1]['content']}{space}{message['content']}"
                marked = isinstance(kept[-1]["content"], SafeText) and isinstance(message["content"], SafeText)
                kept[-1] = user(SafeText(text) if marked else text)
            else:
                kept.append(message)
            before = role
        return kept

    def _converted(self, message: Message, later: bool) -> Message:
        role = message["role"]
        refused = (role == "tool" and not self.supports_tools) or (role == "system" and self._refuses_system[later])
        return {**message, "role": "user"} if refused else message

    def _apply(self, messages: Sequence[Message], reply: bool) -> str:
        return str(self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=reply))


def remove_whitespace(text: str) -> str:
    """Remove all whitespace. Used to compare texts, because templates add and trim whitespace."""
    return "".join(text.split())


def thinking_tags(header: str) -> tuple[str, str]:
    r"""Return the tag that opens thinking at the end of a header of replies, and the one that closes it.

    Both are empty if it opens none.

    >>> thinking_tags("<|im_start|>assistant\n<think>\n")
    ('<think>\n', '\n</think>\n\n')
    """
    if (tag := _OPENS_THINKING.search(header)) is None:
        return "", ""
    return tag[0], f"{tag[3]}{tag[1]}/{tag[2]}{tag[3] * 2}"
