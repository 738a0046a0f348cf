"""Policies for models behind an OpenAI-compatible chat endpoint. Needs the extra [eval].

Endpoint is the HTTP client of one model. EndpointPolicy sends it the conversation of each episode.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

from gem._internal.http_client import HttpClient, HttpRequest, RequestError, api_key, bearer, check_url, wait_for
from gem.conversation import as_messages, conversation
from gem.errors import BadValue, EndpointError
from gem.messages import Message, assistant
from gem.policies.base import Reply, Request
from gem.seeding import check_seed, derive
from gem.trajectory import Turn

TIMEOUT_S = 120.0  # seconds per request; a long answer of a large model takes about a minute
OUTAGE_STATUSES = frozenset({401, 403, 404, 405, 408, 429})  # errors of the endpoint, not of one request
_RESERVED = frozenset({"model", "messages", "stream", "n"})  # fields of the body set by Endpoint


class RequestRefused(EndpointError):
    """The endpoint refused one request, for example because the prompt is too long, but may accept other requests."""


@dataclass(frozen=True)
class Completion:
    """A model's reply.

    Args:
        text: empty if the reply has no content, for example only hidden reasoning.
        finish: the endpoint's finish_reason, such as "stop" or "length"; None if not given.
        usage: token counts from the endpoint; empty if not given.
        tool_calls: native tool calls in OpenAI's format; empty for none.
    """

    text: str
    finish: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    tool_calls: list[Any] = field(default_factory=list)


class Endpoint(HttpClient):
    """Client of one model at one chat endpoint. Opens no connection before the first request.

    Thread-safe; one connection pool serves all threads and event loops of a process. API keys appear in no message,
    log, pickle or repr. A pickled or forked client opens its own connections.

    Args:
        base_url: URL of the API without "/chat/completions", such as "http://127.0.0.1:8000/v1".
        model: the model's name at the endpoint.
        api_key_env: environment variable with the API key, read at each request; None sends no key.
        timeout: seconds per attempt, from sending the request to the last byte of the reply.
        concurrency: maximum number of requests in flight; others wait without a time limit.
        retries: attempts after the first one, for status 408, 429 or 5xx, connection errors, timeouts and invalid
            replies.
        backoff: maximum seconds before the first retry; see gem._internal.http_client.HttpClient.

    Raises:
        BadValue: for values out of range.
        MissingDependency: at the first request, without the extra [eval].
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key_env: str | None = None,
        timeout: float = TIMEOUT_S,
        concurrency: int = 32,
        retries: int = 5,
        backoff: float = 0.5,
    ) -> None:
        super().__init__(extra="eval", timeout=timeout, concurrency=concurrency, retries=retries, backoff=backoff)
        base_url = check_url(base_url, "base_url", "http://127.0.0.1:8000/v1", "keys go by api_key_env")
        self.url = base_url + "/chat/completions"
        self.model, self.api_key_env = model, api_key_env

    def complete(self, messages: Sequence[Mapping[str, Any]], **sampling: Any) -> Completion:
        """Return the model's reply to a conversation.

        Args:
            messages: in OpenAI's format, ``{"role": …, "content": …}``.
            sampling: further fields of the request: temperature, max_tokens, stop, seed, …

        Raises:
            EndpointError: the last retry failed, an error is not retryable, or the client was closed.
            RequestRefused: an EndpointError for a status that concerns this request only.
            BadValue: for values that are not JSON, for fields set by this client, and for a missing API key.
        """
        return wait_for(self.submit(messages, **sampling))

    async def acomplete(self, messages: Sequence[Mapping[str, Any]], **sampling: Any) -> Completion:
        """Async version of complete()."""
        return await asyncio.wrap_future(self.submit(messages, **sampling))

    def submit(self, messages: Sequence[Mapping[str, Any]], **sampling: Any) -> Future[Completion]:
        """Send a request and return a future of the reply; see complete(). Canceling the future aborts the request."""
        if reserved := sorted(_RESERVED & set(sampling)):
            raise BadValue(f"{', '.join(reserved)} cannot be set: Endpoint requests one whole reply of {self.model!r}")
        try:
            body = json.dumps({"model": self.model, "messages": list(messages), **sampling}, allow_nan=False).encode()
        except (TypeError, ValueError) as e:
            raise BadValue(f"messages and sampling options are sent as JSON: {e}") from e
        key = api_key(self.api_key_env, self.url)
        headers = {"Content-Type": "application/json", **bearer(key)}
        request = HttpRequest("POST", self.url, body, self.timeout, headers, secret=key)
        return self.send(request, partial(_parse_completion, request))

    def failure_error(self, request: HttpRequest, error: RequestError, attempts: int) -> EndpointError:
        times = f"; {attempts} attempts" if attempts > 1 else ""
        refused = 400 <= error.status < 500 and error.status not in OUTAGE_STATUSES
        kind = RequestRefused if refused else EndpointError
        return kind(f"{self.model!r} at {self.url}: {error}{times}")

    def closed_error(self, request: HttpRequest) -> EndpointError:
        return EndpointError(f"the client of {self.url} was closed while it waited for a reply")

    def __repr__(self) -> str:
        return f"Endpoint({self.url.removesuffix('/chat/completions')!r}, {self.model!r})"


