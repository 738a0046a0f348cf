"""Tokenizers with merges and chat templates, built without downloads. Loaded by path from tests.

``chatml()`` writes ChatML with tools. ``stripping()`` shares no token with it, trims what is said, and shows the
thinking of a reply only until the user speaks again (results of tools do not count), as Qwen3 does. ``strict()`` wants
user and assistant to alternate and refuses every other role.
"""

from __future__ import annotations

import functools
from typing import Any

TEXTS = [
    "The user asks and the assistant answers; the tool says what came out of it.",
    "Search result 1: the number is too high. Search result 2: the number is too low.",
    "<tool_call>{'name': 'python', 'arguments': {'code': 'print(1 + 1)'}}</tool_call>",
    "Code execution result: 2\nTraceback (most recent call last): ZeroDivisionError: division by zero",
    "tool user assistant system tool user assistant system the the the and and in in on on",
    "Grüße, naïve café, Ελληνικά, 日本語, 日本人, русский язык 🙂🙂",
    r"\boxed{10} \boxed{12} \boxed{7}",
    "[EN D] [EN D] [EN D] [EN D]",  # so that a model can spell a control token
] * 4

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
STRIPPING = (
    "[BOS]{% set ns = namespace(last=-1) %}"
    "{% for m in messages %}{% if m['role'] == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}{% set said = m['content'] %}"
    "{% if m['role'] == 'assistant' %}"
    "{% if '</think>' in said and loop.index0 < ns.last %}{% set said = said.split('</think>')[-1] %}{% endif %}"
    "[AST]{{ said | trim }}[END]"
    "{% elif m['role'] == 'tool' %}[TOOL]{{ said | trim }}"
    "{% elif m['role'] == 'system' %}[SYS]{{ said | trim }}"
    "{% else %}[USR]{{ said | trim }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}[AST]{% endif %}"
)
STRICT = (
    "<s>{% for m in messages %}"
    "{% if m['role'] != ('user' if loop.index0 % 2 == 0 else 'assistant') %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}"
    "{% if m['role'] == 'user' %}<inst>{{ m['content'] }}</inst>{% else %}{{ m['content'] }}</s>{% endif %}"
    "{% endfor %}"
)

THINKING = ("<think>", "</think>")


@functools.cache
def chatml() -> Any:
    return build(["<|pad|>", "<|im_start|>", "<|im_end|>"], CHATML, end="<|im_end|>", regex=True)


@functools.cache
def stripping() -> Any:
    special = ["[PAD]", "[BOS]", "[END]", "[USR]", "[AST]", "[TOOL]", "[SYS]"]
    return build(special, STRIPPING, end="[END]", regex=False)


@functools.cache
def strict() -> Any:
    return build(["<pad>", "<s>", "</s>", "<inst>", "</inst>"], STRICT, end="</s>", regex=True)


def build(special: list[str], template: str, *, end: str, regex: bool) -> Any:
    """Build a byte-level BPE tokenizer of about 400 tokens; thinking tokens are added and not special."""
    import tokenizers
    import transformers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=12,
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_tokens([tokenizers.AddedToken(text, special=False, normalized=False) for text in THINKING])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=end, pad_token=special[0], chat_template=template
    )
