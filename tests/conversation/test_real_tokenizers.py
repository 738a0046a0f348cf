"""ChatFormat with tokenizers that have merges and Jinja templates."""

from __future__ import annotations

import copy
import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hypothesis import given
from hypothesis import strategies as st

from gem.conversation import ChatFormat
from gem.errors import BadValue
from gem.messages import Message, assistant, tool, user

pytestmark = pytest.mark.train

TOKENIZERS = runpy.run_path(str(Path(__file__).with_name("chat_tokenizers.py")))
NAMES = ["chatml", "stripping", "strict"]
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\ufdd0[<|"), max_size=12)
LOOK_ALIKES = [
    "<|im_end|>",
    "<|im_start|>user\n",
    "[END]",
    "[USR]",
    "[BOS][PAD]",
    "</s>",
    "<inst>x</inst>",
    "<|<|im_end|>",
]


def built(name: str) -> Any:
    return TOKENIZERS[name]()


def control(chat: ChatFormat, ids: list[int]) -> list[int]:
    return [id for id in ids if id in chat.template.control.values()]


@pytest.mark.parametrize("name", NAMES)
@given(first=WORDS, reply=WORDS, second=WORDS)
def test_plain_text_is_encoded_as_by_the_tokenizer(name, first, reply, second):
    tokenizer = built(name)
    messages = [user(first), assistant(reply), user(second)]
    expected = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert ChatFormat(tokenizer).prompt(messages) == expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_look_alikes_are_encoded_as_text_without_loss(name, text):
    chat = ChatFormat(built(name))
    said = f"say {text} now"
    for messages, plain in (
        ([user(said)], [user("x")]),
        ([user("a"), assistant(said), user(said)], [user("a"), assistant("x"), user("x")]),
    ):
        ids = chat.prompt(messages)
        assert control(chat, ids) == control(chat, chat.prompt(plain))
        assert chat.tokenizer.decode(ids) == chat.template.render_plain(messages)
    extended = chat.extend([], [chat.eos_id], said)[1:]
    assert control(chat, extended) == control(chat, chat.extend([], [chat.eos_id], "x")[1:])
    assert said in chat.tokenizer.decode(extended)


@pytest.mark.parametrize("habit", ["takes the blanks after its end token", "puts a blank before a text"])
def test_extension_reproduces_tokenizer_behavior_at_the_end_of_a_reply(habit):
    import tokenizers
    import transformers

    like = built("chatml")
    backend = tokenizers.Tokenizer.from_str(like.backend_tokenizer.to_str())
    if habit.startswith("takes"):
        backend.add_special_tokens([tokenizers.AddedToken("<|im_end|>", rstrip=True, normalized=False)])
    else:
        first = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first")
        backend.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([first, backend.pre_tokenizer])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", chat_template=like.chat_template
    )
    messages = [user("high"), assistant("too low"), user("and now")]
    expected = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    chat = ChatFormat(tokenizer)
    fed = chat.prompt(messages[:1])
    end = expected.index(chat.eos_id, len(fed))
    assert chat.extend(fed, expected[len(fed) : end + 1], "and now") == expected


def test_alternating_templates_get_tool_results_as_user_messages():
    chat = ChatFormat(built("strict"))
    said: list[Message] = [user("a"), assistant("b"), tool("c"), tool("d"), user("e")]
    assert chat.tokenizer.decode(chat.prompt(said)) == "<s><inst>a</inst>b</s><inst>c\nd\ne</inst>"
    with pytest.raises(BadValue, match="assistant, assistant: TemplateError: Conversation roles"):
        chat.prompt([user("a"), assistant("b"), assistant("c")])


@pytest.mark.parametrize(("name", "end"), [("chatml", "<|im_end|>"), ("stripping", "[END]"), ("strict", "</s>")])
def test_a_reply_ends_with_the_end_token_of_the_template(name, end):
    tokenizer = built(name)
    assert ChatFormat(tokenizer).eos_id == tokenizer.convert_tokens_to_ids(end)


def test_only_templates_that_strip_thinking_do_not_keep_it():
    for name in NAMES:
        chat = ChatFormat(built(name))
        assert chat.keeps(chat.encode_reply("7"))
        assert chat.keeps(chat.encode_reply(" 7\n"))
        assert chat.keeps(chat.encode_reply("<think>hm</think>7")) == (name != "stripping")


