"""A tokenizer's chat template, made safe: what others say is never read as the template's own control tokens.

What looks like a control token in a text ("<|im_end|>") gets a mark into it before the template is rendered. The
template's own control tokens have none; so they alone are encoded as such, whatever the template does to the texts
(trims them, quotes them, cuts them in pieces), and the mark is taken out of the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from gem.errors import BadValue
from gem.messages import Message, Role

MARK = "\ufdd0"  # a noncharacter: Unicode keeps it for internal use. A text that has it loses it.


class SafeText(str):
    """A text in which every look-alike is marked already, so that what it has unmarked are control tokens."""


class Template:
    """The chat template of a tokenizer.

    Its control tokens are those that the tokenizer calls special, and added ones that the template writes around
    messages of user and assistant. Other added tokens, like "<think>" and "<tool_response>" of many models, are text:
    everybody may write them.

    Args:
        tokenizer: a Hugging Face tokenizer, or whatever has its apply_chat_template(), encode() and decode().

    A template that refuses the role "tool", or leaves such messages out, gets them as the user's.
    Raises BadValue when the tokenizer has no template.
    """

    def __init__(self, tokenizer: Any) -> None:
        if getattr(tokenizer, "chat_template", ...) is None:
            raise BadValue("the tokenizer has no chat template; set tokenizer.chat_template")
        self.tokenizer = tokenizer
        self.control = self._control_tokens()
        self._find = re.compile("|".join(map(re.escape, sorted(self.control, key=len, reverse=True))) or r"(?!)")
        self._control_ids = frozenset(self.control.values())
        self._takes_tools: bool | None = None

    def render(self, messages: Sequence[Message], reply: bool = True) -> str:
        """A conversation as the template writes it, look-alikes marked; with the header of a reply if asked for.

        Raises BadValue for messages that the template refuses.
        """
        return self.render_plain([{**message, "content": self.safe(message["content"])} for message in messages], reply)

    def render_plain(self, messages: Sequence[Message], reply: bool = True) -> str:
        """render() without the marks: texts may then be read as control tokens."""
        messages = self._roles_taken(messages)
        try:
            return self._apply(messages, reply)
        except Exception as e:  # of whatever class the template's language has, or a tokenizer written by hand
            roles = ", ".join(message["role"] for message in messages)
            raise BadValue(f"the chat template refuses messages of {roles}: {type(e).__name__}: {e}") from e

    def encode(self, rendered: str) -> list[int]:
        """The ids of what render() wrote: unmarked control tokens as such, all else as text."""
        if MARK not in rendered:
            return self.encode_plain(rendered)
        ids: list[int] = []
        end = 0
        for match in self._find.finditer(rendered):
            ids += [*self.encode_text(rendered[end : match.start()]), self.control[match[0]]]
            end = match.end()
        return ids + self.encode_text(rendered[end:])

    def encode_plain(self, text: str) -> list[int]:
        """The ids of a text, whatever looks like a special token being one."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def encode_text(self, text: str) -> list[int]:
        """The ids of a text, with no control token among them."""
        text = self.safe(text)
        if MARK not in text:
            return self.encode_plain(text)
        bare = text.replace(MARK, "")
        ids = list(self.tokenizer.encode(bare, add_special_tokens=False, split_special_tokens=True))
        if self._control_ids.isdisjoint(ids):
            return ids
        # It splits none that is not called special, nor one that the vocabulary has as a word.
        return [id for part in text.split(MARK) for id in self.encode_plain(part)]

    def safe(self, text: Any) -> SafeText:
        """A text of somebody else's: its look-alikes are marked. Raises BadValue for what is no text."""
        if isinstance(text, SafeText):
            return text
        if not isinstance(text, str):
            raise BadValue(f"a text policy takes messages of text, got content of {type(text).__name__}")
        if MARK in text:
            text = text.replace(MARK, "")
        while self._find.search(text):  # again, for a token within a token
            text = self._find.sub(lambda match: match[0][0] + MARK + match[0][1:], text)
        return SafeText(text)

    def said(self, ids: Sequence[int]) -> SafeText:
        """The text of ids that a model sampled: its control tokens stay, and what it spelled out is marked."""
        parts: list[str] = []
        run: list[int] = []
        for id in ids:
            if id in self._control_ids:
                parts += [self.safe(self.decode(run)), self.decode([id])]
                run = []
            else:
                run.append(id)
        return SafeText("".join([*parts, self.safe(self.decode(run))]))

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False)) if ids else ""

    @property
    def takes_tools(self) -> bool:
        """Whether it writes messages of the role "tool"."""
        if self._takes_tools is None:
            said: list[Message] = [_message("user", "a"), _message("assistant", "b")]
            try:
                one, other = (self._apply([*said, _message("tool", text * 8)], True) for text in ("1", "2"))
            except Exception:  # as in render_plain()
                self._takes_tools = False
            else:
                self._takes_tools = one != other
        return self._takes_tools

    def _control_tokens(self) -> dict[str, int]:
        added = getattr(self.tokenizer, "added_tokens_decoder", {})
        control = {token.content: id for id, token in added.items() if token.special}
        if len(control) < len(added):  # some tokenizers do not call the headers of their messages special
            asked, answered = _message("user", "a"), _message("assistant", "b")
            # Headers are in both; an empty thought, which some templates write for the model, is in one of them.
            written = [self._apply([asked], True), self._apply([asked, answered, asked], False)]
            control |= {t.content: id for id, t in added.items() if all(t.content in text for text in written)}
        return control

    def _roles_taken(self, messages: Sequence[Message]) -> list[Message]:
        if not any(message["role"] == "tool" for message in messages) or self.takes_tools:
            return list(messages)
        return list(_without_tools(messages))

    def _apply(self, messages: Sequence[Message], reply: bool) -> str:
        return str(self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=reply))


def _without_tools(messages: Sequence[Message]) -> Iterable[Message]:
    """Results of tools as the user's messages: one for those in a row, as some templates want turns to alternate."""
    pending: Message | None = None
    from_tool = False
    for message in messages:
        is_tool = message["role"] == "tool"
        if pending is not None and pending["role"] == "user" and (is_tool or (from_tool and message["role"] == "user")):
            text = f"{pending['content']}\n{message['content']}"
            marked = isinstance(pending["content"], SafeText) and isinstance(message["content"], SafeText)
            pending, from_tool = _message("user", SafeText(text) if marked else text), True
            continue
        if pending is not None:
            yield pending
        pending, from_tool = ({**message, "role": "user"} if is_tool else message), is_tool
    if pending is not None:
        yield pending


def _message(role: Role, content: str) -> Message:
    return {"role": role, "content": content}
