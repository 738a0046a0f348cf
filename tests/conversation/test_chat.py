"""ChatFormat with a tokenizer whose tokens are characters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem.conversation import ChatFormat
from gem.conversation.observations import observation_text
from gem.errors import BadValue
from gem.messages import Message, assistant, user

USER, ASSISTANT, END = "\x01", "\x02", "\x03"
SAYINGS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8)


class CharTokenizer:
    """Tokens are characters; the template is a method, so that tests can override it."""

    chat_template = "see apply_chat_template"
    eos_token, eos_token_id = END, ord(END)

    def apply_chat_template(self, messages: list[Message], tokenize: bool, add_generation_prompt: bool) -> str:
        assert tokenize is False
        text = "".join(self.message(m, last=i == len(messages) - 1) for i, m in enumerate(messages))
        return text + (ASSISTANT if add_generation_prompt else "")

    def message(self, message: Message, last: bool) -> str:
        return f"{ASSISTANT if message['role'] == 'assistant' else USER}{message['content']}{END}"

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        assert add_special_tokens is False
        return [ord(c) for c in text]

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        assert skip_special_tokens is False
        return "".join(map(chr, ids))


class ThinksInTheLastReplyOnly(CharTokenizer):
    """Adds an empty thinking block to the last reply only, as the template of Qwen3 does."""

    def message(self, message: Message, last: bool) -> str:
        thinking = "<think></think>" if last and message["role"] == "assistant" else ""
        return super().message({**message, "content": thinking + message["content"]}, last)


class LineAfterEnd(CharTokenizer):
    """Writes a newline after each end token, as ChatML does."""

    def message(self, message: Message, last: bool) -> str:
        return super().message(message, last) + "\n"


class BareUser(CharTokenizer):
    """Only replies have an end token, as with the embedded tiny model."""

    def message(self, message: Message, last: bool) -> str:
        return super().message(message, last) if message["role"] == "assistant" else USER + message["content"]


def ids(text: str) -> list[int]:
    return [ord(c) for c in text]


TEMPLATES = [CharTokenizer, LineAfterEnd, BareUser]


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_first_prompt_is_the_conversation_rendered_by_the_template(template):
    tokenizer = template()
    chat = ChatFormat(tokenizer)
    for messages in ([user("rules")], [user("rules"), assistant("7"), user("too low")]):
        assert chat.prompt(messages) == ids(tokenizer.apply_chat_template(messages, False, True))


@pytest.mark.parametrize("template", TEMPLATES)
@given(first=SAYINGS, reply=SAYINGS, second=SAYINGS)
def test_extension_agrees_with_rendering_everything(template, first, reply, second):
    chat = ChatFormat(template())
    extended = chat.extend(chat.prompt([user(first)]), ids(reply + END), second)
    assert extended == chat.prompt([user(first), assistant(reply), user(second)])


@pytest.mark.parametrize("template", [*TEMPLATES, ThinksInTheLastReplyOnly])
def test_each_context_extends_the_previous_one_by_sampled_and_new_ids(template):
    chat = ChatFormat(template())
    fed, sampled = chat.prompt([user("rules")]), ids("any thing" + END)
    extended = chat.extend(fed, sampled, "too low")
    assert extended[: len(fed) + len(sampled)] == fed + sampled
    new = "".join(map(chr, extended[len(fed) + len(sampled) :]))
    assert "too low" in new
    assert new.endswith(ASSISTANT)
    assert "think" not in new


def test_a_cut_reply_gets_an_end_token():
    chat = ChatFormat(CharTokenizer())
    fed = chat.prompt([user("rules")])
    assert chat.extend(fed, ids("cut"), "next") == fed + ids("cut" + END + USER + "next" + END + ASSISTANT)
    assert chat.extend(fed, [], "next") == fed + ids(END + USER + "next" + END + ASSISTANT)


def test_extension_does_not_modify_its_arguments():
    chat = ChatFormat(CharTokenizer())
    fed, sampled = chat.prompt([user("rules")]), ids("7" + END)
    before = list(fed), list(sampled)
    chat.extend(fed, sampled, "next").clear()
    chat.prompt([user("rules")]).clear()
    assert (fed, sampled) == before
    assert chat.prompt([user("rules")]) == before[0]


def test_decoding_removes_and_encoding_adds_the_end_token():
    chat = ChatFormat(CharTokenizer())
    assert chat.decode(ids("seven" + END)) == "seven"
    assert chat.decode(ids("cut")) == "cut"
    assert chat.decode([]) == ""
    assert chat.encode_reply("seven") == ids("seven" + END)


@pytest.mark.parametrize(
    ("attribute", "says"), [("chat_template", "no chat template"), ("eos_token_id", "no eos token")]
)
def test_a_tokenizer_without_template_or_eos_is_refused(attribute, says):
    tokenizer: Any = CharTokenizer()
    setattr(tokenizer, attribute, None)
    with pytest.raises(BadValue, match=says):
        ChatFormat(tokenizer)


class ForgetsReplies(CharTokenizer):
    def message(self, message: Message, last: bool) -> str:
        return "" if message["role"] == "assistant" else super().message(message, last)


class NeverEnds(CharTokenizer):
    def message(self, message: Message, last: bool) -> str:
        return super().message(message, last).removesuffix(END)


@pytest.mark.parametrize("template", [ForgetsReplies, NeverEnds])
def test_extending_with_an_unsuitable_template_is_refused(template):
    chat = ChatFormat(template())
    with pytest.raises(BadValue, match="concat_chat"):
        chat.extend(chat.prompt([user("rules")]), ids("7" + END), "next")


# Observations


@pytest.mark.parametrize(
    ("observation", "info", "text"),
    [
        ("line", {}, "line"),
        ("line", {"suffix": "your turn"}, "line\nyour turn"),
        ("line", {"prefix": "task", "suffix": "your turn"}, "task\nline\nyour turn"),
        ("", {"suffix": "your turn"}, "your turn"),
        ("line", {"suffix": "", "prefix": None}, "line"),
        ("", {}, ""),
        ({"text": "line"}, {}, "line"),
    ],
)
def test_observation_text_includes_prefix_and_suffix(observation, info, text):
    assert observation_text(observation, info) == text


@pytest.mark.parametrize("observation", [None, 7, ["a"], {"text": "a", "images": []}, {"problem": "a"}, {"text": 7}])
def test_observation_text_refuses_other_types(observation):
    with pytest.raises(BadValue, match="needs text observations, got"):
        observation_text(observation, {})
