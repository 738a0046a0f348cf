"""Put the words of a prompt template around observations."""

from __future__ import annotations

from typing import Any, cast

from gem.conversation.prompt_template import PromptTemplate
from gem.core import EnvWrapper, Info
from gem.errors import BadValue


class PromptTemplateWrapper(EnvWrapper):
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

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        observation, info = super().reset(seed, **kwargs)
        return self.template.apply(observation), info

    async def areset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        observation, info = await super().areset(seed, **kwargs)
        return self.template.apply(observation), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        return self._shown(super().step(action))

    async def astep(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        return self._shown(await super().astep(action))

    def _shown(self, step: tuple[Any, float, bool, bool, Info]) -> tuple[Any, float, bool, bool, Info]:
        observation, reward, terminated, truncated, info = step
        if not self._each or terminated or truncated:
            return step
        return cast(Any, self.template.apply(observation)), reward, terminated, truncated, info
