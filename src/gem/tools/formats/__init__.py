"""Call formats: parse the tool calls that agents write in different notations.

What is called is in the wings beside; a format knows names and arguments only. Answers in boxes are read by
gem.parsing.
"""

from __future__ import annotations

from gem.errors import BadValue, did_you_mean
from gem.tools.formats.base import CallFormat, InvalidCall, ParsedMessage
from gem.tools.formats.json_calls import HermesFormat, OpenAIFormat, ReActFormat, openai_schemas
from gem.tools.formats.tags import TagFormat

__all__ = [
    "FORMATS",
    "TAGS",
    "CallFormat",
    "HermesFormat",
    "InvalidCall",
    "OpenAIFormat",
    "ParsedMessage",
    "ReActFormat",
    "TagFormat",
    "get_format",
    "openai_schemas",
]

TAGS = TagFormat()
FORMATS: dict[str, CallFormat] = {
    call_format.name: call_format for call_format in (TAGS, HermesFormat(), OpenAIFormat(), ReActFormat())
}


def get_format(call_format: str | CallFormat) -> CallFormat:
    """Return the call format with a name. A CallFormat is returned unchanged.

    Raises:
        BadValue: there is no call format with this name.
    """
    if isinstance(call_format, CallFormat):
        return call_format
    if call_format not in FORMATS:
        near = did_you_mean(str(call_format), FORMATS)
        raise BadValue(f"no call format {call_format!r}{near}  (available: {', '.join(FORMATS)})")
    return FORMATS[call_format]
