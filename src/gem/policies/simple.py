"""Policies without a model: random legal actions, and a script."""

from __future__ import annotations

from collections.abc import Sequence

from gem.errors import BadValue
from gem.policies.base import Reply, Request


class _TextPolicy:
    chat = None
    max_prompt_tokens = None
    version = 0


class RandomPolicy(_TextPolicy):
    """Takes the environment's own random legal actions."""

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        return [Reply(request.sample_random_action()) for request in requests]


class ScriptedPolicy(_TextPolicy):
    """Says the same lines in every episode, the k-th at turn k, and the last one from then on.

    Raises BadValue for an empty script.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        if isinstance(lines, str) or not lines:
            raise BadValue(f"a script is a list of at least one line, got {lines!r}")
        self.lines = list(lines)

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        return [Reply(self.lines[min(request.key[2], len(self.lines) - 1)]) for request in requests]
