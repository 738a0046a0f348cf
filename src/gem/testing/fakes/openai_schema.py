"""The published schema of OpenAI's requests as types, and the rules on conversations that servers check besides.

Stricter than any one server: it has the rules of OpenAI, Mistral, Kimi, and of servers that pass requests on to Claude
or parse the arguments of calls. Fields that OpenAI does not have are refused, except those in which servers return
reasoning and signatures and want them back, and those that ask vLLM and SGLang for token ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

Text = Annotated[str, Meta(pattern=r"\S")]  # Claude, Mistral and Kimi refuse empty text, Claude also white space
Name = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}\Z")]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Positive = Annotated[int, Meta(ge=1)]


class _Object(msgspec.Struct, forbid_unknown_fields=True):
    pass


class TextPart(_Object, tag_field="type", tag="text"):
    text: Text


class RefusalPart(_Object, tag_field="type", tag="refusal"):
    refusal: Text


class ImageUrl(_Object):
    url: Annotated[str, Meta(pattern="^(https?://|data:image/)")]
    detail: Literal["auto", "low", "high"] = "auto"


class ImagePart(_Object, tag_field="type", tag="image_url"):
    image_url: ImageUrl


class Recording(_Object):
    data: Text
    format: Literal["wav", "mp3"]


class AudioPart(_Object, tag_field="type", tag="input_audio"):
    input_audio: Recording


class CalledFunction(_Object):
    name: Name
    arguments: str


class Call(_Object):
    id: Annotated[str, Meta(pattern=r"^\S+\Z")]
    type: Literal["function"]
    function: CalledFunction
    extra_content: Any = None
    provider_specific_fields: Any = None


TextParts = Annotated[list[TextPart], Meta(min_length=1)]
UserParts = Annotated[list[TextPart | ImagePart | AudioPart], Meta(min_length=1)]
AssistantParts = Annotated[list[TextPart | RefusalPart], Meta(min_length=1)]


class SystemMessage(_Object, tag_field="role", tag="system"):
    content: Text | TextParts
    name: Name | UnsetType = UNSET


class DeveloperMessage(SystemMessage, tag_field="role", tag="developer"):
    pass


class UserMessage(_Object, tag_field="role", tag="user"):
    content: Text | UserParts
    name: Name | UnsetType = UNSET


class AssistantMessage(_Object, tag_field="role", tag="assistant"):
    content: Text | AssistantParts | None = None
    tool_calls: Annotated[list[Call], Meta(min_length=1, max_length=128)] | UnsetType = UNSET
    refusal: str | None = None
    name: Name | UnsetType = UNSET
    reasoning_content: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    reasoning: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    reasoning_details: list[Any] | UnsetType = UNSET
    thinking_blocks: list[Any] | UnsetType = UNSET


class ToolMessage(_Object, tag_field="role", tag="tool"):
    content: Text | TextParts
    tool_call_id: str


Message = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage


class OfferedFunction(_Object):
    name: Name
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool | None = None


class Tool(_Object):
    type: Literal["function"]
    function: OfferedFunction


class _Sampling(_Object):
    model: Text
    max_tokens: Positive | UnsetType = UNSET
    temperature: Annotated[float, Meta(ge=0, le=2)] | UnsetType = UNSET
    top_p: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    stop: str | Annotated[list[str], Meta(min_length=1, max_length=4)] | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    frequency_penalty: Penalty | UnsetType = UNSET
    presence_penalty: Penalty | UnsetType = UNSET
    logit_bias: dict[str, int] | UnsetType = UNSET
    user: str | UnsetType = UNSET
    return_token_ids: bool | UnsetType = UNSET
    stop_token_ids: list[int] | UnsetType = UNSET


class ChatRequest(_Sampling, kw_only=True):
    messages: Annotated[list[Message], Meta(min_length=1)]
    tools: Annotated[list[Tool], Meta(min_length=1, max_length=128)] | UnsetType = UNSET
    tool_choice: str | dict[str, Any] | UnsetType = UNSET
    parallel_tool_calls: bool | UnsetType = UNSET
    response_format: dict[str, Any] | UnsetType = UNSET
    max_completion_tokens: Positive | UnsetType = UNSET
    reasoning_effort: str | UnsetType = UNSET
    logprobs: bool | UnsetType = UNSET
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | UnsetType = UNSET


class CompletionRequest(_Sampling, kw_only=True):
    prompt: Annotated[list[Annotated[int, Meta(ge=0)]], Meta(min_length=1)]
    logprobs: Annotated[int, Meta(ge=0, le=5)] | UnsetType = UNSET


def problem(path: str, body: bytes) -> str | None:
    """Return why a strict server refuses a request, or None if it does not."""
    try:
        if path.endswith("/chat/completions"):
            return _problem_of(msgspec.json.decode(body, type=ChatRequest).messages)
        msgspec.json.decode(body, type=CompletionRequest)
    except (msgspec.MsgspecError, ValueError) as e:
        return str(e)
    return None


def _problem_of(messages: Sequence[Message]) -> str | None:
    """Return which rule a conversation breaks: each call has one result, directly after the message with the call."""
    used, without_result = set[str](), set[str]()
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in without_result:
                return f"{where}: messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            without_result.remove(message.tool_call_id)
        elif without_result:
            break
        elif isinstance(message, AssistantMessage):
            calls = message.tool_calls or []
            if not calls and message.content is None:
                return f"{where}: an assistant message must have either content or tool_calls"
            for call in calls:
                if call.id in used | without_result:
                    return f"{where}: tool call ids must be unique: {call.id!r}"
                msgspec.json.decode(call.function.arguments, type=dict)
                without_result.add(call.id)
            used |= without_result
    if without_result:
        ids = ", ".join(sorted(without_result))
        return f"an assistant message with 'tool_calls' must be followed by tool messages responding to each id: {ids}"
    return None
