"""Who acts: anything that answers requests with replies."""

from gem.policies.base import Policy, Reply, Request
from gem.policies.oracle import Oracle, oracle
from gem.policies.simple import RandomPolicy, ScriptedPolicy

__all__ = ["Oracle", "Policy", "RandomPolicy", "Reply", "Request", "ScriptedPolicy", "oracle"]
