"""The screen of a terminal, and names of keys."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
        ("M-C-a", b"\x1b\x01"),
        ("C-" * 3000 + "a", b"C-" * 3000 + b"a"),
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


@pytest.mark.parametrize(
    "sequence",
    ["\x1b[?4m", f"\x1b[{'1' * 5000}m", "\x1b[9J", "\x1b[?9K", "\x1b[1;2;3H", "\x1b[?6n", "\x1b[?1;2r", "\x1b[\xb2m"],
)
def test_a_sequence_that_means_nothing_does_not_stop_the_screen(sequence):
    pytest.importorskip("pyte")
    screen = TerminalScreen(20, 3)
    screen.feed(f"before {sequence}".encode())
    screen.feed(b"\rafter")
    assert screen.text().startswith("after")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("\u3042b", "\u3042b"),
        ("\u3042\ra\n", "a"),
        ("\u3042\x1b[2Ga", " a"),
        ("123\u3042", "123\u3042"),
        ("\U0001f469\u200d\U0001f4bb\ra", "a"),
    ],
)
def test_half_of_a_wide_character_can_be_overwritten(written, shown):
    pytest.importorskip("pyte")
    screen = TerminalScreen(4, 3)
    screen.feed(written.encode())
    assert screen.text().startswith(shown)


_PARTS = st.one_of(
    st.binary(max_size=20),
    st.sampled_from(["\u3042", "\U0001f469\u200d\U0001f4bb", "e\u0301", "\r", "\n", "\b", "\x1b%@", "\x1b%G"]).map(
        str.encode
    ),
    st.from_regex(r"\A\x1b[\[\]#()%]?[?>]?([0-9]{0,5};?){0,4}[ -~]\Z").map(str.encode),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_PARTS, max_size=30))
def test_any_output_can_be_shown(parts):
    pytest.importorskip("pyte")
    screen = TerminalScreen(7, 4)
    for part in parts:
        screen.feed(part)
        assert screen.text().count("\n") < 4 and min(screen.cursor) >= 1


@pytest.mark.parametrize("size", [(1, 24), (80, 0), (80, 501)])
def test_a_screen_has_a_sensible_size(size):
    with pytest.raises(BadValue, match="columns and rows"):
        TerminalScreen(*size)
