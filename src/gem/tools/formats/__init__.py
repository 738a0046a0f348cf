"""How agents write calls: one canonical ToolCall, and a format for each habit."""

from __future__ import annotations

from gem.errors import BadValue, did_you_mean
from gem.tools.formats.base import Broken, CallFormat, Reading
from gem.tools.formats.hermes import HermesFormat, openai_schemas
from gem.tools.formats.openai import OpenAIFormat
from gem.tools.formats.react import ReActFormat
from gem.tools.formats.tags import TagFormat

__all__ = [
    "FORMATS",
    "TAGS",
    "Broken",
    "CallFormat",
    "HermesFormat",
    "OpenAIFormat",
    "ReActFormat",
    "Reading",
    "TagFormat",
    "get_format",
    "openai_schemas",
]

TAGS = TagFormat()
FORMATS: dict[str, CallFormat] = {
    call_format.name: call_format for call_format in (TAGS, HermesFormat(), OpenAIFormat(), ReActFormat())
}


def get_format(call_format: str | CallFormat) -> CallFormat:
    """A format by its name, or itself. Raises BadValue for a name that there is not."""
    if isinstance(call_format, CallFormat):
        return call_format
    if call_format not in FORMATS:
        near = did_you_mean(str(call_format), FORMATS)
        raise BadValue(f"no call format {call_format!r}{near}  (there are: {', '.join(FORMATS)})")
    return FORMATS[call_format]
