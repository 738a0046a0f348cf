"""The screen of a terminal, and names of keys."""

import copy

import pytest

from gem.errors import BadValue
from gem.sandbox.screen import TerminalScreen, key_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C-c", b"\x03"),
        ("C-C", b"\x03"),
        ("C-[", b"\x1b"),
        ("C-?", b"\x7f"),
        ("C-Space", b"\0"),
        ("M-x", b"\x1bx"),
        ("M-Enter", b"\x1b\r"),
        ("Up Down\nRight Left", b"\x1b[A\x1b[B\x1b[C\x1b[D"),
        ("F1 F5 F6 F12", b"\x1b[[A\x1b[[E\x1b[17~\x1b[24~"),
        ("PgUp NPage BSpace", b"\x1b[5~\x1b[6~\x7f"),
        ("C-Enter", b"C-Enter"),
        ("C-\xe9", b"C-\xc3\xa9"),
        ("Tab", b"\t"),
        ("Tab it", b"Tab it"),
        ("", b""),
        ("  ", b"  "),
        ("a\r\nb\n", b"a\rb\r"),
        ("\ud800", b"?"),
    ],
)
def test_names_of_keys_are_pressed_and_other_text_is_typed(text, expected):
    assert key_bytes(text) == expected


def test_a_screen_shows_what_was_drawn():
    pytest.importorskip("pyte")
    screen = TerminalScreen(10, 3)
    screen.feed(b"0123456789ab\r\n\x1b[1mbold\x1b[0m \xc3\xa9\r\n\xff")
    assert screen.text() == "ab\nbold \xe9\n\ufffd" and screen.cursor == (3, 2)
    assert copy.copy(screen).text() == ""
    screen.clear()
    assert screen.text() == "" and screen.cursor == (1, 1)


@pytest.mark.parametrize("size", [(1, 24), (80, 0), (80, 501)])
def test_a_screen_has_a_sensible_size(size):
    with pytest.raises(BadValue, match="columns and rows"):
        TerminalScreen(*size)
