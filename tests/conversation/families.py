"""Chat templates of model families, written from their documented behaviour, with small tokenizers. Loaded by path.

Each family has the tokens and the habits that matter for contexts: what ends a reply, which roles are refused, where
thinking is shown and where the header of a reply opens it. Wording of default system messages is ours.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

THINK = ("<think>", "</think>")
CALLS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of models.

    Args:
        template: the chat template.
        ends: tokens with which its models end replies; the first is the usual one.
        special: further special tokens.
        added: added tokens that are not special.
        eos, bos: tokens of the tokenizer; None for ``ends[0]`` and no token.
        strips: when the template removes the thinking of replies: "never", "at users" (when the user speaks again), or
            "always" (from all replies).
        tools: whether it has the role "tool".
    """

    template: str
    ends: tuple[str, ...]
    special: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    eos: str | None = None
    bos: str | None = None
    strips: str = "never"
    tools: bool = False


def alternating(body: str, check_system: bool = True) -> str:
    """A template that refuses a system message, if asked to, and roles that do not alternate."""
    refuses = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    return (refuses if check_system else "") + (
        "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
        + body
        + "{% endfor %}"
    )


def chatml(system: str = "", tool: str = "", think: str = "", header: str = "", bos: str = "") -> str:
    """ChatML: a default system message, messages of tools, the thinking of replies, and what a header adds."""
    default = f"<|im_start|>system\\n{system}<|im_end|>\\n"
    return (
        bos
        + (f"{{% if messages[0].role != 'system' %}}{{{{ '{default}' }}}}{{% endif %}}" if system else "")
        + "{% for m in messages %}"
        + ("{% if m.role == 'tool' %}" + tool + "{% else %}" if tool else "")
        + ("{% if m.role == 'assistant' %}" + think + "{% else %}" if think else "")
        + "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
        + ("{% endif %}" if think else "")
        + ("{% endif %}" if tool else "")
        + "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n"
        + header
        + "' }}{% endif %}"
    )


