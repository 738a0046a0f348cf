"""The messages of chat requests: what a model wrote, in a form that every server accepts.

Servers check the whole conversation in each request. If a malformed call of a model were sent back as it is, the next
request would be refused, and the episode would fail as an outage, although the model is at fault. Records keep what the
model wrote.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from gem._internal.inbound import REPLY, check_json
from gem.conversation.observations import action_text
from gem.errors import BadValue
from gem.policies.completion import REASONING, THINKING

EMPTY = "(empty)"  # content of a message without text; some servers refuse such messages, and also white space
MAX_CALLS = 128  # of one message, at OpenAI
_SET_APART = {*REASONING, THINKING, "tool_calls"}
_ID = re.compile("[!-~]{1,10000}")  # LiteLLM puts signatures into ids
_NOT_IN_NAMES = re.compile("[^a-zA-Z0-9_-]")
_KEPT = ("extra_content", "provider_specific_fields")  # of a call; Gemini and LiteLLM want them back


def as_sent(messages: Sequence[Mapping[str, Any]], tool_role: str = "user") -> list[dict[str, Any]]:
    """Return a conversation as servers accept it. Valid messages stay as they are, except for images and reasoning.

    - Arguments of a call that are not a JSON object become the value of one, ``{"invalid": …}``.
    - Other characters in a function's name than letters, digits, ``_`` and ``-`` become ``_``, and ``_`` comes
      before a first one that is neither a letter nor ``_``.
    - Ids that are missing, that other calls have, or with white space are replaced, in the call and in its result.
    - Results directly follow the message with their calls. A call without result becomes text in the content of its
      message. A result without call gets the role ``tool_role``.
    - The content of a message without text is "(empty)".
    - Reasoning goes back with tool results only: chat templates show it only within tool calls, and DeepSeek and Kimi
      want it there.
    - Images become data URLs.

    Args:
        messages: in OpenAI's format; images may be PIL images, see gem.conversation.observations.as_messages.
        tool_role: "user", or "tool" for servers that accept tool messages without ``tool_call_id``.
    """
    sent: list[dict[str, Any]] = []
    ids: set[str] = set()
    for said, after in _exchanges(messages):
        if said is not None:
            said, results, after = _with_results(said, after, ids)
            sent += [said, *results]
        for message in after:
            if message.get("role") == "tool":
                message = {**message, "role": tool_role}
                message.pop("tool_call_id", None)
            sent.append({**message, "content": _content(message.get("content"))})
    return sent


def openai_content(content: Any) -> Any:
    """Convert the content of a message to OpenAI's format: images become data URLs. Text is returned unchanged."""
    return [_format_part(part) for part in content] if isinstance(content, list) else content


def _exchanges(
    messages: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[Mapping[str, Any] | None, list[Mapping[str, Any]]]]:
    """Yield each message of the assistant with the messages up to the next one; at first None, with those before."""
    said, after = None, list[Mapping[str, Any]]()
    for message in messages:
        if message.get("role") == "assistant":
            yield said, after
            said, after = message, []
        else:
            after.append(message)
    yield said, after


def _with_results(
    said: Mapping[str, Any], after: Sequence[Mapping[str, Any]], ids: set[str]
) -> tuple[dict[str, Any], list[dict[str, Any]], list[Mapping[str, Any]]]:
    """Return a message of the assistant, the results of its calls, and the other messages of those that follow."""
    within_calls = not after or any(message.get("role") == "tool" for message in after)
    kept = {name: value for name, value in said.items() if name not in _SET_APART}
    if within_calls:  # Kimi refuses empty reasoning
        kept |= {name: " " if said[name] == "" else said[name] for name in REASONING if name in said}
    calls, results, rest = list[dict[str, Any]](), list[dict[str, Any]](), list(after)
    unanswered, content = [], said.get("content")
    written = said.get("tool_calls") or []
    for call in written if isinstance(written, list) else [written]:
        if (result := _result_of(call, rest)) is None:
            unanswered.append(call)
            continue
        rest.remove(result)
        if len(calls) < MAX_CALLS:
            calls.append(_call(call, ids))
            results.append({**result, "tool_call_id": calls[-1]["id"], "content": _content(result.get("content"))})
    if unanswered:
        content = action_text({"content": content, "tool_calls": unanswered})
    kept["content"] = _content(content, None if calls else EMPTY)
    return {**kept, "tool_calls": calls} if calls else kept, results, rest


def _result_of(call: Any, messages: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the message with the result of a call: that with its id, or else the first text without id."""
    call_id = call.get("id") if isinstance(call, Mapping) else None
    for message in messages if call_id is not None else ():
        if message.get("role") == "tool" and message.get("tool_call_id") == call_id:
            return message
    for message in messages:
        if message.get("role") == "tool" and "tool_call_id" not in message and isinstance(message["content"], str):
            return message
    return None


def _call(call: Any, ids: set[str]) -> dict[str, Any]:
    """Return a call in OpenAI's format, and add its id to the ids."""
    fields = call if isinstance(call, Mapping) else {}
    call_id = str(fields.get("id"))
    if fields.get("id") is None or call_id in ids or _ID.fullmatch(call_id) is None:
        # nine letters and digits, as Mistral wants it
        call_id = next(new for number in count(len(ids)) if (new := f"call{number:05d}") not in ids)
    ids.add(call_id)
    function = fields.get("function")
    if not isinstance(function, Mapping):
        function = {"arguments": json.dumps(call, ensure_ascii=False)}
    arguments = function.get("parameters") if function.get("arguments") is None else function["arguments"]
    name = _NOT_IN_NAMES.sub("_", str(function.get("name") or "invalid").strip())
    name = (name if name[:1].isalpha() or name[:1] == "_" else f"_{name}")[:64]  # Gemini wants a letter first
    sent = {"name": name, "arguments": _arguments(arguments)}
    return {"id": call_id, "type": "function", "function": sent} | {key: fields[key] for key in _KEPT if key in fields}


def _arguments(written: Any) -> str:
    """Return the arguments of a call as the text of a JSON object: unchanged, if a strict parser reads one."""
    if isinstance(written, str) and written.strip():
        try:
            check_json(written.encode(), "the arguments", REPLY)
            msgspec.json.decode(written, type=dict)
            return written
        except (ValueError, msgspec.MsgspecError):
            written = {"invalid": written}
    elif not isinstance(written, Mapping):
        written = {"invalid": written} if written and not isinstance(written, str) else {}
    return json.dumps(written, ensure_ascii=False)


def _content(content: Any, empty: str | None = EMPTY) -> Any:
    """Return the content of a message without blank text, and with images as data URLs."""
    if isinstance(content, list):
        return [part for part in openai_content(content) if not _is_blank(part)] or empty
    text = "" if content is None else str(content)
    return text if text.strip() else empty


def _is_blank(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text" and not str(part.get("text") or "").strip()


def _format_part(part: Any) -> Any:
    """Convert an image part of a message to OpenAI's format; return other parts unchanged."""
    is_image = isinstance(part, Mapping) and part.get("type") == "image" and "image" in part
    return {"type": "image_url", "image_url": {"url": _data_url(part["image"])}} if is_image else part


def _data_url(image: Any) -> str:
    """Encode a PIL image as a PNG data URL."""
    if not hasattr(image, "save"):
        raise BadValue(f"an image should be a PIL image, got {type(image).__name__}")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
