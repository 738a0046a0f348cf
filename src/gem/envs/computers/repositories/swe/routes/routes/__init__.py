# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""URLs and routes."""

from routes.query import build_query, parse_query
from routes.router import MethodNotAllowed, NotFound, Router
from routes.urls import Url, join, normalize, quote, split, unquote

__all__ = [
    "MethodNotAllowed",
    "NotFound",
    "Router",
    "Url",
    "build_query",
    "join",
    "normalize",
    "parse_query",
    "quote",
    "split",
    "unquote",
]
