"""Token usage of a reply, whatever names and accounting the server has for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, TypeGuard

_MOST_TOKENS = 1 << 40  # of one reply; a count above it is no count
# Our name → where servers put the count, the first of which is taken. "a.b" is b in the dictionary a.
_PLACES = {
    "prompt_tokens": ("prompt_tokens", "input_tokens"),
    "completion_tokens": ("completion_tokens", "output_tokens"),
    "cached_tokens": (
        *("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"),  # OpenAI, vLLM, OpenRouter
        *("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"),  # Moonshot; DeepSeek; Anthropic
    ),
    "reasoning_tokens": (
        *("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens", "reasoning_tokens"),
    ),
}
_WRITTEN = ("cache_creation_input_tokens", "prompt_tokens_details.cache_creation_tokens")  # to Anthropic's cache
_ADDED = ("total_tokens", "cost", "is_byok")  # kept only if valid; or added up
_XAI_TICKS = 1e10  # per dollar


def token_usage(reported: Any) -> dict[str, Any]:
    """Return a reply's usage with the same names and the same accounting for every server.

    ``prompt_tokens`` are all tokens of the prompt, ``cached_tokens`` those of them that a cache served;
    ``completion_tokens`` are all sampled tokens, ``reasoning_tokens`` those of them that are hidden reasoning; ``cost``
    is what the server charges, in US dollars. Each is absent if the server does not report it. So OpenAI counts;
    Anthropic's ``input_tokens`` leave out what the cache served, and the ``completion_tokens`` of xAI and Gemini leave
    out the reasoning, which only their total has. Other fields are kept as they are. Applying it again changes nothing.

    Args:
        reported: the ``usage`` of a response. Values that are no counts are left out: they are not worth a failure.

    >>> token_usage({"input_tokens": 12, "output_tokens": 5, "cache_read_input_tokens": 2495})["prompt_tokens"]
    2507
    >>> token_usage({"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623})["reasoning_tokens"]
    405
    """
    if not isinstance(reported, Mapping):
        return {}
    found = {name: _first_count(reported, places) for name, places in _PLACES.items()}
    prompt, completion, cached, reasoning = found.values()
    if prompt is not None:
        read, written = cached or 0, _first_count(reported, _WRITTEN) or 0
        # A part is never above the whole. With Anthropic's names, the two are always apart.
        if read + written > prompt or ("prompt_tokens" not in reported and "cache_read_input_tokens" in reported):
            found["prompt_tokens"] = prompt = prompt + read + written
    total = reported.get("total_tokens")
    if prompt is not None and completion is not None:
        apart = total - prompt - completion if _is_count(total) else 0
        if (apart > 0 and reasoning in (None, apart)) or (reasoning or 0) > completion:
            found["reasoning_tokens"] = reasoning = reasoning or apart
            found["completion_tokens"] = completion + reasoning
    kept = {name: value for name, value in reported.items() if name not in (*_PLACES, *_ADDED)}
    kept |= {"total_tokens": total} if _is_count(total) else {}
    kept |= {name: count for name, count in found.items() if count is not None}
    return kept if (cost := _cost(reported)) is None else {**kept, "cost": cost}


def token_counts(usage: Mapping[str, Any], fed: int, sampled: int) -> tuple[int, int]:
    """Return the tokens of a prompt and of its reply, from token_usage(); if it lacks them, as fed and sampled."""
    return usage.get("prompt_tokens") or fed, usage.get("completion_tokens") or sampled


def total_usage(usages: Iterable[Any]) -> dict[str, int]:
    """Return the sums of the token counts of several replies, for the counts that one of them reports."""
    counts = [token_usage(usage) for usage in usages]
    return {
        name: sum(count.get(name, 0) for count in counts) for name in _PLACES if any(name in count for count in counts)
    }


def retries_of(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return how often the client has sent a request again, by cause, from the usage of its turn."""
    retries = usage.get("retries")
    found = retries.items() if isinstance(retries, dict) else ()
    return {str(cause): count for cause, count in found if _is_count(count)}


def _first_count(data: Mapping[str, Any], places: tuple[str, ...]) -> int | None:
    return next(filter(_is_count, map(partial(_at, data), places)), None)


def _at(data: Mapping[str, Any], place: str) -> Any:
    """Return what is at a place, None if there is nothing."""
    outer, _, inner = place.rpartition(".")
    holder = data.get(outer) if outer else data
    return holder.get(inner) if isinstance(holder, Mapping) else None


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _MOST_TOKENS


def _cost(reported: Mapping[str, Any]) -> float | None:
    """Return dollars: of OpenRouter, with what a provider charges to the user's own key, or of xAI."""
    cost, ticks, upstream = (
        _at(reported, place) for place in ("cost", "cost_in_usd_ticks", "cost_details.upstream_inference_cost")
    )
    if _is_cost(cost):
        is_extra = reported.get("is_byok") is True and _is_cost(upstream)  # "bring your own key"
        return float(cost + upstream if is_extra else cost)
    return ticks / _XAI_TICKS if _is_cost(ticks) else None


def _is_cost(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf
