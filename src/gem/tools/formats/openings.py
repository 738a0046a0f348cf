"""Where a text opens a tag or a fence in earnest: a call, as opposed to words about calls."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from gem.parsing import CodeBlock, placed_code_blocks

_QUOTED = re.compile(r"""\"[^"\n]*\"|“[^“”\n]*”|(?<!\w)'(?=\S)[^'\n]*(?<=\S)'(?!\w)""")  # an apostrophe opens nothing
_QUOTE = re.compile("[\"“']")
_MARK = re.compile("[<`~]")
_WORD = re.compile(r"(\w+)[ \t\r\n]")
_WINDOWS = 64  # readings of quotes that begin behind a tag; more of them and quotes are read from the line's start
_PATIENCE = 16  # quoted closing tags that are passed over in search of one that is not


class Opening(NamedTuple):
    """Where a text opens a tag or a fence, and what is in it.

    Args:
        name: of the tag, or the language of the fence.
        fence: whether it is a fence.
        start, inner: where the tag starts, and where what it holds does.
        content: what it holds; None where it is never closed, or the caller finds that.
        end: where the closing tag or fence ends; inner without content.
    """

    name: str
    fence: bool
    start: int
    inner: int
    content: str | None
    end: int


class Openings:
    r"""The openings of a text that count. Each is found in time linear in the text; no text raises.

    Passed over are closed ``<think>`` blocks (also one that the prompt opened), fenced blocks of other languages,
    inline code, tags in a quoted string of one line, and a tag that opens again before it closes, for then the first
    was a mention. A closing tag in a quoted string of one line is content.

    Args:
        tags: their names.
        languages: the info words of the fences that count, in lower case.
        structured: names of tags whose content, and end, the caller finds: their openings have no content, and may be
            mentions.

    >>> text = "Not `<python>a</python>` or '<python>b</python>', but the tag <python>: <python>c</python>"
    >>> Openings(text, ["python"]).next(0).content
    'c'
    >>> Openings("<python>print('</python>')</python>", ["python"]).next(0).content
    "print('</python>')"
    """

    def __init__(
        self, text: str, tags: Collection[str], languages: Collection[str] = (), structured: Collection[str] = ()
    ) -> None:
        self.text, self._languages, self._structured = text, frozenset(languages), frozenset(structured)
        self._event = _event(tuple(sorted({*tags, *structured})))
        self._blocks: dict[int, CodeBlock] = dict(placed_code_blocks(text)) if "```" in text or "~~~" in text else {}
        self._places: dict[str, list[int]] = {}
        self._quotes: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._begin = self._end_of_thought()

    def next(self, position: int) -> Opening | None:
        """The first one at or after a position; None without any."""
        position = max(position, self._begin)
        while match := self._search(position):
            opening, position = self._at(match)
            if opening is not None:
                return opening
        return None

    def hidden(self) -> list[tuple[int, int]]:
        """The spans that are passed over, in order, and the tags and fences that are not, for who looks for no tag."""
        spans, position = [(0, self._begin)], self._begin
        while match := self._search(position):
            position = self._at(match)[1]
            spans.append((match.start(), position))
        return spans

    def is_mention(self, opening: Opening) -> bool:
        """Whether a structured tag opens again before it closes."""
        close = self._closing(opening.name, opening.inner)
        return close is not None and self._opens_again(opening.name, opening.inner, close)

    def find(self, what: str, position: int) -> int | None:
        """Where a literal stands first, at or after a position; None where it does not."""
        places = self._all(what)
        index = bisect_left(places, position)
        return places[index] if index < len(places) else None

    def _end_of_thought(self) -> int:
        """Where a thought ends that the prompt opened; 0 without one."""
        opens, closes = self.find("<think>", 0), self.find("</think>", 0)
        if closes is None or (opens is not None and opens < closes):
            return 0
        return 0 if any(start < closes < end for start, end in self._quotes_at(closes, 0)) else closes

    def _search(self, position: int) -> re.Match[str] | None:
        """The next event. Looking for its first character alone is ten times as fast as for all that it may be."""
        while mark := _MARK.search(self.text, position):
            if event := self._event.match(self.text, mark.start()):
                return event
            position = mark.end()
        return None

    def _at(self, match: re.Match[str]) -> tuple[Opening | None, int]:
        """What a match opens, and where to go on looking."""
        if match["tag"]:
            return self._tag(match), match.end()
        if match["fence"]:
            return self._fence(match)
        if match["think"]:
            end = self.find("</think>", match.end())
            return None, match.end() if end is None else end
        return None, match.end()

    def _fence(self, match: re.Match[str]) -> tuple[Opening | None, int]:
        block = self._blocks.get(match.start())
        if block is not None:
            inner = self.text.find("\n", match.end()) + 1
            found = Opening(block.language, True, match.start(), inner, block.code, block.end)
            return (found if block.language in self._languages else None), block.end
        # Not as Markdown has it, but models write it: ```python print(1)```
        word = _WORD.match(self.text, match.end())
        if match["fence"] != "```" or word is None or word[1].lower() not in self._languages:
            return None, match.end()
        close = self.find("```", word.end())
        content = None if close is None else self.text[word.end() : close]
        end = word.end() if close is None else close + 3
        return Opening(word[1].lower(), True, match.start(), word.end(), content, end), end

    def _tag(self, match: re.Match[str]) -> Opening | None:
        name, start, inner = match["tag"], match.start(), match.end()
        close = self._closing(name, inner)
        end = inner if close is None else close + len(name) + 3
        if self._is_quoted(start, inner, end):
            return None
        if name in self._structured:
            return Opening(name, False, start, inner, None, inner)
        if close is not None and self._opens_again(name, inner, close):
            return None
        return Opening(name, False, start, inner, None if close is None else self.text[inner:close], end)

    def _closing(self, name: str, inner: int) -> int | None:
        """Where the closing tag stands; the first one that is not quoted or, without such, the first one."""
        first = close = self.find(f"</{name}>", inner)
        for _ in range(_PATIENCE):
            if close is None or not self._is_content(name, inner, close):
                break
            close = self.find(f"</{name}>", close + 1)
        return first if close is None else close

    def _is_content(self, name: str, inner: int, close: int) -> bool:
        for start, end in self._quotes_at(close, inner):
            if start < close and close + len(name) + 3 < end:
                opens = self.find(f"<{name}>", close)
                return opens is None or opens >= end  # else the quotes belong to two tags, as inches do
        return False

    def _opens_again(self, name: str, inner: int, close: int) -> bool:
        tag = f"<{name}>"
        place = self.find(tag, inner)
        while place is not None and place < close:
            if not any(start < place and place + len(tag) < end for start, end in self._quotes_at(place, inner)):
                return True
            place = self.find(tag, place + 1)
        return False

    def _is_quoted(self, start: int, inner: int, end: int) -> bool:
        """Whether one quoted string holds all of it, or the opening tag and nothing else."""
        return any(a < start and (end < b or (a + 1 == start and inner + 1 == b)) for a, b in self._quotes_at(start, 0))

    def _quotes_at(self, position: int, least: int) -> list[tuple[int, int]]:
        """The quoted strings, at or after least, of the line that a position is in; those around the position."""
        lines = self._all("\n")
        index = bisect_left(lines, position)
        begin = max(lines[index - 1] + 1 if index else 0, least)
        end = lines[index] if index < len(lines) else len(self.text)
        if (begin, end) not in self._quotes:
            if begin == least and least and len(self._quotes) > _WINDOWS:
                return self._quotes_at(position, 0)
            self._quotes[begin, end] = self._read_quotes(begin, end)
        spans = self._quotes[begin, end]
        around = bisect_left(spans, (position,)) - 1
        return spans[around : around + 1] if around >= 0 else []

    def _read_quotes(self, begin: int, end: int) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        while mark := _QUOTE.search(self.text, begin, end):
            match = _QUOTED.match(self.text, mark.start(), end)
            begin = mark.end() if match is None else match.end()
            if match is not None:
                spans.append(match.span())
        return spans

    def _all(self, what: str) -> list[int]:
        if what not in self._places:
            self._places[what] = [match.start() for match in re.finditer(re.escape(what), self.text)]
        return self._places[what]


def is_hidden(spans: Sequence[tuple[int, int]], position: int) -> bool:
    """Whether a position is in one of the spans that Openings.hidden() returned."""
    around = bisect_right(spans, position, key=lambda span: span[0]) - 1
    return around >= 0 and position < spans[around][1]


@lru_cache(256)
def _event(tags: tuple[str, ...]) -> re.Pattern[str]:
    """What may open something, or hide it: the names are those that Openings._at asks for."""
    names = "|".join(map(re.escape, tags)) or "(?!)"
    inline = r"(?<!`)(?P<ticks>`{1,2})(?!`)[^`\n]+(?P=ticks)(?!`)"
    return re.compile(rf"<(?P<tag>{names})>|(?P<think><think>)|(?P<fence>`{{3,}}|~{{3,}})|{inline}")
