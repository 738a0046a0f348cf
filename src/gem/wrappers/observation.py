"""The whole history as one observation: what a model without memory needs to see."""

from __future__ import annotations

from typing import Any

from gem.conversation import role_of
from gem.conversation.observations import joined, text_messages, with_prefix_and_suffix
from gem.conversation.template import MARK, SafeText, Template
from gem.core import EnvWrapper, Info, Step
from gem.errors import BadValue
from gem.messages import Message, Role, assistant

_UNSEEN = "\u200b"  # a zero-width space


class ObservationWrapper(EnvWrapper):
    r"""Shows the history of the episode in every observation.

    An environment's ``info["prefix"]`` and ``info["suffix"]`` (a board, "your turn") belong to the newest observation:
    they stand inside the newest message and are gone from it one turn later. The results of tools (info["use_tool"])
    are messages of the role "tool", of the user where the template refuses that role.

    Where a template is written, what looks like a control token in an observation gets a zero-width space into it, as
    whoever reads the text could not tell it from the template's own. What the agent said stays as it is.

    Args:
        include_action: the agent's actions too, not observations alone.
        include_chat_template: write the history as a conversation with the tokenizer's chat template, ready for the
            model's reply.
        apply_chat_template_on_reset: write only the first observation with the template; what follows is plain text.
        max_history_length: keep the first observation and this many of the newest; None keeps all.
        tokenizer: with a chat template; needed by the two template modes.

    Raises BadValue for a template mode without a tokenizer, both modes at once, and max_history_length < 1.

    >>> import gem
    >>> env = ObservationWrapper(gem.make("game:GuessTheNumber-v0", seed=0), include_action=True)
    >>> _ = env.reset()
    >>> print(env.step(r"\boxed{11}").observation.split("\n", 2)[2])
    \boxed{11}
    Turn 1: 11 is too high.
    """

    shows_history = True  # so a rollout does not put it after what it fed before

    def __init__(
        self,
        env: Any,
        include_action: bool = False,
        include_chat_template: bool = False,
        apply_chat_template_on_reset: bool = False,
        max_history_length: int | None = None,
        tokenizer: Any = None,
    ) -> None:
        super().__init__(env)
        if include_chat_template and apply_chat_template_on_reset:
            raise BadValue("include_chat_template and apply_chat_template_on_reset exclude each other")
        if (include_chat_template or apply_chat_template_on_reset) and tokenizer is None:
            raise BadValue("a chat template needs tokenizer=, a Hugging Face tokenizer with a chat template")
        if max_history_length is not None and max_history_length < 1:
            raise BadValue(f"max_history_length must be at least 1 or None, got {max_history_length}")
        self.include_action, self.include_chat_template = include_action, include_chat_template
        self.apply_chat_template_on_reset = apply_chat_template_on_reset
        self.max_history_length, self.tokenizer = max_history_length, tokenizer
        self._template = Template(tokenizer) if self.shows_prompt else None
        self.observations: list[list[Message]] = []
        self.actions: list[str] = []

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[str, Info]:
        return self._begin(*self.env.reset(seed=seed, **kwargs))

    async def areset(self, seed: int | None = None, **kwargs: Any) -> tuple[str, Info]:
        return self._begin(*await self.env.areset(seed=seed, **kwargs))

    def step(self, action: str) -> Step:
        return self._add(action, *self.env.step(action))

    async def astep(self, action: str) -> Step:
        return self._add(action, *await self.env.astep(action))

    @property
    def shows_prompt(self) -> bool:
        """Whether an observation is a prompt already, to be fed as it is."""
        return self.include_chat_template or self.apply_chat_template_on_reset

    def own_state(self) -> dict[str, Any]:
        said = [[dict(message) for message in messages] for messages in self.observations]
        return {"observations": said, "actions": list(self.actions)}

    def set_own_state(self, state: dict[str, Any]) -> None:
        self.observations = [list(messages) for messages in state["observations"]]
        self.actions = list(state["actions"])

    def _begin(self, observation: Any, info: Info) -> tuple[str, Info]:
        self.observations, self.actions = [text_messages(observation)], []
        return self._show(observation, info, "user"), _without_frame(info)

    def _add(self, action: str, observation: Any, reward: float, terminated: bool, truncated: bool, info: Info) -> Step:
        self.actions.append(str(action))
        self.observations.append(text_messages(observation, role_of(info)))
        observation = self._show(observation, info, role_of(info))
        return Step(observation, reward, terminated, truncated, _without_frame(info))

    def _show(self, newest: Any, info: Info, role: Role) -> str:
        kept = self._kept()
        says = [self.observations[i] for i in kept]
        says[-1] = text_messages(with_prefix_and_suffix(newest, info), role)
        # What the agent said right before each observation that is kept, but for the first.
        said = [self.actions[i - 1] for i in kept[1:]]
        if self.include_chat_template:
            messages = list(says[0])
            for action, observation in zip(said, says[1:], strict=True):
                messages += [assistant(SafeText(action)), *observation]
            return self._render(messages)
        lines = [self._render(says[0]) if self.apply_chat_template_on_reset else joined(says[0])]
        for action, observation in zip(said, says[1:], strict=True):
            lines += [action, self._text(observation)] if self.include_action else [self._text(observation)]
        return "\n".join(lines)

    def _kept(self) -> list[int]:
        """Indices of the observations shown: the first, and the newest max_history_length."""
        count = len(self.observations)
        if self.max_history_length is None or count <= self.max_history_length + 1:
            return list(range(count))
        return [0, *range(count - self.max_history_length, count)]

    def _render(self, messages: list[Message]) -> str:
        assert self._template is not None
        return self._template.render(messages).replace(MARK, _UNSEEN)

    def _text(self, messages: list[Message]) -> str:
        text = joined(messages)
        return text if self._template is None else self._template.safe(text).replace(MARK, _UNSEEN)


def _without_frame(info: Info) -> Info:
    # They stand in the observation now; whoever reads both would show them twice.
    return {key: value for key, value in info.items() if key not in ("prefix", "suffix")}