# Results in a row share one message of the user.
RESPONSES = (
    "{% if loop.previtem is not defined or loop.previtem.role != 'tool' %}{{ '<|im_start|>user' }}{% endif %}"
    "{{ '\n<tool_response>\n' + m.content + '\n</tool_response>' }}"
    "{% if loop.last or loop.nextitem.role != 'tool' %}{{ '<|im_end|>\n' }}{% endif %}"
)
LAST_USER = (
    "{% set ns = namespace(user=-1) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}{% endfor %}"
)
# Thinking is split off, and shown again only after the last message of the user.
RETHINKS = (
    "{% set said, thought = m.content, '' %}"
    "{% if '</think>' in m.content %}{% set said = m.content.split('</think>')[-1].lstrip('\n') %}"
    "{% set thought = m.content.split('</think>')[0].split('<think>')[-1].strip('\n') %}{% endif %}"
)
QWEN3 = RETHINKS + (
    "{{ '<|im_start|>assistant\n' }}"
    "{% if loop.index0 > ns.user and (loop.last or thought) %}{{ '<think>\n' + thought + '\n</think>\n\n' }}{% endif %}"
    "{{ said + '<|im_end|>\n' }}"
)
TURNS = "{% for m in messages %}{{ OPEN + m.role + CLOSE + m.content + END }}{% endfor %}"
DEEPSEEK = (
    "{{ bos_token }}{% set ns = namespace(tool=false, first=true) %}"
    "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% endif %}{% endfor %}"
    "{% for m in messages %}"
    "{% if m.role == 'user' %}{% set ns.tool = false %}{{ '<｜User｜>' + m.content }}"
    "{% elif m.role == 'assistant' %}{% set said = m.content%THINKING% %}"
    "{{ ('<｜tool▁outputs▁end｜>' if ns.tool else '<｜Assistant｜>') + said + '<｜end▁of▁sentence｜>' }}"
    "{% set ns.tool = false %}"
    "{% elif m.role == 'tool' %}{% set ns.tool = true %}"
    "{{ '<｜tool▁outputs▁begin｜>' if ns.first else '\n' }}{% set ns.first = false %}"
    "{{ '<｜tool▁output▁begin｜>' + m.content + '<｜tool▁output▁end｜>' }}"
    "{% endif %}{% endfor %}"
    "{% if ns.tool %}{{ '<｜tool▁outputs▁end｜>' }}"
    "{% elif add_generation_prompt %}{{ '<｜Assistant｜>%HEADER%' }}{% endif %}"
)
DEEPSEEK_TOKENS = (
    *("<｜User｜>", "<｜Assistant｜>", "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"),
    *("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
)
GLM = (
    "[gMASK]<sop>{% for m in messages %}"
    "{{ '<|observation|>' if m.role == 'tool' else '<|' + m.role + '|>' }}{{ '\n' }}%SAID%"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
GLM_TOKENS = ("[gMASK]", "<sop>", "<|system|>", "<|assistant|>")
LLAMA3 = (
    "{{ bos_token }}{% set said = messages[0].content if messages[0].role == 'system' else '' %}"
    "{{ '<|start_header_id|>system<|end_header_id|>\n\nToday Date: 26 Jul 2024\n\n' + said + '<|eot_id|>' }}"
    "{% for m in messages %}{% if m.role != 'system' or not loop.first %}"
    "{{ '<|start_header_id|>' + ('ipython' if m.role == 'tool' else m.role) + '<|end_header_id|>\n\n' }}"
    "{{ (m.content | tojson if m.role == 'tool' else m.content | trim) + '<|eot_id|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
GEMMA = (
    "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' + m.content | trim }}"
    "{{ '<end_of_turn>\n' }}"
)
GEMMA_HEADER = "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
MISTRAL = (
    "{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}{% else %}{{ m.content + eos_token }}{% endif %}"
)
MISTRAL_V3 = (  # the system message is shown with the last message of the user; results of tools need ids
    "{{ bos_token }}{% set system = messages[0].content + '\n\n' if messages[0].role == 'system' else '' %}"
    "{% set rest = messages[1:] if system else messages %}{% set ns = namespace(user=0) %}"
    "{% for m in rest %}"
    "{% if m.role == 'tool' and m.tool_call_id | default('') | length != 9 %}"
    "{{ raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}{% endif %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('After the optional system message, conversation roles must alternate') }}{% endif %}"
    "{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in rest %}{% if m.role == 'user' %}"
    "{{ '[INST]' + SP + (system if loop.index0 == ns.user else '') + m.content + '[/INST]' }}"
    "{% else %}{{ SP + m.content + eos_token }}{% endif %}{% endfor %}"
)
HARMONY = (  # refuses what its models write
    "{{ '<|start|>system<|message|>Reasoning: medium<|end|>' }}"
    "{% for m in messages %}{% if m.role == 'assistant' %}{% if '<|channel|>' in m.content %}"
    "{{ raise_exception('You have passed a message containing <|channel|> tags in the content field.') }}{% endif %}"
    "{{ '<|start|>assistant<|channel|>final<|message|>' + m.content }}"
    "{{ '<|return|>' if loop.last and not add_generation_prompt else '<|end|>' }}"
    "{% else %}{{ '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)


def turns(opening: str, closing: str, end: str, header: str, before: str = "") -> str:
    """A template that writes all messages alike."""
    names = {"OPEN": opening, "CLOSE": closing, "END": end}
    body = functools.reduce(lambda text, name: text.replace(name, repr(names[name])), names, TURNS)
    return before + body + "{% if add_generation_prompt %}{{ " + repr(header) + " }}{% endif %}"


IM = ("<|im_start|>",)
FAMILIES: dict[str, Family] = {
    "qwen2.5": Family(
        template=chatml("You are Qwen.", RESPONSES),
        ends=("<|im_end|>", "<|endoftext|>"),
        special=IM,
        added=CALLS,
        tools=True,
    ),
    "qwen3": Family(
        template=LAST_USER + chatml(tool=RESPONSES, think=QWEN3),
        ends=("<|im_end|>", "<|endoftext|>"),
        special=IM,
        added=(*THINK, *CALLS),
        strips="at users",
        tools=True,
    ),
    "qwen3-thinking": Family(
        template=LAST_USER + chatml(tool=RESPONSES, think=QWEN3, header="<think>\n"),
        ends=("<|im_end|>", "<|endoftext|>"),
        special=IM,
        added=(*THINK, *CALLS),
        strips="at users",
        tools=True,
    ),
    "llama-2": Family(
        template=alternating(
            "{% if m.role == 'user' %}{{ bos_token + '[INST] ' + m.content + ' [/INST]' }}"
            "{% else %}{{ ' ' + m.content + ' ' + eos_token }}{% endif %}"
        ),
        ends=("</s>",),
        bos="<s>",
    ),
    "llama-3": Family(
        template=LLAMA3,
        ends=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"),
        special=("<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>"),
        bos="<|begin_of_text|>",
        tools=True,
    ),
    "gemma-2": Family(
        template="{{ bos_token }}" + alternating(GEMMA) + GEMMA_HEADER,
        ends=("<end_of_turn>", "<eos>"),
        special=("<start_of_turn>",),
        eos="<eos>",
        bos="<bos>",
    ),
    "gemma-3": Family(
        template="{{ bos_token }}{% set first = messages[0].content + '\n\n' if messages[0].role == 'system' else '' %}"
        "{% if first %}{% set messages = messages[1:] %}{% endif %}"
        + alternating(GEMMA.replace("m.content", "(first if loop.first else '') + m.content"), check_system=False)
        + GEMMA_HEADER,
        ends=("<end_of_turn>", "<eos>"),
        special=("<start_of_turn>",),
        eos="<eos>",
        bos="<bos>",
    ),
    "mistral-v1": Family(template="{{ bos_token }}" + alternating(MISTRAL), ends=("</s>",), bos="<s>"),
    "mistral-v3": Family(
        template=MISTRAL_V3.replace("SP", "' '"), ends=("</s>",), special=("[INST]", "[/INST]"), bos="<s>"
    ),
    "mistral-tekken": Family(
        template=MISTRAL_V3.replace("SP", "''"), ends=("</s>",), special=("[INST]", "[/INST]"), bos="<s>"
    ),
    "phi-3": Family(
        template=turns("<|", "|>\n", "<|end|>\n", "<|assistant|>\n")
        + "{% if not add_generation_prompt %}{{ eos_token }}{% endif %}",
        ends=("<|end|>", "<|endoftext|>"),
        special=("<|user|>", "<|assistant|>", "<|system|>"),
        eos="<|endoftext|>",
        tools=True,
    ),
    "phi-4": Family(
        template=turns("<|im_start|>", "<|im_sep|>", "<|im_end|>", "<|im_start|>assistant<|im_sep|>"),
        ends=("<|im_end|>", "<|endoftext|>"),
        special=(*IM, "<|im_sep|>"),
        eos="<|endoftext|>",
        tools=True,
    ),
    "glm-4": Family(
        template=GLM.replace("%SAID%", "{{ m.content }}"),
        ends=("<|user|>", "<|observation|>", "<|endoftext|>"),
        special=GLM_TOKENS,
        eos="<|endoftext|>",
        tools=True,
    ),
    "glm-4.5": Family(
        template=LAST_USER
        + GLM.replace(
            "%SAID%",
            "{% if m.role == 'assistant' %}"
            + RETHINKS
            + "{{ '<think>' + (thought if loop.index0 > ns.user else '') + '</think>\n' + said }}"
            "{% else %}{{ m.content }}{% endif %}",
        ),
        ends=("<|user|>", "<|observation|>", "<|endoftext|>"),
        special=GLM_TOKENS,
        added=THINK,
        eos="<|endoftext|>",
        strips="at users",
        tools=True,
    ),
    "deepseek-v3": Family(
        template=DEEPSEEK.replace("%THINKING%", "").replace("%HEADER%", ""),
        ends=("<｜end▁of▁sentence｜>",),
        special=DEEPSEEK_TOKENS,
        bos="<｜begin▁of▁sentence｜>",
        tools=True,
    ),
    "deepseek-r1": Family(
        template=DEEPSEEK.replace("%THINKING%", ".split('</think>')[-1]").replace("%HEADER%", "<think>\n"),
        ends=("<｜end▁of▁sentence｜>",),
        special=DEEPSEEK_TOKENS,
        added=THINK,
        bos="<｜begin▁of▁sentence｜>",
        strips="always",
        tools=True,
    ),
    "smollm2": Family(
        template=chatml("You are a helpful AI assistant named SmolLM."),
        ends=("<|im_end|>", "<|endoftext|>"),
        special=IM,
        tools=True,
    ),
    "yi": Family(template=chatml(), ends=("<|im_end|>", "<|endoftext|>"), special=IM, tools=True),
    "zephyr": Family(template=turns("<|", "|>\n", "</s>\n", "<|assistant|>\n"), ends=("</s>",), bos="<s>", tools=True),
    "vicuna": Family(
        template="{{ bos_token }}A chat between a user and an assistant. {% for m in messages %}"
        "{% if m.role == 'user' %}{{ 'USER: ' + m.content + ' ' }}"
        "{% elif m.role == 'assistant' %}{{ 'ASSISTANT: ' + m.content + eos_token }}"
        "{% elif m.role == 'system' %}{{ m.content + ' ' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}",
        ends=("</s>",),
        bos="<s>",
    ),
    "command-r": Family(
        template="{{ bos_token }}"
        + alternating(
            "{{ '<|START_OF_TURN_TOKEN|>' + ('<|USER_TOKEN|>' if m.role == 'user' else '<|CHATBOT_TOKEN|>') }}"
            "{{ m.content | trim + '<|END_OF_TURN_TOKEN|>' }}"
        )
        + "{% if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}",
        ends=("<|END_OF_TURN_TOKEN|>",),
        special=("<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>"),
        bos="<BOS_TOKEN>",
    ),
    "granite": Family(
        template=turns(
            "<|start_of_role|>",
            "<|end_of_role|>",
            "<|end_of_text|>\n",
            "<|start_of_role|>assistant<|end_of_role|>",
            "<|start_of_role|>system<|end_of_role|>You are Granite.<|end_of_text|>\n",
        ),
        ends=("<|end_of_text|>",),
        special=("<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>"),
        tools=True,
    ),
    "hermes": Family(
        template=chatml(
            tool="{{ '<|im_start|>tool\n<tool_response>\n' + m.content }}{{ '\n</tool_response><|im_end|>\n' }}"
        ),
        ends=("<|im_end|>", "<|end_of_text|>"),
        special=IM,
        added=CALLS,
        tools=True,
    ),
    "internlm2": Family(
        template=chatml(bos="{{ bos_token }}"),
        ends=("<|im_end|>", "</s>"),
        special=IM,
        eos="</s>",
        bos="<s>",
        tools=True,
    ),
    "olmo-2": Family(
        template="{{ bos_token }}{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content }}"
        "{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{{ '' if loop.last else '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '\n<|assistant|>\n' }}{% endif %}",
        ends=("<|endoftext|>",),
        bos="<|endoftext|>",
        tools=True,
    ),
    "falcon-3": Family(
        template="{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content }}"
        "{{ (eos_token if m.role == 'assistant' else '') + '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}",
        ends=("<|endoftext|>",),
        special=("<|user|>", "<|assistant|>"),
        tools=True,
    ),
}


def harmony() -> Any:
    """The tokenizer of gpt-oss."""
    tokens = ("<|start|>", "<|message|>", "<|channel|>", "<|end|>")
    return build(Family(template=HARMONY, ends=("<|return|>",), special=tokens, tools=True))


@functools.cache
def tokenizer_of(name: str) -> Any:
    return build(FAMILIES[name])


def build(family: Family) -> Any:
    import transformers

    special = {*family.special, *family.ends, *filter(None, (family.eos, family.bos))}
    tokens = {"eos_token": family.eos or family.ends[0], "chat_template": family.template}
    if family.bos:
        tokens["bos_token"] = family.bos
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=_bytes(), **tokens)
    tokenizer.add_special_tokens({"additional_special_tokens": sorted(special)})
    tokenizer.add_tokens(list(family.added))
    return tokenizer


def _bytes() -> Any:
    """A tokenizer with one token per byte, and a few merges, so that texts have several encodings."""
    import tokenizers

    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("o", "x"), ("b", "ox"), ("Ġ", "the")]
    words = [*letters, *("".join(pair) for pair in merges)]
    model = tokenizers.models.BPE({word: id for id, word in enumerate(words)}, merges)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    return tokenizer
