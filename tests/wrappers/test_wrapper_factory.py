"""Wrappers by name."""

from __future__ import annotations

import pytest

import gem
from gem.errors import BadValue, UnknownArgument
from gem.wrappers import WRAPPER_FACTORY, EpisodeTrackingWrapper, ObservationWrapper, get_wrapper_fns


class Template:
    def apply_chat_template(self, messages, tokenize, add_generation_prompt):
        text = "|".join(m["content"] for m in messages)
        return f"{text}|" if add_generation_prompt else text


def wrapped(names: str, tokenizer=None):
    env = gem.make("game:GuessTheNumber-v0")
    for wrap in get_wrapper_fns(names, tokenizer=tokenizer):
        env = wrap(env)
    return env


def test_a_list_of_names_wraps_innermost_first():
    env = wrapped("concat,episode_tracking")
    assert type(env) is EpisodeTrackingWrapper
    assert type(env.env) is ObservationWrapper


@pytest.mark.parametrize(
    "names", ["concat, episode_tracking", " concat ,episode_tracking ", "concat,,episode_tracking,"]
)
def test_whitespace_and_empty_entries_are_ignored(names):
    assert type(wrapped(names).env) is ObservationWrapper


@pytest.mark.parametrize("names", ["", " ", ","])
def test_no_names_give_no_wrappers(names):
    assert get_wrapper_fns(names) == []


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("concat", (False, False, False)),
        ("concat_with_action", (True, False, False)),
        ("concat_chat", (True, True, False)),
        ("concat_chat_on_reset", (True, False, True)),
    ],
)
def test_each_observation_name_has_its_settings(name, settings):
    env = wrapped(name, Template())
    assert (env.include_action, env.include_chat_template, env.apply_chat_template_on_reset) == settings


def test_a_misspelled_name_is_refused_with_a_suggestion():
    with pytest.raises(UnknownArgument, match=r"'concatt'.*'concat'.*episode_tracking"):
        get_wrapper_fns("concatt")


@pytest.mark.parametrize("name", ["concat_chat", "concat_chat_on_reset"])
def test_a_template_mode_requires_a_tokenizer(name):
    with pytest.raises(BadValue, match="needs tokenizer="):
        wrapped(name)


@pytest.mark.parametrize("name", sorted(set(WRAPPER_FACTORY) - {"lookup_tool"}))  # needs an environment with a table
def test_factory_entries_accept_keyword_arguments(name):
    kwargs = {"tokenizer": Template()} if name.startswith("concat") else {}
    env = WRAPPER_FACTORY[name](gem.make("game:GuessTheNumber-v0"), **kwargs)
    observation, info = env.reset(seed=1)
    assert "Guess the secret integer" in observation
    assert isinstance(info, dict)


@pytest.mark.parametrize("name", sorted(set(WRAPPER_FACTORY) - {"lookup_tool"}))  # needs an environment with a table
def test_every_wrapper_supports_spawn(name):
    env = wrapped(name, Template())
    env.reset(seed=1)
    env.step(r"\boxed{1}")
    fork = env.spawn(same_state=True)
    assert fork.step(r"\boxed{2}") == env.step(r"\boxed{2}")
