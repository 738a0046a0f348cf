"""Models behind a chat endpoint that speaks OpenAI's protocol, as most servers of models do.

Endpoint is the client: one pool of connections for all threads and event loops of a process, a bound on requests in
flight, a time-out for each, and retries where the fault may pass. gem.policies.endpoint_policy plays with it.
Needs the extra [eval].
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gem._internal.http_client import LONGEST_PAUSE_S as LONGEST_PAUSE_S
from gem._internal.http_client import Failure, HttpClient, HttpRequest, checked_url, key_from, outcome
from gem.errors import BadValue, EndpointError

TIMEOUT_S = 120.0  # seconds for one request; a long answer of a large model takes about a minute
NOT_ITS_OWN = frozenset({401, 403, 404, 405, 408, 429})  # statuses of 4xx that are not about the one request
_OURS = frozenset({"model", "messages", "stream", "n"})  # of the request's body


class RequestRefused(EndpointError):
    """The endpoint answers, and does not take this request, as one that is too long: others may be taken."""


@dataclass(frozen=True)
class Completion:
    """A model's reply.

    Args:
        text: empty where the model wrote nothing besides what the endpoint keeps to itself, its thinking for one.
        finish: "stop", "length" or what else the endpoint says; None where it says nothing.
        usage: tokens, as the endpoint counts them; empty where it does not.
        tool_calls: in the endpoint's form, empty where the model called nothing.
    """

    text: str
    finish: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    tool_calls: list[Any] = field(default_factory=list)


class Endpoint(HttpClient):
    """The client of one model at one endpoint. Nothing is opened before the first request.

    Args:
        base_url: what "/chat/completions" is appended to, as "http://127.0.0.1:8000/v1".
        model: its name there.
        api_key_env: the environment variable that holds the key, read at each request; None sends none.
        timeout: seconds for one attempt, from sending it to the last byte of the reply.
        concurrency: requests in flight at most; others wait, without a limit on the time.
        retries: attempts after the first one, where it met a status of 408, 429 or 5xx, a connection that failed, a
            time-out or a broken reply.
        backoff: seconds before the first retry, at most. Each pause may be twice as long as the one before, up to a
            minute, and a random part of up to half is taken off, so that many clients do not come back at once. It is
            as long as the server's Retry-After, where that is more.

    Keys are in no message, log, pickle or repr. A pickled or forked client opens connections of its own. Raises
    BadValue for values out of range, and MissingDependency at the first request without the extra [eval].
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
        self.url = (
            checked_url(base_url, "base_url", "http://127.0.0.1:8000/v1", "keys go by api_key_env")
            + "/chat/completions"
        )
        self.model, self.api_key_env = model, api_key_env

    def complete(self, messages: Sequence[Mapping[str, Any]], **sampling: Any) -> Completion:
        """The model's reply to a conversation.

        Args:
            messages: in the endpoint's form: {"role": …, "content": …}.
            sampling: whatever else the endpoint takes: temperature, max_tokens, stop, seed, …

        Raises EndpointError after all retries, at once for what a retry cannot help (RequestRefused where that is the
        request's own fault), and when the client is closed meanwhile; BadValue for what is no JSON, options that are
        this client's own, and a key that is not there.
        """
        return outcome(self.submit(messages, **sampling))

    async def acomplete(self, messages: Sequence[Mapping[str, Any]], **sampling: Any) -> Completion:
        """complete(), for event loops."""
        return await asyncio.wrap_future(self.submit(messages, **sampling))

    def submit(self, messages: Sequence[Mapping[str, Any]], **sampling: Any) -> Future[Completion]:
        """complete(), as a future; cancelling it gives up the request."""
        if wrong := sorted(_OURS & set(sampling)):
            raise BadValue(f"{', '.join(wrong)} cannot be set: one reply at a time, in one piece, by {self.model!r}")
        try:
            body = json.dumps({"model": self.model, "messages": list(messages), **sampling}, allow_nan=False).encode()
        except (TypeError, ValueError) as e:
            raise BadValue(f"messages and sampling options are sent as JSON: {e}") from e
        key = key_from(self.api_key_env, self.url)
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        request = HttpRequest("POST", self.url, body, self.timeout, headers, secret=key)
        return self.send(request, partial(_completion, request))

    def failed(self, request: HttpRequest, failure: Failure, attempts: int) -> EndpointError:
        times = f"; {attempts} attempts" if attempts > 1 else ""
        refused = 400 <= failure.status < 500 and failure.status not in NOT_ITS_OWN
        kind = RequestRefused if refused else EndpointError
        return kind(f"{self.model!r} at {self.url}: {failure}{times}")

    def closed(self, request: HttpRequest) -> EndpointError:
        return EndpointError(f"the client of {self.url} was closed while it waited for a reply")

    def __repr__(self) -> str:
        return f"Endpoint({self.url.removesuffix('/chat/completions')!r}, {self.model!r})"


def _completion(request: HttpRequest, reply: bytes) -> Completion:
    """What a reply says. Raises Failure for what is no reply, as from a proxy that lost its server."""
    text = reply.decode("utf-8", "replace")
    try:
        data = json.loads(text)
        choice = data["choices"][0]
        said, finish, usage = choice["message"].get("content"), choice.get("finish_reason"), data.get("usage")
        calls = choice["message"].get("tool_calls")
        if not (isinstance(said, str | None) and isinstance(finish, str | None) and isinstance(calls, list | None)):
            raise TypeError
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise Failure(f"a reply that is no chat completion: {request.hide(text)[:300]!r}") from None
    return Completion(said or "", finish, usage if isinstance(usage, dict) else {}, calls or [])
