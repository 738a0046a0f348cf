"""Actions on web pages: both notations, in boxes, in code and bare."""

from __future__ import annotations

import pytest

from gem.envs.web.forms.actions import Action, read_action


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("click [12]", Action("click", 12)),
        ("```click [12]```", Action("click", 12)),
        (r"I sign in. \boxed{click [12]} And then click [13].", Action("click", 12)),
        (r"not \boxed{click [1]} but \boxed{click [2]}", Action("click", 2)),
        ("type [3] [Ann [from the office]] [1]", Action("fill", 3, "Ann [from the office]", True)),
        ("type [3] [a] [press_enter_after=0]", Action("fill", 3, "a", False)),
        ("type [3] [click [4]]", Action("fill", 3, "click [4]")),
        (r"\boxed{type [3] []}", Action("fill", 3, "")),
        ("select [5] [UTC+1]", Action("select", 5, "UTC+1")),
        ("scroll [down]", Action("scroll", None, "down")),
        ("scroll [direction=up]", Action("scroll", None, "up")),
        ("press [Enter]", Action("keyboard", None, "Enter")),
        ("go_back", Action("back")),
        ("click [1]</think> go_back", Action("back")),
        ("stop", Action("stop")),
        ("stop [42 KB]", Action("stop", None, "42 KB")),
        ("click('12')", Action("click", 12)),
        ('fill("3", "it\'s (new)")', Action("fill", 3, "it's (new)")),
        (r"fill('3', 'it\'s')", Action("fill", 3, "it's")),
        ("select_option('5', ['UTC+1'])", Action("select", 5, "UTC+1")),
        ("check('7')", Action("check", 7)),
        ("press('3', 'Enter')", Action("press", 3, "Enter")),
        ("scroll(0, -200)", Action("scroll", None, "up")),
        ("scroll(0, 200)", Action("scroll", None, "down")),
        ("go_back()", Action("back")),
        ("noop()", Action("noop")),
        ("send_msg_to_user('42')", Action("stop", None, "42")),
    ],
)
def test_the_last_action_is_read_in_both_notations(text, action):
    assert read_action(text) == action


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<think>go_back</think>",
        r"<think>\boxed{go_back}",
        "I am done",
        "click the button",
        "click [x]",
        "fill('3')",
        "click('a')",
        "open('3')",
        "[12]",
        "type [3]",
    ],
)
def test_a_text_without_an_action_has_none(text):
    assert read_action(text) is None


def test_long_texts_are_read_from_their_end():
    assert read_action("click [1] " + "type [1] [" * 50_000 + "\nclick [2]") == Action("click", 2)
