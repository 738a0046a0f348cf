"""Put the words of a prompt template around observations."""

from __future__ import annotations

from typing import Any

from gem.conversation.prompt_template import PromptTemplate
from gem.core import Info, ResultWrapper, Step
from gem.errors import BadValue


class PromptTemplateWrapper(ResultWrapper):
    """Applies a prompt template to the first observation; to each one, if observations contain the history.

    It is the outermost wrapper.

    Args:
        template: the template.

    Raises:
        BadValue: the environment renders whole prompts with a chat template, which leaves no place for other words.

    >>> import gem
    >>> env = PromptTemplateWrapper(gem.make("qa:Facts", seed=0), PromptTemplate("hint", "{observation} Be brief."))
    >>> env.reset()[0].endswith("Be brief.")
    True
    """

    def __init__(self, env: Any, template: PromptTemplate) -> None:
        super().__init__(env)
        if self.shows_prompt:
            raise BadValue(f"the prompt template {template.name} cannot be combined with wrappers that render a prompt")
        self.template, self._each = template, self.shows_history

    def _after_reset(self, observation: Any, info: Info) -> tuple[Any, Info]:
        return self.template.apply(observation), info

    def _after_step(self, action: Any, step: Step) -> Step:
        if not self._each or step.terminated or step.truncated:
            return step
        return step._replace(observation=self.template.apply(step.observation))
