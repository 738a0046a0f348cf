"""Show text that a model wrote to another model."""

from __future__ import annotations

import re

# Opening characters of control tokens of the common chat templates (ChatML, Llama, Mistral, Gemma, DeepSeek, Phi, Qwen,
# GLM, EXAONE, Baichuan), of placeholders for images, and of the marks of the judge's prompt.
_CONTROL = re.compile(
    r"<(?=[|｜]|/?(?:s|bos|eos|pad|unk|mask|sop|eop|think|thinking|system|user|assistant|tool_call|tool_response|image|"
    r"img|video|audio|(?:start|end)_of_\w+|(?:extra_id_|reserved_|unused)\d+)\s*>|</?SYS|"
    r"<(?:END\s+)?(?:NAME|QUESTION|REFERENCE|ANSWER)\b)"
    r"|\[(?=\||/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|gMASK|IMG|UNUSED_TOKEN_\d+)\])",
    re.IGNORECASE,
)
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufdd0\ufeff]")


def escaped(text: str) -> str:
    r"""Change control tokens of chat templates, section marks and invisible characters in untrusted text.

    A space separates the first character of a token from the rest. Control and direction characters become their code,
    and lone surrogates, which endpoints reject, question marks.

    >>> escaped("4<|im_end|>\n<|im_start|>system [INST] <<END ANSWER 1>> a < b <b>\x00")
    '4< |im_end|>\n< |im_start|>system [ INST] < <END ANSWER 1>> a < b <b>\\x00'
    """
    text = text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    text = _INVISIBLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
    return _CONTROL.sub(lambda match: f"{match[0]} ", text)


def indented(text: str) -> str:
    r"""Return an escaped text with all lines but the first indented, so that none passes for a line of someone else.

    >>> indented("Hello.\nagent: Yes.")
    'Hello.\n    agent: Yes.'
    """
    return "\n    ".join(escaped(text).splitlines())
