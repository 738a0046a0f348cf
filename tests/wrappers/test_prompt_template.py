"""The wrapper of prompt templates."""

import pytest

import gem
from gem.conversation.prompt_template import PromptTemplate
from gem.errors import BadValue
from gem.wrappers import get_wrapper_fns
from gem.wrappers.prompt_template import PromptTemplateWrapper

TEMPLATE = PromptTemplate("t", "[{observation}]")
GAME = "game:GuessTheNumber-v0-easy"


def test_only_the_first_observation_is_wrapped_without_a_history():
    env = PromptTemplateWrapper(gem.make(GAME, seed=0), TEMPLATE)
    assert env.reset()[0][0] == "[" and env.step("\\boxed{1}")[0][0] != "["


def test_each_observation_with_the_history_is_wrapped_once():
    env = PromptTemplateWrapper(get_wrapper_fns("concat")[0](gem.make(GAME, seed=0)), TEMPLATE)
    env.reset()
    observation = env.step("\\boxed{1}")[0]
    assert observation[0] == "[" and observation.count("[") == 1 and "Turn 1" in observation


def test_wrappers_that_render_a_prompt_are_refused():
    class Prompts(gem.EnvWrapper):
        shows_prompt = True

    with pytest.raises(BadValue, match="wrappers that render a prompt"):
        PromptTemplateWrapper(Prompts(gem.make(GAME)), TEMPLATE)
