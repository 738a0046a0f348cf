"""Show the episode history in each observation, for policies that see only the latest observation."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from gem._internal.counts import check_count
from gem.conversation.observations import action_text, join_contents, role_of, text_messages, with_prefix_and_suffix
from gem.conversation.template import Template, remove_whitespace, thinking_tags
from gem.core import Info, ResultWrapper, Step
from gem.errors import BadValue
from gem.messages import Message, assistant


class ObservationWrapper(ResultWrapper):
    r"""Shows the history of the episode in every observation.

    Messages include ``info["prefix"]`` and ``info["suffix"]`` of their step (for example a board); without actions,
    only the newest message does. Tool results (``info["use_tool"]``) have the role "tool", or "user" if the template
    does not support the role "tool".

    With actions, each observation begins with the previous observation and the action, except where older observations
    are dropped (max_history_length), where the template no longer shows an earlier action in full (for example because
    it removes thinking), and where the action contains control tokens.

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
    >>> print(env.step(r"\boxed{11}").observation.split("\n", 2)[2], end="")
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
        check_count("max_history_length", max_history_length, optional=True)
        self.include_action, self.include_chat_template = include_action, include_chat_template
        self.apply_chat_template_on_reset = apply_chat_template_on_reset
        self.max_history_length, self.tokenizer = max_history_length, tokenizer
        self._template = Template(tokenizer) if self.shows_prompt else None
        self.observations: list[list[Message]] = []
        self.actions: list[str] = []
        self.prompt = ""  # the latest observation
        self._keeps_actions = True  # whether the template shows all actions of the episode

    @property
    def shows_prompt(self) -> bool:  # type: ignore[override]
        """Whether observations are complete prompts, fed to the model unchanged."""
        return self.include_chat_template or self.apply_chat_template_on_reset

    def own_state(self) -> dict[str, Any]:
        observations = [[dict(message) for message in messages] for messages in self.observations]
        return {"observations": observations, "actions": list(self.actions), "prompt": self.prompt}

    def set_own_state(self, state: dict[str, Any]) -> None:
        self.observations = [list(messages) for messages in state["observations"]]
        self.actions, self.prompt = list(state["actions"]), state["prompt"]
        self._keeps_actions = all(map(self._is_kept, self.actions))

    def _after_reset(self, observation: Any, info: Info) -> tuple[str, Info]:
        newest = text_messages(with_prefix_and_suffix(observation, info))
        self.observations, self.actions, self._keeps_actions = [], [], True
        return self._show(observation, newest), _without_prefix_and_suffix(info)

    def _after_step(self, action: Any, step: Step) -> Step:
        observation, info = step.observation, step.info
        newest = text_messages(with_prefix_and_suffix(observation, info), role_of(info))
        self.actions.append(self._action_text(action))
        self._keeps_actions = self._keeps_actions and self._is_kept(self.actions[-1])
        return step._replace(observation=self._show(observation, newest), info=_without_prefix_and_suffix(info))

    def _show(self, observation: Any, newest: list[Message]) -> str:
        shows_actions = self.include_action or self.include_chat_template
        self.observations.append(newest if shows_actions else text_messages(observation, newest[0]["role"]))
        self.prompt = self._conversation(newest) if self.include_chat_template else self._lines(newest)
        return self.prompt

    def _lines(self, newest: list[Message]) -> str:
        """Return the observations, and the actions if they are included, as lines."""
        kept = self._kept()
        first, *rest = [*(self.observations[i] for i in kept[:-1]), newest]
        actions = [self.actions[i - 1] for i in kept[1:]]  # the action before each kept observation but the first
        if not self.include_action:
            head = self._render(first) if self.apply_chat_template_on_reset else join_contents(first)
            return "\n".join([head, *(self._safe(join_contents(messages)) for messages in rest)])
        lines = [self._render(first) if self.apply_chat_template_on_reset else end_line(join_contents(first))]
        for action, messages in zip(actions, rest, strict=True):
            lines += [end_line(self._safe(action)), end_line(self._safe(join_contents(messages)))]
        return "".join(lines)

    def _conversation(self, newest: list[Message]) -> str:
        """Return the previous prompt, the last action and the newest messages; or render the conversation again."""
        kept = self._kept()
        extended = self._extended(newest) if 1 < len(kept) == len(self.observations) else None
        if extended is not None and self._keeps_actions:
            return extended
        messages = list(self.observations[0])
        for i in kept[1:]:
            messages += [assistant(self.actions[i - 1]), *self.observations[i]]
        rendered = self._render(messages)
        # The template may show all actions although it does not keep them, as long as tools answer.
        same = extended is not None and remove_whitespace(extended) == remove_whitespace(rendered)
        return extended if extended is not None and same else rendered

    def _extended(self, newest: list[Message]) -> str | None:
        assert self._template is not None
        with suppress(BadValue):  # templates may refuse the short conversation that this renders
            rest = self._template.after_reply(self._neutral(newest))
            return None if rest is None else self.prompt + self._safe(self.actions[-1]) + rest
        return None

    def _kept(self) -> list[int]:
        """Return the indices of the observations to show: the first, and the newest max_history_length."""
        count = len(self.observations)
        if self.max_history_length is None or count <= self.max_history_length + 1:
            return list(range(count))
        return [0, *range(count - self.max_history_length, count)]

    def _is_kept(self, action: str) -> bool:
        return not self.include_chat_template or self._template is None or self._template.keeps(self._safe(action))

    def _action_text(self, action: Any) -> str:
        text = action_text(action)
        if self._template is None:
            return text
        _, closing = thinking_tags(self.prompt) if self.include_chat_template else ("", "")
        text = self._template.without_end(text)
        return text if closing.strip() in text else text + closing  # the next reply would continue the thinking

    def _render(self, messages: list[Message]) -> str:
        assert self._template is not None
        return self._template.render(self._neutral(messages))

    def _neutral(self, messages: list[Message]) -> list[Message]:
        return [{**message, "content": self._safe(message["content"])} for message in messages]

    def _safe(self, text: str) -> str:
        return text if self._template is None else self._template.neutral(text)


def end_line(text: str) -> str:
    """Return a text that ends with a newline, unless it is empty."""
    return text if not text or text.endswith("\n") else f"{text}\n"


def _without_prefix_and_suffix(info: Info) -> Info:
    # The observation already contains both texts. A caller that added them again would show them twice.
    return {key: value for key, value in info.items() if key not in ("prefix", "suffix")}
