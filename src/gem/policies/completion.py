"""Replies of OpenAI-compatible endpoints: chat completions, and completions of token prompts."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from gem._internal.http_client import RETRYABLE, HttpRequest, RequestError
from gem._internal.inbound import FILE, LONGEST_INT, REPLY, finite, loads
from gem.errors import BadInput
from gem.parsing import code_blocks
from gem.policies.refusals import read_refusal
from gem.policies.usage import token_usage

logger = logging.getLogger(__name__)
# Fields of a message that servers want back with the results of its calls; LiteLLM's is the last.
REASONING = {"reasoning_content": str, "reasoning": str, "reasoning_details": list, "thinking_blocks": list}
THINKING = "thinking"  # the reasoning that came as parts of the content, which is not sent
_TEXT, _THINKING = {"text", "output_text"}, {"thinking", "reasoning", "redacted_thinking"}  # types of parts
_VALUES = ("text", "thinking", "reasoning", "summary")  # fields of a part
_TOKEN_ID = "token_id:"  # vLLM's prefix of tokens with return_tokens_as_token_ids
_OTHER_FIELDS = "provider_specific_fields"  # where LiteLLM puts the fields of a choice or message that it does not know
# finish_reason of a reply that the server broke off: OpenRouter; vLLM and SGLang; DeepSeek. OpenRouter has the first
# one for malformed calls of Gemini as well, which are the model's.
_BROKEN_OFF, _OF_THE_MODEL = {"error", "abort", "insufficient_system_resource"}, "MALFORMED_FUNCTION_CALL"
# of content filters, also in the words of Gemini
_FILTERED = re.compile(r"content_filter\b.*|safety|recitation|prohibited_content|blocklist|spii", re.IGNORECASE)
_BOUNDS = FILE._replace(depth=REPLY.depth)  # with log-probabilities a long reply has millions of items
_CLOSING_TAG = re.compile(r"\s*</([\w.-]+)>\s*")
_CODE_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*")


@dataclass(frozen=True)
class Completion:
    """A model's reply.

    Args:
        text: empty if the reply has no content, for example only hidden reasoning.
        finish: the endpoint's finish_reason, such as "stop", "length" or "content_filter"; None if not given.
        usage: token counts from the endpoint, as token_usage() names them; empty if not given.
        tool_calls: native tool calls in OpenAI's format; empty for none.
        reasoning: the reasoning of the reply, under the names that the endpoint uses (``reasoning_content``,
            ``reasoning``, ``reasoning_details``, ``thinking_blocks``), or ``thinking`` if it was part of the content;
            empty for none.
        refusal: why the model refused to reply; None if it did not refuse.
        prompt_ids, sampled_ids: token ids of the prompt and of the reply; empty if not given. vLLM and SGLang give them
            on request (``return_token_ids=True``), also behind LiteLLM; llama.cpp gives those of the reply with the
            log-probabilities (``logprobs=True``).
        logprobs: log-probability of each token of the reply; empty if not given.
        model: name of the model that replied, as the endpoint reports it; None if not given.
    """

    text: str
    finish: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    tool_calls: list[Any] = field(default_factory=list)
    reasoning: dict[str, Any] = field(default_factory=dict)
    refusal: str | None = None
    prompt_ids: list[int] = field(default_factory=list)
    sampled_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    model: str | None = None

    @property
    def message(self) -> dict[str, Any] | None:
        """The reply as a message for the next request; None if the text alone is the message."""
        if not self.tool_calls and not self.reasoning:
            return None
        calls = {"tool_calls": self.tool_calls} if self.tool_calls else {}
        return {"role": "assistant", "content": self.text or None, **calls, **self.reasoning}


def parse_completion(request: HttpRequest, body: bytes) -> Completion:
    """Parse a response. Raises RequestError for an invalid one, such as a proxy's error page with status 200.

    Of a completion that is nested too deep, or has an integer that is too long, an empty reply is left, with a warning:
    some servers decode the arguments that a model writes, and what a model writes is never an outage.
    """
    text = body.decode("utf-8-sig", "replace")
    try:
        data = loads(text, "the reply", _BOUNDS)
        if isinstance(data, Mapping) and data.get("error") and not data.get("choices"):
            raise _error_in(data["error"], body, request.redact(text))
        completion = completion_of(data)
        if request.failures:
            completion.usage["retries"] = dict(request.failures)
        return completion
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as e:
        if isinstance(e, BadInput) and e.limit in (_BOUNDS.depth, LONGEST_INT) and '"choices"' in text:
            logger.warning("%s: %s; it counts as an empty reply", request.url, e)
            return Completion("")
        reason = f"{e}: " if isinstance(e, _Invalid) else ""
        message = f"the reply is not a completion: {reason}{request.redact(text)[:300]!r}"
        raise RequestError(message, status=200) from None


def _error_in(error: Any, body: bytes, text: str) -> RequestError:
    """Return the error that a response with status 200 reports: at OpenRouter, its code is the status."""
    code = str(error.get("code")) if isinstance(error, Mapping) else ""
    status = int(code) if re.fullmatch("[45][0-9]{2}", code) else 400 if read_refusal(400, body).cause else 200
    retryable = status == 200 or status in RETRYABLE or status >= 500
    return RequestError(f"the reply is an error: {text[:300]}", retryable=retryable, status=status, body=body)


class _Invalid(ValueError):
    pass


def completion_of(data: Any) -> Completion:
    """Read a response.

    Raises:
        ValueError, TypeError, LookupError, AttributeError, OverflowError: for other data.
        RequestError: for a reply that the server broke off.
    """
    choice = data["choices"][0]
    message = choice.get("message")
    if message is None:  # Gemini leaves out one without content
        is_empty = isinstance(choice.get("finish_reason"), str) and not {"text", "delta"} & set(choice)
        message = {} if is_empty else {"content": choice["text"]}
    message = finite(message)  # the next request could not have other numbers
    content, thinking = _text_and_thinking(message.get("content"))
    calls, refusal, finish = message.get("tool_calls") or [], message.get("refusal"), choice.get("finish_reason")
    if not all(isinstance(value, str | None) for value in (finish, refusal)):
        raise TypeError
    if finish in _BROKEN_OFF and choice.get("native_finish_reason") != _OF_THE_MODEL:
        raise RequestError(f"the server broke off the reply: {finish} {str(choice.get('error') or '')[:300]}".strip())
    if finish and _FILTERED.fullmatch(finish):
        finish = "content_filter"
    model = data.get("model")
    tokens, logprobs = _logprobs(choice.get("logprobs") or {})
    places = (choice, message, *(place.get(_OTHER_FIELDS) for place in (choice, message)))
    sampled = _ids("token_ids", *places) or tokens
    prompt = _ids("prompt_token_ids", *places, data, data.get(_OTHER_FIELDS))
    if not all(type(id) is int and 0 <= id < 1 << 31 for ids in (prompt, sampled) for id in ids):
        raise _Invalid("token ids should be integers")
    if sampled and logprobs and len(sampled) != len(logprobs):
        raise _Invalid(f"{len(sampled)} token ids and {len(logprobs)} log-probabilities")
    return Completion(
        content,
        finish,
        token_usage(data.get("usage")),
        calls if isinstance(calls, list) else [calls],
        _reasoning(message, thinking),
        refusal or None,
        list(prompt),
        list(sampled),
        logprobs,
        model if isinstance(model, str) else None,
    )


def _ids(name: str, *places: Any) -> list[Any]:
    """Return the token ids in the first place that has some."""
    found = (place.get(name) for place in places if isinstance(place, dict))
    return next((ids for ids in found if ids), [])


def _text_and_thinking(content: Any) -> tuple[str, str]:
    """Return the text of a message's content and the reasoning in it: the content may be a list of parts.

    Mistral has parts of the type "thinking", and Databricks "reasoning", whose text is in parts again. Parts of other
    types are left out, with a warning.
    """
    if content is None or isinstance(content, str):
        return content or "", ""
    if not isinstance(content, list):
        raise TypeError
    texts: dict[bool, list[str]] = {True: [], False: []}
    for part in content:
        kind = "text" if isinstance(part, str) else str(part.get("type") if isinstance(part, dict) else None)
        if kind in _TEXT or kind in _THINKING:
            texts[kind in _TEXT].append(_part_text(part))
        else:
            _warn_of_part(kind[:40])
    return "".join(texts[True]), "".join(texts[False])


def _part_text(part: Any) -> str:
    """Return the text of a part: its value, or that of the parts in it."""
    if isinstance(part, str):
        return part
    if isinstance(part, list):
        return "".join(map(_part_text, part))
    return _part_text(next(filter(None, map(part.get, _VALUES)), "")) if isinstance(part, dict) else ""


@lru_cache(100)
def _warn_of_part(kind: str) -> None:
    logger.warning("parts of the type %r in the content of replies are left out", kind)


def _reasoning(message: Mapping[str, Any], thinking: str) -> dict[str, Any]:
    """Return the fields with reasoning. Empty ones count beside calls, since DeepSeek wants them back."""
    given = {name: message[name] for name, kind in REASONING.items() if isinstance(message.get(name), kind)}
    found = {name: value for name, value in given.items() if value or message.get("tool_calls")}
    return {**found, THINKING: thinking} if thinking else found


def _logprobs(data: Mapping[str, Any]) -> tuple[list[int], list[float]]:
    """Return the token ids, if there is one per token, and the log-probabilities."""
    ids: list[Any] = []
    if entries := data.get("content"):  # of a chat completion; of llama.cpp, of any completion
        tokens, logprobs = [entry["token"] for entry in entries], [entry["logprob"] for entry in entries]
        ids = [entry["id"] for entry in entries if type(entry.get("id")) is int]  # of llama.cpp
    else:
        tokens, logprobs = data.get("tokens") or [], data.get("token_logprobs") or []
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in logprobs):
        raise _Invalid("log-probabilities should be finite numbers")
    if all(isinstance(token, str) and token.startswith(_TOKEN_ID) for token in tokens):
        ids = [int(token.removeprefix(_TOKEN_ID)) for token in tokens]
    return ids if len(ids) == len(tokens) else [], list(map(float, logprobs))


def with_closing_tag(text: str, stop: str | Sequence[str] | None) -> str:
    """Append the closing tag or code fence that a stop string has cut off.

    Args:
        stop: the stop strings of the request. A closing tag, such as ``</tool_call>``, is appended if the text has
            opened the tag and not closed it, and a code fence if the text has opened a block and not closed it.

    >>> with_closing_tag("<python>1 + 1", ["</python>"])
    '<python>1 + 1</python>'
    """
    for string in [stop] if isinstance(stop, str) else stop or ():
        if tag := _CLOSING_TAG.fullmatch(string):
            is_open = re.search(rf"<{re.escape(tag[1])}[\s=>]", text[text.rfind(f"</{tag[1]}>") + 1 :]) is not None
        elif _CODE_FENCE.fullmatch(string):
            closes_block = len(code_blocks(text + string)) > len(code_blocks(text))
            is_open = closes_block or text.count(string.strip()) % 2 == 1  # models also write blocks of one line
        else:
            is_open = False
        if is_open:
            return text + string
    return text