def _parse_completion(request: HttpRequest, body: bytes) -> Completion:
    """Parse a response. Raises RequestError for an invalid one, such as a proxy's error page with status 200."""
    text = body.decode("utf-8", "replace")
    try:
        data = json.loads(text)
        choice = data["choices"][0]
        content, finish, usage = choice["message"].get("content"), choice.get("finish_reason"), data.get("usage")
        calls = choice["message"].get("tool_calls")
        if not (isinstance(content, str | None) and isinstance(finish, str | None) and isinstance(calls, list | None)):
            raise TypeError
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise RequestError(f"the reply is not a chat completion: {request.redact(text)[:300]!r}") from None
    return Completion(content or "", finish, usage if isinstance(usage, dict) else {}, calls or [])


class EndpointPolicy:
    """A policy that queries a model at an endpoint. The requests of all slots are sent concurrently.

    If an environment offers tools for native calls (``info["tools"]`` on reset, set by ToolEnvWrapper with the format
    "openai"), the tools are sent with each request. If a reply has ``tool_calls``, the action is the message of the
    reply as JSON.

    Args:
        endpoint: the client. The caller closes it.
        system: content of a system message that opens every conversation; None for no system message.
        seed: derives a "seed" field for each (slot, episode, turn); None sends no seed.
        tool_role: role of messages with tool results. Servers that apply the model's chat template accept "tool".
            Use "user" for servers that reject tool messages without preceding ``tool_calls``.
        sampling: further fields of the request: temperature, max_tokens, stop, …

    Raises:
        BadValue: for an invalid seed or tool_role.
    """

    chat = None
    max_prompt_tokens = None
    version = 0

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        system: str | None = None,
        seed: int | None = None,
        tool_role: Literal["tool", "user"] = "tool",
        **sampling: Any,
    ) -> None:
        if tool_role not in ("tool", "user"):
            raise BadValue(f"tool_role must be 'tool' or 'user', got {tool_role!r}")
        self.endpoint, self.system, self.tool_role, self.sampling = endpoint, system, tool_role, sampling
        self.seed = None if seed is None else check_seed(seed)

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        """Return one reply per request, in order. A failed request becomes a Reply with ``failure``.

        Raises:
            EndpointError: if every request failed with an EndpointError that is not a RequestRefused.
            BadValue: for an observation that cannot be sent.
        """
        conversations = [(self.messages(request), self._options(request)) for request in requests]
        futures = [self.endpoint.submit(messages, **options) for messages, options in conversations]
        try:
            wait(futures)
            errors = [future.exception() for future in futures]
        finally:
            for future in futures:  # abort the requests if the wait was interrupted
                future.cancel()
        for error in errors:
            if error is not None and (not isinstance(error, EndpointError) or all(map(_is_outage, errors))):
                raise error
        return [
            Reply("", failure=str(error)) if error is not None else _to_reply(future.result())
            for future, error in zip(futures, errors, strict=True)
        ]

    def messages(self, request: Request) -> list[dict[str, Any]]:
        """Return the conversation sent for a request."""
        new = as_messages(request.observation, request.role)
        reply = _native_message if request.tools else None
        messages = [self._format(message) for message in conversation(request.turns, new, request.dropped, reply)]
        return messages if self.system is None else [{"role": "system", "content": self.system}, *messages]

    def _format(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Convert a message to OpenAI's format."""
        formatted = dict(message)
        if formatted.get("role") == "tool" and "tool_call_id" not in formatted:
            formatted["role"] = self.tool_role
        if isinstance(formatted.get("content"), list):
            formatted["content"] = [_format_part(part) for part in formatted["content"]]
        return formatted

    def _options(self, request: Request) -> dict[str, Any]:
        options = {**self.sampling, "tools": list(request.tools)} if request.tools else self.sampling
        if self.seed is None:
            return options
        return {**options, "seed": derive(self.seed, *request.key) % 2**31}  # the range that every server accepts


def _is_outage(error: BaseException | None) -> bool:
    """Whether the error concerns the endpoint and not one request."""
    return isinstance(error, EndpointError) and not isinstance(error, RequestRefused)


def _to_reply(completion: Completion) -> Reply:
    text = completion.text
    if completion.tool_calls:
        message = {"role": "assistant", "content": text or None, "tool_calls": completion.tool_calls}
        text = json.dumps(message, ensure_ascii=False)
    return Reply(text, finish=completion.finish)


def _native_message(turn: Turn) -> Message:
    """Return the reply of a turn as a message. An action that is a JSON message with ``tool_calls`` is parsed."""
    try:
        message = json.loads(turn.action)
    except (ValueError, RecursionError):
        return assistant(turn.action)
    has_calls = isinstance(message, dict) and message.get("role") == "assistant" and message.get("tool_calls")
    return cast(Message, message) if has_calls else assistant(turn.action)


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
