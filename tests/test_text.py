"""gem._internal.text: what a terminal would obey or hide is escaped, and ordinary text stays."""

from __future__ import annotations

import io
import sys
import unicodedata

import pytest

from gem._internal.text import EscapedStream, clip, escape_output, one_line, unescaped, visible
from gem.rl.config_file import write_toml

# Marks of scripts that have a shape, although Unicode calls them format characters.
DRAWN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),  # clears the screen
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x1b]8;;http://x\x1b\\here", "\\x1b]8;;http://x\\x1b\\here"),  # a link
        ("\x9b31m\x9d0;t\x9c", r"\x9b31m\x9d0;t\x9c"),  # the same commands in one character
        ("ok\x08\x08no", r"ok\x08\x08no"),
        ("malicious\rharmless", r"malicious\rharmless"),
        ("a\x00b\x7f\x85", r"a\x00b\x7f\x85"),
        ("\u202egpj.exe\u202c", r"\u202egpj.exe\u202c"),
        ("\u2066a\u2069\u200f\u061c", r"\u2066a\u2069\u200f\u061c"),
        ("pass\u200bword\u2060\ufeff\xad", r"pass\u200bword\u2060\ufeff\xad"),
        ("pass\u200dword\u200c", r"pass\u200dword\u200c"),
        ("\u3164\u115f\u2028\u2029", r"\u3164\u115f\u2028\u2029"),
        ("hi\U000e0069\U000e0067", r"hi\U000e0069\U000e0067"),  # invisible letters
        ("a\ufe01\ufe02\U000e0100", r"a\ufe01\ufe02\U000e0100"),  # bytes in variants
        ("\ud83d \udc00", r"\ud83d \udc00"),
        ("e" + "\u0301" * 10, "e" + "\u0301" * 8 + r"\u0301\u0301"),
        ("a\r\nb\n\tc", "a\nb\n\tc"),
    ],
)
def test_what_a_terminal_obeys_or_hides_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown
    shown.encode()


@pytest.mark.parametrize(
    "text",
    [
        *(
            "plain ASCII ~ \\x1b\n\ttab",
            "你好，世界　",
            "Ελλάδα привет",
            "résumé re\u0301sume\u0301",
            "🚀👍🏽",
            "\xa0½",
        ),
        *("👨\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈", "1\ufe0f\u20e3", "❤\ufe0f", "🇫🇷", "می\u200cخواهم", "क्\u200dष"),
        "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f",  # the flag of Wales
    ],
)
def test_ordinary_text_of_all_languages_stays(text: str) -> None:
    assert visible(text) == text


def test_every_control_and_format_character_of_unicode_is_escaped_but_line_breaks_tabs_and_drawn_marks() -> None:
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    hidden = {code for code in range(0x110000) if unicodedata.category(chr(code)) in kinds} - DRAWN - {9, 10}
    assert [hex(code) for code in sorted(hidden) if visible(f"a{chr(code)}") == f"a{chr(code)}"] == []
    assert [code for code in DRAWN if visible(chr(code)) != chr(code)] == []


def test_a_printed_configuration_is_read_again_as_it_was() -> None:
    tomllib = pytest.importorskip("tomllib")
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x1FFFF), *range(0xE0000, 0xE0200)]))
    assert tomllib.loads(visible(write_toml({"name": text})))["name"] == text


def test_a_long_text_is_cut_with_the_number_of_characters_that_were_left_out() -> None:
    assert clip("x" * 5, 5) == "xxxxx"
    assert clip("\x07" + "x" * 1_234_567, 3) == r"\x07xx… (1,234,565 characters left out)"


def test_one_line_has_no_line_break_of_any_kind() -> None:
    assert one_line("a\n b\x85c\u2028d\x0be\rf") == "a; b; c; d; e; f"


def test_a_stream_escapes_what_is_written_in_any_way_and_leaves_the_rest_to_the_stream_under_it() -> None:
    under = io.StringIO()
    stream = EscapedStream(under)
    print("\x1b[31m", "red", file=stream, flush=True)
    assert stream.write("\x07\x07") == 2
    stream.writelines(["\x9b", "é\n"])
    assert under.getvalue() == "\\x1b[31m red\n\\x07\\x07\\x9bé\n" and not stream.isatty()
    assert unescaped(EscapedStream(stream)) is under and unescaped(under) is under


def test_a_stream_with_a_limit_counts_what_it_leaves_out() -> None:
    under = io.StringIO()
    stream = EscapedStream(under, limit=5)
    stream.write("1234")
    stream.write("5678")
    stream.write("9")
    assert under.getvalue() == "12345" and stream.left_out == 4


def test_streams_are_put_back_and_a_missing_one_stays_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    before = sys.stdout
    with escape_output():
        assert sys.stdout is not before and sys.stderr is None
    assert sys.stdout is before
