"""Servers that stand in for others in tests: a model's endpoint, and search engines. Need the extra [eval]."""

from gem.testing.fakes.endpoint import Answer, FakeEndpoint
from gem.testing.fakes.search import FakeSearchServer, FakeWeb, Page

__all__ = ["Answer", "FakeEndpoint", "FakeSearchServer", "FakeWeb", "Page"]
