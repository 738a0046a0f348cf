"""Shorten text for messages."""

from __future__ import annotations


def shorten(text: str, limit: int) -> str:
    """Cut a text to at most ``limit`` characters; an ellipsis marks the cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def short_repr(value: object, limit: int = 100) -> str:
    """The repr of a value, cut to at most ``limit`` characters. Long strings are cut before they are repr'd."""
    return shorten(repr(value[: limit + 1] if isinstance(value, str) else value), limit)
