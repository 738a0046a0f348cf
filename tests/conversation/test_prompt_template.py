"""Prompt templates."""

import pytest

from gem.conversation.prompt_template import TEMPLATES, PromptTemplate
from gem.errors import BadValue


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_published_name_wraps_an_observation_once(name):
    shown = PromptTemplate.load(name).apply("2 {observation} 2?")
    assert shown.count("2 {observation} 2?") == 1 and (shown == "2 {observation} 2?") == (name == "no")


def test_the_text_of_images_and_the_last_message_are_wrapped():
    template = PromptTemplate("t", "[{observation}]")
    assert template.apply({"text": "a", "images": [1]}) == {"text": "[a]", "images": [1]}
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}]
    assert template.apply(messages) == [messages[0], {"role": "user", "content": "[a]"}]
    with pytest.raises(BadValue, match=r"observation of text.*int"):
        template.apply(3)


def test_a_file_is_a_template_and_must_have_one_place(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("Task: {observation}\n")
    assert PromptTemplate.load(str(file)).apply("x") == "Task: x\n"
    for text in ("no place", "{observation} {observation}"):
        file.write_text(text)
        with pytest.raises(BadValue, match="exactly once"):
            PromptTemplate.load(str(file))
    file.write_bytes(b"\xff{observation}")
    with pytest.raises(BadValue, match="no prompt template"):
        PromptTemplate.load(str(file))
