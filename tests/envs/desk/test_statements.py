"""Statements: which values a message has, in the policy's spelling and in others."""

from __future__ import annotations

import pytest

from gem.envs.desk.statements import stated, values_in


@pytest.mark.parametrize(
    ("messages", "name", "value", "counts"),
    [
        (["It is $12."], "money", "12", True),
        (["It is $12.00, which is $12."], "money", "12", True),
        (["It is $12 or $13."], "money", "12", False),
        (["It is $12 or 13 dollars."], "money", "12", False),
        (["It is $12 or USD 13."], "money", "12", False),
        (["It is $13.", "Sorry, it is $12."], "money", "12", True),
        (["It is $12.", "It is $13."], "money", "12", False),
        (["Rule 4 forbids it."], "rule", "4", True),
        (["Rules 1 to 8 forbid it; rule 4."], "rule", "4", False),
        (["rule 4, 5"], "rule", "4", False),
        (["Rule 4 or rule no. 5."], "rule", "4", False),
        (["Rule 4 or rule five."], "rule", "4", False),
        (["Rule 4: none of the three items, nor one of them."], "rule", "4", True),
        (["Delivered 5 days ago, so rule 4."], "rule", "4", True),
        (["It was 2026-05-04."], "date", "2026-05-04", True),
        (["It was 2026-05-04, May 4th, 2026."], "date", "2026-05-04", True),
        (["It was 2026-05-04 or 5 May 2026."], "date", "2026-05-04", False),
        (["It is 3 GB or 4 gigabytes."], "gigabytes", "3", False),
        (["trk1234567"], "tracking", "TRK1234567", True),
        ([], "money", "12", False),
    ],
)
def test_a_statement_counts_only_without_other_values(messages, name, value, counts):
    assert stated(messages, name, value) is counts


def test_a_message_without_a_value_has_none():
    assert values_in("You may not return one of the items.", "rule") == set()
