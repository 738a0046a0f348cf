"""Find tags and code fences in the text of a model. Skip thoughts, quoted strings and inline code."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from gem.parsing import CodeBlock, placed_code_blocks

_QUOTED = re.compile(r"""\"[^"\n]*\"|“[^“”\n]*”|(?<!\w)'(?=\S)[^'\n]*(?<=\S)'(?!\w)""")  # skips apostrophes
_QUOTE_MARK = re.compile("[\"“']")
_FIRST_CHARACTER = re.compile("[<`~]")
_WORD = re.compile(r"(\w+)[ \t\r\n]")
_MAX_QUOTE_WINDOWS = 64  # maximum number of cached line scans; further scans start at the beginning of the line
_MAX_QUOTED_CLOSINGS = 16  # maximum number of quoted closing tags to skip in a search for an unquoted closing tag


class TagMatch(NamedTuple):
    """A tag or fence found by TagScanner.

    Args:
        name: name of the tag, or language of the code fence.
        fence: True for a code fence, False for a tag.
        start: offset of the opening tag or fence.
        inner: offset of the content.
        content: the enclosed text; None if the tag or fence is not closed, or if the tag is structured.
        end: offset after the closing tag or fence; equal to ``inner`` if content is None.
    """

    name: str
    fence: bool
    start: int
    inner: int
    content: str | None
    end: int


