"""Message text never becomes control tokens, with any template."""

from __future__ import annotations

import re
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gem.conversation import ChatFormat
from gem.conversation.template import MARK, Template
from gem.errors import BadValue
from gem.messages import Message, assistant, tool, user

SPECIAL = {
    "<u>": 0x110000,
    "<a>": 0x110001,
    "<t>": 0x110002,
    "</end>": 0x110003,
    "</end>>": 0x110004,
    "((<u>))": 0x110005,
}
END = "</end>"
NAMES = {id: text for text, id in SPECIAL.items()}
PIECES = st.sampled_from([*SPECIAL, "<", ">", "u>", "</", "end>", "<</end>/end>", MARK, " ", "\n", "é", "x", "think"])
TEXTS = st.lists(PIECES, max_size=8).map("".join)


class Letters:
    """Tokens are characters, besides one token per special token and a "<think>" that is not special."""

    chat_template = "see apply_chat_template"
    eos_token, eos_token_id = END, SPECIAL[END]
    added_tokens_decoder = {  # noqa: RUF012
        **{id: SimpleNamespace(content=text, special=True) for text, id in SPECIAL.items()},
        0x110010: SimpleNamespace(content="<think>", special=False),
    }

    def apply_chat_template(self, messages: list[Message], tokenize: bool, add_generation_prompt: bool) -> str:
        return "".join(map(self.message, messages)) + ("<a>" if add_generation_prompt else "")

    def message(self, message: Message) -> str:
        return f"<{message['role'][0]}>{message['content']}{END}"

    def encode(self, text: str, add_special_tokens: bool, split_special_tokens: bool = False) -> list[int]:
        found = "|".join(re.escape(token) for token in sorted(SPECIAL, key=len, reverse=True))
        parts = [text] if split_special_tokens else re.split(f"({found})", text)
        return [id for part in parts for id in ([SPECIAL[part]] if part in SPECIAL else map(ord, part))]

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        return "".join(NAMES.get(id) or chr(id) for id in ids)


class Trims(Letters):
    def message(self, message: Message) -> str:
        return super().message({**message, "content": message["content"].strip().strip("x")})


