"""A function as a policy, from the messages of a conversation to a reply: for agents and models of any kind."""

from __future__ import annotations

import copy
import inspect
import json
import threading
import traceback
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

from gem._internal.event_loop import BackgroundLoop
from gem._internal.inbound import REPLY, loads
from gem._internal.text import short_repr
from gem.errors import BadValue, EndpointError
from gem.policies.completion import Completion, completion_of
from gem.policies.endpoint import Endpoint, EndpointPolicy


class FunctionFailed(EndpointError):
    """A function raised an exception, or returned something that is no reply."""


class FunctionPolicy(EndpointPolicy):
    """A policy that asks a function, with messages in the format of OpenAI's API as an EndpointPolicy sends them.

    An exception of the function fails its episode; the others go on.

    Args:
        function: gets the conversation, a list of dicts with ``role`` and ``content``, and returns the reply: a text, a
            message as a dict with ``content`` and ``tool_calls``, or an object with model_dump() that returns one. It
            may be a coroutine function; all coroutines run on one event loop. Other functions run in threads, one for
            each episode that waits for a reply. If the environment offers tools for native calls, their schemas are
            passed as the keyword argument ``tools``.
        name: name in records; None for the name of the function.
    """

    def __init__(self, function: Callable[..., Any], *, name: str | None = None) -> None:
        name = name or str(getattr(function, "__qualname__", type(function).__qualname__))
        super().__init__(cast(Endpoint, _FunctionClient(function, name)))

    @property
    def settings(self) -> dict[str, Any]:
        """Empty: the function samples as it likes."""
        return {}

    def backend(self) -> dict[str, str]:
        """Empty: what the function asks is not known."""
        return {}


class _FunctionClient:
    """Stands for the Endpoint of a policy."""

    def __init__(self, function: Callable[..., Any], model: str) -> None:
        self.function, self.model = function, model
        parameters = inspect.signature(function).parameters.values()
        self.takes_tools = any(p.name == "tools" or p.kind is p.VAR_KEYWORD for p in parameters)
        self._lock = threading.Lock()
        self._loop: BackgroundLoop[None] | None = None

    def submit(self, prompt: Sequence[Mapping[str, Any]], tools: Sequence[Any] = ()) -> Future[Completion]:
        if tools and not self.takes_tools:
            raise BadValue(
                f"the environment offers tools, so {self.model} needs a parameter ``tools`` for their schemas"
            )
        answer: Future[Completion] = Future()
        answer.set_running_or_notify_cancel()  # a call that has begun cannot be canceled
        # A daemon thread does not keep an interrupted program from ending.
        messages = copy.deepcopy([*prompt]), copy.deepcopy([*tools])  # functions may change them
        threading.Thread(target=self._work, args=(answer, *messages), name="gem-function", daemon=True).start()
        return answer

    def _work(self, answer: Future[Completion], messages: list[Any], tools: list[Any]) -> None:
        try:
            answer.set_result(self._call(messages, {"tools": tools} if tools else {}))
        except Exception as e:
            answer.set_exception(FunctionFailed(f"{self.model}: {type(e).__name__}: {e}{_place(e)}"))
        except BaseException as e:
            answer.set_exception(e)

    def _call(self, messages: list[Any], tools: Mapping[str, Any]) -> Completion:
        said = self.function(messages, **tools)
        if inspect.isawaitable(said):
            said = self._background().submit(_awaited(said)).result()
        if hasattr(said, "model_dump"):
            said = said.model_dump(exclude_none=True)
        if isinstance(said, str):
            return Completion(said)
        if not isinstance(said, Mapping):
            raise BadValue(f"it must return a text or a message, got {short_repr(said)}")
        try:
            return completion_of(loads(json.dumps({"choices": [{"message": said}]}), "it", REPLY))
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError, RecursionError) as e:
            raise BadValue(f"it must return a message as of OpenAI's API, got {short_repr(said)}") from e

    def _background(self) -> BackgroundLoop[None]:
        """Return the event loop of all calls: clients that a coroutine function shares belong to one loop."""
        with self._lock:
            if self._loop is None:
                self._loop = BackgroundLoop(nullcontext)
                weakref.finalize(self, self._loop.close)
            return self._loop


async def _awaited(said: Awaitable[Any]) -> Any:
    return await said


def _place(error: Exception) -> str:
    """Return where an exception was raised, for a message."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or Path(frames[-1].filename) == Path(__file__):
        return ""
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
