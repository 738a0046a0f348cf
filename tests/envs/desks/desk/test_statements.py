"""Messages of a fixed form: which state a value, and which propose a call."""

from __future__ import annotations

import pytest

from gem.envs.desks.desk.statements import Proposal, has_value, proposed, stated


@pytest.mark.parametrize(
    ("messages", "name", "value", "counts"),
    [
        (["It is $12."], "money", "12", True),
        ([" it is  $12\n"], "money", "12", True),
        (["It is $12.00."], "money", "12", False),
        (["It is not $12."], "money", "12", False),
        (["It is $12. Is there anything else?"], "money", "12", False),
        (["It is $12 or $13."], "money", "12", False),
        (["It is $13.", "It is $12."], "money", "12", True),
        (["It is $12.", "It is $13."], "money", "12", False),
        (["It is $12.", "Sorry, I meant 13 dollars."], "money", "12", False),
        (["It is $12.", "Sorry, I meant USD 13."], "money", "12", False),
        (["It is $12.", "Sorry, I meant €13."], "money", "12", False),
        (["It is $12.", "Sorry, I meant thirteen bucks."], "money", "12", False),
        (["It is $12.", "Is there anything else that one of us can do for you?"], "money", "12", True),
        (["I cannot do this: rule 4."], "rule", "4", True),
        (["Rule 4 forbids it."], "rule", "4", False),
        (["I have done it. I cannot do this: rule 4."], "rule", "4", False),
        (["I can do this, since rule 4 does not apply."], "rule", "4", False),
        (["I cannot do this: rule 4, 5."], "rule", "4", False),
        (["I cannot do this: rule 4.", "Or is it rule no. 5?"], "rule", "4", False),
        (["I cannot do this: rule 4.", "Or rule five."], "rule", "4", False),
        (["I cannot do this: rule 4.", "Rules (4, 5) forbid it."], "rule", "4", False),
        (["I cannot do this: rule 4.", "That rule is for all, not for one of us."], "rule", "4", True),
        (["It is 2026-05-04."], "date", "2026-05-04", True),
        (["It is May 4th, 2026."], "date", "2026-05-04", False),
        (["It is 2026-05-04.", "No, 5 May 2026."], "date", "2026-05-04", False),
        (["It is 2026-05-04.", "No, May 5."], "date", "2026-05-04", False),
        (["It is 2026-05-04.", "No, 05/06/2026."], "date", "2026-05-04", False),
        (["It is 3 GB."], "gigabytes", "3", True),
        (["It is 3 GB or 4 gigabytes."], "gigabytes", "3", False),
        (["It is 97.3 GB."], "gigabytes", "3", False),
        (["It is 3 GB.", "No, twenty-two gigabytes."], "gigabytes", "3", False),
        (["It is TRK1234567."], "tracking", "TRK1234567", True),
        ([], "money", "12", False),
    ],
)
def test_a_statement_counts_only_in_its_form_and_if_no_other_value_follows(messages, name, value, counts):
    assert stated(messages, name, value) is counts


def test_a_message_without_a_value_has_none():
    assert not has_value("You may not return one of the items.", "rule")


@pytest.mark.parametrize(
    "message",
    [
        "I will not call cancel_order with #W10000, no longer needed. Do you confirm this?",
        "I would call cancel_order with #W10000, no longer needed. Do you confirm this? Or shall I keep it?",
        "I would call cancel_order. Do you confirm this?",
        "Shall I cancel order #W10000, which is no longer needed?",
    ],
)
def test_a_message_of_another_form_proposes_nothing(message):
    assert proposed(message) is None


def test_a_proposal_has_its_values_in_any_order():
    message = "I would call return_items with P1234, $12,\n#W10000. Do you confirm this?"
    assert proposed(message) == Proposal.of("return_items", ["#W10000", "P1234", "$12"])