class Cuts(Letters):
    """Shows the second half of each message."""

    def message(self, message: Message) -> str:
        return super().message({**message, "content": message["content"][len(message["content"]) // 2 :]})


class NoTools(Letters):
    def apply_chat_template(self, messages: list[Message], tokenize: bool, add_generation_prompt: bool) -> str:
        roles = [message["role"] for message in messages]
        if any(a == b for a, b in pairwise(roles)) or "tool" in roles:
            raise RuntimeError("roles must alternate")
        return super().apply_chat_template(messages, tokenize, add_generation_prompt)


class ForgetsTools(Letters):
    def message(self, message: Message) -> str:
        return "" if message["role"] == "tool" else super().message(message)


def special(ids: list[int]) -> list[str]:
    return [NAMES[id] for id in ids if id in NAMES]


def text_of(ids: list[int]) -> str:
    return Letters().decode(ids, False)


@pytest.mark.parametrize("tokenizer", [Letters, Trims, Cuts])
@given(first=TEXTS, second=TEXTS)
def test_a_prompt_contains_only_control_tokens_of_the_template(tokenizer, first, second):
    ids = ChatFormat(tokenizer()).prompt([user(first), assistant(second), tool("x")])
    assert special(ids) == ["<u>", END, "<a>", END, "<t>", END, "<a>"]


@given(TEXTS)
def test_other_text_is_unchanged(text):
    chat = ChatFormat(Letters())
    assert text_of(chat.prompt([user(text)])) == f"<u>{text.replace(MARK, '')}{END}<a>"
    assert text_of(chat.prompt([user("a"), user(text)])) == f"<u>a{END}<u>{text.replace(MARK, '')}{END}<a>"


@given(sampled=st.lists(st.sampled_from([*NAMES, *map(ord, "<>()/uend")]), max_size=12), text=TEXTS)
def test_a_reply_is_fed_back_as_sampled_and_new_text_has_no_control_tokens(sampled, text):
    chat = ChatFormat(Letters())
    fed = chat.prompt([user("rules")])
    extended = chat.extend(fed, sampled, [tool(text), user(text)])
    closed = [] if sampled[-1:] == [chat.eos_id] else [chat.eos_id]
    assert extended[: len(fed) + len(sampled) + len(closed)] == fed + sampled + closed
    assert special(extended[len(fed) + len(sampled) + len(closed) :]) == ["<t>", END, "<u>", END, "<a>"]


@given(st.lists(st.sampled_from([*NAMES, *map(ord, "<>()/uend")]), max_size=12))
@example([SPECIAL["</end>"], ord(">")])
@example([ord("("), ord("("), SPECIAL["<u>"], ord(")"), ord(")")])
def test_a_reply_rendered_again_keeps_its_control_tokens(sampled):
    chat = ChatFormat(Letters())
    said = list(sampled)
    while chat.has_ended(said):
        said.pop()
    prompt = chat.prompt([user("a"), chat.reply(sampled), user("b")])
    assert prompt == [*chat.prompt([user("a")]), *said, chat.eos_id, *chat.prompt([user("b")])]


def test_a_reply_and_an_identical_text_are_distinguished():
    chat = ChatFormat(Letters())
    prompts = [chat.prompt([chat.reply([SPECIAL["<u>"]])]), chat.prompt([assistant("<u>")])]
    assert [special(ids) for ids in prompts] == [["<a>", "<u>", END, "<a>"], ["<a>", END, "<a>"]]


def test_a_reply_given_as_text_has_only_the_end_token():
    ids = ChatFormat(Letters()).encode_reply("a<u>b</end>")
    assert special(ids) == [END] and text_of(ids) == "a<u>b</end></end>"


def test_added_tokens_that_are_not_special_are_text():
    template = Template(Letters())
    assert template.safe("<think>") == "<think>"
    assert set(template.control) == set(SPECIAL)


def test_a_rendered_prompt_is_encoded_unchanged():
    assert special(ChatFormat(Letters()).raw("<u>a</end><a>")) == ["<u>", END, "<a>"]


def test_a_look_alike_in_the_vocabulary_is_split():
    class Words(Letters):
        def encode(self, text: str, add_special_tokens: bool, split_special_tokens: bool = False) -> list[int]:
            return super().encode(text, add_special_tokens)

    assert special(ChatFormat(Words()).prompt([user("a<u>b")])) == ["<u>", END, "<a>"]


# The role of tools


def test_a_template_that_supports_tools_gets_tool_messages():
    assert Template(Letters()).supports_tools
    assert text_of(ChatFormat(Letters()).prompt([user("a"), assistant("b"), tool("c")])).endswith("<t>c</end><a>")


@pytest.mark.parametrize("tokenizer", [NoTools, ForgetsTools])
def test_a_template_without_tools_gets_user_messages(tokenizer):
    chat = ChatFormat(tokenizer())
    assert not chat.template.supports_tools
    assert text_of(chat.prompt([user("a"), assistant("b"), tool("c")])) == "<u>a</end><a>b</end><u>c</end><a>"
    extended = chat.extend(chat.prompt([user("a")]), [ord("b"), chat.eos_id], [tool("c")])
    assert text_of(extended) == "<u>a</end><a>b</end><u>c</end><a>"


def test_adjacent_tool_results_and_user_messages_are_joined():
    chat = ChatFormat(NoTools())
    said = [user("a"), assistant("b"), tool("c"), tool("<u>"), user("d"), assistant("e"), tool("f")]
    shown = chat.template.encode(chat.template.render(said))
    assert text_of(shown) == "<u>a</end><a>b</end><u>c\n<u>\nd</end><a>e</end><u>f</end><a>"
    assert special(shown).count("<u>") == 3


def test_refused_messages_are_named_by_role():
    with pytest.raises(BadValue, match=r"assistant, assistant: RuntimeError: .*must alternate"):
        ChatFormat(NoTools()).prompt([user("a"), assistant("b"), assistant("c")])


class NoSystem(NoTools):
    def apply_chat_template(self, messages: list[Message], tokenize: bool, add_generation_prompt: bool) -> str:
        if any(message["role"] == "system" for message in messages):
            raise RuntimeError("System role not supported")
        return super().apply_chat_template(messages, tokenize, add_generation_prompt)


def system(text: str) -> Message:
    return {"role": "system", "content": text}


@pytest.mark.parametrize(
    ("tokenizer", "messages", "shown"),
    [
        (NoTools, [user("a"), user("<u>"), user("c")], "<u>a\n\n<u>\n\nc</end><a>"),
        (NoSystem, [system("be"), user("a")], "<u>be\n\na</end><a>"),
        (NoSystem, [system("be"), user("a"), user("b")], "<u>be\n\na\n\nb</end><a>"),
        (NoSystem, [user("a"), assistant("b"), system("be"), user("c")], "<u>a</end><a>b</end><u>be\n\nc</end><a>"),
        (NoSystem, [system("be")], "<u>be</end><a>"),
        (Letters, [system("be"), user("a"), user("b")], "<s>be</end><u>a</end><u>b</end><a>"),
    ],
)
def test_messages_that_a_template_refuses_are_joined(tokenizer, messages, shown):
    ids = ChatFormat(tokenizer()).prompt(messages)
    assert text_of(ids) == shown
    assert special(ids).count("<u>") == sum(part.startswith("<u>") for part in re.split("</end>|<a>", shown))


def test_content_that_is_not_text_is_refused():
    message: Any = {"role": "user", "content": [{"type": "image", "image": None}]}
    with pytest.raises(BadValue, match=r"messages of text.*content of list"):
        ChatFormat(Letters()).prompt([message, message])


# The end of a reply


def test_the_end_token_of_the_template_may_differ_from_eos():
    class Base(Letters):
        eos_token, eos_token_id = "<t>", SPECIAL["<t>"]

    chat = ChatFormat(Base())
    assert chat.eos_id == SPECIAL[END]
    assert chat.decode([ord("a"), SPECIAL[END]]) == "a"
    assert chat.extend([], [ord("a")], "b") == [ord("a"), SPECIAL[END], *chat.prompt([user("b")])]


def test_an_added_line_break_is_text():
    class Broken(Letters):
        added_tokens_decoder = Letters.added_tokens_decoder | {0x110011: SimpleNamespace(content="\n", special=False)}

        def message(self, message: Message) -> str:
            return super().message(message) + "\n"

    assert Template(Broken()).safe("a\nb") == "a\nb"


def test_a_special_token_of_one_character_is_refused():
    class Short(Letters):
        added_tokens_decoder = Letters.added_tokens_decoder | {0x110011: SimpleNamespace(content="§", special=True)}

    with pytest.raises(BadValue, match="'§' is a single character"):
        Template(Short())
