# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""A renderer for a small markup language."""

from markup.blocks import parse
from markup.html import render
from markup.outline import anchors, contents
from markup.plain import plain_text

__all__ = ["anchors", "contents", "parse", "plain_text", "render"]
