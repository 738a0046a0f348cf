"""Refused requests: what the error of an OpenAI-compatible server says about a request.

A full context and a content filter are outcomes of the model, which are scored. Every other refusal is a mistake of the
caller or an outage. The status and the error's code or type decide first; most providers send general ones, such as
"invalid_request_error", and are recognized by their wording.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gem._internal.inbound import REPLY, loads
from gem.errors import BadInput

# "total": prompt and max_tokens together exceed the context. "max_tokens": it is more than any reply may have.
# "access": the account has no credit, or the server no such model. "size": one request exceeds a limit per minute, so
# that waiting does not help.
# "cut", "malformed_call": the model wrote until its limit, or a call that the server could not read, and got no reply.
Cause: TypeAlias = Literal[
    "context_overflow", "content_filter", "total", "max_tokens", "access", "size", "cut", "malformed_call"
]

MAX_BODY, MAX_MESSAGE = 1 << 18, 4_000  # bytes that are read, and characters of their messages that are searched
_SENT = re.compile(r"""input_value=|["']input["']:""")  # what follows repeats the request, with the model's words

# Codes, types and reasons that have one meaning at every provider that sends them.
_CODES: dict[str, Cause] = {
    **dict.fromkeys(
        (
            *("context_length_exceeded", "string_above_max_length", "exceed_context_size_error", "request_too_large"),
            *("context_window_exceeded", "context_exceeded", "tokens_limit_reached", "1261"),  # 1261: Zhipu
        ),
        "context_overflow",
    ),
    **dict.fromkeys(
        (
            *("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation", "data_inspection_failed"),
            *("DataInspectionFailed", "contentFilter", "PROHIBITED_CONTENT", "moderation_blocked"),
            *("ContentPolicyViolationError", "sensitive_words_detected", "1301"),  # 1301: Zhipu
            *("InputTextSensitiveContentDetected", "OutputTextSensitiveContentDetected"),
        ),
        "content_filter",
    ),
    **dict.fromkeys(
        ("insufficient_quota", "exceeded_current_quota_error", "billing_hard_limit_reached", "1113"), "access"
    ),
    "tool_use_failed": "malformed_call",
}

# Cause → providers and their words. Servers that run the same engine share a row. Throttling mentions tokens as well,
# so that limits per minute come first.
WORDINGS: dict[Cause, list[tuple[str, str]]] = {
    "cut": [("OpenAI", r"could not finish the message because max_tokens")],
    "malformed_call": [("Groq", r"failed to call a function\. please adjust")],
    "size": [
        ("OpenAI, Groq", r"request too large for .{0,200}tokens per (min|day)"),
    ],
    "access": [
        ("LiteLLM", r"invalid model name passed in model"),
        ("OpenRouter, Bedrock", r"is not a valid model id|model identifier is invalid"),
        ("Anthropic", r"credit balance is too low"),
        ("OpenAI, Moonshot", r"exceeded your current quota|exceeded current quota|insufficient (balance|credit)"),
    ],
    "max_tokens": [
        ("OpenAI", r"max_(completion_)?tokens is too large: \d+\. this model supports at most"),
        ("Anthropic", r"max_tokens: \d+ > \d+"),
        ("Groq", r"max_(completion_)?tokens`? must be less than or equal to"),
        ("DashScope", r"range of max_(completion_)?tokens should be"),
        ("DeepSeek", r"valid range of max_tokens"),
        ("PPIO", r"max_tokens .{0,40}must be between"),
        ("TGI", r"error: `max_new_tokens` must be <="),
        ("vLLM", r"max_tokens=\d+ cannot be greater than max_model_len"),
    ],
    "total": [
        ("vLLM", r"max_(completion_)?tokens' is too large: .{0,80}context length"),
        ("vLLM", r"maximum context length is \d+ .{0,60}input tokens plus \d+ 'max_tokens'"),
        ("vLLM", r"maximum context length is \d+ .{0,40}requested [1-9]\d* output tokens"),
        ("OpenAI, DeepSeek, OpenRouter", r"context length is \d+ .{0,60}requested (about )?\d+ tokens \("),
        ("SGLang", r"requested token count exceeds the model's maximum context length"),
        ("Anthropic", r"input length and `?max_tokens`? exceed"),
        ("TGI, Together", r"`inputs` tokens \+ `max_new_tokens` must be"),
        ("Cohere", r"\(prompt and prediction\) cannot exceed"),
    ],
    "context_overflow": [
        ("OpenAI, Azure, vLLM, Mistral, Fireworks, NVIDIA", r"maximum (model|context) (length|limit)"),
        ("OpenAI, llama-cpp-python", r"exceeds?( the)?( model's)? context (window|length|limit)"),
        ("OpenAI", r"string too long\. expected a string with maximum length"),
        ("vLLM", r"max_tokens must be at least 1, got -\d|prompt \(.{0,20}length \d+\) is (too|longer)"),
        ("Anthropic", r"prompt is too long|input is too long"),
        ("Gemini", r"input token count .{0,40}exceeds the maximum"),
        ("xAI", r"maximum prompt length is \d"),
        ("Groq, Cerebras", r"reduce the length of the (messages|prompt|input)"),
        ("Moonshot", r"exceeded model token limit|model max length exceeded"),
        ("Zhipu", r"prompt exceeds max(imum)? length"),
        ("Bedrock", r"input is too long|exceeds the max(imum)? (number of )?input token|too many input to"),
        ("TGI", r"`inputs` must have less than \d+ tokens"),
        ("Cohere", r"too many tokens: |total tokens exceeds"),
        ("DashScope", r"range of input length should be"),
        ("LM Studio", r"trying to keep the first \d+ tokens|initial prompt is greater than the context"),
        ("llama.cpp", r"exceeds? the available context size|context size (has been )?exceeded"),
        ("GPUStack", r"tokens exceed n_ctx"),
        ("SGLang", r"longer than the model's context length"),
        ("TensorRT-LLM", r"sum of prompt length .{0,80}not exceed|prompt length \(\d+\) exceeds max"),
        ("Ollama", r"exceeded max context length|exceeds (maximum )?context length|context length exc"),
        ("MiniMax", r"context window exceeds limit"),
        ("GitHub Models", r"request body too large for .{0,80}max size: \d+ tokens"),
        ("Salesforce", r"input tokens exceed model token limit"),
        ("Snowflake", r"^max tokens of \d+ exceeded"),
        ("SiliconFlow", r"prompt_tokens \(\d+\) must be less than|max_total_tokens \(\d+\) must be less than"),
        ("Volcengine, Poolside", r"input length \d+ exceeds the maximum"),
        ("Qianfan", r"prompt tokens too long|max input characters"),
        ("Copilot", r"prompt token count of \d+ exceeds the limit"),
        ("LiteLLM", r"contextwindowexceedederror"),
    ],
    "content_filter": [
        ("Azure, LiteLLM", r"content management policy|content_?policy_?violation|content_filter"),
        ("OpenAI", r"flagged as potentially violating|limited access to this content|result of our safety system"),
        ("Anthropic, Bedrock", r"blocked by (our )?content filter"),
        ("Bedrock", r"guardrail intervened|blocked by guardrail"),
        ("Gemini", r"prohibited_content|prompt was blocked|blocked due to safety"),
        ("DashScope", r"data_?inspection_?failed|may contain inappropriate content"),
        ("Zhipu", r"不安全或敏感内容|unsafe or sensitive content"),
        ("Qianfan", r"content of (the )?messages? (is )?(not allowed|unsafe|sensitive)|prompt is unsafe"),
        ("DeepSeek", r"content exists risk"),
        ("Moonshot", r"considered high risk"),
        ("MiniMax", r"new_sensitive"),
        ("Volcengine, New API", r"(may )?contains? sensitive (words|information|content)"),
        ("xAI", r"content violates usage guidelines|failed check: safety_check"),
        ("OpenRouter", r"requires moderation on|input was flagged"),
    ],
}
_WORDINGS = [(cause, re.compile(words, re.IGNORECASE)) for cause, rows in WORDINGS.items() for _, words in rows]
# Further servers, which compare max_tokens, or the tokens of a prompt, with a limit in words of their own.
_BELOW = r"exceed\w*|too (?:long|large|many|high)|(?:less|lower) than|at most|<=|no more than"
_TOO_MANY = re.compile(
    rf"max(?:imum)?[ _](?:(?:completion|output|new)[ _])?tokens\b.{{0,60}}(?:{_BELOW})", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"(?=.*(?:\b|_)(?:tokens?|context[ _](?:length|window|size|limit))(?:\b|_))"
    r"(?=.*\b(?:prompt|inputs?|messages|conversation|context)(?:\b|_))"
    rf".*(?:\b(?:{_BELOW}|(?:longer|greater|larger) than|over the|beyond|maximum supported)\b)",
    re.IGNORECASE,
)
_COUNT = 256  # tokens; a smaller number in a message is no limit of a context
_LIMIT = re.compile(
    r"(?:context (?:length|limit|window|size)(?: is| of(?: only)?|:)?|must be <=|cannot exceed|prompt length is|"
    r"number of tokens allowed|token limit:|\d >|maximum length(?: of)?|limit (?:of|is)|max_num_tokens|less than)"
    r" ?\(?(\d+)(?!\d| \+)",
    re.IGNORECASE,
)
_FIELDS = ("message", "detail", "msg", "error", "error_msg", "error_message", "raw")  # of an error, with its words
_CODE_FIELDS = ("code", "type", "error_type", "error_code", "status", "reason", "finish_reason")  # the last: Azure
# A quota per minute, in the words of an account without credit: Gemini.
_PASSES = re.compile(r"(?!.*perday).*(?:retrydelay|retry in \d)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Refusal:
    """What the server said of a refused request.

    Args:
        cause: None if it is unknown.
        message: the words of the error.
        limit: the limit of tokens that the message names; None if it names none.
        written: the call that the server could not read; empty if it does not say.
    """

    cause: Cause | None
    message: str
    limit: int | None = None
    written: str = ""

    def resolve(self, prompt_tokens: int | None, max_tokens: int | None) -> Cause | None:
        """Return the cause in view of the numbers in the message.

        Args:
            prompt_tokens: length of the prompt; None if it is unknown.
            max_tokens: what the request asked for; None if it asked for no number.
        """
        numbers, limit = _numbers(self.message), self.limit
        if self.cause is None and prompt_tokens is not None:  # a message that compares our count with a smaller one
            total = prompt_tokens + (max_tokens or 0)
            others = numbers - {prompt_tokens, total, max_tokens or 0}
            if prompt_tokens in numbers and any(16 <= number <= prompt_tokens for number in others):
                return "context_overflow"
            if numbers & {prompt_tokens, total} and any(prompt_tokens < number < total for number in others):
                return "total"
        if self.cause == "total" and max_tokens is None:
            return "context_overflow"
        if self.cause != "total" or limit is None or max_tokens is None:
            return self.cause
        if max_tokens >= limit:
            return "max_tokens"
        others = {number for number in numbers - {limit, max_tokens} if number - max_tokens not in numbers}
        total = 0 if max_tokens in numbers else max_tokens  # a message without max_tokens has the sum alone
        prompt, most = min(others, default=0) - total, max(others, default=0)
        if most - max_tokens == sum(others) - most:  # OpenRouter counts text and tools apart
            prompt = most - max_tokens
        prompt = prompt if prompt_tokens is None else prompt_tokens
        return "context_overflow" if prompt >= limit else "total"


UNKNOWN = Refusal(None, "")


def read_refusal(status: int, body: bytes) -> Refusal:
    """Read the body of a response with an error status.

    >>> read_refusal(400, b'{"error": {"message": "The prompt is too long: 5000 tokens > 4096 maximum"}}').cause
    'context_overflow'
    """
    text = body[:MAX_BODY].decode("utf-8", "replace")
    try:
        found = list(_strings(loads(text, "the error", REPLY), "message"))
    except BadInput:
        found = [("message", text)]
    said = " ".join(value for name, value in found if name in _FIELDS)
    message = re.sub(r"(?<=\d)[,_](?=\d{3}\b)", "", " ".join(_SENT.split(said)[0].split())[:MAX_MESSAGE])
    causes = [_CODES[value] for name, value in found if name in _CODE_FIELDS and value in _CODES]
    causes += [cause for cause, pattern in _WORDINGS if pattern.search(message)]
    if not causes and status in (400, 413, 422):  # what a 500 means is not guessed: an outage would get a score
        if _TOO_MANY.search(message):
            causes.append("max_tokens")
        elif _TOO_LONG.match(message) and sum(number >= _COUNT for number in _numbers(message)) > 1:
            causes.append("context_overflow")
    cause = _most_exact(causes)
    if not _may_be(status, cause) or (status == 429 and cause == "access" and _PASSES.match(text)):
        cause = None
    limit = _LIMIT.search(message)
    written = next((value for name, value in found if name == "failed_generation"), "")
    return Refusal(cause, message, int(limit[1]) if limit and len(limit[1]) < 10 else None, written)


def _most_exact(causes: list[Cause]) -> Cause | None:
    """Return the first cause; of an overflow, what exceeds the context, which only the wording says."""
    exact = [cause for cause in causes if cause in ("size", "max_tokens", "total")]
    return next(iter([*exact, *causes]), None)


def _may_be(status: int, cause: Cause | None) -> bool:
    """Return whether a status can have a cause: limits per minute mention tokens, and refused keys mention content."""
    if status == 429:
        return cause in ("access", "size")
    if status in (401, 402, 404):
        return cause == "access"
    return status != 403 or cause in ("access", "content_filter")


def _strings(data: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield the texts in an error with the names of their fields, and those in JSON that an error quotes."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key != "input":  # of a validation error: the request
                yield from _strings(value, str(key))
    elif isinstance(data, list):
        for value in data:
            yield from _strings(value, name)
    elif isinstance(data, str):
        yield name, data
        if data.startswith(("{", "[")) and name in _FIELDS:
            with suppress(BadInput):
                yield from _strings(loads(data, "the error", REPLY), name)


def _numbers(message: str) -> set[int]:
    return {int(number) for number in re.findall(r"(?<![\w.])\d{1,9}(?![\w.]\d)", message)}
