"""Conversion of observations to messages."""

from __future__ import annotations

import pytest

from gem.conversation.observations import (
    as_messages,
    encodable,
    join_contents,
    role_of,
    text_messages,
    with_prefix_and_suffix,
)
from gem.errors import BadValue
from gem.messages import tool, user


def test_text_has_the_role_user_unless_a_tool_was_used():
    assert role_of({}) == role_of({"use_tool": False, "tool_type": None}) == "user"
    assert role_of({"use_tool": True}) == "tool"
    assert as_messages("2", role_of({"use_tool": True})) == [tool("2")]
    assert as_messages("2") == as_messages({"text": "2"}) == as_messages({"text": "2", "images": []}) == [user("2")]


def test_a_list_of_messages_keeps_its_roles_and_is_copied():
    said = [tool("a"), user("b")]
    messages = as_messages(said, "tool")
    assert messages == said
    messages[0]["content"] = "changed"
    assert said[0]["content"] == "a"


def test_images_precede_their_text():
    (message,) = as_messages({"text": "what?", "images": ["image"]})
    assert message["content"] == [{"type": "image", "image": "image"}, {"type": "text", "text": "what?"}]


@pytest.mark.parametrize("observation", [None, 7, ["a"], {"problem": "a"}, {"text": 7}])
def test_other_types_are_not_observations(observation):
    with pytest.raises(BadValue, match=f"text.*images.*messages.*got {type(observation).__name__}"):
        as_messages(observation)


@pytest.mark.parametrize("observation", [{"text": "a", "images": ["image"]}, [], [{"role": "user", "content": [1]}]])
def test_text_messages_refuses_other_content(observation):
    with pytest.raises(BadValue, match="needs text observations, got"):
        text_messages(observation)


def test_prefix_and_suffix_surround_the_text_or_the_last_message():
    info = {"prefix": "task", "suffix": "board"}
    assert with_prefix_and_suffix("line", info) == "task\nline\nboard"
    assert with_prefix_and_suffix({"text": "line"}, info) == {"text": "task\nline\nboard"}
    assert with_prefix_and_suffix([tool("2"), user("line")], info) == [tool("2"), user("task\nline\nboard")]
    assert with_prefix_and_suffix([tool("2"), user("line")], {}) == [tool("2"), user("line")]
    image = {"text": "line", "images": ["image"]}
    assert with_prefix_and_suffix(image, info) == {"text": "task\nline\nboard", "images": ["image"]}
    assert image["text"] == "line"


@pytest.mark.parametrize("observation", [None, 7, [], ["a"], {"pixels": 1}])
def test_other_values_get_no_prefix_or_suffix(observation):
    assert with_prefix_and_suffix(observation, {"suffix": "board"}) == observation


def test_messages_are_joined_line_by_line():
    assert join_contents([tool("a"), user("b")]) == "a\nb"


@pytest.mark.parametrize(
    ("observation", "shown"),
    [
        ("cut \ud83d", "cut \ufffd"),
        ("\ud83c" + "\udf78", "\U0001f378"),  # as decoded one escape at a time
        ({"text": "\udfff", "images": ["image"]}, {"text": "\ufffd", "images": ["image"]}),
        ([tool("\ud800"), user("é")], [tool("\ufffd"), user("é")]),
        (
            [{"role": "user", "content": [{"type": "text", "text": "\ud800"}]}],
            [user([{"type": "text", "text": "\ufffd"}])],
        ),
    ],
)
def test_surrogates_are_replaced_and_counted_in_info(observation, shown):
    info = {"idx": 3}
    assert encodable(observation, info) == shown and info == {"idx": 3, "surrogates": 1}
    again = {}
    assert encodable(shown, again) is shown and again == {}


def test_lone_surrogates_of_what_info_adds_to_an_observation_are_replaced():
    info = {"prefix": "\ud800", "suffix": "é", "tools": [{"description": "\udc00\udc00"}], "answer": "\ud800"}
    assert encodable("text", info) == "text"
    assert info == {
        "prefix": "\ufffd",
        "suffix": "é",
        "tools": [{"description": "\ufffd\ufffd"}],
        "answer": "\ud800",
        "surrogates": 3,
    }
