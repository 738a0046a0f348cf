"""A model behind a chat endpoint, playing."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from typing import Any

from gem.errors import BadValue
from gem.messages import Observation
from gem.policies.base import Reply, Request
from gem.policies.endpoint import Endpoint
from gem.seeding import check_seed, derive


class EndpointPolicy:
    """Asks an endpoint for each action, all slots of a batch at once, with the episode so far as a conversation.

    Args:
        endpoint: who answers. Whoever made it closes it.
        system: opens every conversation; None opens with the first observation.
        seed: each (slot, episode, turn) samples with a seed of its own derived from this one, for endpoints that take
            "seed"; None sends none.
        sampling: whatever else the endpoint takes: temperature, max_tokens, stop, …

    Raises BadValue for a seed that is none.
    """

    chat = None
    max_prompt_tokens = None
    version = 0

    def __init__(
        self, endpoint: Endpoint, *, system: str | None = None, seed: int | None = None, **sampling: Any
    ) -> None:
        self.endpoint, self.system, self.sampling = endpoint, system, sampling
        self.seed = None if seed is None else check_seed(seed)

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        """One reply per request, in order. Raises EndpointError where one fails for good, and gives up the others."""
        futures = [self.endpoint.submit(self.messages(request), **self._options(request)) for request in requests]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            failed = next((future for future in futures if future.done() and future.exception()), None)
            replies = [future.result() for future in ([failed] if failed else futures)]
        finally:
            for future in futures:
                future.cancel()
        return [Reply(reply.text, finish=reply.finish) for reply in replies]

    def messages(self, request: Request) -> list[dict[str, Any]]:
        """The conversation that a request is sent as."""
        said: list[dict[str, Any]] = [] if self.system is None else [{"role": "system", "content": self.system}]
        for turn in request.turns:
            said += [*_seen(turn.observation), {"role": "assistant", "content": turn.action}]
        return said + _seen(request.observation)

    def _options(self, request: Request) -> dict[str, Any]:
        if self.seed is None:
            return self.sampling
        return {**self.sampling, "seed": derive(self.seed, *request.key) % 2**31}  # as wide as every server takes


def _seen(observation: Observation) -> list[dict[str, Any]]:
    """An observation as messages: those it holds, or one of the user's."""
    if isinstance(observation, str):
        return [{"role": "user", "content": observation}]
    if isinstance(observation, Mapping) and isinstance(observation.get("text"), str):
        images = [{"type": "image_url", "image_url": {"url": _url(image)}} for image in observation.get("images", ())]
        text = observation["text"]
        return [{"role": "user", "content": [*images, {"type": "text", "text": text}] if images else text}]
    if isinstance(observation, list) and all(isinstance(message, Mapping) for message in observation):
        return [dict(message) for message in observation]
    raise BadValue(f"an endpoint takes text, text with images or messages, got {type(observation).__name__}")


def _url(image: Any) -> str:
    """A PIL image as a data URL."""
    if not hasattr(image, "save"):
        raise BadValue(f"an image should be a PIL image, got {type(image).__name__}")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
