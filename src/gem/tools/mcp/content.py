"""Conversion of an answer of an MCP server to a ToolResult."""

from __future__ import annotations

import base64
import binascii
import json
import logging
from collections.abc import Sequence
from typing import Any

from gem._internal.inbound import MAX_PIXELS, open_image
from gem.errors import BadInput
from gem.messages import ToolResult
from gem.tools.mcp.config import ClientOptions
from gem.tools.mcp.schema import cut_text

MAX_IMAGES = 8  # of a result, with MAX_PIXELS together; more are only described

# Formats of OpenAI's input_audio, by the subtype of the MIME type. Other subtypes, such as flac, are used unchanged.
_AUDIO_FORMATS = {"mpeg": "mp3", "wave": "wav", "vnd.wave": "wav", "mp4": "m4a"}

log = logging.getLogger(__name__)


def to_result(answer: Any, options: ClientOptions) -> ToolResult:
    """Convert a CallToolResult of the SDK. Images and audio are kept only if the options ask for them."""
    return ToolResult(
        _text(answer.content, answer.structured_content, options.max_chars),
        images=_images(answer.content) if options.vision else (),
        audio=_audio(answer.content) if options.audio else (),
    )


def _text(content: Sequence[Any], structured: Any, max_chars: int) -> str:
    """Convert content to text, and shorten the text to ``max_chars`` characters.

    If the content has no text block, the text starts with the structured content as JSON.
    """
    parts = [_block_text(block) for block in content]
    if structured is not None and not any(block.type == "text" for block in content):
        parts.insert(0, json.dumps(structured, ensure_ascii=False))
    return cut_text("\n".join(parts), max_chars)


def _block_text(block: Any) -> str:
    if block.type == "text":
        return str(block.text)
    if block.type in ("image", "audio"):
        return f"[{block.type}: {block.mime_type}, {3 * len(block.data) // 4} bytes]"
    if block.type == "resource_link":
        return f"[resource: {block.name}, {block.uri}]"
    resource = getattr(block, "resource", None)
    text = getattr(resource, "text", None)
    return str(text) if text is not None else f"[{block.type}: {getattr(resource, 'uri', 'no text')}]"


def _images(content: Sequence[Any]) -> tuple[Any, ...]:
    """Return the valid ones of the first images as PIL images. The text describes the others."""
    images, left = [], MAX_PIXELS
    for block in [block for block in content if block.type == "image"][:MAX_IMAGES]:
        try:
            images.append(open_image(base64.b64decode(block.data), "the image", left))
            left -= images[-1].width * images[-1].height
        except (BadInput, ValueError) as e:
            log.info("an image is left out: %s", e)
    return tuple(images)


def _audio(content: Sequence[Any]) -> tuple[dict[str, str], ...]:
    """Return the audio with valid base64 data, as in ToolResult."""
    audio = []
    for block in content:
        if block.type == "audio":
            try:
                base64.b64decode(block.data, validate=True)
            except (binascii.Error, ValueError) as e:
                log.info("audio is invalid: %s", e)
            else:
                kind = block.mime_type.partition(";")[0].rpartition("/")[2].strip().lower().removeprefix("x-")
                audio.append({"data": block.data, "format": _AUDIO_FORMATS.get(kind, kind)[:20]})
    return tuple(audio)
