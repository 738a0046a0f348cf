"""Policies for models behind an OpenAI-compatible endpoint. Needs the extra [eval].

Endpoint is the HTTP client of one model. EndpointPolicy sends it the conversation of each episode.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, TimeoutError
from functools import partial
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from gem._internal.annotations import check_types
from gem._internal.counts import check_count
from gem._internal.http_client import (
    RATE_LIMITED,
    RETRYABLE,
    HttpClient,
    HttpRequest,
    RequestError,
    ServerState,
    api_key,
    bearer,
    check_url,
    wait_for,
)
from gem._internal.text import short_repr
from gem.conversation import ChatFormat
from gem.conversation.history import conversation
from gem.conversation.observations import as_messages
from gem.errors import BadValue, EndpointError
from gem.messages import Message, assistant
from gem.policies.base import Reply, Request
from gem.policies.chat_requests import as_sent
from gem.policies.completion import Completion, parse_completion, with_closing_tag
from gem.policies.model_list import read_model_list
from gem.policies.refusals import UNKNOWN, Refusal, read_refusal
from gem.seeding import check_seed, derive
from gem.trajectory import Turn

MODEL_LIST_S = 5.0  # seconds for the list of models, with retries
TIMEOUT_S = 120.0  # seconds per request; a long answer of a large model takes about a minute
CONNECT_S = 20.0  # seconds to open a connection
RATE_LIMIT_S = 600.0  # seconds that requests wait for a rate limit, without a reply in between
# The key, the URL or the model is wrong. Redirects are not followed: most turn POST into GET, some leave the server.
ACCESS_STATUSES = frozenset({301, 302, 303, 307, 308, 401, 402, 403, 404, 405})
_RESERVED = frozenset({"model", "messages", "prompt", "stream", "n", "echo"})  # fields of the body set by Endpoint


Prompt: TypeAlias = Sequence[Mapping[str, Any]] | Sequence[int]  # messages, or token ids


class AccessRefused(EndpointError):
    """The endpoint refused with status 401 to 405, redirects, or has no such model or no credit for the account."""


class Unreachable(EndpointError):
    """No connection to the endpoint could be opened: the host is unknown or refuses, or its certificate is invalid."""


class InvalidReply(EndpointError):
    """The endpoint replied with status 200, but with no completion: its URL may be that of another server."""


class RequestRefused(EndpointError):
    """The endpoint refused one request, for example because the prompt is too long, but may accept other requests.

    Args:
        status: status of the response.
        refusal: what the server said.
    """

    def __init__(self, *args: object, status: int = 400, refusal: Refusal = UNKNOWN) -> None:
        super().__init__(*args)
        self.status, self.refusal = status, refusal


class Endpoint(HttpClient):
    """Client of one model at one endpoint. Opens no connection before the first request.

    Thread-safe; one connection pool serves all threads and event loops of a process. API keys appear in no message,
    log, pickle or repr. A pickled or forked client opens its own connections.

    Args:
        base_url: URL of the API without "/chat/completions" or "/completions", such as "http://127.0.0.1:8000/v1".
        model: the model's name at the endpoint.
        api_key_env: environment variable with the API key, read at each request; None sends no key.
        timeout: seconds per attempt, from sending the request to the last byte of the reply.
        concurrency: maximum number of requests in flight; others wait without a time limit.
        retries: attempts after the first one, for status 408, 409, 425 or 5xx, connection errors, timeouts and invalid
            replies. After status 429, all requests wait as long as the server says, or ever longer until one is
            answered; a request fails after ten minutes without any reply. Before the first reply of all, a connection
            that cannot be opened is tried twice, and nothing is retried after one request has used all its retries.
        backoff: maximum seconds before the first retry; see gem._internal.http_client.HttpClient.

    Raises:
        BadValue: for values out of range.
        MissingDependency: at the first request, without the extra [eval].
    """

    rate_limit_s = RATE_LIMIT_S

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
        self.url = check_url(base_url, "base_url", "http://127.0.0.1:8000/v1", "keys go by api_key_env")
        self.model, self.api_key_env = model, api_key_env

    def complete(self, prompt: Prompt, **sampling: Any) -> Completion:
        """Return the model's reply to a conversation.

        Args:
            prompt: messages in OpenAI's format, ``{"role": …, "content": …}``, which go to /chat/completions; or token
                ids, which go to /completions and are continued as they are (vLLM, SGLang).
            sampling: further fields of the request: temperature, max_tokens, stop, seed, …

        Raises:
            EndpointError: the last retry failed, an error is not retryable, or the client was closed.
            AccessRefused, RequestRefused: an EndpointError for a status of the access, or of this request only.
            InvalidReply: an EndpointError for a reply that is no completion.
            Unreachable: an EndpointError if no connection could be opened.
            BadValue: for values that are not JSON, for fields set by this client, and for a missing API key.
        """
        return wait_for(self.submit(prompt, **sampling))

    async def acomplete(self, prompt: Prompt, **sampling: Any) -> Completion:
        """Async version of complete()."""
        return await asyncio.wrap_future(self.submit(prompt, **sampling))

    def submit(self, prompt: Prompt, **sampling: Any) -> Future[Completion]:
        """Send a request and return a future of the reply; see complete(). Canceling the future aborts the request."""
        if reserved := sorted(_RESERVED & set(sampling)):
            raise BadValue(f"{', '.join(reserved)} cannot be set: Endpoint requests one whole reply of {self.model!r}")
        is_ids = len(prompt) > 0 and isinstance(prompt[0], int)
        path, field = ("/completions", "prompt") if is_ids else ("/chat/completions", "messages")
        try:
            data = {"model": self.model, field: list(prompt), **sampling}
            # servers refuse lone surrogates, also as escapes
            body = json.dumps(data, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")
        except (TypeError, ValueError) as e:
            raise BadValue(f"messages and sampling options are sent as JSON: {e}") from e
        key = api_key(self.api_key_env, self.url)
        headers = {"Content-Type": "application/json", **bearer(key)}
        connect_s = min(CONNECT_S, self.timeout * 0.9)
        request = HttpRequest(
            "POST", self.url + path, body, self.timeout, headers, secret=key, connect_timeout=connect_s
        )
        return self.send(request, partial(parse_completion, request))

    def should_retry(self, error: RequestError) -> bool:
        return error.retryable and (error.status < 400 or read_refusal(error.status, error.body).cause is None)

    def most_retries(self, error: RequestError, server: ServerState) -> int:
        if server.answered:
            return self.retries
        return 0 if server.gave_up else min(self.retries, 1) if error.unreachable else self.retries

    def backend(self) -> dict[str, str]:
        """Return "endpoint", its host and port, and what its list of models says of the weights; see read_model_list().

        Sends a request. A server without such a list, or that does not reply, is no error.
        """
        key = api_key(self.api_key_env, self.url)
        request = HttpRequest("GET", f"{self.url}/models", None, MODEL_LIST_S, bearer(key), secret=key)
        host = urlsplit(self.url).netloc.rpartition("@")[2]
        asked = self.send(request, partial(read_model_list, name=self.model))
        try:
            return {"endpoint": host, **asked.result(MODEL_LIST_S)}
        except (EndpointError, TimeoutError):
            return {"endpoint": host}
        finally:
            asked.cancel()

    def failure_error(self, request: HttpRequest, error: RequestError, attempts: int) -> EndpointError:
        times = f"; {attempts} attempts" if attempts > 1 else ""
        text = f"{self.model!r} at {request.url}: {error}{times}"
        refusal = read_refusal(error.status, error.body) if error.status >= 400 else UNKNOWN
        if refusal.cause == "access":
            return AccessRefused(text)
        if refusal.cause is not None:
            return RequestRefused(text, status=error.status, refusal=refusal)
        if error.unreachable:
            return Unreachable(f"{text}; check the URL, and whether the server is running")
        if error.status == RATE_LIMITED:
            return EndpointError(f"{text}; lower the concurrency (--concurrency), or raise the limit of the server")
        if error.status == 200:
            return InvalidReply(text)
        if error.status in ACCESS_STATUSES:
            return AccessRefused(text)
        if 400 <= error.status < 500 and error.status not in RETRYABLE:
            return RequestRefused(text, status=error.status, refusal=refusal)
        return EndpointError(text)

    def closed_error(self, request: HttpRequest) -> EndpointError:
        return EndpointError(f"the client of {request.url} was closed while it waited for a reply")

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r}, {self.model!r})"


class EndpointPolicy:
    """A policy that queries a model at an endpoint. Each slot continues when its reply arrives (see AsyncPolicy).

    A request that fails after all retries ends its episode as failed; the others go on. Only before the endpoint's
    first completion, AccessRefused and InvalidReply are raised.

    With a tokenizer, the contexts of ChatFormat are sent as token ids, and each turn records the sampled ids and their
    log-probabilities, so that ``Trajectory.sequences()`` is exact. This needs vLLM >= 0.10.2, llama.cpp, or an SGLang
    with ``return_token_ids``. The log-probabilities are those of the server: for vLLM, set ``temperature`` and
    ``top_p`` (the defaults come from the model's generation_config), and unless both are 1, start the server with
    ``--logprobs-mode processed_logprobs``. Without a tokenizer, the server renders the conversation; if it returns
    token ids and log-probabilities on request (``return_token_ids=True, logprobs=True``), they are recorded as well.

    A refusal, or a reply that a content filter has cut off, is not sent to the environment: the turn records it, with
    ``finish`` "refusal" or "content_filter", and the episode is truncated with the stop reason "refused". If the server
    refuses a conversation that is too long for the model, ``finish`` is "context_overflow" and the stop reason
    "max_tokens". If a stop string such as ``</tool_call>`` has cut off a closing tag, it is appended to the action.
    Reasoning that the server returns apart from the reply is recorded in ``Turn.message``, and sent back with the tool
    results that follow. Replies that a server would refuse in the next request, such as malformed calls, are sent in a
    valid form; see gem.policies.chat_requests.as_sent. The record keeps them as they are.

    If an environment offers tools for native calls (``info["tools"]`` on reset, set by ToolEnvWrapper with the format
    "openai"), the tools are sent with each request. If a reply has ``tool_calls``, the action is the message of the
    reply as JSON.

    Args:
        endpoint: the client. The caller closes it.
        system: content of a system message that opens every conversation; None for no system message.
        tokenizer: a Hugging Face tokenizer with the chat template of the model, to send token ids; None sends messages.
        max_prompt_tokens: maximum length of a context in tokens, with a tokenizer; None for no limit.
        seed: derives a "seed" field for each (slot, episode, turn); None sends no seed.
        tool_role: role of tool results that answer a call in the text. OpenAI and most others refuse tool messages
            that answer no ``tool_calls``; use "tool" for servers that apply the model's chat template to them.
        sampling: further fields of the request: temperature, max_tokens (required with a tokenizer), stop, …

    Raises:
        BadValue: for an invalid endpoint, seed, tool_role or max_prompt_tokens; with a tokenizer, also for a system
            message or without max_tokens.
    """

    version = 0

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        system: str | None = None,
        tokenizer: Any = None,
        max_prompt_tokens: int | None = None,
        seed: int | None = None,
        tool_role: Literal["tool", "user"] = "user",
        **sampling: Any,
    ) -> None:
        if not hasattr(endpoint, "submit"):
            raise BadValue(
                f"endpoint must be a client, such as Endpoint('http://127.0.0.1:8000/v1', 'model'), got "
                f"{short_repr(endpoint)}"
            )
        check_types(EndpointPolicy, {"system": system, "max_prompt_tokens": max_prompt_tokens, "tool_role": tool_role})
        self.endpoint, self.system, self.tool_role, self.sampling = endpoint, system, tool_role, sampling
        if tokenizer is not None and (system is not None or "max_tokens" not in sampling):
            raise BadValue("with a tokenizer, give max_tokens (servers default to 16) and no system message")
        check_count("max_prompt_tokens", max_prompt_tokens, optional=True)
        if max_prompt_tokens is not None and tokenizer is None:
            raise BadValue(f"max_prompt_tokens={max_prompt_tokens} needs a tokenizer")
        self.chat = None if tokenizer is None else ChatFormat(tokenizer)
        self.max_prompt_tokens = max_prompt_tokens
        self.seed = None if seed is None else check_seed(seed)
        self._answered = False
        self._longest: int | None = None  # prompt that the server takes, as it has said when it refused a longer one
        self._said = ""

    @property
    def model_name(self) -> str:
        return self.endpoint.model

    @property
    def settings(self) -> dict[str, Any]:
        """What trajectories record of the requests: the sampling options, the seed and the system message."""
        return {**self.sampling, "seed": self.seed, "system": self.system}

    def backend(self) -> dict[str, str]:
        """Return where and from which weights the model is served; see Endpoint.backend()."""
        return self.endpoint.backend()

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        """Send the requests concurrently and return one reply per request, in order. Raises as submit() does."""
        futures: list[Future[Reply]] = []
        try:
            futures += map(self.submit, requests)
            return [future.result() for future in futures]
        finally:
            for future in futures:  # abort the requests if one raised or the wait was interrupted
                future.cancel()

    def submit(self, request: Request) -> Future[Reply]:
        """Send a request and return a future of the reply. A failed request becomes a Reply with ``failure``.

        Raises:
            AccessRefused, InvalidReply, Unreachable: as the result of the future, if the endpoint has not answered any
                request yet.
            BadValue: for an observation that cannot be sent. As the result of the future, if max_tokens is more than
                the model takes, whatever the prompt; or if a policy with a tokenizer gets no token ids or
                log-probabilities from the first reply, or the endpoint refuses token ids with status 422.
        """
        prompt = self.messages(request) if self.chat is None else list(request.prompt_ids)
        if request.turns and self._longest is not None and len(request.prompt_ids) > self._longest:
            full: Future[Reply] = Future()
            full.set_result(Reply("", finish="context_overflow", explanation=self._said))
            return full
        return _then(self.endpoint.submit(prompt, **self._options(request)), partial(self._reply, request))

    def _reply(self, request: Request, future: Future[Completion]) -> Reply:
        try:
            completion = future.result()
        except RequestRefused as e:
            return self._refused(request, e)
        except EndpointError as e:
            if isinstance(e, (AccessRefused, InvalidReply, Unreachable)) and not self._answered:
                raise
            return Reply("", failure=f"{type(e).__name__}: {e}")
        reply = self._to_reply(completion)
        if reply.failure and not self._answered:
            raise BadValue(reply.failure)
        self._answered = True
        return reply

    def _refused(self, request: Request, error: RequestRefused) -> Reply:
        """Return the outcome of a refused request: an overflow, a refusal by a content filter, or a failure."""
        most = self._max_tokens
        length = None if self.chat is None else len(request.prompt_ids)
        cause = error.refusal.resolve(length, most)
        if cause == "max_tokens" and most is not None and not request.turns and not self._answered:
            raise BadValue(
                f"max_tokens={most} is more than the model takes; lower it (--max-tokens): {error}"
            ) from error
        if cause == "total" and not request.turns:
            advice = f"max_tokens={most} leaves no room for the first prompt; lower it (--max-tokens)"
            return Reply("", failure=f"RequestRefused: {advice}: {error}")
        if cause in ("context_overflow", "total"):
            self._learn(length, error.refusal.limit, most if cause == "total" else 0, str(error))
            return Reply("", finish="context_overflow", explanation=str(error))
        if cause in ("cut", "malformed_call"):  # the model's own reply, which the server keeps
            return Reply(error.refusal.written, finish="length" if cause == "cut" else "stop")
        if cause == "content_filter":
            return Reply("", finish="content_filter", explanation=str(error))
        if error.status == 422 and self.chat is not None and not self._answered:
            raise BadValue(
                f"{self.endpoint} refused a prompt of token ids; EndpointPolicy(tokenizer=…) needs a server that takes "
                f"them, such as vLLM and SGLang. Without a tokenizer, messages are sent: {error}"
            ) from error
        return Reply("", failure=f"RequestRefused: {error}")

    def _learn(self, length: int | None, limit: int | None, room: int | None, said: str) -> None:
        """Keep the longest prompt that the server takes, so that longer ones end their episodes without a request."""
        if length is not None and limit is not None and 0 < (longest := limit - (room or 0)) < length:
            self._longest, self._said = longest, said

    @property
    def _max_tokens(self) -> int | None:
        """What the requests ask for, under either of its names."""
        asked = (self.sampling.get(name) for name in ("max_tokens", "max_completion_tokens"))
        return next((most for most in asked if type(most) is int), None)

    def _to_reply(self, completion: Completion) -> Reply:
        text, finish, ids, logprobs = completion.text, completion.finish, completion.sampled_ids, completion.logprobs
        if completion.refusal is not None:
            text, finish = text or completion.refusal, "refusal"
        elif self.chat is not None and finish != "content_filter":
            is_empty = self._answered and not text and not ids  # some servers leave out the end token
            if not is_empty and not (ids and logprobs):
                missing = "log-probabilities" if ids else "token ids"
                return Reply(
                    "",
                    failure=f"{self.endpoint} returned no {missing}; EndpointPolicy(tokenizer=…) needs a server that "
                    "returns them for prompts of token ids, such as vLLM >= 0.10.2, SGLang or llama.cpp. Without a "
                    "tokenizer, messages are sent",
                )
            text = self.chat.decode(ids)
            if finish == "stop" and not self.chat.has_ended(ids):  # some servers leave out the ids of a stop string
                text = with_closing_tag(text, self.sampling.get("stop"))
        elif completion.tool_calls:
            calls = {"role": "assistant", "content": text or None, "tool_calls": completion.tool_calls}
            text = json.dumps(calls, ensure_ascii=False)
        elif finish == "stop":
            text = with_closing_tag(text, self.sampling.get("stop"))
        message = completion.message
        return Reply(
            text, ids, logprobs, finish, None, completion.prompt_ids, completion.usage, message, completion.model
        )

    def messages(self, request: Request) -> list[dict[str, Any]]:
        """Return the conversation sent for a request."""
        new = as_messages(request.observation, request.role)
        messages = as_sent(conversation(request.turns, new, request.dropped, _reply_message), self.tool_role)
        return [{"role": "system", "content": self.system}, *messages] if self.system else messages

    def _options(self, request: Request) -> dict[str, Any]:
        options = self.sampling
        if self.chat is not None:
            options = {"logprobs": 1, "return_token_ids": True, "stop_token_ids": sorted(self.chat.end_ids), **options}
        elif request.tools:
            options = {**options, "tools": list(request.tools)}
        if self.seed is not None:  # in the range that every server accepts
            options = {**options, "seed": derive(self.seed, *(request.stream or request.key)) % 2**31}
        return options


def _then(future: Future[Any], convert: Callable[[Future[Any]], Reply]) -> Future[Reply]:
    """Return a future of convert(future). Canceling it cancels the given future."""
    converted: Future[Reply] = Future()

    def finish(future: Future[Any]) -> None:
        if converted.set_running_or_notify_cancel():
            try:
                converted.set_result(convert(future))
            except BaseException as e:
                converted.set_exception(e)

    converted.add_done_callback(lambda converted: future.cancel())
    future.add_done_callback(finish)
    return converted


def _reply_message(turn: Turn) -> Message:
    return assistant(turn.action) if turn.message is None else cast(Message, turn.message)
