"""The screen and the keyboard of a terminal, for the agent: what the programs wrote, and names of keys."""

from __future__ import annotations

import re
from typing import Any

from gem.errors import BadValue, require

MAX_SIZE = 500
_NAMES = {
    **{"Enter": "\r", "Tab": "\t", "BTab": "\x1b[Z", "Escape": "\x1b", "Esc": "\x1b", "Space": " "},
    **{"BSpace": "\x7f", "Backspace": "\x7f", "Up": "\x1b[A", "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D"},
    **{"Home": "\x1b[1~", "Insert": "\x1b[2~", "IC": "\x1b[2~", "Delete": "\x1b[3~", "DC": "\x1b[3~"},
    **{"End": "\x1b[4~", "PageUp": "\x1b[5~", "PgUp": "\x1b[5~", "PPage": "\x1b[5~"},
    **{"PageDown": "\x1b[6~", "PgDn": "\x1b[6~", "NPage": "\x1b[6~"},
    **{f"F{n}": f"\x1b[[{letter}" for n, letter in enumerate("ABCDE", 1)},
    **{f"F{n}": f"\x1b[{code}~" for n, code in zip(range(6, 13), (17, 18, 19, 20, 21, 23, 24), strict=True)},
}
_CHORD = re.compile(r"([CM])-(\S+)")


class TerminalScreen:
    """What a terminal shows. Needs the extra [terminal].

    Args:
        columns, rows: size in characters.

    Raises:
        BadValue: if the size is not from 2 to 500.
        MissingDependency: without pyte.
    """

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        if not (2 <= columns <= MAX_SIZE and 2 <= rows <= MAX_SIZE):
            raise BadValue(f"a screen has from 2 to {MAX_SIZE} columns and rows, got {columns} x {rows}")
        self.columns, self.rows = columns, rows
        self._pyte: Any = require("pyte", extra="terminal")
        self._wcwidth: Any = require("wcwidth", extra="terminal").wcwidth  # pyte needs it too
        self.clear()

    def clear(self) -> None:
        """Show an empty screen, as for a new terminal."""
        self._screen = self._pyte.Screen(self.columns, self.rows)
        self._stream = self._pyte.ByteStream(self._screen)

    def __reduce__(self) -> tuple[Any, ...]:
        return TerminalScreen, (self.columns, self.rows)  # a copy is empty: terminals are not copied

    def feed(self, output: bytes) -> None:
        """Draw what programs have written. A sequence that pyte cannot interpret has no effect."""
        for place in range(len(output)):
            try:
                self._stream.feed(output[place : place + 1])
            except Exception:  # pyte raises errors of any kind, such as for private modes and too many parameters
                self._stream = self._pyte.ByteStream(self._screen)

    def text(self) -> str:
        """Return the lines of the screen, without spaces at their ends and empty lines at the end."""
        return "\n".join(self._line(row).rstrip() for row in range(self.rows)).rstrip("\n")

    def _line(self, row: int) -> str:
        """Return a line. A wide character is followed by an empty cell; without it, half of it was overwritten."""
        cells = [self._screen.buffer[row][column].data for column in range(self._screen.columns)]
        wide = [cell != "" and self._wcwidth(cell[0]) == 2 for cell in cells]
        for column, cell in enumerate(cells):
            lone = cell == "" and not (column and wide[column - 1])
            if lone or (wide[column] and cells[column + 1 : column + 2] not in ([], [""])):
                cells[column] = " "
        return "".join(cells)

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column of the cursor, from 1."""
        return self._screen.cursor.y + 1, self._screen.cursor.x + 1


def key_bytes(text: str) -> bytes:
    r"""Return what a terminal sends if a text is typed.

    If the text consists only of names of keys, such as ``Escape``, ``C-c`` or ``Up Up Enter``, those keys are pressed.
    Any other text is typed as it is; a line break in it is Enter.

    >>> key_bytes("C-c"), key_bytes("Escape Up"), key_bytes("ls -l\n"), key_bytes("Enter the room")
    (b'\x03', b'\x1b\x1b[A', b'ls -l\r', b'Enter the room')
    """
    named = [_key(word) for word in text.split()]
    if named and None not in named:
        return "".join(filter(None, named)).encode()
    return text.replace("\r\n", "\r").replace("\n", "\r").encode("utf-8", "replace")


def _key(name: str, prefixes: int = 2) -> str | None:
    if name in _NAMES:
        return _NAMES[name]
    found = _CHORD.fullmatch(name)
    if found is None or not prefixes:
        return None
    key = _key(found[2], prefixes - 1) or (found[2] if len(found[2]) == 1 else None)
    if key is None or found[1] == "M":
        return key and f"\x1b{key}"
    letter = key.upper()
    if key == " ":
        return "\0"
    return chr(ord(letter) & 0x1F) if len(key) == 1 and "@" <= letter <= "_" else "\x7f" if key == "?" else None
