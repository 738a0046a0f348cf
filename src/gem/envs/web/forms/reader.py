"""Reading pages of web:Forms as an agent: elements of an accessibility tree, and the moves to find them."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import NamedTuple

Moves = Iterator[str]
_LINE = re.compile(
    r"(?P<indent> *)(?:\[(?P<number>\d+)\] )?(?P<role>\w+) '(?P<name>[^']*)'"
    r"(?: value='(?P<value>[^']*)')?(?: checked=(?P<checked>true|false))?"
)


class Seen(NamedTuple):
    """An element as it is shown. ``row`` is the row of the table that it is in, or its own."""

    number: str
    role: str
    name: str
    value: str
    checked: str
    row: str


def read_page(observation: str) -> list[Seen]:
    """Return the elements of an observation in the format "axtree"."""
    found, row = [], ""
    for line in observation[observation.index("RootWebArea '") :].split("\n"):
        if match := _LINE.match(line):
            part = {name: value or "" for name, value in match.groupdict().items()}
            if part["role"] == "row":
                row = part["name"]
            elif len(part["indent"]) <= 2:
                row = ""
            found.append(Seen(part["number"], part["role"], part["name"], part["value"], part["checked"], row))
    return found


class PageReader:
    """Reads pages in the format "axtree", and finds elements, rows and buttons on them."""

    def read(self, observation: str) -> None:
        self.page, self.more = read_page(observation), "scroll to see the others" in observation

    def use(self, verb: str, name: str, *words: str, row: str = "") -> Moves:
        """Yield the moves to act on the element with a name, in the row that begins like this; scroll to find it."""
        for move in ("scroll [down]", "scroll [down]", "scroll [down]", "scroll [up]", "scroll [up]", "scroll [up]"):
            found = [e for e in self.page if e.number and e.name == name and f"{e.row} | ".startswith(row)]
            if found:
                yield " ".join([verb, f"[{found[0].number}]", *(f"[{word}]" for word in words)])
                return
            yield move

    def click(self, name: str, *, row: str = "") -> Moves:
        yield from self.use("click", name, row=row)

    def write(self, **fields: str) -> Moves:
        for name, value in fields.items():
            yield from self.use("type", name.replace("_", " "), value)

    def rows(self, more: str = "") -> Moves:
        """Yield the moves to read all rows of a table, and leave the rows in self.table.

        Args:
            more: button that opens the next page.
        """
        self.table: list[list[str]] = []
        self._before: list[str] | None = None
        while True:
            shown = [e.row.split(" | ") for e in self.page if e.role == "row"]
            self.table += [cells for cells in shown if cells not in self.table]
            if self.more and not self._at_end():
                yield "scroll [down]"
            elif more and any(e.name == more for e in self.page):
                yield from self.click(more)
                self._before = None
            else:
                return

    def _at_end(self) -> bool:
        """Whether the window has not moved since the last look."""
        numbers = [e.number for e in self.page]
        before, self._before = self._before, numbers
        return before == numbers

    def seek(self, start: str, more: str = "") -> Generator[str, None, bool]:
        """Yield the moves to a row that begins like this, and return whether there is one.

        Args:
            more: button that opens the next page.
        """
        self._before = None
        while not any(f"{e.row} | ".startswith(start) for e in self.page if e.row):
            if self.more and not self._at_end():
                yield "scroll [down]"
            elif more and self.has(more):
                yield from self.click(more)
                self._before = None
            else:
                return False
        return True

    def has(self, name: str) -> bool:
        return any(e.name == name for e in self.page)
