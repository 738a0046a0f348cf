"""Show the episode history in each observation, for policies that see only the latest observation."""

from __future__ import annotations

from typing import Any

from gem.conversation import role_of
from gem.conversation.observations import action_text, join_contents, text_messages, with_prefix_and_suffix
from gem.conversation.template import MARK, Template
from gem.core import EnvWrapper, Info, Step
from gem.errors import BadValue
from gem.messages import Message, Role, assistant

_ZERO_WIDTH_SPACE = "\u200b"


class ObservationWrapper(EnvWrapper):
    r"""Shows the history of the episode in every observation.

    The newest message includes ``info["prefix"]`` and ``info["suffix"]`` of the same step (for example a board); older
    messages do not. Tool results (``info["use_tool"]``) have the role "tool", or "user" if the template does not
    support the role "tool".

    With a chat template, a zero-width space is inserted into text that looks like a control token, because the output
    is plain text. Control tokens at the end of an action are removed; the template adds its own. Native ``tool_calls``
    of an action are shown as JSON in ``<tool_call>`` tags.

    Args:
        include_action: include the agent's actions as well as the observations.
        include_chat_template: render the history with the tokenizer's chat template, ready for the next reply.
        apply_chat_template_on_reset: render only the first observation with the template; the rest is plain text.
        max_history_length: number of newest observations to show in addition to the first; None shows all.
        tokenizer: required by the two template modes; must have a chat template.

    Raises:
        BadValue: for a template mode without a tokenizer, both template modes, or max_history_length < 1.

    >>> import gem
    >>> env = ObservationWrapper(gem.make("game:GuessTheNumber-v0", seed=0), include_action=True)
    >>> _ = env.reset()
    >>> print(env.step(r"\boxed{11}").observation.split("\n", 2)[2])
    \boxed{11}
    Turn 1: 11 is too high.
    """

    shows_history = True  # rollouts then use each observation as the whole context

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
            raise BadValue("include_chat_template and apply_chat_template_on_reset are mutually exclusive")
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
        """Whether observations are complete prompts, fed to the model unchanged."""
        return self.include_chat_template or self.apply_chat_template_on_reset

    def own_state(self) -> dict[str, Any]:
        observations = [[dict(message) for message in messages] for messages in self.observations]
        return {"observations": observations, "actions": list(self.actions)}

    def set_own_state(self, state: dict[str, Any]) -> None:
        self.observations = [list(messages) for messages in state["observations"]]
        self.actions = list(state["actions"])

    def _begin(self, observation: Any, info: Info) -> tuple[str, Info]:
        self.observations, self.actions = [text_messages(observation)], []
        return self._show(observation, info, "user"), _without_prefix_and_suffix(info)

    def _add(self, action: str, observation: Any, reward: float, terminated: bool, truncated: bool, info: Info) -> Step:
        self.actions.append(self._action_text(action))
        self.observations.append(text_messages(observation, role_of(info)))
        observation = self._show(observation, info, role_of(info))
        return Step(observation, reward, terminated, truncated, _without_prefix_and_suffix(info))

    def _show(self, newest: Any, info: Info, role: Role) -> str:
        kept = self._kept()
        observations = [self.observations[i] for i in kept]
        observations[-1] = text_messages(with_prefix_and_suffix(newest, info), role)
        actions = [self.actions[i - 1] for i in kept[1:]]  # the action before each kept observation but the first
        first, rest = observations[0], observations[1:]
        if self.include_chat_template:
            messages = list(first)
            for action, observation in zip(actions, rest, strict=True):
                messages += [assistant(action), *observation]
            return self._render(messages)
        lines = [self._render(first) if self.apply_chat_template_on_reset else join_contents(first)]
        for action, observation in zip(actions, rest, strict=True):
            shown = [self._safe(action)] if self.include_action else []
            lines += [*shown, self._text(observation)]
        return "\n".join(lines)

    def _action_text(self, action: Any) -> str:
        text = action_text(action)
        return text if self._template is None else self._template.without_end(text)

    def _kept(self) -> list[int]:
        """Return the indices of the observations to show: the first, and the newest max_history_length."""
        count = len(self.observations)
        if self.max_history_length is None or count <= self.max_history_length + 1:
            return list(range(count))
        return [0, *range(count - self.max_history_length, count)]

    def _render(self, messages: list[Message]) -> str:
        assert self._template is not None
        return self._template.render(messages).replace(MARK, _ZERO_WIDTH_SPACE)

    def _text(self, messages: list[Message]) -> str:
        return self._safe(join_contents(messages))

    def _safe(self, text: str) -> str:
        return text if self._template is None else self._template.safe(text).replace(MARK, _ZERO_WIDTH_SPACE)


def _without_prefix_and_suffix(info: Info) -> Info:
    # The observation already contains both texts. A caller that added them again would show them twice.
    return {key: value for key, value in info.items() if key not in ("prefix", "suffix")}