class TagScanner:
    r"""Find tags and code fences that are tool calls, and skip text that only mentions them.

    The scanner skips closed ``<think>`` blocks, the text before ``</think>`` if the prompt opened the block, fenced
    blocks in other languages, inline code, and tags in a quoted string within one line. It also skips an opening tag if
    the same tag opens again before it is closed, because the first tag is probably only a mention. A closing tag in a
    quoted string within one line is part of the content. Scanning takes linear time and never raises.

    Args:
        text: the text to scan.
        tags: names of the tags to find.
        languages: languages of the code fences to find, in lower case.
        structured: names of further tags to find, whose content is parsed by the caller. Matches of these tags have no
            content.

    >>> text = "Not `<python>a</python>` or '<python>b</python>', but the tag <python>: <python>c</python>"
    >>> TagScanner(text, ["python"]).next(0).content
    'c'
    >>> TagScanner("<python>print('</python>')</python>", ["python"]).next(0).content
    "print('</python>')"
    """

    def __init__(
        self, text: str, tags: Collection[str], languages: Collection[str] = (), structured: Collection[str] = ()
    ) -> None:
        self.text, self._languages, self._structured = text, frozenset(languages), frozenset(structured)
        self._event = _event_pattern(tuple(sorted({*tags, *structured})))
        self._blocks: dict[int, CodeBlock] = dict(placed_code_blocks(text)) if "```" in text or "~~~" in text else {}
        self._offsets: dict[str, list[int]] = {}
        self._quotes: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._begin = self._end_of_thought()

    def next(self, position: int) -> TagMatch | None:
        """Return the first match that starts at or after a position, or None if there is no further match."""
        position = max(position, self._begin)
        while event := self._search(position):
            match, position = self._resolve(event)
            if match is not None:
                return match
        return None

    def skipped_spans(self) -> list[tuple[int, int]]:
        """Return the (start, end) offsets of skipped text, in order. The scanner must have been built without tags.

        Used to skip the same text in a search for other things than tags.
        """
        spans, position = [(0, self._begin)], self._begin
        while event := self._search(position):
            position = self._resolve(event)[1]
            spans.append((event.start(), position))
        return spans

    def is_quoted(self, match: TagMatch) -> bool:
        """Return whether a structured tag is only a mention: the same tag opens again before it is closed."""
        close = self._closing(match.name, match.inner)
        return close is not None and self._opens_again(match.name, match.inner, close)

    def find(self, literal: str, position: int) -> int | None:
        """Return the offset of the first occurrence of ``literal`` at or after a position, or None."""
        offsets = self._all(literal)
        index = bisect_left(offsets, position)
        return offsets[index] if index < len(offsets) else None

    def _end_of_thought(self) -> int:
        """Return the offset of ``</think>`` if the prompt opened the think block; otherwise 0."""
        if "</think>" not in self.text:
            return 0
        opens, closes = self.find("<think>", 0), self.find("</think>", 0)
        if closes is None or (opens is not None and opens < closes):
            return 0
        return closes if self._quote_around(closes, 0) is None else 0

    def _search(self, position: int) -> re.Match[str] | None:
        """Return the first match of the event pattern at or after a position, or None.

        Searching for the first character of an event is ten times as fast as searching for the pattern.
        """
        while mark := _FIRST_CHARACTER.search(self.text, position):
            if event := self._event.match(self.text, mark.start()):
                return event
            position = mark.end()
        return None

    def _resolve(self, event: re.Match[str]) -> tuple[TagMatch | None, int]:
        """Return the TagMatch of an event (None if the event is skipped) and the offset at which to continue."""
        if event["tag"]:
            return self._tag(event), event.end()
        if event["fence"]:
            return self._fence(event)
        if event["think"]:
            end = self.find("</think>", event.end())
            return None, event.end() if end is None else end
        return None, event.end()

    def _fence(self, event: re.Match[str]) -> tuple[TagMatch | None, int]:
        block = self._blocks.get(event.start())
        if block is not None:
            inner = self.text.find("\n", event.end()) + 1
            found = TagMatch(block.language, True, event.start(), inner, block.code, block.end)
            return (found if block.language in self._languages else None), block.end
        # Models also write ```python print(1)```, which is not valid Markdown.
        word = _WORD.match(self.text, event.end())
        if event["fence"] != "```" or word is None or word[1].lower() not in self._languages:
            return None, event.end()
        close = self.find("```", word.end())
        content = None if close is None else self.text[word.end() : close]
        end = word.end() if close is None else close + 3
        return TagMatch(word[1].lower(), True, event.start(), word.end(), content, end), end

    def _tag(self, event: re.Match[str]) -> TagMatch | None:
        name, start, inner = event["tag"], event.start(), event.end()
        close = self._closing(name, inner)
        end = inner if close is None else close + len(name) + 3
        # Skip the tag if a quoted string contains the whole call, or consists of the opening tag.
        quote = self._quote_around(start, 0)
        if quote is not None and (end < quote[1] or quote == (start - 1, inner + 1)):
            return None
        if name in self._structured:
            return TagMatch(name, False, start, inner, None, inner)
        if close is not None and self._opens_again(name, inner, close):
            return None
        return TagMatch(name, False, start, inner, None if close is None else self.text[inner:close], end)

    def _closing(self, name: str, inner: int) -> int | None:
        """Return the offset of the first unquoted closing tag, or None if there is no closing tag.

        If all closing tags are quoted, returns the offset of the first closing tag.
        """
        first = close = self.find(f"</{name}>", inner)
        for _ in range(_MAX_QUOTED_CLOSINGS):
            if close is None or not self._is_content(name, inner, close):
                break
            close = self.find(f"</{name}>", close + 1)
        return first if close is None else close

    def _is_content(self, name: str, inner: int, close: int) -> bool:
        quote = self._quote_around(close, inner)
        if quote is None or close + len(name) + 3 >= quote[1]:
            return False
        opens = self.find(f"<{name}>", close)
        return opens is None or opens >= quote[1]  # otherwise the two quotation marks belong to different calls

    def _opens_again(self, name: str, inner: int, close: int) -> bool:
        tag = f"<{name}>"
        offset = self.find(tag, inner)
        while offset is not None and offset < close:
            quote = self._quote_around(offset, inner)
            if quote is None or offset + len(tag) >= quote[1]:
                return True
            offset = self.find(tag, offset + 1)
        return False

    def _quote_around(self, position: int, least: int) -> tuple[int, int] | None:
        """Return the span of the quoted string on the same line that a position is inside of, or None.

        Text before offset ``least`` is ignored, unless more than _MAX_QUOTE_WINDOWS scans are cached.
        """
        newlines = self._all("\n")
        line = bisect_left(newlines, position)
        begin = max(newlines[line - 1] + 1 if line else 0, least)
        end = newlines[line] if line < len(newlines) else len(self.text)
        if (begin, end) not in self._quotes:
            if begin == least and least and len(self._quotes) > _MAX_QUOTE_WINDOWS:
                return self._quote_around(position, 0)
            self._quotes[begin, end] = self._scan_quotes(begin, end)
        spans = self._quotes[begin, end]
        around = bisect_left(spans, (position,)) - 1
        return spans[around] if around >= 0 and position < spans[around][1] else None

    def _scan_quotes(self, begin: int, end: int) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        while mark := _QUOTE_MARK.search(self.text, begin, end):
            match = _QUOTED.match(self.text, mark.start(), end)
            begin = mark.end() if match is None else match.end()
            if match is not None:
                spans.append(match.span())
        return spans

    def _all(self, literal: str) -> list[int]:
        """Return the offsets of all occurrences of a literal. They are cached, so that scanning takes linear time."""
        if literal not in self._offsets:
            self._offsets[literal] = [match.start() for match in re.finditer(re.escape(literal), self.text)]
        return self._offsets[literal]


def in_spans(spans: Sequence[tuple[int, int]], position: int) -> bool:
    """Return whether a position is inside one of the spans returned by TagScanner.skipped_spans()."""
    around = bisect_right(spans, position, key=lambda span: span[0]) - 1
    return around >= 0 and position < spans[around][1]


@lru_cache(256)
def _event_pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for everything that starts a call or skipped text. TagScanner._resolve uses the group names."""
    names = "|".join(map(re.escape, tags)) or "(?!)"
    inline = r"(?<!`)(?P<ticks>`{1,2})(?!`)[^`\n]+(?P=ticks)(?!`)"
    return re.compile(rf"<(?P<tag>{names})>|(?P<think><think>)|(?P<fence>`{{3,}}|~{{3,}})|{inline}")
