"""Who acts: anything that answers requests with replies.

A model behind an endpoint is imported when it is asked for: its client brings asyncio and more, which a game needs not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem._internal.imports import resolve
from gem.policies.base import Policy, Reply, Request
from gem.policies.oracle import Oracle, oracle
from gem.policies.simple import RandomPolicy, ScriptedPolicy

if TYPE_CHECKING:
    from gem.policies.endpoint import Completion, Endpoint, RequestRefused
    from gem.policies.endpoint_policy import EndpointPolicy

_LATER = {
    "Completion": "gem.policies.endpoint",
    "Endpoint": "gem.policies.endpoint",
    "EndpointPolicy": "gem.policies.endpoint_policy",
    "RequestRefused": "gem.policies.endpoint",
}

__all__ = [
    "Completion",
    "Endpoint",
    "EndpointPolicy",
    "Oracle",
    "Policy",
    "RandomPolicy",
    "Reply",
    "Request",
    "RequestRefused",
    "ScriptedPolicy",
    "oracle",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return resolve(f"{_LATER[name]}:{name}")