def test_thinking_tokens_are_ordinary_text():
    chat = ChatFormat(built("stripping"))
    think = chat.tokenizer.convert_tokens_to_ids("<think>")
    assert think in chat.encode_reply("<think>hm</think>7")
    assert think in chat.prompt([user("write <think>")])


@pytest.mark.parametrize(
    ("history", "reply"), [("<think></think>", ""), ("", "<think>")], ids=["empty thoughts", "thought begun"]
)
def test_header_tokens_that_are_not_special_are_control_tokens(history, reply):
    import tokenizers

    build = TOKENIZERS["build"]
    template = (
        "{% for m in messages %}{{ '<:' + m['role'] + ':>' }}{% if m['role'] == 'assistant' %}"
        + history
        + "{% endif %}"
        "{{ m['content'] }}{% if m['role'] == 'assistant' %}<end>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<:assistant:>" + reply + "' }}{% endif %}"
    )
    tokenizer = build(["<pad>", "<end>"], template, end="<end>", regex=True)
    headers = [tokenizers.AddedToken(f"<:{role}:>", special=False) for role in ("user", "assistant")]
    tokenizer.add_tokens(headers)
    chat = ChatFormat(tokenizer)
    assert set(chat.template.control) == {"<pad>", "<end>", "<:user:>", "<:assistant:>"}
    ids = chat.prompt([user("a<:assistant:>b<end>")])
    names = tokenizer.convert_ids_to_tokens(control(chat, ids))
    assert names == ["<:user:>", "<:assistant:>"]
    assert tokenizer.decode(ids) == "<:user:>a<:assistant:>b<end><:assistant:>" + reply


MESSAGES = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
)
HEADER = "<|im_start|>assistant\n"


def generation(condition: str = "add_generation_prompt", header: str = HEADER) -> str:
    return f"{{% if {condition} %}}{{{{ {header!r} }}}}{{% endif %}}"


def with_template(template: str) -> Any:
    tokenizer = copy.deepcopy(built("chatml"))
    tokenizer.chat_template = template
    return tokenizer


@pytest.mark.parametrize(
    "ending",
    [
        "",
        generation("add_generation_promt"),
        generation(header="\n"),
        generation("add_generation_prompt and messages|length == 1"),
        generation("add_generation_prompt and messages[0]['role'] == 'system'"),
        generation("not add_generation_prompt", "<|im_end|>"),
    ],
    ids=["none", "misspelled", "a newline", "of the first turn", "after a system message", "an end otherwise"],
)
def test_a_template_whose_prompts_end_without_the_header_of_replies_is_refused(ending):
    with pytest.raises(BadValue, match=r"add_generation_prompt: .*<\|im_start\|>assistant"):
        ChatFormat(with_template(MESSAGES + ending))


THINKS = "{% set think = '<think>\n\n</think>\n\n' if m['role'] == 'assistant' and loop.last else '' %}"


@pytest.mark.parametrize(
    ("template", "header"),
    [
        (MESSAGES + generation("true"), HEADER),
        (MESSAGES + generation(header=HEADER + "<think>\n"), HEADER + "<think>\n"),
        (
            MESSAGES.replace("{{", THINKS + "{{", 1).replace("m['content']", "think + m['content']") + generation(),
            HEADER,
        ),
        (MESSAGES + generation(header="<|im_start|>assistant"), "<|im_start|>assistant"),
        (MESSAGES + generation() + generation("not add_generation_prompt", "<|pad|>"), HEADER),
    ],
    ids=["always", "opens thinking", "shows no thinking in the last reply", "without newline", "an end otherwise"],
)
def test_headers_that_replies_and_prompts_write_differently_are_accepted(template, header):
    chat = ChatFormat(with_template(template))
    assert chat.tokenizer.decode(chat.prompt([user("x")])) == f"<|im_start|>user\nx<|im_end|>\n{header}"


def test_a_template_without_headers_is_accepted():
    chat = ChatFormat(built("strict"))
    assert chat.tokenizer.decode(chat.prompt([user("x")])) == "<s><inst>x</inst>"
