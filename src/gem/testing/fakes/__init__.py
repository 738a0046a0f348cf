"""Servers that stand in for others in tests: a model's endpoint, and search engines. Need the extra [eval].

They listen on this machine only and need no key. Search servers for use are in gem.tools.search.
"""

from gem.testing.fakes.endpoint import Answer, FakeEndpoint
from gem.testing.fakes.search import FakeSearchServer, FakeWeb, Page

__all__ = ["Answer", "FakeEndpoint", "FakeSearchServer", "FakeWeb", "Page"]
