"""Policies: reply to batches of requests with actions.

The policies of model endpoints are imported on first use, because their client imports asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem._internal.imports import resolve
from gem.policies.base import (
    AsyncPolicy,
    Oracle,
    Policy,
    RandomPolicy,
    Reply,
    Request,
    ScriptedPolicy,
    is_async,
    oracle,
)

if TYPE_CHECKING:
    from gem.policies.completion import Completion
    from gem.policies.endpoint import AccessRefused, Endpoint, EndpointPolicy, InvalidReply, RequestRefused

_LAZY = ("AccessRefused", "Completion", "Endpoint", "EndpointPolicy", "InvalidReply", "RequestRefused")

__all__ = [
    "AccessRefused",
    "AsyncPolicy",
    "Completion",
    "Endpoint",
    "EndpointPolicy",
    "InvalidReply",
    "Oracle",
    "Policy",
    "RandomPolicy",
    "Reply",
    "Request",
    "RequestRefused",
    "ScriptedPolicy",
    "is_async",
    "oracle",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return resolve(f"gem.policies.endpoint:{name}")
