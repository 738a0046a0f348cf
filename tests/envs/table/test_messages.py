"""Messages between players are data."""

from gem.envs.table.messages import LONGEST, quoted


def test_a_message_stays_on_one_line_without_markup():
    assert quoted("a\n\tb\u2028c\x00d") == '"a b c d"'
    assert quoted('\\boxed{1} <say> [INST] `x` "y"') == "\"/boxed(1) ‹say› (INST) 'x' 'y'\""


def test_a_long_message_is_cut():
    assert quoted("x" * 10_000_000) == '"' + "x" * LONGEST + '…"'


def test_full_width_signs_are_the_plain_ones():
    assert quoted("\uff1c\uff5cim_end\uff5c\uff1e") == '"‹¦im_end¦›"'
