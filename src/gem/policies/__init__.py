"""Policies: reply to batches of requests with actions.

How they are asked is in rollout, and a model that is trained is in rl.model. The policies of model endpoints are
imported on first use, because their client imports asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem._internal.imports import lazy_names
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
    from gem.policies.endpoint import AccessRefused, Endpoint, EndpointPolicy, InvalidReply, RequestRefused, Unreachable
    from gem.policies.function import FunctionFailed, FunctionPolicy

__all__ = [
    "AccessRefused",
    "AsyncPolicy",
    "Completion",
    "Endpoint",
    "EndpointPolicy",
    "FunctionFailed",
    "FunctionPolicy",
    "InvalidReply",
    "Oracle",
    "Policy",
    "RandomPolicy",
    "Reply",
    "Request",
    "RequestRefused",
    "ScriptedPolicy",
    "Unreachable",
    "is_async",
    "oracle",
]


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "completion": "Completion",
        "endpoint": "AccessRefused Endpoint EndpointPolicy InvalidReply RequestRefused Unreachable",
        "function": "FunctionFailed FunctionPolicy",
    },
)
