"""Limits on the history shown to a model, and the token context of each turn.

A context extends the previous context by the sampled ids and the ids of the new messages. A new context is built, and a
new TokenSequence starts, when old turns are dropped or when the template no longer shows an earlier reply in full, for
example because the template removes thinking from earlier replies. If the template does not support extension (see
ChatFormat.can_extend), every context is rendered from scratch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from gem._internal.counts import check_count
from gem.conversation.chat import ChatFormat
from gem.conversation.observations import as_messages
from gem.conversation.template import remove_whitespace
from gem.core import StopReason
from gem.errors import BadValue
from gem.messages import Message, Observation, assistant
from gem.token_ids import TokenIds
from gem.trajectory import Turn


@dataclass(frozen=True)
class History:
    """Limits on the part of an episode shown to a policy.

    The task (the first observation) and the newest turn are always shown. The oldest turns are dropped first.
    Dropping a turn removes a reply and the observation after the reply.

    Args:
        max_turns: maximum number of earlier turns shown besides the task; None shows all.
        max_tokens: maximum length of a context, for token policies; None applies only the policy's own limit.
        overflow: "end" truncates the episode past a limit (stop reason "max_turns" or "max_tokens"). "drop_oldest"
            drops as few turns as necessary; the episode is truncated only if the task and the newest turn exceed the
            token limit.

    Raises:
        BadValue: for a limit below 1 or an unknown overflow.
    """

    max_turns: int | None = None
    max_tokens: int | None = None
    overflow: Literal["end", "drop_oldest"] = "end"

    def __post_init__(self) -> None:
        for name, limit in (("max_turns", self.max_turns), ("max_tokens", self.max_tokens)):
            check_count(name, limit, optional=True)
        if self.overflow not in ("end", "drop_oldest"):
            raise BadValue(f"overflow must be 'end' or 'drop_oldest', got {self.overflow!r}")

    def dropped(self, turns: Sequence[Turn]) -> int:
        """Return the number of oldest turns to drop: those dropped before, and more if max_turns requires it."""
        before = turns[-1].dropped if turns else 0
        if self.max_turns is None or self.overflow == "end":
            return before
        return max(before, len(turns) - self.max_turns)

    def exceeded(self, turns: Sequence[Turn]) -> StopReason | None:
        """Return MAX_TURNS if overflow is "end" and there are more than max_turns turns, else None."""
        ends = self.overflow == "end" and self.max_turns is not None and len(turns) > self.max_turns
        return StopReason.MAX_TURNS if ends else None

    def context(
        self,
        chat: ChatFormat,
        turns: Sequence[Turn],
        new: Sequence[Message],
        limit: int | None,
        at_risk: RepliesAtRisk | None = None,
    ) -> Context:
        """Build the next context.

        Args:
            turns: the turns of the episode so far.
            new: messages of the latest observation.
            limit: maximum number of tokens that the policy accepts; None for no limit.
            at_risk: the same object at each turn of an episode, so that the cost does not grow with its turns.

        Raises:
            BadValue: if the first prompt is longer than max_tokens. A first prompt longer than ``limit`` is not
                an error here.
        """
        dropped = self.dropped(turns)
        at_risk = at_risk or RepliesAtRisk()
        ids = context_ids(chat, turns, new, dropped, at_risk)
        if not turns and self.max_tokens is not None and len(ids) > self.max_tokens:
            raise BadValue(f"the first prompt has {len(ids)} tokens, and max_tokens is {self.max_tokens}")
        most = min((tokens for tokens in (limit, self.max_tokens) if tokens is not None), default=None)
        while self.overflow == "drop_oldest" and most is not None and len(ids) > most and dropped < len(turns) - 1:
            dropped += 1
            ids = context_ids(chat, turns, new, dropped, at_risk)
        fits = not turns or most is None or len(ids) <= most
        return Context(ids, dropped, self.exceeded(turns) or (None if fits else StopReason.MAX_TOKENS))


class Context(NamedTuple):
    """The ids of the next prompt, the number of dropped turns, and the limit exceeded (None if none is)."""

    ids: TokenIds
    dropped: int
    exceeded: StopReason | None


FULL_HISTORY = History()


class RepliesAtRisk:
    """Finds the turns whose replies the template may strip. Checks each turn of an episode once."""

    def __init__(self) -> None:
        self._checked = 0
        self._found: list[int] = []

    def among(self, chat: ChatFormat, turns: Sequence[Turn], dropped: int) -> list[Turn]:
        """Return such turns, without the oldest ``dropped`` turns."""
        for k in range(self._checked, len(turns)):
            if not chat.keeps(_reply_ids(chat, turns[k])):
                self._found.append(k)
        self._checked = len(turns)
        return [turns[k] for k in self._found if k >= dropped]


def conversation(
    turns: Sequence[Turn],
    new: Sequence[Message],
    dropped: int = 0,
    reply: Callable[[Turn], Message] | None = None,
) -> list[Message]:
    """Return the messages of an episode: the task, then each reply followed by its observation.

    Args:
        turns: the turns of the episode so far.
        new: messages of the latest observation.
        dropped: number of oldest turns to leave out.
        reply: converts a turn's reply to a message; None uses the text of its action.
    """
    if not turns:
        return list(new)
    messages = turn_messages(turns[0])
    for k in range(dropped, len(turns)):
        messages += [
            assistant(turns[k].action) if reply is None else reply(turns[k]),
            *(new if k == len(turns) - 1 else turn_messages(turns[k + 1])),
        ]
    return messages


def shown_observations(turns: Sequence[Turn], newest: Observation, dropped: int = 0) -> list[Observation]:
    """Return the observations in a context: the task, and those after each reply that was not dropped."""
    if not turns:
        return [newest]
    return [turns[0].observation, *(turn.observation for turn in turns[dropped + 1 :]), newest]


def turn_messages(turn: Turn) -> list[Message]:
    """Return the observation of a turn as messages."""
    return as_messages(turn.observation, turn.role)


def context_ids(
    chat: ChatFormat, turns: Sequence[Turn], new: Sequence[Message], dropped: int, at_risk: RepliesAtRisk
) -> TokenIds:
    """Return the ids of the next context.

    The previous context is extended if the template supports extension, no more turns are dropped, and the template
    still shows every reply that it showed before. Otherwise a new context is built.
    """
    if not turns:
        return TokenIds(chat.prompt(new))
    last = turns[-1]
    if chat.can_extend:
        risky = at_risk.among(chat, turns, dropped)
        if dropped == last.dropped:
            if _still_shows_replies(chat, turns, new, risky):
                return last.context.extended(*_following(chat, turns, len(turns) - 1, new, dropped))
        elif _shows_all_replies(chat, turns, new, dropped, risky):
            ids = TokenIds(chat.prompt(turn_messages(turns[0])))
            for k in range(dropped, len(turns)):
                after = new if k == len(turns) - 1 else turn_messages(turns[k + 1])
                ids = ids.extended(*_following(chat, turns, k, after, dropped))
            return ids
    return last.context.continued(chat.prompt(_messages(chat, turns, new, dropped)))


def _following(
    chat: ChatFormat, turns: Sequence[Turn], k: int, new: Sequence[Message], dropped: int
) -> tuple[list[int], list[int]]:
    """Return the ids of the reply of turn k, and those that follow it."""
    shown = turns[dropped + 1 : k + 1] if chat.numbers_tools else ()
    after_tools = any(message["role"] == "tool" for turn in shown for message in turn_messages(turn))
    return _closed(chat, turns[k]), chat.new_ids(turns[k].sampled_ids, new, after_tools=after_tools)


def _closed(chat: ChatFormat, turn: Turn) -> list[int]:
    """Return the sampled ids of a turn, and those that close its thinking if the reply was cut in it."""
    return [*turn.sampled_ids, *chat.thinking_ids(turn.context, turn.sampled_ids)[1]]


def _reply_ids(chat: ChatFormat, turn: Turn) -> list[int]:
    """Return the ids of a reply with all of its thinking, which the prompt may have opened."""
    opening, closing = chat.thinking_ids(turn.context, turn.sampled_ids)
    return [*opening, *turn.sampled_ids, *closing]


def _messages(chat: ChatFormat, turns: Sequence[Turn], new: Sequence[Message], dropped: int) -> list[Message]:
    return conversation(turns, new, dropped, lambda turn: chat.reply(_reply_ids(chat, turn)))


def _still_shows_replies(
    chat: ChatFormat, turns: Sequence[Turn], new: Sequence[Message], at_risk: Sequence[Turn]
) -> bool:
    """Whether the template still shows the last reply and all replies shown before when the new messages are added."""
    if not at_risk:  # the common case, decided without rendering
        return True
    messages = _messages(chat, turns, new, turns[-1].dropped)
    before = messages[: -1 - len(new)]
    was, now = chat.template.render(before), chat.template.render(messages)
    if now.startswith(was):
        # The earlier part is unchanged, as after a tool result: only the last reply needs a check.
        messages, before, was, now = messages[len(before) :], [], "", now[len(was) :]
        at_risk = [turn for turn in at_risk if turn is turns[-1]]
    shown, shown_before = _ReplyCounter(chat, now, messages), _ReplyCounter(chat, was, before)
    last = _text(chat, turns[-1])
    texts = dict.fromkeys(_text(chat, turn) for turn in reversed(at_risk))  # newest first: most likely stripped
    return all(shown.count(text) >= shown_before.count(text) + (text == last) for text in texts)


def _shows_all_replies(
    chat: ChatFormat, turns: Sequence[Turn], new: Sequence[Message], dropped: int, at_risk: Sequence[Turn]
) -> bool:
    """Whether the template shows every reply that is not dropped."""
    if not at_risk:
        return True
    texts = Counter(_text(chat, turn) for turn in at_risk)
    messages = _messages(chat, turns, new, dropped)
    shown = _ReplyCounter(chat, chat.template.render(messages), messages)
    return all(shown.count(text) == count for text, count in texts.items())


def _text(chat: ChatFormat, turn: Turn) -> str:
    return remove_whitespace(chat.reply(_closed(chat, turn))["content"])


class _ReplyCounter:
    """Counts how often replies occur in a rendered conversation, ignoring whitespace."""

    def __init__(self, chat: ChatFormat, rendered: str, messages: Sequence[Message]) -> None:
        self._rendered = remove_whitespace(rendered)
        others = [message["content"] for message in messages if message["role"] != "assistant"]
        self._others = [remove_whitespace(chat.template.safe(content)) for content in others]

    def count(self, text: str) -> int:
        """Return how often the text of a reply occurs, without its occurrences in other messages."""
        return self._rendered.count(text) - sum(other.count(text) for other in self._others)
